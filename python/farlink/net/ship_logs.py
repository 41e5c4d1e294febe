"""What the logs of `farlink bundle carry` say of its paths: its journal, and its metrics as they were saved now and then."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from farlink.errors import JournalError
from farlink.untrusted import read_file

NoticedBy = Literal["near", "far", "nobody"]

# With several peers, events begin with the peer's name and samples have a label `peer`.
_EVENT = re.compile(
    r"^(?P<time>\d{9,11}(?:\.\d+)?) .*?: (?:(?P<peer>[\w.-]+): )?(?P<kind>up|down|left-out): (?P<path>[\w.-]+): (?P<text>.*)$"
)
# The end that noticed that a path is down, by the words of the event.
_NOTICED: tuple[tuple[str, NoticedBy], ...] = (("there is no way", "near"), ("the other end does not use", "far"))
_AT = re.compile(r"^# at (?P<time>\d{9,11}(?:\.\d+)?)\s*$")
_SAMPLE = re.compile(
    r'^farlink_bundle_path_(?P<name>\w+)\{(?:peer="(?P<peer>[^"]*)",)?path="(?P<path>[^"]*)"\} (?P<value>\S+)$'
)
# A path carries what it can if it is so much in use, or packets wait in it.
_IN_USE, _WAITS_S = 0.5, 0.002


@dataclass(frozen=True)
class Down:
    """A time in which a path was down, in s since 1970, and who was told at once."""

    from_s: float
    to_s: float
    noticed_by: NoticedBy


@dataclass(frozen=True)
class Sample:
    """Metrics of a path at a time in s since 1970."""

    at_s: float
    values: Mapping[str, float]


@dataclass
class PathLog:
    """What is known of a path.

    Attributes
    ----------
    downs
        When it was down, in the order of time.
    samples
        Its metrics, in the order of time.
    """

    downs: list[Down] = field(default_factory=list)
    samples: list[Sample] = field(default_factory=list)

    def rates(self) -> list[tuple[float, float]]:
        """Times in s since 1970 and rates in bit/s that the path was found to carry; until the next one each holds.

        Notes
        -----
        A rate counts while the path was at least half in use, or packets waited in it: what is offered less finds no rate. If
        that never was, the largest rate counts all the time. It is a lower bound.
        """
        found: list[tuple[float, float]] = []
        for before, sample in zip([None, *self.samples], self.samples, strict=False):
            rate = sample.values.get("rate_bits_per_second", 0.0)
            sent = sample.values.get("sent_bytes_total", 0.0) - (before.values.get("sent_bytes_total", 0.0) if before else 0.0)
            span_s = sample.at_s - before.at_s if before else math.inf
            is_in_use = sent * 8 >= _IN_USE * rate * span_s or sample.values.get("queue_seconds", 0.0) >= _WAITS_S
            if rate > 0 and is_in_use:
                found.append((sample.at_s, rate))
        if found:
            return found
        most = max((sample.values.get("rate_bits_per_second", 0.0) for sample in self.samples), default=0.0)
        return [(self.samples[0].at_s, most)] if most > 0 else []

    def delays(self) -> list[tuple[float, float]]:
        """Times in s since 1970 and one-way delays in s: half of the round trips, without what waited in the path's queue."""
        found = []
        for sample in self.samples:
            round_trip_s = sample.values.get("round_trip_seconds", 0.0)
            if round_trip_s > 0:
                found.append((sample.at_s, max(round_trip_s - sample.values.get("queue_seconds", 0.0), 0.0) / 2))
        return found

    def loss(self) -> float | None:
        """The mean share of packets that was lost without load; None if it was never measured."""
        ratios = [sample.values["loss_ratio"] for sample in self.samples if "loss_ratio" in sample.values]
        return math.fsum(ratios) / len(ratios) if ratios else None

    def queue_s(self) -> float:
        """The longest that packets waited in the path's own queue, in s."""
        return max((sample.values.get("queue_seconds", 0.0) for sample in self.samples), default=0.0)


def read_journal(path: Path, *, peer: str | None = None) -> tuple[dict[str, list[Down]], tuple[float, float] | None]:
    """When paths were down, by `journalctl -o short-unix -u farlink-bundle@NAME`, and the first and last time in the log.

    Parameters
    ----------
    path
        The text of the journal.
    peer
        Whose paths are meant where the journal tells of several peers; all of them unless given.

    Raises
    ------
    JournalError
        If it cannot be read, or no line tells of a path.

    Notes
    -----
    A path that is down at the end stays so. A path that is left out because it is bad is not down.
    """
    begun: dict[str, tuple[float, NoticedBy]] = {}
    downs: dict[str, list[Down]] = {}
    first_s = last_s = math.nan
    for line in _lines(path):
        event = _EVENT.match(line)
        if event is None or not _is_of(peer, event["peer"]):
            continue
        at_s, name = float(event["time"]), event["path"]
        if at_s < last_s:
            raise JournalError(f"{path}: the time goes back at {event['time']}", "write it with journalctl -o short-unix")
        first_s, last_s = at_s if math.isnan(first_s) else first_s, at_s
        known = downs.setdefault(name, [])
        if event["kind"] == "down":
            who: NoticedBy = next((who for words, who in _NOTICED if event["text"].startswith(words)), "nobody")
            begun.setdefault(name, (at_s, who))
        elif name in begun:
            from_s, who = begun.pop(name)
            if at_s > from_s:
                known.append(Down(from_s, at_s, who))
    if not downs:
        remedy = "write it with: journalctl -o short-unix -u farlink-bundle@ship"
        raise JournalError(f"{path}: no line tells that a path is up or down", remedy)
    for name, (from_s, who) in begun.items():
        downs[name].append(Down(from_s, math.inf, who))
    return downs, (first_s, last_s)


def read_metrics(path: Path, *, peer: str | None = None) -> dict[str, list[Sample]]:
    """Metrics of each path, saved again and again, each time behind a line ``# at SECONDS`` (since 1970).

    Parameters
    ----------
    path
        What ``(date +'# at %s'; curl -s http://127.0.0.1:9472/metrics) >> FILE`` wrote.
    peer
        Whose paths are meant where samples have a label ``peer``; all of them unless given.

    Raises
    ------
    JournalError
        If it cannot be read, its times go back, or nothing in it is of a path.
    """
    at_s = math.nan
    values: dict[str, dict[str, float]] = {}
    found: dict[str, list[Sample]] = {}

    def end() -> None:
        for name, of_path in values.items():
            found.setdefault(name, []).append(Sample(at_s, of_path))
        values.clear()

    for line in _lines(path):
        if mark := _AT.match(line):
            end()
            if float(mark["time"]) <= at_s:
                raise JournalError(f"{path}: the time goes back at {mark['time']}", "save the metrics of one bundle in a file")
            at_s = float(mark["time"])
        elif (sample := _SAMPLE.match(line)) and _is_of(peer, sample["peer"]):
            if math.isnan(at_s):
                raise JournalError(f"{path}: metrics come before the first time", "write a line like: date +'# at %s'")
            value = _number(sample["value"])
            if value is not None:
                values.setdefault(sample["path"], {})[sample["name"]] = value
    end()
    if not found:
        remedy = "write it with: (date +'# at %s'; curl -s http://127.0.0.1:9472/metrics) >> FILE"
        raise JournalError(f"{path}: no line is a metric of a path", remedy)
    return found


def span(logs: Sequence[PathLog], journal: tuple[float, float] | None) -> tuple[float, float] | None:
    """The first and the last time of all logs, in s since 1970; None if there are none."""
    times = [sample.at_s for log in logs for sample in log.samples]
    times += [*journal] if journal else []
    return (min(times), max(times)) if times else None


def _is_of(wanted: str | None, peer: str | None) -> bool:
    """Whether a line is of the wanted peer. Who has a single one does not name it in logs."""
    return wanted is None or peer is None or peer == wanted


def _lines(path: Path) -> list[str]:
    try:
        return read_file(path, JournalError).decode("utf-8", "replace").splitlines()
    except OSError as error:
        raise JournalError(f"{path} cannot be read: {error.strerror}", "check the name of the file") from error


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) and value >= 0 else None

"""When each line was in which state, and what its calls say: up times, drops, throughput."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from farlink.channels.calls.fits import Fit, fit
from farlink.channels.calls.samples import Sample, sample
from farlink.operator.journal import Transition
from farlink.operator.journal.rows import OBSERVATIONS
from farlink.web.data.journal_file import Found, JournalFile

WINDOW_S = 30 * 86_400.0
"""How far back calls are looked at, in s."""

MOST_CHANGES = 20_000
"""Changes of state that are looked at, the newest ones."""

_CHANGES = f"state NOT IN ({', '.join(repr(one) for one in OBSERVATIONS)})"


@dataclass(frozen=True, slots=True)
class Span:
    """A line is in a state for a time.

    Attributes
    ----------
    line, state, cause
        Of the transition that began it.
    start_s, end_s
        In s since 1970-01-01 UTC.
    is_open
        Whether it has not ended, as far as the journal knows.
    ended
        The state behind it; empty if it is open.
    is_end_injected
        Whether the operator dropped it itself, as a test.
    bytes_in, bytes_out
        What a call has carried; None if nobody counted.
    length_s
        By the clock that is never set, if the machine was not started anew in between.
    """

    line: str
    state: str
    start_s: float
    end_s: float
    length_s: float
    cause: str = ""
    is_open: bool = False
    ended: str = ""
    end_cause: str = ""
    is_end_injected: bool = False
    bytes_in: int | None = None
    bytes_out: int | None = None

    @property
    def throughput_bps(self) -> float | None:
        """Mean bit rate, both ways together; None if nobody counted."""
        if self.bytes_in is None or self.bytes_out is None or self.length_s <= 0:
            return None
        return 8 * (self.bytes_in + self.bytes_out) / self.length_s


@dataclass(frozen=True)
class Calls:
    """The spans of a journal.

    Attributes
    ----------
    spans
        Line -> its spans in order.
    warning
        What is missing: of a damaged journal, or because there is more than is looked at.
    """

    spans: dict[str, list[Span]] = field(default_factory=dict)
    warning: str = ""

    def of(self, line: str) -> list[Span]:
        """Spans of a line."""
        return self.spans.get(line, [])


class CallReader:
    """The last `WINDOW_S` of a journal: all of it is read once, and then what is new.

    Parameters
    ----------
    journal
        The journal.
    """

    def __init__(self, journal: JournalFile) -> None:
        self.journal = journal
        self._file: object = None
        self._last = 0
        self._changes: deque[Transition] = deque(maxlen=MOST_CHANGES)
        self._left, self._left_until_s = 0, 0.0
        self._spans: dict[str, list[Span]] = {}

    def calls(self, now_s: float, *, is_operated: bool = True) -> Calls:
        """The calls until now.

        Parameters
        ----------
        now_s
            The time, in s since 1970-01-01 UTC.
        is_operated
            Whether the operator runs. Otherwise calls that are open are known to have been up until its last word only.

        Raises
        ------
        JournalError, OutputError
            If there is no journal, or it cannot be read.
        """
        file = self.journal.identity()
        if file != self._file:
            # Another file: a damaged journal was set aside.
            self._file, self._last, self._left = file, 0, 0
            self._changes.clear()
            self._spans = {}
        since_s = now_s - WINDOW_S
        found = self._found(since_s)
        if found.warning:
            # The whole rows of a damaged file may be others next time.
            self._last, self._left = 0, 0
            self._changes.clear()
            self._spans = {}
        kept = _in_window(self._changes, since_s)
        is_changed = bool(found.transitions) or len(kept) != len(self._changes) or not self._spans
        self._changes = deque(kept, maxlen=MOST_CHANGES)
        if since_s > self._left_until_s:  # what is left out would be too old by now
            self._left = 0
        left = found.count - len(found.transitions) + max(0, len(self._changes) + len(found.transitions) - MOST_CHANGES)
        self._changes.extend(found.transitions)
        if left:
            self._left += left
            self._left_until_s = next((one.time_s for one in self._changes if one.time_s >= since_s), since_s)
        if self._changes and not found.warning:
            self._last = self._changes[-1].number
        warnings = [found.warning] if found.warning else []
        if self._left:
            warnings.append(f"{self._left:,} older changes of state are left out")
        until_s = now_s if is_operated else self._last_word_s(now_s)
        if is_changed:
            self._spans = spans_of(self._changes, until_s)
        else:
            self._spans = {line: _longer(spans, until_s) for line, spans in self._spans.items()}
        return Calls(self._spans, "; ".join(warnings))

    def _found(self, since_s: float) -> Found:
        """Changes that are new; at first also those by which lines have been in their states since before the time."""
        if self._last:
            return self.journal.transitions(
                f"number > ? AND time_s >= ? AND {_CHANGES}", (self._last, since_s), most=MOST_CHANGES
            )
        # SQLite takes the state from the row that has the highest number.
        last = f"SELECT max(number) AS number, state FROM transition WHERE time_s < ? AND {_CHANGES} GROUP BY modem"
        before = f"SELECT number FROM ({last}) WHERE state != 'ended'"
        where = f"{_CHANGES} AND (time_s >= ? OR number IN ({before}))"
        return self.journal.transitions(where, (since_s, since_s), most=MOST_CHANGES)

    def _last_word_s(self, now_s: float) -> float:
        last = self.journal.transitions("number >= (SELECT max(number) FROM transition)", most=1).transitions
        return last[0].time_s if last else now_s


def _in_window(changes: Iterable[Transition], since_s: float) -> list[Transition]:
    """Changes from a time on, and those by which lines have been in their states since before it."""
    changes = list(changes)
    last = {one.modem: one for one in changes if one.time_s < since_s}
    still = {one.number for one in last.values() if one.state != "ended"}
    return [one for one in changes if one.time_s >= since_s or one.number in still]


def spans_of(transitions: Iterable[Transition], now_s: float) -> dict[str, list[Span]]:
    """Line -> spans of its states.

    Parameters
    ----------
    transitions
        Changes of state, in the order of their numbers.
    now_s
        Until when an open span goes, in s since 1970-01-01 UTC.
    """
    rows: dict[str, list[Transition]] = {}
    for one in transitions:
        rows.setdefault(one.modem, []).append(one)
    return {line: _spans(of_line, now_s) for line, of_line in rows.items()}


def _spans(rows: Sequence[Transition], now_s: float) -> list[Span]:
    spans: list[Span] = []
    begun: Transition | None = None
    for row in rows:
        # A call that somebody ends leaves the line in the state that is told next, mostly at once.
        if begun is not None and (begun.state != "ended" or row.time_s > begun.time_s):
            spans.append(_between(begun, row))
        begun = row
    if begun is not None:
        end_s = max(begun.time_s, now_s)
        spans.append(Span(begun.modem, begun.state, begun.time_s, end_s, end_s - begun.time_s, begun.cause, is_open=True))
    return spans


def _longer(spans: list[Span], until_s: float) -> list[Span]:
    """Spans whose last one, if it is open, goes on until a time."""
    if not spans or not spans[-1].is_open:
        return spans
    last = spans[-1]
    end_s = max(last.start_s, until_s)
    return [*spans[:-1], replace(last, end_s=end_s, length_s=end_s - last.start_s)]


def _between(begun: Transition, end: Transition) -> Span:
    steady_s = end.monotonic_s - begun.monotonic_s
    is_steady = bool(begun.boot_id) and begun.boot_id == end.boot_id and steady_s >= 0
    length_s = steady_s if is_steady else max(0.0, end.time_s - begun.time_s)
    return Span(
        begun.modem,
        begun.state,
        begun.time_s,
        max(begun.time_s, end.time_s),
        length_s,
        begun.cause,
        ended=end.state,
        end_cause=end.cause,
        is_end_injected=end.is_injected,
        bytes_in=end.bytes_in,
        bytes_out=end.bytes_out,
    )


def up_times(spans: Iterable[Span]) -> Sample:
    """How long calls were up; those that ended by hand, by a test, with the operator, or not yet, were up at least so long."""
    calls = [span for span in spans if span.state == "connected"]
    return sample("up", [span.length_s for span in calls], [_is_drop(span) for span in calls])


def drops(spans: Iterable[Span]) -> int:
    """Drops of the network."""
    return sum(_is_drop(span) for span in spans if span.state == "connected")


def _is_drop(span: Span) -> bool:
    return span.ended == "dropped" and not span.is_end_injected


def mean_up(spans: Iterable[Span]) -> Fit:
    """The mean up time of a line's calls, with its 95 % interval, by an exponential fit."""
    return fit(up_times(spans))


def throughput_bps(spans: Iterable[Span]) -> float | None:
    """Mean bit rate of all calls whose bytes were counted, both ways together; None if there are none."""
    counted = [span for span in spans if span.state == "connected" and span.throughput_bps is not None]
    length_s = math.fsum(span.length_s for span in counted)
    carried = sum((span.bytes_in or 0) + (span.bytes_out or 0) for span in counted)
    return 8 * carried / length_s if length_s > 0 else None


def within(spans: Iterable[Span], since_s: float, until_s: float) -> list[Span]:
    """Spans that touch a time, cut to it, in s since 1970-01-01 UTC."""
    touching = [span for span in spans if span.end_s >= since_s and span.start_s <= until_s]
    return [replace(span, start_s=max(span.start_s, since_s), end_s=min(span.end_s, until_s)) for span in touching]

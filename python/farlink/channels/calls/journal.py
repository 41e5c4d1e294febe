"""The journal of a bundle: one event a line, as JSON Lines, and the type of an event.

A line is a JSON object with at least ``time``, ``link`` and ``event``::

    {"time": "2026-07-04T12:00:03Z", "link": "modem-1", "event": "connected", "snr_db": 6.5, "bars": 5}

Further keys are ignored, so that writers of a journal may add their own. `KINDS` lists the events.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from farlink.channels.calls.clock import Clock
from farlink.errors import JournalError
from farlink.output import whole_file

KINDS = {
    "connecting": "a dial begins",
    "connected": "the link is up",
    "dropped": "a link that was up is lost",
    "ended": "a link that was up is closed on purpose: no drop",
    "failed": "a dial came to nothing",
    "blocked": "the link is not dialled for a while",
    "handover": "a link that is up goes over to another cell or satellite",
    "alive": "nothing has happened: the log goes on",
    "snr": "the modem answers with its signal-to-noise ratio",
}

HEADING = '{"farlink_journal": 1}'
"""The first line of a journal."""

_BARS = range(6)


@dataclass(frozen=True)
class Event:
    """Something that happened to one link.

    Attributes
    ----------
    time_s
        When, in s since 1970-01-01 UTC.
    link
        Which link: the name of a modem.
    kind
        One of `KINDS`.
    cause
        Why, in the words of the log; empty if it does not say.
    snr_db
        Signal-to-noise ratio, in dB; NaN if unknown.
    bars
        Signal strength from 0 to 5, as modems show it (``AT+CSQ``); None if unknown.
    monotonic_s
        Reading of a clock that is never set, in s; NaN if the log has none.
    is_exact
        False of an end whose time is unknown: it came at `time_s` or later, and before the next event; and of a link that was
        up before, where the log begins.
    source
        Its place: file and line.
    """

    time_s: float
    link: str
    kind: str
    cause: str = ""
    snr_db: float = math.nan
    bars: int | None = None
    monotonic_s: float = math.nan
    is_exact: bool = True
    source: str = ""


def parse_line(text: str, where: str, clock: Clock | None = None) -> Event | None:
    """One line of a journal; None for a line that holds no event.

    Parameters
    ----------
    text
        The line.
    where
        File and line, for messages.
    clock
        Reads the time; by default one that takes no time without a zone.

    Raises
    ------
    JournalError
        If it is not a JSON object, or one of its values is missing or invalid.

    Examples
    --------
    >>> event = parse_line('{"time": "2026-07-04T12:00:03Z", "link": "m1", "event": "dropped"}', "a.jsonl, line 1")
    >>> event.kind, event.link, event.time_s
    ('dropped', 'm1', 1783166403.0)
    """
    if not text.strip():
        return None
    try:
        row = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise JournalError(f"{where}: not JSON: {shortened(text)}", "each line is one JSON object") from error
    if not isinstance(row, dict):
        raise JournalError(f"{where}: not a JSON object: {shortened(text)}", 'a line reads {"time": ..., "link": ..., ...}')
    if "farlink_journal" in row and "event" not in row:
        return None  # the heading
    return event_of(row, where, clock)


def event_of(row: dict[str, Any], where: str, clock: Clock | None = None) -> Event:
    """An event from named values, which are checked.

    Parameters
    ----------
    row
        ``time``, ``link``, ``event``, and any of ``cause``, ``snr_db``, ``bars``, ``monotonic_s``; numbers may be text.
    where
        File and line, for messages.
    clock
        Reads the time; by default one that takes no time without a zone.

    Raises
    ------
    JournalError
        If a value is missing or cannot be.
    """
    for key in ("time", "link", "event"):
        if row.get(key) in (None, ""):
            raise JournalError(f"{where}: {key} is missing", "a line has at least time, link and event")
    kind = str(row["event"]).strip().lower()
    if kind not in KINDS:
        raise JournalError(f"{where}: there is no event {shortened(kind)!r}", f"events: {', '.join(KINDS)}")
    snr_db = _number(row, "snr_db", where)
    if kind == "snr" and math.isnan(snr_db):
        raise JournalError(f"{where}: event snr without snr_db", "give the ratio in dB, or leave the line out")
    bars = _number(row, "bars", where)
    if not math.isnan(bars) and bars not in _BARS:
        raise JournalError(f"{where}: bars: {bars:g} is not one of 0 to 5", "bars are those of AT+CSQ")
    return Event(
        time_s=(clock or Clock()).seconds(row["time"], where),
        link=str(row["link"]).strip(),
        kind=kind,
        cause=str(row.get("cause") or ""),
        snr_db=snr_db,
        bars=None if math.isnan(bars) else int(bars),
        monotonic_s=_number(row, "monotonic_s", where),
        source=where,
    )


def write(events: Iterable[Event], path: str | Path) -> Path:
    """Write events as a journal; the file appears whole or not at all.

    Parameters
    ----------
    events
        In the order of their times.
    path
        The file, usually ``.jsonl``.

    Returns
    -------
    Path
        The file.

    Raises
    ------
    OutputError
        If it cannot be written.
    """
    lines = [HEADING, *(line_of(event) for event in events)]
    with whole_file(path) as temporary:
        temporary.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return Path(path)


def line_of(event: Event) -> str:
    """One event as a line of a journal, without its line end.

    Examples
    --------
    >>> line_of(Event(1783166403.0, "m1", "dropped", cause="NO CARRIER"))
    '{"time": "2026-07-04T12:00:03Z", "link": "m1", "event": "dropped", "cause": "NO CARRIER"}'
    """
    return json.dumps(row_of(event), ensure_ascii=False)


def row_of(event: Event) -> dict[str, Any]:
    """The values of an event by their keys, without those that are unknown."""
    row: dict[str, Any] = {"time": time_text(event.time_s), "link": event.link, "event": event.kind}
    if event.cause:
        row["cause"] = event.cause
    if event.bars is not None:
        row["bars"] = event.bars
    row.update({key: getattr(event, key) for key in ("snr_db", "monotonic_s") if not math.isnan(getattr(event, key))})
    return row


def time_text(seconds: float) -> str:
    """A time in s since 1970 as ISO 8601 in UTC, to the millisecond if it has a fraction.

    Examples
    --------
    >>> time_text(1783166403.25)
    '2026-07-04T12:00:03.250Z'
    """
    moment = datetime.fromtimestamp(round(seconds, 3), UTC)
    return moment.isoformat(timespec="milliseconds" if moment.microsecond else "seconds").removesuffix("+00:00") + "Z"


def shortened(text: str, limit: int = 60) -> str:
    """Text on one line and not too long for a message."""
    line = " ".join(text.split())
    return line if len(line) <= limit else line[: limit - 3] + "..."


def _number(row: dict[str, Any], key: str, where: str) -> float:
    value = row.get(key)
    if value is None or (isinstance(value, str) and not value.strip()):
        return math.nan
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = math.nan
    if isinstance(value, bool) or not math.isfinite(number):
        raise JournalError(f"{where}: {key}: {shortened(str(value))!r} is no number", "give a number, or leave it out")
    return number

"""The communication log that a Seaglider's base station writes (``comm.log``): calls over Iridium, seen from the shore.

A call begins with ``Connected at`` or ``Reconnected at``, the latter while the base station still holds the call before it.
A call in which the glider said ``logout`` has ended; every other one was dropped. Its time is that of ``Disconnected at``,
or, where a new call came before that line, the last time that the log has of it: not exact if there is none. The shore hears
of a drop late: transfers wait for 10 s or more before they give up.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone

from farlink.channels.calls.clock import Clock
from farlink.channels.calls.journal import Event, shortened
from farlink.errors import JournalError

NAME = "seaglider"
DESCRIPTION = "comm.log of a Seaglider's base station"

# The base station writes the abbreviation of its time zone. Hours east of Greenwich.
_ZONE_H = {
    "UTC": 0, "GMT": 0, "PST": -8, "PDT": -7, "MST": -7, "MDT": -6, "CST": -6, "CDT": -5, "EST": -5, "EDT": -4,
    "AKST": -9, "AKDT": -8, "HST": -10, "CET": 1, "CEST": 2, "BST": 1, "WET": 0, "WEST": 1, "EET": 2, "EEST": 3,
    "JST": 9, "AEST": 10, "AEDT": 11,
}  # fmt: skip

_HEADING = re.compile(r"(Connected|Reconnected|Disconnected) at (.+)$")
_ISO = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ)")
_LONG = re.compile(r"\w{3} (\w{3} +\d+ \d\d:\d\d:\d\d) (\w+) (\d{4})")
_STAMP = re.compile(r"(?:(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ)|\w{3} (\w{3} +\d+ \d\d:\d\d:\d\d) (\d{4})) \[(\w+)\] (.*)$")
_TRANSFER = re.compile(r"(Receiving|Sending|Received|Sent) (\d+) bytes")
_NAME = re.compile(r"[\[(](sg\d+)[\])]")
_BARS = re.compile(r"Iridium bars: (\d)\b")
_COUNTERS = re.compile(r"\d+:\d+:")


@dataclass
class _Block:
    """One call while its lines are read."""

    start_s: float
    number: int
    zone: timezone
    last_s: float = float("nan")
    bars: int | None = None
    is_logged_in: bool = False
    is_logged_out: bool = False
    pending_bytes: str = ""


def recognises(name: str, head: list[str]) -> bool:
    """A file that begins with a call."""
    del name
    return any(_HEADING.match(line) for line in head[:3])


def events(lines: list[str], name: str, clock: Clock | None = None) -> Iterator[Event]:
    """Its events: each call connected, and then dropped or ended."""
    del clock  # every line of these logs has its zone
    link = next((found[1] for line in lines if (found := _NAME.search(line))), name.split("_")[0].split(".")[0])
    block: _Block | None = None
    for number, line in enumerate(lines, start=1):
        heading = _HEADING.match(line)
        if heading is None:
            if block is not None:
                _read(block, line, f"{name}, line {number}")
            continue
        time_s, zone = _heading_time(heading[2], f"{name}, line {number}")
        if heading[1] == "Disconnected":
            if heading[2].rstrip().endswith("(automatic)"):
                continue  # of the call before the present one, which the base station still held
            if block is None:
                remedy = "a line Connected at is missing before it: cut the log there"
                raise JournalError(f"{name}, line {number}: disconnected without being connected", remedy)
            yield from _call(block, link, name, time_s, number)
            block = None
        else:
            if block is not None:
                yield from _call(block, link, name, None, number)
            block = _Block(time_s, number, zone)
    if block is not None:
        yield from _call(block, link, name, None, len(lines), is_last=True)


def _read(block: _Block, line: str, where: str) -> None:
    stamp = _STAMP.match(line)
    if stamp is not None:
        iso, day, year, _, words = stamp.groups()
        block.last_s = _seconds(iso, where) if iso else _long_seconds(day, year, block.zone, where)
        transfer = _TRANSFER.match(words)
        if transfer is not None and transfer[1] in ("Receiving", "Sending"):
            block.pending_bytes = transfer[2]
        elif transfer is not None and transfer[2] == block.pending_bytes:
            block.pending_bytes = ""  # all of it: a smaller number is the rest when the call broke off
    elif line.startswith("logged in"):
        block.is_logged_in = True
    elif line.rstrip().endswith(" logout") and _COUNTERS.match(line):
        block.is_logged_out = True
    elif found := _BARS.match(line):
        block.bars = min(int(found[1]), 5)


def _call(block: _Block, link: str, name: str, end_s: float | None, number: int, *, is_last: bool = False) -> Iterator[Event]:
    yield Event(block.start_s, link, "connected", bars=block.bars, source=f"{name}, line {block.number}")
    is_exact = end_s is not None
    if end_s is None:
        is_exact = block.last_s > block.start_s
        end_s = block.last_s if is_exact else block.start_s
    is_ended = block.is_logged_out
    if is_last and not is_ended and not is_exact:
        return  # the log stops while the link is up
    cause = "" if is_ended else _where(block)
    yield Event(end_s, link, "ended" if is_ended else "dropped", cause, is_exact=is_exact, source=f"{name}, line {number}")


def _where(block: _Block) -> str:
    """The activity when the call was lost, which is all that the log has about the cause."""
    if not block.is_logged_in:
        return "before login"
    return "during a transfer" if block.pending_bytes else "outside a transfer"


def _heading_time(text: str, where: str) -> tuple[float, timezone]:
    iso = _ISO.match(text)
    if iso is not None:
        return _seconds(iso[1], where), UTC
    long = _LONG.match(text)
    if long is None:
        raise JournalError(f"{where}: {shortened(text)!r} is no time", "times read Sun May 20 09:05:30 PDT 2018, or ISO 8601")
    if long[2] not in _ZONE_H:
        raise JournalError(f"{where}: time zone {long[2]} is not known", f"known are {', '.join(_ZONE_H)}")
    zone = timezone(timedelta(hours=_ZONE_H[long[2]]))
    return _long_seconds(long[1], long[3], zone, where), zone


def _seconds(iso: str, where: str) -> float:
    try:
        return datetime.fromisoformat(iso).timestamp()
    except ValueError as error:
        raise JournalError(f"{where}: {iso!r} is no time", "check the log") from error


def _long_seconds(day: str, year: str, zone: timezone, where: str) -> float:
    try:
        return datetime.strptime(f"{day} {year}", "%b %d %H:%M:%S %Y").replace(tzinfo=zone).timestamp()
    except ValueError as error:
        raise JournalError(f"{where}: {day} {year} is no time", "check the log; months are in English") from error

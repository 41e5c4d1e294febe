"""Calls of each link, from the events of a log: up times, how they ended, and events before the next call.

A call that was closed on purpose, or that the log leaves open, says that the link was up for *at least* so long: it is a
censored observation and no drop.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from farlink.arguments import checked_arguments
from farlink.channels.calls.journal import Event, time_text
from farlink.errors import JournalError

# By how much two clocks may part, and the longest silence of a log: more is a clock that jumps.
_JUMP_S = 5.0
_SILENCE_S = 366 * 86_400.0
# A link that is up at the end of a log and at the start of the next, at most this much later, was up in between.
_SEAM_S = 5.0

Outcome = Literal["dropped", "ended", "open"]


@dataclass(frozen=True)
class Call:
    """One call.

    Attributes
    ----------
    start_s, end_s
        When it was connected and when that ended, in s since 1970; the end is NaN if its time is unknown.
    outcome
        ``"dropped"``, ``"ended"`` on purpose, or ``"open"``: still up at the end of the log.
    cause
        Why it dropped, in the words of the log.
    bars
        Signal strength at its beginning, 0 to 5; None if unknown.
    source
        Its first line: file and line.
    is_begun_before
        Whether it was already up at the start of the log.
    """

    start_s: float
    end_s: float
    outcome: Outcome
    cause: str = ""
    bars: int | None = None
    source: str = ""
    is_begun_before: bool = False

    @property
    def up_s(self) -> float:
        """How long the link was up, in s; NaN if unknown."""
        return self.end_s - self.start_s

    @property
    def drop_s(self) -> float:
        """Time of the drop: the end of the call or, if unknown, its start."""
        return self.start_s if math.isnan(self.end_s) else self.end_s


@dataclass
class Link:
    """The log of one link.

    Attributes
    ----------
    name
        Its name.
    calls
        In the order of time.
    snr
        Readings: time in s since 1970 and ratio in dB.
    handovers_s
        When it went over to another cell or satellite, as far as the log says so, in s since 1970.
    dials, failed, blocked
        How many such events there are.
    first_s, last_s
        Its first and last time in the log, in s since 1970.
    """

    name: str
    calls: list[Call] = field(default_factory=list)
    snr: list[tuple[float, float]] = field(default_factory=list)
    handovers_s: list[float] = field(default_factory=list)
    dials: int = 0
    failed: int = 0
    blocked: int = 0
    first_s: float = math.nan
    last_s: float = math.nan

    @property
    def drops(self) -> list[Call]:
        """The calls that dropped."""
        return [call for call in self.calls if call.outcome == "dropped"]

    @cached_property
    def readings(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Times and ratios of `snr`, as arrays."""
        every = np.array(self.snr, dtype=np.float64).reshape(-1, 2)
        return every[:, 0], every[:, 1]

    @property
    def connected_s(self) -> float:
        """Known total up time, in s."""
        return math.fsum(call.up_s for call in self.calls if not math.isnan(call.up_s))


@checked_arguments
def links_of(events: Iterable[Event]) -> list[Link]:
    """Sort the events of a log into calls, link by link.

    Parameters
    ----------
    events
        In the order of the log.

    Returns
    -------
    list of Link
        In the order of their first event.

    Raises
    ------
    JournalError
        If a link drops that was not connected, is connected twice, or if the clock jumps; names the line.

    Examples
    --------
    >>> (link,) = links_of([Event(1e9, "m1", "connected"), Event(1e9 + 60, "m1", "dropped")])
    >>> link.calls[0].up_s, link.calls[0].outcome
    (60.0, 'dropped')
    """
    readers: dict[str, _Reader] = {}
    last: Event | None = None
    for event in events:
        if last is not None:
            _check_clock(last, event)
        last = event
        if event.link not in readers:
            readers[event.link] = _Reader(Link(event.link, first_s=event.time_s))
        readers[event.link].take(event)
    if last is not None:
        for reader in readers.values():
            reader.stop(last.time_s)
    return [reader.link for reader in readers.values()]


def merged(parts: Iterable[list[Link]]) -> list[Link]:
    """Links of several logs. A link that is in two logs is one link if the logs follow each other.

    Parameters
    ----------
    parts
        The links of each log.

    Raises
    ------
    JournalError
        If two logs of one link overlap in time.
    """
    found: dict[str, list[Link]] = {}
    for part in parts:
        for link in part:
            found.setdefault(link.name, []).append(link)
    return [_joined(same) for same in found.values()]


def _joined(parts: list[Link]) -> Link:
    parts = sorted(parts, key=lambda link: link.first_s)
    whole = parts[0]
    for part in parts[1:]:
        if part.first_s < whole.last_s:
            message = f"two logs have the link {part.name} at {time_text(part.first_s)}"
            raise JournalError(message, "give each log once, and different links different names")
        calls, following = whole.calls, part.calls
        if calls and following and _is_one(calls[-1], following[0]):
            last, first = calls[-1], following[0]
            calls = [*calls[:-1], replace(last, end_s=first.end_s, outcome=first.outcome, cause=first.cause)]
            following = following[1:]
        whole = Link(
            whole.name,
            calls + following,
            whole.snr + part.snr,
            whole.handovers_s + part.handovers_s,
            whole.dials + part.dials,
            whole.failed + part.failed,
            whole.blocked + part.blocked,
            whole.first_s,
            part.last_s,
        )
    return whole


def _is_one(last: Call, first: Call) -> bool:
    """Whether a call continues in the next log."""
    return last.outcome == "open" and first.is_begun_before and first.start_s - last.end_s <= _SEAM_S


class _Reader:
    """The state of one link while its events are read."""

    def __init__(self, link: Link) -> None:
        self.link = link
        self.up: Event | None = None

    def take(self, event: Event) -> None:
        link, kind = self.link, event.kind
        link.last_s = event.time_s
        if kind == "snr":
            link.snr.append((event.time_s, event.snr_db))
            return
        if kind == "alive":
            return
        if kind == "handover":
            if self.up is None:
                remedy = "a line that it is connected is missing before it: add it, or leave this line out"
                raise JournalError(f"{event.source}: {event.link} has a handover and was not connected", remedy)
            link.handovers_s.append(event.time_s)
            return
        is_end = kind in ("dropped", "ended")
        if is_end and self.up is None:
            remedy = "a line that it is connected is missing before it: add it, or leave this line out"
            raise JournalError(f"{event.source}: {event.link} is {kind} and was not connected", remedy)
        if self.up is not None and not is_end:
            message = f"{event.source}: {event.link} is {kind} and was connected before ({self.up.source})"
            raise JournalError(message, "a line that it dropped or ended is missing in between")
        if kind == "connected":
            self.up = event
        elif kind == "connecting":
            link.dials += 1
        elif kind == "failed":
            link.failed += 1
        elif kind == "blocked":
            link.blocked += 1
        else:
            self._close(event.time_s if event.is_exact else math.nan, "dropped" if kind == "dropped" else "ended", event)

    def stop(self, time_s: float) -> None:
        """Close open calls at the end of the log."""
        if self.up is not None:
            self.link.last_s = time_s
            self._close(time_s, "open", self.up)

    def _close(self, end_s: float, outcome: Outcome, event: Event) -> None:
        assert self.up is not None
        cause = event.cause if outcome == "dropped" else ""
        up = self.up
        self.link.calls.append(Call(up.time_s, end_s, outcome, cause, up.bars, up.source, not up.is_exact))
        self.up = None


def _check_clock(before: Event, event: Event) -> None:
    step_s = event.time_s - before.time_s
    if step_s < 0:
        message = f"{event.source}: the clock jumps back by {-step_s:g} s, to {time_text(event.time_s)}"
        raise JournalError(message, "put the lines in order, or correct the times after the jump")
    if step_s > _SILENCE_S:
        message = f"{event.source}: the clock jumps ahead by {step_s / 86_400:.0f} days, to {time_text(event.time_s)}"
        raise JournalError(message, "correct the times before or after the jump, or split the log there")
    steady_s = event.monotonic_s - before.monotonic_s
    # A steady clock that goes back was restarted with the machine.
    if steady_s >= 0 and abs(step_s - steady_s) > _JUMP_S:
        message = f"{event.source}: the clock jumps by {step_s - steady_s:+g} s against monotonic_s"
        raise JournalError(message, "correct the times after the jump by so much")

"""Calls drawn from a description of what drops them: the log of each line, and when it was down or interrupted."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from farlink.arguments import check_range, checked_arguments
from farlink.channels.calls.generator.causes import LONGEST_S, READING_S, Cells, DropCauses, Handovers, Series
from farlink.channels.calls.generator.low_signal import LowSpells, series_db
from farlink.channels.calls.journal import Event
from farlink.channels.calls.replay import DownTimes

_MOST_LINES = 64
# Events that a log may have; beyond, it would fill the memory.
_MOST_EVENTS = 5_000_000
# 2026-01-01T00:00:00Z, where drawn logs begin unless told otherwise.
ORIGIN_S = 1_767_225_600.0

HANDOVER, CELL, LOW_SIGNAL, SET_UP, OTHER = "handover", "cell", "low signal", "set-up", "other"


@dataclass(frozen=True)
class DrawnCalls:
    """History of the lines.

    Attributes
    ----------
    events
        A log in the order of time, as `farlink bundle fit` reads it. The causes of drops are named.
    down
        When each line was down or interrupted, for `replay.schedule_text`.
    """

    events: list[Event]
    down: list[DownTimes]


@checked_arguments
def draw(
    causes: DropCauses,
    *,
    lines: int = 1,
    duration_s: float = 86_400.0,
    seed: int = 1,
    begin_s: float = ORIGIN_S,
    closed_after_s: Sequence[float] = (),
    with_snr: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> DrawnCalls:
    """Draw the calls of lines that are dialled again whenever they dropped.

    Parameters
    ----------
    causes
        What drops the calls.
    lines
        How many lines, 1 to 64.
    duration_s
        Length of the log, in s, at most 1e7.
    seed
        Of the random numbers. A line's own ones do not depend on how many lines there are.
    begin_s
        Its beginning, in s since 1970.
    closed_after_s
        Ages in s at which calls are closed on purpose, one of them drawn for each call; by default none is closed.
    with_snr
        Whether the log has the ratio of `causes.low_signal` every 4 s while a line is up.
    progress
        Called with the number of lines that are done, and of all.

    Returns
    -------
    DrawnCalls
        Log and outages.

    Raises
    ------
    ArgumentError
        If an argument is out of range, or the log would have more than 5 million events.

    Notes
    -----
    All lines are dialled at the beginning. Cells are left at times of the line's own, from a place within a cell on; handovers
    go on while a line is down. A change that interrupts a line does not end its call: the log has a ``handover``, and the
    outages have the interruption.

    Examples
    --------
    >>> drawn = draw(DropCauses(other_mean_s=3000), lines=4, duration_s=7200, seed=3)
    >>> [event.kind for event in drawn.events[:5]], sum(event.kind == "dropped" for event in drawn.events)
    (['connecting', 'connecting', 'connecting', 'connecting', 'connected'], 13)
    """
    check_range(1 <= lines <= _MOST_LINES, "lines", f"be from 1 to {_MOST_LINES}", lines)
    check_range(1 <= duration_s <= LONGEST_S, "duration_s", "be from 1 to 1e7", duration_s)
    closing = np.asarray(closed_after_s, dtype=np.float64)
    check_range(not closing.size or bool(closing.min() > 0), "closed_after_s", "be above 0", closed_after_s)
    if with_snr and causes.low_signal is not None:
        answers = lines * duration_s / READING_S
        check_range(answers <= _MOST_EVENTS, "lines times duration_s over 4 s", "be at most 5e6 with the ratios", answers)
    common = np.random.default_rng([seed, 0])
    satellites = np.empty(0)
    if causes.handovers is not None and causes.handovers.is_common:
        satellites = _renewals_s(causes.handovers, duration_s, common)
    drawn = []
    for number in range(lines):
        line = _Line(causes, f"line-{number + 1}", duration_s, satellites, closing, np.random.default_rng([seed, 1, number]))
        line.run(with_snr)
        is_short = len(line.events) * lines <= 2 * _MOST_EVENTS
        check_range(is_short, "duration_s", "be shorter: the log would have millions of events", duration_s)
        drawn.append(line)
        if progress is not None:
            progress(number + 1, lines)
    events = sorted((one for line in drawn for one in line.events), key=lambda one: one[0])
    down = [DownTimes(line.name, begin_s, duration_s, line.outages()) for line in drawn]
    return DrawnCalls([Event(begin_s + time_s, name, kind, cause, snr) for time_s, name, kind, cause, snr in events], down)


class _Line:
    """One line, from dial to dial."""

    def __init__(
        self,
        causes: DropCauses,
        name: str,
        duration_s: float,
        satellites: Series,
        closing: Series,
        generator: np.random.Generator,
    ) -> None:
        self.name, self.causes, self.duration_s, self.closing = name, causes, duration_s, closing
        self.events: list[tuple[float, str, str, str, float]] = []
        self.up: list[tuple[float, float]] = []
        self.breaks: list[tuple[float, float]] = []
        self.generator = generator
        self.ratios = np.empty(0)
        if causes.low_signal is not None:
            self.ratios = series_db(causes.low_signal, 2 + int(duration_s / READING_S), generator)
            self.spells = LowSpells(causes.low_signal, self.ratios)
        if causes.handovers is not None and not causes.handovers.is_common:
            satellites = _renewals_s(causes.handovers, duration_s, generator)
        cells = np.empty(0) if causes.cells is None else _renewals_s(causes.cells, duration_s, generator)
        self.changes_s = np.concatenate((satellites, cells))
        is_cell = np.arange(self.changes_s.size) >= satellites.size
        order = np.argsort(self.changes_s, kind="stable")
        self.changes_s, self.is_cell = self.changes_s[order], is_cell[order]

    def run(self, with_snr: bool) -> None:
        """Dial and drop until the log is full."""
        now_s = 0.0
        while True:
            self._tell(now_s, "connecting")
            now_s += float(self.generator.exponential(self.causes.redial.mean_s))
            if now_s >= self.duration_s:
                return
            if self.generator.random() < self.causes.redial.failure:
                self._tell(now_s, "failed", "no answer")
                continue
            begin_s, (now_s, kind, cause) = now_s, self._call(now_s)
            self.up.append((begin_s, min(now_s, self.duration_s)))
            if with_snr and self.ratios.size:
                first, last = math.ceil(begin_s / READING_S), math.floor(min(now_s, self.duration_s) / READING_S)
                for place in range(first, last + 1):
                    self.events.append((place * READING_S, self.name, "snr", "", float(self.ratios[place])))
            if now_s >= self.duration_s:
                return
            self._tell(now_s, kind, cause)

    def outages(self) -> list[tuple[float, float]]:
        """When the line was down or interrupted, in order, without overlap, to the millisecond."""
        down, last_s = [], 0.0
        for begin_s, end_s in [*self.up, (self.duration_s, self.duration_s)]:
            down.append((last_s, begin_s))
            last_s = end_s
        joined: list[tuple[float, float]] = []
        for begin_s, end_s in sorted([*down, *self.breaks]):
            begin_s, end_s = round(begin_s, 3), round(min(end_s, self.duration_s), 3)
            if end_s <= begin_s:
                continue
            if joined and begin_s <= joined[-1][1]:
                joined[-1] = (joined[-1][0], max(end_s, joined[-1][1]))
            else:
                joined.append((begin_s, end_s))
        return joined

    def _call(self, begin_s: float) -> tuple[float, str, str]:
        """When a call ends, how and why."""
        generator, causes = self.generator, self.causes
        self._tell(begin_s, "connected")
        ends = [(self.duration_s, "", "")]
        if math.isfinite(causes.other_mean_s):
            ends.append((begin_s + float(generator.exponential(causes.other_mean_s)), "dropped", OTHER))
        if causes.set_up is not None and causes.set_up.drops > 0:
            hazard = float(generator.standard_exponential())
            if hazard < causes.set_up.drops:
                age_s = -causes.set_up.mean_s * math.log1p(-hazard / causes.set_up.drops)
                ends.append((begin_s + age_s, "dropped", SET_UP))
        if causes.low_signal is not None and (place := self.spells.first(math.ceil(begin_s / READING_S))) is not None:
            ends.append((place * READING_S, "dropped", LOW_SIGNAL))
        if self.closing.size:
            ends.append((begin_s + float(generator.choice(self.closing)), "ended", ""))
        end = min(ends)
        for place in range(int(np.searchsorted(self.changes_s, begin_s, side="right")), self.changes_s.size):
            time_s = float(self.changes_s[place])
            if time_s >= end[0]:
                break
            self._tell(time_s, "handover")
            interruption_s = self._change(bool(self.is_cell[place]))
            if interruption_s is None:
                return time_s, "dropped", CELL if self.is_cell[place] else HANDOVER
            if interruption_s > 0:
                self.breaks.append((time_s, min(time_s + interruption_s, end[0])))
        return end

    def _change(self, is_cell: bool) -> float | None:
        """How long a change of cell or satellite interrupts the line, in s; None if it drops the call."""
        if not is_cell:
            assert self.causes.handovers is not None
            is_failed = self.generator.random() < self.causes.handovers.failure
            return None if is_failed else self.causes.handovers.interruption_s
        cells = self.causes.cells
        assert cells is not None
        if self.generator.random() < cells.failure:
            return None
        if cells.mobile_ip is None:
            return cells.interruption_s
        lost = int(self.generator.geometric(1 - cells.mobile_ip.loss)) - 1
        return None if lost >= cells.mobile_ip.attempts else cells.interruption_s + cells.mobile_ip.interruption_s(lost)

    def _tell(self, time_s: float, kind: str, cause: str = "") -> None:
        self.events.append((time_s, self.name, kind, cause, math.nan))


def _renewals_s(source: Handovers | Cells, duration_s: float, generator: np.random.Generator) -> Series:
    """Times of changes from a random place between two of them on, in s."""
    count = 16 + int(1.5 * duration_s / source.mean_s)
    # The interval in which the log begins is a long one, in proportion to its length.
    choice = source.intervals_s(generator.random(1000))
    first = float(generator.choice(choice, p=choice / choice.sum()) * generator.random())
    times = first + np.concatenate(([0.0], np.cumsum(source.intervals_s(generator.random(count)))))
    while times[-1] < duration_s:
        times = np.concatenate((times, times[-1] + np.cumsum(source.intervals_s(generator.random(count)))))
    return np.asarray(times[times < duration_s])

"""A bundle over days, with calls at random: the dialler that the operator has decides when its lines are dialled."""

from __future__ import annotations

import heapq
import random
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from farlink import _core
from farlink.errors import OperatorError
from farlink.operator.config.bundle import Bundle
from farlink.operator.config.kinds import traits_of
from farlink.operator.live.loop import dialler_config

_DAY_S = 86_400.0
_CLOCK_S = 3600.0
# From CONNECT until PPP is up: measured at 2400 bit/s and 700 ms one way, 4.4 to 5.2 s for the first line.
_SET_UP_S = (4.0, 6.0)


@dataclass(frozen=True)
class Calls:
    """How calls go.

    Attributes
    ----------
    mean_up_s
        Mean of exponential up times. Zaghloul (section 5.3): a drop in 50 minutes.
    fail
        Share of dials that fail.
    dial_s
        Mean of how long a dial takes, in s; dials take half of it to half as much again.
    """

    mean_up_s: float = 3000.0
    fail: float = 0.1
    dial_s: float = 30.0


@dataclass
class LineDays:
    """Statistics of a line over all days.

    Attributes
    ----------
    attempts, ups, drops, blocks
        Dials, dials that came up, drops, and how often it was blocked.
    up_s, airtime_s
        How long it was up, and how long its modem was connected.
    money
        What that cost.
    """

    name: str
    attempts: int = 0
    ups: int = 0
    drops: int = 0
    blocks: int = 0
    up_s: float = 0.0
    airtime_s: float = 0.0
    money: float = 0.0


@dataclass(frozen=True)
class Days:
    """Simulated days of a bundle.

    Attributes
    ----------
    lines
        Each line.
    all_up_s, any_up_s
        How long as many lines were up as are wanted, and how long at least one was.
    days
        How many.
    """

    lines: tuple[LineDays, ...]
    all_up_s: float
    any_up_s: float
    days: float


def simulate(bundle: Bundle, days: float, calls: Calls | None = None, seed: int = 1, folder: Path = Path()) -> Days:
    """Let a bundle run for some days.

    Parameters
    ----------
    bundle
        Whose lines dial. Lines that answer wait for calls that nobody makes.
    days
        For so long; the first day begins at midnight, 1 January 2026 UTC.
    calls
        How calls go.
    seed
        Of all that is random.
    folder
        That of ``bundle.toml``, for profiles that are files.

    Raises
    ------
    OperatorError
        If no line dials: all would wait for calls that nobody makes.

    Notes
    -----
    Signals are not simulated, and ports stay. A call drops at a constant rate, whatever the other lines do.

    Examples
    --------
    >>> from farlink.operator.config.bundle import Line
    >>> line = Line("kansas", "/dev/ttyUSB0", "iridium-9522b", number="00881600005123")
    >>> found = simulate(Bundle("camp", (line,), 1), 1.0, Calls(fail=0.0))
    >>> found.lines[0].ups == found.lines[0].attempts > 10
    True
    """
    if not any(line.role == "dial" for line in bundle.lines):
        raise OperatorError(f"no line of bundle {bundle.name} dials", "simulate the bundle of the end that dials")
    return _Field(bundle, calls or Calls(), seed, folder).run(days)


class _Field:
    def __init__(self, bundle: Bundle, calls: Calls, seed: int, folder: Path) -> None:
        self._dialler = _core.BundleDialler(dialler_config(bundle, traits_of(bundle, folder)), None, seed)
        self._calls = calls
        self._random = random.Random(seed)
        self._lines = {line.name: LineDays(line.name) for line in bundle.lines}
        self._prices = {line.name: (bundle.budget_of(line).money_per_min or 0.0) / 60 for line in bundle.lines}
        self._wanted = min(bundle.use, sum(line.role == "dial" for line in bundle.lines))
        self._now_s = 0.0
        # When, a number that tells apart what is at the same time, event, line, call.
        self._queue: list[tuple[float, int, str, str, int]] = []
        self._queued = 0
        self._up_since: dict[str, float] = {}
        self._carrier_since: dict[str, float] = {}
        self._all_up_s = self._any_up_s = 0.0

    def run(self, days: float) -> Days:
        end_s = days * _DAY_S
        self._tell_time()
        self._do(self._dialler.handle(0.0, "start"))
        self._later(_CLOCK_S, "clock", "", 0)
        while True:
            due_s = self._dialler.next_wakeup()
            next_s = min(self._queue[0][0], end_s if due_s is None else due_s)
            self._go_to(min(next_s, end_s))
            if next_s >= end_s:
                break
            if due_s is not None and due_s <= self._queue[0][0]:
                self._do(self._dialler.advance(self._now_s))
            else:
                _, _, event, line, call = heapq.heappop(self._queue)
                self._happen(event, line, call)
        for name in self._lines:
            self._end(name)
        return Days(tuple(self._lines.values()), self._all_up_s, self._any_up_s, days)

    def _later(self, after_s: float, event: str, line: str, call: int) -> None:
        self._queued += 1
        heapq.heappush(self._queue, (self._now_s + after_s, self._queued, event, line, call))

    def _go_to(self, now_s: float) -> None:
        passed_s = now_s - self._now_s
        self._all_up_s += passed_s if len(self._up_since) >= self._wanted else 0.0
        self._any_up_s += passed_s if self._up_since else 0.0
        self._now_s = now_s

    def _tell_time(self) -> None:
        start_s = 1_767_225_600.0  # 2026-01-01
        self._do(self._dialler.handle(self._now_s, "wall-clock", unix_s=start_s + self._now_s))

    def _happen(self, event: str, line: str, call: int) -> None:
        if event == "clock":
            self._tell_time()
            self._later(_CLOCK_S, "clock", "", 0)
            return
        if event == "carrier":
            self._carrier_since[line] = self._now_s
        self._do(self._dialler.handle(self._now_s, event, line, call=call))

    def _do(self, actions: list[dict[str, Any]]) -> None:
        for action in actions:
            match action["action"]:
                case "state":
                    self._note(action)
                case "dial":
                    self._dial(action["line"], action["call"])
                case "start-link":
                    self._later(self._random.uniform(*_SET_UP_S), "link-up", action["line"], action["call"])
                case "hang-up":
                    self._end(action["line"])

    def _dial(self, line: str, call: int) -> None:
        self._lines[line].attempts += 1
        event = "dial-failed" if self._random.random() < self._calls.fail else "carrier"
        self._later(self._calls.dial_s * self._random.uniform(0.5, 1.5), event, line, call)

    def _note(self, status: dict[str, Any]) -> None:
        line, state = status["line"], status["state"]
        row = self._lines[line]
        if state == "connected":
            row.ups += 1
            self._up_since[line] = self._now_s
            self._later(self._random.expovariate(1 / self._calls.mean_up_s), "dropped", line, status["call"])
        elif state != "connecting":
            row.drops += state == "dropped" and status["reason"] in ("drop", "flapping")
            row.blocks += state == "blocked"
            self._end(line)

    def _end(self, line: str) -> None:
        """The call of a line is over, if there is one."""
        row = self._lines[line]
        row.up_s += self._now_s - self._up_since.pop(line, self._now_s)
        airtime_s = self._now_s - self._carrier_since.pop(line, self._now_s)
        row.airtime_s += airtime_s
        row.money += airtime_s * self._prices[line]

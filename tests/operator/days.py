"""Days of two real operators in virtual time: corrupted answers, dead ports, a full disk, clocks that jump, zones that change.

``python -m tests.operator.days --days 30`` prints what happened, and fails if a line is stuck, memory grows, or a secret shows.
Dialler, lines, dialogues, recorder and journal are those of `farlink bundle up`. In the place of ttys and pppd are
`virtual_field`'s; carriers, ports and the journal are looked at every 10 s, not every second, so that days take seconds.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import os
import random
import sqlite3
import tempfile
import time
from collections import Counter, defaultdict
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any

from farlink.errors import OperatorError
from farlink.operator.bank.config import config_of
from farlink.operator.config import Budget, Bundle, BundleBudget, Limits, Line, Secrets
from farlink.operator.journal import AlertRow, Journal
from farlink.operator.journal.rows import OBSERVATIONS
from farlink.operator.lines import at_line
from farlink.operator.live import loop as live_loop
from tests.operator.virtual_field import Field, Port, Wires
from tests.operator.virtual_time import Clocks, loop_with

CANARIES = ("canary-9c1f", "48261937")
CORRUPTED = 0.01
MOST_GROWTH_BYTES = 5e6
LOOK_S = 10.0
CHECK_S = 600.0
DAY_S = 86_400.0
YEARS_S = 50 * 365 * DAY_S
LONGEST_SLEEP_S = 3 * 3600.0
# Above a day, which a budget may take, with the time of a trouble: who then has neither dialled nor been up is stuck.
STUCK_S = 40 * 3600.0
BUDGET = Budget(airtime_s_per_day=50_000.0, money_per_min=1.0)
TOGETHER = BundleBudget(airtime_s_per_day=120_000.0, money_per_month=60_000.0)
PAIRS = {1: "sim7600", 2: "iridium-9522b", 3: "hayes"}
ZONES = ("UTC", "Europe/Berlin", "America/Godthab", "Pacific/Kiritimati", "Asia/Kathmandu")


class World:
    """Three pairs of modems, with an operator at each end."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.clocks = Clocks()
        self.rng = random.Random(seed)
        modems = []
        for at, profile in PAIRS.items():
            sim = {"pin": CANARIES[1]} if profile == "sim7600" else {}
            modems += [
                {"name": f"near-{at}", "number": str(100 + at), "profile": profile, "mean_up_s": 3000.0, **sim},
                {"name": f"far-{at}", "number": str(200 + at), "profile": profile, "mean_up_s": 3000.0, **sim},
            ]
        bank = config_of({"modem": modems, "set_up_s": 15, "seed": seed}, where="days")
        self.field = Port.field = Field(bank, self.clocks, self.rng, CORRUPTED)
        limits = Limits(blocked_s=3600.0)
        self.bundles = {
            "near": Bundle(
                *("near", tuple(self._line("near", at, rank=at // 3, number=str(200 + at)) for at in PAIRS), 2),
                **{"journal": folder / "near.journal", "limits": limits, "budget": BUDGET, "bundle_budget": TOGETHER},
            ),
            "far": Bundle(
                *("far", tuple(self._line("far", at, role="answer", callers=self._callers(at)) for at in PAIRS), 3),
                **{"journal": folder / "far.journal", "limits": limits},
            ),
        }
        self.secrets = Secrets(CANARIES[0], {f"{end}-1": CANARIES[1] for end in self.bundles})
        self.journals: dict[str, Journal] = {}
        self.operators: dict[str, live_loop.Operator] = {}
        self.told = Counter[str]()
        self.alive_at: dict[str, float] = {}
        self.calls: dict[str, int] = {}
        self.gone: dict[str, int] = {}
        self.counts: dict[str, Counter[str]] = {}
        self.troubles = Counter[str]()
        self.refusals = 0
        self.memory_bytes: list[int] = []
        self.held: set[str] = set()
        # Day -> how long the machine slept in it, over all times that the clock showed it.
        self.slept_s = defaultdict[int, float](float)
        # Days that the clock showed before it was set last.
        self.days_shown: set[int] = set()
        self.clock_set_at = float("-inf")

    @staticmethod
    def _line(end: str, at: int, **more: Any) -> Line:
        return Line(f"{end}-{at}", f"/ports/{end}-{at}", PAIRS[at], **more)

    @staticmethod
    def _callers(at: int) -> tuple[str, ...]:
        return (f"{100 + at}",) if at == 2 else ()

    async def run(self, days: float) -> None:
        """Operate for so many days, then stop both ends."""
        for name, bundle in self.bundles.items():
            self.journals[name] = Journal(bundle.journal, secrets=self.secrets.texts())
            self.operators[name] = live_loop.Operator(
                bundle, self.secrets, self.journals[name], Wires(self.field), folder=Path(), tell=self._tell
            )
        running = [asyncio.create_task(one.run()) for one in self.operators.values()]
        end_s = self.clocks.monotonic_s + days * DAY_S
        troubles = asyncio.create_task(self._troubles())
        remembered_s = 0.0
        while self.clocks.monotonic_s < end_s:
            await asyncio.sleep(CHECK_S)
            assert not any(task.done() for task in (*running, troubles)), [task for task in running if task.done()]
            self._check()
            if self.clocks.monotonic_s - remembered_s >= DAY_S / 4:
                remembered_s = self.clocks.monotonic_s
                gc.collect()
                self.memory_bytes.append(_memory_bytes())
        troubles.cancel()
        for name in list(self.operators):
            self._make_room(name)
        await asyncio.sleep(5 * CHECK_S)
        for operator in self.operators.values():
            assert operator.status()["journal"]["failure"] == "", operator.status()["journal"]
            operator.stop()
        await asyncio.gather(*running)
        assert len(asyncio.all_tasks()) == 1, asyncio.all_tasks()
        for journal in self.journals.values():
            journal.close()

    def _tell(self, said: str) -> None:
        assert not any(canary in said for canary in CANARIES), "a secret is told"
        assert "internal error" not in said, said
        self.told[said.split(" (")[0].split(": ", 1)[-1]] += 1

    # Never stuck.

    def _check(self) -> None:
        now = self.clocks.monotonic_s
        for operator in self.operators.values():
            status = operator.status()
            text = json.dumps(status)
            assert not any(canary in text for canary in CANARIES), "a secret is in the status"
            self.refusals += bool(status["journal"]["failure"])
            for line in status["lines"]:
                self._check_line(line, now)
            if operator is self.operators["near"]:
                self._check_costs(status)

    def _check_line(self, line: dict[str, Any], now: float) -> None:
        name, state, reason = line["line"], line["state"], line["reason"]
        is_answering = line["role"] == "answer"
        self.counts.setdefault(name, Counter())[f"{state} {reason}"] += 1
        endless = {"up", "spare", "listening", "port-gone", "by-hand"}
        assert reason in endless or line["ends_in_s"] is not None, f"nothing ends it: {line}"
        assert line["ends"], line
        assert state != "held" or name in self.held, line
        # A port that is back is seen at the next look.
        self.gone[name] = self.gone.get(name, 0) + 1 if reason == "port-gone" and name not in self.field.missing else 0
        assert self.gone[name] < 2, line
        is_well = state in ("connected", "connecting", "held") or reason in ("spare", "port-gone")
        if is_well or is_answering or line["call"] != self.calls.get(name):
            self.calls[name] = line["call"]
            self.alive_at[name] = now
        for_s = now - self.alive_at.setdefault(name, now)
        assert for_s < STUCK_S, f"stuck for {for_s / 3600:.1f} h: {line}"

    def _check_costs(self, status: dict[str, Any]) -> None:
        # Who sleeps amid a call learns of its costs late, and does so again on a day that the clock shows twice.
        slept_s = self.slept_s[self._day()]
        if self._is_clock_new():
            return  # the dialler still counts for the day that the clock has shown before
        most_s = (TOGETHER.airtime_s_per_day or 0.0) + len(PAIRS) * slept_s + 1.0
        assert status["costs"]["airtime_s_today"] <= most_s, (status["costs"], slept_s)
        for line in status["lines"]:
            assert line["airtime_s_today"] <= (BUDGET.airtime_s_per_day or 0.0) + slept_s + 1.0, (line, slept_s)

    def _day(self) -> int:
        """The day that the clock shows in the zone that it is set to."""
        return datetime.fromtimestamp(self.clocks.wall_s).toordinal()

    def _is_clock_new(self) -> bool:
        """Whether the operators may not have looked at the clock since it was set."""
        return self.clocks.monotonic_s - self.clock_set_at < 2 * LOOK_S

    def _set_clock(self, by_s: float, zone: str = "") -> None:
        if not self._is_clock_new():
            self.days_shown.clear()
        self.days_shown.add(self._day())
        self.clock_set_at = self.clocks.monotonic_s
        self.clocks.set_wall(by_s)
        if zone:
            os.environ["TZ"] = zone
            time.tzset()

    # What goes wrong.

    async def _troubles(self) -> None:
        kinds = [getattr(self, f"_{name}") for name in TROUBLES]
        while True:
            await asyncio.sleep(self.rng.expovariate(1 / 1800))
            trouble = self.rng.choice(kinds)
            self.troubles[trouble.__name__[1:]] += 1
            trouble()

    def _some(self, end: str | None = None) -> str:
        return f"{end or self.rng.choice(('near', 'far'))}-{self.rng.choice(list(PAIRS))}"

    def _later(self, mean_s: float, act: Any, *arguments: Any) -> None:
        asyncio.get_running_loop().call_later(self.rng.expovariate(1 / mean_s), act, *arguments)

    def _dead_port(self) -> None:
        name = self._some()
        self.field.unplug(name)
        self._later(1800, self.field.plug, name)

    def _modem(self) -> None:
        name = self._some()
        self.field.do(name, self.rng.choice(("busy", "silent", "deaf", "drop")))
        self._later(1200, self.field.do, name, "normal")

    def _low_signal(self) -> None:
        name = self._some()
        self.field.do(name, "signal", self.rng.choice((0, 1, 2)))
        self._later(3600, self.field.do, name, "signal", 31)

    def _full_disk(self) -> None:
        name = self.rng.choice(list(self.operators))
        database = self.journals[name]._database
        pages = database.execute("PRAGMA page_count").fetchone()[0]
        database.execute(f"PRAGMA max_page_count = {pages}")
        self._later(5400, self._make_room, name)

    def _make_room(self, name: str) -> None:
        with suppress(sqlite3.ProgrammingError):
            self.journals[name]._database.execute("PRAGMA max_page_count = 1000000")

    def _clock_jump(self) -> None:
        by_s = self.rng.choice((-1, 1)) * self.rng.choice((60.0, 3600.0, DAY_S, 20 * DAY_S, YEARS_S))
        self._set_clock(by_s)
        self._later(3600, self._set_clock, -by_s)

    def _sleep(self) -> None:
        for_s = self.rng.uniform(1.0, LONGEST_SLEEP_S)
        # It is charged to the day that the dialler knows, which may still be one before the clock was set.
        days = {self._day(), *(self.days_shown if self._is_clock_new() else ())}
        self.clocks.sleep(for_s)
        for day in {*days, self._day()}:
            self.slept_s[day] += for_s

    def _zone(self) -> None:
        self._set_clock(0.0, self.rng.choice(ZONES))

    def _hand(self) -> None:
        end = self.rng.choice(list(self.operators))
        name = self._some(end)
        self._by_hand(end, "redial", name)
        self._by_hand(end, "hold", name)
        self.held.add(name)
        self._later(1800, self._release, end, name)

    def _release(self, end: str, name: str) -> None:
        self._by_hand(end, "release", name)
        self.held.discard(name)

    def _by_hand(self, end: str, what: str, name: str) -> None:
        with suppress(OperatorError):  # a line that is held is not dialled, and says so
            self.operators[end]._by_hand(what, {"lines": [name]})

    def _inject(self) -> None:
        with suppress(OperatorError):  # a line that is down is not dropped, and says so
            self.operators["near"]._inject({"now": True, "lines": [self._some("near")]})


TROUBLES = (*("dead_port", "modem", "modem", "low_signal", "full_disk", "clock_jump", "sleep", "zone", "hand", "inject"),)


def _memory_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def run(days: float, seed: int) -> dict[str, Any]:
    """Some days; what happened in them."""
    live_loop._LOOK_S = at_line._CARRIER_EVERY_S = LOOK_S
    at_line._LOOK_S = LOOK_S
    at_line.Port = Port  # type: ignore[misc,assignment]
    begin = time.perf_counter()
    where = "/dev/shm" if Path("/dev/shm").is_dir() else None
    with tempfile.TemporaryDirectory(dir=where) as folder:
        world = World(Path(folder), seed)
        with world.clocks.installed():
            loop = loop_with(world.clocks)
            asyncio.set_event_loop(loop)
            loop.run_until_complete(world.run(days))
            loop.close()
            found = _recorded(Path(folder), world)
    grown = [size - world.memory_bytes[len(world.memory_bytes) // 8] for size in world.memory_bytes]
    return {
        "days": days,
        "took_s": round(time.perf_counter() - begin, 1),
        "answers": world.field.answers,
        "corrupted": world.field.corrupted_answers,
        "troubles": dict(world.troubles),
        "full_disk_seen": world.refusals,
        "memory_grown_bytes": max(grown[len(grown) // 8 :]),
        "memory_bytes": world.memory_bytes[-1],
        **found,
        "states": {name: dict(counts.most_common(12)) for name, counts in sorted(world.counts.items())},
    }


def _recorded(folder: Path, world: World) -> dict[str, Any]:
    """What the journals say; that they are whole, and have no secret."""
    found: dict[str, Any] = {}
    for path in folder.iterdir():
        content = path.read_bytes()
        assert not any(canary.encode() in content for canary in CANARIES), f"a secret is in {path.name}"
    for name in world.bundles:
        with Journal(folder / f"{name}.journal") as journal:
            assert journal.loss is None, journal.loss
            history = journal.history()
        numbers = [one.number for one in history.transitions]
        assert numbers == list(range(1, len(numbers) + 1)), "a transition is missing"
        assert world.operators[name].status()["journal"]["left_out"] == 0
        last: dict[str, str] = {}
        for one in history.transitions:
            if one.state in ("connecting", "connected"):
                # Dialled once, and up only after that.
                assert (last.get(one.modem) == "connecting") == (one.state == "connected"), one
            if one.state not in OBSERVATIONS:
                last[one.modem] = one.state
        counts = Counter(one.state for one in history.transitions)
        found[name] = {"transitions": len(numbers), "connections": len(history.connections), **counts}
        found[f"alerts of {name}"] = _alerts(history.alerts)
    return found


def _alerts(rows: tuple[AlertRow, ...]) -> dict[str, int]:
    """How often each alert was raised; that it was cleared before it was raised again."""
    is_raised: set[tuple[str, str | None]] = set()
    for one in rows:
        key = (one.alert, one.line)
        assert key not in is_raised, f"{key} is raised twice"
        if one.cleared_s is None:
            is_raised.add(key)
    return dict(Counter(one.alert for one in rows))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--days", type=float, default=30.0)
    parser.add_argument("--seed", type=int, default=int(os.environ.get("SEED", "1")))
    given = parser.parse_args()
    found = run(given.days, given.seed)
    print(json.dumps(found, indent=1))
    assert found["memory_grown_bytes"] < MOST_GROWTH_BYTES, f"memory has grown by {found['memory_grown_bytes']} bytes"


if __name__ == "__main__":
    main()

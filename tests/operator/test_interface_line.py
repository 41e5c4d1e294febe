"""A line over an interface in virtual time: what it reports, and that an hour without an address fills no journal."""

from __future__ import annotations

import asyncio
import itertools
import os
import random
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from farlink import _core
from farlink.operator.interface.default_route import PROTOCOL
from farlink.operator.interface.prober import Prober
from farlink.operator.interface.settings import InterfaceSettings
from farlink.operator.lines import Report
from farlink.operator.lines.interface_line import InterfaceLine
from tests.operator import kernel
from tests.operator.kernel import Kernel
from tests.operator.virtual_time import Clocks, loop_with

CONFIG = '{"lines": [{"name": "sat"}], "limits": {"dropped_s": 1, "failed_s": 5, "longest_failed_s": 5, "flaps": 1000}}'
HERE = kernel.link(2, "eth1") + kernel.address(2, "192.0.2.7/24")


class Target:
    """Answers while `is_there`, after `after_s`."""

    name = "192.0.2.1"

    def __init__(self, evidence: Any, clocks: Clocks) -> None:
        self._evidence, self._clocks = evidence, clocks
        self.is_there, self.after_s = True, 0.05
        self.sent_s: list[float] = []
        self.refusal: OSError | None = None
        self.is_open = False
        self.opened: list[set[int]] = []

    async def open(self, interface: str, versions: Any, spend: Any, answered: Any) -> None:  # noqa: ARG002
        self.opened.append(set(versions))
        if self.refusal is not None:
            raise self.refusal
        self._spend, self._answered, self.is_open = spend, answered, True

    def send(self, now_s: float, interval_s: float) -> None:  # noqa: ARG002
        self.sent_s.append(now_s)
        self._spend(44)
        if self.is_there:
            asyncio.get_running_loop().call_later(self.after_s, self._answer, now_s)

    def _answer(self, sent_s: float) -> None:
        if self.is_there and self.is_open:
            self._spend(44)
            self._evidence.answered(sent_s, self._clocks.monotonic_s)
            self._answered()

    def close(self) -> None:
        self.is_open = False


class World:
    """A line with a kernel and a target that a test moves, and the dialler that gives its orders."""

    def __init__(self, clocks: Clocks, **settings: Any) -> None:
        self.clocks = clocks
        self.reports: list[tuple[float, Report]] = []
        self.states: list[tuple[str, str]] = []
        self.running: list[asyncio.Task[Any]] = []
        self.dialler = _core.BundleDialler(CONFIG, None, 1)
        self.settings = InterfaceSettings("eth1", **{"probe": ("192.0.2.1",), **settings})
        self.line = InterfaceLine("sat", self.settings, 10, self._reported, watch=self._watch, prober=self._prober)

    def _watch(self, changed: Callable[[], None], has_routes: bool) -> Any:  # noqa: ARG002
        self.kernel = Kernel(changed)
        return self.kernel

    def _prober(self, settings: Any, evidence: Any, pace: Any, wake: Any) -> Prober:
        made = Prober(settings, evidence, pace, wake)
        self.target = Target(evidence, self.clocks)
        made._targets = [self.target]
        return made

    def _reported(self, report: Report) -> None:
        self.reports.append((self.clocks.monotonic_s, report))
        if report.event != "note":
            self.handle(report.event, call=report.call, cause=report.cause)

    def handle(self, event: str, **details: Any) -> None:
        line = None if event in ("start", "stop") else "sat"
        self._do(self.dialler.handle(self.clocks.monotonic_s, event, line, **details))

    def _do(self, actions: list[dict[str, Any]]) -> None:
        for action in actions:
            match action["action"]:
                case "state":
                    self.states.append((action["state"], action["cause"]))
                case "dial":
                    self.line.dial(action["call"])
                case "start-link":
                    self.line.start_link(action["call"])
                case "hang-up":
                    self.line.hang_up()

    async def dials(self) -> None:
        """What the operator's loop does: nothing but the dialler's times."""
        while True:
            due_s = self.dialler.next_wakeup()
            await asyncio.sleep(0.1 if due_s is None else max(0.001, min(0.1, due_s - self.clocks.monotonic_s)))
            self._do(self.dialler.advance(self.clocks.monotonic_s))

    @property
    def state(self) -> str:
        return self.states[-1][0] if self.states else ""

    def events(self, *names: str) -> list[str]:
        return [one.event for _, one in self.reports if not names or one.event in names]


def played(story: Callable[[World], Coroutine[Any, Any, None]], **settings: Any) -> World:
    """Tell a story in virtual time."""
    clocks = Clocks()
    world: World

    async def play() -> None:
        nonlocal world
        world = World(clocks, **settings)
        running = world.running = [asyncio.create_task(world.line.run()), asyncio.create_task(world.dials())]
        await asyncio.sleep(0)
        world.handle("start")
        await story(world)
        assert not any(task.done() for task in running), [task for task in running if task.done()]
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)

    with clocks.installed(), asyncio.Runner(loop_factory=lambda: loop_with(clocks)) as runner:
        runner.run(play())
    return world


async def up(world: World) -> None:
    world.kernel.say(HERE)
    await asyncio.sleep(2)
    assert world.state == "connected"


def test_a_line_comes_up_and_a_silent_one_is_noticed_in_its_time():
    async def story(world: World) -> None:
        await up(world)
        await asyncio.sleep(7.3)
        world.target.is_there, broken_s = False, world.clocks.monotonic_s
        await asyncio.sleep(3)
        at_s, report = world.reports[-1]
        assert (report.event, world.state) == ("port-gone", "dropped")
        assert 1 < at_s - broken_s <= 3
        assert report.cause == "no answer from 192.0.2.1 for 2.8 s, and nothing else arrives"
        world.target.is_there = True
        await asyncio.sleep(3)
        assert world.state == "connected"

    assert played(story).events()[:3] == ["port-gone", "port-back", "carrier"]


@pytest.mark.parametrize("lost", [1, 2, 5])
def test_single_lost_probes_end_no_line(lost):
    """The first answer that is late makes more probes."""

    async def story(world: World) -> None:
        await up(world)
        for _ in range(20):
            await asyncio.sleep(3)
            before = len(world.target.sent_s)
            world.target.is_there = False
            while len(world.target.sent_s) < before + lost:
                await asyncio.sleep(0.01)
            world.target.is_there = True

    world = played(story)
    assert world.states[-1][0] == "connected"
    assert world.events("port-gone") == ["port-gone"], "before there was an interface"


def test_an_hour_without_an_address_is_one_line_in_the_journal():
    async def story(world: World) -> None:
        world.kernel.say(kernel.link(2, "eth1"))
        for _ in range(3600):
            await asyncio.sleep(1)
            world.kernel.say(kernel.link(2, "eth1", packets_in=1), kernel.address(2, "fe80::1/64"))
        assert (world.state, world.states[-1][1]) == ("waiting", "there is no interface eth1")
        assert world.line.observed()["failure"] == "eth1 has no address"
        assert len(world.reports) <= 2
        assert not world.target.sent_s
        world.kernel.say(kernel.address(2, "192.0.2.7/24"))
        await asyncio.sleep(1)
        assert world.state == "connected"

    played(story)


def test_a_wire_that_flaps_for_an_hour_fills_no_journal():
    async def story(world: World) -> None:
        await up(world)
        for at in itertools.cycle((0, 1)):
            await asyncio.sleep(0.7)
            world.kernel.say(kernel.link(2, "eth1", kernel.UP if at else kernel.CARRIER))
            if world.clocks.monotonic_s > 4600:
                return

    world = played(story)
    assert len(world.events("note")) < 10
    assert len(world.events("port-gone")) == 2


def test_an_interface_that_is_unplugged_and_another_of_its_name():
    async def story(world: World) -> None:
        await up(world)
        world.kernel.say(kernel.link(2, "eth1", is_gone=True))
        await asyncio.sleep(0.1)
        assert world.states[-1] == ("dropped", "there is no interface eth1")
        assert not world.target.is_open
        await asyncio.sleep(100)
        world.kernel.say(kernel.link(9, "eth1"), kernel.address(9, "198.51.100.2/24"))
        await asyncio.sleep(1)
        assert world.state == "connected"
        assert world.line.observed()["addresses"] == ["198.51.100.2/24"]

    played(story)


def test_an_interface_that_is_replaced_before_anybody_looks_gets_new_sockets():
    """Sockets are bound to an index: the old ones are deaf."""

    async def story(world: World) -> None:
        await up(world)
        gone = kernel.link(2, "eth1", is_gone=True)
        world.kernel.say(gone + kernel.link(9, "eth1") + kernel.address(9, "192.0.2.7/24"))
        await asyncio.sleep(5)
        assert len(world.target.opened) == 2
        assert world.state == "connected"

    played(story)


def test_an_address_that_is_replaced_at_once_drops_nothing():
    async def story(world: World) -> None:
        await up(world)
        world.kernel.say(kernel.address(2, "192.0.2.7/24", is_gone=True))
        await asyncio.sleep(0.3)
        world.kernel.say(kernel.address(2, "192.0.2.8/24"))
        await asyncio.sleep(5)
        assert world.state == "connected"
        assert [one.cause for _, one in world.reports if one.event == "note"] == [
            "eth1 has 192.0.2.8/24 instead of 192.0.2.7/24"
        ]
        world.kernel.say(kernel.address(2, "192.0.2.8/24", is_gone=True))
        await asyncio.sleep(0.6)
        assert world.states[-1] == ("dropped", "eth1 has no address")

    played(story)


def test_a_process_that_was_stopped_blames_no_line():
    async def story(world: World) -> None:
        await up(world)
        for _ in range(5):
            world.clocks.sleep(600)
            await asyncio.sleep(3)
        assert world.state == "connected"

    assert played(story).events("port-gone") == ["port-gone"]


def test_frames_that_arrive_are_said_of_a_line_without_answers():
    async def story(world: World) -> None:
        await up(world)
        world.target.is_there = False
        for at in range(40):
            await asyncio.sleep(0.1)
            world.kernel.say(kernel.link(2, "eth1", packets_in=at))
        assert "although frames arrive" in world.reports[-1][1].cause

    played(story)


def test_a_line_whose_budget_is_spent_is_not_given_up_for_silence():
    async def story(world: World) -> None:
        await up(world)
        await asyncio.sleep(7200)
        assert world.line.observed()["probe_interval_s"] is None
        assert world.line.observed()["probe_bytes_today"] <= 2000
        assert world.state == "connected"
        world.kernel.say(kernel.link(2, "eth1", kernel.UP))
        await asyncio.sleep(5)
        assert world.states[-1] == ("waiting", "eth1 has no carrier")
        world.kernel.say(kernel.link(2, "eth1"))
        await asyncio.sleep(5)
        assert world.line.observed()["failure"] == "", "the carrier is all that is known"

    def spent(world: World) -> Coroutine[Any, Any, None]:
        world.line._pace.spend(1900, world.clocks.wall_s)
        return story(world)

    played(spent, noticed_s=3000.0, probe_bytes_per_day=2000)


def test_who_may_not_probe_hears_why_and_is_served_when_the_right_comes():
    async def story(world: World) -> None:
        world.target.refusal = PermissionError(1, "Operation not permitted")
        world.kernel.say(HERE)
        await asyncio.sleep(30)
        assert (
            "this user may not probe over eth1 (operation not permitted); give it CAP_NET_RAW"
            in world.line.observed()["failure"]
        )
        world.target.refusal = None
        await asyncio.sleep(20)
        assert world.state == "connected"

    played(story)


def test_a_spare_line_sends_nothing_and_a_held_one_neither():
    async def story(world: World) -> None:
        await up(world)
        world.handle("hold")
        await asyncio.sleep(1)
        sent = len(world.target.sent_s)
        await asyncio.sleep(1000)
        assert len(world.target.sent_s) == sent
        assert world.line.is_idle
        world.handle("release")
        await asyncio.sleep(5)
        assert world.state == "connected"

    played(story)


def test_a_route_comes_and_goes_with_the_line_and_a_refusal_ends_nothing():
    async def story(world: World) -> None:
        world.kernel.say(kernel.route(2, "192.0.2.1", 1024))
        await up(world)
        assert [(one.gateway, one.metric, is_new) for one, is_new in world.kernel.asked] == [("192.0.2.1", 10, True)]
        world.kernel.say(kernel.link(2, "eth1", kernel.UP))
        await asyncio.sleep(0.1)
        assert [one.protocol for one in world.kernel.table.routes(2)] == [3]
        world.kernel.say(kernel.link(2, "eth1"))
        await asyncio.sleep(5)
        assert world.state == "connected"
        world.target.is_there = False
        await asyncio.sleep(4)
        assert world.kernel.asked[-1][1] is False
        world.kernel.refusal = PermissionError(1, "Operation not permitted")
        world.target.is_there = True
        await asyncio.sleep(5)
        assert world.state == "connected"
        assert "CAP_NET_ADMIN" in world.line.observed()["route_failure"]
        world.kernel.refusal = None
        await asyncio.sleep(40)
        assert world.line.observed()["route_failure"] == ""

    world = played(story, route=True)
    assert [one for one in world.kernel.table.routes(2) if one.protocol == PROTOCOL] == []


def test_a_far_end_that_has_moved_is_looked_up_again():
    async def story(world: World) -> None:
        await up(world)
        assert world.target.opened == [{4}]
        world.kernel.say(kernel.address(2, "2001:db8::2/64"))
        await asyncio.sleep(100)
        world.target.is_there = False
        await asyncio.sleep(200)
        assert len(world.target.opened) in (4, 5), "every minute"
        assert world.target.opened[-1] == {4, 6}
        world.target.is_there = True
        await asyncio.sleep(3)
        assert world.state == "connected"

    played(story)


def test_a_line_that_is_run_again_knows_nothing_of_before():
    """As after a fault of this program, which the operator tells and survives."""

    async def story(world: World) -> None:
        await up(world)
        world.running[0].cancel()
        await asyncio.sleep(0.1)
        world.running[0] = asyncio.create_task(world.line.run())
        world.handle("modem-failed", cause="internal error")
        await asyncio.sleep(20)
        assert world.line.observed()["failure"] == "there is no interface eth1", "the kernel of a test is asked anew, too"
        world.kernel.say(HERE)
        await asyncio.sleep(20)
        assert world.state == "connected"

    played(story)


@pytest.mark.parametrize("seed", range(int(os.environ.get("FARLINK_INTERFACE_SEEDS", "3"))))
def test_random_troubles_leave_no_line_stuck_and_none_up_that_is_dead(seed):
    """Carrier, address, interface, answers and their delay, rights and holds change at random."""
    rng = random.Random(seed)
    state = {"index": 2, "link": True, "carrier": True, "address": True}

    def told(world: World) -> None:
        index = state["index"]
        flags = kernel.UP | (kernel.CARRIER if state["carrier"] else 0)
        world.kernel.say(kernel.link(index, "eth1", flags, is_gone=not state["link"]))
        if state["link"]:
            world.kernel.say(kernel.address(index, f"192.0.2.{rng.choice((7, 8))}/24", is_gone=not state["address"]))
            if not state["address"]:
                world.kernel.say(*(kernel.address(index, f"192.0.2.{one}/24", is_gone=True) for one in (7, 8)))

    def trouble(world: World) -> None:
        match rng.randrange(9):
            case 0 | 1 | 2 as key:
                name = ("link", "carrier", "address")[key]
                state[name] = not state[name]
                state["index"] += name == "link" and state["link"]
            case 3 | 4:
                world.target.is_there = not world.target.is_there
            case 5:
                world.target.after_s = rng.choice((0.01, 0.7, 2.0, 5.0))
            case 6:
                world.target.refusal = rng.choice((None, PermissionError(1, "no"), OSError(101, "unreachable")))
            case 7:
                world.handle(rng.choice(("hold", "release", "redial", "inject")), cause="test")
                if rng.random() < 0.5:
                    world.line.try_again()
            case 8:
                world.kernel.refusal = rng.choice((None, PermissionError(1, "no"), TimeoutError()))
        told(world)

    def well(world: World) -> None:
        state.update(link=True, carrier=True, address=True)
        world.target.is_there, world.target.after_s, world.target.refusal = True, 0.05, None
        world.kernel.refusal = None
        world.handle("release")
        told(world)

    async def story(world: World) -> None:
        told(world)
        dead_s: float | None = None
        for _ in range(1500):
            if (chance := rng.random()) < 0.2:
                trouble(world)
            elif chance < 0.3:
                well(world)
            await asyncio.sleep(rng.choice((0.01, 0.1, 1.0, 5.0)))
            is_alive = all(state[name] for name in ("link", "carrier", "address")) and world.target.is_there
            now_s = world.clocks.monotonic_s
            dead_s = None if is_alive else (now_s if dead_s is None else dead_s)
            assert dead_s is None or now_s - dead_s <= 3 or world.state != "connected", (state, world.reports[-3:])
        well(world)
        await asyncio.sleep(120)
        assert world.state == "connected", (world.states[-5:], world.line.observed())

    world = played(story, route=bool(seed % 2))
    assert len(world.events("link-up")) > 20, "or nothing was tried"
    assert len(world.events("note")) < 200

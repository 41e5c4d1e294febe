"""A line on a pty whose modem follows a script: what it reports, and what it does with orders."""

from __future__ import annotations

import asyncio
import os
import sys
import time
import tty
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

from farlink.operator.at import Profile, profiles
from farlink.operator.backend import PppdBackEnd
from farlink.operator.backend.link import Down, Listener, Up
from farlink.operator.config import Bundle, Line, Secrets
from farlink.operator.lines import AtLine, Report

PATIENCE_S = 30.0


class Modem:
    """The other side of a pty: answers each line with what `answers` has for its beginning, else with OK."""

    def __init__(self) -> None:
        self.master, self._slave = os.openpty()
        tty.setraw(self._slave)
        os.set_blocking(self.master, False)
        self.port = os.ttyname(self._slave)
        self.answers: dict[str, str | None] = {"ATD": None}
        self.heard: list[str] = []
        self._pending = b""

    def listen(self) -> None:
        asyncio.get_running_loop().add_reader(self.master, self._read)

    def say(self, text: str) -> None:
        os.write(self.master, f"\r\n{text}\r\n".encode())

    def count(self, beginning: str) -> int:
        return sum(line.startswith(beginning) for line in self.heard)

    def close(self) -> None:
        os.close(self.master)
        os.close(self._slave)

    def _read(self) -> None:
        self._pending += os.read(self.master, 4096)
        *lines, self._pending = self._pending.replace(b"+++", b"+++\r").split(b"\r")
        for line in (one.decode() for one in lines if one):
            self.heard.append(line)
            answer = next((text for beginning, text in self.answers.items() if line.startswith(beginning)), "OK")
            if answer is not None:
                self.say(answer)


class AnyPin:
    """Every PIN may be tried."""

    def may_try(self, line: str) -> bool:  # noqa: ARG002
        return True

    def note_tried(self, line: str) -> bool:  # noqa: ARG002
        return True

    def note_outcome(self, line: str, outcome: str) -> None:
        pass


class InstantBackEnd:
    """Links that are up at once, until they are hung up."""

    name = "instant"

    def __init__(self) -> None:
        self.tells: list[Listener] = []

    def delay_s(self, line: str) -> float:  # noqa: ARG002
        return 0.0

    async def start(self, line: str, tty: int, tell: Listener) -> InstantBackEnd:  # noqa: ARG002
        self.tells.append(tell)
        tell(Up())
        return self

    async def hang_up(self, *, ends_bundle: bool = False) -> None:
        pass


class World:
    """A line, its modem and what it has reported."""

    def __init__(self, profile: Profile, role: str) -> None:
        self.modem = Modem()
        self.reports: list[Report] = []
        self.config = config = Line("kansas", self.modem.port, profile.name, role=role, number="12")
        self.back_end: Any = InstantBackEnd()
        self.line = AtLine(config, profile, self.back_end, self.reports.append, pins=AnyPin())

    def events(self) -> list[tuple[str, int | None]]:
        return [(one.event, one.call) for one in self.reports if one.event != "signal"]

    async def until(self, condition: Callable[[], Any]) -> None:
        end = time.monotonic() + PATIENCE_S
        while not condition():
            assert time.monotonic() < end, (self.events(), self.modem.heard)
            await asyncio.sleep(0.01)

    async def reported(self, event: str) -> Report:
        await self.until(lambda: event in [one[0] for one in self.events()])
        return next(one for one in reversed(self.reports) if one.event == event)

    async def connect(self, call: int) -> None:
        """Dial the call of this number, until its link is up."""
        self.line.dial(call)
        await self.until(lambda: self.modem.count("ATD") == call)
        self.modem.say("CONNECT 9600")
        await self.until(lambda: ("carrier", call) in self.events())
        self.line.start_link(call)
        await self.until(lambda: ("link-up", call) in self.events())


def play(act: Callable[[World], Awaitable[None]], profile: Profile, role: str = "dial") -> World:
    async def run() -> World:
        world = World(profile, role)
        world.modem.listen()
        task = asyncio.create_task(world.line.run())
        try:
            await act(world)
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            asyncio.get_running_loop().remove_reader(world.modem.master)
            world.modem.close()
        return world

    return asyncio.run(asyncio.wait_for(run(), 2 * PATIENCE_S))


HAYES = profiles.load("hayes")


def test_reports_of_a_link_have_the_call_of_the_order_that_began_it():
    """A modem that answers by itself tells of a call that nobody has numbered yet."""

    async def act(world: World) -> None:
        await world.until(lambda: world.modem.count("ATE1"))
        await asyncio.sleep(0.2)
        for call in (7, 8):
            world.modem.say("CONNECT 9600")
            await world.until(lambda call=call: len([one for one in world.events() if one[0] == "carrier"]) == call - 6)
            world.line.start_link(call)
            await world.until(lambda call=call: ("link-up", call) in world.events())
            world.line.hang_up()
            await world.until(lambda: world.line.is_idle)

    profile = replace(HAYES, answer="auto", hang_up="escape")
    world = play(act, profile, "answer")
    assert world.events() == [("carrier", None), ("link-up", 7), ("carrier", None), ("link-up", 8)]


def test_each_ring_is_told_until_the_call_is_taken():
    """The first may come before the line counts as there; who called again within ten seconds then rang in vain for good."""

    async def act(world: World) -> None:
        await world.until(lambda: world.modem.count("ATE1"))
        await asyncio.sleep(0.2)
        for rings in (1, 2, 3):
            world.modem.say("RING")
            await world.until(lambda rings=rings: len(world.events()) == rings)

    assert play(act, HAYES, "answer").events() == [("ring", None)] * 3


def test_a_call_that_the_modem_does_not_end_is_ended_by_closing_the_port(monkeypatch):
    """A modem that misses the escape sequence takes all that follows for data; the call would be paid for, for ever."""
    monkeypatch.setattr("farlink.operator.at.dialogue._HANG_UP_LIMIT_S", 0.3)
    monkeypatch.setattr("farlink.operator.at.dialogue._GUARD_S", 0.1)

    async def act(world: World) -> None:
        world.line.dial(1)
        await world.until(lambda: world.modem.count("ATD"))
        world.modem.say("CONNECT 9600")
        await world.reported("carrier")
        world.modem.answers = {"+++": None, "ATH": None, "ATD": "BUSY"}
        before = world.modem.count("ATZ")
        world.line.hang_up()
        await world.until(lambda: world.modem.count("ATH"))
        world.line.dial(2)
        await world.reported("dial-failed")
        assert world.modem.count("ATZ") == before + 1, "the port was opened anew before the next dial"

    world = play(act, replace(HAYES, hang_up="escape"))
    assert world.events() == [("carrier", 1), ("dial-failed", 2)]


def test_what_a_modem_says_of_a_dial_that_failed_is_noted():
    async def act(world: World) -> None:
        world.modem.answers = {"ATD": "NO CARRIER", "AT+CEER": "+CEER: 17 user busy\r\n\r\nOK"}
        world.line.dial(1)
        assert "user busy" in (await world.reported("note")).cause

    play(act, replace(HAYES, asks_cause=True))


def test_a_link_that_ends_late_does_not_end_the_next_call():
    async def act(world: World) -> None:
        for call in (1, 2):
            await world.connect(call)
            if call == 1:
                world.line.hang_up()
                await world.until(lambda: world.line.is_idle)
        first, second = world.back_end.tells
        first(Down("of the first call"))
        await asyncio.sleep(0.3)
        assert world.events()[-1] == ("link-up", 2)
        second(Down("of the second call"))
        assert (await world.reported("dropped")).cause == "of the second call"

    play(act, HAYES)


OWNER = """#!{python} -IS
import os, signal, sys, time
say = lambda text: os.write(1, (text + "\\n").encode())
signal.signal(signal.SIGHUP, lambda *_: (say("Hangup (SIGHUP)"), say("Link terminated.")))
signal.signal(signal.SIGTERM, lambda *_: sys.exit(5))
for text in ("Using interface ppp0", "New bundle ppp0 created", "remote IP address 10.0.0.2"): say(text)
while True: time.sleep(1)
"""


def test_the_pppd_that_lives_on_as_owner_of_the_bundle_leaves_its_port_free(tmp_path):
    """With `nodetach` pppd never closes its standard input. A port that stays open there keeps its lock, and its DTR."""

    async def act(world: World) -> None:
        program = tmp_path / "pppd"
        program.write_text(OWNER.format(python=sys.executable))
        program.chmod(0o755)
        bundle = Bundle("camp", (world.config,), 1, journal=tmp_path / "camp.journal")
        world.back_end = PppdBackEnd(bundle, Secrets(), folder=tmp_path, program=str(program), interfaces=tmp_path)
        world.line._back_end = world.back_end
        for call in (1, 2):
            await world.connect(call)
            world.line.hang_up()
            await world.until(lambda: world.line.is_idle)
        assert "port-gone" not in [event for event, _ in world.events()]
        await world.back_end.tear_down()

    play(act, HAYES)

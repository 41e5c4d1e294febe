"""When the stand-by line is used: in virtual time, without a modem."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

import pytest

from farlink.operator.alerts import Raised
from farlink.operator.alerts.message import Message
from farlink.operator.alerts.outbox import Outbox
from farlink.operator.at import load
from farlink.operator.config import Bundle, Line, Secrets
from farlink.operator.config.alerts import AlertRules, Standby
from farlink.operator.journal import AlertRow
from farlink.operator.live import standby as standby_module
from farlink.operator.live.alerting import _restored as restored
from farlink.operator.live.standby import StandbyLine
from tests.operator.virtual_time import Clocks, loop_with


class World:
    """A stand-by line whose messages go into a list, or are refused."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, urls: tuple[str, ...] = (), **rules: Any) -> None:
        self.sent: list[tuple[float, str]] = []
        self.why = ""
        self.clocks, self.others, self.raised = Clocks(0.0), Outbox(urls), []

        async def send_sms(*_: object, text: str, **__: object) -> str:
            await asyncio.sleep(5)
            if not self.why:
                self.sent.append((round(time.monotonic()), text))
            return self.why

        monkeypatch.setattr(standby_module, "send_sms", send_sms)
        config = Standby("/none", "sim7600", "+4930123456", **{"after_s": 600.0, **rules})
        self.bundle = Bundle("camp", (Line("a", "/a", "hayes"),), 1, alerts=AlertRules(standby=config))
        self.line = self.made()

    def made(self) -> StandbyLine:
        return StandbyLine(self.bundle, Secrets(), load("sim7600"), None, folder=Path())

    def put(self, kind: str, alert: str, line: str | None = None, severity: str = "critical") -> None:
        if kind == "raised":
            self.raised.append(Raised(alert, line, severity, "", 0.0, first_at=time.monotonic()))
        else:
            self.raised = [one for one in self.raised if one.alert != alert]
        message = Message("camp", kind, alert, alert, alert, severity, time.time())
        self.line.put(message)
        self.others.put(message)

    async def wait(self, for_s: float) -> None:
        for _ in range(round(for_s)):
            self.line.look(self.raised, self.others)
            await asyncio.sleep(1)

    def run(self, act) -> list[tuple[float, str]]:
        async def main() -> None:
            await act(self)
            await self.line.close()

        with self.clocks.installed():
            loop = loop_with(self.clocks)
            asyncio.set_event_loop(loop)
            loop.run_until_complete(main())
            loop.close()
        return self.sent

    def texts(self) -> list[str]:
        return [text.split("Z ", 1)[1] for _, text in self.sent]


async def down_for_long(world: World) -> None:
    world.put("raised", "bundle-down")
    world.put("raised", "line-down", "a", "warning")
    await world.wait(3600)


def test_it_waits_and_says_it_once_with_all_that_is_wrong(monkeypatch):
    world = World(monkeypatch)
    ((at, text),) = world.run(down_for_long)
    assert 600 <= at <= 610
    assert text == "camp 00:00Z bundle-down; 00:00Z line-down"


def test_a_bundle_that_is_back_in_time_costs_nothing(monkeypatch):
    async def act(world: World) -> None:
        for _ in range(20):
            world.put("raised", "bundle-down")
            await world.wait(590)
            world.put("cleared", "bundle-down")
            await world.wait(100)

    assert World(monkeypatch).run(act) == []


def test_what_was_told_is_told_to_be_over(monkeypatch):
    async def act(world: World) -> None:
        await down_for_long(world)
        world.put("cleared", "bundle-down")
        await world.wait(100)

    world = World(monkeypatch)
    world.run(act)
    assert world.texts()[1:] == ["cleared: bundle-down"]


def sending(world: World) -> bool:
    return world.line.is_busy and not world.line.outbox.messages("standby")


@pytest.mark.parametrize("why", ["", "the modem answers +CMS ERROR: 331"], ids=["sent", "refused"])
def test_what_is_over_while_it_is_told_is_told_to_be_over(monkeypatch, why):
    async def act(world: World) -> None:
        world.put("raised", "bundle-down")
        while not sending(world):
            await world.wait(1)
        world.why = why
        world.put("cleared", "bundle-down")
        await world.wait(10)
        world.why = ""
        await world.wait(1000)
        world.put("raised", "journal")
        await world.wait(1000)
        assert world.line.status()["waiting"] == 0

    world = World(monkeypatch)
    world.run(act)
    assert world.texts() == (["journal"] if why else ["bundle-down", "cleared: bundle-down", "journal"])


def test_what_a_url_is_told_while_a_short_message_goes_out_costs_no_second_one(monkeypatch):
    async def act(world: World) -> None:
        world.put("raised", "bundle-down")
        while not sending(world):
            await world.wait(1)
        world.put("cleared", "bundle-down")
        world.line.delivered(world.others.take("office", time.monotonic()))
        await world.wait(3600)
        assert "bundle-down" not in world.line.dump()

    world = World(monkeypatch, urls=("office",))
    world.run(act)
    assert world.texts() == ["bundle-down"]


def test_an_alert_of_an_earlier_operator_is_told_whatever_the_clock_shows(monkeypatch):
    """A machine without a battery for its clock shows 1970 after a power cut."""

    async def act(world: World) -> None:
        world.put("raised", "bundle-down")
        world.raised = [restored(AlertRow("bundle-down", None, "critical", time.time() + 1e9, ""))]
        await world.wait(700)

    world = World(monkeypatch)
    world.run(act)
    assert world.texts() == ["bundle-down"]


def test_what_a_url_was_told_costs_nothing(monkeypatch):
    async def act(world: World) -> None:
        await down_for_long(world)
        world.put("cleared", "bundle-down")
        await world.wait(100)
        messages = world.others.take("office", time.monotonic())
        world.line.delivered(messages)
        world.others.done("office", "", time.monotonic())
        await world.wait(3600)
        # The next time the URL has it at once.
        world.put("raised", "bundle-down")
        world.line.delivered(world.others.take("office", time.monotonic()))
        await world.wait(3600)

    world = World(monkeypatch, urls=("office",))
    world.run(act)
    assert world.texts() == ["bundle-down; 00:00Z line-down"]


def test_what_is_less_than_critical_costs_nothing(monkeypatch):
    async def act(world: World) -> None:
        world.put("raised", "bundle-down")
        await world.wait(700)
        world.put("raised", "blocked", "a", "warning")
        await world.wait(700)
        world.put("raised", "journal")
        await world.wait(700)

    world = World(monkeypatch)
    world.run(act)
    assert world.texts() == ["bundle-down", "blocked; 00:23Z journal"]


def test_what_was_refused_is_tried_again_after_pauses_that_grow(monkeypatch):
    async def act(world: World) -> None:
        world.why = "the modem answers +CMS ERROR: 331"
        await down_for_long(world)
        assert world.line.status()["why"] == world.why
        assert world.line.status()["waiting"] == 2
        world.why = ""
        await world.wait(700)

    ((at, _),) = World(monkeypatch).run(act)
    assert at <= 3600 + 610


def test_no_more_go_out_in_a_day_than_are_allowed(monkeypatch):
    async def act(world: World) -> None:
        for _ in range(10):
            world.put("raised", "bundle-down")
            await world.wait(1000)
            world.put("cleared", "bundle-down")
            await world.wait(1000)
        assert "as often as most_per_day says" in world.line.why
        await world.wait(86_400)
        world.put("raised", "bundle-down")
        await world.wait(1000)

    world = World(monkeypatch, most_per_day=3)
    world.run(act)
    days = [at // 86_400 for at, _ in world.sent]
    assert days.count(0) == 3
    assert days.count(1) >= 1
    assert all(len([0 for other, _ in world.sent if at <= other < at + 86_400]) <= 3 for at, _ in world.sent)


def test_a_restart_forgets_neither_what_is_to_be_told_nor_what_was(monkeypatch):
    async def act(world: World) -> None:
        world.put("raised", "bundle-down")
        await world.wait(300)
        kept, world.line = world.line.dump(), world.made()
        world.line.load(kept)
        await world.wait(1000)
        kept, world.line = world.line.dump(), world.made()
        world.line.load(kept)
        await world.wait(1000)
        world.put("cleared", "bundle-down")
        kept, world.line = world.line.dump(), world.made()
        world.line.load(kept)
        await world.wait(1000)

    world = World(monkeypatch)
    world.run(act)
    assert world.texts() == ["bundle-down", "cleared: bundle-down"]


@pytest.mark.parametrize("clock_s", [0.0, -1e8], ids=["", "clock set back"])
def test_a_restart_forgets_no_use_of_the_line(monkeypatch, clock_s):
    """Of an operator that is started again and again each start may cost money."""

    async def act(world: World) -> None:
        for _ in range(5):
            world.put("raised", "bundle-down")
            await world.wait(700)
            world.put("cleared", "bundle-down")
            world.clocks.set_wall(clock_s)
            kept, world.line = world.line.dump(), world.made()
            world.line.load(kept)
        assert world.line.status()["used_today"] == 2
        await world.wait(86_400)
        world.put("raised", "journal")
        await world.wait(700)

    world = World(monkeypatch, most_per_day=2)
    world.run(act)
    assert len(world.sent) >= 3
    assert all(len([0 for other, _ in world.sent if at <= other < at + 86_400]) <= 2 for at, _ in world.sent)


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "5", '{"told": 5}', '{"waiting": 5, "told": [5]}', '{"used_unix_s": ["x"]}', "[" * 9999]
)
def test_nonsense_that_was_kept_is_left_out(monkeypatch, text):
    line = World(monkeypatch).line
    line.load(text)
    assert line.status()["waiting"] == 0

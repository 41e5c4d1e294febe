"""A line over ModemManager with probes over its bearer's interface."""

from __future__ import annotations

import asyncio
import socket
import time

import pytest

from farlink.operator.config.modem_manager import ModemManagerSettings
from farlink.operator.interface.settings import InterfaceSettings
from farlink.operator.lines.interface_line import InterfaceLine
from farlink.operator.lines.modem_manager.bus import ROOT
from tests.operator.modem_manager.world import World, needs_mock, play

pytestmark = needs_mock

BEARER = f"{ROOT}/Bearer/0"


@pytest.mark.usefixtures("quick")
def test_a_bearer_that_carries_nothing_is_noticed_by_probes(service):
    port = free_port()
    answering = InterfaceSettings("lo", probe_listen=f"127.0.0.1:{port}", noticed_s=0.5)

    async def act(world: World):
        await world.control.behave(bearer={"Interface": ["s", "lo"]})
        far = InterfaceLine("far", answering, 0, lambda _: None)
        running = asyncio.create_task(far.run())
        await world.connect()
        await world.until(lambda: world.line.observed()["round_trip_s"] is not None)
        begin = time.monotonic()
        running.cancel()
        await world.reported("dropped")
        world.took_s = time.monotonic() - begin
        await world.until(lambda: world.line.is_idle)
        # Connected as the bearer may be, the line is not up before something gets through.
        world.line.dial(2)
        await world.reported("carrier", 2)
        world.line.start_link(2)
        await world.asked_until("Connect", 2)
        running = asyncio.create_task(InterfaceLine("far", answering, 0, lambda _: None).run())
        await world.reported("link-up", 2)
        running.cancel()
        world.asked = await world.control.asked("Disconnect")

    world = play(service, act, probes=InterfaceSettings("", peer=f"127.0.0.1:{port}", noticed_s=0.5))

    assert "no answer from" in world.causes("dropped")[0]
    assert world.took_s < 1.5
    assert world.asked == [BEARER], "a bearer that carries nothing is disconnected"


def test_a_bearer_without_an_answer_is_no_link(service, monkeypatch):
    monkeypatch.setattr(ModemManagerSettings, "proven_s", 0.4)

    async def act(world: World):
        await world.control.behave(bearer={"Interface": ["s", "lo"]})
        world.line.dial(1)
        await world.reported("carrier")
        world.line.start_link(1)
        await world.reported("dial-failed")
        await world.until(lambda: world.line.is_idle)

    world = play(service, act, probes=InterfaceSettings("", peer=f"127.0.0.1:{free_port()}", noticed_s=0.5))

    assert "link-up" not in world.events()
    assert world.causes("dial-failed")[0].startswith("nothing gets through: ")


@pytest.mark.usefixtures("quick")
def test_each_call_goes_on_with_the_budget_of_probes_that_the_last_one_has_left(service):
    port = free_port()

    async def act(world: World):
        await world.control.behave(bearer={"Interface": ["s", "lo"]})
        far = InterfaceLine("far", InterfaceSettings("lo", probe_listen=f"127.0.0.1:{port}"), 0, lambda _: None)
        running = asyncio.create_task(far.run())
        await world.connect()
        world.first = world.line.observed()["probe_bytes_today"]
        world.line.hang_up()
        await world.until(lambda: world.line.is_idle)
        await world.connect(2)
        world.second = world.line.observed()["probe_bytes_today"]
        running.cancel()

    settings = InterfaceSettings("", peer=f"127.0.0.1:{port}", noticed_s=0.5, probe_bytes_per_day=10**9)
    world = play(service, act, probes=settings)

    assert 0 < world.first < world.second


def free_port() -> int:
    """A UDP port of the loopback address that nobody has."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])

"""One bundle of two kinds: a line over ModemManager and one over a modem of the bank, with one state machine and journal."""

from __future__ import annotations

import asyncio

from tests.operator.live_world import TOP, until, world_in
from tests.operator.modem_manager.world import Control, needs_mock, service_in

pytestmark = needs_mock

LTE = """[[line]]
name = "lte"
kind = "modemmanager"
modem = "dev-1"
rank = 0
"""
AT = """[[line]]
name = "iridium"
port = "{folder}/modems/near-1"
profile = "hayes"
rate_bps = 100000
number = "201"
rank = 1
"""


def test_a_mixed_bundle_falls_back_to_the_modem_on_a_tty_and_returns(tmp_path):
    with service_in(tmp_path) as service, world_in(tmp_path) as world:
        world.bank(1)
        far = world.start(world.configure("far", 1))
        config = tmp_path / "near.toml"
        config.write_text(TOP.format(name="near", more="use = 1") + LTE + AT.format(folder=tmp_path))

        async def act() -> None:
            control = await Control.open(service)
            path = await control.plug()
            near = world.start(config)

            async def once(state: tuple[str, str]) -> None:
                def is_so() -> bool:
                    return (near.state("lte"), near.state("iridium")) == state

                await asyncio.to_thread(until, is_so, lambda: near.log[-3000:])

            await once(("connected", "waiting"))
            assert near.lines()["lte"]["operator"] == "TheOperator"
            await control.unplug(path)
            await once(("waiting", "connected"))
            assert "unplugged" in near.of("lte", "dropped")[-1].cause
            path = await control.plug()
            await once(("connected", "waiting"))
            near.ask(do="hold", lines=["lte"])
            await once(("held", "connected"))
            assert (await control.asked("Disconnect"))[-1].endswith("/Bearer/1")
            near.ask(do="release", lines=["lte"])
            await once(("connected", "waiting"))
            assert near.end() == 0
            assert (await control.asked("Disconnect"))[-1].endswith("/Bearer/2")
            kept = near.history.transitions
            assert {"lte", "iridium"} <= {one.modem for one in kept}
            assert any(one.state == "alive" and "registered, home: TheOperator" in one.cause for one in kept)
            control.close()

        asyncio.run(act())
        assert far.end() == 0

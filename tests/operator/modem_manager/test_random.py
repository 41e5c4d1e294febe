"""A whole operator with a line over ModemManager, to which random things happen: what must hold always, and in the end."""

from __future__ import annotations

import asyncio
import os
import random
import re
import time
from pathlib import Path
from typing import Any

import pytest

from farlink.operator.backend.no_ppp import NoPpp
from farlink.operator.config import Bundle, Limits, Line, Secrets
from farlink.operator.config.modem_manager import ModemManagerSettings
from farlink.operator.journal import Journal, read
from farlink.operator.lines.modem_manager import line as line_module
from farlink.operator.lines.modem_manager import unlock, watch
from farlink.operator.lines.modem_manager.bus import ROOT
from farlink.operator.live import Operator
from tests.operator.modem_manager.world import PATIENCE_S, Control, Service, needs_mock, service_in

pytestmark = needs_mock

# `make soak` does more.
STEPS = int(os.environ.get("FARLINK_MODEM_STEPS", "60"))
CANARY = "canary-4d21"
FAST = {"_GONE_S": 0.05, "_BUS_EVERY_S": 0.05, "_AFTER_STATE_S": 0.05, "_RETRY_S": 0.1, "_LAST_S": 0.2, "DISCONNECT_S": 0.3}
FAST |= {"SIGNAL_EVERY_S": 0.1, "LINK_S": 0.3, "ENABLE_S": 0.3}
REFUSALS = ("MobileEquipment.NoNetwork: No network service", "Core.Unauthorized: not authorized", "Core.Retry: later")
NONSENSE = (
    {"SignalQuality": ["s", "loud"]},
    {"SignalQuality": ["(ub)", [4_000_000_000, False]]},
    {"AccessTechnologies": ["u", 0xFFFFFFFF]},
    {"State": ["i", 99]},
    {"State": ["s", "fine"]},
    {"UnlockRetries": ["s", "many"]},
    {"Sim": ["s", "/"]},
)


class Attack:
    """What is done to ModemManager, at random."""

    def __init__(self, service: Service, control: Control, rng: random.Random, *, is_locking: bool) -> None:
        self.service, self.control, self.rng = service, control, rng
        self.path: str | None = None
        self.asked: list[Any] = []
        locked = {"State": ["i", 2], "UnlockRequired": ["u", 2]}
        self._modem = {"properties": {"Modem": locked}} if is_locking else {}

    async def step(self) -> str:
        """Do one thing; its name."""
        names = ["plug", "unplug", "drop", "answers", "state", "nonsense", "late", "pause", "unknown", "signal"]
        name = self.rng.choices([*names, "restart", "bus"], [3, 2, 4, 4, 2, 2, 2, 1, 1, 1, 0.7, 0.3])[0]
        await getattr(self, f"_{name}")()
        return name

    async def _plug_in(self) -> None:
        self.path = await self.control.plug(**self._modem)

    async def _plug(self) -> None:
        if self.path is None:
            await self._plug_in()

    async def _unplug(self) -> None:
        if self.path is not None:
            await self.control.unplug(self.path)
            self.path = None

    async def _drop(self) -> None:
        for at in range(40):
            await self.control.drop(("org.freedesktop.ModemManager1.Error.Core.Failed", "lost"), f"{ROOT}/Bearer/{at}")

    async def _answers(self) -> None:
        await self.control.behave(
            connect=self.rng.choice(["ok", "ok", "ok", "hang", "nonsense", "no-bearer", *REFUSALS]),
            enable=self.rng.choice(["ok", "ok", "ok", "Core.WrongState: low power"]),
            disconnect=self.rng.choice(["", "ignore"]),
            unplug=self.rng.choice(["", "silent"]),
            bearer=self.rng.choice([{}, {}, {"Connected": ["b", False]}, {"Connected": ["s", "?"]}, {"Stats": ["s", "?"]}]),
        )

    async def _change(self, **changed: Any) -> None:
        if self.path is not None:
            await self.control.change(self.path, Modem=changed)

    async def _state(self) -> None:
        await self._change(State=["i", self.rng.choice([-1, 0, 1, 3, 4, 5, 6, 7, 8, 11])])

    async def _nonsense(self) -> None:
        await self._change(**self.rng.choice(NONSENSE))

    async def _signal(self) -> None:
        await self._change(SignalQuality=["(ub)", [self.rng.randint(0, 100), True]])

    async def _late(self) -> None:
        await self.control.answer_connect(self.rng.choice(["ok", *REFUSALS]))

    async def _pause(self) -> None:
        self.service.pause_mock(is_paused=True)
        await asyncio.sleep(self.rng.uniform(0, 0.3))
        self.service.pause_mock(is_paused=False)

    async def _unknown(self) -> None:
        await self.control.emit("org.freedesktop.DBus.ObjectManager", self.rng.choice(["InterfacesAdded", "InterfacesRemoved"]))
        await self.control.emit("org.freedesktop.DBus.Properties", "PropertiesChanged")

    async def _restart(self) -> None:
        await self.keep()
        self.service.end_mock()
        await asyncio.sleep(self.rng.uniform(0, 0.2))
        self.service.start_mock()
        await self.control.reload()
        self.path = None

    async def _bus(self) -> None:
        await self.keep()
        self.service.end_bus()
        await asyncio.sleep(self.rng.uniform(0, 0.2))
        self.service.start_bus()
        self.service.start_mock()
        self.control = await Control.open(self.service)
        self.path = None

    async def keep(self) -> None:
        """Keep what modems were asked, before ModemManager forgets it."""
        self.asked += await self.control.asked()

    async def calm(self) -> None:
        """All is well again."""
        await self.control.behave(connect="ok", enable="ok", disconnect="", unplug="", bearer={})
        await self.control.answer_connect("Core.Cancelled: cancelled")
        await self._unplug()
        self._modem = {}
        await self._plug_in()


def attacked(folder: Path, seed: int, pin: str, *, is_locking: bool, steps: int) -> tuple[Attack, dict[str, Any], list[str]]:
    """Run an operator through an attack: what modems were asked, its last status, and what it has told."""
    rng, told = random.Random(seed), []
    settings = ModemManagerSettings("dev-1", user="me", dial_limit_s=0.3)
    limits = Limits(dropped_s=0.02, failed_s=0.05, longest_failed_s=0.1, attempts=1000, flaps=100_000, fail_back_s=0.0)
    line = Line("lte", kind="modemmanager", settings=settings)
    bundle = Bundle("ship", (line,), 1, journal=folder / "ship.journal", limits=limits)
    secrets = Secrets(pins={"lte": pin}, apn_passwords={"lte": CANARY})

    async def run() -> tuple[Attack, dict[str, Any]]:
        with service_in(folder) as service, Journal(bundle.journal, secrets=secrets.texts()) as journal:
            attack = Attack(service, await Control.open(service), rng, is_locking=is_locking)
            operator = Operator(bundle, secrets, journal, NoPpp(), folder=folder, tell=told.append)
            running = asyncio.create_task(operator.run())
            try:
                for _ in range(steps):
                    await attack.step()
                    await asyncio.sleep(rng.choice([0, 0.005, 0.02, 0.1]))
                    assert not running.done(), running.exception()
                await attack.calm()
                end = time.monotonic() + PATIENCE_S
                while not (status := operator.status())["lines"][0]["is_up"]:
                    assert time.monotonic() < end, (seed, status["lines"], await attack.control.asked())
                    await asyncio.sleep(0.02)
            finally:
                operator.stop()
                await asyncio.wait_for(running, PATIENCE_S)
            await attack.keep()
            attack.control.close()
            return attack, status

    attack, status = asyncio.run(run())
    return attack, status, told


@pytest.fixture
def fast(monkeypatch):
    for name, value in FAST.items():
        monkeypatch.setattr(line_module, name, value)
    monkeypatch.setattr(unlock, "PIN_S", 0.3)
    monkeypatch.setattr(watch, "READ_S", 0.3)
    monkeypatch.setattr(watch, "_SERVICE_EVERY_S", 0.05)


@pytest.mark.usefixtures("fast")
@pytest.mark.parametrize(
    ("seed", "pin", "is_locking"), [(1, "1234", False), (2, "1234", True), (3, "9999", True), (4, "1234", False)]
)
def test_a_line_survives_whatever_happens_and_is_up_when_all_is_well(tmp_path, seed, pin, is_locking):
    attack, status, told = attacked(tmp_path, seed, pin, is_locking=is_locking, steps=STEPS)

    history, loss = read(tmp_path / "ship.journal")
    assert loss is None
    assert not [said for said in told if "internal error" in said], told
    methods = [method for method, *_ in attack.asked]
    assert "Two Connects" not in methods
    if pin == "9999":
        assert methods.count("SendPin") <= 1, "a PIN that may be wrong is tried once"
    everything = " ".join([*told, str(status), *(str(one) for one in history.transitions)])
    assert CANARY not in everything
    # Times have such digits among others.
    assert not re.search(rf"(?<![\d.]){pin}(?!\d)", everything)

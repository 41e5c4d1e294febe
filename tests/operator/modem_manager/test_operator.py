"""A whole operator with a line over ModemManager: its least signal, its PIN over restarts, and secrets that nothing shows."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from farlink.operator.backend.no_ppp import NoPpp
from farlink.operator.config import Bundle, Limits, Line, Secrets
from farlink.operator.config.modem_manager import ModemManagerSettings
from farlink.operator.journal import Journal, read
from farlink.operator.lines.modem_manager import line as line_module
from farlink.operator.lines.modem_manager.bus import ROOT
from farlink.operator.live import Operator
from tests.operator.modem_manager.world import PATIENCE_S, Control, needs_mock, service_in

pytestmark = needs_mock

MODEM = f"{ROOT}/Modems/0"
CANARY = "canary-51ab"
LIMITS = Limits(dropped_s=0.05, failed_s=0.05, longest_failed_s=0.1, attempts=1000, flaps=1000, fail_back_s=0.0)


class Station:
    """An operator of one line, ModemManager, and what was told."""

    def __init__(self, folder: Path, control: Control, secrets: Secrets, **line: Any) -> None:
        settings = ModemManagerSettings("dev-1", user="me")
        self.bundle = Bundle(
            *("ship", (Line("lte", kind="modemmanager", settings=settings, **line),), 1),
            **{"journal": folder / "ship.journal", "limits": LIMITS},
        )
        self.folder, self.control, self.secrets, self.told = folder, control, secrets, list[str]()

    async def operate(self, act: Callable[[Operator], Awaitable[None]]) -> None:
        """Operate while `act` lasts."""
        with Journal(self.bundle.journal, secrets=self.secrets.texts()) as journal:
            operator = Operator(self.bundle, self.secrets, journal, NoPpp(), folder=self.folder, tell=self.told.append)
            running = asyncio.create_task(operator.run())
            try:
                await act(operator)
            finally:
                operator.stop()
                await asyncio.wait_for(running, PATIENCE_S)


async def until(operator: Operator, state: str, reason: str = "") -> dict[str, Any]:
    """Wait for a state of the line; its row in the status."""
    end = time.monotonic() + PATIENCE_S
    while True:
        (row,) = operator.status()["lines"]
        if row["state"] == state and reason in row["reason"]:
            return row
        assert time.monotonic() < end, row
        await asyncio.sleep(0.01)


def station(folder: Path, secrets: Secrets, act: Callable[[Station], Awaitable[None]], **line: Any) -> Station:
    async def run() -> Station:
        with service_in(folder) as service:
            made = Station(folder, await Control.open(service), secrets, **line)
            await act(made)
            made.control.close()
            return made

    return asyncio.run(asyncio.wait_for(run(), 2 * PATIENCE_S))


@pytest.fixture(autouse=True)
def _quick(monkeypatch):
    monkeypatch.setattr(line_module, "SIGNAL_EVERY_S", 0.1)


def test_below_the_least_signal_nothing_is_dialled(tmp_path):
    async def act(made: Station):
        await made.control.plug(properties={"Modem": {"SignalQuality": ["(ub)", [20, True]]}})

        async def wait(operator: Operator):
            row = await until(operator, "waiting", "signal")
            assert row["signal"] == 20
            assert await made.control.asked("Connect") == []
            await made.control.change(MODEM, Modem={"SignalQuality": ["(ub)", [60, True]]})
            await until(operator, "connected")

        await made.operate(wait)

    station(tmp_path, Secrets(), act, least_signal=50)


def test_a_refused_pin_is_not_tried_by_the_next_operator_either(tmp_path):
    async def act(made: Station):
        await made.control.plug(properties={"Modem": {"State": ["i", 2], "UnlockRequired": ["u", 2]}})
        for _ in range(3):
            await made.operate(lambda operator: until(operator, "failed"))
        assert await made.control.asked("SendPin") == ["8642"]

    made = station(tmp_path, Secrets(pins={"lte": "8642"}), act)

    history, loss = read(tmp_path / "ship.journal")
    assert loss is None
    assert any("has refused its PIN" in one.cause for one in history.transitions)
    assert "8642" not in " ".join([*made.told, *(one.cause for one in history.transitions)])


def test_no_secret_is_shown_when_modem_manager_repeats_it(tmp_path):
    async def act(made: Station):
        await made.control.plug()
        await made.control.behave(connect=f"Core.Failed: password {CANARY} was refused")

        async def look(operator: Operator):
            await until(operator, "failed")
            assert CANARY not in str(operator.status())

        await made.operate(look)

    made = station(tmp_path, Secrets(apn_passwords={"lte": CANARY}), act)

    history, _ = read(tmp_path / "ship.journal")
    assert any("was refused" in one.cause for one in history.transitions)
    assert CANARY not in str([*made.told, *history.transitions])
    assert CANARY.encode() not in (tmp_path / "ship.journal").read_bytes()

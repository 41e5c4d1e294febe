"""Ports whose driver hangs in the kernel: their lines say so, the others go on, and the end waits for none of them."""

from __future__ import annotations

import asyncio
import os
import threading
import time
import tty

import pytest

from farlink.operator.backend import StandIn
from farlink.operator.config import Bundle, Secrets
from farlink.operator.config.bundle import Line
from farlink.operator.journal import Journal
from farlink.operator.lines import at_line
from farlink.operator.lines import port as port_module
from farlink.operator.lines.port import Port
from farlink.operator.live import loop
from farlink.operator.live.control import ask

HANGING = 12
"""More than asyncio's own pool has threads on a machine of two cores."""


@pytest.fixture
def driver(monkeypatch):
    """Opens of ports named `hangs...` wait for this event."""
    released, opened, open_now = threading.Event(), [], os.open

    def opening(path, flags, *more, **named):
        if "/hangs" in os.fspath(path) and not str(path).endswith((".journal", ".lock")):
            opened.append(str(path))
            released.wait(60)
            raise OSError(5, "Input/output error")
        return open_now(path, flags, *more, **named)

    monkeypatch.setattr(os, "open", opening)
    released.opened = opened
    yield released
    released.set()


def test_ports_that_hang_stop_neither_the_other_lines_nor_the_end(tmp_path, driver, monkeypatch):
    monkeypatch.setattr(at_line, "_HANGS_S", 0.2)
    master, slave = os.openpty()
    tty.setraw(master)
    (tmp_path / "good").symlink_to(os.ttyname(slave))
    names = [f"hangs-{at}" for at in range(HANGING)] + ["good"]
    lines = tuple(Line(name, str(tmp_path / name), "hayes", number="12") for name in names)
    bundle = Bundle("camp", lines, len(lines), journal=tmp_path / "camp.journal", back_end="stand-in")

    def watched() -> dict[str, dict]:
        until = time.monotonic() + 30
        while True:
            try:
                found = {one["line"]: one for one in ask(bundle.journal, {"do": "status"}, bundle="camp")["lines"]}
                if not any(found[name]["is_port_there"] for name in names[:-1]) and os.read(master, 100):
                    return found
            except Exception:
                assert time.monotonic() < until
            time.sleep(0.02)

    found = {}

    def person() -> None:
        found.update(watched())
        ask(bundle.journal, {"do": "down"}, bundle="camp")

    with Journal(bundle.journal) as journal:
        thread = threading.Thread(target=person)
        thread.start()
        asyncio.run(loop._until_signal(bundle, Secrets(), journal, StandIn(bundle), tmp_path, lambda _: None))
        thread.join()
    assert not driver.is_set()
    assert found["good"]["is_port_there"]
    assert {found[name]["cause"] for name in names[:-1]} == {"its driver hangs"}
    assert sorted(driver.opened) == sorted(str(tmp_path / name) for name in names[:-1]), "each is opened once"
    os.close(master)
    os.close(slave)


def test_pins_that_are_never_told_are_asked_for_once(monkeypatch):
    monkeypatch.setattr(port_module, "_PINS_S", 0.02)
    asked = []

    class Transport:
        async def get_modem_pins(self) -> None:
            asked.append(1)
            await asyncio.Event().wait()

        async def set_modem_pins(self, **_: object) -> None:
            await asyncio.Event().wait()

    async def act() -> None:
        port = Port(lambda: None)
        port._transport = Transport()
        assert [await port.carrier() for _ in range(3)] == [None] * 3
        await port.lower_dtr()
        port._pins.cancel()

    asyncio.run(asyncio.wait_for(act(), 10))
    assert asked == [1]

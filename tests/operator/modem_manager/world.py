"""A private bus with python-dbusmock's ModemManager, and a line that uses it. The system's own bus is never touched."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from farlink.operator.config.modem_manager import ModemManagerSettings
from farlink.operator.lines import Report
from farlink.operator.lines.modem_manager import ModemManagerLine
from farlink.operator.lines.modem_manager.bus import ROOT, SERVICE

PATIENCE_S = 30.0
TEMPLATE = Path(__file__).with_name("mock_template.py")

# No names of people's devices: whoever may connect may do anything.
_POLICY = """<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig><type>session</type><listen>unix:path={socket}</listen><auth>EXTERNAL</auth>
<policy context="default"><allow send_destination="*" eavesdrop="true"/><allow eavesdrop="true"/><allow own="*"/></policy>
</busconfig>
"""


def lacking() -> str:
    """What this machine lacks for these tests; empty if nothing."""
    if shutil.which("dbus-daemon") is None:
        return "needs dbus-daemon: apt-get install dbus"
    missing = [name for name in ("dbus_fast", "dbus", "dbusmock") if importlib.util.find_spec(name) is None]
    return f"needs {', '.join(missing)}: pip install dbus-fast python-dbusmock" if missing else ""


needs_mock = pytest.mark.skipif(bool(lacking()), reason=lacking())


class Service:
    """The bus, and ModemManager on it, each of which may be ended and started."""

    def __init__(self, folder: Path) -> None:
        self._socket = folder / "bus"
        self.address = f"unix:path={self._socket}"
        self._config = folder / "bus.conf"
        self._config.write_text(_POLICY.format(socket=self._socket))
        self._log = (folder / "mock.log").open("ab")
        self._bus: subprocess.Popen[bytes] | None = None
        self.mock: subprocess.Popen[bytes] | None = None

    def start_bus(self) -> None:
        """Start the bus, if it does not run."""
        if self._bus is None:
            command = ["dbus-daemon", f"--config-file={self._config}", "--nofork", "--print-address"]
            self._bus = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=self._log)
            assert self._bus.stdout is not None
            assert self._bus.stdout.readline()

    def start_mock(self) -> None:
        """Start ModemManager, if it does not run."""
        if self.mock is None:
            command = [sys.executable, "-m", "dbusmock", "--system", "-t", "modemmanager"]
            environment = {**os.environ, "DBUS_SYSTEM_BUS_ADDRESS": self.address}
            self.mock = subprocess.Popen(command, env=environment, stdout=self._log, stderr=self._log)

    def end_mock(self) -> None:
        """ModemManager is killed."""
        if self.mock is not None:
            self.mock.kill()
            self.mock.wait()
            self.mock = None

    def end_bus(self) -> None:
        """The bus is gone, and all who were on it."""
        if self._bus is not None:
            self._bus.kill()
            self._bus.wait()
            self._bus = None
            self.end_mock()
            self._socket.unlink(missing_ok=True)

    def pause_mock(self, *, is_paused: bool) -> None:
        """ModemManager is there and answers nothing."""
        assert self.mock is not None
        self.mock.send_signal(signal.SIGSTOP if is_paused else signal.SIGCONT)


@contextmanager
def service_in(folder: Path) -> Iterator[Service]:
    """A bus with ModemManager, which are ended afterwards."""
    service = Service(folder)
    kept = os.environ.get("DBUS_SYSTEM_BUS_ADDRESS")
    os.environ["DBUS_SYSTEM_BUS_ADDRESS"] = service.address
    try:
        service.start_bus()
        service.start_mock()
        yield service
    finally:
        service.end_mock()
        service.end_bus()
        os.environ.pop("DBUS_SYSTEM_BUS_ADDRESS")
        if kept is not None:
            os.environ["DBUS_SYSTEM_BUS_ADDRESS"] = kept


class Control:
    """What tests do to ModemManager and its modems."""

    def __init__(self, bus: Any, dbus: Any) -> None:
        self._bus, self._dbus = bus, dbus
        self._end = asyncio.ensure_future(bus.wait_for_disconnect())
        self._end.add_done_callback(lambda end: end.cancelled() or end.exception())

    @classmethod
    async def open(cls, service: Service) -> Control:
        """Connect, once ModemManager is there."""
        import dbus_fast
        from dbus_fast.aio import MessageBus

        self = cls(await MessageBus(bus_address=service.address).connect(), dbus_fast)
        await self.reload()
        return self

    async def reload(self) -> None:
        """Teach a ModemManager that has started what its template lacks."""
        end = time.monotonic() + PATIENCE_S
        while True:
            try:
                await self._call("org.freedesktop.DBus.Mock", "AddTemplate", "sa{sv}", str(TEMPLATE), {})
            except RuntimeError:
                assert time.monotonic() < end, "no ModemManager"
                await asyncio.sleep(0.02)
            else:
                return

    async def _call(self, interface: str, member: str, signature: str = "", *values: Any) -> Any:
        message = self._dbus.Message(
            destination=SERVICE, path=ROOT, interface=interface, member=member, signature=signature, body=list(values)
        )
        async with asyncio.timeout(PATIENCE_S):
            reply = await self._bus.call(message)
        if reply.message_type == self._dbus.MessageType.ERROR:
            raise RuntimeError(f"{reply.error_name}: {reply.body}")
        return reply.body[0] if reply.body else None

    async def plug(self, **wanted: Any) -> str:
        """Plug a modem in; its path."""
        return str(await self._call("farlink.Test", "Plug", "s", json.dumps(wanted)))

    async def unplug(self, path: str) -> None:
        """Pull a modem out."""
        await self._call("farlink.Test", "Unplug", "s", path)

    async def behave(self, **wanted: Any) -> None:
        """What modems do from now on."""
        await self._call("farlink.Test", "Behave", "s", json.dumps(wanted))

    async def change(self, path: str, **interfaces: dict[str, Any]) -> None:
        """Change properties of an object."""
        await self._call("farlink.Test", "Change", "ss", path, json.dumps(interfaces))

    async def answer_connect(self, how: str) -> None:
        """Answer the calls of Connect that wait."""
        await self._call("farlink.Test", "AnswerConnect", "s", how)

    async def emit(self, interface: str, member: str) -> None:
        """A signal that nobody expects."""
        await self._call("farlink.Test", "Emit", "ss", interface, member)

    async def asked(self, method: str = "") -> list[Any]:
        """What modems were asked: [method, object, value], or the values of one method."""
        found = json.loads(await self._call("farlink.Test", "Asked"))
        return found if not method else [one[2] for one in found if one[0] == method]

    async def drop(self, error: tuple[str, str] = ("", ""), bearer: str = f"{ROOT}/Bearer/0") -> None:
        """The network ends a connection."""
        await self.change(bearer, Bearer={"ConnectionError": ["(ss)", list(error)], "Connected": ["b", False]})

    async def spoof(self, to: str, path: str, interface: str, **changed: Any) -> None:
        """Say in ModemManager's place that properties have changed, to one program alone."""
        values = {name: self._dbus.Variant(*value) for name, value in changed.items()}
        message = self._dbus.Message.new_signal(
            path, "org.freedesktop.DBus.Properties", "PropertiesChanged", "sa{sv}as", [interface, values, []]
        )
        message.destination = to
        await self._bus.send(message)

    async def clean(self) -> None:
        """As after the start."""
        await self._call("farlink.Test", "Clean")

    def close(self) -> None:
        """Leave the bus."""
        self._bus.disconnect()


class Pins:
    """Which PINs were tried."""

    def __init__(self) -> None:
        self.noted: list[str] = []
        self.is_full = False

    def may_try(self, line: str) -> bool:  # noqa: ARG002
        return not self.noted or self.noted[-1] in ("accepted", "allowed")

    def note_tried(self, line: str) -> bool:  # noqa: ARG002
        if not self.is_full:
            self.noted.append("tried")
        return not self.is_full

    def note_outcome(self, line: str, outcome: str) -> None:  # noqa: ARG002
        self.noted.append(outcome)


class World:
    """A line, ModemManager and what the line has reported."""

    def __init__(self, service: Service, settings: ModemManagerSettings, pin: str | None, password: str) -> None:
        self.service, self.pins = service, Pins()
        self.reports: list[Report] = []
        self.line = ModemManagerLine("lte", settings, self.reports.append, pins=self.pins, pin=pin, password=password)
        self.control: Control
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Let the line run."""
        self._task = asyncio.create_task(self.line.run())

    async def stop(self) -> None:
        """Cancel it, as the operator does."""
        if self._task is not None:
            self._task.cancel()
            ended = await asyncio.gather(self._task, return_exceptions=True)
            assert isinstance(ended[0], asyncio.CancelledError), ended
            self._task = None

    def events(self) -> list[str]:
        return [one.event for one in self.reports if one.event not in ("signal", "note")]

    def causes(self, event: str) -> list[str]:
        return [one.cause for one in self.reports if one.event == event]

    async def until(self, condition: Callable[[], Any]) -> Any:
        end = time.monotonic() + PATIENCE_S
        while not (found := condition()):
            if self._task is not None and self._task.done():
                self._task.result()
            assert time.monotonic() < end, (self.events(), self.line.observed(), await self.control.asked())
            await asyncio.sleep(0.005)
        return found

    async def asked_until(self, method: str, times: int = 1) -> list[Any]:
        end = time.monotonic() + PATIENCE_S
        while len(found := await self.control.asked(method)) < times:
            assert time.monotonic() < end, (self.events(), self.line.observed(), await self.control.asked())
            await asyncio.sleep(0.005)
        return found

    async def reported(self, event: str, times: int = 1) -> Report:
        await self.until(lambda: [one.event for one in self.reports].count(event) >= times)
        return [one for one in self.reports if one.event == event][times - 1]

    async def connect(self, call: int = 1) -> None:
        """Dial, until the link is up."""
        self.line.dial(call)
        await self.until(lambda: any((one.event, one.call) == ("carrier", call) for one in self.reports))
        self.line.start_link(call)
        await self.until(lambda: any((one.event, one.call) == ("link-up", call) for one in self.reports))


Act = Callable[[World], Awaitable[None]]


def play(
    service: Service,
    act: Act,
    *,
    pin: str | None = None,
    password: str = "",
    plug: dict[str, Any] | None = None,
    is_alone: bool = False,
    prepare: Act | None = None,
    **settings: Any,
) -> World:
    """A line whose modem is plugged in unless it `is_alone`, what is done before it runs, and what to both."""

    async def run() -> World:
        given = replace(ModemManagerSettings("dev-1"), **settings)
        world = World(service, given, pin, password)
        service.start_bus()
        service.start_mock()
        world.control = await Control.open(service)
        await world.control.clean()
        if not is_alone:
            await world.control.plug(**(plug or {}))
        if prepare is not None:
            await prepare(world)
        world.start()
        try:
            await act(world)
        finally:
            await world.stop()
            world.control.close()
        return world

    return asyncio.run(asyncio.wait_for(run(), 2 * PATIENCE_S))

"""ModemManager's modems as they come and go, and calls that end with the modem they are about."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

from farlink.operator.lines.modem_manager import bus, values
from farlink.operator.lines.modem_manager.bus import Bus, BusError
from farlink.operator.lines.modem_manager.modem import MODEM, SIM, Modem, listed, meant

READ_S = 10.0
"""How long ModemManager may take to tell properties: it has them at hand."""

_SERVICE_EVERY_S = 5.0
# Signals tell what comes and goes; this is for one that was lost.
_OBJECTS_EVERY_S = 30.0

_Answer = TypeVar("_Answer")
_Signal = tuple[str, str, str, list[Any]]


class Gone(Exception):
    """The modem, ModemManager or the bus is gone: which, in words."""


class Watch:
    """What ModemManager tells of its modems over one connection to the bus.

    Parameters
    ----------
    wake
        Called whenever something has changed.

    Attributes
    ----------
    bus
        The connection.
    path
        Of the modem in use; empty if there is none.
    """

    def __init__(self, wake: asyncio.Event) -> None:
        self._wake = wake
        self._objects: dict[str, dict[str, Any]] = {}
        self._iccids: dict[str, str] = {}
        self._owner = ""
        # Signals that came while an answer was on its way: they tell what is newer than it, or the same.
        self._meanwhile: list[list[_Signal]] = []
        self._listeners: dict[str, dict[str, dict[str, Any]]] = {}
        self.path = ""
        self.bus: Bus

    async def open(self) -> None:
        """Connect to the bus.

        Raises
        ------
        BusError
            If it cannot be reached.
        """
        self.bus = await Bus.open(self._heard, self._wake.set)

    async def close(self) -> None:
        """Leave the bus."""
        await self.bus.close()

    @property
    def interfaces(self) -> dict[str, Any]:
        """Interface -> properties of the modem in use."""
        return self._objects.get(self.path, {})

    @property
    def modem(self) -> Modem:
        """The modem in use."""
        return Modem.of(self.path, self.interfaces)

    def check(self) -> None:
        """Find out whether the modem in use is still there.

        Raises
        ------
        Gone
            If it is not.
        """
        if self.bus.is_lost:
            raise Gone("the connection to the D-Bus system bus is lost")
        if self.bus.owner != self._owner:
            raise Gone("ModemManager has left the bus")
        if MODEM not in self.interfaces:
            raise Gone("the modem is unplugged")

    async def find(self, name: str, absent: Callable[[str], float]) -> None:
        """Wait until there is one modem of this name, and use it.

        Parameters
        ----------
        name
            One of `Modem.names`.
        absent
            Gets why there is none, again and again, and says within how many seconds it wants to be asked again.

        Raises
        ------
        Gone
            If the connection to the bus is lost.
        """
        self.path, read_at, why = "", 0.0, ""
        while True:
            if self.bus.is_lost:
                raise Gone("the connection to the D-Bus system bus is lost")
            now = time.monotonic()
            if self.bus.owner != self._owner:
                read_at = now if self.bus.owner else min(read_at, now + _SERVICE_EVERY_S)
                self._objects, self._owner, why = {}, self.bus.owner, "ModemManager is not on the bus"
            if now >= read_at:
                try:
                    await self._read_objects()
                    read_at, why = time.monotonic() + _OBJECTS_EVERY_S, ""
                except BusError as error:
                    why, read_at = f"ModemManager does not answer: {error}", time.monotonic() + _SERVICE_EVERY_S
            absence = why
            if not why:
                modems = await self.modems()
                found = meant(name, modems)
                if len(found) == 1:
                    self.path = found[0].path
                    return
                absence = (
                    f"{len(found)} modems have this name: {listed(found)}"
                    if found
                    else f"ModemManager has no such modem; it has {listed(modems) or 'none'}"
                )
            again_s = absent(absence)
            with suppress(TimeoutError):
                async with asyncio.timeout(max(0.0, min(again_s, read_at - time.monotonic()))):
                    await self._wake.wait()
            self._wake.clear()

    async def modems(self, *, is_new: bool = False) -> list[Modem]:
        """All modems, with the numbers of their SIMs.

        Parameters
        ----------
        is_new
            Whether ModemManager is asked for them first.

        Raises
        ------
        BusError
            If it does not tell them.
        """
        if is_new:
            await self._read_objects()
        found = []
        for path, interfaces in list(self._objects.items()):
            if MODEM in interfaces:
                found.append(Modem.of(path, interfaces, await self._iccid(values.path(interfaces[MODEM], "Sim"))))
        return found

    async def answer(self, call: Coroutine[Any, Any, _Answer]) -> _Answer:
        """The answer of a call, as long as the modem in use is there.

        Raises
        ------
        BusError
            If it fails.
        Gone
            If the modem goes before.
        """
        task = asyncio.ensure_future(call)
        task.add_done_callback(lambda _: self._wake.set())
        try:
            while not task.done():
                await self._wake.wait()
                self._wake.clear()
                self.check()
            return task.result()
        except BusError:
            self.check()
            raise
        finally:
            # Tasks that wait for something else look again.
            self._wake.set()
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    def follow(self, path: str, interface: str) -> dict[str, Any]:
        """The properties of another object, filled and kept up to date by signals; `read` gets them all."""
        return self._listeners.setdefault(path, {}).setdefault(interface, {})

    def leave(self, path: str) -> None:
        """Follow an object no more."""
        self._listeners.pop(path, None)

    async def read(self, path: str, interface: str) -> dict[str, Any]:
        """Read all properties of an object that is followed.

        Raises
        ------
        BusError
            If they cannot be read.
        """
        kept = self.follow(path, interface)
        with self._collected() as newer:
            own = await self.bus.properties(path, interface, limit_s=READ_S)
        kept.update(own)
        for one in newer:
            self._apply(*one)
        return kept

    async def _read_objects(self) -> None:
        with self._collected() as newer:
            objects = await self.bus.objects(limit_s=READ_S)
        self._objects, self._owner, self._iccids = objects, self.bus.owner, {}
        for one in newer:
            self._apply(*one)

    async def _iccid(self, sim: str) -> str:
        """The number of a SIM; empty if it does not tell."""
        if sim and sim not in self._iccids:
            try:
                own = await self.bus.properties(sim, SIM, limit_s=READ_S)
            except BusError:
                return ""
            self._iccids[sim] = values.text(own, "SimIdentifier")
        return self._iccids.get(sim, "")

    # Signals.

    @contextmanager
    def _collected(self) -> Iterator[list[_Signal]]:
        newer: list[_Signal] = []
        self._meanwhile.append(newer)
        try:
            yield newer
        finally:
            self._meanwhile.remove(newer)

    def _heard(self, path: str, interface: str, member: str, body: list[Any]) -> None:
        for newer in self._meanwhile:
            newer.append((path, interface, member, body))
        self._apply(path, interface, member, body)
        self._wake.set()

    def _apply(self, path: str, interface: str, member: str, body: list[Any]) -> None:
        match path, interface.rpartition(".")[2], member, body:
            case (bus.ROOT, "ObjectManager", "InterfacesAdded", [str(added), dict(interfaces)]):
                self._objects.setdefault(added, {}).update(interfaces)
            case (bus.ROOT, "ObjectManager", "InterfacesRemoved", [str(removed), list(names)]):
                for name in names:
                    self._objects.get(removed, {}).pop(name, None)
                if MODEM not in self._objects.get(removed, {}):
                    self._objects.pop(removed, None)
            case (_, "Properties", "PropertiesChanged", [str(name), dict(changed), *_]):
                for kept in (self._objects, self._listeners):
                    table = kept.get(path, {}).get(name)
                    if isinstance(table, dict):
                        table.update(changed)

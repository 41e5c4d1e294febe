"""A connection to the D-Bus system bus: each call has a limit of time, and each failure is one exception."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from farlink.extras import require
from farlink.untrusted import printable

SERVICE = "org.freedesktop.ModemManager1"
ROOT = "/org/freedesktop/ModemManager1"

CONNECT_S = 10.0
"""How long the bus may take until it has let this program in."""

_DBUS = "org.freedesktop.DBus"
_PREFIXES = (f"{SERVICE}.Error.", f"{_DBUS}.Error.")
_MOST_WORDS = 200


class BusError(Exception):
    """A call that failed.

    Parameters
    ----------
    name
        Of the error in D-Bus, such as ``org.freedesktop.ModemManager1.Error.Core.Unauthorized``.
    text
        In the words of who refused.

    Examples
    --------
    >>> str(BusError("org.freedesktop.ModemManager1.Error.MobileEquipment.NoNetwork", "No network service"))
    'No network service (MobileEquipment.NoNetwork)'
    """

    def __init__(self, name: str, text: str) -> None:
        short = next((name.removeprefix(prefix) for prefix in _PREFIXES if name.startswith(prefix)), name)
        said = printable(text, _MOST_WORDS)
        # Messages of this program itself need no name.
        is_own = name in (f"{_DBUS}.Error.NoServer", f"{_DBUS}.Error.Disconnected")
        super().__init__(said if is_own and said else f"{said} ({printable(short, 80)})" if said else printable(short, 80))
        self.name = name

    @property
    def is_unanswered(self) -> bool:
        """Whether nobody knows if the call has done something."""
        return self.name in (f"{_DBUS}.Error.NoReply", f"{_DBUS}.Error.Timeout", f"{_DBUS}.Error.Disconnected")

    @property
    def is_undelivered(self) -> bool:
        """Whether it is certain that the call has done nothing: nobody was there, or may be asked by this user."""
        kinds = ("ServiceUnknown", "UnknownObject", "UnknownInterface", "UnknownMethod", "AccessDenied", "NameHasNoOwner")
        return self.name in {f"{_DBUS}.Error.{kind}" for kind in kinds} or self.name == f"{SERVICE}.Error.Core.Unauthorized"


def unreachable(error: Exception) -> BusError:
    """The failure to reach the bus, in words."""
    if isinstance(error, TimeoutError):
        return BusError(f"{_DBUS}.Error.Timeout", f"the D-Bus system bus has not answered for {CONNECT_S:g} s")
    words = error.strerror if isinstance(error, OSError) and error.strerror else str(error) or type(error).__name__
    return BusError(f"{_DBUS}.Error.NoServer", f"the D-Bus system bus cannot be reached: {words}")


Heard = Callable[[str, str, str, list[Any]], None]
"""Gets path, interface, member and values of a signal of ModemManager."""


class Bus:
    """An open connection, which hears ModemManager's signals.

    Attributes
    ----------
    is_lost
        Whether the connection has ended.
    owner
        Who is ModemManager on the bus; empty if nobody is.
    """

    def __init__(self, heard: Heard, wake: Callable[[], None]) -> None:
        self._heard, self._wake = heard, wake
        self._dbus: Any = require("dbus_fast", "a line of kind modemmanager")
        self._bus: Any = None
        self._watching: asyncio.Task[None] | None = None
        self.is_lost = False
        self.owner = ""

    @classmethod
    async def open(cls, heard: Heard, wake: Callable[[], None]) -> Bus:
        """Connect to the bus of ``DBUS_SYSTEM_BUS_ADDRESS``, else to that of the system.

        Parameters
        ----------
        heard
            Gets each signal.
        wake
            Called when ModemManager comes or goes, and when the connection is lost.

        Raises
        ------
        BusError
            If it cannot be reached.
        MissingExtraError
            If dbus-fast is not installed.
        """
        self = cls(heard, wake)
        aio = require("dbus_fast.aio", "a line of kind modemmanager")
        try:
            async with asyncio.timeout(CONNECT_S):
                bus = aio.MessageBus(bus_type=self._dbus.BusType.SYSTEM)
                self._bus = await bus.connect()
        except Exception as error:
            # An address may be nonsense, and whoever listens there may answer anything.
            raise unreachable(error) from error
        self._bus.add_message_handler(self._took)
        self._watching = asyncio.create_task(self._watch())
        try:
            for rule in (
                f"type='signal',sender='{SERVICE}'",
                f"type='signal',sender='{_DBUS}',interface='{_DBUS}',member='NameOwnerChanged',arg0='{SERVICE}'",
            ):
                await self._of_bus("AddMatch", rule)
            with suppress(BusError):
                (self.owner,) = await self._of_bus("GetNameOwner", SERVICE)
        except BaseException:
            await self.close()
            raise
        return self

    async def close(self) -> None:
        """Leave the bus."""
        self.is_lost = True
        with suppress(Exception):
            self._bus.disconnect()
        if self._watching is not None:
            self._watching.cancel()
            await asyncio.gather(self._watching, return_exceptions=True)

    async def call(
        self, path: str, method: str, signature: str = "", values: Sequence[Any] = (), *, limit_s: float | None
    ) -> list[Any]:
        """Call a method of ModemManager.

        Parameters
        ----------
        path
            Of the object.
        method
            With its interface: ``"org.freedesktop.ModemManager1.Modem.Enable"``.
        signature, values
            What it gets. Values of type ``v`` are pairs of signature and value.
        limit_s
            How long the answer may take, in s; None for ever.

        Returns
        -------
        list
            The values of the answer, without D-Bus's types.

        Raises
        ------
        BusError
            If it is refused, not answered in time, or the connection is lost.
        """
        interface, _, member = method.rpartition(".")
        return await self._call(SERVICE, path, interface, member, signature, values, limit_s)

    async def properties(self, path: str, interface: str, *, limit_s: float) -> dict[str, Any]:
        """All properties of an interface.

        Raises
        ------
        BusError
            As `call`.
        """
        answer = await self.call(path, f"{_DBUS}.Properties.GetAll", "s", [interface], limit_s=limit_s)
        return answer[0] if answer and isinstance(answer[0], dict) else {}

    async def objects(self, *, limit_s: float) -> dict[str, dict[str, Any]]:
        """Path -> interface -> properties of all modems. It starts ModemManager where D-Bus may do so.

        Raises
        ------
        BusError
            As `call`.
        """
        answer = await self.call(ROOT, f"{_DBUS}.ObjectManager.GetManagedObjects", limit_s=limit_s)
        found = answer[0] if answer and isinstance(answer[0], dict) else {}
        return {path: interfaces for path, interfaces in found.items() if isinstance(interfaces, dict)}

    async def _of_bus(self, member: str, value: str) -> list[Any]:
        return await self._call(_DBUS, "/org/freedesktop/DBus", _DBUS, member, "s", [value], CONNECT_S)

    async def _call(
        self,
        to: str,
        path: str,
        interface: str,
        member: str,
        signature: str,
        values: Sequence[Any],
        limit_s: float | None,
    ) -> list[Any]:
        dbus = self._dbus
        body = [self._variants(value) for value in values]
        try:
            message = dbus.Message(
                destination=to, path=path, interface=interface, member=member, signature=signature, body=body
            )
        except Exception as error:
            # Values may come from the other side, as a path does.
            raise BusError(f"{_DBUS}.Error.InvalidArgs", f"{member}: {error}") from error
        try:
            async with asyncio.timeout(limit_s):
                reply = await self._bus.call(message)
        except TimeoutError as error:
            raise BusError(f"{_DBUS}.Error.NoReply", f"{member} was not answered for {limit_s:g} s") from error
        except Exception as error:
            raise BusError(f"{_DBUS}.Error.Disconnected", f"{member}: the connection to the bus is lost") from error
        if reply is None:
            raise BusError(f"{_DBUS}.Error.Disconnected", f"{member}: the connection to the bus is lost")
        body = dbus.unpack.unpack_variants(reply.body)
        if reply.message_type == dbus.MessageType.ERROR:
            raise BusError(str(reply.error_name), str(body[0]) if body else "")
        return list(body)

    def _variants(self, value: Any) -> Any:
        """A dictionary of pairs (signature, value) as one of variants."""
        if not isinstance(value, dict):
            return value
        return {key: self._dbus.Variant(*one) for key, one in value.items()}

    def _took(self, message: Any) -> None:
        """Take a message, if it is a signal of ModemManager: anybody may send signals to this program alone."""
        if message.message_type != self._dbus.MessageType.SIGNAL:
            return
        body = self._dbus.unpack.unpack_variants(message.body)
        if message.sender == _DBUS:
            if message.member == "NameOwnerChanged" and len(body) == 3 and body[0] == SERVICE:
                self.owner = str(body[2])
                self._wake()
        elif message.sender == self.owner:
            self._heard(str(message.path), str(message.interface), str(message.member), list(body))

    async def _watch(self) -> None:
        with suppress(Exception):
            await self._bus.wait_for_disconnect()
        self.is_lost = True
        self._wake()

"""A serial port in asyncio: bytes are collected, and its end is noticed."""

from __future__ import annotations

import asyncio
import errno
import select
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from farlink.extras import require

_MOST_UNREAD_BYTES = 1 << 20
_CLOSE_S = 5.0
# A driver that takes longer to tell the pins hangs.
_PINS_S = 5.0


class Port:
    """An open tty. Nobody else opens it (`flock`), but for programs that get it from its owner.

    Attributes
    ----------
    is_lost
        Whether the tty has hung up: its carrier, or the device, is gone.
    has_pins
        Whether it has DTR and DCD; a pty has not.
    """

    def __init__(self, wake: Callable[[], None]) -> None:
        self._wake = wake
        self._unread = bytearray()
        self._transport: Any = None
        self._is_closed = asyncio.Event()
        self._pins: asyncio.Future[Any] | None = None
        self.is_lost = False
        self.has_pins = False

    @classmethod
    async def open(cls, path: str, speed_bps: int, wake: Callable[[], None]) -> Port:
        """Open a tty.

        Parameters
        ----------
        path
            Its name.
        speed_bps
            Of the serial port.
        wake
            Called when bytes have come, or the end.

        Raises
        ------
        OSError
            If it cannot be opened or is in use.
        """
        serialx = require("serialx", "a line with a modem")
        port = cls(wake)
        low = serialx.PinState.LOW
        opening = asyncio.ensure_future(
            serialx.create_serial_connection(
                asyncio.get_running_loop(),
                lambda: _Listener(port),
                url=path,
                baudrate=speed_bps,
                exclusive=True,
                # The last close lowers DTR, so that the modem hangs up.
                rts_on_close=low,
                dtr_on_close=low,
            )
        )
        try:
            port._transport, _ = await asyncio.shield(opening)
        except asyncio.CancelledError:
            # It ends when the driver has opened or refused the port, which the end of the operator does not wait for.
            opening.cancel()
            raise
        except OSError as error:
            if error.errno is None:
                raise OSError(errno.EIO, str(error)) from error
            raise
        port.has_pins = await port.carrier() is not None
        return port

    @property
    def fileno(self) -> int:
        """Its file descriptor; -1 of a lost port."""
        return -1 if self.is_lost else int(self._transport.get_extra_info("serial").fileno())

    def write(self, data: bytes) -> None:
        """Write to the modem; to a lost port nothing."""
        if not self.is_lost:
            with suppress(OSError):
                self._transport.write(data)

    def take(self) -> bytes:
        """Bytes that have come."""
        taken = bytes(self._unread)
        self._unread.clear()
        return taken

    def pause(self) -> None:
        """Leave what comes to the program that carries PPP."""
        self._transport.pause_reading()

    def resume(self) -> None:
        """Read again."""
        self._transport.resume_reading()

    @property
    def is_hung_up(self) -> bool:
        """Whether the tty has hung up, which is noticed while nothing is read, too."""
        if self.is_lost:
            return True
        poll = select.poll()
        poll.register(self.fileno, 0)
        return any(mask & select.POLLHUP for _, mask in poll.poll(0))

    async def carrier(self) -> bool | None:
        """DCD; None if the port has none, or its driver hangs: then it is not asked again before it has answered."""
        serialx = require("serialx", "a line with a modem")
        if self._pins is None or self._pins.done():
            self._pins = asyncio.ensure_future(self._transport.get_modem_pins())
        done, _ = await asyncio.wait([self._pins], timeout=_PINS_S)
        if not done or self._pins.exception() is not None:
            return None
        pins = self._pins.result()
        return None if pins.car is serialx.PinState.UNDEFINED else pins.car is serialx.PinState.HIGH

    async def lower_dtr(self) -> None:
        """Tell the modem to hang up."""
        serialx = require("serialx", "a line with a modem")
        with suppress(OSError, TimeoutError):
            async with asyncio.timeout(_PINS_S):
                await self._transport.set_modem_pins(dtr=serialx.PinState.LOW)

    async def close(self) -> None:
        """Close it, unless that takes too long: then it is closed in the background."""
        if self._transport is not None:
            self._transport.abort()
            with suppress(TimeoutError):
                async with asyncio.timeout(_CLOSE_S):
                    await self._is_closed.wait()

    def _came(self, data: bytes) -> None:
        self._unread += data
        del self._unread[:-_MOST_UNREAD_BYTES]
        self._wake()

    def _ended(self) -> None:
        self.is_lost = True
        self._is_closed.set()
        self._wake()


class _Listener(asyncio.Protocol):
    def __init__(self, port: Port) -> None:
        self._port = port

    def data_received(self, data: bytes) -> None:
        self._port._came(data)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        self._port._ended()

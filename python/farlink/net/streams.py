"""Streams of bytes between hosts, for asyncio. The page `docs/guides/streams.md` begins with two programs."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from farlink.errors import ArgumentError, TransferError, core_errors
from farlink.net.waits import until

if TYPE_CHECKING:
    from farlink._core import NetConnection, NetListener

# What one call hands over to Rust: enough to make calls seldom.
_PIECE_BYTES = 1 << 16
# How long connections may take to end when their listener is closed; after a failure, so that nobody waits long for its report.
_CLOSE_S = 10.0
_CLOSE_AFTER_FAILURE_S = 1.0


@dataclass(frozen=True)
class Statistics:
    """Measurements of a connection, of the direction away from this host."""

    round_trip_s: float | None
    """The latest round trip in s; None before the first."""
    rate_bps: float | None
    """The rate at which packets leave, in bit/s, headers included; None before it is known."""
    settled_bytes: int
    """Bytes from the beginning of what was written that the peer has."""
    in_flight_bytes: int
    """Bytes that were sent and are not acknowledged yet."""


class Connection:
    """A connection to another host: a stream of bytes in each direction. `connect` opens one, a `Listener` accepts one.

    With ``async with`` it is closed at the end. One task may read while another one writes; tasks that write take turns.
    Nothing is lost when a task that reads is cancelled: the next call reads on.
    """

    peer: str
    """Public key of the peer."""
    name: str | None
    """Name of the peer; None if this host does not trust it."""

    def __init__(self, core: NetConnection, name: str | None) -> None:
        self.peer = core.peer
        self.name = name
        self._core = core
        self._reading = asyncio.Lock()
        self._writing = asyncio.Lock()
        # Read for `readexactly` before all of it was there.
        self._ahead = bytearray()
        self._is_ended = False
        self._is_delivered = False

    @property
    def remote_address(self) -> str:
        """Where the peer is; another address after it has moved, and the last one when the connection has ended."""
        return self._core.remote_address()

    @property
    def statistics(self) -> Statistics | None:
        """Measurements until now; None when the connection has ended."""
        state = self._core.statistics()
        return state and Statistics(*state)

    async def read(self, most_bytes: int = 65536) -> bytes:
        """Return what has arrived; wait if that is nothing.

        Parameters
        ----------
        most_bytes
            Return no more than this, 1 at least; what is left is there for the next call.

        Returns
        -------
        bytes
            Empty if the peer has ended its direction. That says nothing about whether it wrote all that it wanted to.

        Raises
        ------
        TransferError
            If the peer is silent for too long or has restarted, or the connection is closed.
        """
        if most_bytes < 1:
            raise ArgumentError(f"{most_bytes} bytes cannot be read", "give 1 or more")
        async with self._reading:
            if self._ahead:
                piece = bytes(self._ahead[:most_bytes])
                del self._ahead[:most_bytes]
                return piece
            return await self._arrived(most_bytes)

    async def readexactly(self, count: int) -> bytes:
        """Return so many bytes; wait until they are there.

        Raises
        ------
        asyncio.IncompleteReadError
            If the peer has ended its direction before; its `partial` has the bytes that came.
        TransferError
            As `read`.
        """
        async with self._reading:
            while len(self._ahead) < count:
                piece = await self._arrived(_PIECE_BYTES)
                if not piece:
                    partial = bytes(self._ahead)
                    self._ahead.clear()
                    raise asyncio.IncompleteReadError(partial, count)
                self._ahead += piece
            data = bytes(self._ahead[:count])
            del self._ahead[:count]
            return data

    async def _arrived(self, most_bytes: int) -> bytes:
        while True:
            with core_errors():
                data = self._core.try_read(most_bytes)
            if data is not None:
                return data
            await until(self._core.until_readable)

    def __aiter__(self) -> Self:
        """Read piece after piece, of any lengths, until the peer has ended its direction."""
        return self

    async def __anext__(self) -> bytes:
        piece = await self.read()
        if not piece:
            raise StopAsyncIteration
        return piece

    async def write(self, data: bytes | bytearray | memoryview) -> None:
        """Write all of `data`; wait as long as there is no room for it.

        It goes out at once, and is delivered even if the connection is closed, as long as the program runs. If the task is
        cancelled, a part from the beginning has been written.

        Raises
        ------
        TransferError
            If the peer is silent for too long or has restarted, or the connection or its own direction has ended.
        """
        rest = memoryview(data).cast("B")
        async with self._writing:
            if self._is_ended:
                raise TransferError(f"{self.remote_address}: the own direction has ended", "write before finish()")
            while rest:
                with core_errors():
                    taken = self._core.try_write(bytes(rest[:_PIECE_BYTES]))
                rest = rest[taken:]
                if not taken:
                    await until(self._core.until_writable)

    async def finish(self) -> None:
        """End the own direction, and wait until the peer's host has all of it. Reading goes on.

        Raises
        ------
        TransferError
            If the peer is silent for too long or has restarted, or the connection is closed: it may lack some.
        """
        async with self._writing:
            self._is_ended = True
            while not self._is_delivered:
                with core_errors():
                    self._is_delivered = self._core.try_finish()
                if not self._is_delivered:
                    await until(self._core.until_finished)

    async def close(self) -> None:
        """Finish, then wait until the peer has ended its direction as well, 10 s at most. What it still writes is dropped.

        Raises
        ------
        TransferError
            As `finish`; the connection is closed nevertheless.
        """
        if self._core.is_closed():
            return
        try:
            await self.finish()
        finally:
            self._core.close()
        await until(self._core.until_ended)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            await self.close()
        else:
            # What was written is delivered behind the scenes: a failure, or a cancellation, does not wait for the peer.
            self._core.close()

    def __repr__(self) -> str:
        state = " (closed)" if self._core.is_closed() else ""
        return f"<farlink.net.Connection with {self.name or self.peer} at {self.remote_address}{state}>"


class Listener:
    """A socket at which connections of trusted hosts are accepted; `listen` opens one.

    With ``async with`` it is closed at the end, and ``async for`` gives one connection after the other.
    """

    address: str
    """Address and port of the socket."""
    public_key: str
    """The own public key."""

    def __init__(self, core: NetListener, names: dict[str, str]) -> None:
        self.address = core.address
        self.public_key = core.public_key
        self._core = core
        self._names = names
        self._accepting = asyncio.Lock()

    async def accept(self) -> Connection:
        """Return the next connection; wait for one. None is lost if the task is cancelled.

        Raises
        ------
        TransferError
            If the listener is closed, or its socket fails.
        """
        async with self._accepting:
            while True:
                with core_errors():
                    core = self._core.try_accept()
                if core is not None:
                    return Connection(core, self._names.get(core.peer))
                if self._core.is_closed():
                    raise TransferError(f"{self.address}: the listener is closed", "listen again")
                await until(self._core.until_accepted)

    def __aiter__(self) -> Self:
        """Accept one connection after the other until the listener is closed."""
        return self

    async def __anext__(self) -> Connection:
        try:
            return await self.accept()
        except TransferError:
            if self._core.is_closed():
                raise StopAsyncIteration from None
            raise

    async def close(self) -> None:
        """Accept nothing more, close all connections, and free the socket.

        What was written to the connections is delivered, within 10 s at most: `Connection.finish` waits as long as it takes.
        Peers that do not end their directions within 2 s after that are left.
        """
        await self._close(_CLOSE_S)

    async def _close(self, within_s: float) -> None:
        self._core.close(within_s)
        await until(self._core.until_ended)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        await self._close(_CLOSE_S if kind is None else _CLOSE_AFTER_FAILURE_S)

    def __repr__(self) -> str:
        return f"<farlink.net.Listener at {self.address}{' (closed)' if self._core.is_closed() else ''}>"

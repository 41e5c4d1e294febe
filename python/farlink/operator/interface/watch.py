"""The interfaces of this machine as netlink tells them, and requests for routes."""

from __future__ import annotations

import asyncio
import errno
import os
import socket
from collections.abc import Callable
from contextlib import suppress

from farlink.operator.interface import netlink
from farlink.operator.interface.netlink import Message, Route
from farlink.operator.interface.table import Table

_RECEIVED_BYTES = 1 << 16
_BUFFER_BYTES = 1 << 20
# Other lines want to be moved, too.
_MOST_AT_ONCE = 256
_ANSWER_S = 2.0


class Watch:
    """Follows netlink while it is open.

    Parameters
    ----------
    changed
        Is called when something may have changed.
    has_routes
        Whether default routes are followed, too.

    Attributes
    ----------
    table
        What is known.
    """

    def __init__(self, changed: Callable[[], None], has_routes: bool = True) -> None:
        self.table = Table(has_routes=has_routes)
        self._changed, self._has_routes = changed, has_routes
        self._socket: socket.socket | None = None
        # Beside those of the table's requests.
        self._sequence = 1 << 31
        self._waiting: dict[int, asyncio.Future[int]] = {}

    def open(self) -> None:
        """Ask for everything, and listen.

        Raises
        ------
        OSError
            If there is no netlink.
        """
        self.table = Table(has_routes=self._has_routes)
        flags = socket.SOCK_RAW | socket.SOCK_CLOEXEC | socket.SOCK_NONBLOCK
        opened = socket.socket(socket.AF_NETLINK, flags, socket.NETLINK_ROUTE)
        try:
            opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _BUFFER_BYTES)
            opened.bind((0, netlink.GROUPS | (netlink.ROUTE_GROUP if self._has_routes else 0)))
        except OSError:
            opened.close()
            raise
        self._socket = opened
        asyncio.get_running_loop().add_reader(self._socket, self._read)
        self._ask()

    def close(self) -> None:
        """Listen no longer."""
        if self._socket is not None:
            asyncio.get_running_loop().remove_reader(self._socket)
            self._socket.close()
            self._socket = None
        for waiting in self._waiting.values():
            waiting.cancel()
        self._waiting.clear()

    def look(self, index: int) -> None:
        """Ask for the counters of an interface."""
        self._send(netlink.get_link(index, 0))

    async def change_route(self, route: Route, *, is_new: bool) -> None:
        """Add a default route, or take it away. One that is gone is no error.

        Raises
        ------
        OSError
            If that is refused, or nobody answers. `FileExistsError` if another route has its metric.
        """
        self._sequence += 1
        sequence = self._sequence
        self._waiting[sequence] = asyncio.get_running_loop().create_future()
        try:
            self._send(netlink.change_route(route, sequence, is_new=is_new))
            async with asyncio.timeout(_ANSWER_S):
                number = await self._waiting[sequence]
        finally:
            self._waiting.pop(sequence, None)
        # ESRCH: there is no such route; ENODEV: its interface is gone, and the route with it.
        if number not in (0, *(() if is_new else (errno.ESRCH, errno.ENODEV))):
            raise OSError(number, os.strerror(number))

    def _send(self, data: bytes) -> None:
        if self._socket is not None and data:
            # A full buffer: the next timer asks again.
            with suppress(BlockingIOError):
                self._socket.sendto(data, (0, 0))

    def _ask(self) -> None:
        self._send(self.table.poll_output())

    def _read(self) -> None:
        is_news = False
        for _ in range(_MOST_AT_ONCE):
            if self._socket is None:
                return
            try:
                data, sender = self._socket.recvfrom(_RECEIVED_BYTES)
            except BlockingIOError:
                break
            except OSError:
                self.table.lost()  # ENOBUFS: more was told than the buffer holds
                self._ask()
                break
            if sender[0] == 0:  # of the kernel; other processes may send, too
                found = self.table.feed(data)
                for message in found:
                    self._answered(message)
                is_news = is_news or any(one.content is not None or one.kind == netlink.DONE for one in found)
                self._ask()
        if is_news:
            self._changed()

    def _answered(self, message: Message) -> None:
        waiting = self._waiting.get(message.sequence)
        if message.kind == netlink.ERROR and waiting is not None and not waiting.done():
            waiting.set_result(message.errno)

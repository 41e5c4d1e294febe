"""Waits of asyncio for the extension, whose threads run no Python."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    from farlink._core import NetWaits


class _Waits:
    """The waits of an event loop, which watches a file descriptor of theirs. It is kept by the event loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        from farlink import _core

        self.core = _core.NetWaits()
        self.futures: dict[int, asyncio.Future[None]] = {}
        loop.add_reader(self.core.fileno(), self._tell)

    def _tell(self) -> None:
        for number in self.core.ended():
            future = self.futures.get(number)
            if future is not None and not future.done():
                future.set_result(None)


_OF_LOOPS: WeakKeyDictionary[asyncio.AbstractEventLoop, _Waits] = WeakKeyDictionary()


async def until(begin: Callable[[NetWaits], int]) -> None:
    """Wait until a wait has ended; it is cancelled with the task.

    Parameters
    ----------
    begin
        Begins it, as ``connection.until_readable`` does.
    """
    loop = asyncio.get_running_loop()
    waits = _OF_LOOPS.get(loop)
    if waits is None:
        waits = _OF_LOOPS[loop] = _Waits(loop)
    number = begin(waits.core)
    future = waits.futures[number] = loop.create_future()
    try:
        await future
    finally:
        del waits.futures[number]
        waits.core.cancel(number)

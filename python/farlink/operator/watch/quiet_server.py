"""A server that ends quietly at a signal, as an operator does."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import socket
from collections.abc import Callable, Iterator

import uvicorn


class QuietServer(uvicorn.Server):
    """uvicorn on one socket until SIGTERM, SIGINT or SIGHUP; its own handlers would raise the signal again at the end."""

    async def until_signal(self, listener: socket.socket, *, began: Callable[[], object] = lambda: None) -> None:
        """Serve until a signal.

        Parameters
        ----------
        listener
            Listens already.
        began
            Called once signals end it quietly.
        """
        numbers = [signal.SIGINT, signal.SIGTERM]
        if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # as `nohup` has it
            numbers.append(signal.SIGHUP)
        for number in numbers:
            with contextlib.suppress(RuntimeError, ValueError):  # not in the main thread
                asyncio.get_running_loop().add_signal_handler(number, self._end)
        began()
        await self.serve([listener])

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals to `until_signal`."""
        yield

    def _end(self) -> None:
        self.should_exit = True

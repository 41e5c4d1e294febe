"""A user's program, started with each change of a line and each alert."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from farlink.operator.backend.process import dies_with_us

# The shell gets SIGTERM when the operator dies, and ends its group: the program, and all that this has started. If the operator
# has died before the shell begins, none comes.
_LAUNCHER = """trap 'kill -KILL 0' TERM; [ "$PPID" = "$2" ] || exit 1; "$1" & wait $!"""
_LIMIT_S = 30.0
_MOST_RUNNING = 4
_MOST_WAITING = 1000


class Hooks:
    """Starts the program with what happened in its environment, in order, a few at a time; late ones are left out.

    Parameters
    ----------
    program
        The program; None for none.

    Attributes
    ----------
    left_out
        How many events it was not started for, since too many waited.
    failures
        How often it could not be started, failed, or took too long.
    last_failure
        Why it failed the last time; empty if it did not.
    """

    def __init__(self, program: Path | None) -> None:
        self._program = program
        self._waiting: asyncio.Queue[dict[str, str]] = asyncio.Queue(_MOST_WAITING)
        self._workers: list[asyncio.Task[None]] = []
        self.left_out = 0
        self.failures = 0
        self.last_failure = ""

    def tell(self, values: Mapping[str, object]) -> None:
        """Start the program for an event: its values are in ``FARLINK_NAME``."""
        if self._program is None:
            return
        if not self._workers:
            self._workers = [asyncio.create_task(self._work()) for _ in range(_MOST_RUNNING)]
        given = {f"FARLINK_{name.upper()}": str(value).replace("\0", "") for name, value in values.items() if value is not None}
        try:
            self._waiting.put_nowait(given)
        except asyncio.QueueFull:
            self.left_out += 1

    def _failed(self, why: str) -> None:
        self.failures += 1
        self.last_failure = why

    async def close(self, within_s: float = 2.0) -> None:
        """Give those that wait a little time, then end them."""
        if self._workers:
            with suppress(TimeoutError):
                async with asyncio.timeout(within_s):
                    await self._waiting.join()
        for worker in self._workers:
            worker.cancel()
        await asyncio.gather(*self._workers, return_exceptions=True)

    async def _work(self) -> None:
        while True:
            given = await self._waiting.get()
            try:
                await self._run(given)
            finally:
                self._waiting.task_done()

    async def _run(self, given: dict[str, str]) -> None:
        try:
            process = await asyncio.create_subprocess_exec(
                *_dies_with_us(str(self._program)),
                env={"PATH": os.environ.get("PATH", "/usr/bin:/bin"), **given},
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.DEVNULL,
                stderr=asyncio.subprocess.DEVNULL,
                # A group of its own, so that a shell that is ended takes what it has started with it.
                start_new_session=True,
            )
        except OSError as error:
            self._failed(f"{self._program} cannot be started: {error.strerror}")
            return
        try:
            async with asyncio.timeout(_LIMIT_S):
                status = await process.wait()
            if status != 0:
                self._failed(f"{self._program} ended with {status}")
            else:
                self.last_failure = ""
        except TimeoutError:
            self._failed(f"{self._program} took longer than {_LIMIT_S:g} s")
        finally:
            if process.returncode is None:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)


def _dies_with_us(program: str) -> list[str]:
    """A command that runs a program until that ends, or this process does, however it dies."""
    first = dies_with_us()
    return [*first, "/bin/sh", "-c", _LAUNCHER, "sh", program, str(os.getpid())] if first else [program]

"""A link as a process: started so that it ends with the operator, read line by line, ended by signals."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

# How long a process may take to end after a signal, before it is killed.
_END_S = 5.0
_MOST_LINE_BYTES = 4096


class Process:
    """One process that carries a link.

    Parameters
    ----------
    arguments
        The command. It gets SIGTERM when the operator dies, however that dies (`setpriv --pdeathsig`).
    tty
        Becomes its standard input: a file descriptor, or `subprocess.DEVNULL`.
    said
        Gets each line of its output.
    ended
        Gets its exit status; negative after a signal.
    """

    def __init__(self, said: Callable[[str], None], ended: Callable[[int], None]) -> None:
        self._said = said
        self._ended = ended
        self._process: asyncio.subprocess.Process | None = None
        self._reading: asyncio.Task[None] | None = None

    @classmethod
    async def start(
        cls,
        arguments: Sequence[str],
        *,
        tty: int,
        said: Callable[[str], None],
        ended: Callable[[int], None],
        environment: Mapping[str, str] | None = None,
    ) -> Process:
        """Start one.

        Raises
        ------
        OSError
            If there is no such program.
        """
        made = cls(said, ended)
        made._process = await asyncio.create_subprocess_exec(
            *dies_with_us(),
            *arguments,
            stdin=tty,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            env=environment,
            # Ctrl-C at a terminal is the operator's, which then hangs up in order.
            start_new_session=True,
        )
        made._reading = asyncio.create_task(made._read())
        return made

    @property
    def is_running(self) -> bool:
        """Whether it has not ended."""
        return self._process is not None and self._process.returncode is None

    def send(self, number: int) -> None:
        """Send a signal; to an ended one nothing."""
        if self._process is not None and self.is_running:
            with suppress(ProcessLookupError):
                self._process.send_signal(number)

    async def end(self, number: int = signal.SIGHUP, *, within_s: float = _END_S) -> None:
        """End it by a signal; if that does not help, kill it."""
        if self._reading is None:
            return
        for one in (number, signal.SIGKILL):
            self.send(one)
            with suppress(TimeoutError):
                async with asyncio.timeout(within_s):
                    await asyncio.shield(self._reading)
                return

    async def _read(self) -> None:
        process = self._process
        assert process is not None
        assert process.stdout is not None
        pending = b""
        while data := await process.stdout.read(_MOST_LINE_BYTES):
            *lines, pending = (pending + data).split(b"\n")
            pending = pending[-_MOST_LINE_BYTES:]
            for line in lines:
                self._said(line.decode("utf-8", "replace").strip())
        self._ended(await process.wait())


def dies_with_us() -> list[str]:
    """Prefix of a command that makes it end with this process. Setuid programs escape it: `orphans` finds those."""
    setpriv = shutil.which("setpriv", path=f"{os.environ.get('PATH', '')}:/usr/bin:/bin")
    return [setpriv, "--pdeathsig", "TERM", "--"] if setpriv else []

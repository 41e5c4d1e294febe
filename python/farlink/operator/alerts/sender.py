"""Sends messages in a process of its own, each within a limit of time."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import sys
from collections.abc import Mapping
from contextlib import suppress

LIMIT_S = 30.0
_END_S = 2.0
_MOST_ANSWER_BYTES = 1 << 16
_GONE = "the process that sends has ended"


class Sender:
    """Sends to URLs of Apprise.

    Parameters
    ----------
    urls
        Name -> URL. They reach the process over a pipe: no list of processes shows them.
    limit_s
        A message that takes longer counts as not sent, and the process is ended.
    """

    def __init__(self, urls: Mapping[str, str], *, limit_s: float = LIMIT_S) -> None:
        self._urls, self._limit_s = dict(urls), limit_s
        self._numbers = itertools.count(1)
        self._process: asyncio.subprocess.Process | None = None
        self._reading: asyncio.Task[None] | None = None
        self._asked: dict[int, asyncio.Future[str]] = {}
        self._starting = asyncio.Lock()

    @property
    def names(self) -> list[str]:
        """Names of the URLs."""
        return list(self._urls)

    @property
    def is_idle(self) -> bool:
        """Whether nothing is being sent."""
        return not self._asked

    async def send(self, name: str, title: str, body: str, kind: str) -> str:
        """Send a message.

        Parameters
        ----------
        name
            Of the URL.
        title, body
            The message.
        kind
            What Apprise calls it: ``info``, ``success``, ``warning``, ``failure``.

        Returns
        -------
        str
            Empty if it was sent, else why not; the URL is not in it.
        """
        number = next(self._numbers)
        answer: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        request = {"id": number, "url": self._urls[name], "title": title, "body": body, "type": kind}
        self._asked[number] = answer
        try:
            async with asyncio.timeout(self._limit_s):
                process = await self._running()
                assert process.stdin is not None
                process.stdin.write(json.dumps(request).encode() + b"\n")
                await process.stdin.drain()
                return await answer
        except TimeoutError:
            await self.close()
            return f"not sent within {self._limit_s:g} s"
        except OSError:
            await self.close()
            return _GONE
        finally:
            self._asked.pop(number, None)

    async def close(self) -> None:
        """End the process; the next message starts another one."""
        process, self._process = self._process, None
        reading, self._reading = self._reading, None
        # Now: what is asked from here on goes to another process.
        self._refuse()
        if process is not None:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()
        if reading is not None:
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)

    async def _running(self) -> asyncio.subprocess.Process:
        async with self._starting:
            if self._process is None or self._process.returncode is not None:
                self._process = await asyncio.create_subprocess_exec(
                    *(sys.executable, "-m", "farlink.operator.alerts.sender_child"),
                    stdin=asyncio.subprocess.PIPE,
                    stdout=asyncio.subprocess.PIPE,
                    # Output of services may have any content.
                    stderr=asyncio.subprocess.DEVNULL,
                    limit=_MOST_ANSWER_BYTES,
                    # Ctrl-C at a terminal is the operator's.
                    start_new_session=True,
                    env={**os.environ, "PYTHONIOENCODING": "utf-8"},
                )
                self._reading = asyncio.create_task(self._read(self._process))
            return self._process

    async def _read(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdout is not None
        with suppress(ValueError, OSError):
            while line := await process.stdout.readline():
                answer = json.loads(line)
                asked = self._asked.get(answer["id"])
                if asked is not None and not asked.done():
                    asked.set_result(str(answer["why"])[:200])
        # It has ended: what it was asked is not answered, and what comes next starts another one.
        if process is self._process:
            self._process = self._reading = None
            self._refuse()
        # `kill` of a process that has just ended takes its status away from asyncio.
        try:
            async with asyncio.timeout(_END_S):
                await process.wait()
        except TimeoutError:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()

    def _refuse(self) -> None:
        for asked in self._asked.values():
            if not asked.done():
                asked.set_result(_GONE)

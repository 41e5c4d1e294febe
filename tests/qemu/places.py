"""Where the two ends of a bundle are: networks, addresses, and waiting for what happens there."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import os
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

ADDRESSES = {"near": "10.64.64.1", "far": "10.64.64.2"}
_NEW_NETWORK = 0x40000000


class MissedError(Exception):
    """What was waited for did not come."""


async def until(condition: Callable[[], Any], what: str, within_s: float) -> Any:
    """Wait until a condition holds, and return what it gave."""
    end = time.monotonic() + within_s
    while not (found := condition()):
        if time.monotonic() > end:
            raise MissedError(f"{what}: not within {within_s:g} s")
        await asyncio.sleep(0.05)
    return found


class Place:
    """Where the programs of an end run: the far end has a network and a `/run` of its own."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.inside: list[str] = []
        self._holder: subprocess.Popen[bytes] | None = None
        if name == "far":
            hold = "mount -t tmpfs tmpfs /run && mkdir /run/ppp /run/lock && ip link set lo up && echo held && exec sleep 1d"
            self._holder = subprocess.Popen(["unshare", "--net", "--mount", "sh", "-c", hold], stdout=subprocess.PIPE)
            assert self._holder.stdout is not None
            assert self._holder.stdout.readline() == b"held\n"
            self.inside = ["nsenter", "--target", f"{self._holder.pid}", "--net", "--mount", "--root"]
        self._network = os.open(f"/proc/{self._holder.pid if self._holder else 'self'}/ns/net", os.O_RDONLY)

    @contextlib.contextmanager
    def network(self) -> Iterator[None]:
        """Be in the network of this end."""
        libc = ctypes.CDLL(None, use_errno=True)
        with Path("/proc/self/ns/net").open("rb") as mine:
            if libc.setns(self._network, _NEW_NETWORK) != 0:
                raise OSError(ctypes.get_errno(), "setns")
            try:
                yield
            finally:
                libc.setns(mine.fileno(), _NEW_NETWORK)

    def udp(self) -> socket.socket:
        """A socket in the network of this end."""
        with self.network():
            made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        made.setblocking(False)
        return made

    def close(self) -> None:
        """End its namespaces."""
        os.close(self._network)
        if self._holder is not None:
            self._holder.kill()
            self._holder.wait()

"""What goes through a bundle between two places: numbered packets, datagrams at a rate, one TCP connection."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import socket
import struct
import time
from collections.abc import Mapping

from tests.qemu.places import ADDRESSES, Place

_STREAM_PORT = 5000
_TCP_PORT = 5001
# IP and UDP.
_HEADER_BYTES = 28
_LOOK_S = 0.1


class Stream:
    """Numbered packets from the near end to the far end, or from an end to another, and when they arrive."""

    def __init__(
        self,
        ends: Mapping[str, Place],
        *,
        length: int = 200,
        every_s: float = 0.25,
        sender: str = "near",
        receiver: str = "far",
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._length, self._every_s = length, every_s
        self._address = ADDRESSES[receiver]
        self._from, self._to = ends[sender].udp(), ends[receiver].udp()
        self._to.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._to.bind(("0.0.0.0", _STREAM_PORT))
        self._loop.add_reader(self._to, self._take)
        self._task: asyncio.Task[None] | None = None
        self.sent: dict[int, float] = {}
        self.refused = 0
        self.arrived: dict[int, float] = {}

    def start(self, packets: int) -> None:
        """Send so many; the first one now."""
        self._task = asyncio.ensure_future(self._send(packets))

    async def _send(self, packets: int) -> None:
        begin = time.monotonic()
        for number in range(packets):
            await asyncio.sleep(max(0.0, begin + number * self._every_s - time.monotonic()))
            self.sent[number] = time.monotonic()
            try:
                self._from.sendto(number.to_bytes(4, "big").ljust(self._length - 28, b"."), (self._address, _STREAM_PORT))
            except OSError:  # no route while there is no ppp0, or its queue is full
                self.refused += 1

    def _take(self) -> None:
        with contextlib.suppress(BlockingIOError):
            while True:
                number = int.from_bytes(self._to.recv(2048)[:4], "big")
                self.arrived.setdefault(number, time.monotonic())

    async def wait(self) -> None:
        """Until all are sent."""
        assert self._task is not None
        await self._task

    def longest_gap_s(self) -> float:
        """The longest time between arrivals."""
        times = sorted(self.arrived.values())
        return max((after - before for before, after in itertools.pairwise(times)), default=0.0)

    def close(self) -> None:
        """Send and take no more."""
        if self._task is not None:
            self._task.cancel()
        self._loop.remove_reader(self._to)
        self._from.close()
        self._to.close()


# Of `struct tcp_info`: timeout, segments that are not acknowledged, smoothed round trip, congestion window.
_TCP_INFO = struct.Struct("<8x I 12x I 40x I 8x I")
_TCP_WINDOW_CLAMP = 10


class Transfer:
    """One TCP connection from the near end to the far end, that always has data; with `window_bytes`, no more is under way."""

    def __init__(self, ends: Mapping[str, Place], window_bytes: int | None = None, *, is_clamped: bool = False) -> None:
        self._loop = asyncio.get_running_loop()
        with ends["far"].network():
            self._listener = socket.create_server(("0.0.0.0", _TCP_PORT))
        with ends["near"].network():
            self._sender = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        # The default of the guest's kernel; this machine may have another one.
        self._sender.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"cubic")
        if window_bytes is not None:
            # Linux takes twice as much, and offers half of it, but no more than what it thinks that packets take of its memory.
            self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, (8 if is_clamped else 1) * window_bytes)
            if is_clamped:
                self._listener.setsockopt(socket.IPPROTO_TCP, _TCP_WINDOW_CLAMP, window_bytes)
        for one in (self._listener, self._sender):
            one.setblocking(False)
        self.arrived: list[tuple[float, int]] = []
        self._tasks = [asyncio.ensure_future(self._receive()), asyncio.ensure_future(self._send())]

    async def _send(self) -> None:
        await self._loop.sock_connect(self._sender, (ADDRESSES["far"], _TCP_PORT))
        while True:
            await self._loop.sock_sendall(self._sender, b"x" * 4096)

    async def _receive(self) -> None:
        connection, _ = await self._loop.sock_accept(self._listener)
        connection.setblocking(False)
        total = 0
        while data := await self._loop.sock_recv(connection, 65536):
            total += len(data)
            self.arrived.append((time.monotonic(), total))

    def state(self) -> dict[str, float]:
        """What the sender's TCP thinks."""
        size = _TCP_INFO.size
        rto_us, unacked, rtt_us, cwnd = _TCP_INFO.unpack(self._sender.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, size))
        return {"rto_s": rto_us / 1e6, "unacked": unacked, "srtt_s": rtt_us / 1e6, "cwnd": cwnd}

    async def close(self) -> list[str]:
        """End it; returns what went wrong."""
        wrong = [repr(task.exception()) for task in self._tasks if task.done() and task.exception() is not None]
        for task in self._tasks:
            task.cancel()
        self._sender.close()
        self._listener.close()
        return wrong


class Datagrams:
    """Datagrams from the near end to the far end at a constant rate, below `Transfer`'s names."""

    def __init__(self, ends: Mapping[str, Place], *, packet_bytes: int, rate_bps: float, for_s: float) -> None:
        every_s = 8 * packet_bytes / rate_bps
        self._bytes = packet_bytes - _HEADER_BYTES
        self._stream = Stream(ends, length=packet_bytes, every_s=every_s)
        self._stream.start(int(for_s / every_s))

    @property
    def arrived(self) -> list[tuple[float, int]]:
        """When payload arrived, and how much there was by then."""
        return [(at, (count + 1) * self._bytes) for count, at in enumerate(sorted(self._stream.arrived.values()))]

    async def close(self) -> list[str]:
        """End it; returns what went wrong."""
        self._stream.close()
        return [f"{self._stream.refused} datagrams refused"] if self._stream.refused else []


async def lateness(found: list[float]) -> None:
    """How late the loop, and with it the bank, wakes up."""
    while True:
        due = time.monotonic() + _LOOK_S
        await asyncio.sleep(_LOOK_S)
        found.append(time.monotonic() - due)

"""TCP or datagrams through a bundle of real pppds whose calls are dropped by chance, in a guest.

`python -m tests.qemu.ppp_load FOLDER CELL.json` plays one cell and writes `FOLDER/found.json`.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
import shutil
import socket
import struct
import sys
import time
from pathlib import Path
from typing import Any

from farlink.operator.bank import pace
from tests.qemu.ppp_world import ADDRESSES, End, MissedError, Stream, World, play, why_left

_PORT = 5001
_LOOK_S = 0.1
_STATE_EVERY = 20
# IP and UDP.
_HEADER_BYTES = 28
# The guest is emulated: it cannot wake for each 3 bytes of sixteen modems.
_PIECE_S = 0.05
_NO_CARRIER = "no carrier"
# In the guest's memory: the logs there are read ten times a second.
_HERE = Path("/tmp/load")


class Lines:
    """Dials all lines again and again, and notes when each is part of the bundle at both ends."""

    def __init__(self, world: World, cell: dict[str, Any]) -> None:
        self._world, self._cell = world, cell
        self.is_up = [False] * world.lines
        self._noticed = [asyncio.Event() for _ in range(world.lines)]
        self.events: list[tuple[float, int, str]] = []

    def note(self, at: int, what: str) -> None:
        """Keep an event."""
        self.events.append((time.monotonic(), at, what))

    async def keep(self, at: int) -> None:
        """Dial, wait for the end of the call, pause, dial again."""
        while True:
            try:
                await self._world.bring_up(at, within_s=self._cell["attach_limit_s"])
            except MissedError as error:
                self.note(at, f"failed: {error}")
                for phone in self._world.pair(at):
                    phone.close()
                await asyncio.sleep(self._cell["failed_s"])
                continue
            self.is_up[at] = True
            self._noticed[at].set()
            self.note(at, "up")
            while (why := self._why_down(at)) is None:
                await asyncio.sleep(_LOOK_S)
            self.is_up[at] = False
            self.note(at, "down")
            if why != _NO_CARRIER:
                self.note(at, f"left the bundle: {why}")
            await self._noticed[at].wait()
            for phone in self._world.pair(at):
                phone.close()
            await asyncio.sleep(self._cell["dropped_s"])

    def _why_down(self, at: int) -> str | None:
        phones = self._world.pair(at)
        if not all(phone.has_carrier for phone in phones):
            return _NO_CARRIER
        return next((f"{phone.end.name}: {why}" for phone in phones if (why := why_left(phone)) is not None), None)

    async def drop(self, at: int, times_s: list[float], begin: float) -> None:
        """Have the bank lose the call of a line at these times, as far as it is up then; `late` is an end that notices late."""
        for due_s in times_s:
            await asyncio.sleep(max(0.0, begin + due_s - time.monotonic()))
            if not self.is_up[at]:
                continue
            self.note(at, "dropped")
            if (late := self._cell.get("late")) is None:
                self._world.drop(at)
            else:
                self._noticed[at].clear()
                await self._world.drop_late(at, late["end"], late["s"])
                self._noticed[at].set()


# Of `struct tcp_info`: timeout, segments that are not acknowledged, smoothed round trip, congestion window.
_TCP_INFO = struct.Struct("<8x I 12x I 40x I 8x I")
_TCP_WINDOW_CLAMP = 10


class Transfer:
    """One TCP connection from the near end to the far end, that always has data; with `window_bytes`, no more is under way."""

    def __init__(self, ends: dict[str, End], window_bytes: int | None = None, *, is_clamped: bool = False) -> None:
        self._loop = asyncio.get_running_loop()
        with ends["far"].network():
            self._listener = socket.create_server(("0.0.0.0", _PORT))
        with ends["near"].network():
            self._sender = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
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
        await self._loop.sock_connect(self._sender, (ADDRESSES["far"], _PORT))
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

    def __init__(self, ends: dict[str, End], *, packet_bytes: int, rate_bps: float, for_s: float) -> None:
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


async def load(cell: dict[str, Any], world: World) -> dict[str, Any]:
    """Bring all lines up, then transfer for the cell's time while calls are lost."""
    lines = Lines(world, cell)
    tasks = [asyncio.ensure_future(lines.keep(at)) for at in range(world.lines)]
    late: list[float] = []
    try:
        while not all(lines.is_up):
            for task in tasks:
                if task.done():
                    task.result()
            await asyncio.sleep(_LOOK_S)
        await world.addressed()
        begin = time.monotonic()
        tasks.append(asyncio.ensure_future(lateness(late)))
        for at in range(world.lines):
            tasks.append(asyncio.ensure_future(lines.drop(at, drop_times_s(cell, at), begin)))
        transfer: Transfer | Datagrams
        if "datagrams" in cell:
            transfer = Datagrams(world.ends, for_s=cell["duration_s"], **cell["datagrams"])
        else:
            transfer = Transfer(world.ends, cell.get("window_bytes"), is_clamped=cell.get("is_clamped", False))
        shares = {"all": 0, "any": 0, "looks": 0}
        states: list[dict[str, float]] = []
        while (now := time.monotonic()) < begin + cell["duration_s"]:
            shares["looks"] += 1
            shares["all"] += all(lines.is_up)
            shares["any"] += any(lines.is_up)
            if isinstance(transfer, Transfer) and shares["looks"] % _STATE_EVERY == 0:
                states.append({"at_s": round(now - begin, 2), **transfer.state()})
            await asyncio.sleep(max(0.0, now + _LOOK_S - time.monotonic()))
        arrived = transfer.arrived
        wrong = await transfer.close()
    finally:
        for task in tasks:
            task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.gather(*tasks)
    late.sort()
    return {
        "all_up": shares["all"] / shares["looks"],
        "any_up": shares["any"] / shares["looks"],
        "bytes": arrived[-1][1] if arrived else 0,
        "arrived": [(round(at - begin, 2), total) for at, total in arrived],
        "events": [(round(at - begin, 2), line, what) for at, line, what in lines.events],
        "wrong": wrong,
        "tcp": states,
        "late_p99_s": late[int(0.99 * len(late))],
        "late_most_s": late[-1],
    }


def drop_times_s(cell: dict[str, Any], at: int) -> list[float]:
    """When calls of a line are lost, by a Poisson process of its own."""
    if not cell["mean_up_s"]:
        return []
    draw = random.Random(f"{cell['seed']} {at}")
    times, now = [], 0.0
    while (now := now + draw.expovariate(1 / cell["mean_up_s"])) < cell["duration_s"]:
        times.append(now)
    return times


def main() -> None:
    """Play one cell."""
    folder, cell = Path(sys.argv[1]), json.loads(Path(sys.argv[2]).read_text())
    pace._PIECE_S = _PIECE_S

    async def act(world: World) -> dict[str, Any]:
        return await load(cell, world)

    bank = {"rate_bps": cell["rate_bps"], "delay_s": cell["delay_s"]}
    how = {"lines": cell["lines"], "set_up_s": cell["set_up_s"], "ppp": cell["ppp"], **bank}
    try:
        found = asyncio.run(play(act, _HERE, **how))
        (folder / "found.json").write_text(json.dumps(found))
    finally:
        shutil.copytree(_HERE, folder / "run")


if __name__ == "__main__":
    main()

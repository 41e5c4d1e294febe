"""One cell of `docs/bundle_axis.py`: a bundle whose lines lose their carrier by a schedule, with TCP and a ping over it.

`python -m tests.qemu.axis_world FOLDER CELL.json` plays it and writes `FOLDER/found.json`. It has network and mounts of its
own: in a guest where both ends are Linux's pppd, in namespaces (`unshare`) where both are farlink's example `ppp`. The lines
are the same for both: pairs of pseudo-terminals, paced, with delay (`farlink_wires.Wire`).
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
import re
import shutil
import socket
import struct
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from tests.qemu.farlink_wires import Wire
from tests.qemu.places import ADDRESSES, Place, until
from tests.qemu.traffic import Stream, Transfer, lateness

_SECRET = "canary-of-axis"
_HERE = Path("/tmp/axis")
# The guest is emulated, and wakes as rarely as it can.
_TICK_S = 0.05
_LOOK_S = 0.25
_JOINED = re.compile(r"New bundle ppp\d+ created|Link attached to ppp\d+")
_ECHO = struct.Struct("!BBHHH")
_PING_BYTES = 56
_DATAGRAM_BYTES = 1000


def outages(cell: dict[str, Any]) -> list[tuple[float, float, int]]:
    """When lines lose their carrier, and have it again: a Poisson process of each line while it has carrier."""
    found = []
    for line in range(cell["lines"]):
        if not cell["mean_up_s"]:
            break
        draw, now = random.Random(f"{cell['seed']} {line}"), 0.0
        while (now := now + draw.expovariate(1 / cell["mean_up_s"])) < cell["duration_s"]:
            found.append((now, now + cell["down_s"], line))
            now += cell["down_s"]
    return sorted(found)


class Ends(Protocol):
    """Both ends of a bundle, and what they say of a line."""

    async def attach(self, line: int) -> None:
        """Do what an end does when a line has carrier."""

    def joined(self, line: int) -> tuple[int, int]:
        """How many times the line has joined the bundle, at each end."""

    def is_up(self, line: int) -> bool:
        """Whether both ends have the line in the bundle, by what they said last."""

    def cpu_s(self) -> dict[str, float]:
        """Processor time of each end, as far as it is a process of its own."""

    async def close(self) -> None:
        """End both."""


class Pppds:
    """Linux's pppd for each call, at both ends."""

    def __init__(self, places: dict[str, Place], wires: list[Wire]) -> None:
        self._places, self._wires = places, wires
        self._running: list[subprocess.Popen[bytes]] = []
        text = f'near far "{_SECRET}" *\nfar near "{_SECRET}" *\n'
        path = Path("/etc/ppp/chap-secrets")
        path.write_text(text)
        path.chmod(0o600)

    def _start(self, end: str, line: int) -> None:
        other = {"near": "far", "far": "near"}[end]
        words = [
            *("nodetach", "modem", "multilink", "mrru", "1500", "endpoint", f"local:0{1 + (end == 'far')}.61.72"),
            *("nompshortseq", "name", end, "remotename", other, f"{ADDRESSES[end]}:{ADDRESSES[other]}"),
            *("noccp", "nobsdcomp", "nodeflate", "novj", "nopersist", "lcp-restart", "8", "ipcp-restart", "8"),
            # A port holds 12 KB, 41 s: echoes have to bear that.
            *("lcp-echo-interval", "20", "lcp-echo-failure", "4", "lcp-max-terminate", "1"),
            *("logfile", str(_HERE / f"{end}-{line}.log"), "linkname", f"{end}-{line}"),
            # The end that was called waits for the other's first request.
            *(("require-chap", "silent") if end == "far" else ("noauth",)),
        ]
        with (_HERE / f"{end}-{line}.out").open("ab") as out:
            port = str(self._wires[line].path(end))
            command = [*self._places[end].inside, "pppd", port, "38400", *words]
            self._running.append(subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=out))

    async def attach(self, line: int) -> None:
        """Start the far pppd, then the near one."""
        self._running = [one for one in self._running if one.poll() is None]
        self._start("far", line)
        await asyncio.sleep(2.0)
        if self._wires[line].masters:
            self._start("near", line)

    def joined(self, line: int) -> tuple[int, int]:
        """By the pppds' logs."""
        near, far = (len(_JOINED.findall(self._log(end, line))) for end in ("near", "far"))
        return near, far

    def is_up(self, line: int) -> bool:
        """No more than that it has carrier and has joined: `Axis` asks this only of lines that did."""
        return all(not self._has_left(end, line) for end in ("near", "far"))

    def _has_left(self, end: str, line: int) -> bool:
        said = _JOINED.split(self._log(end, line))[-1]
        return re.search(r"(?:Link|Connection) terminated\.|Modem hangup", said) is not None

    @staticmethod
    def _log(end: str, line: int) -> str:
        path = _HERE / f"{end}-{line}.log"
        return path.read_text(errors="replace") if path.exists() else ""

    def cpu_s(self) -> dict[str, float]:
        """The kernel does the work."""
        return {}

    async def close(self) -> None:
        """End all."""
        for one in self._running:
            one.terminate()
        await asyncio.sleep(1.0)
        for one in self._running:
            one.kill()
            one.wait()


class Farlinks:
    """farlink's process at both ends, with its defaults."""

    def __init__(self, places: dict[str, Place], wires: list[Wire], cell: dict[str, Any]) -> None:
        self._processes: list[subprocess.Popen[bytes]] = []
        for end, other in (("near", "far"), ("far", "near")):
            folder = _HERE / end
            folder.mkdir()
            text = f'name = "{end}"\nsecrets = "secrets.toml"\ndevice = "tun-{end}"\n'
            text += f'local = "{ADDRESSES[end]}"\nremote = "{ADDRESSES[other]}"\n'
            text += "" if end == "far" else "require = []\n"
            text += "".join(f'[[line]]\nport = "{wire.path(end)}"\nrate_bps = {cell["rate_bps"]}\n' for wire in wires)
            (folder / "farlink.toml").write_text(text)
            secrets = folder / "secrets.toml"
            secrets.write_text(f'own = "{_SECRET}"\n[peer]\n{other} = "{_SECRET}"\n')
            secrets.chmod(0o600)
            with self._log(end).open("wb") as out:
                command = [*places[end].inside, cell["program"], str(folder / "farlink.toml"), "until-eof"]
                self._processes.append(subprocess.Popen(command, stdin=subprocess.PIPE, stdout=out, stderr=out))

    @staticmethod
    def _log(end: str) -> Path:
        return _HERE / f"{end}.log"

    async def attach(self, line: int) -> None:
        """The processes look for carrier themselves."""

    def joined(self, line: int) -> tuple[int, int]:
        """By what the processes print."""
        near, far = (len(re.findall(rf"line {line} up", self._log(end).read_text())) for end in ("near", "far"))
        return near, far

    def is_up(self, line: int) -> bool:
        """By what they print last."""
        said = [re.findall(rf"line {line} (up|down)", self._log(end).read_text()) for end in ("near", "far")]
        return all(words and words[-1] == "up" for words in said)

    def cpu_s(self) -> dict[str, float]:
        """Of both processes, which have one thread that works."""
        found = {}
        for end, one in zip(("near", "far"), self._processes, strict=True):
            fields = Path(f"/proc/{one.pid}/schedstat").read_text().split()
            found[end] = int(fields[0]) / 1e9
        return found

    async def close(self) -> None:
        """End both, so that they print what they counted."""
        for one in self._processes:
            assert one.stdin is not None
            one.stdin.close()
        for one in self._processes:
            with contextlib.suppress(subprocess.TimeoutExpired):
                await asyncio.to_thread(one.wait, 5)
            one.kill()
            one.wait()


class Ping:
    """Echo requests of ICMP from the near end, one a second; the far end's kernel answers."""

    def __init__(self, near: Place) -> None:
        with near.network():
            self._socket = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)
        self._socket.setblocking(False)
        self._task = asyncio.ensure_future(self._send())
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(self._socket, self._take)
        self.sent: list[float] = []
        self.took_s: dict[int, float] = {}

    async def _send(self) -> None:
        begin = time.monotonic()
        while True:
            await asyncio.sleep(max(0.0, begin + len(self.sent) - time.monotonic()))
            number, content = len(self.sent), b"\0" * _PING_BYTES
            packet = _ECHO.pack(8, 0, 0, 7, number) + content
            packet = _ECHO.pack(8, 0, _checksum(packet), 7, number) + content
            self.sent.append(time.monotonic())
            with contextlib.suppress(OSError):  # no route while there is no bundle, or its queue is full
                self._socket.sendto(packet, (ADDRESSES["far"], 0))

    def _take(self) -> None:
        with contextlib.suppress(BlockingIOError):
            while True:
                kind, _, _, identifier, number = _ECHO.unpack_from(self._socket.recv(2048), 20)
                if kind == 0 and identifier == 7:
                    self.took_s.setdefault(number, time.monotonic() - self.sent[number])

    def close(self) -> None:
        """Send no more."""
        self._task.cancel()
        self._loop.remove_reader(self._socket)
        self._socket.close()


class Both:
    """Datagrams both ways, below `Transfer`'s names."""

    def __init__(self, places: dict[str, Place], rate_bps: float, for_s: float) -> None:
        ways = (("near", "far"), ("far", "near")) if rate_bps else ()
        every_s = 8 * _DATAGRAM_BYTES / rate_bps if rate_bps else 0.0
        self._streams = [Stream(places, length=_DATAGRAM_BYTES, every_s=every_s, sender=a, receiver=b) for a, b in ways]
        for stream in self._streams:
            stream.start(int(for_s / every_s))

    @property
    def arrived(self) -> list[tuple[float, int]]:
        """When bytes of IP arrived, of both ways together, and how many there were by then."""
        times = sorted(at for stream in self._streams for at in stream.arrived.values())
        return [(at, (count + 1) * _DATAGRAM_BYTES) for count, at in enumerate(times)]

    async def close(self) -> list[str]:
        """End it; returns what went wrong."""
        for stream in self._streams:
            stream.close()
        return []


def _checksum(packet: bytes) -> int:
    total: int = sum(struct.unpack(f"!{len(packet) // 2}H", packet))
    total = (total >> 16) + (total & 0xFFFF)
    return ~(total + (total >> 16)) & 0xFFFF


class Axis:
    """Lines, both ends, and what goes over them."""

    def __init__(self, cell: dict[str, Any]) -> None:
        self._cell = cell
        self._wires = [Wire(line, cell["rate_bps"], cell["delay_s"]) for line in range(cell["lines"])]
        self._places = {name: Place(name) for name in ("near", "far")}
        self._ends: Ends
        self._events: list[tuple[float, int, str]] = []
        self._up = [False] * cell["lines"]

    def _note(self, line: int, what: str) -> None:
        self._events.append((time.monotonic(), line, what))

    async def _tick(self) -> None:
        due = time.monotonic()
        while True:
            now = time.monotonic()
            for wire in self._wires:
                wire.tick(now)
            due = max(due + _TICK_S, time.monotonic())
            await asyncio.sleep(due - time.monotonic())

    async def _keep(self, line: int, out: list[tuple[float, float]], begin: asyncio.Future[float]) -> None:
        """Give a line carrier, wait until it has joined, take the carrier away when it is time."""
        wire = self._wires[line]
        for lost_s, back_s in [*out, (float("inf"), 0.0)]:
            before = self._ends.joined(line)
            wire.up()
            attaching = asyncio.ensure_future(self._ends.attach(line))
            while not begin.done() or time.monotonic() < begin.result() + lost_s:
                have_joined = all(now > then for now, then in zip(self._ends.joined(line), before, strict=True))
                if have_joined != self._up[line] and not self._up[line]:
                    self._up[line] = True
                    self._note(line, "up")
                elif self._up[line] and not self._ends.is_up(line):
                    self._up[line] = False
                    self._note(line, "left")
                    before = self._ends.joined(line)
                    if isinstance(self._ends, Pppds):
                        # Nobody dials for pppd: the line gets a new call.
                        wire.down()
                        await asyncio.sleep(5.0)
                        wire.up()
                        attaching = asyncio.ensure_future(self._ends.attach(line))
                left_s = _LOOK_S if not begin.done() else begin.result() + lost_s - time.monotonic()
                await asyncio.sleep(min(_LOOK_S, max(0.0, left_s)))
            await attaching
            wire.down()
            self._up[line] = False
            self._note(line, "down")
            await asyncio.sleep(max(0.0, begin.result() + back_s - time.monotonic()))

    def _has_address(self, end: str) -> bool:
        command = [*self._places[end].inside, "ip", "-br", "-4", "address"]
        return ADDRESSES[end] in subprocess.run(command, capture_output=True, text=True, check=False).stdout

    def _traffic(self) -> Transfer | Both:
        """TCP, or without a window datagrams both ways at a share of the lines' rate."""
        if (window_bytes := self._cell.get("window_bytes")) is not None:
            return Transfer(self._places, window_bytes, is_clamped=True)
        rate_bps = self._cell["load"] * self._cell["lines"] * self._cell["rate_bps"]
        return Both(self._places, rate_bps, self._cell["duration_s"])

    async def play(self) -> dict[str, Any]:
        """All lines up, then TCP and a ping for the cell's time while carriers are lost."""
        cell, loop = self._cell, asyncio.get_running_loop()
        self._ends = Pppds(self._places, self._wires) if cell["ends"] == "pppd" else Farlinks(self._places, self._wires, cell)
        begin: asyncio.Future[float] = loop.create_future()
        late: list[float] = []
        tasks = [asyncio.ensure_future(self._tick())]
        schedule = outages(cell)
        for line in range(cell["lines"]):
            tasks.append(asyncio.ensure_future(self._keep(line, [(a, b) for a, b, of in schedule if of == line], begin)))
        try:
            await until(lambda: all(self._up) or any(task.done() for task in tasks), "all lines in the bundle", 180)
            for end in self._places:
                await until(partial(self._has_address, end), f"address of the {end} end", 60)
            transfer, ping = self._traffic(), Ping(self._places["near"])
            began, cpu_s = time.monotonic(), self._ends.cpu_s()
            begin.set_result(began)
            tasks.append(asyncio.ensure_future(lateness(late)))
            states = []
            while (now := time.monotonic()) < began + cell["duration_s"]:
                for task in tasks:
                    if task.done():
                        task.result()
                state = transfer.state() if isinstance(transfer, Transfer) else {}
                states.append({"at_s": round(now - began, 1), "up": sum(self._up), **state})
                await asyncio.sleep(1.0)
            arrived = [(round(at - began, 2), total) for at, total in transfer.arrived if at < began + cell["duration_s"]]
            used_s = {end: after_s - cpu_s[end] for end, after_s in self._ends.cpu_s().items()}
            sent = [at for at in ping.sent if at < began + cell["duration_s"] - 60]
            pings = [
                (round(at - began, 1), round(took, 3) if (took := ping.took_s.get(n)) else None) for n, at in enumerate(sent)
            ]
            wrong = await transfer.close()
            ping.close()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await self._ends.close()
            for wire in self._wires:
                wire.down()
            for place in self._places.values():
                place.close()
        late.sort()
        return {
            "bytes": arrived[-1][1] if arrived else 0,
            "arrived": arrived,
            "pings": pings,
            "outages": schedule,
            "events": [(round(at - began, 2), line, what) for at, line, what in self._events],
            "tcp": states,
            "wrong": wrong,
            "cpu_s": used_s,
            "late_p99_s": late[int(0.99 * len(late))],
            "late_most_s": late[-1],
        }


def main() -> None:
    """Play one cell."""
    folder, cell = Path(sys.argv[1]), json.loads(Path(sys.argv[2]).read_text())
    _HERE.mkdir()
    Path("/tmp/wires").mkdir(exist_ok=True)
    try:
        found = asyncio.run(Axis(cell).play())
        (folder / "found.json").write_text(json.dumps(found))
    finally:
        shutil.copytree(
            _HERE,
            folder / "run",
            dirs_exist_ok=True,
            ignore=lambda _, names: [name for name in names if name == "secrets.toml"],
        )


if __name__ == "__main__":
    main()

"""Lines between farlink and Linux's pppd in a guest: pairs of pseudo-terminals, paced, that drop and come back.

`python -m tests.qemu.farlink_wires FOLDER CELLS.json` plays cells and writes `FOLDER/found.json`. The near end is the
example `ppp` of `farlink-net`, the far end one pppd for each line, in a network namespace of its own.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import json
import os
import re
import subprocess
import sys
import time
import tty
from collections import deque
from functools import partial
from pathlib import Path
from typing import Any

from tests.qemu.places import ADDRESSES, MissedError, Place, until
from tests.qemu.traffic import Stream

_TICK_S = 0.02
# A line whose program woke late carries what it missed, up to this.
_MOST_BEHIND_S = 1.0
_HERE = Path("/tmp/wires")
_SECRET = "canary-of-wires"


class Wire:
    """One line: a pseudo-terminal for each end, and what is between."""

    def __init__(self, at: int, rate_bps: float, delay_s: float) -> None:
        self.at, self.delay_s = at, delay_s
        self._bytes_per_s = rate_bps / 8
        self.masters: list[int] = []
        self.carried = [0, 0]
        self._free_at = [0.0, 0.0]
        self._held: list[deque[tuple[float, bytes]]] = [deque(), deque()]

    def path(self, end: str) -> Path:
        """The port of an end."""
        return _HERE / f"{end}-{self.at}"

    def up(self) -> None:
        """Make ports; whoever opens them has carrier."""
        for end in ("near", "far"):
            master, slave = os.openpty()
            tty.setraw(slave)
            os.set_blocking(master, False)
            self.path(end).unlink(missing_ok=True)
            self.path(end).symlink_to(os.ttyname(slave))
            os.close(slave)
            self.masters.append(master)

    def down(self) -> None:
        """A hang-up at both ends."""
        for master in self.masters:
            os.close(master)
        self.masters.clear()
        for held in self._held:
            held.clear()
        for end in ("near", "far"):
            self.path(end).unlink(missing_ok=True)

    def tick(self, now: float) -> None:
        """Carry what the rate allows: a line with bytes catches up when it is looked at late, but by no more than a second."""
        if not self.masters:
            return
        for way in (0, 1):
            self._free_at[way] = max(self._free_at[way], now - _MOST_BEHIND_S)
            most = int((now - self._free_at[way]) * self._bytes_per_s)
            if most > 0:
                data = self._read(self.masters[way], most)
                self.carried[way] += len(data)
                if data:
                    self._held[way].append((now + self.delay_s, data))
                if len(data) < most:
                    # It had nothing more to send, and begins anew with what comes.
                    self._free_at[way] = now
                else:
                    self._free_at[way] += len(data) / self._bytes_per_s
            held = self._held[way]
            while held and held[0][0] <= now:
                with contextlib.suppress(OSError):
                    os.write(self.masters[1 - way], held.popleft()[1])

    @staticmethod
    def _read(master: int, most: int) -> bytes:
        try:
            return os.read(master, most)
        except OSError as error:
            # Nobody has it open, or nothing is there.
            if error.errno not in (errno.EIO, errno.EAGAIN):
                raise
            return b""


class Rig:
    """Both ends and the lines between."""

    def __init__(self, cell: dict[str, Any], folder: Path) -> None:
        self.cell, self.folder = cell, folder
        folder.mkdir(parents=True, exist_ok=True)
        rate, delay = cell.get("rate_bps", 38400), cell.get("delay_s", 0.05)
        self.wires = [Wire(at, rate, delay) for at in range(cell["lines"])]
        self.ends: dict[str, Place] = {name: Place(name) for name in ("near", "far")}
        self.pppds: list[subprocess.Popen[bytes]] = []
        self._farlink: subprocess.Popen[bytes] | None = None
        self._ticking: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Have lines and both ends."""
        for wire in self.wires:
            wire.up()
        self._ticking = asyncio.ensure_future(self._tick())
        self._secrets()
        self._farlink = subprocess.Popen(
            [self.cell["program"], str(self._config()), "until-eof"],
            stdin=subprocess.PIPE,
            stdout=(self.folder / "farlink.log").open("wb"),
            stderr=subprocess.STDOUT,
        )
        for wire in self.wires:
            self.pppd(wire.at)

    async def _tick(self) -> None:
        while True:
            now = time.monotonic()
            for wire in self.wires:
                wire.tick(now)
            await asyncio.sleep(max(0.001, _TICK_S - (time.monotonic() - now)))

    def _secrets(self) -> None:
        text = f'near far "{_SECRET}" *\nfar near "{self.cell.get("wrong") or _SECRET}" *\n'
        for name in ("chap-secrets", "pap-secrets"):
            path = Path("/etc/ppp") / name
            path.write_text(text)
            path.chmod(0o600)

    def _config(self) -> Path:
        cell, ways = self.cell, self.cell.get("proof", "chap")
        lines = "".join(
            f'[[line]]\nport = "{wire.path("near")}"\nrate_bps = {cell.get("rate_bps", 38400)}\n' for wire in self.wires
        )
        addresses = "" if cell.get("asks") else f'local = "{ADDRESSES["near"]}"\nremote = "{ADDRESSES["far"]}"\n'
        short = f"short_numbers = {str(cell.get('short', False)).lower()}\n"
        timers = "restart_s = 3\necho_interval_s = 5\nretry_s = 1\nlinger_s = 20\nlatency_s = 0.5\n"
        require = "[]" if cell.get("one_way") else f'["{ways}"]'
        text = f'name = "near"\nsecrets = "secrets.toml"\nrequire = {require}\nallow_pap = true\ndevice = "tun-near"\n'
        (self.folder / "farlink.toml").write_text(text + addresses + short + timers + lines)
        secrets = self.folder / "secrets.toml"
        secrets.write_text(f'own = "{_SECRET}"\n[peer]\nfar = "{_SECRET}"\n')
        secrets.chmod(0o600)
        return self.folder / "farlink.toml"

    def pppd(self, at: int) -> None:
        """Start a pppd on a line."""
        proof = self.cell.get("proof", "chap")
        short = [] if self.cell.get("short") else ["nompshortseq"]
        words = [
            *("nodetach", "debug", "modem", "multilink", "mrru", "1500", "endpoint", "local:66.61.72", *short),
            *("name", "far", "remotename", "near", "auth", f"require-{proof}", f"{ADDRESSES['far']}:{ADDRESSES['near']}"),
            *("noccp", "nopersist", "lcp-restart", "3", "ipcp-restart", "3", "lcp-echo-interval", "5", "lcp-echo-failure", "3"),
            *("logfile", str(self.folder / f"pppd-{at}.log"), "linkname", f"far-{at}"),
        ]
        log = (self.folder / f"pppd-{at}.out").open("ab")
        self.pppds.append(
            subprocess.Popen(
                [*self.ends["far"].inside, "pppd", str(self.wires[at].path("far")), "38400", *words],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        )

    def said(self) -> str:
        """What farlink has printed."""
        return (self.folder / "farlink.log").read_text(errors="replace")

    def is_up(self, at: int) -> bool:
        """Whether a line is in the bundle, by what farlink says last."""
        last = re.findall(rf"line {at} (up|down)", self.said())
        return bool(last) and last[-1] == "up"

    async def attached(self, within_s: float = 30.0) -> float:
        """Wait until all lines are in the bundle at both ends, and the network is up."""
        begin = time.monotonic()
        for wire in self.wires:
            if wire.masters:
                await until(partial(self.is_up, wire.at), f"line {wire.at} up", within_s)
        await until(lambda: "network up" in self.said(), "network", within_s)
        for name, words in (("near", ["dev", "tun-near"]), ("far", ["dev", "ppp0"])):
            await until(partial(self._has_address, name, words), f"address of the {name} end", within_s)
        return time.monotonic() - begin

    def _has_address(self, name: str, words: list[str]) -> bool:
        command = [*self.ends[name].inside, "ip", "-br", "address", "show", *words]
        return ADDRESSES[name] in subprocess.run(command, capture_output=True, text=True, check=False).stdout

    async def used(self, packets: int | None = None, length: int = 1000) -> dict[str, Any]:
        """Send packets both ways, as many as lines, or four: how many arrive, and how many bytes went over each line."""
        packets = packets or max(4, len(self.wires))
        every_s = max(0.1, self._pace_s(length))
        before = [list(wire.carried) for wire in self.wires]
        found = {}
        ways = (("near", "far"), ("far", "near"))
        streams = [Stream(self.ends, length=length, every_s=every_s, sender=one, receiver=other) for one, other in ways]
        for stream in streams:
            stream.start(packets)
        with contextlib.suppress(MissedError):
            await until(lambda: all(len(stream.arrived) == packets for stream in streams), "packets", packets * every_s + 8)
        for (sender, _), stream in zip(ways, streams, strict=True):
            found[sender] = len(stream.arrived)
            stream.close()
        bytes_of = [
            [now - then for now, then in zip(wire.carried, old, strict=True)]
            for wire, old in zip(self.wires, before, strict=True)
        ]
        return {"sent": packets, "arrived": found, "bytes": bytes_of}

    def _pace_s(self, length: int) -> float:
        """Time between packets that keeps the lines that are up busy, and no queue grows: CoDel would drop from it."""
        bytes_per_s = sum(self.cell.get("rate_bps", 38400) / 8 for wire in self.wires if wire.masters)
        return 1.2 * length / bytes_per_s

    async def drop(self, at: int) -> dict[str, Any]:
        """Drop a line, use the rest, attach the line again, use all."""
        self.wires[at].down()
        await until(lambda: not self.is_up(at), f"line {at} down", 10)
        await asyncio.sleep(0.3)
        rest = await self.used() if len(self.wires) > 1 else None
        if rest is None:
            # The pppd of the last link has the lock of its port until its scripts have ended.
            await until(lambda: all(one.poll() is not None for one in self.pppds), "end of pppd", 20)
        self.wires[at].up()
        self.pppd(at)
        took_s = await self.attached()
        # The far end has the line a round trip later, at most.
        await asyncio.sleep(0.5)
        return {"rest": rest, "attached_s": took_s, "again": await self.used()}

    async def close(self) -> str:
        """End both ends; returns what farlink printed."""
        if self._farlink is not None:
            assert self._farlink.stdin is not None
            self._farlink.stdin.close()
            with contextlib.suppress(subprocess.TimeoutExpired):
                await asyncio.to_thread(self._farlink.wait, 5)
            self._farlink.kill()
        for one in self.pppds:
            one.terminate()
        for one in self.pppds:
            try:
                await asyncio.to_thread(one.wait, 5)
            except subprocess.TimeoutExpired:
                one.kill()
        if self._ticking is not None:
            self._ticking.cancel()
        for wire in self.wires:
            wire.down()
        for end in self.ends.values():
            end.close()
        return self.said()


async def play(cell: dict[str, Any], folder: Path) -> dict[str, Any]:
    """One cell: all lines up, used, and those that are to drop one after the other."""
    rig = Rig(cell, folder)
    begin = time.monotonic()
    found: dict[str, Any] = {}
    try:
        await rig.start()
        if cell.get("fails"):
            await until(lambda: re.search(cell["fails"], rig.said()), "the failure", 20)
        else:
            found["attached_s"] = await rig.attached()
            await asyncio.sleep(0.5)
            found["used"] = await rig.used()
            for at in cell.get("drops", []):
                found[f"drop {at}"] = await rig.drop(at)
    except (MissedError, AssertionError) as error:
        found["error"] = f"{type(error).__name__}: {error}"
    finally:
        found["said"] = await rig.close()
    found["took_s"] = time.monotonic() - begin
    return found


async def main(folder: Path, cells: dict[str, dict[str, Any]]) -> None:
    """All cells, one after the other."""
    _HERE.mkdir(exist_ok=True)
    found = {}
    for name, cell in cells.items():
        found[name] = await play(cell, folder / name.replace(" ", "-"))
        (folder / "found.json").write_text(json.dumps(found))


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), json.loads(Path(sys.argv[2]).read_text())))

"""Paths between network namespaces, for `aerotp_kernel.py` and `wire.py`: the kernel's tbf, and the example `relay`.

Three namespaces make a path: ``near`` sends, ``router`` forwards what it gets into a TUN device, ``far`` receives from another
one. The relay carries packets between both devices; a tbf, if there is one, stands before the first. There is no way to other
networks.
"""

from __future__ import annotations

import itertools
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

PREFIX = "farlink-"
NEAR, FAR = "198.18.0.2", "198.18.1.2"
PACKET_BYTES = 1500
# Beyond one packet, so that a timer that is late by less than a packet takes nothing from the rate.
BURST_BYTES = 3200
CONTROLS = ("cubic", "reno", "bbr")
# Where programs write: who writes to a disk that others use may wait for tens of milliseconds.
MEMORY = Path("/dev/shm")
# Priorities among the programs that do not wait for each other, above all usual ones.
RELAY_PRIORITY, END_PRIORITY = 50, 20


class UnusableError(Exception):
    """What this machine lacks to run the paths, and what to do."""

    def __init__(self, what: str, remedy: str) -> None:
        super().__init__(what)
        self.remedy = remedy


@dataclass(frozen=True)
class Place:
    """A bottleneck between namespaces.

    Parameters
    ----------
    name
        Which it is, in words.
    queue_packets
        Room for packets of 1500 bytes; None if it has no queue.
    tbf_bytes
        The same in the kernel's tbf, bytes; None if the relay has the bottleneck.
    relay
        Options of the relay beside delays, and beside rate and queue if it has the bottleneck.
    loss
        Share of the packets behind the queue that are lost.
    ecn
        Whether flows negotiate ECN.
    """

    name: str
    queue_packets: int | None = None
    tbf_bytes: int | None = None
    relay: tuple[str, ...] = ()
    loss: float = 0.0
    ecn: bool = False
    rate_bps: float = 10e6
    round_trip_s: float = 0.05

    @property
    def relay_options(self) -> list[str]:
        """Options of the relay."""
        delay = f"{self.round_trip_s / 2:g}"
        options = ["--delay", delay, "--back-delay", delay, *self.relay]
        if self.tbf_bytes is None:
            options += ["--rate", f"{self.rate_bps:g}"]
            if self.queue_packets is not None:
                options += ["--queue", f"{self.queue_packets}"]
        if self.loss > 0:
            options += ["--loss", f"{self.loss:g}"]
        return options

    def __str__(self) -> str:
        queue = "" if self.queue_packets is None else f", queue of {self.queue_packets}"
        loss = f", loss {self.loss:g}" if self.loss > 0 else ""
        return f"{self.name}{queue}{loss}, {self.round_trip_s * 1e3:g} ms"


def check_machine() -> None:
    """Find out whether paths can be made here.

    Raises
    ------
    UnusableError
        If not.
    """
    if sys.platform != "linux":
        raise UnusableError("network namespaces are Linux's", "run it on Linux")
    if os.geteuid() != 0:
        raise UnusableError("network namespaces need root", "run it with sudo")
    for command in ("ip", "tc", "chrt"):
        if shutil.which(command) is None:
            raise UnusableError(f"{command} is missing", "sudo apt-get install iproute2 util-linux")
    if not Path("/dev/net/tun").exists():
        raise UnusableError("/dev/net/tun is missing", "modprobe tun")
    available = Path("/proc/sys/net/ipv4/tcp_available_congestion_control").read_text(encoding="ascii").split()
    if absent := [control for control in CONTROLS if control not in available]:
        raise UnusableError(f"this kernel's TCP has no {', '.join(absent)}", f"modprobe tcp_{absent[0]}")
    name = f"{PREFIX}{os.getpid()}-check"
    try:
        output_of("ip", "netns", "add", name)
        output_of("ip", "-n", name, "tuntap", "add", "dev", "tun", "mode", "tun")
        output_of(
            "tc", "-n", name, "qdisc", "add", "dev", "tun", "root", "tbf", "rate", "1mbit", "burst", "3200", "limit", "6000"
        )
    except subprocess.CalledProcessError as error:
        raise UnusableError(f"this machine makes no paths: {error.stderr.strip()}", "run it outside of a container") from None
    finally:
        subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)


def remove_leftovers() -> None:
    """Remove the namespaces of programs that were killed before they could."""
    for line in output_of("ip", "netns", "list").splitlines():
        name = line.split()[0]
        owner = name.removeprefix(PREFIX).split("-")[0]
        if name.startswith(PREFIX) and owner.isdecimal() and not Path(f"/proc/{owner}").exists():
            output_of("ip", "netns", "del", name)


def cpu_s(process: subprocess.Popen[bytes]) -> float:
    """Processor time that a running program has used, with its threads."""
    stat = Path(f"/proc/{process.pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(stat[11]) + int(stat[12])) / os.sysconf("SC_CLK_TCK")


def output_of(*command: str) -> str:
    """Output of a command that succeeds."""
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


class Samples:
    """Lines of JSON that a program has printed, each with its time."""

    def __init__(self, path: Path) -> None:
        """Read them."""
        self.lines: list[dict[str, Any]] = []
        for line in path.read_text(encoding="utf-8").splitlines():
            with suppress(ValueError):
                self.lines.append(json.loads(line))

    def at(self, unix_s: float, *keys: str) -> float:
        """A count at a time, between those of two lines; 0 before it is first told."""
        points = [(float(line["unix_s"]), self._count(line, keys)) for line in self.lines if "unix_s" in line]
        for (before_s, before), (after_s, after) in itertools.pairwise(points):
            if before_s <= unix_s <= after_s:
                return before + (after - before) * (unix_s - before_s) / (after_s - before_s)
        return 0.0 if not points or unix_s < points[0][0] else points[-1][1]

    @staticmethod
    def _count(line: dict[str, Any], keys: Sequence[str]) -> float:
        value: Any = line
        for key in keys:
            value = value.get(key, {})
        return float(value or 0)

    def between(self, from_s: float, to_s: float, *keys: str) -> float:
        """By how much a count has grown."""
        return self.at(to_s, *keys) - self.at(from_s, *keys)


class KernelPath:
    """A path, from `with` to its end; programs that were started on it end with it."""

    _numbers = itertools.count()

    def __init__(self, place: Place, programs: Path, seed: int) -> None:
        """Nothing is made before `with`."""
        stem = f"{PREFIX}{os.getpid()}-{next(self._numbers)}"
        self.near, self.router, self.far = (f"{stem}-{part}" for part in ("near", "router", "far"))
        self._place, self._programs, self._seed = place, programs, seed
        self._started: dict[str, subprocess.Popen[bytes]] = {}
        self._folder = tempfile.TemporaryDirectory(prefix=PREFIX, dir=MEMORY if MEMORY.is_dir() else None)
        self.folder = Path(self._folder.name)

    def __enter__(self) -> Self:
        """Make the namespaces and start the relay."""
        try:
            self._make()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """End all programs and remove the namespaces."""
        self.stop()
        for name in (self.near, self.router, self.far):
            subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)
        self._folder.cleanup()

    def stop(self) -> None:
        """End all programs, the first to be started last."""
        for process in reversed(self._started.values()):
            process.send_signal(signal.SIGINT)
            try:
                process.wait(timeout=5)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self._started.clear()

    def start(self, namespace: str, *command: str | Path, name: str, priority: int = END_PRIORITY) -> Path:
        """Start a program within a namespace; returns where its output goes."""
        words = ["ip", "netns", "exec", namespace, "chrt", "-f", f"{priority}", *map(str, command)]
        output = self.folder / f"{name}.out"
        with output.open("wb") as out, (self.folder / f"{name}.err").open("wb") as err:
            process = subprocess.Popen(words, stdout=out, stderr=err, stdin=subprocess.DEVNULL, cwd=self.folder)
        self._started[name] = process
        return output

    def fault(self) -> str | None:
        """What a program that has ended too early had to say."""
        for name, process in self._started.items():
            if process.poll() not in (None, 0):
                said = (self.folder / f"{name}.err").read_text(encoding="utf-8").strip()
                return f"{name} ended with {process.returncode}: {said}"
        return None

    def is_running(self, name: str) -> bool:
        """Whether a program that was started under a name has not ended."""
        return self._started[name].poll() is None

    def cpu_s(self, name: str) -> float:
        """Processor time that a running program has used, with its threads."""
        return cpu_s(self._started[name])

    def cut(self) -> None:
        """Drop all packets of both ways before the relay, silently, until `mend`; those that are within it still arrive."""
        self._ip(self.router, f"route replace blackhole {FAR}/32")
        self._ip(self.router, f"route replace blackhole {NEAR}/32")

    def mend(self) -> None:
        """Undo `cut`."""
        self._ip(self.router, f"route del blackhole {FAR}/32")
        self._ip(self.router, f"route del blackhole {NEAR}/32")

    def dropped_before_relay(self) -> int:
        """Packets that did not reach the relay although there was no queue before it: it read too late."""
        [link] = json.loads(output_of("ip", "-n", self.router, "-s", "-j", "link", "show", "dev", "in"))
        return int(link["stats64"]["tx"]["dropped"])

    def _make(self) -> None:
        for name in (self.near, self.router, self.far):
            output_of("ip", "netns", "add", name)
            self._set(name, "ipv6/conf/all/disable_ipv6", "1")
            self._set(name, "ipv4/tcp_ecn", "1" if self._place.ecn else "0")
        self._ip(self.near, "link add east type veth peer name west netns", self.router)
        # No packets of more than 1500 bytes, which the network would cut.
        self._ip(self.near, "link set east up gso_max_segs 1")
        self._ip(self.near, f"addr add {NEAR}/24 dev east")
        self._ip(self.near, "route add default via 198.18.0.1")
        self._ip(self.router, "link set west up")
        self._ip(self.router, "addr add 198.18.0.1/24 dev west")
        self._set(self.router, "ipv4/ip_forward", "1")
        for device in ("in", "out"):
            self._ip(self.router, f"tuntap add dev {device} mode tun")
        every = ("--every", "0.5", "--seed", f"{self._seed}")
        command = ["in", "out", *self._place.relay_options, *every]
        self.relay = self.start(self.router, self._programs / "relay", *command, name="relay", priority=RELAY_PRIORITY)
        for _ in self._patiently("the relay does not start"):
            if self.relay.stat().st_size > 0:
                break
        self._ip(self.router, "link set out netns", self.far)
        self._ip(self.far, "link set out up gso_max_segs 1")
        self._ip(self.far, f"addr add {FAR}/24 dev out")
        self._ip(self.far, "route add default dev out")
        self._ip(self.router, "link set in up")
        self._ip(self.router, "route add 198.18.1.0/24 dev in")
        if self._place.tbf_bytes is not None:
            tbf = f"tbf rate {self._place.rate_bps:.0f} burst {BURST_BYTES} limit {self._place.tbf_bytes}"
            output_of("tc", "-n", self.router, *f"qdisc add dev in root {tbf}".split())

    def _patiently(self, what: str) -> Iterator[None]:
        """Yield until ten seconds are over or a program has ended."""
        for _ in range(200):
            yield
            if fault := self.fault():
                raise RuntimeError(fault)
            time.sleep(0.05)
        raise RuntimeError(what)

    @staticmethod
    def _ip(namespace: str, words: str, *more: str) -> None:
        output_of("ip", "-n", namespace, *words.split(), *more)

    @staticmethod
    def _set(namespace: str, key: str, value: str) -> None:
        output_of("ip", "netns", "exec", namespace, "sh", "-c", f"echo {value} > /proc/sys/net/{key}")

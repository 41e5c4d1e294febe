"""Two namespaces with emulated paths between them, for `bundle_paths.py`."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from kernel_paths import MEMORY, PREFIX

from farlink.namespaces import Namespaces, inside
from farlink.net.emulation import Emulation

ENDS = Path(__file__).parent / "bundle_paths_ends.py"
CLI = (sys.executable, "-m", "farlink.cli")
PORT = 47471
SHIP, SHORE = "10.77.0.2", "10.77.0.1"
"""Addresses of the ends within the bundle."""
CONTROL = "cubic"
"""Congestion control of all TCP here, MPTCP's subflows too; a machine's own default may be another."""
_WAIT_S = 40.0

Path_ = Mapping[str, Any]


class World:
    """A ship and a server, as a context; programs in it end with it.

    Parameters
    ----------
    paths
        Links of scenarios, by the name of the path; None for a wire (veth) as fast as the machine.
    standby
        Paths that are used only while no other one is up.
    redundant
        Whether packets of class EF have copies.

    Attributes
    ----------
    carrying
        Both ends of the bundle: the server's, then the ship's.
    began_s
        When the last path began to be played, by the monotonic clock.
    late_ms
        After the end: of the packets of each emulator 99 % were at most so late.
    """

    def __init__(self, paths: Mapping[str, Path_ | None], *, standby: Sequence[str] = (), redundant: bool = False) -> None:
        self.names, self._standby, self._redundant = list(paths), standby, redundant
        self._folder = tempfile.TemporaryDirectory(prefix=PREFIX, dir=MEMORY if MEMORY.is_dir() else None)
        self.folder = Path(self._folder.name)
        self._emulations = [None if link is None else Emulation(_scenario(link)) for link in paths.values()]
        self._namespaces = Namespaces()
        self._running: list[subprocess.Popen[bytes]] = []
        self.carrying: list[subprocess.Popen[bytes]] = []
        self._played = 0
        self.began_s = 0.0
        self.late_ms = 0.0

    def __enter__(self) -> Self:
        """Make namespaces and paths."""
        self._namespaces.__enter__()
        try:
            self.ship, self.shore = self._namespaces.near, self._namespaces.far
            for at, (name, emulation) in enumerate(zip(self.names, self._emulations, strict=True)):
                ends = ((self.ship, name, self.of_ship(name)), (self.shore, f"to-{name}", self.of_shore(name)))
                devices = _wire(at) if emulation is None else emulation.tunnel()
                for device, (space, called, address) in zip(devices, ends, strict=True):
                    _run("ip", "link", "set", "dev", device, "netns", space, "name", called)
                    _run("ip", "-n", space, "address", "add", f"{address}/30", "dev", called)
                    _run("ip", "-n", space, "link", "set", "dev", called, "txqueuelen", "2000", "up")
                _run("ip", "-n", self.ship, "route", "add", "default", "via", self.of_shore(name), "metric", f"{100 + at}")
                if emulation is not None:
                    emulation.start()
                self.began_s = time.monotonic()
                self._played += 1
            for space in (self.ship, self.shore):
                for key in (
                    "net.ipv4.tcp_no_metrics_save=1",
                    "net.ipv4.conf.all.rp_filter=0",
                    f"net.ipv4.tcp_congestion_control={CONTROL}",
                ):
                    _run(*inside(space, ["sysctl", "-qw", key]))
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """End all, and remove the namespaces."""
        for process in reversed(self._running):
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
                process.wait(20)
        try:
            for emulation in self._emulations[: self._played]:
                if emulation is not None:
                    self.late_ms = max(self.late_ms, _late_ms(emulation))
        finally:
            self._namespaces.__exit__(kind, error, trace)
            self._folder.cleanup()

    def of_ship(self, name: str) -> str:
        """The ship's own address on a path."""
        return f"10.99.{self.names.index(name)}.2"

    def of_shore(self, name: str) -> str:
        """The server's address on a path."""
        return f"10.99.{self.names.index(name)}.1"

    def unplug(self, name: str) -> None:
        """Take the ship's interface down."""
        _run("ip", "-n", self.ship, "link", "set", "dev", name, "down")

    def plug(self, name: str) -> None:
        """Take it up again, with the route that goes with it."""
        _run("ip", "-n", self.ship, "link", "set", "dev", name, "up")
        metric = f"{100 + self.names.index(name)}"
        _run("ip", "-n", self.ship, "route", "replace", "default", "via", self.of_shore(name), "metric", metric)

    def carry(self) -> None:
        """Start both ends of a bundle over all paths, and wait until each is up."""
        keys = {name: _keygen(self.folder / name) for name in ("ship", "shore")}
        for own, peer in (("ship", "shore"), ("shore", "ship")):
            (self.folder / f"{own}.toml").write_text(self._config(own, peer, keys[peer]))
        for own, space in (("shore", self.shore), ("ship", self.ship)):
            self.carrying.append(self.start(own, space, *CLI, "bundle", "carry", str(self.folder / f"{own}.toml")))
        for name in self.names:
            self.until(lambda name=name: f"up: {name}" in self.said("ship"), lambda: self.said("ship") + self.said("shore"))
        _run(*inside(self.ship, ["ping", "-c", "1", "-W", "3", SHORE]))

    def _config(self, own: str, peer: str, key: str) -> str:
        is_ship = own == "ship"
        head = [f'keys = "{own}"', f'peer = "{peer}"', f'peer_key = "{key}"', 'metrics = "127.0.0.1:9472"']
        head.append(f'address = "{self.of_shore(self.names[0])}:{PORT}"' if is_ship else f'listen = "0.0.0.0:{PORT}"')
        parts = [*head, "[tun]", 'name = "carried0"', f'addresses = ["{SHIP if is_ship else SHORE}/24"]']
        for name in self.names:
            parts += ["[[path]]", f'name = "{name}"']
            if is_ship:
                parts += [f'interface = "{name}"', f'address = "{self.of_shore(name)}:{PORT}"']
            if name in self._standby:
                parts += ["standby = true", "probe_bytes_a_day = 100e3", "probe_interval_s = 60"]
        if self._redundant:
            parts += ["[[class]]", "number = 0", "dscp = [46]", 'policy = "redundant"']
        return "\n".join(parts) + "\n"

    def start(self, name: str, space: str, *command: str) -> subprocess.Popen[bytes]:
        """Start a program; what it says goes to a file of its name."""
        with (self.folder / f"{name}.out").open("wb") as out:
            process = subprocess.Popen(
                inside(space, list(command)), stdout=out, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL
            )
        self._running.append(process)
        return process

    def said(self, name: str) -> str:
        """What a program has said."""
        return (self.folder / f"{name}.out").read_text(errors="replace")

    def until(self, is_so: Callable[[], bool], said: Callable[[], str] = str) -> None:
        """Wait until something is so."""
        end = time.monotonic() + _WAIT_S
        while not is_so():
            if time.monotonic() > end:
                raise RuntimeError(f"not within {_WAIT_S:g} s; {said()}")
            time.sleep(0.02)

    def metrics(self) -> dict[str, float]:
        """The ship's numbers."""
        asked = inside(self.ship, ["curl", "-sf", "http://127.0.0.1:9472/metrics"])
        text = subprocess.run(asked, capture_output=True, text=True, check=True).stdout
        return {line.rsplit(" ", 1)[0]: float(line.rsplit(" ", 1)[1]) for line in text.splitlines() if line[:1] != "#"}

    def sent(
        self, kind: str, to: str, duration_s: float, *options: str, during: Callable[[], None] = lambda: None
    ) -> list[list[float]]:
        """Send from the ship to an address of the server; rows of what arrived, as `bundle_paths_ends.py` writes them."""
        number = len(self._running)
        sink, source = f"sink-{number}", f"source-{number}"
        port = str(6000 + number)
        receiving = self.start(sink, self.shore, sys.executable, str(ENDS), f"{kind}-sink", to, port, str(duration_s), *options)
        self.until(lambda: "ready" in self.said(sink), lambda: self.said(sink))
        sending = self.start(
            source, self.ship, sys.executable, str(ENDS), f"{kind}-source", to, port, str(duration_s), *options
        )
        during()
        for process in (sending, receiving):
            if process.wait(duration_s + 60) != 0:
                raise RuntimeError(f"{self.said(source)}\n{self.said(sink)}")
        found = re.search(r"^\[\[.*\]\]$", self.said(sink), re.MULTILINE)
        if found is None:
            raise RuntimeError(f"nothing arrived: {self.said(source)}\n{self.said(sink)}")
        rows: list[list[float]] = json.loads(found.group())
        return rows

    def mptcp(self) -> None:
        """Have the kernel use all paths for a connection (RFC 8684)."""
        for space in (self.ship, self.shore):
            _run("ip", "-n", space, "mptcp", "limits", "set", "subflows", "8", "add_addr_accepted", "8")
        for name in self.names:
            _run("ip", "-n", self.ship, "mptcp", "endpoint", "add", self.of_ship(name), "dev", name, "subflow")
            _run("ip", "-n", self.shore, "mptcp", "endpoint", "add", self.of_shore(name), "dev", f"to-{name}", "signal")


def _wire(at: int) -> tuple[str, str]:
    """The two ends of a wire."""
    near, far = f"farlink-s{at}", f"farlink-v{at}"
    _run("ip", "link", "add", near, "type", "veth", "peer", "name", far)
    return near, far


def _late_ms(emulation: Emulation) -> float:
    """The lateness of which 99 % of an emulator's packets had less, in ms."""
    found = emulation.finish()
    return 1e3 * max(found.forward.late_p99_s or 0.0, found.back.late_p99_s or 0.0)


def _scenario(link: Path_) -> dict[str, Any]:
    """A path, with a flow that a scenario must have."""
    idle = {"transport": "udp", "traffic": {"kind": "cbr", "rate_bps": 1e3, "payload_bytes": 100}}
    return {"duration_s": 1e5, "seed": 1, "link": dict(link), "transport": {"udp": {"kind": "udp"}}, "flow": {"none": idle}}


def _keygen(folder: Path) -> str:
    made = subprocess.run([*CLI, "keygen", "--keys", str(folder)], capture_output=True, text=True, check=True, env=os.environ)
    return made.stdout.strip()


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: {done.stdout}{done.stderr}")

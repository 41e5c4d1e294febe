"""Two hosts at the ends of an emulated path with a pair of gateways, for `gateway_paths.py` and `gateway_load.py`."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from kernel_paths import MEMORY, PREFIX, cpu_s
from wire import CLI, make_keys
from wire_host import resident_bytes

from farlink.namespaces import FAR, Namespaces, inside
from farlink.net import generate_key, public_key
from farlink.net.emulated import Emulated
from farlink.net.emulation import Emulation

ENDS = Path(__file__).parent / "gateway_ends.py"
SESSIONS, FORWARD, SOCKS, HTTP, UDP = 47470, 6000, 1080, 3128, 6001
WEB, SERVED = 8000, 5201
RATE_BPS, ROUND_TRIP_S = 10e6, 0.25
# Bandwidth times round trip, in packets of 1500 bytes.
QUEUE_PACKETS = 208


def link(loss: float = 0.0, outage: Mapping[str, float] | None = None) -> dict[str, Any]:
    """The path, which loses packets of both ways alike."""
    channels = [{"kind": "loss", "loss": loss}] if loss else []
    if outage:
        channels.append({"kind": "outage", "period_s": 1e6, **outage})
    told: dict[str, Any] = {"rate_bps": RATE_BPS, "delay_s": ROUND_TRIP_S / 2, "queue_packets": QUEUE_PACKETS}
    if channels:
        [channel] = channels
        told |= {"channel": channel, "return": {"channel": channel}}
    return told


class Pair:
    """Namespaces with a path between them, from `with` to its end, and programs in them, which end with it."""

    def __init__(self, path: Mapping[str, Any], *, seed: int = 1) -> None:
        """Nothing is made before `with`."""
        # Flows are those of real programs; a scenario needs one.
        described = {
            "duration_s": 1e5,
            "seed": seed,
            "link": dict(path),
            "transport": {"udp": {"kind": "udp"}},
            "flow": {"none": {"transport": "udp", "traffic": {"kind": "cbr", "rate_bps": 1e3, "payload_bytes": 100}}},
        }
        self._emulation = Emulation(described)
        self._namespaces = Namespaces()
        self.running: dict[str, subprocess.Popen[bytes]] = {}
        self._folder = tempfile.TemporaryDirectory(prefix=PREFIX, dir=MEMORY if MEMORY.is_dir() else None)
        self.folder = Path(self._folder.name)

    def __enter__(self) -> Self:
        """Make the path, and keys of two hosts."""
        self._namespaces.__enter__()
        try:
            self.near, self.far = self._namespaces.near, self._namespaces.far
            self._namespaces.move(self._emulation.tunnel())
            for name in (self.near, self.far):
                self._set(name, "net.ipv4.tcp_no_metrics_save", "1")
                # A flood of connections is not to stop at the queues of the kernel.
                self._set(name, "net.core.somaxconn", "4096")
                self._set(name, "net.ipv4.ip_local_port_range", "10000 65000")
            make_keys(self.folder)
            self._emulation.start()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """End all programs and remove the namespaces."""
        self.end(*self.running)
        self._namespaces.__exit__(kind, error, trace)
        self._folder.cleanup()

    def finish(self) -> Emulated:
        """End the programs and the path; the result of the emulator."""
        self.end(*self.running)
        return self._emulation.finish(self._namespaces.unread())

    def began_unix_s(self) -> float:
        """When the path began to be played, by the wall clock."""
        return float(self._emulation.latest()["started_unix_s"])

    def _set(self, name: str, key: str, value: str) -> None:
        subprocess.run(inside(name, ["sysctl", "-qw", f"{key}={value}"]), check=True)

    def start(self, name: str, end: str, *command: str | Path, until: str = "") -> None:
        """Start a program at an end, and wait until it has said some words."""
        words = inside(end, [str(word) for word in command])
        output = self.folder / f"{name}.out"
        environment = {key: value for key, value in os.environ.items() if "proxy" not in key.lower()}
        with output.open("wb") as out:
            process = subprocess.Popen(
                words, stdout=out, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, cwd=self.folder, env=environment
            )
        self.running[name] = process
        for _ in range(600):
            if not until or until in output.read_text(errors="replace"):
                return
            if process.poll() is not None:
                raise RuntimeError(f"{name} ended: {output.read_text()}")
            time.sleep(0.05)
        raise RuntimeError(f"{name} does not start: {output.read_text()}")

    def role(self, name: str, end: str, role: str, at: str, *options: str) -> None:
        """Start a role of `gateway_ends.py`; servers are waited for."""
        until = "ready" if role in ("web", "server", "stream-server") else ""
        self.start(name, end, sys.executable, ENDS, role, at, *options, until=until)

    def said(self, name: str) -> list[dict[str, Any]]:
        """Lines of JSON that a program has printed."""
        lines = (self.folder / f"{name}.out").read_text().splitlines()
        return [json.loads(line) for line in lines if line.startswith("{") and line.endswith("}")]

    def done(self, name: str, within_s: float) -> list[dict[str, Any]]:
        """Wait for the end of a program; its lines."""
        self.running[name].wait(within_s)
        return self.said(name)

    def end(self, *names: str) -> None:
        """End programs, the first to be started last."""
        for name in reversed(names):
            process = self.running.pop(name)
            process.send_signal(signal.SIGKILL)
            process.wait()

    def run(self, *command: str, within_s: float) -> subprocess.CompletedProcess[str]:
        """Run a command at the near end."""
        environment = {key: value for key, value in os.environ.items() if "proxy" not in key.lower()}
        return subprocess.run(
            inside(self.near, command), capture_output=True, text=True, env=environment, timeout=within_s, check=False
        )

    def memory_bytes(self, name: str) -> int:
        """Resident memory of a running program."""
        return resident_bytes(self.running[name].pid)

    def cpu_s(self, name: str) -> float:
        """Processor time that a running program has used."""
        return cpu_s(self.running[name])

    @contextmanager
    def gateways(
        self, rate_bps: float | None = None, limits: str = "", more: str = "", boat_port: int | None = None
    ) -> Iterator[None]:
        """Have a pair of gateways: `ship` serves clients at the near end, `shore` connects to the far end's own address.

        `boat`, if it is given a port, is another one at the near end, with a session of its own.
        """
        packets = f"[packets]\nrate_bps = {rate_bps}\n" if rate_bps else ""
        packets += f"[limits]\n{limits}\n" if limits else ""
        others = ""
        if boat_port is not None:
            key = generate_key(self.folder / "boat")
            others = f'[peer.boat]\nkey = "{key}"\nallow = ["127.0.0.1:*"]\n'
            (self.folder / "boat.toml").write_text(
                f'keys = "boat"\n{packets}[peer.shore]\nkey = "{public_key(self.folder / "shore")}"\n'
                f'address = "{FAR}:{SESSIONS}"\n'
                f'[[forward]]\nlisten = "127.0.0.1:{boat_port}"\ndestination = "127.0.0.1:{SERVED}"\n'
            )
        (self.folder / "shore.toml").write_text(
            f'keys = "shore"\nlisten = "{FAR}:{SESSIONS}"\n{packets}[peer.ship]\nallow = ["127.0.0.1:*"]\n{others}'
        )
        proxies = "".join(f'[[{kind}]]\nlisten = "127.0.0.1:{port}"\n' for kind, port in (("socks", SOCKS), ("http", HTTP)))
        (self.folder / "ship.toml").write_text(
            f'keys = "ship"\n{packets}[peer.shore]\naddress = "{FAR}:{SESSIONS}"\n'
            f'[[forward]]\nlisten = "127.0.0.1:{FORWARD}"\ndestination = "127.0.0.1:{SERVED}"\n{proxies}'
            f'[[udp]]\nlisten = "127.0.0.1:{UDP}"\ndestination = "127.0.0.1:{UDP}"\n{more}'
        )
        ends = {"shore": self.far, "ship": self.near} | ({"boat": self.near} if boat_port is not None else {})
        for name, end in ends.items():
            self.start(name, end, *CLI, "gateway", f"{name}.toml", "--log", "error", until="sessions at")
        try:
            yield
        finally:
            self.end(*ends)

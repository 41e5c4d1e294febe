"""Both ends of `farlink bundle carry`, a namespace each, over the wires of `wires.py`."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from tests.operator.live_world import until
from tests.operator.wires import Wire, Wires, run, wires

PORT = 47471
SHIP, VPS = "10.77.0.2", "10.77.0.1"
"""Addresses within the tunnel."""
BEYOND = "192.0.2.1"
"""An address of the far end outside the tunnel, which the near one reaches by its default routes."""


class End:
    """A process of one end."""

    def __init__(self, namespace: str, config: Path, *options: str | Path) -> None:
        self.namespace, self._config, self._options = namespace, config, [str(option) for option in options]
        self._log = config.with_suffix(".log")
        self._output: IO[str] = self._log.open("w")
        self.start()

    def start(self) -> None:
        """Start it, or start it again."""
        command = [sys.executable, "-m", "farlink.cli", "bundle", "carry", str(self._config), *self._options]
        inside = ["ip", "netns", "exec", self.namespace, *command]
        self.process = subprocess.Popen(inside, stdout=subprocess.DEVNULL, stderr=self._output)

    def log(self) -> str:
        """What it has told since the first start."""
        return self._log.read_text()

    def said(self, pattern: str) -> list[str]:
        """What it has told that looks like this."""
        return re.findall(pattern, self.log(), re.MULTILINE)

    def metrics(self) -> dict[str, float]:
        """Its numbers."""
        text = output(self.namespace, "curl", "-sf", "http://127.0.0.1:9472/metrics")
        return {line.rsplit(" ", 1)[0]: float(line.rsplit(" ", 1)[1]) for line in text.splitlines() if line[:1] != "#"}

    def helper(self) -> int:
        """Process id of its helper."""
        return int(self.said(r"helper process (\d+)")[-1])

    def end(self, number: int = signal.SIGTERM) -> int:
        """Stop it, and wait until its helper is gone, too."""
        helper = self.helper() if self.said("helper process") else None
        if self.process.poll() is None:
            self.process.send_signal(number)
        code = self.process.wait(20)
        until(lambda: helper is None or not Path(f"/proc/{helper}").exists(), self.log)
        return code


class Carried:
    """A bundle over wires."""

    def __init__(
        self,
        made: Wires,
        folder: Path,
        rates: dict[str, str],
        *,
        fallback: bool,
        options: tuple[str, ...],
        families: Mapping[str, str],
        serial: Callable[[str], str] = lambda _end: "",
    ) -> None:
        self._made, self.folder = made, folder
        self.wires: dict[str, Wire] = {name: made.add(name) for name in rates}
        for name, rate in rates.items():
            for namespace, device in ((made.near, name), (made.far, f"far{list(rates).index(name) + 1}")):
                kind = ["rate", rate, "burst", "16kb", "latency", "100ms"]
                inside(namespace, "tc", "qdisc", "replace", "dev", device, "root", "tbf", *kind)
        run("ip", "-n", made.far, "address", "add", f"{BEYOND}/32", "dev", "lo")
        for at, wire in enumerate(self.wires.values(), 1):
            run("ip", "-n", f"{made.prefix}-{at}", "route", "add", f"{BEYOND}/32", "via", wire.target)
        keys = {name: keygen(folder / name) for name in ("ship", "vps")}
        first = next(iter(self.wires.values()))
        self._families = families
        for name, wire in self.wires.items():
            if "6" in families.get(name, "4"):
                wire.speak_ipv6()
                wire.give_ipv6()
        self._paths = [
            f'[[path]]\nname = "{name}"\ninterface = "{name}"\naddress = {self.addresses(name)}\n'
            + ("standby = true\nprobe_bytes_a_day = 100e3\nprobe_interval_s = 60\n" if name == "iridium" else "")
            for name, wire in self.wires.items()
        ]
        ship = [f'address = "{first.target}:{PORT}"', 'routes = ["0.0.0.0/0"]', f"fallback = {str(fallback).lower()}"]
        tun = '[tun]\nname = "carried0"\naddresses = ["{}/24"]\n'
        self.ship_config = self._write(
            "ship", "vps", keys["vps"], ship, tun.format(SHIP) + "".join(self._paths) + serial("near")
        )
        listen = f'["0.0.0.0:{PORT}", "[::]:{PORT}"]' if families else f'"0.0.0.0:{PORT}"'
        far_paths = "".join(re.sub(r"(interface|address) = .*\n", "", path) for path in self._paths)
        self.vps_config = self._write(
            "vps", "ship", keys["ship"], [f"listen = {listen}"], tun.format(VPS) + far_paths + serial("far")
        )
        self.vps = End(made.far, self.vps_config)
        self.ship = End(made.near, self.ship_config, *options)

    def addresses(self, name: str) -> list[str]:
        """Where the ship finds the server over a wire: of the families 4 and 6, in the order of `families`."""
        wire = self.wires[name]
        where = {"4": lambda: f"{wire.target}:{PORT}", "6": lambda: f"[{wire.target_ipv6}]:{PORT}"}
        return [where[family]() for family in self._families.get(name, "4")]

    def _write(self, own: str, peer: str, key: str, lines: list[str], rest: str) -> Path:
        path = self.folder / f"{own}.toml"
        head = [f'keys = "{own}"', f'peer = "{peer}"', f'peer_key = "{key}"', 'metrics = "127.0.0.1:9472"', *lines]
        path.write_text("\n".join(head) + "\n" + rest)
        return path

    @property
    def near(self) -> str:
        """Namespace of the ship."""
        return self._made.near

    @property
    def far(self) -> str:
        """Namespace of the server."""
        return self._made.far

    def is_reached(self, address: str) -> bool:
        """Whether the ship reaches an address."""
        return try_inside(self.near, "ping", "-c", "1", "-W", "1", address)

    def wait_until_open(self) -> None:
        """Both ends carry packets."""
        until(lambda: self.is_reached(VPS), lambda: f"{self.ship.log()}\n{self.vps.log()}")

    def translate(self, name: str) -> None:
        """Put an address translation into a wire, or give its flows new ports."""
        middle = f"{self._made.prefix}-{list(self.wires).index(name) + 1}"
        # The kernel forgets translations of an interface that goes down. What comes from outside may not begin a flow: its
        # answers would not be translated.
        run("ip", "-n", middle, "link", "set", "farside", "down")
        try_inside(middle, "nft", "delete table ip n")
        nat = "add table ip n; add chain ip n c { type nat hook postrouting priority 100; }"
        first = 20_000 + int(time.monotonic() * 10) % 20_000
        masquerade = f'add rule ip n c oifname "farside" ip protocol udp masquerade to :{first}-{first + 99}'
        outside = "add chain ip n f { type filter hook forward priority 0; }"
        unasked = 'add rule ip n f iifname "farside" ct state new drop'
        inside(middle, "nft", f"{nat}; {masquerade}; {outside}; {unasked}")
        run("ip", "-n", middle, "link", "set", "farside", "up")

    def shorten(self, name: str, longest_bytes: int) -> None:
        """Lose longer packets on a wire, without a word: the router behind the near end tells nobody."""
        middle = f"{self._made.prefix}-{list(self.wires).index(name) + 1}"
        silent = "add table ip m; add chain ip m c { type filter hook output priority 0; }"
        inside(middle, "nft", f"{silent}; add rule ip m c icmp type destination-unreachable drop")
        run("ip", "-n", middle, "link", "set", "farside", "mtu", str(longest_bytes))

    def close(self) -> None:
        """End both."""
        for end in (self.ship, self.vps):
            if end.process.poll() is None:
                end.end()


@contextmanager
def carried(
    folder: Path,
    rates: dict[str, str] | None = None,
    *,
    fallback: bool = False,
    options: tuple[str, ...] = (),
    families: Mapping[str, str] | None = None,
    serial: Callable[[str], str] = lambda _end: "",
) -> Iterator[Carried]:
    """Two ends over wires of these rates, and further paths that `serial` describes at each end. They are gone afterwards.

    With `families`, wires may have IPv6: `"64"` is both, IPv6 first.
    """
    with wires() as made:
        usual = {"one": "20mbit", "two": "10mbit"}
        world = Carried(
            made, folder, rates or usual, fallback=fallback, options=options, families=families or {}, serial=serial
        )
        try:
            yield world
        finally:
            world.close()


def keygen(folder: Path) -> str:
    """Make a key; the public one."""
    command = [sys.executable, "-m", "farlink.cli", "keygen", "--keys", str(folder)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def output(namespace: str, *command: str) -> str:
    """What a command says within a namespace."""
    return subprocess.run(["ip", "netns", "exec", namespace, *command], capture_output=True, text=True, check=False).stdout


def inside(namespace: str, *command: str) -> None:
    """Run a command within a namespace."""
    run("ip", "netns", "exec", namespace, *command)


def try_inside(namespace: str, *command: str) -> bool:
    """Whether a command ends well within a namespace."""
    return subprocess.run(["ip", "netns", "exec", namespace, *command], capture_output=True, check=False).returncode == 0

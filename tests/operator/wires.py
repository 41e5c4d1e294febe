"""Interfaces that can be unplugged, and that can lose everything with a carrier: one network namespace beside each end.

An operator runs in the namespace `near`. Each of its wires goes to a namespace of its own, which forwards to `far`, so that the
near end sees its carrier while packets are dropped behind it.
"""

from __future__ import annotations

import itertools
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

SHAPED = ("rate", "1mbit", "burst", "10kb", "latency", "50ms")
"""What a near end sends at most, with a queue that holds it up."""

_NUMBERS = itertools.count()


def missing() -> str | None:
    """Why there are no wires here; None if there can be."""
    if os.geteuid() != 0:
        return "not root"
    name = f"farlink-wire-{os.getpid()}"
    try:
        made = subprocess.run(["ip", "netns", "add", name], capture_output=True, check=False)
        if made.returncode != 0:
            return "no network namespaces"
        rules = subprocess.run(["ip", "netns", "exec", name, "nft", "list", "ruleset"], capture_output=True, check=False)
        tbf = ["ip", "netns", "exec", name, "tc", "qdisc", "add", "dev", "lo", "root", "tbf", *SHAPED]
        shaped = subprocess.run(tbf, capture_output=True, check=False)
        subprocess.run(["ip", "netns", "del", name], check=True)
    except FileNotFoundError as error:
        return f"{error.filename} is missing"
    if rules.returncode != 0:
        return "no nft, or no kernel for it"
    return None if shaped.returncode == 0 else "this kernel has no tbf"


class Wire:
    """One wire, from interface `name` in `near` to ``10.AT.2.2`` in `far`.

    Attributes
    ----------
    target, target_ipv6
        The addresses of its far end.
    """

    target_ipv6: str

    def __init__(self, wires: Wires, at: int, name: str) -> None:
        self._wires, self._at, self.name = wires, at, name
        self._middle = f"{wires.prefix}-{at}"
        self._address = f"10.{at}.1.1/24"
        self.target = f"10.{at}.2.2"
        self._address_of_far = f"{self.target}/24"
        run("ip", "netns", "add", self._middle)
        run("ip", "netns", "exec", self._middle, "sysctl", "-qw", "net.ipv4.ip_forward=1")
        run("ip", "-n", self._middle, "link", "add", "farside", "type", "veth", "peer", "name", f"far{at}", "netns", wires.far)
        self._at_middle("ip", "address", "add", f"10.{at}.2.1/24", "dev", "farside")
        run("ip", "-n", wires.far, "address", "add", self._address_of_far, "dev", f"far{at}")
        self._at_middle("ip", "link", "set", "farside", "up")
        run("ip", "-n", wires.far, "link", "set", f"far{at}", "up")
        run("ip", "-n", wires.far, "route", "add", f"10.{at}.1.0/24", "via", f"10.{at}.2.1")
        self._at_middle("nft", "add table ip t; add chain ip t c { type filter hook forward priority 0; }")
        self.make()

    def prefix_near(self) -> list[str]:
        """What runs a command at the near end."""
        return self._wires.prefix_near()

    def speak_ipv6(self) -> None:
        """Let both ends of the wire have addresses of IPv6 as well, the near one when it is given one."""
        at = self._at
        self.target_ipv6 = f"fd00:{at}:2::2"
        self._at_middle("sysctl", "-qw", "net.ipv6.conf.all.forwarding=1")
        for near, device in ((f"fd00:{at}:1::2/64", "nearside"), (f"fd00:{at}:2::1/64", "farside")):
            self._at_middle("ip", "address", "add", near, "dev", device, "nodad")
        run("ip", "-n", self._wires.far, "address", "add", f"{self.target_ipv6}/64", "dev", f"far{at}", "nodad")
        run("ip", "-n", self._wires.far, "route", "add", f"fd00:{at}:1::/64", "via", f"fd00:{at}:2::1")

    def give_ipv6(self) -> None:
        """Give the near end an address of IPv6, and a route to the far one."""
        at = self._at
        run("ip", "-n", self._wires.near, "address", "add", f"fd00:{at}:1::1/64", "dev", self.name, "nodad")
        route = ["default", "via", f"fd00:{at}:1::2", "dev", self.name, "metric", str(1000 + at)]
        run("ip", "-n", self._wires.near, "-6", "route", "replace", *route)

    def take_ipv6(self) -> None:
        """Take the near end's address of IPv6 away."""
        run("ip", "-n", self._wires.near, "-6", "address", "flush", "dev", self.name, "scope", "global")

    def make(self) -> None:
        """Plug a new interface in, with an address; as if it had been away."""
        at = self._at
        run(
            "ip",
            "-n",
            self._wires.near,
            "link",
            "add",
            self.name,
            "type",
            "veth",
            "peer",
            "name",
            "nearside",
            "netns",
            self._middle,
        )
        self._at_middle("ip", "address", "add", f"10.{at}.1.2/24", "dev", "nearside")
        self._at_middle("ip", "link", "set", "nearside", "up")
        self._at_near(
            "tc", "qdisc", "add", "dev", self.name, "root", "tbf", *["rate", "1mbit", "burst", "10kb", "latency", "50ms"]
        )
        self._at_near("ip", "link", "set", self.name, "up")
        self.give_address()

    def delete(self) -> None:
        """Take the interface away."""
        run("ip", "-n", self._wires.near, "link", "del", self.name)

    def unplug(self) -> None:
        """Pull the wire out."""
        self._at_middle("ip", "link", "set", "nearside", "down")

    def plug(self) -> None:
        """Put it in again."""
        self._at_middle("ip", "link", "set", "nearside", "up")

    def drop(self, *, outward: bool = True, inward: bool = True) -> None:
        """Lose all packets behind the near end, each way or one."""
        rules = [
            f'add rule ip t c iifname "{name}" drop'
            for name, is_lost in (("nearside", outward), ("farside", inward))
            if is_lost
        ]
        self._at_middle("nft", "; ".join(rules))

    def carry(self) -> None:
        """Lose nothing any more."""
        self._at_middle("nft", "flush chain ip t c")

    def take_address(self) -> None:
        """What is left when a DHCP server has gone."""
        run("ip", "-n", self._wires.near, "address", "flush", "dev", self.name, "scope", "global")

    def give_address(self, last: int = 1) -> None:
        """Give the near end an address, and a route to the far one behind its gateway."""
        at = self._at
        run("ip", "-n", self._wires.near, "address", "add", f"10.{at}.1.{last}/24", "dev", self.name)
        route = ["default", "via", f"10.{at}.1.2", "dev", self.name, "metric", str(1000 + at)]
        run("ip", "-n", self._wires.near, "route", "replace", *route)

    def _at_middle(self, *command: str) -> None:
        run("ip", "netns", "exec", self._middle, *command)

    def _at_near(self, *command: str) -> None:
        run("ip", "netns", "exec", self._wires.near, *command)


class Wires:
    """Both ends, and the wires between them.

    Attributes
    ----------
    near, far
        Namespaces.
    """

    def __init__(self) -> None:
        self.prefix = f"farlink-w{os.getpid()}-{next(_NUMBERS)}"
        self.near, self.far = f"{self.prefix}-near", f"{self.prefix}-far"
        self._made: list[Wire] = []
        for name in (self.near, self.far):
            run("ip", "netns", "add", name)
            run("ip", "-n", name, "link", "set", "lo", "up")

    def add(self, name: str) -> Wire:
        """One more wire; its interface has this name."""
        self._made.append(Wire(self, len(self._made) + 1, name))
        return self._made[-1]

    def prefix_near(self) -> list[str]:
        """What runs a command at the near end."""
        return ["ip", "netns", "exec", self.near]

    def close(self) -> None:
        """Leave nothing."""
        for path in Path("/run/netns").glob(f"{self.prefix}-*"):
            run("ip", "netns", "del", path.name)


@contextmanager
def wires() -> Iterator[Wires]:
    """Namespaces that are gone afterwards."""
    made = Wires()
    try:
        yield made
    finally:
        made.close()


def run(*command: str) -> None:
    """Run a command, and say what it said if it fails."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{' '.join(command)}: {done.stderr}"

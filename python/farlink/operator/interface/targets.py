"""Whom a line asks whether its packets arrive: hosts, by ICMP, and a far operator."""

from __future__ import annotations

import ipaddress
import os
import time
from collections.abc import Callable, Collection
from typing import Protocol

from farlink.operator.interface import echo
from farlink.operator.interface.asking import Asker
from farlink.operator.interface.evidence import Evidence
from farlink.operator.interface.sent import Sent
from farlink.operator.interface.settings import host_and_port, ip_bytes, udp_bytes
from farlink.operator.interface.sockets import Datagrams, Echoes, resolved, udp_socket

Spend = Callable[[int], None]
"""Counts bytes."""


class Target(Protocol):
    """Somebody who answers probes."""

    name: str

    async def open(self, interface: str, versions: Collection[int], spend: Spend, answered: Callable[[], None]) -> None:
        """Open a socket on an interface with addresses of these versions of IP.

        Raises
        ------
        OSError
            If its name is not known, or there is no such socket for this user.
        """
        ...

    def send(self, now_s: float, interval_s: float) -> None:
        """Send a probe.

        Raises
        ------
        OSError
            If the interface does not take it.
        """
        ...

    def close(self) -> None:
        """Close the socket; nothing more is heard."""
        ...


class Host:
    """A host that answers ICMP echoes.

    Parameters
    ----------
    name
        Its address, or a name.
    evidence
        Gets the proofs.
    """

    def __init__(self, name: str, evidence: Evidence) -> None:
        self.name = name
        self._evidence = evidence
        self._sent = Sent(0xFFFF)
        self._echoes: Echoes | None = None
        self._address = ""

    async def open(self, interface: str, versions: Collection[int], spend: Spend, answered: Callable[[], None]) -> None:
        """Open a socket for echoes."""
        self._address, _ = await resolved(self.name, 0, versions)
        size = ip_bytes(self._address) + echo.BYTES

        def came(sequence: int, sender: str) -> None:
            spend(size)
            sent_s = self._sent.take(sequence)
            if sent_s is not None and sender == self._address:
                self._evidence.answered(sent_s, time.monotonic())
                answered()

        self._spend, self._size = spend, size
        self._echoes = Echoes(interface, ipaddress.ip_address(self._address).version, came)

    def send(self, now_s: float, interval_s: float) -> None:  # noqa: ARG002
        """Ask it."""
        if self._echoes is not None:
            self._echoes.send(self._sent.add(now_s), self._address)
            self._spend(self._size)

    def close(self) -> None:
        """Ask it no more."""
        if self._echoes is not None:
            self._echoes.close()
            self._echoes = None


class Peer:
    """A far operator, which says what it has got.

    Parameters
    ----------
    name
        ``HOST:PORT``.
    evidence
        Gets the proofs.
    """

    def __init__(self, name: str, evidence: Evidence) -> None:
        self.name = name
        self._asker = Asker(evidence, int.from_bytes(os.urandom(8)))
        self._datagrams: Datagrams | None = None
        self._address = ("", 0)

    async def open(self, interface: str, versions: Collection[int], spend: Spend, answered: Callable[[], None]) -> None:
        """Open a socket."""
        self._address = await resolved(*host_and_port(self.name), versions)
        size = udp_bytes(self._address[0])

        def came(data: bytes, sender: tuple[str, int]) -> None:
            if sender == self._address and self._asker.feed(data, time.monotonic()):
                spend(size)
                answered()

        self._spend, self._size = spend, size
        version = ipaddress.ip_address(self._address[0]).version
        self._datagrams = Datagrams(udp_socket(None, interface, version=version), came)

    def send(self, now_s: float, interval_s: float) -> None:
        """Ask it."""
        if self._datagrams is not None:
            self._datagrams.send(self._asker.probe(now_s, interval_s), self._address)
            self._spend(self._size)

    def close(self) -> None:
        """Ask it no more."""
        if self._datagrams is not None:
            self._datagrams.close()
            self._datagrams = None

"""Sockets that send over one interface, and nothing else."""

from __future__ import annotations

import asyncio
import ipaddress
import os
import socket
from collections.abc import Callable, Collection
from contextlib import suppress
from typing import Any

from farlink.operator.interface import echo

Received = Callable[[bytes, tuple[str, int]], None]

_RECEIVED_BYTES = 2048
_MOST_AT_ONCE = 256
_FLAGS = socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC


class Datagrams:
    """A socket bound to an interface.

    Parameters
    ----------
    opened
        The socket, which this closes.
    received
        Gets each datagram, with the address that it came from.
    """

    def __init__(self, opened: socket.socket, received: Received) -> None:
        self._socket, self._received = opened, received
        asyncio.get_running_loop().add_reader(opened, self._read)

    def send(self, data: bytes, to: tuple[str, int]) -> None:
        """Send a datagram.

        Raises
        ------
        OSError
            If the interface does not take it.
        """
        with suppress(BlockingIOError):
            self._socket.sendto(data, to)

    def close(self) -> None:
        """Close it."""
        asyncio.get_running_loop().remove_reader(self._socket)
        self._socket.close()

    def _read(self) -> None:
        for _ in range(_MOST_AT_ONCE):
            try:
                data, sender = self._socket.recvfrom(_RECEIVED_BYTES)
            except OSError:  # nothing more, or an ICMP error, which is no answer
                return
            self._received(data, (str(sender[0]), int(sender[1])))


class Echoes:
    """ICMP echoes to hosts: a ping socket, or a raw one where this user may not have the former.

    Parameters
    ----------
    interface
        Its name.
    version
        4 or 6, of IP.
    answered
        Gets the sequence number of each answer, and the address of who answers.
    """

    def __init__(self, interface: str, version: int, answered: Callable[[int, str], None]) -> None:
        self._version, self._answered = version, answered
        self._identifier, self._nonce = int.from_bytes(os.urandom(2)), os.urandom(16)
        opened, self._is_raw = ping_socket(version)
        try:
            bind_to(opened, interface)
        except OSError:
            opened.close()
            raise
        self._datagrams = Datagrams(opened, self._came)

    def send(self, sequence: int, host: str) -> None:
        """Ask a host.

        Raises
        ------
        OSError
            If the interface does not take it.
        """
        self._datagrams.send(echo.request(self._version, self._identifier, sequence, self._nonce), (host, 0))

    def close(self) -> None:
        """Close the socket."""
        self._datagrams.close()

    def _came(self, data: bytes, sender: tuple[str, int]) -> None:
        has_header = self._is_raw and self._version == 4
        sequence = echo.answered(self._version, data, self._nonce, has_ip_header=has_header)
        if sequence is not None:
            self._answered(sequence, sender[0])


def ping_socket(version: int) -> tuple[socket.socket, bool]:
    """A socket for ICMP echoes, and whether it is a raw one.

    Raises
    ------
    PermissionError
        If this user may have neither.
    """
    family = socket.AF_INET if version == 4 else socket.AF_INET6
    protocol = socket.IPPROTO_ICMP if version == 4 else socket.IPPROTO_ICMPV6
    try:
        return socket.socket(family, socket.SOCK_DGRAM | _FLAGS, protocol), False
    except PermissionError:
        return socket.socket(family, socket.SOCK_RAW | _FLAGS, protocol), True


def udp_socket(address: tuple[str, int] | None, interface: str, *, version: int = 4) -> socket.socket:
    """A socket for UDP, over an interface unless that is empty.

    Parameters
    ----------
    address
        Where it listens; None for a port of its own.
    interface
        Name of the interface.
    version
        4 or 6, of IP.

    Raises
    ------
    OSError
        If the address is taken or not of this machine, or this user may not bind a socket to the interface.
    """
    opened = socket.socket(socket.AF_INET if version == 4 else socket.AF_INET6, socket.SOCK_DGRAM | _FLAGS)
    try:
        if interface:
            bind_to(opened, interface)
        if address is not None:
            opened.bind(address)
    except OSError:
        opened.close()
        raise
    return opened


def bind_to(opened: socket.socket, interface: str) -> None:
    """Let a socket send and receive over one interface only.

    Raises
    ------
    OSError
        If the interface is not there, or this user may not.
    """
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, interface.encode() + b"\0")


async def resolved(host: str, port: int, versions: Collection[int]) -> tuple[str, int]:
    """The address of a host, as a socket takes it.

    Parameters
    ----------
    host, port
        A name or an address.
    versions
        Those of IP that there are: a name may have addresses of which none can be reached.

    Raises
    ------
    OSError
        If nobody knows the name, or no address of it has one of the versions.
    """
    try:
        return str(ipaddress.ip_address(host)), port
    except ValueError:
        pass
    try:
        found: list[Any] = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_DGRAM)
    except UnicodeError as error:
        raise OSError("is no name of a host") from error
    addresses = [str(one[4][0]).partition("%")[0] for one in found]
    for address in addresses:
        if ipaddress.ip_address(address).version in versions:
            return address, port
    raise OSError(f"has no address of IPv{' or IPv'.join(map(str, sorted(versions)))}")

"""Addresses of hosts with their ports."""

from __future__ import annotations

import socket
from typing import Literal

from farlink.errors import ArgumentError

UDP_PORT = 47470
"""The port at which files and connections are received unless another one is given."""

Insecure = Literal["loopback", "anywhere"]
"""Where packets may go in the clear: between programs of this machine, or between any machines."""


def resolved(text: str) -> str:
    """The address with its port, the name of a host resolved."""
    host, port = text, str(UDP_PORT)
    if text.startswith("["):
        host, _, rest = text[1:].partition("]")
        port = rest.removeprefix(":") or port
    elif text.count(":") == 1:
        host, port = text.split(":")
    if not (port.isascii() and port.isdecimal() and int(port) < 65536):
        raise ArgumentError(f"{text}: {port!r} is no port", "write for example 192.0.2.1:47470 or [2001:db8::1]:47470")
    try:
        found = socket.getaddrinfo(host, int(port), type=socket.SOCK_DGRAM)
    except (OSError, UnicodeError) as error:
        raise ArgumentError(f"{text}: this host is not known: {error}", "give an address, or a name that resolves") from error
    address = str(found[0][4][0])
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"

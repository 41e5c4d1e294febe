"""Reports to systemd: ready, alive, stopping (sd_notify(3)), by a datagram to the socket that it names."""

from __future__ import annotations

import os
import socket
from contextlib import suppress


def notify(state: str) -> None:
    """Tell a state, such as ``READY=1``; without systemd nothing."""
    address = os.environ.get("NOTIFY_SOCKET", "")
    if address[:1] not in ("/", "@"):
        return
    with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as sender:
        sender.setblocking(False)
        sender.sendto(state.encode(), "\0" + address[1:] if address[0] == "@" else address)


def watchdog_s() -> float | None:
    """How often systemd wants to hear ``WATCHDOG=1``: half its limit; None if it does not ask."""
    microseconds, whose = os.environ.get("WATCHDOG_USEC", ""), os.environ.get("WATCHDOG_PID", str(os.getpid()))
    is_asked = microseconds.isdecimal() and int(microseconds) > 0 and whose == str(os.getpid())
    return int(microseconds) / 2e6 if is_asked else None

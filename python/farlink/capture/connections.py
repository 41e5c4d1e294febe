"""Connections in a capture, of TCP and of AeroTP."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from farlink.capture import aerotp, ip, tcp
from farlink.capture.files import Capture
from farlink.errors import CaptureError

# Protocols of captures whose packets have no sequence numbers that can be followed, by their numbers in IP.
_NAMES = {1: "ICMP", 17: "UDP", 58: "ICMPv6", 253: "STP or ARQ of farlink", 254: "AeroTP that is cut short"}

# All that can be followed.
Connection = aerotp.Connection | tcp.Connection


def connections(capture: Capture) -> list[Connection]:
    """The connections in a capture: first those of TCP, then those of AeroTP, each in the order of their first packet.

    Parameters
    ----------
    capture
        Its packets. Those of other protocols are left out.

    Returns
    -------
    list of Connection
        Numbered from 0.

    Raises
    ------
    CaptureError
        If there is none.
    """
    found: list[Connection] = []
    found += tcp.connections(capture)
    found += aerotp.connections(capture, first=len(found))
    if not found:
        raise CaptureError(f"{capture.name}: no TCP and no AeroTP in {len(capture.packets)} packets{_others(capture)}",
                           "give a capture of either, taken on the sender's interface")  # fmt: skip
    return found


def chosen(found: Sequence[Connection], capture: Capture, stream: int | None = None) -> Connection:
    """The connection with most data, or the one of a number.

    Parameters
    ----------
    found
        Those of a capture.
    capture
        The capture, for messages.
    stream
        Number of a connection, from 0; None for the largest.

    Raises
    ------
    CaptureError
        If there is no such connection, or it carries no data.
    """
    if stream is not None and not 0 <= stream < len(found):
        remedy = f"its connections have the numbers 0 to {len(found) - 1}"
        raise CaptureError(f"{capture.name}: there is no connection {stream}", remedy)
    one = max(found, key=lambda connection: connection.data_bytes) if stream is None else found[stream]
    if one.data_bytes == 0:
        what = f"connection {one.stream}, {one.name}," if stream is not None else f"none of {len(found)} connections"
        message = f"{capture.name}: {what} carries {'no' if stream is not None else 'any'} data"
        raise CaptureError(message, "choose another, or capture while data flows")
    return one


def _others(capture: Capture) -> str:
    """Other content of a capture without connections."""
    numbers = Counter(read.protocol for packet in capture.packets if (read := ip.content(packet)) is not None)
    if not numbers:
        return ip.unknown_links(capture.packets)
    number, count = numbers.most_common(1)[0]
    return f"; {count} are {_NAMES.get(number, f'of IP protocol {number}')}, which cannot be followed"

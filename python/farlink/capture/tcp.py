"""TCP connections in captured packets: data that each side sent, retransmitted and acknowledged."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from farlink.capture import ip
from farlink.capture.connection import Address, CapturedConnection, Direction
from farlink.capture.files import Capture, Packet

_TCP = 6
_FIN, _SYN, _RST, _ACK = 1, 2, 4, 16
_WRAP = 1 << 32


@dataclass(frozen=True, slots=True)
class Segment:
    """A segment: time in s, sequence and acknowledgement numbers as sent, bytes of data, flags, bytes on the wire."""

    time_s: float
    sequence: int
    acknowledged: int
    data_bytes: int
    flags: int
    length: int


@dataclass
class Connection(CapturedConnection[Segment]):
    """One connection of TCP; its number is Wireshark's ``tcp.stream``."""

    @cached_property
    def forward(self) -> Direction:
        """The direction with more data."""
        return _direction(self.segments[self.sender], self.segments[1 - self.sender])


def connections(capture: Capture) -> list[Connection]:
    """The TCP connections in a capture.

    Parameters
    ----------
    capture
        Its packets. Those that are not TCP, and fragments of IP after the first, are left out.

    Returns
    -------
    list of Connection
        In the order of their first packet; empty if there is none.
    """
    found: list[Connection] = []
    current: dict[frozenset[Address], Connection] = {}
    for packet in capture.packets:
        read = _segment(packet)
        if read is None:
            continue
        source, destination, segment = read
        key = frozenset((source, destination))
        connection = current.get(key)
        if connection is None or _begins_anew(connection, source, segment):
            connection = current[key] = Connection(len(found), (source, destination))
            found.append(connection)
        connection.segments[0 if source == connection.ends[0] else 1].append(segment)
    return found


def _begins_anew(connection: Connection, source: Address, segment: Segment) -> bool:
    """Whether a SYN opens another connection between the same ports."""
    if segment.flags & (_SYN | _ACK) != _SYN:
        return False
    before = connection.segments[0 if source == connection.ends[0] else 1]
    return bool(before) and not any(one.flags & _SYN and one.sequence == segment.sequence for one in before)


def _direction(own: list[Segment], other: list[Segment]) -> Direction:
    if own and own[0].flags & _SYN:
        base = own[0].sequence + 1
    else:
        # Captured from the middle on: starts at the lowest position that was sent or acknowledged.
        first = own[0].sequence if own else 0
        base = first + min((ahead(one.sequence, first) for one in own), default=0)
    times, firsts, lasts, again = [], [], [], []
    highest = 0
    for one in own:
        if one.data_bytes == 0:
            continue
        first = highest + ahead(one.sequence + bool(one.flags & _SYN), base + highest)
        times.append(one.time_s)
        firsts.append(first)
        lasts.append(first + one.data_bytes)
        again.append(first < highest)
        highest = max(highest, first + one.data_bytes)
    ack_times, acks = [], []
    latest = 0
    for one in other:
        if one.flags & _ACK and not one.flags & _RST:
            latest = max(latest, latest + ahead(one.acknowledged, base + latest))
            ack_times.append(one.time_s)
            # The end of the stream occupies one sequence number.
            acks.append(min(latest, highest))
    return Direction(
        np.array(times, dtype=np.float64),
        np.array(firsts, dtype=np.float64),
        np.array(lasts, dtype=np.float64),
        np.array(again, dtype=np.bool_),
        np.array(ack_times, dtype=np.float64),
        np.array(acks, dtype=np.float64),
    )


def ahead(number: int, reference: int) -> int:
    """By how much a sequence number is ahead of another; below 0 if behind. They wrap."""
    return (number - reference + _WRAP // 2) % _WRAP - _WRAP // 2


def _segment(packet: Packet) -> tuple[Address, Address, Segment] | None:
    """Source, destination and segment of a packet; None if it is not TCP or too little of it was captured."""
    read = ip.content(packet)
    if read is None or read.protocol != _TCP:
        return None
    begin, end = read.begin, read.end
    if begin + 14 > len(packet.data):
        return None
    source_port, destination_port, sequence, acknowledged, offset, flags = struct.unpack_from("!HHIIBB", packet.data, begin)
    data_bytes = end - begin - (offset >> 4) * 4
    if data_bytes < 0:
        return None
    segment = Segment(packet.time_s, sequence, acknowledged, data_bytes, flags, packet.length)
    return (read.source, source_port), (read.destination, destination_port), segment

"""AeroTP connections in captured packets: data that each side sent, and which of it was lost on the way.

A segment counts as lost by the sender's own rule ([R3] of ``docs/aerotp.md``): a MACK describes its data as not arrived ([A9])
and echoes a segment that was sent later. What no MACK tells is left open.
"""

from __future__ import annotations

import bisect
import struct
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate

import numpy as np

from farlink.capture import ip
from farlink.capture.connection import Address, CapturedConnection, Direction
from farlink.capture.files import Capture, Packet
from farlink.capture.tcp import ahead
from farlink.errors import CaptureError

_AEROTP, _UDP = 254, 17
_UDP_BYTES = 8
_VERSION, _SEALED = 1, 0x20
_ASYN, _MACK, _RESET, _FEC, _REPAIR, _CRC, _EXTENDED = 0x80, 0x20, 0x10, 0x08, 0x04, 0x02, 0x01
_FIXED_BYTES, _END_BYTES, _CRC_BYTES, _LIST_BYTES = 16, 4, 4, 16
_PADDING, _SKIPPED = 0, 3
_FROM_START, _TO_END, _COUNTS, _DISTANCES = 1 << 31, 1 << 30, 1 << 29, 1 << 28
# Modes whose MACKs say what has arrived; those of the others do not ([U5]).
MODES = ("reliable", "near-reliable", "quasi-reliable", "unreliable", "datagram")
_ACKNOWLEDGED = 2
# Positions stay below this, so that "everything behind" has an end.
_END = 1 << 62

Ranges = list[tuple[int, int]]


@dataclass(frozen=True, slots=True)
class Mack:
    """An acknowledgement: the echoed timestamp, blocks (first byte, behind the last), flags of the list, bytes skipped."""

    echo: int
    blocks: tuple[tuple[int, int], ...]
    flags: int
    skipped: int


@dataclass(frozen=True, slots=True)
class Segment:
    """A segment: time in s, numbers as sent, bytes of data, mode, and the opening or the acknowledgement that it carries."""

    time_s: float
    sequence: int
    timestamp: int
    data_bytes: int
    mode: int
    opening: int | None
    mack: Mack | None
    is_repair: bool


@dataclass
class Connection(CapturedConnection[Segment]):
    """One connection of AeroTP."""

    @property
    def mode(self) -> str:
        """Its mode of reliability, in words."""
        return MODES[self.segments[self.sender][0].mode]

    @property
    def untold(self) -> str:
        """Why the capture cannot tell which segments were lost; empty if it can."""
        macks = [one.mack for one in self.segments[1 - self.sender] if one.mack is not None]
        if self.segments[self.sender][0].mode >= _ACKNOWLEDGED:
            return f"acknowledgements of the {self.mode} mode do not say what has arrived"
        if not macks:
            return "no acknowledgement was captured"
        if any(one.flags & _COUNTS for one in macks):
            return "acknowledgements of coded data count segments and do not name them"
        return ""

    @cached_property
    def forward(self) -> Direction:
        """The direction with more data; its ``is_lost`` and ``is_arrived`` are None if the capture cannot tell."""
        return _Reading(self.segments[self.sender], self.segments[1 - self.sender], is_told=not self.untold).direction()


def connections(capture: Capture, first: int = 0) -> list[Connection]:
    """The AeroTP connections in a capture.

    Parameters
    ----------
    capture
        Its packets. AeroTP is IP protocol 254, or a UDP datagram that begins with a header whose check is right.
    first
        Number of the first connection.

    Returns
    -------
    list of Connection
        In the order of their first packet; empty if there is none.

    Raises
    ------
    CaptureError
        If all AeroTP in it is sealed, or of another version.
    """
    found: list[Connection] = []
    current: dict[frozenset[Address], Connection] = {}
    unread: Counter[str] = Counter()
    for packet in capture.packets:
        at = _begin(packet)
        if at is None:
            continue
        read, begin, end = at
        if begin + _FIXED_BYTES > len(packet.data):
            continue
        control = packet.data[begin + 12]
        if control >> 6 != _VERSION or control & _SEALED:
            unread["sealed" if control >> 6 == _VERSION else f"of version {control >> 6}"] += 1
            continue
        segment = _segment(packet, begin, end)
        if segment is None:
            continue
        ports = struct.unpack_from("!HH", packet.data, begin)
        source, destination = (read.source, ports[0]), (read.destination, ports[1])
        key = frozenset((source, destination))
        connection = current.get(key)
        if connection is None or _begins_anew(connection, source, segment):
            connection = current[key] = Connection(first + len(found), (source, destination))
            found.append(connection)
        connection.segments[0 if source == connection.ends[0] else 1].append(segment)
    if unread and not found:
        kind, count = unread.most_common(1)[0]
        raise CaptureError(f"{capture.name}: {count} AeroTP segments are {kind} and cannot be read",
                           "capture a connection of version 1 that is not sealed")  # fmt: skip
    return found


def _begin(packet: Packet) -> tuple[ip.Content, int, int] | None:
    """Where an AeroTP segment begins and ends; None if there is none."""
    read = ip.content(packet)
    if read is None:
        return None
    if read.protocol == _AEROTP:
        return read, read.begin, read.end
    begin = read.begin + _UDP_BYTES
    if read.protocol != _UDP or begin + _FIXED_BYTES > len(packet.data) or packet.data[begin + 12] >> 6 != _VERSION:
        return None
    if packet.data[begin + 12] & _SEALED:
        return None
    bytes_ = _header_bytes(packet.data, begin)
    if bytes_ is None:
        return None
    (check,) = struct.unpack_from("!H", packet.data, begin + bytes_ - 2)
    return (read, begin, read.end) if check == _crc_16(packet.data[begin : begin + bytes_ - 2]) else None


def _header_bytes(data: bytes, begin: int) -> int | None:
    """Bytes of the header with its optional fields; None if less was captured."""
    flags = data[begin + 13]
    bytes_ = _FIXED_BYTES + 4 * bool(flags & _ASYN) + 4 * bool(flags & _FEC) + 16 * bool(flags & _REPAIR)
    if flags & _EXTENDED:
        if begin + bytes_ >= len(data):
            return None
        bytes_ += 4 * data[begin + bytes_]
    bytes_ += _END_BYTES
    return bytes_ if begin + bytes_ <= len(data) else None


def _segment(packet: Packet, begin: int, end: int) -> Segment | None:
    """A segment; None if too little of it was captured or it is malformed."""
    data = packet.data
    sequence, timestamp, control, flags, length = struct.unpack_from("!IIBBH", data, begin + 4)
    header = _header_bytes(data, begin)
    mode = control >> 2 & 7
    if header is None or mode >= len(MODES) or begin + header + length > end or flags & _RESET:
        return None
    opening = struct.unpack_from("!I", data, begin + _FIXED_BYTES)[0] if flags & _ASYN else None
    if not flags & _MACK:
        return Segment(packet.time_s, sequence, timestamp, length, mode, opening, None, _is_repair(data, begin, flags))
    at = begin + header
    if length < _LIST_BYTES or at + length > len(data):
        return None
    echo, listed = struct.unpack_from("!II", data, at)
    rest = data[at + _LIST_BYTES : at + length]
    edges = _from_distances(sequence, rest) if listed & _DISTANCES else _from_edges(rest)
    if edges is None:
        return None
    skipped = _skipped(data, begin, flags, header)
    mack = Mack(echo, tuple(zip(edges[::2], edges[1::2], strict=True)), listed & 0xE0000000, skipped)
    return Segment(packet.time_s, sequence, timestamp, 0, mode, opening, mack, is_repair=False)


def _from_edges(rest: bytes) -> tuple[int, ...] | None:
    return None if len(rest) % 8 else struct.unpack(f"!{len(rest) // 4}I", rest)


def _from_distances(ack: int, rest: bytes) -> tuple[int, ...] | None:
    """Edges from their distances: a unit, then each distance in units, as numbers of RFC 9000, section 16 ([A11])."""
    numbers, at = [], 0
    while at < len(rest):
        length = 1 << (rest[at] >> 6)
        if at + length > len(rest):
            return None
        numbers.append(int.from_bytes(rest[at : at + length]) & (1 << (8 * length - 2)) - 1)
        at += length
    if not numbers:
        return ()
    unit, distances = numbers[0], numbers[1:]
    if len(distances) % 2 or any(distance * unit >= 1 << 32 for distance in distances):
        return None
    return tuple(edge & 0xFFFFFFFF for edge in accumulate((distance * unit for distance in distances), initial=ack))[1:]


def _is_repair(data: bytes, begin: int, flags: int) -> bool:
    """Whether a segment carries a repair symbol, and not data that describes its block too ([K3])."""
    if not flags & _REPAIR:
        return False
    at = begin + _FIXED_BYTES + 4 * bool(flags & _ASYN) + 4 * bool(flags & _FEC)
    symbols, index = struct.unpack_from("!HI", data, at + 10)
    return bool(index >= symbols)


def _skipped(data: bytes, begin: int, flags: int, header: int) -> int:
    """Bytes that a MACK says were skipped so far ([V8])."""
    if not flags & _EXTENDED:
        return 0
    at = begin + _FIXED_BYTES + 4 * bool(flags & _ASYN) + 4 * bool(flags & _FEC) + 16 * bool(flags & _REPAIR) + 1
    last = begin + header - _END_BYTES
    while at < last:
        if data[at] == _PADDING:
            at += 1
            continue
        if at + 2 > last or at + 2 + data[at + 1] > last:
            return 0
        if data[at] == _SKIPPED and data[at + 1] == 4:
            return int.from_bytes(data[at + 2 : at + 6])
        at += 2 + data[at + 1]
    return 0


def _begins_anew(connection: Connection, source: Address, segment: Segment) -> bool:
    """Whether an ASYN opens another stream between the same ports."""
    if segment.opening is None or segment.mack is not None:
        return False
    before = connection.segments[0 if source == connection.ends[0] else 1]
    openings = {one.opening for one in before[:1000] if one.opening is not None}
    return bool(openings) and segment.opening not in openings


def _crc_16(data: bytes) -> int:
    """CRC-16/IBM-3740."""
    value = 0xFFFF
    for byte in data:
        value ^= byte << 8
        for _ in range(8):
            value = (value << 1 ^ 0x1021 if value & 0x8000 else value << 1) & 0xFFFF
    return value


_OPEN, _ARRIVED, _LOST = 0, 1, 2


class _Reading:
    """Reports of a connection's MACKs about the segments that were sent before them."""

    def __init__(self, own: list[Segment], other: list[Segment], *, is_told: bool) -> None:
        self._is_told = is_told
        self._time_s: list[float] = []
        self._first: list[int] = []
        self._last: list[int] = []
        self._again: list[bool] = []
        self._fate: list[int] = []
        self._pending: list[int] = []
        # First bytes of what was sent, in order, each with its number: to find what else carried the same bytes.
        self._order: list[tuple[int, int]] = []
        self._longest = 0
        self._highest = 0
        # Timestamps of the side's segments: how many data segments had gone out before.
        self._before: dict[int, int] = {}
        self._stamp = -1
        self._acknowledged: list[tuple[float, int]] = []
        self._ack = 0
        self._skipped = 0
        opening = next((one.opening for one in own if one.opening is not None), None)
        numbers = [one.sequence for one in own if one.data_bytes and not one.is_repair]
        start = numbers[0] if numbers else 0
        self._base = opening if opening is not None else start + min((ahead(one, start) for one in numbers[:1000]), default=0)
        for side, segment in _in_order(own, other):
            if side == 0:
                self._send(segment)
            elif segment.mack is not None:
                self._answer(segment, segment.mack)

    def direction(self) -> Direction:
        """The result, as arrays."""
        fate = np.array(self._fate, dtype=np.int8)
        return Direction(
            np.array(self._time_s, dtype=np.float64),
            np.array(self._first, dtype=np.float64),
            np.array(self._last, dtype=np.float64),
            np.array(self._again, dtype=np.bool_),
            np.array([time_s for time_s, _ in self._acknowledged], dtype=np.float64),
            np.array([min(ack, self._highest) for _, ack in self._acknowledged], dtype=np.float64),
            fate == _LOST if self._is_told else None,
            fate == _ARRIVED if self._is_told else None,
        )

    def _position(self, number: int) -> int:
        """The position in the stream that a number means, next to what was sent last."""
        return self._highest + ahead(number, self._base + self._highest)

    def _send(self, segment: Segment) -> None:
        if segment.mack is None:
            # A tick may stamp several: only what went out before the first of them was surely sent earlier.
            count = self._before[segment.timestamp] if segment.timestamp == self._stamp else len(self._first)
            self._stamp, self._before[segment.timestamp] = segment.timestamp, count
        if segment.data_bytes == 0 or segment.is_repair:
            return
        first = self._position(segment.sequence)
        self._time_s.append(segment.time_s)
        self._first.append(first)
        self._last.append(first + segment.data_bytes)
        self._again.append(first < self._highest)
        self._fate.append(_OPEN)
        self._pending.append(len(self._fate) - 1)
        bisect.insort(self._order, (first, len(self._fate) - 1))
        self._longest = max(self._longest, segment.data_bytes)
        self._highest = max(self._highest, first + segment.data_bytes)

    def _answer(self, segment: Segment, mack: Mack) -> None:
        ack = self._position(segment.sequence)
        # [A8]: what was not sent cannot be acknowledged; the end of the stream counts one.
        if not 0 <= ack <= self._highest + 1:
            return
        self._acknowledged.append((segment.time_s, max(ack, self._ack)))
        sent_before = self._before.get(mack.echo)
        if not self._is_told or sent_before is None:
            return
        blocks = [(self._position(begin), self._position(end)) for begin, end in mack.blocks]
        arrived = [one for one in blocks if one[0] < one[1]]
        # Where something was skipped meanwhile, the number passes data that has not arrived ([V6]).
        if mack.skipped == self._skipped:
            arrived.append((0, ack))
        missing = _missing(ack, blocks, mack.flags)
        passed = max(ack, self._ack)
        self._ack, self._skipped = passed, mack.skipped if ack >= self._ack else self._skipped
        self._settle(arrived, missing, passed, sent_before)

    def _settle(self, arrived: Ranges, missing: Ranges, passed: int, sent_before: int) -> None:
        left, here = [], []
        for index in self._pending:
            span = (self._first[index], self._last[index])
            if index < sent_before and _touches(span, missing):
                self._fate[index] = _LOST
            elif _lies_in(span, arrived):
                here.append(index)
            elif span[1] > passed:
                left.append(index)
        # Bytes that arrived came in one of the segments that carried them: known which, if all others were lost.
        for index in here:
            if all(self._fate[other] == _LOST for other in self._others(index)):
                self._fate[index] = _ARRIVED
        self._pending = left

    def _others(self, index: int) -> Iterator[int]:
        """Other segments that carried some of the same bytes."""
        first, last = self._first[index], self._last[index]
        at = bisect.bisect_left(self._order, (first - self._longest, 0))
        while at < len(self._order) and self._order[at][0] < last:
            other = self._order[at][1]
            if other != index and self._last[other] > first:
                yield other
            at += 1


def _missing(ack: int, blocks: Ranges, flags: int) -> Ranges:
    """Data that a list describes as not arrived ([A9])."""
    found = []
    edge: int | None = ack if flags & _FROM_START else None
    for begin, end in blocks:
        if edge is not None and begin > edge:
            found.append((edge, begin))
        edge = end if begin < end else None
    if flags & _TO_END and edge is not None:
        found.append((edge, _END))
    return found


def _touches(span: tuple[int, int], ranges: Ranges) -> bool:
    return any(begin < span[1] and span[0] < end for begin, end in ranges)


def _lies_in(span: tuple[int, int], ranges: Ranges) -> bool:
    return any(begin <= span[0] and span[1] <= end for begin, end in ranges)


def _in_order(own: list[Segment], other: list[Segment]) -> list[tuple[int, Segment]]:
    """Segments of both sides by time; what was sent at the time of an answer was sent behind it."""
    both = [(one.time_s, 1, index, one) for index, one in enumerate(own)]
    both += [(one.time_s, 0, index, one) for index, one in enumerate(other)]
    return [(1 - kind, one) for _, kind, _, one in sorted(both, key=lambda item: item[:3])]

"""Packets out of capture files: pcap and pcapng, of either byte order, compressed or not.

Every refusal names the byte at which a file stops making sense, and the packet. A capture that was cut off in the middle of a
packet, as happens to those that were written while a machine went down, gives the packets before it and a note.

References
----------
IETF drafts draft-ietf-opsawg-pcap and draft-ietf-opsawg-pcapng.
"""

from __future__ import annotations

import gzip
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from farlink.errors import CaptureError
from farlink.untrusted import gunzip, read_file

# Longest accepted packet: pcap files with 256 KiB snapshots exist; longer packets are a sign of damage.
_LONGEST = 1 << 24
# Each becomes an object of some 300 bytes.
_MOST_PACKETS = 2_000_000
_SECTION, _INTERFACE, _OLD_PACKET, _SIMPLE_PACKET, _PACKET = 0x0A0D0D0A, 1, 2, 3, 6
_BYTE_ORDER = 0x1A2B3C4D
_RESOLUTION, _OFFSET = 9, 14
# Magic number of a pcap file, read in its own byte order: units per second of its times.
_PCAP = {0xA1B2C3D4: 1_000_000, 0xA1B23C4D: 1_000_000_000}
_PATCHED = 0xA1B2CD34

_NOT_A_CAPTURE = "give a pcap or pcapng file, as written by tcpdump -w, dumpcap or farlink run --pcap"
_DAMAGED = "copy the file anew; or save what is whole with: editcap FILE MENDED"


@dataclass(frozen=True, slots=True)
class Packet:
    """One packet.

    Attributes
    ----------
    number
        From 1, in the order of the file.
    time_s
        When it was captured, in s since 1970; of a simulated one, since the run began.
    link_type
        Number of the kind of link, which says what its bytes begin with (``LINKTYPE_...``).
    data
        Its bytes, as far as they were kept.
    length
        Its length on the wire, in bytes.
    """

    number: int
    time_s: float
    link_type: int
    data: bytes
    length: int


@dataclass
class Capture:
    """A capture file.

    Attributes
    ----------
    name
        Of the file.
    packets
        Its packets, in the order of the file.
    note
        What a reader should know: that it was cut off, and where; empty otherwise.
    """

    name: str
    packets: list[Packet] = field(default_factory=list)
    note: str = ""


def is_capture(path: str | Path) -> bool:
    """Whether a file is a capture, by its name or its first bytes; False if it cannot be read and is not called like one."""
    path = Path(path)
    if path.name.removesuffix(".gz").endswith((".pcap", ".pcapng", ".cap")):
        return True
    try:
        with path.open("rb") as file:
            head = file.read(4)
        if head[:2] == b"\x1f\x8b":
            with gzip.open(path) as file:
                head = file.read(4)
    except (OSError, EOFError, zlib.error):
        return False
    magic = (int.from_bytes(head, "little"), int.from_bytes(head, "big"))
    return head == b"\n\r\r\n" or any(one in _PCAP or one == _PATCHED for one in magic)


class _CutOffError(Exception):
    """The file ends within a packet."""


def read(path: str | Path) -> Capture:
    """Read a capture.

    Parameters
    ----------
    path
        The file: pcap with times in microseconds or nanoseconds, or pcapng; by gzip if its first bytes say so.

    Returns
    -------
    Capture
        Its packets.

    Raises
    ------
    CaptureError
        If it cannot be read, is no capture, or makes no sense from some byte on.
    """
    return parse(_bytes(Path(path)), str(path))


def parse(data: bytes, name: str) -> Capture:
    """Read a capture in memory, as returned by `farlink.trace_run`.

    Parameters
    ----------
    data
        Content of a file, not compressed.
    name
        Its name, for messages.

    Raises
    ------
    CaptureError
        As `read`.
    """
    found = Capture(Path(name).name)
    try:
        for packet in _packets(data, name):
            if len(found.packets) == _MOST_PACKETS:
                message = f"{name}: more than the {_MOST_PACKETS:,} packets that are read"
                raise CaptureError(message, "cut it into parts: editcap -c 1000000 FILE PART")
            found.packets.append(packet)
    except _CutOffError as error:
        if not found.packets:
            raise CaptureError(f"{name}: cut off {error} before the end of its first packet", _DAMAGED) from error
        found.note = f"{name} is cut off {error}, in packet {len(found.packets) + 1}: what comes before is used"
    if not found.packets:
        raise CaptureError(f"{name}: no packet in {len(data)} bytes", "capture again, with a filter that lets TCP through")
    return found


def _bytes(path: Path) -> bytes:
    try:
        data = read_file(path, CaptureError)
    except IsADirectoryError as error:
        raise CaptureError(f"{path} is a directory", "give one of the captures in it") from error
    except OSError as error:
        raise CaptureError(f"{path}: {error.strerror}", "check the name of the capture") from error
    data = gunzip(data, str(path), CaptureError)
    if not data:
        raise CaptureError(f"{path}: the file is empty", _NOT_A_CAPTURE)
    return data


def _packets(data: bytes, name: str) -> Iterator[Packet]:
    if data[:4] == b"\n\r\r\n":
        return _pcapng(data, name)
    for order in "<>":
        if len(data) >= 4:
            (magic,) = struct.unpack_from(order + "I", data)
            if magic == _PATCHED:
                remedy = "write it as pcapng: editcap FILE OUT.pcapng"
                raise CaptureError(f"{name}: a patched form of pcap (magic number a1b2cd34)", remedy)
            if magic in _PCAP:
                return _pcap(data, name, order, _PCAP[magic])
    raise CaptureError(f"{name}: no capture: it begins with {data[:4].hex(' ')}", _NOT_A_CAPTURE)


def _pcap(data: bytes, name: str, order: str, units: int) -> Iterator[Packet]:
    if len(data) < 24:
        raise _CutOffError(f"at byte {len(data)}")
    (link_type,) = struct.unpack_from(order + "I", data, 20)
    header = struct.Struct(order + "IIII")
    at, number = 24, 0
    while at < len(data):
        number += 1
        if at + 16 > len(data):
            raise _CutOffError(f"at byte {len(data)}")
        seconds, fraction, kept, length = header.unpack_from(data, at)
        if kept > _LONGEST or fraction >= units:
            what = f"{kept} bytes long" if kept > _LONGEST else f"at {fraction} of {units} parts of a second"
            raise CaptureError(f"{name}, byte {at}: packet {number} is {what}", _DAMAGED)
        at += 16
        if at + kept > len(data):
            raise _CutOffError(f"at byte {len(data)}")
        # The upper bits of the link type give the length of the check sequence after each packet.
        yield Packet(number, seconds + fraction / units, link_type & 0xFFFF, data[at : at + kept], max(length, kept))
        at += kept


@dataclass
class _Interface:
    """Description of one interface in a section."""

    link_type: int
    snapshot: int
    units: float = 1e6
    offset_s: int = 0


def _pcapng(data: bytes, name: str) -> Iterator[Packet]:
    order, interfaces, at, number = "<", list[_Interface](), 0, 0
    while at < len(data):
        if at + 12 > len(data):
            raise _CutOffError(f"at byte {len(data)}")
        where = f"{name}, byte {at}"
        if data[at : at + 4] == b"\n\r\r\n":
            order, interfaces = _byte_order(data, at, where), []
        kind, length = struct.unpack_from(order + "II", data, at)
        if length < 12 or length % 4 or length > _LONGEST:
            raise CaptureError(f"{where}: a block of {length} bytes after packet {number}", _DAMAGED)
        if at + length > len(data):
            raise _CutOffError(f"at byte {len(data)}")
        (again,) = struct.unpack_from(order + "I", data, at + length - 4)
        if again != length:
            message = f"{where}: a block of {length} bytes after packet {number} ends as one of {again}"
            raise CaptureError(message, _DAMAGED)
        body = data[at + 8 : at + length - 4]
        if kind == _INTERFACE:
            interfaces.append(_interface(body, order, where))
        elif kind in (_PACKET, _OLD_PACKET, _SIMPLE_PACKET):
            number += 1
            yield _packet(kind, body, order, interfaces, number, where)
        at += length


def _byte_order(data: bytes, at: int, where: str) -> str:
    for order in "<>":
        if struct.unpack_from(order + "I", data, at + 8) == (_BYTE_ORDER,):
            return order
    raise CaptureError(f"{where}: a section without its byte order: {data[at + 8 : at + 12].hex(' ')}", _DAMAGED)


def _interface(body: bytes, order: str, where: str) -> _Interface:
    if len(body) < 8:
        raise CaptureError(f"{where}: an interface of {len(body)} bytes", _DAMAGED)
    link_type, snapshot = struct.unpack_from(order + "HxxI", body)
    found, at = _Interface(link_type, snapshot), 8
    while at + 4 <= len(body):
        code, length = struct.unpack_from(order + "HH", body, at)
        value = body[at + 4 : at + 4 + length]
        if code == 0 or len(value) < length:
            break
        if code == _RESOLUTION and length == 1:
            found.units = 2.0 ** (value[0] & 0x7F) if value[0] & 0x80 else 10.0 ** value[0]
        elif code == _OFFSET and length == 8:
            (found.offset_s,) = struct.unpack(order + "q", value)
        at += 4 + (length + 3) // 4 * 4
    return found


def _packet(kind: int, body: bytes, order: str, interfaces: list[_Interface], number: int, where: str) -> Packet:
    layout = {_PACKET: "IIIII", _OLD_PACKET: "HxxIIII", _SIMPLE_PACKET: "I"}[kind]
    begin = struct.calcsize(order + layout)
    if len(body) < begin:
        raise CaptureError(f"{where}: packet {number} has a header of {len(body)} bytes instead of {begin}", _DAMAGED)
    fields = struct.unpack_from(order + layout, body)
    index = 0 if kind == _SIMPLE_PACKET else fields[0]
    if index >= len(interfaces):
        message = f"{where}: packet {number} is of interface {index}, and the file has {len(interfaces)}"
        raise CaptureError(message, _DAMAGED)
    interface = interfaces[index]
    if kind == _SIMPLE_PACKET:
        message = f"{where}: packet {number} has no time (a simple packet block)"
        raise CaptureError(message, "capture again with times: tcpdump -w FILE")
    _, high, low, kept, length = fields
    if kept > len(body) - begin:
        raise CaptureError(f"{where}: packet {number} of {kept} bytes in a block that holds {len(body) - begin}", _DAMAGED)
    time_s = interface.offset_s + ((high << 32) | low) / interface.units
    return Packet(number, time_s, interface.link_type, body[begin : begin + kept], max(length, kept))

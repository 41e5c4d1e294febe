"""IP in captured packets, behind the headers of the link: which protocol it carries, and where that begins and ends."""

from __future__ import annotations

import ipaddress
import struct
from collections.abc import Iterable
from dataclasses import dataclass

from farlink.capture.files import Packet

_IPV4, _IPV6 = 0x0800, 0x86DD
_VLANS = (0x8100, 0x88A8, 0x9100)
# Headers of IPv6 that may precede the transport's.
_EXTENSIONS = (0, 43, 60)
_FRAGMENT = 44

# Numbers of link types -> bytes before the network layer, and offset of its Ethernet type; none where it must be IP.
_ETHERNET, _PPP, _NULL, _LOOP = 1, 9, 0, 108
_COOKED = {113: (16, 14), 276: (20, 0)}
_RAW = (12, 14, 101, 228, 229)
LINK_TYPES = (_NULL, _ETHERNET, _PPP, _LOOP, *_RAW, *_COOKED)


@dataclass(frozen=True, slots=True)
class Content:
    """Content of an IP packet.

    Attributes
    ----------
    protocol
        Its number, 6 for TCP.
    source, destination
        Addresses, 4 or 16 bytes.
    begin, end
        Offsets of its first byte and behind its last in the packet; the end may lie behind what was kept of it.
    """

    protocol: int
    source: bytes
    destination: bytes
    begin: int
    end: int


def content(packet: Packet) -> Content | None:
    """Content of a packet; None if it is not IP, a fragment after the first, or too little of it was captured."""
    at = _network(packet)
    if at is None or at >= len(packet.data):
        return None
    version = packet.data[at] >> 4
    if version == 4:
        return _ipv4(packet, at)
    return _ipv6(packet, at) if version == 6 else None


def address(host: bytes, port: int) -> str:
    """Address and port in words."""
    known = ipaddress.ip_address(host)
    return f"[{known}]:{port}" if known.version == 6 else f"{known}:{port}"


def unknown_links(packets: Iterable[Packet]) -> str:
    """For a message: the kind of link that cannot be read, if there is one."""
    unknown = sorted({packet.link_type for packet in packets} - set(LINK_TYPES))
    return f"; link type {unknown[0]} is not known" if unknown else ""


def _network(packet: Packet) -> int | None:
    """Offset of the network layer; None if it is not IP."""
    data, kind = packet.data, packet.link_type
    if kind in _RAW:
        return 0
    if kind in (_NULL, _LOOP):
        return 4
    if kind == _PPP:
        at = 2 if data[:2] == b"\xff\x03" else 0
        # A protocol number may be shortened to its odd byte.
        width = 1 if at < len(data) and data[at] & 1 else 2
        return at + width if data[at : at + width] in (b"\x00\x21", b"\x21", b"\x00\x57", b"\x57") else None
    if kind in _COOKED:
        begin, type_at = _COOKED[kind]
    elif kind == _ETHERNET:
        begin, type_at = 14, 12
        while len(data) >= begin and int.from_bytes(data[type_at : type_at + 2]) in _VLANS:
            begin, type_at = begin + 4, type_at + 4
    else:
        return None
    return begin if int.from_bytes(data[type_at : type_at + 2]) in (_IPV4, _IPV6) else None


def _ipv4(packet: Packet, at: int) -> Content | None:
    data = packet.data
    if at + 20 > len(data):
        return None
    (total, _, fragment) = struct.unpack_from("!HHH", data, at + 2)
    if fragment & 0x1FFF:
        return None
    # Where the network card cuts segments, the length is not yet known.
    end = at + total if total else packet.length
    return Content(data[at + 9], data[at + 12 : at + 16], data[at + 16 : at + 20], at + (data[at] & 15) * 4, end)


def _ipv6(packet: Packet, at: int) -> Content | None:
    data = packet.data
    if at + 40 > len(data):
        return None
    payload, following = struct.unpack_from("!HB", data, at + 4)
    begin, end = at + 40, at + 40 + payload if payload else packet.length
    while following in (*_EXTENSIONS, _FRAGMENT):
        if begin + 8 > len(data):
            return None
        if following == _FRAGMENT and int.from_bytes(data[begin + 2 : begin + 4]) & 0xFFF8:
            return None
        length = 8 if following == _FRAGMENT else 8 + 8 * data[begin + 1]
        following, begin = data[begin], begin + length
    return Content(following, data[at + 8 : at + 24], data[at + 24 : at + 40], begin, end)

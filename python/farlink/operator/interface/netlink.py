"""Messages of rtnetlink: links, addresses and routes of this machine, without a socket.

References
----------
rtnetlink(7), netlink(7); RFC 3549.
"""

from __future__ import annotations

import ipaddress
import struct
from collections.abc import Iterator
from dataclasses import dataclass

NEW_LINK, DEL_LINK, GET_LINK = 16, 17, 18
NEW_ADDRESS, DEL_ADDRESS, GET_ADDRESS = 20, 21, 22
NEW_ROUTE, DEL_ROUTE, GET_ROUTE = 24, 25, 26
ERROR, DONE = 2, 3

GROUPS, ROUTE_GROUP = 0x1 | 0x10 | 0x100, 0x40
"""Of links and of IPv4 and IPv6 addresses; and of IPv4 routes."""

_REQUEST, _ACK, _DUMP, _EXCLUSIVE, _CREATE = 0x1, 0x4, 0x300, 0x200, 0x400
_HEADER = struct.Struct("=IHHII")
_LINK = struct.Struct("=BxHiII")
_ADDRESS = struct.Struct("=BBBBI")
_ROUTE = struct.Struct("=BBBBBBBBI")
_ATTRIBUTE = struct.Struct("=HH")
_IFF_UP, _IFF_LOWER_UP = 0x1, 0x10000
_TENTATIVE, _DAD_FAILED = 0x40, 0x08
_AF_INET, _AF_INET6 = 2, 10
_MAIN_TABLE, _UNICAST, _LINK_SCOPE = 254, 1, 253


@dataclass(frozen=True)
class Counters:
    """Bytes that an interface has carried since it exists."""

    packets_in: int
    packets_out: int
    bytes_in: int
    bytes_out: int


@dataclass(frozen=True)
class Link:
    """An interface: whether someone has switched it on, and whether its wire or radio has a carrier."""

    index: int
    name: str
    is_up: bool
    has_carrier: bool
    counters: Counters | None = None


@dataclass(frozen=True)
class Address:
    """An address of an interface, such as ``192.0.2.7/24``; one that is not `is_usable` is still checked for duplicates."""

    index: int
    text: str
    is_usable: bool = True


@dataclass(frozen=True)
class Route:
    """An IPv4 default route of the main table; without a gateway all is on the link."""

    index: int
    gateway: str = ""
    metric: int = 0
    protocol: int = 0


@dataclass(frozen=True)
class Message:
    """A message of the kernel.

    Attributes
    ----------
    kind
        One of the constants of this module.
    sequence
        That of the request that it answers.
    content
        What is new or gone; None for `DONE`, and for what is no concern of farlink.
    errno
        Of an `ERROR`; 0 says that a request was carried out.
    """

    kind: int
    sequence: int
    content: Link | Address | Route | None = None
    errno: int = 0


def messages(data: bytes) -> Iterator[Message]:
    """The messages of a datagram. What is malformed is left out.

    Parameters
    ----------
    data
        As it was received.
    """
    at = 0
    while at + _HEADER.size <= len(data):
        length, kind, _, sequence, _ = _HEADER.unpack_from(data, at)
        if length < _HEADER.size or at + length > len(data):
            return
        body = data[at + _HEADER.size : at + length]
        at += length + 3 & ~3
        try:
            found = _message(kind, sequence, body)
        except (struct.error, ValueError):
            continue
        yield found


def dump(kind: int, sequence: int) -> bytes:
    """A request for all links, addresses or routes.

    Parameters
    ----------
    kind
        `GET_LINK`, `GET_ADDRESS` or `GET_ROUTE`.
    sequence
        Of its answer.
    """
    body = {GET_LINK: _LINK.pack(0, 0, 0, 0, 0), GET_ADDRESS: _ADDRESS.pack(0, 0, 0, 0, 0)}.get(
        kind, _ROUTE.pack(_AF_INET, 0, 0, 0, 0, 0, 0, 0, 0)
    )
    return _request(kind, _DUMP, sequence, body)


def get_link(index: int, sequence: int) -> bytes:
    """A request for one interface, with its counters."""
    return _request(GET_LINK, 0, sequence, _LINK.pack(0, 0, index, 0, 0))


def change_route(route: Route, sequence: int, *, is_new: bool) -> bytes:
    """A request for a new default route, or one less; an `ERROR` answers it, with 0 if it was carried out.

    Parameters
    ----------
    route
        IPv4; one that is there already is an error (EEXIST).
    sequence
        Of the answer.
    is_new
        Whether it is to come or to go.
    """
    scope = 0 if route.gateway else _LINK_SCOPE
    body = _ROUTE.pack(_AF_INET, 0, 0, 0, _MAIN_TABLE, route.protocol, scope, _UNICAST, 0)
    body += _attribute(4, struct.pack("=I", route.index)) + _attribute(6, struct.pack("=I", route.metric))
    if route.gateway:
        body += _attribute(5, ipaddress.IPv4Address(route.gateway).packed)
    return _request(NEW_ROUTE if is_new else DEL_ROUTE, _ACK | (_CREATE | _EXCLUSIVE if is_new else 0), sequence, body)


def _request(kind: int, flags: int, sequence: int, body: bytes) -> bytes:
    return _HEADER.pack(_HEADER.size + len(body), kind, _REQUEST | flags, sequence, 0) + body


def _attribute(kind: int, content: bytes) -> bytes:
    return _ATTRIBUTE.pack(_ATTRIBUTE.size + len(content), kind) + content + bytes(-len(content) % 4)


def _message(kind: int, sequence: int, body: bytes) -> Message:
    if kind == ERROR:
        (code,) = struct.unpack_from("=i", body)
        return Message(kind, sequence, errno=-code)
    if kind in (NEW_LINK, DEL_LINK):
        return Message(kind, sequence, _link(body))
    if kind in (NEW_ADDRESS, DEL_ADDRESS):
        return Message(kind, sequence, _address(body))
    if kind in (NEW_ROUTE, DEL_ROUTE):
        return Message(kind, sequence, _route(body))
    return Message(kind, sequence)


def _attributes(body: bytes, at: int) -> dict[int, bytes]:
    found = {}
    while at + _ATTRIBUTE.size <= len(body):
        length, kind = _ATTRIBUTE.unpack_from(body, at)
        if length < _ATTRIBUTE.size or at + length > len(body):
            raise ValueError(f"attribute of {length} bytes")
        found[kind & 0x3FFF] = body[at + _ATTRIBUTE.size : at + length]
        at += length + 3 & ~3
    return found


def _link(body: bytes) -> Link | None:
    family, _, index, flags, _ = _LINK.unpack_from(body)
    attributes = _attributes(body, _LINK.size)
    if family != 0 or 3 not in attributes:
        return None  # of a bridge's port, which goes by the same type
    name = attributes[3].rstrip(b"\0").decode("utf-8", "replace")
    counters = Counters(*struct.unpack_from("=4Q", attributes[23])) if 23 in attributes else None
    return Link(index, name, bool(flags & _IFF_UP), bool(flags & _IFF_LOWER_UP), counters)


def _address(body: bytes) -> Address | None:
    family, prefix, flags, _, index = _ADDRESS.unpack_from(body)
    attributes = _attributes(body, _ADDRESS.size)
    raw = attributes.get(2, attributes.get(1))
    if raw is None or len(raw) != {_AF_INET: 4, _AF_INET6: 16}.get(family):
        return None
    if 8 in attributes:
        (flags,) = struct.unpack_from("=I", attributes[8])
    return Address(index, f"{ipaddress.ip_address(raw)}/{prefix}", not flags & (_TENTATIVE | _DAD_FAILED))


def _route(body: bytes) -> Route | None:
    family, length, _, _, table, protocol, _, kind, _ = _ROUTE.unpack_from(body)
    attributes = _attributes(body, _ROUTE.size)
    if 15 in attributes:
        (table,) = struct.unpack_from("=I", attributes[15])
    if (family, length, table, kind) != (_AF_INET, 0, _MAIN_TABLE, _UNICAST) or 4 not in attributes:
        return None
    (index,) = struct.unpack_from("=I", attributes[4])
    metric = struct.unpack_from("=I", attributes[6])[0] if 6 in attributes else 0
    gateway = str(ipaddress.IPv4Address(attributes[5])) if len(attributes.get(5, b"")) == 4 else ""
    return Route(index, gateway, metric, protocol)

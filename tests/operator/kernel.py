"""Messages of rtnetlink as the kernel sends them, and a kernel that sends them in virtual time."""

from __future__ import annotations

import ipaddress
import struct
from collections.abc import Callable
from typing import Any

from farlink.operator.interface import netlink
from farlink.operator.interface.table import Table

UP, CARRIER = 0x1, 0x10000


def message(kind: int, body: bytes, sequence: int = 0) -> bytes:
    return struct.pack("=IHHII", 16 + len(body), kind, 0, sequence, 0) + body + bytes(-len(body) % 4)


def attribute(kind: int, content: bytes) -> bytes:
    return struct.pack("=HH", 4 + len(content), kind) + content + bytes(-len(content) % 4)


def link(index: int, name: str, flags: int = UP | CARRIER, packets_in: int = 0, *, is_gone: bool = False) -> bytes:
    body = struct.pack("=BxHiII", 0, 1, index, flags, 0) + attribute(3, name.encode() + b"\0")
    body += attribute(23, struct.pack("=4Q", packets_in, 0, 100 * packets_in, 0) + bytes(160))
    return message(17 if is_gone else 16, body)


def address(index: int, text: str, flags: int = 0x80, *, is_gone: bool = False) -> bytes:
    given = ipaddress.ip_interface(text)
    body = struct.pack("=BBBBI", 2 if given.version == 4 else 10, given.network.prefixlen, flags & 0xFF, 0, index)
    body += attribute(1, given.ip.packed) + attribute(8, struct.pack("=I", flags))
    return message(21 if is_gone else 20, body)


def route(index: int, gateway: str = "", metric: int = 0, protocol: int = 3, *, is_gone: bool = False) -> bytes:
    body = struct.pack("=BBBBBBBBI", 2, 0, 0, 0, 254, protocol, 0, 1, 0) + attribute(15, struct.pack("=I", 254))
    body += attribute(5, ipaddress.ip_address(gateway).packed) if gateway else b""
    body += attribute(4, struct.pack("=I", index))
    return message(25 if is_gone else 24, body + (attribute(6, struct.pack("=I", metric)) if metric else b""))


def done(sequence: int) -> bytes:
    return message(netlink.DONE, struct.pack("=i", 0), sequence)


class Kernel:
    """In the place of `Watch`: what a test says of interfaces, and the routes that were asked for."""

    def __init__(self, changed: Callable[[], None]) -> None:
        self.table = Table()
        self._changed = changed
        self.asked: list[tuple[Any, bool]] = []
        self.refusal: OSError | None = None
        self.looks = 0

    def open(self) -> None:
        self.table = Table()
        while request := self.table.poll_output():
            self.table.feed(done(struct.unpack_from("=I", request, 8)[0]))

    def close(self) -> None:
        return None

    def look(self, index: int) -> None:  # noqa: ARG002
        self.looks += 1

    def say(self, *data: bytes) -> None:
        for one in data:
            self.table.feed(one)
        self._changed()

    async def change_route(self, changed: netlink.Route, *, is_new: bool) -> None:
        if self.refusal is not None:
            raise self.refusal
        self.asked.append((changed, is_new))
        self.say(route(changed.index, changed.gateway, changed.metric, changed.protocol, is_gone=not is_new))

"""ICMP echoes: requests, and which request an answer is for (RFC 792, RFC 4443)."""

from __future__ import annotations

import struct

_HEADER = struct.Struct("!BBHHH")
_REQUEST = {4: 8, 6: 128}
_REPLY = {4: 0, 6: 129}

BYTES = 24
"""Of a request, without the header of IP."""


def request(version: int, identifier: int, sequence: int, nonce: bytes) -> bytes:
    """A request.

    Parameters
    ----------
    version
        4 or 6, of IP.
    identifier, sequence
        16 bits each. A ping socket puts in an identifier of its own.
    nonce
        16 bytes that nobody else knows.
    """
    kind = _REQUEST[version]
    bare = _HEADER.pack(kind, 0, 0, identifier, sequence) + nonce
    # Of IPv6 the kernel makes the checksum, which goes over its addresses.
    return _HEADER.pack(kind, 0, _checksum(bare), identifier, sequence) + nonce


def answered(version: int, data: bytes, nonce: bytes, *, has_ip_header: bool = False) -> int | None:
    """The sequence number that an answer is for; None if this is no answer to a request with this nonce.

    Parameters
    ----------
    version
        4 or 6, of IP.
    data
        As it was received.
    nonce
        Of the requests.
    has_ip_header
        Whether the header of IPv4 comes first, as with a raw socket.
    """
    if has_ip_header and data:
        data = data[(data[0] & 0xF) * 4 :]
    if len(data) != BYTES:
        return None
    kind, code, _, _, sequence = _HEADER.unpack_from(data)
    is_reply = (kind, code) == (_REPLY[version], 0) and data[_HEADER.size :] == nonce
    return int(sequence) if is_reply else None


def _checksum(data: bytes) -> int:
    total: int = sum(struct.unpack(f"!{len(data) // 2}H", data))
    total = (total & 0xFFFF) + (total >> 16)
    total += total >> 16
    return 0xFFFF - (total & 0xFFFF)

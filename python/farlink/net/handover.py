"""Streams handed to the custody of gateways, and received at the far end. `docs/guides/gateway.md` says what custody is."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass

from farlink.errors import core_errors
from farlink.net.addresses import UDP_PORT, Insecure, resolved
from farlink.net.keys import folder, peer_key


@dataclass(frozen=True)
class SentStream:
    """A stream that a gateway has on its disk, all of it."""

    stream: str
    """Its number: 32 hexadecimal digits."""
    bytes: int
    """Its length."""


@dataclass(frozen=True)
class StreamEvent:
    """Something that happened while streams were received."""

    kind: str
    """`listening`, `begun`, `kept`, `waits`, `done` or `failed`."""
    stream: str = ""
    """The number of the stream, with all but `listening`."""
    address: str = ""
    """With `listening`: the address of the socket."""
    sink: str = ""
    """With `begun` and `done`: the name under which it was sent here."""
    host: str = ""
    """With `done`: the last gateway."""
    bytes: int = 0
    """Bytes of it that are kept; with `begun` those that an earlier program has kept, with `done` all of it."""
    lost_bytes: int = 0
    """With `done`: bytes that gateways have lost. They are zeros, and listed in a file beside it that ends with `.lost`."""
    path: str | None = None
    """With `done`: its file."""
    reason: str = ""
    """With `waits` and `failed`: why, and what to do."""
    exit_code: int = 0
    """With `failed`: 1 if the network failed, 2 if someone has to change something first."""


def send_stream(
    source: str | os.PathLike[str] | None,
    to: str,
    *,
    sink: str,
    key: str | None = None,
    stream: str | None = None,
    keys: str | os.PathLike[str] | None = None,
    psk: str | None = None,
    rate_bps: float | None = None,
    packet_bytes: int = 1500,
    damaged_links: bool = False,
    insecure: Insecure | None = None,
    patience_s: float = 300.0,
    begun: Callable[[str], None] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> SentStream:
    """Hand a file or standard input to the custody of a gateway, which passes it on when this host is gone.

    Parameters
    ----------
    source
        A file; None is standard input.
    to
        The gateway: a name or an address, with `:PORT` if it is not 47470; IPv6 addresses with a port in brackets.
    sink
        The name of the sink, as the gateways' routes have it.
    key
        Public key or name of the gateway; by default the only trusted host.
    stream
        The number of a stream that was interrupted, to go on with it: the same host hands over the same content, and what the
        gateway has of it is not sent again. By default a new stream begins.
    keys, psk, rate_bps, packet_bytes, damaged_links, insecure
        As of `send_files`.
    patience_s
        How long it may take until the gateway keeps more, in seconds: nobody may be there, or its store may be full.
    begun
        Called with the number of the stream before anything is sent.
    progress
        Called about ten times a second with the bytes that the gateway has on its disk and the bytes of the file.

    Raises
    ------
    ArgumentError
        If the address or the name of the gateway is none.
    TransferError
        If the gateway refuses the stream or keeps nothing for too long, or the source or a file of this host cannot be used.
    """
    from farlink import _core

    gateway = peer_key(key, keys)
    with core_errors():
        sent = _core.send_stream(
            None if source is None else os.fspath(source),
            gateway,
            resolved(to),
            sink,
            stream=stream,
            keys=folder(keys),
            psk=psk,
            rate_bps=rate_bps,
            packet_bytes=packet_bytes,
            damaged_links=damaged_links,
            insecure=insecure,
            patience_s=patience_s,
            begun=begun,
            progress=progress,
        )
    return SentStream(**json.loads(sent))


def receive_streams(
    directory: str | os.PathLike[str] | None,
    tell: Callable[[StreamEvent], None],
    *,
    listen: str = f"127.0.0.1:{UDP_PORT}",
    keys: str | os.PathLike[str] | None = None,
    psk: str | None = None,
    packet_bytes: int = 1500,
    damaged_links: bool = False,
    insecure: Insecure | None = None,
    once: bool = False,
    patience_s: float = 300.0,
) -> None:
    """Receive the streams that trusted gateways bring, until Ctrl-C or one is there. What is kept is on the disk of this host.

    Parameters
    ----------
    directory
        Where each stream gets a file, by the name of its sink and its number; None passes the first one to standard output.
    tell
        Called with what happens.
    listen
        Address and UDP port of the socket. By default only this machine can send; `0.0.0.0` or `[::]` is every interface.
    keys, psk, packet_bytes, damaged_links, insecure
        As of `receive_files`.
    once
        Stop after one whole stream.
    patience_s
        How long a silent gateway is waited for, in seconds, before its connection ends. It comes again, and nothing is lost.

    Raises
    ------
    TransferError
        If the address or a file of this host cannot be used; with `once` also if the stream fails.
    """
    from farlink import _core

    def told(event: str) -> None:
        tell(StreamEvent(**json.loads(event)))

    with core_errors():
        _core.receive_streams(
            None if directory is None else os.fspath(directory),
            resolved(listen),
            told,
            keys=folder(keys),
            psk=psk,
            packet_bytes=packet_bytes,
            damaged_links=damaged_links,
            insecure=insecure,
            once=once,
            patience_s=patience_s,
        )

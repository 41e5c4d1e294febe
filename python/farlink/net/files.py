"""Files from one host to another. The page `docs/guides/files.md` begins with two machines and no keys."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from farlink.errors import core_errors
from farlink.net.addresses import UDP_PORT, Insecure, resolved
from farlink.net.keys import folder, peer_key


@dataclass(frozen=True)
class Summary:
    """Outcome of a transfer."""

    placed: int
    """Files that got their names."""
    already_there: int
    """Files that stood there before, byte for byte."""
    carried_bytes: int
    """Bytes of file content that were sent."""
    resumed_bytes: int
    """Bytes that were there from an earlier transfer."""
    failed_count: int
    """Files and folders that failed."""
    failed: list[tuple[str, str]] = field(default_factory=list)
    """The first 1,000 of them, each with the reason."""
    left_out_count: int = 0
    """Paths that were not sent because they are neither files nor folders."""
    left_out: list[tuple[str, str]] = field(default_factory=list)
    """The first 1,000 of them, each with what it is."""

    @classmethod
    def _of(cls, values: dict[str, Any]) -> Summary:
        failed = [(one["path"], one["reason"]) for one in values["failed"]]
        left_out = [(one["path"], one["what"]) for one in values["left_out"]]
        return cls(**{**values, "failed": failed, "left_out": left_out})


@dataclass(frozen=True)
class Event:
    """Something that happened while files were received."""

    kind: str
    """`listening`, `progress`, `done` or `failed`."""
    host: str = ""
    """Name of the sender."""
    address: str = ""
    """With `listening`: the address of the socket."""
    file: str = ""
    """With `progress`: the file that is received."""
    done_bytes: int = 0
    total_bytes: int = 0
    reason: str = ""
    """With `failed`: why, and what to do."""
    exit_code: int = 0
    """With `failed`: 1 if the network failed; the sender can go on later."""
    summary: Summary | None = None
    """With `done`."""


def send_files(
    paths: Sequence[str | os.PathLike[str]],
    to: str,
    *,
    key: str | None = None,
    keys: str | os.PathLike[str] | None = None,
    psk: str | None = None,
    rate_bps: float | None = None,
    packet_bytes: int = 1500,
    damaged_links: bool = False,
    insecure: Insecure | None = None,
    refuse_special: bool = False,
    patience_s: float = 60.0,
    progress: Callable[[int, int], None] | None = None,
) -> Summary:
    """Send files and folders to a host that runs `farlink receive`. If it is interrupted, the same call later goes on.

    Parameters
    ----------
    paths
        Files and folders.
    to
        The receiver: a name or an address, with `:PORT` if it is not 47470; IPv6 addresses with a port in brackets.
    key
        Public key or name of the receiver; by default the only trusted host.
    keys
        Folder of the own keys.
    psk
        A key that both sides share, 32 bytes in base64.
    rate_bps
        The rate in bit/s, headers included. By default it is learnt, and safe on a path that others share.
    packet_bytes
        Longest packet to look for on the path, in bytes, headers of IP and UDP included, 1200 to 9000. Packets begin with 1200.
    damaged_links
        Packets go without UDP's checksum, so that links that damage packets deliver them, and have 64 bytes of parity, which
        corrects up to 32 wrong bytes in each. Linux only.
    insecure
        `"loopback"` or `"anywhere"`: packets go in the clear if the receiver permits it too, and nobody is kept from reading
        and changing them; `"loopback"` refuses addresses that other machines reach. The keys are checked as always.
    refuse_special
        Refuse to send anything if there are symbolic links, devices, sockets or pipes, instead of leaving them out.
    patience_s
        How long an answer is waited for, in seconds, and for how long it is tried again without progress after a failure of the
        network.
    progress
        Called about ten times a second with the bytes that the receiver has and the bytes of all files.

    Raises
    ------
    TransferError
        If the receiver does not answer or refuses, or a file of this host cannot be used.
    """
    from farlink import _core

    receiver = peer_key(key, keys)
    with core_errors():
        summary = _core.send_files(
            [os.fspath(path) for path in paths],
            receiver,
            resolved(to),
            keys=folder(keys),
            psk=psk,
            rate_bps=rate_bps,
            packet_bytes=packet_bytes,
            damaged_links=damaged_links,
            insecure=insecure,
            refuse_special=refuse_special,
            patience_s=patience_s,
            progress=progress,
        )
    return Summary._of(json.loads(summary))


def receive_files(
    directory: str | os.PathLike[str],
    tell: Callable[[Event], None] = lambda _event: None,
    *,
    listen: str = f"127.0.0.1:{UDP_PORT}",
    keys: str | os.PathLike[str] | None = None,
    psk: str | None = None,
    packet_bytes: int = 1500,
    damaged_links: bool = False,
    insecure: Insecure | None = None,
    overwrite: bool = False,
    by_host: bool = False,
    once: bool = False,
    patience_s: float = 300.0,
) -> None:
    """Receive files from trusted hosts, until it is interrupted.

    Parameters
    ----------
    directory
        Where the files go. Nothing outside of it is ever written.
    tell
        Called with what happens.
    listen
        Address and port of the socket. By default only this machine can send; `0.0.0.0` or `[::]` is every interface.
    keys
        Folder of the own keys.
    psk
        A key that both sides share, 32 bytes in base64.
    packet_bytes
        Longest packet to look for on the path, in bytes, headers of IP and UDP included, 1200 to 9000. Packets begin with 1200.
    damaged_links
        As of `send_files`; both sides have to say so.
    insecure
        As of `send_files`: whether the sender may send in the clear, and whether `listen` may be an address that other machines
        reach.
    overwrite
        Whether a file replaces another one of its name.
    by_host
        Whether each host has a folder of its own, by its name.
    once
        Whether to stop after one complete transfer.
    patience_s
        How long a silent host is waited for, as through an outage, in seconds, 1 at least. What it has sent is kept for its
        next try.

    Raises
    ------
    TransferError
        If the address or a file of this host cannot be used.
    """
    from farlink import _core

    def event(text: str) -> None:
        values = json.loads(text)
        summary = values.pop("summary", None)
        tell(Event(**values, summary=summary and Summary._of(summary)))

    with core_errors():
        _core.receive_files(
            os.fspath(directory),
            resolved(listen),
            event,
            keys=folder(keys),
            psk=psk,
            packet_bytes=packet_bytes,
            damaged_links=damaged_links,
            insecure=insecure,
            overwrite=overwrite,
            by_host=by_host,
            once=once,
            patience_s=patience_s,
        )

"""Bundles of IP paths between two hosts. The page `docs/guides/bundle-ship.md` sets one up."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from farlink.errors import FarlinkError, core_errors

# Isolated, so that neither the folder nor the environment of the caller says what is imported.
HELPER = [sys.executable, "-I", "-c", "from farlink.net.ip_bundles import serve_helper; serve_helper()"]


@dataclass(frozen=True)
class IpBundleEvent:
    """Something that happened to a bundle."""

    kind: str
    """A short word, as `started`, `open`, `up`, `down`, `left-out`, `reloaded`, `not-reloaded` or `fault`."""
    path: str | None
    """Name of the path, if it is about one."""
    text: str
    """The event in words; after a semicolon the remedy, if there is one."""
    peer: str | None = None
    """Name of the peer, if there are several."""


def run_ip_bundle(
    config: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    tell: Callable[[IpBundleEvent], None] | None = None,
    *,
    capture: str | os.PathLike[str] | None = None,
) -> None:
    """Carry the packets of a TUN device over several paths until SIGTERM or Ctrl-C. It starts whole or not at all.

    SIGHUP makes it read its configuration again; what cannot change while it runs is named, and then nothing changes. With
    several configurations each peer has a device, keys, sockets and a thread of its own; if one ends, all do. What needs
    CAP_NET_ADMIN is done by a helper process; this thread has no capability afterwards.

    Parameters
    ----------
    config
        The configuration of a bundle, a TOML file, or several of them, one for each peer.
    tell
        Is called with what happens to it.
    capture
        Write the packets of the device to this file (pcapng, for Wireshark). There has to be one peer only.

    Raises
    ------
    TransferError
        If the configuration is wrong, a file of this host or an address cannot be used, or the helper or the device ends.
    """
    from farlink import _core

    def told(event: str) -> None:
        if tell is not None:
            tell(IpBundleEvent(**json.loads(event)))

    with core_errors():
        _core.run_ip_bundles(_names(config), HELPER, told, None if capture is None else os.fspath(capture))


def check_ip_bundle(config: str | os.PathLike[str] | Sequence[str | os.PathLike[str]]) -> list[str]:
    """Check a configuration, and say what it does.

    Parameters
    ----------
    config
        The configuration of a bundle, a TOML file, or several of them, one for each peer.

    Returns
    -------
    list of str
        Sentences, one for each line.

    Raises
    ------
    TransferError
        If a configuration is wrong, or two of them cannot be together.
    """
    from farlink import _core

    with core_errors():
        return _core.check_ip_bundles(_names(config))


def _names(config: str | os.PathLike[str] | Sequence[str | os.PathLike[str]]) -> list[str]:
    if isinstance(config, str | os.PathLike):
        return [os.fspath(config)]
    return [os.fspath(it) for it in config]


def serve_helper() -> None:
    """Be the helper process of a bundle, whose requests come over standard input. What keeps it from that goes to stderr."""
    from farlink import _core

    try:
        with core_errors():
            _core.serve_bundle_helper()
    except FarlinkError as error:
        sys.exit(str(error))

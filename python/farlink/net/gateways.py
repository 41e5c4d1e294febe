"""Gateways: TCP and UDP of unmodified programs over AeroTP. The page `docs/guides/gateway.md` sets up two of them."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass, field

from farlink.errors import core_errors


@dataclass(frozen=True)
class GatewayEvent:
    """Something that happened to a gateway."""

    kind: str
    """`listening`, `reloaded`, `not-reloaded` or `draining`."""
    sessions: str = ""
    """With `listening`: the UDP address of the sessions."""
    clients: list[str] = field(default_factory=list)
    """With `listening`: the addresses for clients, those of forwards first, then SOCKS5, HTTP, transparent ones and UDP."""
    metrics: str | None = None
    """With `listening`: the address of the metrics."""
    reason: str = ""
    """With `not-reloaded`: what is wrong, and what to do."""


def run_gateway(config: str | os.PathLike[str], tell: Callable[[GatewayEvent], None] | None = None) -> None:
    """Run a gateway until SIGTERM or Ctrl-C; SIGHUP reloads its configuration. It starts whole or not at all.

    After the first signal it takes nothing more and ends with its connections, after `limits.drain_s` at the latest; after
    another one it ends at once.

    Parameters
    ----------
    config
        Its configuration, a TOML file.
    tell
        Is called with what happens to it as a whole.

    Raises
    ------
    TransferError
        If the configuration is wrong, a file of this host or an address cannot be used, or the network fails.
    """
    from farlink import _core

    def told(event: str) -> None:
        if tell is not None:
            tell(GatewayEvent(**json.loads(event)))

    with core_errors():
        _core.run_gateway(os.fspath(config), told)


def check_gateway(config: str | os.PathLike[str], destination: str | None = None) -> list[str]:
    """Check a configuration, and say what it does.

    Parameters
    ----------
    config
        The configuration of a gateway, a TOML file.
    destination
        Say what would happen to a connection there, as `www.example.org:443`; the name is resolved on this machine.

    Returns
    -------
    list of str
        Sentences, one for each line.

    Raises
    ------
    TransferError
        If the configuration is wrong, or the destination is none.
    """
    from farlink import _core

    with core_errors():
        return _core.check_gateway(os.fspath(config), destination)

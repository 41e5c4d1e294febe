"""Bundles of PPP lines to one peer. The page `docs/guides/bundle-ppp.md` sets one up."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass

from farlink.errors import FarlinkError, core_errors
from farlink.net.ip_bundles import HELPER


@dataclass(frozen=True)
class PppBundleEvent:
    """Something that happened to a bundle of lines."""

    kind: str
    """A short word, as `started`, `up`, `down`, `network`, `no-network`, `fault` or `status`."""
    line: str | None
    """Name of the line, if it is about one."""
    text: str
    """The event in words; after a semicolon the remedy, if there is one."""


def run_ppp_bundle(
    config: str | os.PathLike[str],
    tell: Callable[[PppBundleEvent], None] | None = None,
    *,
    capture: str | os.PathLike[str] | None = None,
) -> None:
    """Carry the packets of a TUN device over serial lines as PPP until SIGTERM or Ctrl-C. It starts whole or not at all.

    What needs CAP_NET_ADMIN is done by a helper process; this thread has no capability afterwards.

    Parameters
    ----------
    config
        The configuration of a bundle of lines, a TOML file.
    tell
        Is called with what happens to it, and once a second with how it stands (`status`).
    capture
        Write what the lines carry to this file (pcapng with LINKTYPE_PPP_WITH_DIR, for Wireshark). Passwords are left out.

    Raises
    ------
    TransferError
        If the configuration is wrong, a file of this host cannot be used, or the helper or the device ends.
    """
    from farlink import _core

    def told(event: str) -> None:
        if tell is not None:
            tell(PppBundleEvent(**json.loads(event)))

    with core_errors():
        _core.run_ppp_bundle(os.fspath(config), HELPER, told, None if capture is None else os.fspath(capture))


def check_ppp_bundle(config: str | os.PathLike[str]) -> list[str]:
    """Check a configuration, and say what it does.

    Parameters
    ----------
    config
        The configuration of a bundle of lines, a TOML file.

    Returns
    -------
    list of str
        Sentences, one for each line.

    Raises
    ------
    TransferError
        If the configuration is wrong.
    """
    from farlink import _core

    with core_errors():
        return _core.check_ppp_bundle(os.fspath(config))


def serve_operator() -> None:
    """Be the process that carries PPP for an operator, whose orders come over standard input; events go out as lines of JSON.

    The first argument is the configuration. What keeps it from running is the last line.
    """
    from farlink import _core

    def told(event: str) -> None:
        sys.stdout.write(f"{event}\n")
        sys.stdout.flush()

    try:
        with core_errors():
            _core.run_ppp_bundle(sys.argv[1], HELPER, told, is_operated=True)
    except BrokenPipeError:
        sys.exit(5)  # the operator is gone
    except FarlinkError as error:
        told(json.dumps({"kind": "failed", "line": None, "text": str(error)}))
        sys.exit(error.exit_code)

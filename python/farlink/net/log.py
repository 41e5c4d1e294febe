"""Log of the network part."""

from __future__ import annotations

from farlink.errors import core_errors


def show_log(level: str = "warn", *, as_json: bool = False) -> None:
    """Tell on stderr, from now on, what the network does. The first call counts; without one nothing is told.

    Parameters
    ----------
    level
        `error`, `warn`, `info`, `debug` or `trace`, or levels of parts: `warn,farlink_net::mux=debug` tells of handshakes, new
        keys, changed addresses and lengths of packets, each with its session. Secrets are never told.
    as_json
        Each line is a JSON object.

    Raises
    ------
    TransferError
        If it is none of these.

    Examples
    --------
    >>> from farlink import net
    >>> net.show_log("warn")
    """
    from farlink import _core

    with core_errors():
        _core.show_log(level, as_json)

"""Cost of each assumption of equations (8) to (10), dropped one at a time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from farlink.papers.epple.saturated import ACK_BYTES, Cell, timeout_s

_ALL = ("stop-and-wait", "go-back-n", "selective-repeat")
_WINDOWS = ("go-back-n", "selective-repeat")


@dataclass(frozen=True)
class Dropped:
    """An assumption that is dropped.

    Attributes
    ----------
    words
        What holds instead.
    changes
        Keys of the transport for a cell, as `scenario` takes them.
    protocols
        Whom it concerns.
    fast_return
        Whether acknowledgements still take no time.
    return_ber
        Bit error probability of the way back.
    """

    words: str
    changes: Callable[[Cell], Mapping[str, Any]]
    protocols: tuple[str, ...] = _ALL
    fast_return: bool = True
    return_ber: float = 0.0


def _rto(algorithm: str, **keys: Any) -> Callable[[Cell], Mapping[str, Any]]:
    def changes(cell: Cell) -> Mapping[str, Any]:
        # A clock of 1 us, and a minimum of as much (for Linux, of the variation): what is left is the algorithm.
        first_s = 3 * (cell.rtt_s + cell.packet_s)
        return {"rto": {"algorithm": algorithm, "initial_s": first_s, "minimum_s": 1e-6, "granularity_s": 1e-6}} | keys

    return changes


def _longer(more_bytes: int, **keys: Any) -> Callable[[Cell], Mapping[str, Any]]:
    """The fixed timeout, longer by the time that so many bytes take."""

    def changes(cell: Cell) -> Mapping[str, Any]:
        return {"rto": {"algorithm": "fixed", "initial_s": timeout_s(cell, more_bytes)}} | keys

    return changes


def _set(**keys: Any) -> Callable[[Cell], Mapping[str, Any]]:
    return lambda _cell: keys


def _noisy(ber: float, **keys: Any) -> Callable[[Cell], Mapping[str, Any]]:
    return _set(**{"return": {"kind": "ber", "ber": ber}}, **keys)


def _window(factor: float) -> Callable[[Cell], Mapping[str, Any]]:
    def changes(cell: Cell) -> Mapping[str, Any]:
        window = max(1, round(factor * cell.window))
        return {"window_frames": window} | ({"buffer_frames": 8 * window} if cell.protocol == "selective-repeat" else {})

    return changes


DROPPED = (
    Dropped("timeout: RFC 793, twice the smoothed round trip", _rto("rfc793")),
    Dropped("timeout: Jacobson and Karels", _rto("jacobson-karels")),
    Dropped("timeout: RFC 6298", _rto("rfc6298")),
    Dropped("timeout: RFC 6298 with timestamps", _rto("rfc6298", timestamps=True)),
    Dropped("timeout: Linux", _rto("linux")),
    Dropped("timeout: conservative, twice RFC 6298", _rto("conservative")),
    Dropped("window half as large", _window(0.5), _WINDOWS),
    Dropped("window twice as large", _window(2.0), _WINDOWS),
    Dropped("a receiver that keeps one window", lambda cell: {"buffer_frames": cell.window}, ("selective-repeat",)),
    Dropped("acknowledgements at the rate of the link, timeout longer by one", _longer(ACK_BYTES), fast_return=False),
    Dropped("timeout too short by an acknowledgement, 0.36 us", _set(), fast_return=False),
    Dropped("way back with errors, BER 1e-6", _noisy(1e-6), return_ber=1e-6),
    Dropped("way back with errors, BER 1e-5", _noisy(1e-5), return_ber=1e-5),
    Dropped("way back with errors, BER 1e-5, cumulative", _noisy(1e-5, ack="cumulative")),
    Dropped(
        "way back with errors, BER 1e-5, cumulative, timeout longer by 3,000 bytes",
        _longer(3000, ack="cumulative", **{"return": {"kind": "ber", "ber": 1e-5}}),
    ),
    Dropped("blocks: unlimited", _set(ack="cumulative"), ("selective-repeat",)),
    Dropped("blocks: four", _set(ack="cumulative", sack_blocks=4), ("selective-repeat",)),
    Dropped(
        "blocks: three, and timestamps",
        _longer(10, ack="cumulative", sack_blocks=3, timestamps=True, compatible=True),
        ("selective-repeat",),
    ),
    Dropped("timestamps, 10 bytes", _longer(10, timestamps=True)),
    Dropped("negative acknowledgements", _set(nak=True)),
)

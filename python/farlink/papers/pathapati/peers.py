"""ns-3's TCP and UDP on this paper's path: figures measured once and kept in `ns3.json`, so that ns-3 is not needed.

`tests/peers/telemetry.py` measures them anew and says how.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

__all__ = ["VERSION_KEY", "Measured", "Peer", "Progress", "Stock", "ns3", "ns3_cells", "ns3_stock", "ns3_version"]

VERSION_KEY = "ns-3"


@dataclass(frozen=True)
class Measured:
    """A mean over independent runs.

    Attributes
    ----------
    mean
        The mean, in the unit that the figure's name ends with.
    half_width
        Half-width of its 95 % interval by Student's t.
    """

    mean: float
    half_width: float


@dataclass(frozen=True)
class Progress:
    """Means of runs that are ended sooner.

    Attributes
    ----------
    at_s
        The time limit, from when the first message is offered.
    delivered_bytes
        Delivered in order until then.
    forward_bytes, return_bytes
        Sent over the radio link until then, there and back, with all headers.
    arrival_delay_mean_s, delay_mean_s
        From a message's offering to its arrival, and to its delivery in order, of what had arrived; None if nothing had in any
        run.
    """

    at_s: float
    delivered_bytes: float
    forward_bytes: float
    return_bytes: float
    arrival_delay_mean_s: float | None
    delay_mean_s: float | None


@dataclass(frozen=True)
class Peer:
    """ns-3's figures for one transport, bit error rate and length of the file.

    Attributes
    ----------
    transport
        ``"newreno"``, ``"cubic"``, ``"bbr"``, with ``"-corrected"`` behind it where ns-3's defects are mended
        (`benches/ns3/corrections.h`), or ``"udp"``.
    ber
        Bit error rate of the radio link, both ways.
    file_bytes
        Data offered.
    runs
        Independent runs.
    settings
        Arguments of `benches/ns3/telemetry.cc`.
    figures
        Name to figure: ``goodput_bps`` (delivered over the time to the last byte), ``completion_s`` (the last byte that was
        delivered), ``delivered_bytes``, ``arrival_delay_mean_s`` and ``delay_mean_s`` (from a message's offering to its
        arrival, and to its delivery in order), the same with ``sent_`` in front (from the first transmission of a segment; TCP
        only), ``sent_bytes`` and ``retransmitted_bytes`` (data alone), ``forward_bytes`` and ``return_bytes`` (over the radio
        link, with all headers and two bytes of PPP in each packet), ``forward_packets``, ``return_packets``.
    by
        The same runs under time limits.
    """

    transport: str
    ber: float
    file_bytes: int
    runs: int
    settings: Mapping[str, str | float]
    figures: Mapping[str, Measured]
    by: tuple[Progress, ...]


@dataclass(frozen=True)
class Stock:
    """ns-3's NewReno with ns-3's own timers, retries, buffers and queues.

    Attributes
    ----------
    segment_bytes
        Payload of a full segment; 536 is ns-3's default.
    ber, file_bytes, runs
        As in `Peer`.
    given_up
        Runs in which the connection was given up.
    given_up_at_s
        When, in those runs, in ascending order.
    reasons
        How runs ended, each way once.
    delivered_bytes
        Delivered in order, in each run.
    """

    segment_bytes: int
    ber: float
    file_bytes: int
    runs: int
    given_up: int
    given_up_at_s: tuple[float, ...]
    reasons: tuple[str, ...]
    delivered_bytes: tuple[int, ...]


def ns3(transport: str, ber: float, file_bytes: float = 1e6) -> Peer:
    """ns-3's figures for a transport at a bit error rate.

    Parameters
    ----------
    transport
        As in `Peer`.
    ber
        One that was measured: 0, 1e-6, 1e-5, 3.5e-5, 5e-5 or 1e-4.
    file_bytes
        1e6 or 1e7.

    Raises
    ------
    LookupError
        If that was not measured; it lists what was.

    Examples
    --------
    >>> round(ns3("udp", 1e-4).figures["delivered_bytes"].mean / 1e6, 1)
    0.3
    """
    cells = ns3_cells()
    for cell in cells:
        if (cell.transport, cell.ber, cell.file_bytes) == (transport, ber, file_bytes):
            return cell
    if transport not in {cell.transport for cell in cells}:
        raise LookupError(
            f"no transport {transport!r} of ns-3; there is {', '.join(dict.fromkeys(c.transport for c in cells))}"
        )
    known = ", ".join(f"{cell.ber:g} with {cell.file_bytes:g} bytes" for cell in cells if cell.transport == transport)
    raise LookupError(f"ns-3's {transport} was not measured at {ber:g} with {file_bytes:g} bytes, only at {known}")


@cache
def ns3_cells() -> tuple[Peer, ...]:
    """All that was measured."""
    record = _record()
    return tuple(_peer(entry, record["at_s"]) for entry in record["cells"])


@cache
def ns3_stock() -> tuple[Stock, ...]:
    """Measurements with ns-3's own timers and retries."""
    return tuple(
        Stock(
            segment_bytes=entry["segment_bytes"],
            ber=entry["ber"],
            file_bytes=entry["file_bytes"],
            runs=entry["runs"],
            given_up=entry["given_up"],
            given_up_at_s=tuple(entry["given_up_at_s"]),
            reasons=tuple(entry["reasons"]),
            delivered_bytes=tuple(entry["delivered_bytes"]),
        )
        for entry in _record()["stock"]
    )


def ns3_version() -> str:
    """The version of ns-3 that was measured."""
    return str(_record()[VERSION_KEY])


def _record() -> dict[str, Any]:
    record: dict[str, Any] = json.loads((files(__package__) / "ns3.json").read_text())
    return record


def _peer(entry: Mapping[str, Any], at_s: list[float]) -> Peer:
    columns = entry["by"]
    return Peer(
        transport=entry["transport"],
        ber=entry["ber"],
        file_bytes=entry["file_bytes"],
        runs=entry["runs"],
        settings=entry["settings"],
        figures={name: Measured(*figure) for name, figure in entry["figures"].items()},
        by=tuple(Progress(at_s=at, **{name: column[i] for name, column in columns.items()}) for i, at in enumerate(at_s)),
    )

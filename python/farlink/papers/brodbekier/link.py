"""The paper's link and transports, of figure 1 and table II, and how throughput is counted."""

from __future__ import annotations

from typing import Any

from farlink.papers.check import Check, claimed
from farlink.papers.curves import at, curve, spread
from farlink.papers.estimate import Curve, scaled
from farlink.result import Result

VERSIONS = {"tahoe": "Tahoe", "reno": "Reno", "newreno": "NewReno", "sack": "SACK"}
PACKET_BYTES = 1000
HEADER_BYTES = 40
PACKET_BITS = 8 * PACKET_BYTES

BER = "link.channel.ber"
TRANSPORT = "flow.bulk.transport"


def base(title: str, versions: tuple[str, ...] = tuple(VERSIONS)) -> dict[str, Any]:
    """The paper's link and its TCP versions, without a channel."""
    return {
        "title": f"Brodbekier, {title}",
        "duration_s": 4000,
        "runs": 20,
        "link": {"rate_bps": 1e6, "delay_s": 0.25, "queue_packets": 100},
        "transport": {version: _tcp(version) for version in versions},
        "flow": {"bulk": {"transport": versions[0], "traffic": {"kind": "bulk"}}},
        "grid": {TRANSPORT: list(versions)},
    }


def _tcp(version: str) -> dict[str, Any]:
    return {
        "kind": "tcp",
        "variant": version,
        "segment_bytes": PACKET_BYTES - HEADER_BYTES,
        "header_bytes": HEADER_BYTES,
        "initial_window_segments": 1,
        "initial_ssthresh_segments": 70,
        "max_window_segments": 70,
        "delayed_ack": True,
    }


# The two options of section III, and the first with the window that table II gives TCP on top.
STP_VERSIONS = {
    "stp": "STP",
    "stp-window": "STP, window of 70",
    "stp-tcp": "STP without rate control",
}
_STP_RATE_BPS = 960e3
_WINDOW_PACKETS = 70

# Not printed: four POLLs per round trip.
POLL_INTERVAL_S = 0.125


def stp(version: str = "stp", poll_interval_s: float = POLL_INTERVAL_S) -> dict[str, Any]:
    """STP with rate congestion control at 960 kb/s, the same with a window, or STP without rate control."""
    transport: dict[str, Any] = {
        "kind": "stp",
        "segment_bytes": PACKET_BYTES - HEADER_BYTES,
        "header_bytes": HEADER_BYTES,
        "poll_interval_s": poll_interval_s,
    }
    if version != "stp":
        transport["max_window_segments"] = _WINDOW_PACKETS
    if version == "stp-tcp":
        return transport | {"initial_window_segments": 1, "initial_ssthresh_segments": _WINDOW_PACKETS}
    return transport | {"congestion": "rate", "rate_bps": _STP_RATE_BPS}


def throughput(result: Result, x_path: str, where: dict[str, Any]) -> Curve:
    """Arrivals in order with their headers, as a share of the link's rate, against a key of the grid."""
    return scaled(curve(result, x_path, where), PACKET_BYTES / (PACKET_BYTES - HEADER_BYTES))


# Versions that are "practically the same", and what that is as a number.
ALIKE = ("reno", "newreno", "sack")
_CLOSE = 0.1
_PRINTED = "the performance of the different TCP implementations are practically the same"


def closeness(
    item: str, lines: dict[str, Curve], bers: tuple[float, ...], among: tuple[str, ...] = ALIKE, printed: str = _PRINTED
) -> list[Check]:
    """How far the best version lies above the worst near each BER."""
    names = ", ".join(VERSIONS[version] for version in among)
    return [
        claimed(
            item,
            f"best of {names} over the worst, less 1, at BER {power(ber)}",
            printed,
            spread([at(lines[version], ber) for version in among]),
            at_most=_CLOSE,
            rule=f"practically the same: agrees if the best is at most {_CLOSE:.0%} above the worst",
            cause="Tahoe, which begins again with one packet after every loss, lies as far below the others as in figure 2"
            if "tahoe" in among
            else "with windows of a few packets, how several losses of one window are repaired decides",
        )
        for ber in bers
    ]


def power(ber: float) -> str:
    """A bit error rate as it is written in a sentence."""
    return f"{ber:.0e}".replace("e-0", "e-")

"""Section 5.2, simulated: how many segments of a window SACK can lose before it has to wait for its timer."""

from __future__ import annotations

from typing import Any

from farlink.models.multilink import drop_losses
from farlink.papers.check import Check, Verdict
from farlink.papers.estimate import Estimate
from farlink.papers.item import Drawing, Workbench
from farlink.papers.zaghloul.bundle import LINK_BPS, MODEM_BYTES, PACKET_BYTES, SERIAL_BYTES, WINDOW_BYTES

_LINKS, _HEADER_BYTES = 4, 40
_WINDOW = int(WINDOW_BYTES / PACKET_BYTES)
_SEGMENT_S = PACKET_BYTES * 8 / (_LINKS * LINK_BPS)
# The transfer has its full window by then.
_DROP_S = 300.0
# Time in which the deployed system notices a drop, in s.
_DEPLOYED_S = 30.0


def section_5_2(bench: Workbench) -> tuple[list[Check], list[Drawing]]:
    """Outages that take 1 to 15 segments of a window of 15 along, in TCP of today."""
    lost = {}
    for variant in ("reno", "newreno", "sack"):
        result = bench.run(f"section-5-2-{variant}", _scenario(variant), runs=1)
        timeouts = [row["timeouts"]["mean"] for row in result.summary() if row["flow"] == "bulk"]
        # The first run loses nothing: what times out there is the first segment, whose timer is shorter than the round trip.
        lost[variant] = next(count for count, found in enumerate(timeouts) if found > timeouts[0])
    deployed = float(
        drop_losses.segments_lost(
            _DEPLOYED_S,
            rate_bps=LINK_BPS,
            modem_buffer_bytes=MODEM_BYTES,
            serial_buffer_bytes=SERIAL_BYTES,
            segment_bytes=PACKET_BYTES,
        )
    )
    half = _WINDOW // 2 + 1
    others = f"Reno from {lost['reno']}, NewReno from {lost['newreno']}"
    return [
        Check(
            "section-5.2-simulated",
            f"fewest segments lost of a window of {_WINDOW} for which SACK times out",
            half,
            "packet",
            Estimate(lost["sack"]),
            Verdict.AGREES if lost["sack"] == half else Verdict.DIFFERS,
            "printed: half the window; SACK of RFC 6675 knows which segments are missing and goes on as long as three "
            f"duplicates come back, where the SACK of 1996 reckoned the rest to be under way; {others}",
        ),
        Check(
            "section-5.2-simulated",
            f"segments lost if the drop is noticed after {_DEPLOYED_S:g} s, of a window of {_WINDOW}",
            "at least of the order of 30 seconds which assures that [...] a TCP timeout event will take place",
            "packet",
            Estimate(deployed),
            Verdict.AGREES if deployed >= lost["sack"] else Verdict.DIFFERS,
            f"agrees if SACK times out in the simulation, from {lost['sack']} segments on",
        ),
    ], []


def _scenario(variant: str) -> dict[str, Any]:
    # An outage of as many segments less a half takes so many along; the first one takes none.
    outages = [
        {"kind": "outage", "schedule": [[_DROP_S, _DROP_S + (count - 0.5) * _SEGMENT_S]] if count else []}
        for count in range(_WINDOW + 1)
    ]
    return {
        "title": f"Drops of 0 to {_WINDOW} segments, {variant}",
        "duration_s": 2 * _DROP_S,
        "runs": 1,
        "link": {
            "rate_bps": _LINKS * LINK_BPS,
            "delay_s": 0.5,
            "queue_packets": 2 * _WINDOW,
            "channel": {"kind": "none"},
        },
        "transport": {
            "tcp": {
                "kind": "tcp",
                "variant": variant,
                "segment_bytes": int(PACKET_BYTES) - _HEADER_BYTES,
                "max_window_segments": _WINDOW,
            }
        },
        "flow": {"bulk": {"transport": "tcp", "traffic": {"kind": "bulk"}}},
        "grid": {"link.channel": outages},
    }

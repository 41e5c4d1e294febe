"""Goodput by the packet engine: Reno connections over one link that loses packets."""

from __future__ import annotations

from typing import Any

import numpy as np

from farlink import engines
from farlink.student import widened
from farlink.tune.offered import Found, Offered, Progress

# Only rates in segments per second matter; these are the bytes of one.
_PAYLOAD_BYTES, _HEADER_BYTES = 960, 40
SEGMENT_BITS = 8 * (_PAYLOAD_BYTES + _HEADER_BYTES)
_RUNS = 4
# Round trips that a run lasts after those that it is given to settle.
_SETTLES, _LASTS = 100, 2000


def packet_goodput(offered: Offered, progress: Progress | None) -> Found:
    """See `farlink.tune.goodput`: losses are independent; the share of the link's rate, and the half-width over four runs."""
    share, half_width = np.zeros_like(offered.loss), np.zeros_like(offered.loss)
    for at in range(offered.loss.size):
        channel = {"kind": "loss", "loss": float(offered.loss[at])}
        share[at], ci95 = ran(link(offered, at, channel, runs=_RUNS))
        half_width[at] = widened(ci95, _RUNS - 1, offered.precision.level)
        if progress is not None:
            progress(at + 1, offered.loss.size)
    return share, half_width


def ran(scenario: dict[str, Any]) -> tuple[float, float]:
    """Run a scenario of `link`: the share of the rate that all connections deliver, and the half-width of its 95 % interval."""
    result = engines.run(scenario)
    if result.interrupted:
        raise KeyboardInterrupt
    (entry,) = [one for one in result.summary() if one["flow"] in ("all", "bulk")][-1:]
    found = entry["goodput_fraction"]
    # Of the rate less headers, which every segment carries.
    whole = (_PAYLOAD_BYTES + _HEADER_BYTES) / _PAYLOAD_BYTES
    return found["mean"] * whole, (found["ci95"] or 0.0) * whole


def duration_s(offered: Offered, at: int) -> float:
    """How long a run lasts."""
    return (_SETTLES + _LASTS) * float(offered.rtt_s[at])


def link(offered: Offered, at: int, channel: dict[str, Any], *, runs: int, seed: int = 1) -> dict[str, Any]:
    """The scenario of one of the links: long Reno connections over a channel.

    Parameters
    ----------
    offered
        The links.
    at
        Which of them.
    channel
        As in a scenario; frames are of `SEGMENT_BITS` bits.
    runs, seed
        As in a scenario.
    """
    rate, rtt_s = float(offered.rate_segments_per_s[at]), float(offered.rtt_s[at])
    # A segment arrives when its group is decoded.
    wait_s = rtt_s - offered.path.round_trip_s - 1 / rate if offered.waits else 0.0
    return {
        "title": "Goodput for tuning",
        "duration_s": duration_s(offered, at),
        "runs": runs,
        "seed": seed,
        "measure": {"warmup_s": _SETTLES * rtt_s},
        "link": {
            "rate_bps": rate * SEGMENT_BITS,
            "delay_s": offered.path.round_trip_s / 2 + wait_s,
            "queue_packets": int(offered.buffer_segments[at]),
            "channel": channel,
            "return": {"delay_s": offered.path.round_trip_s / 2},
        },
        "transport": {
            "reno": {
                "kind": "tcp",
                "variant": "reno",
                "segment_bytes": _PAYLOAD_BYTES,
                "delayed_ack": offered.path.segments_per_ack > 1,
            }
        },
        "flow": {"bulk": {"transport": "reno", "count": offered.flows, "traffic": {"kind": "bulk"}}},
    }

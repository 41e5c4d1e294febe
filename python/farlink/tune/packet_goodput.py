"""Goodput by the packet engine: Reno connections over one link that loses packets independently."""

from __future__ import annotations

from typing import Any

import numpy as np

from farlink import engines
from farlink.student import widened
from farlink.tune.offered import Found, Offered, Progress

# Only rates in segments per second matter; these are the bytes of one.
_PAYLOAD_BYTES, _HEADER_BYTES = 960, 40
_RUNS = 4
# Round trips that a run lasts after those that it is given to settle.
_SETTLES, _LASTS = 100, 2000


def packet_goodput(offered: Offered, progress: Progress | None) -> Found:
    """See `farlink.tune.goodput`: the share of the link's rate, and the half-width of its interval over four runs."""
    share, half_width = np.zeros_like(offered.loss), np.zeros_like(offered.loss)
    for at in range(offered.loss.size):
        (entry,) = [one for one in engines.run(_scenario(offered, at)).summary() if one["flow"] in ("all", "bulk")][-1:]
        found = entry["goodput_fraction"]
        # Of the rate less headers, which every segment carries.
        whole = (_PAYLOAD_BYTES + _HEADER_BYTES) / _PAYLOAD_BYTES
        half = widened(found["ci95"] or 0.0, _RUNS - 1, offered.precision.level)
        share[at], half_width[at] = found["mean"] * whole, half * whole
        if progress is not None:
            progress(at + 1, offered.loss.size)
    return share, half_width


def _scenario(offered: Offered, at: int) -> dict[str, Any]:
    rate = offered.rate_segments_per_s[at : at + 1]
    rtt_s = float(offered.path.rtt_s(rate)[0])
    return {
        "title": "Goodput for tuning",
        "duration_s": (_SETTLES + _LASTS) * rtt_s,
        "runs": _RUNS,
        "measure": {"warmup_s": _SETTLES * rtt_s},
        "link": {
            "rate_bps": float(rate[0]) * 8 * (_PAYLOAD_BYTES + _HEADER_BYTES),
            "delay_s": offered.path.round_trip_s / 2,
            "queue_packets": int(offered.path.buffer_segments(rate)[0]),
            "channel": {"kind": "loss", "loss": float(offered.loss[at])},
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

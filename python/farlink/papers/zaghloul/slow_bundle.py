"""Short transfers over a slow link, whose round trip grows with the window: closed forms with three round trips, the engine.

The link stands for the bundle of table 6.1: eight Iridium links of 2.4 kbit/s, packets of 1500 bytes, a round trip of 6 s
without a queue, a window of 33 segments that fills it three times, and a timer of a minute.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from farlink.models.ranges import Floats
from farlink.models.tcp_latency import cardwell, padhye, slow_link
from farlink.papers.curves import estimate
from farlink.papers.estimate import Estimate
from farlink.papers.zaghloul.transfers import Point, repetitions
from farlink.result import Result

RATE_BPS = 8 * 2400.0
PACKET_BYTES, HEADER_BYTES = 1500, 52
SEGMENT_BYTES = PACKET_BYTES - HEADER_BYTES
SEGMENT_S = 8 * PACKET_BYTES / RATE_BPS
RTT_S = 6.0
TIMEOUT_S = 60.0
WINDOW_SEGMENTS = 33
# A segment takes longer than the timer of delayed acknowledgements: each is acknowledged.
SEGMENTS_PER_ACK = 1
SEGMENTS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)
LOSSES = (0.0, 5e-4, 0.01, 0.05)

_LOSS = "link.channel.loss"
_BYTES = "flow.file.traffic.bytes"
_LAW: dict[str, Any] = {"segments_per_ack": SEGMENTS_PER_ACK, "window_segments": WINDOW_SEGMENTS}


def scenario(segments: Sequence[int], loss_rates: Sequence[float], *, runs: int | tuple[float, int, int]) -> dict[str, Any]:
    """Every transfer at every loss; `runs` as in `transfers.Path.scenario`."""
    reno = {
        "kind": "tcp",
        "variant": "reno",
        "segment_bytes": SEGMENT_BYTES,
        "header_bytes": HEADER_BYTES,
        "initial_window_segments": 1,
        "max_window_segments": WINDOW_SEGMENTS,
        "limited_transmit": False,
        "delayed_ack": False,
        "handshake": False,
        "fin": False,
        "rto": {"algorithm": "fixed", "initial_s": TIMEOUT_S, "backoff_limit": 64, "maximum_s": 64 * TIMEOUT_S},
    }
    return {
        "title": "short transfers over a slow link",
        **repetitions(runs),
        "give_up_after_s": 1e6,
        "link": {
            "rate_bps": RATE_BPS,
            "delay_s": (RTT_S - SEGMENT_S) / 2,
            "channel": {"kind": "loss", "loss": loss_rates[0]},
            # Acknowledgements take no time: the round trip of a lone segment is the one above.
            "return": {"rate_bps": 1e12},
        },
        "transport": {"reno": reno},
        "flow": {"file": {"transport": "reno", "traffic": {"kind": "file", "bytes": segments[0] * SEGMENT_BYTES}}},
        "grid": {_BYTES: [number * SEGMENT_BYTES for number in segments], _LOSS: list(loss_rates)},
    }


def simulated(result: Result) -> tuple[dict[Point, Estimate], dict[Point, Estimate]]:
    """Mean times and mean round trips by point, in s; a round trip ends where the acknowledgement of a copy can arrive."""
    back_s = (RTT_S - SEGMENT_S) / 2
    times: dict[Point, Estimate] = {}
    trips: dict[Point, Estimate] = {}
    for entry in result.summary():
        point = (int(entry[_BYTES]) // SEGMENT_BYTES, float(entry[_LOSS]))
        for found, quantity in ((times, "transfer_time_mean_s"), (trips, "arrival_delay_mean_s")):
            measured = estimate(entry[quantity])
            found[point] = Estimate(measured.mean + back_s, measured.half_width)
    return times, trips


def round_trips_s(segments: Sequence[int]) -> dict[str, Floats]:
    """Round trips for a closed form: without a queue, with the whole window in it, and the mean."""
    count = np.asarray(segments)
    return {
        "empty": np.full(count.shape, RTT_S),
        "full": np.full(count.shape, WINDOW_SEGMENTS * SEGMENT_S),
        "transient": slow_link.mean_rtt_s(count, rtt_s=RTT_S, segment_s=SEGMENT_S, **_LAW),
    }


def predictions_s(segments: Sequence[int], loss_rate: float) -> dict[str, Floats]:
    """Times by model and round trip, in s."""
    count = np.asarray(segments)
    found = {}
    for words, rtt_s in round_trips_s(segments).items():
        times: dict[str, Any] = {"loss_rate": loss_rate, "rtt_s": rtt_s, "timeout_s": TIMEOUT_S}
        found[f"Cardwell, {words}"] = cardwell.transfer_time_s(count, delayed_ack_s=0.0, **times, **_LAW)
    for words, rtt_s in round_trips_s(segments).items():
        found[f"Padhye, {words}"] = count / padhye.throughput(loss_rate, rtt_s=rtt_s, timeout_s=TIMEOUT_S, **_LAW)
    found["slow_link"] = slow_link.lossy_transfer_time_s(
        count, loss_rate=loss_rate, rtt_s=RTT_S, segment_s=SEGMENT_S, timeout_s=TIMEOUT_S, **_LAW
    )
    return found

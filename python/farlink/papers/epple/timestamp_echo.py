"""Section 3.3.2: which timestamp a delayed acknowledgement echoes, and what it does to the timer.

Packets come one by one, further apart than the round trip but less far than the timer of delayed acknowledgements, so that one
acknowledgement covers two. The paper has no numbers for it; the intervals are ours.
"""

from __future__ import annotations

from typing import Any

from farlink.papers.check import Check, claimed
from farlink.papers.curves import estimate
from farlink.papers.estimate import Estimate, ratio
from farlink.papers.item import Drawing, Workbench

ROUND_TRIP_S = 0.1
INTERVAL_S = 0.15
TIMEOUT_S = 0.2
_SECONDS = 300.0
_PAYLOAD_BYTES = 1000
_NEVER, _ALWAYS, _NOTABLE = 0.01, 0.99, 0.05


def timestamp_echo(bench: Workbench) -> tuple[list[Check], list[Drawing]]:
    """How many pairs of packets time out before their acknowledgement arrives, by the timestamp that it echoes; the cost."""
    latest, oldest = (timeouts_per_pair(bench, echo) for echo in ("latest", "oldest"))
    printed = (
        "if the last received timestamp would be echoed, the first packets in the ACKed list would always time out before the "
        "delayed ACK arrives"
    )
    setting = (
        f"a packet every {1e3 * INTERVAL_S:g} ms, a round trip of {1e3 * ROUND_TRIP_S:g} ms, acknowledgements delayed by up to "
        f"{1e3 * TIMEOUT_S:g} ms, no losses, the timer of RFC 6298 without a minimum"
    )
    cell = "timeouts per pair of packets that one acknowledgement would cover"
    return [
        claimed(
            "timestamp-echo", f"{cell}, latest timestamp", printed, latest, at_least=_ALWAYS,
            rule=f"always: agrees from {_ALWAYS:.0%} on; {setting}",
        ),
        claimed(
            "timestamp-echo", f"{cell}, oldest timestamp", "the time stamp of the oldest packet should be used", oldest,
            at_most=_NEVER, rule=f"agrees if at most {_NEVER:.0%} time out; {setting}",
        ),
        claimed(
            "timestamp-echo", "share of the data sent that is repeated in vain, latest timestamp",
            "if the timer is set on a value too low … both errors will result in a loss of useful throughput",
            repeated_share(bench, "latest"), at_least=_NOTABLE,
            rule=f"a loss: agrees from {_NOTABLE:.0%} on; nothing is lost, and with the oldest timestamp nothing is repeated; "
            f"{setting}",
        ),
    ], []  # fmt: skip


def timeouts_per_pair(bench: Workbench, echo: str) -> Estimate:
    """Timeouts over half the number of packets."""
    timeouts, pairs = estimate(_entry(bench, echo)["timeouts"]), _SECONDS / INTERVAL_S / 2
    return Estimate(timeouts.mean / pairs, timeouts.half_width / pairs)


def repeated_share(bench: Workbench, echo: str) -> Estimate:
    """Repetitions over all data sent."""
    repeated, delivered = (estimate(_entry(bench, echo)[name]) for name in ("retransmitted_bytes", "delivered_bytes"))
    return ratio(repeated, Estimate(repeated.mean + delivered.mean))


def _entry(bench: Workbench, echo: str) -> dict[str, Any]:
    return next(entry for entry in bench.run(f"timestamp-echo-{echo}", scenario(echo)).summary() if entry["flow"] == "data")


def scenario(echo: str) -> dict[str, Any]:
    """A sender of single packets over a link without errors."""
    transport = {
        "kind": "tcp",
        "variant": "none",
        "congestion_control": "none",
        "max_window_segments": 64,
        "segment_bytes": _PAYLOAD_BYTES,
        "timestamps": True,
        "timestamp_echo": echo,
        "delayed_ack_timeout_s": TIMEOUT_S,
        "rto": {"minimum_s": 0.0, "granularity_s": 1e-3},
    }
    traffic = {"kind": "cbr", "rate_bps": 8 * _PAYLOAD_BYTES / INTERVAL_S, "payload_bytes": _PAYLOAD_BYTES}
    return {
        "title": f"delayed acknowledgements that echo the {echo} timestamp",
        "duration_s": _SECONDS,
        # Without errors all runs are alike; two have an interval.
        "runs": 2,
        "link": {"rate_bps": 1e9, "delay_s": ROUND_TRIP_S / 2},
        "transport": {"tcp": transport},
        "flow": {"data": {"transport": "tcp", "traffic": traffic}},
    }

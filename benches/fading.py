"""Speed and memory over fading: 90 s at 622 Mb/s with packets of 1000 bytes, and the same with a constant error rate.

Usage:  python benches/fading.py [--repeats 5]

Prints a Markdown table. No other simulator here has such a channel, so the peer is farlink's own channel of independent
bit errors with the same long-term rate, in turn on the same core; ns-2 and ns-3 beside that one are in `peers.py`. CPU
seconds are those of the whole process: the trace of 900,000 samples is read, calibrated to a bit error rate of 1e-6 and run,
both directions.
"""

from __future__ import annotations

import argparse
from statistics import median
from typing import Any

from farlink.channels.synthesis import synthetic_file
from peers import Scenario, run_farlink

DURATION_S = 90
BER = 1e-6
DISTANCE_S = 400 / 299_792_458

TRANSPORTS: dict[str, dict[str, Any]] = {
    "TCP without congestion control, SACK": {
        "kind": "tcp",
        "variant": "sack",
        "congestion_control": "none",
        "segment_bytes": 1000,
        "max_window_segments": 20,
        "rto": {"minimum_s": 1e-3},
    },
    "ARQ, selective repeat": {"kind": "arq", "segment_bytes": 1000, "window_frames": 8, "rto": {"minimum_s": 1e-3}},
    "ARQ, go-back-N": {
        "kind": "arq",
        "mode": "go-back-n",
        "segment_bytes": 1000,
        "window_frames": 8,
        "rto": {"minimum_s": 1e-3},
    },
}


def scenario(transport: dict[str, Any], channel: dict[str, Any]) -> Scenario:
    """One endless flow; both directions have the same channel."""
    return {
        "title": "speed over fading",
        "duration_s": DURATION_S,
        "runs": 1,
        "link": {"rate_bps": 622e6, "delay_s": DISTANCE_S, "channel": channel, "return": {"channel": channel}},
        "transport": {"t": transport},
        "flow": {"bulk": {"transport": "t", "traffic": {"kind": "bulk"}}},
    }


def main() -> None:
    """Run all in turn; print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=5, help="how often each runs (default 5)")
    repeats = parser.parse_args().repeats
    trace = synthetic_file(f"synthetic:fasolt?duration_s={DURATION_S}")
    channels = {"fading": {"kind": "fading", "file": str(trace), "ber": BER}, "constant": {"kind": "ber", "ber": BER}}
    runs: dict[tuple[str, str], list[tuple[float, float, float]]] = {}
    for _ in range(repeats):
        for name, transport in TRANSPORTS.items():
            for kind, channel in channels.items():
                measured = run_farlink(scenario(transport, channel), f"fading-{name}-{kind}")
                runs.setdefault((name, kind), []).append(measured)
    print("| 90 s at 622 Mb/s, 1000 bytes, 400 m | delivered | CPU s | ns a packet | peak MB | ns with a constant error rate |")
    print("|---|--:|--:|--:|--:|--:|")
    for name in TRANSPORTS:
        packets, cpu_s, peak_mb = (median(values) for values in zip(*runs[name, "fading"], strict=True))
        constant = median(cpu_s / packets for packets, cpu_s, _ in runs[name, "constant"])
        print(f"| {name} | {packets:,.0f} | {cpu_s:.2f} | {1e9 * cpu_s / packets:.0f} | {peak_mb:.0f} | {1e9 * constant:.0f} |")


if __name__ == "__main__":
    main()

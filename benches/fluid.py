"""Speed of the fluid engine: 1,000 operating points at random on one core, beside the packet engine on some of them.

Usage:  python benches/fluid.py [--points 1000] [--packet-points 5]

Prints a Markdown table. The points are those of `docs/fluid.py`: loss rates from 1e-5 to 1e-2, buffers of 0.2 to 2
bandwidth-delay products, 50 to 5000 segments a second, round trips of 0.05 to 1 s, 1 to 20 flows. Both engines stop when the
99 % interval of the goodput is within 1 %; CPU seconds are those of the process.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import farlink
from farlink.engines import fluid

PAYLOAD_BYTES, HEADER_BYTES = 960, 40
PRECISION = {"quantity": "goodput_bps", "ci": 0.01, "level": 0.99, "min_runs": 5, "max_runs": 60}


def random_points(count: int) -> dict[str, Any]:
    """Operating points as columns."""
    rng = np.random.default_rng(1)
    rate = 10 ** rng.uniform(math.log10(50), math.log10(5000), count)
    round_trip_s = 10 ** rng.uniform(math.log10(0.05), 0, count)
    return {
        "rate_segments_per_s": rate,
        "round_trip_s": round_trip_s,
        "buffer_segments": np.maximum(
            1, np.round(10 ** rng.uniform(math.log10(0.2), math.log10(2), count) * rate * round_trip_s)
        ),
        "loss": 10 ** rng.uniform(-5, -2, count),
        "flows": rng.integers(1, 21, count),
    }


def packets(rate: float, round_trip_s: float, buffer: float, loss: float, flows: int) -> dict[str, Any]:
    """The scenario of one point."""
    duration_s = 500 * (round_trip_s + buffer / rate)
    return {
        "duration_s": duration_s,
        "precision": PRECISION,
        "measure": {"warmup_s": duration_s / 10},
        "link": {
            "rate_bps": 8 * (PAYLOAD_BYTES + HEADER_BYTES) * rate,
            "delay_s": (round_trip_s - 1.04 / rate) / 2,
            "queue_packets": int(buffer),
            "channel": {"kind": "loss", "loss": loss},
        },
        "transport": {"sack": {"kind": "tcp", "segment_bytes": PAYLOAD_BYTES, "delayed_ack": False}},
        "flow": {"bulk": {"transport": "sack", "count": flows, "traffic": {"kind": "bulk"}}},
    }


def cpu_s(work: Callable[[], Any]) -> float:
    """CPU seconds that it takes."""
    start = time.process_time()
    work()
    return time.process_time() - start


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--points", type=int, default=1000, help="operating points (default 1000)")
    parser.add_argument("--packet-points", type=int, default=5, help="of them, by the packet engine too (default 5)")
    arguments = parser.parse_args()
    points = random_points(arguments.points)
    some = {name: column[: arguments.packet_points] for name, column in points.items()}
    rows = list(zip(*some.values(), strict=True))

    print("| engine | points | CPU s | ms a point |")
    print("|---|--:|--:|--:|")
    kinds: dict[str, dict[str, Any]] = {
        "fluid": {},
        "fluid, TGEP's rules": {"multiple_losses": False, "timeouts": False, "duplicate_acks": 0},
        "fluid, CUBIC": {"growth": "cubic"},
    }
    for name, options in kinds.items():
        taken = cpu_s(lambda options=options: fluid.goodput(**points, threads=1, **options))
        print(f"| {name} | {arguments.points} | {taken:.2f} | {1e3 * taken / arguments.points:.2f} |", flush=True)
    ours = cpu_s(lambda: fluid.goodput(**some, threads=1))
    theirs = cpu_s(lambda: [farlink.run(packets(*map(float, row[:4]), int(row[4])), threads=1) for row in rows])
    print(f"| fluid, the first {len(rows)} | {len(rows)} | {ours:.3f} | {1e3 * ours / len(rows):.2f} |")
    print(f"| packet, the same | {len(rows)} | {theirs:.2f} | {1e3 * theirs / len(rows):.0f} |")
    print(f"\nOn those, the packet engine takes {theirs / ours:.0f} times as long.")


if __name__ == "__main__":
    main()

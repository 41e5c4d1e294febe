"""Cost of results apart from the simulation: grids of 1,000, 10,000 and 100,000 points, and a million runs of one point.

Usage:  python benches/grids.py [--points 1000 10000 100000] [--runs 1000000]

Prints Markdown tables: CPU seconds of each step (user and system, all threads), each grid in a process of its own, and the peak
memory of `farlink run` with many runs, without rows and with them. Each run is one datagram.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

STEPS = ("run", "summary", "table", "stalls", "rows", "JSON", "CSV", "Parquet", "pandas", "plot", "report")


def scenario(points: int) -> dict[str, Any]:
    """One datagram of two flows per run, over a grid of three keys."""
    traffic = {"kind": "cbr", "rate_bps": 1e6, "payload_bytes": 1000, "bytes": 1000}
    return {
        "title": "a large grid",
        "duration_s": 0.1,
        "runs": 1,
        "link": {"rate_bps": 1e6, "delay_s": 0.01, "channel": {"kind": "loss", "loss": 0.01}},
        "transport": {"udp": {"kind": "udp"}},
        "flow": {"data": {"transport": "udp", "traffic": traffic}},
        "grid": {
            "link.delay_s": [0.001 * (i + 1) for i in range(10)],
            "link.channel.loss": [0.01 * i for i in range(10)],
            "link.rate_bps": [1e6 + 10.0 * i for i in range(points // 100)],
        },
    }


def measure(points: int, folder: Path) -> dict[str, float]:
    """CPU seconds of each step, in this process."""
    import matplotlib as mpl

    mpl.use("Agg")
    import farlink
    from farlink.report import write_report

    found: dict[str, float] = {}

    def timed(name: str, work: Callable[[], Any]) -> Any:
        begin = time.process_time()
        result = work()
        found[name] = time.process_time() - begin
        return result

    result = timed("run", lambda: farlink.run(scenario(points)))
    timed("summary", result.summary)
    timed("table", result.table)
    timed("stalls", lambda: [result.stalls(), result.unfinished(), result.finished_runs])
    timed("rows", lambda: result.rows)
    timed("JSON", lambda: result.to_json(folder / "rows.json"))
    timed("CSV", lambda: result.to_csv(folder / "rows.csv"))
    timed("Parquet", lambda: result.to_parquet(folder / "rows.parquet"))
    timed("pandas", result.to_pandas)
    timed("plot", result.plot)
    timed("report", lambda: write_report(result, folder / "report.html"))
    return found


def command(runs: int, folder: Path, *options: str) -> tuple[float, float]:
    """CPU seconds and peak MB of `farlink run`."""
    path = folder / "runs.toml"
    path.write_text(
        'title = "many runs"\nduration_s = 0.1\n[link]\nrate_bps = 1e6\ndelay_s = 0.01\n'
        'channel = { kind = "loss", loss = 0.1 }\n'
        '[transport.udp]\nkind = "udp"\n[flow.data]\ntransport = "udp"\n'
        'traffic = { kind = "cbr", rate_bps = 1e6, payload_bytes = 1000, bytes = 1000 }\n',
        encoding="utf-8",
    )
    code = (
        "import resource, subprocess, sys\n"
        "subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)\n"
        "used = resource.getrusage(resource.RUSAGE_CHILDREN)\n"
        "print(used.ru_utime + used.ru_stime, used.ru_maxrss / 1024 * 1.048576)\n"
    )
    farlink = str(Path(sys.executable).parent / "farlink")
    arguments = [sys.executable, "-c", code, farlink, "run", str(path), "--runs", str(runs), *options]
    cpu_s, peak_mb = subprocess.run(arguments, check=True, capture_output=True, text=True).stdout.split()
    return float(cpu_s), float(peak_mb)


def main() -> None:
    """Measure each grid in a process of its own; print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--points", type=int, nargs="+", default=[1_000, 10_000, 100_000], help="multiples of 100")
    parser.add_argument("--runs", type=int, default=1_000_000, help="runs of one point (default a million)")
    parser.add_argument("--one", type=int, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if asked.one:
            found = measure(asked.one, folder)
            print(json.dumps(found | {"MB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024 * 1.048576}))
            return
        print(f"| points | {' | '.join(STEPS)} | peak MB |")
        print(f"|{'--:|' * (len(STEPS) + 2)}")
        for points in asked.points:
            again = [sys.executable, __file__, "--one", str(points)]
            one = json.loads(subprocess.run(again, check=True, capture_output=True, text=True).stdout.splitlines()[-1])
            print(f"| {points:,} | {' | '.join(f'{one[step]:.3g}' for step in STEPS)} | {one['MB']:.0f} |", flush=True)
        print(f"\n| {asked.runs:,} runs | CPU s | peak MB |\n|---|--:|--:|")
        for label, options in (("summary", ()), ("with their rows, `--csv`", ("--csv", str(folder / "rows.csv")))):
            cpu_s, peak_mb = command(asked.runs, folder, *options)
            print(f"| {label} | {cpu_s:.3g} | {peak_mb:.0f} |", flush=True)


if __name__ == "__main__":
    main()

"""Write `docs/validation/live.md`: flows simulated by the packet engine, and the same played by the kernel and `farlink-net`.

Usage:  sudo .venv/bin/python docs/live_engine.py [--runs 10] [--only WORDS] [--page]

Each run takes a minute of real time. Measured cells are appended to `out/live-engine.jsonl` with commit and date, and the same
command goes on where it stopped.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping
from datetime import date
from statistics import mean, stdev
from typing import Any

import page
from measuring import commit, finish_or_quit, keep_line, kept_lines

import farlink
from farlink.student import t_quantile

KEPT = page.ROOT / "out" / "live-engine.jsonl"
DURATION_S = 60
WARMUP_S = 10
LEVEL = 0.95
# What issue and page ask for.
GOODPUT, DELAY, DELAY_S = 0.1, 0.2, 2e-3

PATHS: dict[str, dict[str, Any]] = {
    "10 Mb/s, 20 ms, queue of one product": {"rate_bps": 10e6, "delay_s": 0.01, "queue_packets": 17},
    "10 Mb/s, 100 ms, queue of one product": {"rate_bps": 10e6, "delay_s": 0.05, "queue_packets": 84},
    "10 Mb/s, 500 ms, queue of one product": {"rate_bps": 10e6, "delay_s": 0.25, "queue_packets": 417},
    "10 Mb/s, 100 ms, loss 0.001": {
        "rate_bps": 10e6,
        "delay_s": 0.05,
        "queue_packets": 84,
        "channel": {"kind": "loss", "loss": 1e-3},
    },
    "2 Mb/s, 600 ms, loss 0.01": {
        "rate_bps": 2e6,
        "delay_s": 0.3,
        "queue_packets": 100,
        "channel": {"kind": "loss", "loss": 1e-2},
    },
}
TRANSPORTS: dict[str, dict[str, Any]] = {
    **{
        control: {"kind": "tcp", "variant": "rack", "congestion_control": control, "timestamps": True, "segment_bytes": 1448}
        for control in ("reno", "cubic", "bbr")
    },
    "aerotp": {"kind": "aerotp", "mode": "reliable", "rate_control": "friendly", "packet_bytes": 1500},
}
QUANTITIES = ("goodput_bps", "arrival_delay_mean_s", "loss_fraction")


def scenario(path: str, transport: str, runs: int) -> dict[str, Any]:
    """One flow over one path."""
    return {
        "title": f"{transport}: {path}",
        "duration_s": DURATION_S,
        "runs": runs,
        "measure": {"warmup_s": WARMUP_S},
        "link": PATHS[path],
        "transport": {"t": TRANSPORTS[transport]},
        "flow": {"bulk": {"transport": "t", "traffic": {"kind": "bulk"}}},
    }


def measure(cell: tuple[str, str], run: int) -> dict[str, Any]:
    """One live run, and the same run of the packet engine."""
    values: dict[str, Any] = {}
    for engine in ("packet", "live"):
        result = farlink.run(scenario(*cell, 1), engine=engine, seed=run + 1)
        (at,) = [at for at, flow in enumerate(result.rows["flow"]) if flow == "bulk"]
        values[engine] = {name: result.rows[name][at] for name in QUANTITIES}
        values[engine]["notes"] = list(result.notes)
    return values


def kept() -> dict[tuple[str, str, int], Mapping[str, Any]]:
    """What was measured before."""
    return {(one["path"], one["transport"], one["run"]): one for one in kept_lines(KEPT)}


def interval(values: list[float]) -> tuple[float, float]:
    """Mean and half-width."""
    if len(values) < 2:
        return mean(values), float("nan")
    return mean(values), t_quantile(len(values) - 1, LEVEL) * stdev(values) / len(values) ** 0.5


def table() -> str:
    """A row for each cell."""
    found = kept()
    rows = []
    for path in PATHS:
        for transport in TRANSPORTS:
            ones = [one for (of, by, _), one in found.items() if (of, by) == (path, transport)]
            if not ones:
                continue
            row = [path, transport, f"{len(ones)}", f"{sum(bool(one['live']['notes']) for one in ones)}"]
            shown = {}
            for engine in ("packet", "live"):
                shown[engine] = [interval([one[engine][name] for one in ones]) for name in QUANTITIES[:2]]
                (goodput, width), (delay, _) = shown[engine]
                shown_width = f" ± {width / 1e6:.2f}" if len(ones) > 1 else ""
                row += [f"{goodput / 1e6:.2f}{shown_width}", f"{delay * 1e3:.1f}"]
            goodputs = [shown[engine][0][0] for engine in ("packet", "live")]
            delays = [shown[engine][1][0] - PATHS[path]["delay_s"] for engine in ("packet", "live")]
            ratio, more_s = goodputs[1] / goodputs[0], delays[1] - delays[0]
            is_met = abs(ratio - 1) <= GOODPUT and abs(more_s) <= max(DELAY * delays[0], DELAY_S)
            rows.append([*row, f"{ratio:.2f}", f"{more_s * 1e3:+.1f}", "yes" if is_met else "no"])
    head = ["path", "flow", "runs", "not valid", "simulated Mb/s", "delay ms", "live Mb/s", "delay ms", "live / simulated"]
    return page.table([*head, "queue ms more", "within"], rows, "ll")


def write_page() -> None:
    """Write what there is."""
    found = kept().values()
    page.write(
        "live.md",
        {},
        only=True,
        cells=table(),
        commits=", ".join(sorted({one["commit"] for one in found})),
        dates=", ".join(sorted({one["date"] for one in found})),
        loads=f"{min((one['load'] for one in found), default=0):.1f} to {max((one['load'] for one in found), default=0):.1f}",
    )


def work(arguments: argparse.Namespace) -> None:
    """Do what the command line asks for."""
    there = kept()
    cells = [(path, transport) for path in PATHS for transport in TRANSPORTS if arguments.only in f"{transport}: {path}"]
    for run in range(0 if arguments.page else arguments.runs):
        for cell in cells:
            if (*cell, run) in there:
                continue
            measured = measure(cell, run)
            about = {"path": cell[0], "transport": cell[1], "run": run, "commit": commit(), "date": date.today().isoformat()}
            keep_line(KEPT, {**about, "load": os.getloadavg()[0], **measured})
            print(about, measured, file=sys.stderr, flush=True)
    write_page()


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=10, help="of each cell (%(default)s)")
    parser.add_argument("--only", default="", metavar="WORDS", help="cells with these words in their names")
    parser.add_argument("--page", action="store_true", help="measure nothing, and write the page from what is there")
    arguments = parser.parse_args()
    finish_or_quit(lambda: work(arguments))


if __name__ == "__main__":
    main()

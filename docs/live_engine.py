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
# Two flows of AeroTP beside one of CUBIC, behind a fast first hop, so that no host knows the bottleneck; room in packets.
BESIDE = "two AeroTP and CUBIC"
SHARED = {"queue of 0.1 product": 8, "queue of one product": 84, "queue of four products": 333}
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


def shared(queue: str) -> dict[str, Any]:
    """Three flows over one bottleneck."""
    bottleneck = {"rate_bps": 10e6, "delay_s": 0.049, "queue_packets": SHARED[queue]}
    return {
        "title": f"{BESIDE}: {queue}",
        "runs": 1,
        "duration_s": DURATION_S,
        "measure": {"warmup_s": WARMUP_S},
        "path": ["host", "bottleneck"],
        "hop": {"host": {"rate_bps": 1e9, "delay_s": 0.001}, "bottleneck": bottleneck},
        "transport": {name: TRANSPORTS[name] for name in ("aerotp", "cubic")},
        "flow": {
            name: {"transport": name.rstrip("12"), "start_s": start_s, "traffic": {"kind": "bulk"}}
            for name, start_s in (("aerotp1", 0.0), ("aerotp2", 0.5), ("cubic", 1.0))
        },
    }


def measure_shared(queue: str, run: int) -> dict[str, Any]:
    """What each flow has, live and simulated, in Mb/s."""
    values: dict[str, Any] = {}
    for engine in ("packet", "live"):
        result = farlink.run(shared(queue), engine=engine, seed=run + 1)
        rows = zip(result.rows["flow"], result.rows["goodput_bps"], strict=True)
        values[engine] = {**{flow: goodput / 1e6 for flow, goodput in rows if flow != "all"}, "notes": list(result.notes)}
    return values


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


def shares() -> str:
    """A row for each queue: means over the runs."""
    found = kept()
    rows = []
    for queue in SHARED:
        ones = [one for (path, by, _), one in found.items() if (path, by) == (queue, BESIDE)]
        if not ones:
            continue
        row = [queue, f"{len(ones)}", f"{sum(bool(one['live']['notes']) for one in ones)}"]
        for flow in ("aerotp1", "aerotp2", "cubic"):
            row += ["{:.2f} ± {:.2f}".format(*interval([one[engine][flow] for one in ones])) for engine in ("packet", "live")]
        kept_share = {engine: mean([3 * one[engine]["cubic"] / 10 for one in ones]) for engine in ("packet", "live")}
        rows.append([*row, *(f"{kept_share[engine]:.2f}" for engine in ("packet", "live"))])
    flows = [f"{flow} {how}" for flow in ("AeroTP 1", "AeroTP 2", "CUBIC") for how in ("simulated", "live")]
    return page.table(["queue", "runs", "not valid", *flows, "CUBIC / a third, simulated", "live"], rows, "l")


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
            # With losses the simulated delay has the repair of lost packets in it, and the live one has not.
            is_comparable = "channel" not in PATHS[path]
            is_met = abs(ratio - 1) <= GOODPUT and (not is_comparable or abs(more_s) <= max(DELAY * delays[0], DELAY_S))
            rows.append([*row, f"{ratio:.2f}", f"{more_s * 1e3:+.1f}" if is_comparable else "-", "yes" if is_met else "no"])
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
        shares=shares(),
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
        for queue in (queue for queue in SHARED if arguments.only in f"{BESIDE}: {queue}"):
            if (queue, BESIDE, run) not in there:
                about = {"path": queue, "transport": BESIDE, "run": run, "commit": commit(), "date": date.today().isoformat()}
                keep_line(KEPT, {**about, "load": os.getloadavg()[0], **measure_shared(queue, run)})
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

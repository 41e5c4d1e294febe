"""Write `docs/validation/bundle-tcp.md`: this kernel's TCP over a simulated bundle of Linux, beside the simulated TCP.

As root. `farlink emulate`'s code plays the same bundle with the same drops as the packet engine, in real time, between two
namespaces; TCP is the kernel's. So what differs is TCP alone. Cells are appended to `out/bundle-tcp.jsonl`, several are played
side by side, and the same command goes on where it stopped. A cell takes 4 minutes.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import statistics
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from datetime import date
from typing import Any

import page
from bundle_paths_world import CONTROL, World
from measuring import commit, finish_or_quit, keep_line, kept_lines, quit_for

import farlink

KEPT = page.ROOT / "out" / "bundle-tcp.jsonl"
DURATION_S = 240.0
# The flow begins so long after the bundle, when the programs have started on a busy machine too.
BEGIN_S = 12.0
# How long a line that dropped stays away: what pppd's cells had.
AWAY_S = (10.0, 16.0)
# By the first ones faults of the simulated TCP were found; nothing was changed for the others.
FOUND_BY = range(1, 17)
SEEDS = range(1, 29)
BEGINNINGS = 11
# From the SYN to the accept: a round trip and a half, and what the lines take for three packets of 60 bytes.
HANDSHAKE_S = 1.68
# What the kernel's own buffer allows at most is far above what the lines hold.
WINDOW_SEGMENTS = 1000
LATE_MS = 50.0


def cell(seed: int) -> dict[str, Any]:
    """Lines and when each is down, drawn at random."""
    draw = random.Random(f"tcp {seed}")
    lines, mean_up_s = draw.randint(2, 8), draw.uniform(60.0, 300.0)
    schedule: list[list[list[float]]] = []
    for _ in range(lines):
        downs, now = list[list[float]](), 0.0
        while (now := now + draw.expovariate(1 / mean_up_s)) < BEGIN_S + DURATION_S:
            back = now + draw.uniform(*AWAY_S)
            if now > BEGIN_S:
                downs.append([round(now, 2), round(back, 2)])
            now = back
        schedule.append(downs)
    return {"lines": lines, "mean_up_s": round(mean_up_s, 1), "schedule": schedule}


def link_of(about: Mapping[str, Any]) -> dict[str, Any]:
    """The bundle, as `bundle_pppd.py` has it."""
    bundle = {
        "lines": about["lines"],
        "scheduler": "linux",
        "tty_bytes": 12288 + 4096,
        "calls": {"schedule": about["schedule"]},
    }
    return {"rate_bps": 2400, "delay_s": 0.5, "bundle": bundle}


def play(seed: int) -> dict[str, Any]:
    """One cell in real time."""
    with World({"lines": link_of(cell(seed))}) as world:
        while time.monotonic() < world.began_s + BEGIN_S - 1.0:
            time.sleep(0.01)
        rows = world.sent("bulk", world.of_shore("lines"), DURATION_S)
        accepted = re.search(r"^accepted at (.*)$", world.said("sink-0"), re.MULTILINE)
        begin_s = float(accepted.group(1)) - world.began_s if accepted else float("nan")
    total = 0
    arrived = [(at, total := total + int(count)) for at, count in rows]
    return {"bytes": total, "begin_s": round(begin_s, 2), "arrived": arrived, "late_ms": world.late_ms}


def simulated_bytes(about: Mapping[str, Any], begin_s: float) -> list[int]:
    """What the simulated TCP delivers in the same time, begun then, and at other times within a second of it."""
    starts = [begin_s - HANDSHAKE_S] + [begin_s - HANDSHAKE_S - 1.0 + 0.2 * number for number in range(BEGINNINGS)]
    transport = {
        "kind": "tcp",
        "variant": "rack",
        "congestion_control": CONTROL,
        "segment_bytes": 1448,
        "timestamps": True,
        "max_window_segments": WINDOW_SEGMENTS,
        "rto": {"algorithm": "linux", "initial_s": 1, "minimum_s": 0.2},
    }
    scenario = {
        "title": "This kernel's TCP over a simulated bundle",
        "duration_s": begin_s + DURATION_S,
        "runs": 1,
        "link": link_of(about),
        "transport": {"used": transport},
        "flow": {"data": {"transport": "used", "traffic": {"kind": "bulk"}}},
        "grid": {"flow.data.start_s": starts},
    }
    rows = farlink.run(scenario).rows
    return [int(rows["delivered_bytes"][at]) for at, flow in enumerate(rows["flow"]) if flow == "data"]


def measured() -> dict[int, dict[str, Any]]:
    """What is kept of the cells as they are now."""
    return {one["seed"]: one for one in kept_lines(KEPT) if one["cell"] == cell(one["seed"]) and one["control"] == CONTROL}


@dataclass(frozen=True)
class Compared:
    """A cell beside the simulator.

    Attributes
    ----------
    bytes
        What the kernel's TCP delivered.
    same
        What the simulated TCP delivers, begun at the same time.
    others
        The same, begun at other times.
    """

    bytes: int
    same: int
    others: Sequence[int]

    @property
    def apart(self) -> float:
        """How much more the kernel's TCP delivered than the simulated one, as a share."""
        return self.bytes / self.same - 1 if self.same else float("inf")

    @property
    def is_inside(self) -> bool:
        """Whether the kernel's TCP lies within what the simulated one has at any of the times."""
        return min(self.same, *self.others) <= self.bytes <= max(self.same, *self.others)


def compared(one: Mapping[str, Any]) -> Compared:
    """Play a kept cell in the simulator."""
    same, *others = simulated_bytes(one["cell"], one["begin_s"])
    return Compared(one["bytes"], same, others)


def row(one: Mapping[str, Any], beside: Compared) -> list[str]:
    """The row of a cell."""
    least, most = min(beside.same, *beside.others), max(beside.same, *beside.others)
    late = f"{one['late_ms']:.0f} ms"
    return [
        f"{one['seed']}",
        f"{one['cell']['lines']}",
        f"{sum(map(len, one['cell']['schedule']))}",
        *(f"{8 * count / DURATION_S:.0f}" for count in (beside.bytes, beside.same)),
        f"{beside.apart:+.1%}",
        f"{8 * least / DURATION_S:.0f} to {8 * most / DURATION_S:.0f}",
        f"**{late}**" if one["late_ms"] > LATE_MS else late,
        one["commit"],
    ]


def summary(of: Sequence[Compared]) -> dict[str, str]:
    """What the cells say together."""
    simulated = [sum(one.others[at] for one in of) for at in range(BEGINNINGS)]
    return {
        "count": f"{len(of)}",
        "within": f"{sum(abs(one.apart) <= 0.1 for one in of)}",
        "inside": f"{sum(one.is_inside for one in of)}",
        "median": f"{statistics.median(one.apart for one in of):+.1%}",
        "whole": f"{sum(one.bytes for one in of) / statistics.fmean(simulated) - 1:+.1%}",
    }


def write(found: Mapping[int, Mapping[str, Any]]) -> None:
    """Write the page."""
    if not found:
        raise RuntimeError("nothing was measured yet")
    beside = {seed: compared(found[seed]) for seed in sorted(found)}
    head = ["schedule", "lines", "drops", "kernel's TCP, bit/s", "simulated TCP", "apart", "begun at other times"]
    head += ["late, 99 %", "commit"]
    groups = {
        "1 to 16": [one for seed, one in beside.items() if seed in FOUND_BY],
        "17 to 28": [one for seed, one in beside.items() if seed not in FOUND_BY],
    }
    page.write(
        "bundle-tcp.md",
        {},
        cells=page.table(head, [row(found[seed], one) for seed, one in beside.items()], "lr"),
        groups=page.table(
            ["schedules", "played", "within 10 %", "within the span", "median apart", "sum apart"],
            [[name, *summary(of).values()] for name, of in groups.items() if of],
            "lr",
        ),
        kernel=os.uname().release.split("-")[0],
        load=f"{max(one['load'] for one in found.values()):.0f}",
        dates=", ".join(sorted({one["date"] for one in found.values()})),
        **summary(list(beside.values())),
    )


def work(given: argparse.Namespace) -> None:
    """Do what the command line asks for."""
    if not given.page:
        if os.geteuid() != 0:
            quit_for("network namespaces need root", "run it as root")
        left: Sequence[int] = [seed for seed in given.seeds or SEEDS if seed not in measured()]
        with ProcessPoolExecutor(given.jobs) as pool:
            playing = {pool.submit(play, seed): seed for seed in left}
            for done in as_completed(playing):
                seed, found = playing[done], done.result()
                about = {"control": CONTROL, "load": os.getloadavg()[0], "commit": commit(), "date": f"{date.today()}"}
                keep_line(KEPT, {"seed": seed, "cell": cell(seed), **found, **about})
                print(f"schedule {seed}: {8 * found['bytes'] / DURATION_S:.0f} bit/s", flush=True)
    write(measured())


def main() -> None:
    """Read the command line."""
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--page", action="store_true", help="measure nothing, and write the page from what is there")
    asked.add_argument("--jobs", type=int, default=4, help="cells side by side (%(default)s)")
    asked.add_argument("--seeds", type=int, nargs="*", help="only these schedules")
    given = asked.parse_args()
    finish_or_quit(lambda: work(given))


if __name__ == "__main__":
    main()

"""Write the table on speed of `docs/validation/bundle-paths.md`: what `farlink bundle carry` costs over wires without limits.

Half a minute, as root. `--perf FOLDER` leaves what perf has recorded of both ends there.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import time
from datetime import date
from pathlib import Path
from typing import Any

import page
from bundle_paths_world import SHORE, World
from measuring import commit, finish_or_quit, keep_line, kept_lines, quit_for

KEPT = page.ROOT / "out" / "bundle-speed.jsonl"
LASTS_S, FROM_S = 20.0, 5.0
PATHS = ("one", "two")
PERF_S = 5


def cpu_s(pid: int) -> float:
    """Processor time of all threads of a process, as the scheduler counts it."""
    tasks = Path(f"/proc/{pid}/task").iterdir()
    return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks) / 1e9


def measured(paths: int, perf: Path | None) -> dict[str, Any]:
    """One TCP connection over so many wires: what arrives, and what it costs either end."""
    with World(dict.fromkeys(PATHS[:paths])) as world:
        world.carry()
        ends = dict(zip(("shore", "ship"), (one.pid for one in world.carrying), strict=True))
        looks: list[tuple[float, dict[str, float], dict[str, float]]] = []

        def look() -> None:
            looks.append((time.monotonic(), {name: cpu_s(pid) for name, pid in ends.items()}, world.metrics()))

        def during() -> None:
            time.sleep(FROM_S)
            look()
            if perf is not None:
                perf.mkdir(exist_ok=True)
                for name, pid in ends.items():
                    recorded = ["perf", "record", "-q", "-o", f"{perf / name}-{paths}.perf", "-p", f"{pid}"]
                    subprocess.run([*recorded, "--", "sleep", f"{PERF_S}"], check=True)
            time.sleep(LASTS_S - FROM_S - 2 - (2 * PERF_S if perf else 0))
            look()

        rows = world.sent("bulk", SHORE, LASTS_S, during=during)
    (began, cpu_before, before), (ended, cpu_after, after) = looks
    seconds = ended - began
    arrived = sum(count for at, count in rows if FROM_S <= at < FROM_S + seconds)
    packets = after["farlink_bundle_taken_total"] - before["farlink_bundle_taken_total"]
    used_s = {name: cpu_after[name] - cpu_before[name] for name in ends}
    return {"paths": paths, "seconds": seconds, "bytes": arrived, "packets": packets, "cpu_s": used_s}


def work(given: argparse.Namespace) -> None:
    """Do what the command line asks for."""
    if not given.page:
        if os.geteuid() != 0:
            quit_for("network namespaces need root", "run it as root")
        for paths in (1, 2):
            load = os.getloadavg()[0]
            found = measured(paths, given.perf)
            keep_line(KEPT, {**found, "load": load, "commit": commit(), "date": f"{date.today()}"})
            print(found, flush=True)
    last = {one["paths"]: one for one in kept_lines(KEPT)}
    rows = []
    for paths, one in sorted(last.items()):
        bits, costs = 8 * one["bytes"], one["cpu_s"]
        words = [f"{paths}", f"{bits / one['seconds'] / 1e6:.0f}"]
        for name in ("ship", "shore"):
            words += [f"{costs[name] / one['seconds']:.0%}", f"{bits / costs[name] / 1e6:.0f}"]
        rows.append([*words, f"{1e6 * costs['ship'] / one['packets']:.1f}", f"{one['load']:.0f}", one["commit"], one["date"]])
    head = ["wires", "TCP, Mb/s", "sender: of a core", "Mb/s a core", "receiver: of a core", "Mb/s a core"]
    head += ["sender: us a packet", "load", "commit", "date"]
    page.write("bundle-paths.md", {}, only=True, speed=page.table(head, rows, "r"))


def main() -> None:
    """Read the command line."""
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--page", action="store_true", help="measure nothing, and write the table from what is there")
    asked.add_argument("--perf", type=Path, metavar="FOLDER", help="where perf's records go")
    given = asked.parse_args()
    finish_or_quit(lambda: work(given))


if __name__ == "__main__":
    main()

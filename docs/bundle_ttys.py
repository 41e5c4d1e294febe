"""Write the table on processors of `docs/validation/bundle-axis.md`: what sixteen fast lines cost farlink's PPP process.

A minute, as root: sixteen pairs of pseudo-terminals of 115,200 bit/s, filled both ways, then idle. It costs as much whether
other programs run or not, as the scheduler counts the own time of the process.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
from datetime import date
from pathlib import Path
from typing import Any

import page
from bundle_axis import play, prefer
from measuring import build, commit, finish_or_quit, keep_line, kept_lines

KEPT = page.ROOT / "out" / "bundle-ttys.jsonl"
LINES: dict[str, Any] = {"ends": "farlink", "lines": 16, "rate_bps": 115_200, "delay_s": 0.05, "duration_s": 40.0}
# No drops; the load is a share of the lines' rate, each way.
QUIET: dict[str, Any] = {"mean_up_s": 0.0, "down_s": 0.0, "seed": 0}
CELLS: dict[str, dict[str, Any]] = {
    "both ways full": {**LINES, **QUIET, "load": 1.05},
    "idle": {**LINES, **QUIET, "load": 0.0},
}


def work(given: argparse.Namespace) -> None:
    """Do what the command line asks for."""
    if not given.page:
        if not given.built:
            build("farlink-net", "ppp")
        prefer()
        for name, cell in CELLS.items():
            load = os.getloadavg()[0]
            with tempfile.TemporaryDirectory(prefix="farlink-ttys-") as temporary:
                play(cell, Path(temporary))
                found = json.loads((Path(temporary) / "found.json").read_text())
            kept = {key: found[key] for key in ("bytes", "cpu_s", "late_most_s")}
            keep_line(KEPT, {"name": name, "cell": cell, **kept, "load": load, "commit": commit(), "date": f"{date.today()}"})
    rows = []
    for name, one in {one["name"]: one for one in kept_lines(KEPT) if one["cell"] == CELLS[one["name"]]}.items():
        seconds = one["cell"]["duration_s"]
        shares = [f"{one['cpu_s'][end] / seconds:.2%}" for end in ("near", "far")]
        rows.append(
            [name, f"{8 * one['bytes'] / seconds / 1e6:.2f}", *shares, f"{one['load']:.0f}", one["commit"], one["date"]]
        )
    head = ["sixteen lines", "both ways together, Mb/s", "near end: of a core", "far end", "load", "commit", "date"]
    page.write("bundle-axis.md", {}, only=True, ttys=page.table(head, rows, "lr"))


def main() -> None:
    """Read the command line."""
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--built", action="store_true", help="the example `ppp` is there as it is to be measured")
    asked.add_argument("--page", action="store_true", help="measure nothing, and write the table from what is there")
    given = asked.parse_args()
    finish_or_quit(lambda: work(given))


if __name__ == "__main__":
    main()

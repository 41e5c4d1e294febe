"""Write `docs/validation/bundle-lines.md` (`make bundle-lines`): troubles of lines over interfaces, 200 times each, as root.

What was measured is appended to `out/bundle-lines.jsonl`; `--page` measures nothing and writes the page from its last lines.
"""

from __future__ import annotations

import argparse
import subprocess
import sys

import page
from measuring import finish_or_quit, kept_lines

KEPT = page.ROOT / "out" / "bundle-lines.jsonl"
WANTED_S = 3.0


def measure(arguments: argparse.Namespace) -> None:
    """Do what the command line asks for."""
    if not arguments.page:
        KEPT.parent.mkdir(exist_ok=True)
        command = ["-m", "tests.operator.interface_world", "--times", f"{arguments.times}", "--out", str(KEPT)]
        subprocess.run([sys.executable, *command], cwd=page.ROOT, check=True)
    found = {row["trouble"]: row for row in kept_lines(KEPT)}
    if not found:
        raise RuntimeError("nothing was measured yet")
    which = ("least", "median", "p95", "most")
    head = ["trouble", "times", "noticed: least", *which[1:], f"within {WANTED_S:g} s", "back: least", *which[1:]]
    rows = []
    for name, row in found.items():
        noticed, back = ([f"{row[f'{what}_{one}_s']:.2f}" for one in which] for what in ("noticed", "back"))
        rows.append([name, f"{row['times']}", *noticed, f"{row['in_time']}", *back])
    last = list(found.values())[-1]
    said = {key: last[key] for key in ("load", "commit", "date")}
    page.write("bundle-lines.md", {}, troubles=page.table(head, rows, "lr"), **said)


def main() -> None:
    """Measure, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--times", type=int, default=200, help="of each trouble")
    parser.add_argument("--page", action="store_true", help="measure nothing, and write the page from what is there")
    arguments = parser.parse_args()
    finish_or_quit(lambda: measure(arguments))


if __name__ == "__main__":
    main()

"""Write `docs/validation/bundle-beside.md` (`make bundle-beside`): lines that die, beside OpenMPTCProuter's tracker.

Takes a quarter of an hour for ten troubles of each kind, as root. FARLINK_OMR_TRACKER names the script of OpenMPTCProuter's
feeds, `omr-tracker/files/bin/omr-tracker`. Each trouble that is over is appended to `out/bundle-beside.jsonl`, and the same
command goes on with what is missing; `--page` measures nothing.
"""

from __future__ import annotations

import argparse
import os
import random
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

import page
from bundle_tracker import Tracker
from measuring import commit, finish_or_quit, keep_line, kept_lines, quit_for
from tests.operator import interface_world
from tests.operator.live_world import Running
from tests.operator.wires import Wire, missing, wires

KEPT = page.ROOT / "out" / "bundle-beside.jsonl"
TROUBLES = ("unplugged", "black hole", "address gone")
WATCHERS = ("farlink", "OpenMPTCProuter")
_SETTLED_S = 6.0


def tracked(script: Path, wire: Wire, trouble: str, times: int) -> None:
    """Let a wire that the tracker watches have a trouble again and again."""
    make, end, _ = interface_world.TROUBLES[trouble]
    rng = random.Random(trouble)
    with tempfile.TemporaryDirectory() as folder, Tracker(script, Path(folder), wire) as tracker:
        tracker.since(0.0, "OK")
        for _ in range(times):
            time.sleep(rng.uniform(_SETTLED_S, 2 * _SETTLED_S))
            began_s = time.time()
            make(wire)
            noticed_s = tracker.since(began_s, "ERROR")
            ended_s = time.time()
            end(wire)
            keep("OpenMPTCProuter", trouble, noticed_s, tracker.since(ended_s, "OK"))


def operated(wire: Wire, trouble: str, times: int) -> None:
    """The same with an operator of a bundle with this line, and the default pause after a drop."""
    rng = random.Random(trouble)
    with tempfile.TemporaryDirectory() as folder:
        config = interface_world.configure(Path(folder), [wire])
        config.write_text(config.read_text().replace("dropped_s = 0.2\n", ""))
        operator = Running(config, wire.prefix_near())
        try:
            for _ in range(times):
                noticed_s, back_s = interface_world.trouble(operator, wire, trouble, rng.uniform(_SETTLED_S, 2 * _SETTLED_S))
                keep("farlink", trouble, noticed_s, back_s)
        finally:
            operator.end()


def keep(watcher: str, trouble: str, noticed_s: float, back_s: float) -> None:
    """Append a trouble that is over."""
    row = {"watcher": watcher, "trouble": trouble, "noticed_s": round(noticed_s, 3), "back_s": round(back_s, 3)}
    keep_line(KEPT, {**row, "load": round(os.getloadavg()[0], 1), "commit": commit(), "date": f"{datetime.now(UTC):%Y-%m-%d}"})
    print(f"{watcher}: {trouble}: noticed after {noticed_s:.1f} s, back after {back_s:.1f} s", flush=True)


def done(watcher: str, trouble: str) -> int:
    """How many troubles of a kind are kept."""
    return sum(one["watcher"] == watcher and one["trouble"] == trouble for one in kept_lines(KEPT))


def measure(arguments: argparse.Namespace) -> None:
    """Do what the command line asks for."""
    if not arguments.page:
        script = os.environ.get("FARLINK_OMR_TRACKER", "")
        if not Path(script).is_file():
            quit_for(
                f"FARLINK_OMR_TRACKER {script!r} is no file",
                "name omr-tracker/files/bin/omr-tracker of OpenMPTCProuter's feeds",
            )
        if (why := missing()) is not None:
            quit_for(f"no wires: {why}", "run it as root, with iproute2 and nftables")
        with wires() as made, ThreadPoolExecutor(len(TROUBLES) * len(WATCHERS)) as pool:
            running = []
            for watcher in WATCHERS:
                for number, trouble in enumerate(TROUBLES):
                    wire, times = made.add(f"{watcher[:4].lower()}{number}"), arguments.times - done(watcher, trouble)
                    if watcher == "farlink":
                        running.append(pool.submit(operated, wire, trouble, times))
                    else:
                        running.append(pool.submit(tracked, Path(script), wire, trouble, times))
            for one in running:
                one.result()
    write()


def write() -> None:
    """Write the table of the page."""
    found = list(kept_lines(KEPT))
    if not found:
        raise RuntimeError("nothing was measured yet")
    rows = []
    for trouble in TROUBLES:
        for watcher in WATCHERS:
            of = [one for one in found if one["watcher"] == watcher and one["trouble"] == trouble]
            cells = [trouble, watcher, f"{len(of)}"]
            for key in ("noticed_s", "back_s"):
                times = interface_world.quantiles([one[key] for one in of]) if of else {}
                cells += [f"{times[one]:.1f}" if times else "-" for one in ("least", "median", "most")]
            rows.append(cells)
    head = ["trouble", "who watches", "times", "noticed: least", "median", "most", "back: least", "median", "most"]
    said = {key: found[-1][key] for key in ("commit", "date")}
    said["load"] = sum(one["load"] for one in found) / len(found)
    page.write("bundle-beside.md", {}, troubles=page.table(head, rows, "llr"), **said)


def main() -> None:
    """Measure, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--times", type=int, default=10, help="of each trouble and each of both (default 10)")
    parser.add_argument("--page", action="store_true", help="measure nothing, and write the page from what is there")
    arguments = parser.parse_args()
    finish_or_quit(lambda: measure(arguments))


if __name__ == "__main__":
    main()

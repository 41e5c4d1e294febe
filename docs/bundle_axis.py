"""Write `docs/validation/bundle-axis.md`: pppd, farlink's process and the simulator over the same lines: `make bundle-axis`.

As root, with QEMU for the cells of pppd. A cell takes its 20 minutes of real time and half a minute more; two guests and all
cells of farlink run side by side (`--guests`, `--side-by-side`). Measured cells are appended to `out/bundle-axis.jsonl` with
commit, date and load, and the same command goes on where it stopped; `--only WORDS` measures cells with these words in their
names, `--page` measures nothing, `--add NAME FOLDER` keeps a cell that was played by hand.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import date
from pathlib import Path
from typing import Any

import page
from measuring import PROGRAMS, build, commit, finish_or_quit, keep_line, kept_lines, quit_for

sys.path.insert(0, str(page.ROOT))
from bundle_axis_page import MOST_LATE_S, write_page
from tests.qemu import guest, ppp_guest
from tests.qemu.axis_world import outages

KEPT = page.ROOT / "out" / "bundle-axis.jsonl"
# The lines of the thesis and of the study (`docs/validation/bundles.md`): half a second each way, down for 53 s in the mean, of
# which PPP takes 8; a window of 33 segments.
LINES: dict[str, Any] = {"lines": 8, "rate_bps": 2400, "delay_s": 0.5, "down_s": 45.0, "window_bytes": 47_900}
MINUTES_UP = (5, 20, 30, 52)
RUNS = 3
DURATION_S = 1200.0
QUIET_S = 300.0


def seeds(mean_up_s: float) -> list[int]:
    """The first schedules that have as many outages as there are in the mean."""
    found: list[int] = []
    seed = 0
    wanted = round(LINES["lines"] * DURATION_S / (mean_up_s + LINES["down_s"]))
    while len(found) < RUNS:
        seed += 1
        if len(outages({**LINES, "duration_s": DURATION_S, "mean_up_s": mean_up_s, "seed": seed})) == wanted:
            found.append(seed)
    return found


def cells() -> dict[str, dict[str, Any]]:
    """What is measured, by name: each rate of drops in three schedules; pppd plays the first of them."""
    found = {}
    for ends in ("farlink", "pppd"):
        found[f"{ends}, no drop"] = {"ends": ends, **LINES, "duration_s": QUIET_S, "mean_up_s": 0.0, "seed": 0}
        for minutes in MINUTES_UP:
            for run, seed in enumerate(seeds(60.0 * minutes), 1):
                cell = {"ends": ends, **LINES, "duration_s": DURATION_S, "mean_up_s": 60.0 * minutes, "seed": seed}
                found[f"{ends}, {minutes} min, run {run}"] = cell
    return found


def play(cell: Mapping[str, Any], folder: Path) -> None:
    """Play a cell: in a guest, or in namespaces with a `/tmp` of their own. It leaves its findings in `folder`."""
    program = {"program": str(PROGRAMS / "ppp")} if cell["ends"] == "farlink" else {}
    (folder / "cell.json").write_text(json.dumps({**cell, **program}))
    timeout_s = cell["duration_s"] + 500
    if cell["ends"] == "pppd":
        script = ppp_guest.SETUP.format(root=page.ROOT) + f"{sys.executable} -m tests.qemu.axis_world /mnt /mnt/cell.json\n"
        ended = guest.run(script, folder, modules=ppp_guest.MODULES, timeout_s=timeout_s)
        status, said = ended.status, ended.console
    else:
        world = f"{sys.executable} -m tests.qemu.axis_world {folder} {folder}/cell.json"
        # The folder is below `/tmp` as a rule, which the world has for itself.
        inside = f"ip link set lo up && mount --bind {folder} /mnt && mount -t tmpfs tmpfs /tmp && cd {page.ROOT} && exec "
        inside += world.replace(str(folder), "/mnt")
        command = ["unshare", "--net", "--mount", "--propagation", "private", "sh", "-c", inside]
        done = subprocess.run(command, capture_output=True, text=True, timeout=timeout_s, check=False)
        status, said = done.returncode, done.stderr
    if status != 0:
        raise RuntimeError(f"the world ended with {status}: {said[-2000:]}")


def measure(name: str) -> None:
    """Play a cell and keep what it found."""
    about: dict[str, Any] = {"commit": commit(), "date": date.today().isoformat()}
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory(prefix="farlink-axis-") as temporary:
        try:
            play(cells()[name], Path(temporary))
        except RuntimeError as error:
            raise RuntimeError(f"{name}: {error}") from None
        add(name, Path(temporary), {**about, "load": [load, os.getloadavg()[0]]})


def add(name: str, folder: Path, about: Mapping[str, Any]) -> None:
    """Keep the findings of a cell."""
    found = json.loads((folder / "found.json").read_text())
    keep_line(KEPT, {"name": name, "cell": cells()[name], "found": found, **about})
    print(
        f"{name}: {8 * found['bytes'] / cells()[name]['duration_s']:.0f} bit/s, late {found['late_most_s']:.2f} s", flush=True
    )


def measured() -> dict[str, dict[str, Any]]:
    """Of the findings of each cell as it is now, the one whose world was least late."""
    wanted = cells()
    found: dict[str, dict[str, Any]] = {}
    for one in kept_lines(KEPT):
        name = one["name"]
        is_better = name not in found or one["found"]["late_most_s"] <= found[name]["found"]["late_most_s"]
        if one["cell"] == wanted.get(name) and is_better:
            found[name] = one
    return found


def on_time() -> set[str]:
    """Cells that need not be measured again."""
    return {name for name, one in measured().items() if one["found"]["late_most_s"] <= MOST_LATE_S}


def prefer() -> None:
    """A world that wakes late is worth nothing: it comes before other programs, also where sessions share the processors."""
    with suppress(OSError):
        os.nice(-15)
        Path("/proc/self/autogroup").write_text("-15")


def work(given: argparse.Namespace) -> None:
    """Do what the command line asks for."""
    if given.add:
        name, folder = given.add
        add(name, Path(folder), json.loads((Path(folder) / "about.json").read_text()))
    elif not given.page:
        if (reason := ppp_guest.missing()) is not None:
            quit_for(f"no guest: {reason}", "as root: apt install qemu-system-x86 busybox-static ppp")
        if not given.built:
            build("farlink-net", "ppp")
        prefer()
        done = on_time()
        names = [name for name in cells() if name not in done and all(words in name for words in given.only)]
        with ThreadPoolExecutor(given.guests) as guests, ThreadPoolExecutor(given.side_by_side) as others:
            playing = [(guests if name.startswith("pppd") else others).submit(measure, name) for name in names]
        wrong = [str(one.exception()) for one in playing if one.exception() is not None]
        if wrong:
            raise RuntimeError("; ".join(wrong))
    write_page(measured(), cells())


def main() -> None:
    """Read the command line."""
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--only", action="append", default=[], metavar="WORDS", help="cells with these words in their names")
    asked.add_argument("--guests", type=int, default=2, help="how many at a time (%(default)s)")
    asked.add_argument("--side-by-side", type=int, default=13, help="cells of farlink at a time (%(default)s)")
    asked.add_argument("--built", action="store_true", help="the example `ppp` is there as it is to be measured")
    asked.add_argument("--add", nargs=2, metavar=("NAME", "FOLDER"), help="keep a cell that was played by hand")
    asked.add_argument("--page", action="store_true", help="measure nothing, and write the page from what is there")
    given = asked.parse_args()
    finish_or_quit(lambda: work(given))


if __name__ == "__main__":
    main()

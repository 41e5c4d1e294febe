"""Write `docs/validation/bundle-paths.md`: `farlink bundle carry` beside the kernel's MPTCP: `make bundle-paths`.

Half an hour, as root. Measured cells are appended to `out/bundle-paths.jsonl` with commit and date, and the same command goes
on where it stopped; `--again CELL` measures one once more, `--page` measures nothing.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from datetime import date
from itertools import pairwise
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import page
from bundle_paths_world import CONTROL, SHORE, World
from measuring import commit, finish_or_quit, keep_line, kept_lines, quit_for

from farlink.output import whole_file

KEPT = page.ROOT / "out" / "bundle-paths.jsonl"
BULK_S, FROM_S = 35.0, 5.0
SLOT_S, SLOTS = 15.0, 8
# Of the 15 s slots of Starlink: rates in Mb/s around the 50 that they have on average, and delays in ms around 14.
SLOT_MBPS, SLOT_MS = (50, 38, 62, 55, 45, 70, 30, 50), (14, 17, 12, 15, 18, 13, 16, 14)
LTE = {"rate_bps": 10e6, "delay_s": 0.02, "queue_bytes": 100_000}
MANY = "unplugged: streams of eight worlds"
IRIDIUM = {"rate_bps": 2400, "delay_s": 0.7, "queue_bytes": 4096}
STEADY = {"rate_bps": 50e6, "delay_s": 0.014, "queue_bytes": 250_000}
HANDOVERS = {"channel": {"kind": "outage", "period_s": 12, "offset_s": 7, "down_s": 0.15}}
TRACE = page.DATA / "cellular-mahimahi" / "ATT-LTE-driving-2016.up.gz"
BULK_CELLS = {
    "Starlink and LTE, Iridium standing by": ("slots", "lte", "iridium"),
    "the same, LTE with handovers": ("slots", "handovers", "iridium"),
    "the same, LTE as recorded while driving": ("slots", "recorded", "iridium"),
    "50 and 10 Mb/s, steady": ("steady", "lte"),
    "LTE loses 20 %": ("steady", "lossy"),
    "LTE has 3 s of queue": ("steady", "deep"),
}
UNPLUGS, UNPLUGGED_S, PLUGGED_S = 10, 3.0, 4.0
# 102,000 datagrams and 200 unpluggings, in worlds that run side by side.
WORLDS, UNPLUGS_OF_WORLD = 8, 25


def links(kinds: Sequence[str], folder: Path) -> dict[str, dict[str, Any]]:
    """Links of these kinds, by the names that paths have in the bundle."""
    folder.mkdir(parents=True, exist_ok=True)
    found: dict[str, dict[str, Any]] = {}
    for kind in kinds:
        if kind == "slots":
            rates, delays = folder / "rates.csv", folder / "delays.csv"
            _trace(rates, "rate_bps", [1e6 * one for one in SLOT_MBPS])
            _trace(delays, "delay_s", [1e-3 * one for one in SLOT_MS])
            link: dict[str, Any] = {"rate_bps": {"kind": "rate-trace", "file": str(rates)}, "queue_bytes": 250_000}
            link["delay_s"] = {"kind": "delay-trace", "file": str(delays)}
            link["channel"] = {"kind": "outage", "period_s": SLOT_S, "offset_s": SLOT_S, "down_s": 0.05}
        elif kind == "recorded":
            link = LTE | {"rate_bps": {"kind": "rate-trace", "file": str(TRACE)}, "return": {"rate_bps": 10e6}}
        else:
            more: dict[str, dict[str, Any]] = {
                "lte": {},
                "handovers": HANDOVERS | {"return": HANDOVERS},
                "lossy": {"channel": {"kind": "loss", "loss": 0.2}},
                "deep": {"queue_bytes": 3_750_000},
            }
            link = {"iridium": IRIDIUM, "steady": STEADY}.get(kind) or LTE | more[kind]
        found[{"slots": "starlink", "steady": "starlink", "iridium": "iridium"}.get(kind, "lte")] = dict(link)
    return found


def _trace(path: Path, name: str, values: Sequence[float]) -> None:
    rows = "".join(f"{at * SLOT_S:g},{value:g}\n" for at, value in enumerate(values))
    with whole_file(path) as temporary:
        temporary.write_text(f"time_s,{name}\n{rows}{len(values) * SLOT_S:g},{values[0]:g}\n")


def rate_bps(rows: Sequence[Sequence[float]]) -> float:
    """Bits per second of what arrived after the start."""
    return sum(count for at, count in rows if FROM_S <= at < BULK_S) * 8 / (BULK_S - FROM_S)


def longest_gap_s(rows: Sequence[Sequence[float]], after_s: float = 0.0) -> float:
    """The longest time without an arrival."""
    times = [row[0] for row in rows if row[0] >= after_s]
    return max((late - early for early, late in pairwise(times)), default=float("inf"))


def bulk(kinds: Sequence[str], way: str, folder: Path) -> dict[str, Any]:
    """TCP's goodput over one path, over all by the bundle, or over all by the kernel's MPTCP."""
    paths = links(kinds, folder)
    with World(paths, standby=["iridium"] if "iridium" in paths else []) as world:
        if way == "bundle":
            world.carry()
            before = world.metrics()
            found: dict[str, Any] = {"bps": rate_bps(world.sent("bulk", SHORE, BULK_S))}
            after = world.metrics()
            for name in paths:
                key = f'farlink_bundle_path_data_bytes_total{{path="{name}"}}'
                found[f"bytes_{name}"] = after[key] - before[key]
        else:
            if is_mptcp := way == "MPTCP":
                world.mptcp()
            to = world.of_shore(next(iter(paths)) if is_mptcp else way)
            found = {"bps": rate_bps(world.sent("bulk", to, BULK_S, *(["--mptcp"] if is_mptcp else [])))}
    return found | {"late_ms": world.late_ms}


def unplugged(kind: str, folder: Path, times: int = UNPLUGS) -> dict[str, Any]:
    """A stream that has copies, or bulk, while Starlink and LTE are unplugged in turn."""
    lasts_s = 5 + times * (UNPLUGGED_S + PLUGGED_S + 3)
    paths = links(("steady", "lte"), folder)
    ups: list[float] = []
    with World(paths, redundant=True) as world:
        world.carry()

        def trouble() -> None:
            time.sleep(3)
            for at in range(times):
                name = list(paths)[at % 2]
                world.unplug(name)
                time.sleep(UNPLUGGED_S)
                told = world.said("ship").count(f"up: {name}")
                world.plug(name)
                began = time.monotonic()
                world.until(lambda name=name, told=told: world.said("ship").count(f"up: {name}") > told)
                ups.append(time.monotonic() - began)
                time.sleep(PLUGGED_S)

        rows = world.sent(kind, SHORE, lasts_s, during=trouble)
        found: dict[str, Any] = {"ups_s": ups, "gap_s": longest_gap_s(rows, 2.0)}
        if kind == "stream":
            wanted = int(50 * lasts_s)
            found |= {"sent": wanted, "lost": wanted - len(rows)}
    return found | {"late_ms": world.late_ms}


def many(folder: Path) -> dict[str, Any]:
    """The stream in worlds side by side: all losses, the longest gap, and each time until a path was up again."""
    with ProcessPoolExecutor(WORLDS, mp_context=get_context("spawn")) as worlds:
        playing = [worlds.submit(unplugged, "stream", folder / f"world-{at}", UNPLUGS_OF_WORLD) for at in range(WORLDS)]
        found = [one.result() for one in playing]
    total = {key: sum(one[key] for one in found) for key in ("sent", "lost")}
    most = {key: max(one[key] for one in found) for key in ("gap_s", "late_ms")}
    return total | most | {"ups_s": [took for one in found for took in one["ups_s"]], "gaps_s": [one["gap_s"] for one in found]}


def cells(folder: Path) -> dict[str, Callable[[], dict[str, Any]]]:
    """What is measured, by name."""
    found: dict[str, Callable[[], dict[str, Any]]] = {}
    for name, kinds in BULK_CELLS.items():
        alone = [one for one in links(kinds, folder) if one != "iridium"]
        for way in (*alone, "bundle", "MPTCP"):
            found[f"{name}: {way}"] = lambda kinds=kinds, way=way: bulk(kinds, way, folder)
    for kind in ("stream", "bulk"):
        found[f"unplugged: {kind}"] = lambda kind=kind: unplugged(kind, folder)
    return found


def measure(given: argparse.Namespace) -> None:
    """Do what the command line asks for."""
    if not given.page:
        if os.geteuid() != 0:
            quit_for("network namespaces need root", "run it as root")
        done = {one["cell"] for one in measured()} - set(given.again)
        if MANY not in done and (not given.only or any(words in MANY for words in given.only)):
            keep(MANY, os.getloadavg()[0], many(KEPT.parent / "bundle-paths"))
        for name, play in cells(KEPT.parent / "bundle-paths").items():
            if name in done or not (not given.only or any(one in name for one in given.only)):
                continue
            began = os.getloadavg()[0]
            keep(name, began, play())
    write({one["cell"]: one for one in measured()})


def measured() -> list[dict[str, Any]]:
    """What is kept, as far as its TCP was what is measured now: at first that was the machine's default, which was BBR."""
    return [one for one in kept_lines(KEPT) if one.get("control") == CONTROL]


def keep(name: str, load_before: float, found: Mapping[str, Any]) -> None:
    """Keep what a cell has found."""
    load = max(load_before, os.getloadavg()[0])
    about = {"control": CONTROL, "load": load, "commit": commit(), "date": f"{date.today()}"}
    keep_line(KEPT, {"cell": name, **found, **about})
    print(f"{name}: {found}", flush=True)


def write(found: Mapping[str, Mapping[str, Any]]) -> None:
    """Write the tables of the page."""
    if not found:
        raise RuntimeError("nothing was measured yet")
    rows = []
    for name, kinds in BULK_CELLS.items():
        alone = {"starlink": None, "lte": None} if len(kinds) > 1 else {}
        rates = {way: found.get(f"{name}: {way}", {}).get("bps") for way in (*alone, "bundle", "MPTCP")}
        both = [rates[way] for way in alone]
        whole = sum(both) if all(both) else None
        best = max(both) if all(both) else None
        shares = [_ratio(rates[way], of) for way in ("bundle", "MPTCP") for of in (whole, best)]
        rows.append([name, *(_mbps(rates[way]) for way in (*alone, "bundle")), *shares[:2], _mbps(rates["MPTCP"]), *shares[2:]])
    head = ["paths", "Starlink alone", "LTE alone", "bundle", "of the sum", "of the best", "MPTCP", "of the sum", "of the best"]
    unplug = []
    for kind in ("stream", "streams of eight worlds", "bulk"):
        cell = found.get(f"unplugged: {kind}")
        if cell is None:
            unplug.append([kind, *"-----"])
            continue
        ups = cell["ups_s"]
        lost = f"{cell['lost']} of {cell['sent']}" if "lost" in cell else "-"
        spread = (f"{statistics.median(ups):.2f}", f"{max(ups):.2f}")
        unplug.append([kind, f"{len(ups)}", lost, f"{1e3 * cell['gap_s']:.0f}", *spread])
    unplug_head = ["traffic", "unplugged", "lost", "longest gap, ms", "up again after, s: median", "most"]
    all_cells = [*cells(KEPT.parent / "bundle-paths"), MANY]
    iridium = [int(one["bytes_iridium"]) for one in found.values() if "bytes_iridium" in one]
    page.write(
        "bundle-paths.md",
        {},
        bulk=page.table(head, rows, "lr"),
        unplugged=page.table(unplug_head, unplug, "lr"),
        iridium=max(iridium, default=0),
        cells=sum(name in found for name in all_cells),
        all_cells=len(all_cells),
        load_least=min(one["load"] for one in found.values()),
        load_most=max(one["load"] for one in found.values()),
        late=max(one["late_ms"] for one in found.values()),
        commits=", ".join(sorted({one["commit"] for one in found.values()})),
        dates=", ".join(sorted({one["date"] for one in found.values()})),
        only=True,
    )


def _mbps(bps: float | None) -> str:
    return "-" if bps is None else f"{bps / 1e6:.2f}"


def _ratio(bps: float | None, of: float | None) -> str:
    return "-" if bps is None or of is None else f"{bps / of:.2f}"


def main() -> None:
    """Measure, and write the page."""
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--page", action="store_true", help="measure nothing, and write the page from what is there")
    asked.add_argument("--again", action="append", default=[], metavar="CELL", help="measure this cell once more")
    asked.add_argument("--only", action="append", default=[], metavar="WORDS", help="only cells whose name has these words")
    given = asked.parse_args()
    finish_or_quit(lambda: measure(given))


if __name__ == "__main__":
    main()

"""Write the comparison with the packet engine in `docs/validation/wire.md`, a part of `make wire`. Half an hour, as root.

One scenario, a file over a link that loses packets, is run in the packet engine, and by `farlink send` and `farlink receive`
over the example `relay`, with ten seeds each. Finished runs are kept in `out/wire-engine.jsonl` with commit and date, so that
the same command goes on where it stopped; those of other programs are made anew. `--page` measures nothing and writes the page
only.
"""

from __future__ import annotations

import argparse
import hashlib
import math
import os
import statistics
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from datetime import date
from itertools import pairwise
from pathlib import Path
from typing import Any

import page
from kernel_paths import FAR, KernelPath, Samples
from measuring import PROGRAMS, commit, finish_or_quit, keep_line, kept_lines, prepare
from wire import (
    CLI,
    HEADER_BYTES,
    PACKET_BYTES,
    PORT,
    QUEUE_PACKETS,
    RATE_BPS,
    ROUND_TRIP_S,
    WATCH,
    make_keys,
    place,
    sha256_of,
    wait,
)

import farlink
from farlink import _core
from farlink.student import t_quantile

KEPT = page.ROOT / "out" / "wire-engine.jsonl"
# About a minute at the rate of the relay.
FILE_BYTES = 70_000_000
LOSSES = (0.01, 0.05)
SEEDS = range(1, 11)
# Runs without a loss, in which nothing is sent again: what they send beyond the file is what `farlink send` says about it.
PLAIN_SEEDS = range(1, 4)
# Wanted differences: of goodput, and of what is sent again.
GOODPUT_SHARE, AGAIN_SHARE = 0.05, 0.1
# A packet's checksum, which the engine adds to its headers; on the wire the tag is in its place.
CHECKSUM_BYTES = 4


@dataclass(frozen=True)
class Run:
    """What one transfer took."""

    goodput_bps: float
    # Content of packets that the sender sent; of the engine, content that was sent again.
    content_bytes: int
    sent: int
    lost: int
    dropped: int
    is_equal: bool = True
    late_share: float = 0.0
    load: float = 0.0
    commit: str = ""
    date: str = ""


def scenario(loss: float) -> dict[str, Any]:
    """The path of the relay, and a transport with the settings of `farlink send`."""
    return {
        "runs": len(SEEDS),
        "seed": 1,
        "link": {
            "rate_bps": RATE_BPS,
            "delay_s": ROUND_TRIP_S / 2,
            "queue_packets": QUEUE_PACKETS,
            "channel": {"kind": "loss", "loss": loss} if loss > 0 else {"kind": "none"},
            "return": {"rate_bps": 1e9, "channel": {"kind": "none"}},
        },
        "transport": {
            "aero": {
                "kind": "aerotp",
                "rate_bps": RATE_BPS,
                "rate_control": "fixed",
                "packet_bytes": PACKET_BYTES,
                "header_bytes": HEADER_BYTES - CHECKSUM_BYTES,
                "mack_timeout_s": 0.01,
                "receive_buffer_bytes": 16 << 20,
                "give_up_after_s": 60,
            }
        },
        "flow": {"file": {"transport": "aero", "traffic": {"kind": "file", "bytes": FILE_BYTES}}},
    }


def in_engine(loss: float) -> list[Run]:
    """The scenario in the packet engine, a run for each seed."""
    rows = farlink.run(scenario(loss)).rows
    names = ("flow", "goodput_bps", "retransmitted_bytes", "sent_bytes", "loss_fraction")
    runs = []
    for flow, goodput_bps, again_bytes, sent_bytes, lost in zip(*(rows[name] for name in names), strict=True):
        if flow == "file":
            sent = round(sent_bytes / PACKET_BYTES)
            runs.append(Run(goodput_bps, round(again_bytes), sent, round(sent * lost), 0))
    return runs


def over_wire(loss: float, seed: int, programs: Path) -> Run:
    """The same over the relay."""
    with KernelPath(place("plain", loss), programs, seed=seed) as path:
        make_keys(path.folder)
        content = path.folder / "content"
        content.write_bytes(os.urandom(FILE_BYTES))
        (path.folder / "in").mkdir()
        size = ("--packet-bytes", f"{PACKET_BYTES}")
        path.start(path.far, *CLI, "receive", "in", "--listen", FAR, *size, "--once", "--keys", "shore", name="receiver")
        watched = path.start(path.far, sys.executable, WATCH, "out", path.folder / "in", name="watch")
        wait(path, 2)
        sending = (*CLI, "send", "content", FAR, "--rate", f"{RATE_BPS:g}", *size, "--keys", "ship")
        path.start(path.near, *sending, name="sender")
        began_s = time.time()
        while path.is_running("sender"):
            wait(path, 0.2)
            if time.time() > began_s + 300:
                raise RuntimeError(f"{FILE_BYTES} bytes have not arrived after 300 s")
        wait(path, 1)
        load = os.getloadavg()[0]
        there = path.folder / "in" / "content"
        is_equal = there.exists() and sha256_of(there) == sha256_of(content)
        path.stop()
        arrived = Samples(watched).lines
        grown = [now for before, now in pairwise(arrived) if now["content_bytes"] > before["content_bytes"]]
        packets = [now["unix_s"] for before, now in pairwise(arrived) if now["came_bytes"] >= before["came_bytes"] + 1000]
        last = Samples(path.relay).lines[-1]
        flows = [counts for name, counts in last["there"].items() if name.split()[-1] == f"{PORT}"]
        total = {name: sum(flow[name] for flow in flows) for name in ("came", "came_bytes", "lost", "dropped")}
    return Run(
        # The engine's time begins when the first packet is sent.
        FILE_BYTES * 8 / (grown[-1]["unix_s"] - packets[0] + ROUND_TRIP_S / 2),
        total["came_bytes"] - HEADER_BYTES * total["came"],
        total["came"],
        total["lost"],
        total["dropped"],
        is_equal,
        last["late"]["beyond_1_ms"] / max(last["late"]["packets"], 1),
        load,
        commit(),
        date.today().isoformat(),
    )


@dataclass(frozen=True)
class Mean:
    """A mean, with half of its 95 % interval."""

    value: float
    half: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Mean:
        """The mean of independent runs."""
        half = t_quantile(len(values) - 1, 0.95) * statistics.stdev(values) / math.sqrt(len(values))
        return cls(statistics.fmean(values), half)

    def over(self, other: Mean) -> Mean:
        """A ratio, to first order in both errors."""
        ratio = self.value / other.value
        return Mean(ratio, ratio * math.hypot(self.half / self.value, other.half / other.value))

    def shown(self, digits: int, unit: float = 1.0) -> str:
        """Mean and interval in a unit."""
        return f"{self.value / unit:,.{digits}f} ± {self.half / unit:,.{digits}f}"


class Runs:
    """Measured transfers, kept in a file."""

    def __init__(self, programs: Path) -> None:
        """Read those of these programs."""
        self.programs = programs
        parts = [Path(_core.__file__), *([programs / "relay"] if (programs / "relay").exists() else [])]
        self.identity = hashlib.sha256(b"".join(part.read_bytes() for part in parts)).hexdigest()[:24]
        self.found: dict[tuple[float, int], Run] = {}
        for kept in kept_lines(KEPT):
            if kept["identity"] == self.identity:
                self.found[kept["loss"], kept["seed"]] = Run(**kept["run"])

    def of(self, loss: float) -> list[Run]:
        """Runs with a loss."""
        return [run for (one, _), run in self.found.items() if one == loss]

    def measure(self, jobs: int) -> None:
        """Measure those that are missing, some at a time."""
        wanted = [*((0.0, seed) for seed in PLAIN_SEEDS), *((loss, seed) for seed in SEEDS for loss in LOSSES)]
        missing = [one for one in wanted if one not in self.found]

        def one(which: tuple[float, int]) -> None:
            run = over_wire(*which, self.programs)
            self.found[which] = run
            keep_line(KEPT, {"identity": self.identity, "loss": which[0], "seed": which[1], "run": asdict(run)})
            print(f"loss {which[0]:g}, seed {which[1]}: {run.goodput_bps / 1e6:.3f} Mb/s", flush=True)

        with ThreadPoolExecutor(jobs) as pool:
            list(pool.map(one, missing))


def table(runs: Runs) -> str:
    """Goodput and what was sent again, in the engine and on the wire."""
    plain_bytes = statistics.fmean(run.content_bytes for run in runs.of(0.0))
    rows = []
    for loss in LOSSES:
        wire, engine = runs.of(loss), in_engine(loss)
        # For each packet that was lost or dropped: how many are is random.
        again = [[float(run.content_bytes) for run in engine], [run.content_bytes - plain_bytes for run in wire]]
        lost = [[run.lost + run.dropped for run in of] for of in (engine, wire)]
        per_lost = [[a / n for a, n in zip(*pair, strict=True)] for pair in zip(again, lost, strict=True)]
        goodput = [[run.goodput_bps for run in of] for of in (engine, wire)]
        quantities: list[tuple[str, list[list[float]], int, float, float | None]] = [
            ("goodput, Mb/s", goodput, 3, 1e6, GOODPUT_SHARE),
            ("sent again, kB", again, 1, 1e3, AGAIN_SHARE),
            ("sent again for each lost packet, bytes", per_lost, 0, 1.0, None),
        ]
        for name, of_both, digits, unit, wanted in quantities:
            means = [Mean.of(values) for values in of_both]
            ratio = means[1].over(means[0])
            row = [f"{loss:g}", name, *(mean.shown(digits, unit) for mean in means), ratio.shown(3)]
            is_met = wanted is not None and abs(ratio.value - 1) <= wanted
            rows.append([*row, *(("", "") if wanted is None else (f"within {wanted:.0%}", "yes" if is_met else "**no**"))])
    return page.table(["loss", "quantity", "engine", "wire", "wire / engine", "wanted", "met"], rows, "rlrrrr")


def write_page(runs: Runs) -> None:
    """Write what was measured, if all was."""
    if len(runs.of(0.0)) < len(PLAIN_SEEDS) or any(len(runs.of(loss)) < len(SEEDS) for loss in LOSSES):
        raise RuntimeError("not all of the comparison was measured yet")
    found = list(runs.found.values())
    page.write(
        "wire.md",
        {},
        only=True,
        engine=table(runs),
        engine_runs=len(SEEDS),
        engine_file=FILE_BYTES / 1e6,
        engine_said=statistics.fmean(run.content_bytes for run in runs.of(0.0)) - FILE_BYTES,
        engine_equal=f"{sum(run.is_equal for run in found)} of {len(found)}",
        engine_commits=", ".join(sorted({run.commit for run in found})),
        engine_late=max(run.late_share for run in found),
        engine_load_least=min(run.load for run in found),
        engine_load_most=max(run.load for run in found),
    )


def measure(arguments: argparse.Namespace) -> None:
    """Do what the command line asks for."""
    programs = (arguments.programs or PROGRAMS).resolve()
    if not arguments.page:
        prepare(arguments.programs, ("farlink-core", "relay"))
    runs = Runs(programs)
    if not arguments.page:
        runs.measure(arguments.jobs)
    write_page(runs)


def main() -> None:
    """Measure what is missing, and write the part of the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", type=Path, help="the folder of the relay, instead of building it")
    parser.add_argument("--jobs", type=int, default=1, help="how many transfers at a time (%(default)s)")
    parser.add_argument("--page", action="store_true", help="measure nothing, and write the page from what is there")
    arguments = parser.parse_args()
    finish_or_quit(lambda: measure(arguments))


if __name__ == "__main__":
    main()

"""Write `docs/validation/aerotp-kernel.md`, AeroTP beside the kernel's TCP: `make kernel-neighbours`. Half an hour, as root.

Every run is real: the example `aerotp_udp` and sockets of TCP between network namespaces, over the kernel's tbf or the example
`relay`. Finished runs are kept in `out/aerotp-kernel.jsonl` with commit and date, so that the same command goes on where it
stopped; those of other programs are made anew. `--short` measures ten seconds of one cell, prints them and leaves the page.
"""

from __future__ import annotations

import argparse
import datetime
import hashlib
import json
import os
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import page
from kernel_paths import FAR, KernelPath, Place, Samples
from measuring import PROGRAMS, commit, finish_or_quit, keep_line, kept_lines, prepare

if TYPE_CHECKING:
    from matplotlib.figure import Figure

KEPT = page.ROOT / "out" / "aerotp-kernel.jsonl"
FLOW = Path(__file__).parent / "kernel_flow.py"
# Headers of TCP with timestamps, and of AeroTP over UDP with its check.
OVERHEAD_BYTES, PACKET_BYTES = 52, 1500
AEROTP_PORT, TCP_PORT = 4000, 5000
# May be under way; as much as the kernel gives a socket of TCP.
BUFFER_BYTES = 4_000_000
AEROTP = ("alone", "friendly", "learnt")
BDP_PACKETS = 42

# A run is disturbed if more than this share of its packets left the relay more than a millisecond late; so often it is tried.
LATE_SHARE, ATTEMPTS = 0.01, 3


@dataclass(frozen=True)
class Cell:
    """AeroTP under a rate control, and its neighbours, over a bottleneck; with ``file_bytes`` a file instead of a span."""

    place: Place
    control: str
    neighbours: tuple[str, ...] = ()
    file_bytes: int | None = None

    @property
    def runs(self) -> list[Run]:
        """What has to be measured: also what a neighbour has with AeroTP replaced by a copy of it, and by CUBIC."""
        firsts = [self.control]
        if self.neighbours:
            firsts += [self.neighbours[0], "cubic"]
        return [Run(self.place, (first, *self.neighbours), self.file_bytes) for first in dict.fromkeys(firsts)]

    @property
    def share_bps(self) -> float:
        """An equal share of the bottleneck."""
        return usable_bps(self.place) / (1 + len(self.neighbours))

    def __str__(self) -> str:
        beside = f" beside {len(self.neighbours)} {self.neighbours[0]}" if self.neighbours else ""
        return f"{self.place}: {self.control}{beside}"


@dataclass(frozen=True)
class Run:
    """Flows over a bottleneck, in the order in which they start."""

    place: Place
    flows: tuple[str, ...]
    file_bytes: int | None = None

    @property
    def span_s(self) -> tuple[float, float]:
        """From when to when it is measured."""
        return (20.0, 60.0) if self.place.round_trip_s < 0.2 else (60.0, 120.0)

    def key(self, programs: str, seed: int) -> str:
        """Names it among those that are kept."""
        words = json.dumps([programs, asdict(self.place), self.flows, self.file_bytes, seed])
        return hashlib.sha256(words.encode()).hexdigest()[:24]

    def __str__(self) -> str:
        return f"{self.place}: {' beside '.join(self.flows)}"


@dataclass(frozen=True)
class Flow:
    """What a flow has: goodput in bit/s, the packets that it sent, and the share of them that the bottleneck dropped."""

    goodput_bps: float
    sent: int
    dropped: float | None


@dataclass(frozen=True)
class Measured:
    """A run, and what disturbed it."""

    flows: list[Flow]
    late_share: float
    late_worst_s: float
    load: float
    attempts: int
    commit: str
    date: str


@dataclass(frozen=True)
class Wish:
    """A wanted figure of a cell, with what was measured."""

    cell: Cell
    wish: str
    value: float
    limit: float
    is_most: bool = False

    @property
    def is_met(self) -> bool:
        """Whether it is."""
        return self.value <= self.limit if self.is_most else self.value >= self.limit


def usable_bps(place: Place) -> float:
    """Goodput of all data that a bottleneck can carry."""
    return place.rate_bps * (1 - OVERHEAD_BYTES / PACKET_BYTES) * (1 - place.loss)


def tbf(packets: int, *, round_trip_s: float = 0.05) -> Place:
    """The kernel's tbf."""
    return Place("tbf", packets, tbf_bytes=packets * PACKET_BYTES, round_trip_s=round_trip_s)


def relay(
    name: str = "relay", packets: int | None = BDP_PACKETS, options: str = "", *, loss: float = 0.0, ecn: bool = False
) -> Place:
    """A bottleneck of the relay's own."""
    return Place(name, packets, relay=tuple(options.split()), loss=loss, ecn=ecn)


def cells() -> list[Cell]:
    """The cells."""
    policers = {packets: relay(f"policer of {packets}", None, f"--police {packets}") for packets in (5, 20)}
    bdp = tbf(BDP_PACKETS)
    marks = relay("relay, marks from 5", BDP_PACKETS, "--mark 5", ecn=True)
    return [
        Cell(tbf(4, round_trip_s=0.5), "learnt", file_bytes=3434 * (PACKET_BYTES - OVERHEAD_BYTES)),
        Cell(tbf(4, round_trip_s=0.5), "alone"),
        Cell(tbf(4, round_trip_s=0.5), "learnt"),
        Cell(tbf(10), "alone"),
        Cell(tbf(10), "friendly"),
        Cell(bdp, "friendly"),
        Cell(tbf(10), "friendly", ("cubic",)),
        Cell(tbf(10), "friendly", ("cubic",) * 4),
        Cell(tbf(2), "friendly", ("cubic",)),
        Cell(bdp, "friendly", ("reno",)),
        Cell(bdp, "friendly", ("bbr",)),
        Cell(bdp, "learnt", ("cubic",)),
        Cell(policers[5], "alone"),
        Cell(policers[5], "friendly"),
        Cell(policers[20], "friendly"),
        Cell(policers[20], "friendly", ("cubic",)),
        Cell(marks, "friendly", ("cubic",)),
        Cell(relay("relay, 10 ms of jitter", BDP_PACKETS, "--jitter 0.01"), "friendly"),
        Cell(relay("relay, 10 ms of jitter that reorders", BDP_PACKETS, "--jitter 0.01 --overtake"), "friendly"),
        Cell(relay("relay, loses 0.2 on the way back", 10, "--back-loss 0.2"), "friendly"),
        Cell(relay("relay, loses 0.2 on the way back", 10, "--back-loss 0.2"), "friendly", ("reno",)),
        Cell(relay(packets=10, loss=0.02), "friendly", ("cubic",)),
        Cell(relay(loss=0.02), "friendly", ("reno",)),
        Cell(relay("relay, bursts of 4", 10, "--burst 4", loss=0.02), "friendly"),
        Cell(relay(packets=10, loss=0.1), "alone"),
        Cell(relay(packets=10, loss=0.1), "friendly"),
    ]


SHORT = Cell(relay("policer of 20", None, "--police 20"), "friendly")


class Runs:
    """Measured runs, kept in a file."""

    def __init__(self, programs: Path) -> None:
        """Read those of these programs."""
        self.programs = programs
        contents = b"".join((programs / name).read_bytes() for name in ("aerotp_udp", "relay"))
        self.identity = hashlib.sha256(contents).hexdigest()
        self.commit = commit()
        self.found: dict[str, Measured] = {}
        self.stopped = threading.Event()
        for kept in kept_lines(KEPT):
            flows = [Flow(**flow) for flow in kept["measured"].pop("flows")]
            self.found[kept["key"]] = Measured(flows, **kept["measured"])

    def of(self, run: Run, seeds: Sequence[int]) -> list[Measured]:
        """What was measured of a run."""
        return [self.found[run.key(self.identity, seed)] for seed in seeds]

    def measure(self, wanted: Sequence[tuple[Run, int]], parallel: int) -> None:
        """Measure the runs that are missing; an interrupt ends those under way and removes their namespaces."""
        missing = {run.key(self.identity, seed): (run, seed) for run, seed in wanted}
        missing = {key: one for key, one in missing.items() if key not in self.found}
        with ThreadPoolExecutor(parallel) as pool:
            futures = {pool.submit(self._undisturbed, run, seed): (key, run, seed) for key, (run, seed) in missing.items()}
            try:
                for done, future in enumerate(as_completed(futures), 1):
                    key, run, seed = futures[future]
                    measured = self.found[key] = future.result()
                    keep_line(KEPT, {"key": key, "run": f"{run}, seed {seed}", "measured": asdict(measured)})
                    goodput = ", ".join(f"{flow.goodput_bps / 1e6:.2f}" for flow in measured.flows)
                    print(f"{done} of {len(missing)}: {run}, seed {seed}: {goodput} Mb/s", flush=True)
            except BaseException:
                self.stopped.set()
                pool.shutdown(wait=True, cancel_futures=True)
                raise

    def _undisturbed(self, run: Run, seed: int) -> Measured:
        """The first attempt that was not disturbed, or the least disturbed one."""
        attempts: list[Measured] = []
        while len(attempts) < ATTEMPTS:
            attempts.append(self.once(run, seed, len(attempts) + 1))
            if attempts[-1].late_share <= LATE_SHARE:
                break
        return min(attempts, key=lambda attempt: attempt.late_share)

    def once(self, run: Run, seed: int, attempt: int = 1, span_s: tuple[float, float] | None = None) -> Measured:
        """Measure a run."""
        from_s, to_s = span_s or run.span_s
        with KernelPath(run.place, self.programs, seed) as path:
            began_s = time.time()
            ports = [AEROTP_PORT if flow in AEROTP else TCP_PORT + n for n, flow in enumerate(run.flows)]
            arrived, sent = [], []
            for n, (flow, port) in enumerate(zip(run.flows, ports, strict=True)):
                receiver, sender = self._ends(path, run, flow, port)
                arrived.append(path.start(path.far, *receiver, name=f"receiver{n}"))
                self._wait(path, 0.5)
                sent.append(path.start(path.near, *sender, name=f"sender{n}"))
            if run.file_bytes is None:
                self._wait(path, began_s + to_s + 1 - time.time())
            else:
                while path.is_running("sender0"):
                    self._wait(path, 0.2)
                to_s, from_s = time.time() - began_s, 0.0
            load, blocked = os.getloadavg()[0], path.dropped_before_relay()
            path.stop()
            span = (began_s + from_s, began_s + to_s)
            relayed = Samples(path.relay)
            flows = []
            for port, into, out in zip(ports, arrived, sent, strict=True):
                goodput_bps = Samples(into).between(*span, "moved_bytes") * 8 / (to_s - from_s)
                came = relayed_count(relayed, port, span, "came")
                if run.place.tbf_bytes is None:
                    flows.append(Flow(goodput_bps, round(came), relayed_count(relayed, port, span, "dropped") / max(came, 1)))
                elif port == AEROTP_PORT:
                    left = Samples(out).between(*span, "sent")
                    flows.append(Flow(goodput_bps, round(left), max(0.0, 1 - came / max(left, 1))))
                else:  # nobody tells how much TCP has sent into the tbf
                    flows.append(Flow(goodput_bps, round(came), None))
            late = relayed.lines[-1]["late"]
            packets = max(late["packets"], 1)
            # What the kernel dropped before the relay read it disturbs as well.
            late_share = (
                late["beyond_1_ms"] + 100 * (late["refused"] + (blocked if run.place.tbf_bytes is None else 0))
            ) / packets
        today = datetime.date.today().isoformat()
        return Measured(flows, late_share, late["worst_s"], load, attempt, self.commit, today)

    def _ends(self, path: KernelPath, run: Run, flow: str, port: int) -> tuple[list[str | Path], list[str | Path]]:
        """The commands of receiver and sender."""
        if flow not in AEROTP:
            ends = [[sys.executable, FLOW, end, FAR, f"{port}", "--control", flow] for end in ("receive", "send")]
            return ends[0], ends[1]
        options = ["--control", flow, "--buffer", f"{BUFFER_BYTES}", "--report", "0.5", "--wait", "30"]
        options += ["--ecn"] if run.place.ecn else []
        (path.folder / "file").touch()
        os.truncate(path.folder / "file", run.file_bytes or 4 << 30)  # a hole
        program = self.programs / "aerotp_udp"
        return [program, "receive", f"{FAR}:{port}", "copy", *options], [program, "send", "file", f"{FAR}:{port}", *options]

    def _wait(self, path: KernelPath, seconds: float) -> None:
        """Let the programs run."""
        until_s = time.time() + seconds
        while (left_s := until_s - time.time()) > 0:
            if self.stopped.wait(min(left_s, 1.0)):
                raise RuntimeError("interrupted")
            if fault := path.fault():
                raise RuntimeError(fault)


def relayed_count(relayed: Samples, port: int, span: tuple[float, float], count: str) -> float:
    """By how much a count of the relay has grown, of the flow to a port."""
    flows = {flow for line in relayed.lines for flow in line["there"] if flow.split()[-1] == f"{port}"}
    return sum(relayed.between(*span, "there", flow, count) for flow in flows)


def wishes(runs: Runs, seeds: Sequence[int]) -> Iterator[Wish]:
    """Each wanted figure of each cell; of the runs of a cell, the worst counts alone, and the mean beside others."""
    for cell in cells():
        measured = [one.flows for one in runs.of(cell.runs[0], seeds)]
        if cell.file_bytes is not None:
            sent = max(flows[0].sent for flows in measured)
            needed = cell.file_bytes / (PACKET_BYTES - OVERHEAD_BYTES)
            yield Wish(cell, "datagrams per one that is needed", sent / needed, 2.0, is_most=True)
        elif not cell.neighbours:
            yield from _alone(cell, [flows[0] for flows in measured])
        else:
            yield from _beside(cell, measured, runs, seeds)


def _alone(cell: Cell, flows: list[Flow]) -> Iterator[Wish]:
    place = cell.place
    is_long = place.round_trip_s >= 0.5
    if cell.control == "alone":
        least, most = 0.90, 0.05
    elif cell.control == "learnt":
        least, most = 0.80 if is_long else 0.85, 0.03
    elif place.loss >= 0.02:
        least, most = 0.85, 0.03
    else:
        is_roomy = place.queue_packets is not None and place.queue_packets >= 10 and not is_long
        least, most = 0.95 if is_roomy else 0.80, 0.03
    yield Wish(cell, "goodput / C(1-p)", min(flow.goodput_bps for flow in flows) / usable_bps(place), least)
    yield Wish(cell, "dropped", max(flow.dropped or 0.0 for flow in flows), most, is_most=True)


def _beside(cell: Cell, measured: list[list[Flow]], runs: Runs, seeds: Sequence[int]) -> Iterator[Wish]:
    instead = {run.flows[0]: [one.flows for one in runs.of(run, seeds)] for run in cell.runs[1:]}
    usual_bps = min(_mean(_others_bps(flows) for flows in of_first) for of_first in instead.values())
    kept = _mean(_others_bps(flows) for flows in measured) / usual_bps
    own_bps = _mean(flows[0].goodput_bps for flows in measured)
    if cell.place.loss >= 0.02:
        total_bps = _mean(sum(flow.goodput_bps for flow in flows) for flows in measured)
        yield Wish(cell, "a neighbour / N(x)", kept, 0.7)
        yield Wish(cell, "together / C(1-p)", total_bps / usable_bps(cell.place), 0.8)
        return
    least = 0.2 if cell.control == "learnt" else 0.35 if cell.place.queue_packets == 2 else 0.6
    yield Wish(cell, "a neighbour / N(x)", kept, least)
    cubic_bps = _mean(flows[0].goodput_bps for flows in instead["cubic"])
    if cell.neighbours[0] == "bbr":  # BBRv1 leaves no other flow its share
        yield Wish(cell, "own / CUBIC's in its place", own_bps / cubic_bps, 1.0)
        return
    share = own_bps / cell.share_bps
    yield Wish(cell, "own / equal share, at least", share, 0.5)
    if cell.control == "friendly":
        yield Wish(cell, "own / equal share, at most", share, max(2.0, 2 * cubic_bps / cell.share_bps), is_most=True)


def _mean(values: Iterator[float]) -> float:
    numbers = list(values)
    return sum(numbers) / len(numbers)


def _others_bps(flows: list[Flow]) -> float:
    return _mean(flow.goodput_bps for flow in flows[1:])


def wish_table(found: list[Wish]) -> str:
    """A row for each wanted figure."""
    rows = []
    for number, cell in enumerate(cells(), 1):
        for index, wish in enumerate(wish for wish in found if wish.cell == cell):
            wanted = f"{'at most' if wish.is_most else 'at least'} {wish.limit:.3g}"
            names = [f"{number}", str(cell)] if index == 0 else ["", ""]
            rows.append([*names, wish.wish, wanted, f"{wish.value:.3f}", "yes" if wish.is_met else "**no**"])
    return page.table(["cell", "", "figure", "wanted", "measured", "met"], rows, "lllrrl")


def run_table(runs: Runs, seeds: Sequence[int]) -> str:
    """A row for each run."""
    rows = []
    for run in dict.fromkeys(run for cell in cells() for run in cell.runs):
        for seed, measured in zip(seeds, runs.of(run, seeds), strict=True):
            first = measured.flows[0]
            others = ", ".join(f"{flow.goodput_bps / 1e6:.2f}" for flow in measured.flows[1:])
            dropped = "" if first.dropped is None else f"{first.dropped:.4f}"
            late = [f"{measured.late_share:.4f}", f"{measured.late_worst_s * 1e3:.1f}"]
            row = [f"{run.place}", " beside ".join(_counted(run.flows)), f"{seed}", f"{first.goodput_bps / 1e6:.2f}", others]
            rows.append([*row, dropped, *late, f"{measured.load:.0f}"])
    head = ["path", "flows", "seed", "first, Mb/s", "others, Mb/s", "dropped of the first", "late", "worst, ms", "load"]
    return page.table(head, rows, "llrrlrrrr")


def _counted(flows: tuple[str, ...]) -> list[str]:
    others = flows[1:]
    return [flows[0], *([f"{len(others)} {others[0]}"] if others else [])]


def picture(found: list[Wish]) -> Figure:
    """Each wanted figure over its limit."""
    from farlink.plot.style import new_figure

    figure, (axes,) = new_figure()
    numbers = {cell: number for number, cell in enumerate(cells(), 1)}
    kinds = {
        "AeroTP's goodput alone": "goodput / C(1-p)",
        "a neighbour's goodput over its usual one": "a neighbour / N(x)",
        "AeroTP's goodput over an equal share": "own / equal share, at least",
    }
    for index, (label, name) in enumerate(kinds.items()):
        of_name = [wish for wish in found if wish.wish == name]
        x = [numbers[wish.cell] for wish in of_name]
        axes.plot(x, [wish.value for wish in of_name], "o", color=f"C{index}", label=label)
        axes.plot(x, [wish.limit for wish in of_name], "_", color=f"C{index}", markersize=12)
    axes.set_xticks(range(1, len(numbers) + 1))
    axes.set(title="Measured (dots), and at least wanted (bars)", xlabel="cell", ylim=(0, None))
    axes.legend(fontsize="small")
    return figure


def main() -> None:
    """Measure what is missing, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", type=Path, help="the folder of aerotp_udp and relay, instead of building them")
    parser.add_argument("--runs", type=int, choices=range(1, 6), default=2, help="of each cell (%(default)s)")
    parser.add_argument("--parallel", type=int, choices=range(1, 17), default=4, help="runs at the same time (%(default)s)")
    parser.add_argument("--short", action="store_true", help="ten seconds of one cell, as JSON")
    arguments = parser.parse_args()
    finish_or_quit(lambda: measure(arguments))


def measure(arguments: argparse.Namespace) -> None:
    """Do what the command line asks for."""
    prepare(arguments.programs, ("farlink-core", "aerotp_udp", "relay"))
    runs = Runs((arguments.programs or PROGRAMS).resolve())
    if arguments.short:
        print(json.dumps(asdict(runs.once(SHORT.runs[0], seed=1, span_s=(3, 10)))))
        return
    seeds = range(1, arguments.runs + 1)
    wanted = list(dict.fromkeys((run, seed) for seed in seeds for cell in cells() for run in cell.runs))
    runs.measure(wanted, arguments.parallel)
    found = list(wishes(runs, seeds))
    measured = [runs.of(run, [seed])[0] for run, seed in wanted]
    dates = sorted({one.date for one in measured})
    page.write(
        "aerotp-kernel.md",
        {"aerotp-kernel": picture(found)},
        cells=len(cells()),
        runs=len(seeds),
        met=sum(wish.is_met for wish in found),
        wishes=len(found),
        commits=", ".join(sorted({one.commit for one in measured})),
        dates=dates[0] if len(dates) == 1 else f"{dates[0]} to {dates[-1]}",
        late=max(one.late_share for one in measured),
        worst=max(one.late_worst_s for one in measured) * 1e3,
        repeated=sum(one.attempts > 1 for one in measured),
        load_least=min(one.load for one in measured),
        load_most=max(one.load for one in measured),
        parallel=arguments.parallel,
        wanted=wish_table(found),
        measured=run_table(runs, seeds),
    )


if __name__ == "__main__":
    main()

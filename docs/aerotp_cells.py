"""Runs of AeroTP and TCP over a bottleneck without hints, for `aerotp_neighbours.py`; finished ones are kept."""

from __future__ import annotations

import datetime
import hashlib
import itertools
import json
import random
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import page

import farlink
from farlink import _core
from farlink.engines import trace_run

KEPT = page.ROOT / "out" / "aerotp-neighbours.jsonl"
RATES_BPS = (4e6, 10e6, 20e6)
ROUND_TRIPS_S = (0.05, 0.5)
# Packets, or bandwidth-delay products.
QUEUES: tuple[int | float, ...] = (2, 4, 10, 0.5, 1.0, 2.0)
# A fast link behind a policer.
POLICED_BPS = 1e9
LOSSES = (0.0, 0.001, 0.02, 0.1, 0.3)
NEIGHBOURS = tuple(itertools.product((1, 4), ("cubic", "reno", "bbr3")))
SEEDS = (1, 2, 3)
PACKET_BYTES = 1500
# Headers and checks of an AeroTP packet.
OVERHEAD_BYTES = 44

Transport = dict[str, Any]
# A place, the transports of its flows, and the seed.
Cell = tuple["Place", tuple[Transport, ...], int]
ALONE: Transport = {"kind": "aerotp", "alone": True}
FRIENDLY: Transport = {"kind": "aerotp", "rate_control": "friendly"}
LEARNT: Transport = {"kind": "aerotp", "rate_control": "learnt", "alone": False}
CONTROLS = {"alone": ALONE, "friendly": FRIENDLY, "learnt": LEARNT}


@dataclass(frozen=True)
class Policer:
    """A token bucket instead of a queue: packets beyond its burst are dropped, none waits."""

    packets: int


POLICERS = (Policer(5), Policer(20))


@dataclass(frozen=True)
class Place:
    """A bottleneck on the second hop, about which the sender has no hints.

    Parameters
    ----------
    rate_bps
        Its rate, bit/s.
    round_trip_s
        The round trip without queues, s.
    queue
        Packets, or bandwidth-delay products; or a policer before a fast link.
    loss
        Share of the packets behind the queue that the channel loses.
    span
        What is measured: the path when it has ``settled``, soon after the ``start``, or after its rate has ``halved`` or
        ``doubled``.
    back_loss
        Share of the packets that the way back loses.
    jitter
        A ``held`` link delays packets by up to half a round trip more, anew each tenth of a round trip, and keeps their order;
        on an ``overtaking`` one they overtake each other.
    marks
        Whether packets that find half of the queue are marked with congestion; all transports then have ECN.
    """

    rate_bps: float
    round_trip_s: float
    queue: int | float | Policer
    loss: float
    span: str = "settled"
    back_loss: float = 0.0
    jitter: str = ""
    marks: bool = False

    @property
    def span_s(self) -> tuple[float, float]:
        """From when to when it is measured, in seconds.

        Of a settled path from 60 s or 120 round trips on, for as long again; else from 60 round trips and 20 s after the start,
        or after a change of the rate, for 20 s or 40 round trips.
        """
        settled_s = max(60.0, 120 * self.round_trip_s)
        if self.span == "settled":
            return settled_s, 2 * settled_s
        from_s = 60 * self.round_trip_s + 20 + (0.0 if self.span == "start" else settled_s)
        return from_s, from_s + max(20.0, 40 * self.round_trip_s)

    @property
    def later_bps(self) -> float:
        """Its rate while it is measured, bit/s."""
        return self.rate_bps * {"halved": 0.5, "doubled": 2.0}.get(self.span, 1.0)

    @property
    def packets(self) -> int:
        """Room in its queue, or the burst of its policer."""
        if isinstance(self.queue, Policer):
            return self.queue.packets
        if isinstance(self.queue, int):
            return self.queue
        return max(2, round(self.queue * self.rate_bps * self.round_trip_s / 8 / PACKET_BYTES))

    @property
    def usable_bps(self) -> float:
        """Goodput of all data that it can carry."""
        return self.later_bps * (1 - OVERHEAD_BYTES / PACKET_BYTES) * (1 - self.loss)

    def __str__(self) -> str:
        if isinstance(self.queue, Policer):
            queue = f"policer of {self.queue.packets} packets"
        else:
            queue = f"{self.queue} packets" if isinstance(self.queue, int) else f"{self.queue:g} BDP"
        more = [] if self.span == "settled" else [self.span]
        more += [f"loss {self.back_loss:g} back"] if self.back_loss > 0 else []
        more += [f"jitter, {self.jitter}"] if self.jitter else []
        more += ["marks"] if self.marks else []
        place = f"{self.rate_bps / 1e6:g} Mb/s, {self.round_trip_s * 1e3:g} ms, {queue}, loss {self.loss:g}"
        return ", ".join([place, *more])


@dataclass(frozen=True)
class Flow:
    """What a flow has: goodput in bit/s, and the share of its packets that the queue dropped."""

    goodput_bps: float
    dropped: float


@dataclass(frozen=True)
class Worst:
    """The window of 30 round trips in which the largest share of a flow's packets was dropped, and when it begins."""

    dropped: float
    from_s: float


class Cells:
    """Measured cells, kept in a file."""

    def __init__(self) -> None:
        """Read the cells of this build."""
        self.found: dict[str, list[list[float]]] = {}
        if KEPT.exists():
            for line in KEPT.read_text(encoding="utf-8").splitlines():
                with suppress(ValueError):  # the last line of a run that was killed
                    cell = json.loads(line)
                    if cell["build"] == _core.__build__:
                        self.found[cell["key"]] = cell["flows"]

    def measure(self, wanted: Sequence[Cell], swept: Sequence[Cell]) -> None:
        """Run the cells that are missing, two at a time; of some, find the worst windows."""
        runs: dict[str, tuple[Cell, Callable[[Cell], list[list[float]]]]] = {}
        runs |= {_key(*cell): (cell, _run) for cell in wanted}
        runs |= {_key(*cell, "worst"): (cell, _sweep) for cell in swept}
        missing = {key: run for key, run in runs.items() if key not in self.found}
        KEPT.parent.mkdir(exist_ok=True)
        with (
            KEPT.open("a", encoding="utf-8") as file,
            ThreadPoolExecutor(2) as pool,
            page.progress_bar("cells", "cells") as bar,
        ):
            flows_of = pool.map(lambda run: run[1](run[0]), missing.values())
            for done, ((key, ((place, transports, seed), _)), flows) in enumerate(
                zip(missing.items(), flows_of, strict=True), 1
            ):
                self.found[key] = flows
                kept = {
                    "build": _core.__build__,
                    "date": datetime.date.today().isoformat(),
                    "key": key,
                    "cell": f"{place}, seed {seed}: " + " beside ".join(str(transport) for transport in transports),
                    "flows": flows,
                }
                file.write(json.dumps(kept) + "\n")
                file.flush()
                bar(done, len(missing))

    def __getitem__(self, cell: Cell) -> list[Flow]:
        """Flows of a cell, in their order."""
        return [Flow(*flow) for flow in self.found[_key(*cell)]]

    def worst(self, cell: Cell) -> list[tuple[Worst, Worst]]:
        """The worst window of each flow of a cell, among those that begin soon after its start and among the later ones."""
        return [(Worst(*flow[:2]), Worst(*flow[2:])) for flow in self.found[_key(*cell, "worst")]]


def _key(place: Place, transports: tuple[Transport, ...], seed: int, *kind: str) -> str:
    return hashlib.sha256(json.dumps([str(place), transports, seed, *kind], sort_keys=True).encode()).hexdigest()[:24]


def _wan(place: Place, folder: Path) -> dict[str, Any]:
    """The hop of the bottleneck; its traces are written into a folder."""
    wan: dict[str, Any] = {"rate_bps": place.rate_bps, "delay_s": place.round_trip_s / 2 - 0.001}
    if isinstance(place.queue, Policer):
        wan["policer"] = {"rate_bps": place.rate_bps, "burst_bytes": place.packets * PACKET_BYTES}
        wan["rate_bps"] = POLICED_BPS
    else:
        wan["queue_packets"] = place.packets
    if place.marks:
        wan["ecn_threshold_packets"] = place.packets // 2
    if place.loss > 0:
        wan["channel"] = {"kind": "loss", "loss": place.loss}
    if place.back_loss > 0:
        wan["return"] = {"channel": {"kind": "loss", "loss": place.back_loss}}
    _, to_s = place.span_s
    if place.later_bps != place.rate_bps:
        trace = folder / "rate.csv"
        change_s = max(60.0, 120 * place.round_trip_s)
        trace.write_text(f"time_s,rate_bps\n0,{place.rate_bps}\n{change_s},{place.later_bps}\n{to_s},{place.later_bps}\n")
        wan["rate_bps"] = {"kind": "rate-trace", "file": str(trace)}
    if place.jitter:
        trace = folder / "delay.csv"
        step_s = place.round_trip_s / 10
        drawn = random.Random(1)
        delays_s = [wan["delay_s"] + drawn.uniform(0, place.round_trip_s / 2) for _ in range(round(to_s / step_s))]
        rows = (f"{n * step_s:.6f},{delay_s:.6f}" for n, delay_s in enumerate(delays_s))
        trace.write_text("time_s,delay_s\n" + "\n".join(rows) + "\n")
        wan["return"] = {"delay_s": wan["delay_s"]}
        wan["delay_s"] = {"kind": "delay-trace", "file": str(trace)}
        wan["ordering"] = {"held": "fifo", "overtaking": "overtake"}[place.jitter]
    return wan


def _scenario(cell: Cell, folder: Path, *, warmup_s: float) -> dict[str, Any]:
    """One run; flows start half a second apart."""
    place, transports, seed = cell
    ecn = {"ecn": True} if place.marks else {}
    return {
        "duration_s": place.span_s[1],
        "measure": {"warmup_s": warmup_s},
        "runs": 1,
        "seed": seed,
        "path": ["lan", "wan"],
        "hop": {"lan": {"rate_bps": 1e9, "delay_s": 0.001}, "wan": _wan(place, folder)},
        "transport": {f"transport{n}": transport | ecn for n, transport in enumerate(transports)},
        "flow": {
            f"flow{n}": {"transport": f"transport{n}", "start_s": _start_s(n), "traffic": {"kind": "bulk"}}
            for n in range(len(transports))
        },
    }


def _start_s(flow: int) -> float:
    return 0.5 * flow


def _run(cell: Cell) -> list[list[float]]:
    """Goodput and drops of each flow in the span that is measured."""
    place, transports, _ = cell
    with tempfile.TemporaryDirectory() as folder:
        result = farlink.run(_scenario(cell, Path(folder), warmup_s=place.span_s[0]), threads=1)
    rows = result.rows
    by_flow = dict(zip(rows["flow"], zip(rows["goodput_bps"], rows["loss_fraction"], strict=True), strict=True))
    # A packet that the queue dropped does not reach the channel.
    dropped = {flow: (lost - place.loss) / (1 - place.loss) for flow, (_, lost) in by_flow.items()}
    flows = [f"flow{n}" for n in range(len(transports))]
    return [[float(by_flow[flow][0]), float(dropped[flow])] for flow in flows]


# Windows begin after so many round trips of a flow, and last so many; those that begin after more are the later ones.
FIRST_ROUND_TRIPS = 20
WINDOW_ROUND_TRIPS = 30
LATER_ROUND_TRIPS = 60


def _sweep(cell: Cell) -> list[list[float]]:
    """The worst windows of each flow: the share of its packets that the queue or the policer dropped, and when they begin."""
    place, transports, _ = cell
    with tempfile.TemporaryDirectory() as folder:
        series = trace_run(_scenario(cell, Path(folder), warmup_s=0), quantities=("sent_packets", "dropped_packets"))
    flow, quantity = np.asarray(series.flow), np.asarray(series.quantity)
    worst = []
    for n in range(len(transports)):
        begins = np.arange(
            _start_s(n) + FIRST_ROUND_TRIPS * place.round_trip_s,
            place.span_s[1] - WINDOW_ROUND_TRIPS * place.round_trip_s,
            place.round_trip_s,
        )
        (sent_s, sent), (dropped_s, dropped) = (
            (series.time_s[mask], np.append(0, series.value[mask]))
            for mask in ((flow == f"flow{n}") & (quantity == name) for name in ("sent_packets", "dropped_packets"))
        )
        # A drop is recorded when the sender acts next, which may be a timeout later; the packet was sent before that.
        before = np.searchsorted(sent_s, dropped_s, "left") - 1
        dropped_s = np.where(before < 0, 0, sent_s[before])
        sent, dropped = (
            count[np.searchsorted(time_s, begins + WINDOW_ROUND_TRIPS * place.round_trip_s, "right")]
            - count[np.searchsorted(time_s, begins, "right")]
            for time_s, count in ((sent_s, sent), (dropped_s, dropped))
        )
        share = dropped / np.maximum(sent, 1)
        later = LATER_ROUND_TRIPS - FIRST_ROUND_TRIPS
        soon, late = share[:later].argmax(), later + share[later:].argmax()
        worst.append([float(share[soon]), float(begins[soon]), float(share[late]), float(begins[late])])
    return worst


def tcp(control: str) -> Transport:
    """A neighbour."""
    return {"kind": "tcp", "variant": "sack", "congestion_control": control, "timestamps": True}

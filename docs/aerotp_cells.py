"""Runs of AeroTP and TCP over a bottleneck without hints, for `aerotp_neighbours.py`; finished ones are kept."""

from __future__ import annotations

import datetime
import hashlib
import itertools
import json
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import page

import farlink
from farlink import _core

KEPT = page.ROOT / "out" / "aerotp-neighbours.jsonl"
RATES_BPS = (4e6, 10e6, 20e6)
ROUND_TRIPS_S = (0.05, 0.5)
# Packets, or bandwidth-delay products.
QUEUES: tuple[int | float, ...] = (2, 4, 10, 0.5, 1.0, 2.0)
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
class Place:
    """A bottleneck on the second hop, about which the sender has no hints.

    Parameters
    ----------
    rate_bps
        Its rate, bit/s.
    round_trip_s
        The round trip without queues, s.
    queue
        Packets, or bandwidth-delay products.
    loss
        Share of the packets behind the queue that the channel loses.
    span
        What is measured: the path when it has ``settled``, soon after the ``start``, or after its rate has ``halved`` or
        ``doubled``.
    """

    rate_bps: float
    round_trip_s: float
    queue: int | float
    loss: float
    span: str = "settled"

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
        """Room in its queue."""
        if isinstance(self.queue, int):
            return self.queue
        return max(2, round(self.queue * self.rate_bps * self.round_trip_s / 8 / PACKET_BYTES))

    @property
    def usable_bps(self) -> float:
        """Goodput of all data that it can carry."""
        return self.later_bps * (1 - OVERHEAD_BYTES / PACKET_BYTES) * (1 - self.loss)

    def __str__(self) -> str:
        queue = f"{self.queue} packets" if isinstance(self.queue, int) else f"{self.queue:g} BDP"
        span = "" if self.span == "settled" else f", {self.span}"
        return f"{self.rate_bps / 1e6:g} Mb/s, {self.round_trip_s * 1e3:g} ms, {queue}, loss {self.loss:g}{span}"


@dataclass(frozen=True)
class Flow:
    """What a flow has: goodput in bit/s, and the share of its packets that the queue dropped."""

    goodput_bps: float
    dropped: float


class Cells:
    """Measured cells, kept in a file."""

    def __init__(self) -> None:
        """Read the cells of this build."""
        self.found: dict[str, list[Flow]] = {}
        if KEPT.exists():
            for line in KEPT.read_text(encoding="utf-8").splitlines():
                with suppress(ValueError):  # the last line of a run that was killed
                    cell = json.loads(line)
                    if cell["build"] == _core.__build__:
                        self.found[cell["key"]] = [Flow(*flow) for flow in cell["flows"]]

    def measure(self, wanted: Sequence[Cell]) -> None:
        """Run the cells that are missing, two at a time."""
        missing = {_key(*cell): cell for cell in wanted if _key(*cell) not in self.found}
        KEPT.parent.mkdir(exist_ok=True)
        with (
            KEPT.open("a", encoding="utf-8") as file,
            ThreadPoolExecutor(2) as pool,
            page.progress_bar("cells", "cells") as bar,
        ):
            flows_of = pool.map(lambda cell: _run(*cell), missing.values())
            for done, ((key, (place, transports, seed)), flows) in enumerate(zip(missing.items(), flows_of, strict=True), 1):
                self.found[key] = flows
                kept = {
                    "build": _core.__build__,
                    "date": datetime.date.today().isoformat(),
                    "key": key,
                    "cell": f"{place}, seed {seed}: " + " beside ".join(str(transport) for transport in transports),
                    "flows": [[flow.goodput_bps, flow.dropped] for flow in flows],
                }
                file.write(json.dumps(kept) + "\n")
                file.flush()
                bar(done, len(missing))

    def __getitem__(self, cell: Cell) -> list[Flow]:
        """Flows of a cell, in their order."""
        return self.found[_key(*cell)]


def _key(place: Place, transports: tuple[Transport, ...], seed: int) -> str:
    return hashlib.sha256(json.dumps([str(place), transports, seed], sort_keys=True).encode()).hexdigest()[:24]


def _run(place: Place, transports: tuple[Transport, ...], seed: int) -> list[Flow]:
    """One run; flows start half a second apart."""
    from_s, to_s = place.span_s
    wan: dict[str, Any] = {
        "rate_bps": place.rate_bps,
        "delay_s": place.round_trip_s / 2 - 0.001,
        "queue_packets": place.packets,
    }
    if place.loss > 0:
        wan["channel"] = {"kind": "loss", "loss": place.loss}
    flows = {
        f"flow{n}": {"transport": f"transport{n}", "start_s": 0.5 * n, "traffic": {"kind": "bulk"}}
        for n in range(len(transports))
    }
    with tempfile.TemporaryDirectory() as folder:
        if place.later_bps != place.rate_bps:
            trace = Path(folder) / "rate.csv"
            change_s = max(60.0, 120 * place.round_trip_s)
            trace.write_text(f"time_s,rate_bps\n0,{place.rate_bps}\n{change_s},{place.later_bps}\n{to_s},{place.later_bps}\n")
            wan["rate_bps"] = {"kind": "rate-trace", "file": str(trace)}
        result = farlink.run(
            {
                "duration_s": to_s,
                "measure": {"warmup_s": from_s},
                "runs": 1,
                "seed": seed,
                "path": ["lan", "wan"],
                "hop": {"lan": {"rate_bps": 1e9, "delay_s": 0.001}, "wan": wan},
                "transport": {f"transport{n}": transport for n, transport in enumerate(transports)},
                "flow": flows,
            },
            threads=1,
        )
    rows = result.rows
    by_flow = dict(zip(rows["flow"], zip(rows["goodput_bps"], rows["loss_fraction"], strict=True), strict=True))
    # A packet that the queue dropped does not reach the channel.
    dropped = {flow: (lost - place.loss) / (1 - place.loss) for flow, (_, lost) in by_flow.items()}
    return [Flow(float(by_flow[flow][0]), float(dropped[flow])) for flow in flows]


def tcp(control: str) -> Transport:
    """A neighbour."""
    return {"kind": "tcp", "variant": "sack", "congestion_control": control, "timestamps": True}

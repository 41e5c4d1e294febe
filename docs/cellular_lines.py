"""Four 5G modems and a Starlink dish as lines of bundles, in parts of their logs: for `docs/cellular_studies.py`."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import cellular
import numpy as np
from bundle_studies import Runs, measured

from farlink.channels.calls.availability import Availability, availability
from farlink.channels.calls.handovers import interrupted
from farlink.channels.calls.links import Link
from farlink.channels.calls.replay import down_times
from farlink.channels.calls.study import load

Data = dict[str, Any]
Spells = list[tuple[float, float]]
Told = Callable[[], None]

# For each modem; the section gives the reason.
RATE_BPS = 10e6
DELAY_S = 0.02
QUEUE_S = 0.1
# Assumed lengths of a handover; None leaves handovers out.
LENGTHS_S = (None, 0.05, 0.2, 1.0)
LENGTH_S = 0.2
PATIENCE_S = 0.1
PATIENCES_S = (0.01, 0.1, 1.0, None)
SCHEDULERS = ("round-robin", "shortest-queue", "earliest-delivery", "redundant", "drop-aware")
ON_DROP = ("lose", "requeue")

# Parts of the log at even distances, each a run of its own.
STRETCHES = 10
STRETCH_S = 100
WARMUP_S = 10
# And one part around each drop, which begins this long before the drop.
BEFORE_S = 30

# Also of the test streams in the log.
FAST_BPS = 50e6

TRANSPORTS: dict[str, Data] = {
    "Reno": {"variant": "reno"},
    "SACK": {"variant": "sack"},
    "RACK": {"variant": "rack"},
    "CUBIC": {"variant": "rack", "congestion_control": "cubic"},
    "BBR": {"variant": "rack", "congestion_control": "bbr"},
}
# Linux's least timeout, not RFC 6298's second.
TCP: Data = {"kind": "tcp", "variant": "sack", "segment_bytes": 1448, "timestamps": True, "rto": {"minimum_s": 0.2}}
BULK: Data = {"transport": TCP, "traffic": {"kind": "bulk"}}
# 200 bytes every 20 ms; and a video in datagrams of 1500 bytes with their headers.
TELEMETRY: Data = {"transport": {"kind": "udp"}, "traffic": {"kind": "cbr", "payload_bytes": 200, "rate_bps": 80e3}}
VIDEO: Data = {"transport": {"kind": "udp"}, "traffic": {"kind": "cbr", "payload_bytes": 1472, "rate_bps": 8e6}}

# Beside Starlink: one modem of each operator.
BESIDE = ("5G-DTAG-WAVELAB", "5G-D2-WAVELAB")
STARLINK_BPS = 50e6
STARLINK_DELAY_S = 0.014
SHALLOW, DEEP = 3, 48
KINDS = (
    ("Starlink alone", "round-robin", SHALLOW),
    ("the modems alone", "round-robin", SHALLOW),
    ("all three", "round-robin", SHALLOW),
    ("all three", "round-robin", DEEP),
    ("all three", "shortest-queue", SHALLOW),
    ("all three", "earliest-delivery", SHALLOW),
    ("all three", "earliest-delivery", 12),
    ("all three", "earliest-delivery", DEEP),
    ("all three", "redundant", SHALLOW),
)


@dataclass(frozen=True)
class Line:
    """A line: its rate, its one-way delay, and its down times, in s from the beginning of the log."""

    rate_bps: float
    delay_s: float
    downs: Spells

    def part(self, begin_s: float, length_s: float) -> list[list[float]]:
        """Its down times in a part of the log."""
        inside = [(max(0.0, begin - begin_s), min(length_s, end - begin_s)) for begin, end in self.downs]
        return [[round(begin, 4), round(end, 4)] for begin, end in inside if end - begin >= 1e-3]


@dataclass(frozen=True)
class Modems:
    """The four modems.

    Attributes
    ----------
    links
        Their logs, with each handover at a random time in the second before the reading that shows it.
    span_s
        From the first event to the last one, in s.
    downs
        Down times of each, by the assumed length of a handover.
    """

    links: list[Link]
    span_s: float
    downs: Mapping[float | None, list[Spells]]

    def lines(self, length_s: float | None, names: Sequence[str] = ()) -> list[Line]:
        """The modems with these names, or all."""
        chosen = zip(self.links, self.downs[length_s], strict=True)
        return [Line(RATE_BPS, DELAY_S, downs) for link, downs in chosen if not names or link.name in names]

    def up(self, length_s: float | None) -> Availability:
        """How much of the time they are up."""
        links = self.links if length_s is None else [interrupted(link, length_s) for link in self.links]
        found = availability(links)
        assert found is not None
        return found


def read_modems() -> Modems:
    """The log of the modems."""
    _, links = load(sorted(cellular.MODEMS.glob("*.gzip")))
    rng = np.random.default_rng(1)
    links = [replace(link, handovers_s=_before(link, rng)) for link in links]
    all_downs = {length_s: down_times(links, handover_s=length_s) for length_s in LENGTHS_S}
    return Modems(links, all_downs[None][0].span_s, {key: [one.outages for one in downs] for key, downs in all_downs.items()})


def _before(link: Link, rng: np.random.Generator) -> list[float]:
    """Its handovers, each at a random time in the second before the reading with another cell, and within its call."""
    times_s = sorted(time_s - rng.random() for time_s in link.handovers_s)
    return [time_s for time_s in times_s if any(call.start_s <= time_s <= call.end_s for call in link.calls)]


def read_dish() -> list[Spells]:
    """Each hour of the dish: a second in which a share of the pings was lost counts as down for that share."""
    hours = []
    for time_s, lost, _ in cellular.read_dish().files:
        begins = time_s - time_s[0]
        hours.append([(float(begin), float(begin + share)) for begin, share in zip(begins, lost, strict=True) if share > 0])
    return hours


def scenario(lines: Sequence[Line], flow: Data, begin_s: float, length_s: float, **bundle: Any) -> Data:
    """A flow over a bundle in a part of the log."""
    members = [{"count": 1, "rate_bps": line.rate_bps, "delay_s": line.delay_s} for line in lines]
    calls = {"schedule": [line.part(begin_s, length_s) for line in lines]}
    rate_bps = math.fsum(line.rate_bps for line in lines)
    bundle = {"members": members, "calls": calls, "on_drop": "lose", "reorder_timeout_s": PATIENCE_S} | bundle
    return {
        "duration_s": length_s,
        "runs": 1,
        "measure": {"warmup_s": WARMUP_S},
        "link": {
            "rate_bps": rate_bps,
            "delay_s": 0,
            "queue_bytes": round(QUEUE_S * rate_bps / 8),
            "bundle": {key: value for key, value in bundle.items() if value is not None},
        },
        "transport": {"one": flow["transport"]},
        "flow": {"data": {"transport": "one", "traffic": flow["traffic"]}},
    }


def begins_s(span_s: float) -> list[float]:
    """Where the parts of the log begin."""
    return np.linspace(0, span_s - STRETCH_S - WARMUP_S, STRETCHES).tolist()


def in_parts(lines: Sequence[Line], flow: Data, span_s: float, **bundle: Any) -> Runs:
    """A run for each part of the log."""
    runs = []
    for number, begin_s in enumerate(begins_s(span_s)):
        data = scenario(lines, flow, begin_s, STRETCH_S + WARMUP_S, **bundle)
        runs.append(measured(data | {"seed": number}))
    return joined(runs)


def joined(runs: Sequence[Runs]) -> Runs:
    """Runs concatenated."""
    return Runs({name: np.concatenate([one[name] for one in runs]) for name in runs[0].columns})


def averaged(runs: Sequence[Runs]) -> Runs:
    """Mean over several results, run by run."""
    return Runs({name: np.mean([one[name] for one in runs], axis=0) for name in runs[0].columns})

"""Bundles of lines, run many times over: what `docs/bundles.py` prints."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import t as student

import farlink
from farlink.models.multilink.windowed_bundle import Repetition, WindowedBundle, goodput_bps
from farlink.papers.estimate import Estimate
from farlink.scenario import from_data

Values = NDArray[np.float64]
Data = dict[str, Any]

RATE_BPS = 2400
DELAY_S = 0.5
LINES = 8
WINDOW = 33
SEGMENT_BYTES = 1448
HEADER_BYTES = 52
ARQ = {"frame_bytes": 25, "window_frames": 6, "loss": 0.03, "loss_again": 0.1}
REPETITION = Repetition(**ARQ)
REDIAL_S = 53
PATIENCE_S = 10

UP_TIMES_S = (300, 900, 1800, 3000, 7200)
VARIANTS = ("reno", "sack")
PATIENCES_S = (2, 5, 10, 20, 40)
SWEPT_UP_TIMES_S = (900, 3000)
DEFAULT_UP_TIMES_S = (30, 100, 300, 900, 3000, 14_400, 86_400)
# Settings of the guide's bundle that a user may change; first none.
SETTINGS: dict[str, Data] = {
    "unless given": {},
    "fragments, a packet a line": {"packets": "fragmented", "line_packets": 1},
    '`peer = "rfc1990"`': {"peer": "rfc1990"},
    "lost": {"on_drop": "lose"},
    "lost, fragments, a packet a line": {"on_drop": "lose", "packets": "fragmented", "line_packets": 1},
    "lost, no patience": {"on_drop": "lose", "reorder_timeout_s": "never"},
}
# Zaghloul, tables 6.1 and 6.2, with back-off up to 64-fold.
SLOW_TIMER = {"minimum_s": 60, "initial_s": 60, "maximum_s": 3840}

LINE_COUNTS = (1, 2, 4, 6, 8)
LINE_PACKETS = (1, 3, 6)
PACKETS_BYTES = (300, 576, 1500)
MRRUS_BYTES = (128, 300, 576, 1000, 1500)
WINDOW_BYTES = WINDOW * 1500

LOSSES = (0.0, 0.01, 0.03, 0.1)
GIVEN_UP_AFTER = 3

MEMBERS: dict[str, Data] = {
    "eight alike": {"lines": LINES},
    "four of 2400, one of 9600 bit/s": {"members": [{"count": 4}, {"count": 1, "rate_bps": 9600}]},
    "four of 0.5 s, four of 1.5 s": {"members": [{"count": 4}, {"count": 4, "delay_s": 1.5}]},
}
CAPACITY_BPS = LINES * RATE_BPS
SCHEDULERS = ("round-robin", "shortest-queue", "earliest-delivery", "redundant")


@dataclass(frozen=True)
class Runs:
    """The rows of all flows together, one element a run."""

    columns: Mapping[str, Values]

    def __getitem__(self, name: str) -> Values:
        return self.columns[name]

    def mean(self, name: str, factor: float = 1.0) -> Estimate:
        """Mean of a column over runs."""
        return interval(factor * self[name])


Told = Callable[[], None]


def interval(values: Values) -> Estimate:
    """Mean and 95 % interval of independent runs."""
    count = len(values)
    half = float(student.ppf(0.975, count - 1) * values.std(ddof=1) / np.sqrt(count)) if count > 1 else float("nan")
    return Estimate(float(values.mean()), half)


def gain(changed: Runs, base: Runs, name: str = "goodput_bps") -> Estimate:
    """Relative change of a mean; runs of the same number have the same calls and errors."""
    change, mean = interval(changed[name] - base[name]), float(base[name].mean())
    return Estimate(change.mean / mean, change.half_width / mean)


def scenario(bundle: Data, *, runs: int, hours: float = 3, variant: str = "sack", **changes: Any) -> Data:
    """A scenario of TCP in bulk over a bundle; `changes` of the transport, and `traffic` and `transport` in its place."""
    traffic = changes.pop("traffic", {"kind": "bulk"})
    bundle = {key: value for key, value in ({"reorder_timeout_s": "never"} | bundle).items() if value is not None}
    tcp = {
        "kind": "tcp",
        "variant": variant,
        "segment_bytes": SEGMENT_BYTES,
        "timestamps": True,
        "max_window_segments": WINDOW,
        "rto": {"minimum_s": 1, "initial_s": 30},
    }
    transport = changes.pop("transport", None) or tcp | changes
    return {
        "duration_s": 3600 * hours,
        "runs": runs,
        "measure": {"warmup_s": 900},
        "link": {"rate_bps": RATE_BPS, "delay_s": DELAY_S, "bundle": bundle},
        "transport": {"one": transport},
        "flow": {"data": {"transport": "one", "traffic": traffic}},
    }


def messages(bundle: Data, *, runs: int, every_s: float) -> Data:
    """Datagrams of 1500 bytes at regular intervals, without retransmission."""
    traffic = {"kind": "cbr", "payload_bytes": 1472, "rate_bps": 1472 * 8 / every_s}
    return scenario(bundle, runs=runs, transport={"kind": "udp"}, traffic=traffic)


def measured(data: Data) -> Runs:
    """Runs a scenario."""
    rows = farlink.run(from_data(data)).rows
    kept = [place for place, flow in enumerate(rows["flow"]) if flow == "all"]
    of_link = ("goodput_bps", "timeouts", "delay_mean_s", "delay_p50_s", "delay_p99_s", "loss_fraction", "call_drops")
    of_bundle = ("out_of_order_fragments", "requeued_packets", "lines_up_fraction", "retransmitted_bytes", "delivered_packets")
    values = {name: [rows[name][place] for place in kept] for name in of_link + of_bundle}
    return Runs({name: np.array(column, dtype=np.float64) for name, column in values.items()})


def round_trips(data: Data) -> tuple[Estimate, Estimate]:
    """Mean and standard deviation of TCP's round-trip samples, each over all runs."""
    prepared = from_data(data)
    means, deviations = [], []
    for run in range(data["runs"]):
        time_s, rtt_s = farlink.trace_run(prepared, run=run, quantities=["rtt"]).select("rtt")
        rtt_s = rtt_s[time_s > data["measure"]["warmup_s"]]
        means.append(rtt_s.mean())
        deviations.append(rtt_s.std())
    return interval(np.array(means)), interval(np.array(deviations))


def calls(up_s: float) -> Data:
    """Calls that drop after exponential times."""
    return {
        "up": {"distribution": "exponential", "mean_s": up_s},
        "redial": {"distribution": "exponential", "mean_s": REDIAL_S},
    }


def dropping(up_s: float, on_drop: str, patience_s: float | None, **more: Any) -> Data:
    """Eight lines whose calls drop."""
    bundle = {"lines": LINES, "arq": ARQ, "calls": calls(up_s), "on_drop": on_drop, **more}
    return bundle if patience_s is None else bundle | {"reorder_timeout_s": patience_s}


DropKey = tuple[str, float, str, float | None]
Drops = dict[DropKey, Runs]


def drops(tell: Told) -> Drops:
    """Calls that drop: by variant, mean up time, fate of packets, and the receiver's timeout."""
    keys: list[DropKey] = list(product(VARIANTS, UP_TIMES_S, ("lose", "requeue"), (None, PATIENCE_S)))
    for patience_s in PATIENCES_S:
        keys += [("sack", up_s, on_drop, patience_s) for up_s in SWEPT_UP_TIMES_S for on_drop in ("lose", "requeue")]
    found: Drops = {}
    for variant, up_s, on_drop, patience_s in dict.fromkeys(keys):
        data = scenario(dropping(up_s, on_drop, patience_s), runs=12, hours=6, variant=variant)
        found[variant, up_s, on_drop, patience_s] = measured(data)
        tell()
    return found


def slow_timers(tell: Told) -> dict[tuple[str, float | None], Runs]:
    """Drops every 50 min with a timer of a minute."""
    found: dict[tuple[str, float | None], Runs] = {}
    for on_drop, patience_s in product(("lose", "requeue"), (None, PATIENCE_S)):
        found[on_drop, patience_s] = measured(scenario(dropping(3000, on_drop, patience_s), runs=12, hours=6, rto=SLOW_TIMER))
        tell()
    return found


def settings(tell: Told) -> dict[tuple[str, float], Runs]:
    """Goodput with the most important settings, by the drop rate of a line."""
    found: dict[tuple[str, float], Runs] = {}
    for (name, keys), up_s in product(SETTINGS.items(), DEFAULT_UP_TIMES_S):
        bundle = {"lines": LINES, "arq": ARQ, "calls": calls(up_s), "reorder_timeout_s": None} | keys
        found[name, up_s] = measured(scenario(bundle, runs=10, hours=4))
        tell()
    return found


@dataclass(frozen=True)
class Cell:
    """A bundle without drops, and a window."""

    lines: int
    line_packets: int
    packet_bytes: int
    window: int
    repeats: bool

    @property
    def model(self) -> WindowedBundle:
        """The cell in closed form."""
        arq = REPETITION if self.repeats else None
        return WindowedBundle(
            self.lines, RATE_BPS, self.packet_bytes, self.window, line_packets=self.line_packets, delay_s=DELAY_S, arq=arq
        )

    @property
    def data(self) -> Data:
        """The cell as a scenario."""
        bundle = {"lines": self.lines, "line_packets": self.line_packets} | ({"arq": ARQ} if self.repeats else {})
        segment_bytes = self.packet_bytes - HEADER_BYTES
        return scenario(bundle, runs=3, segment_bytes=segment_bytes, max_window_segments=self.window)


def cells() -> Iterator[Cell]:
    """Windows of half a packet, one and two per line, of all that the lines hold, and one that is the same for all bundles."""
    for repeats, lines, packets, length in product((False, True), LINE_COUNTS, LINE_PACKETS, PACKETS_BYTES):
        for window in dict.fromkeys((max(1, lines // 2), lines, 2 * lines, lines * packets, WINDOW)):
            yield Cell(lines, packets, length, window, repeats)


def windows(tell: Told) -> dict[Cell, Estimate]:
    """Goodput of each cell in the engine."""
    found = {}
    for cell in cells():
        found[cell] = measured(cell.data).mean("goodput_bps")
        tell()
    return found


def error(cell: Cell, estimate: Estimate) -> float:
    """Excess of the closed form over the engine."""
    return float(goodput_bps(cell.model)) / estimate.mean - 1


@dataclass(frozen=True)
class Mrru:
    """Goodput with an MRRU, without drops and with."""

    model: WindowedBundle
    steady: Runs
    rtt: Estimate
    single: Runs
    dropping: Runs


def mrrus(tell: Told) -> dict[int, Mrru]:
    """Largest packets, with one window in bytes."""
    found = {}
    for length in MRRUS_BYTES:
        window = WINDOW_BYTES // length
        changes: Data = {"segment_bytes": length - HEADER_BYTES, "max_window_segments": window}
        data = scenario({"lines": LINES, "arq": ARQ, "mrru_bytes": length}, runs=6, **changes)
        cut = dropping(3000, "lose", PATIENCE_S, mrru_bytes=length)
        single = messages({"lines": LINES, "arq": ARQ}, runs=6, every_s=60)
        single["flow"]["data"]["traffic"] = {"kind": "cbr", "payload_bytes": length - 28, "rate_bps": (length - 28) * 8 / 60}
        model = WindowedBundle(LINES, RATE_BPS, length, window, delay_s=DELAY_S, arq=REPETITION)
        found[length] = Mrru(
            model, measured(data), round_trips(data)[0], measured(single), measured(scenario(cut, runs=12, hours=6, **changes))
        )
        tell()
    return found


CutKey = tuple[int, float, str]


def cuts(tell: Told) -> dict[CutKey, tuple[Runs, Runs]]:
    """Whole packets and fragments, by lines and frame errors: TCP under load, and single packets."""
    found = {}
    for lines, loss, packets in product((2, 4, 8), LOSSES, ("whole", "fragmented")):
        bundle: Data = {"lines": lines, "packets": packets}
        if loss:
            bundle["arq"] = ARQ | {"loss": loss}
        data = scenario(bundle, runs=6, max_window_segments=4 * lines)
        found[lines, loss, packets] = measured(data), measured(messages(bundle, runs=6, every_s=60))
        tell()
    return found


def cuts_given_up(tell: Told) -> dict[tuple[float, str, float | None], tuple[Runs, Runs]]:
    """Likewise over eight lines whose ARQ gives frames up, by the receiver's timeout."""
    found = {}
    for loss, packets, patience_s in product(LOSSES[1:], ("whole", "fragmented"), (None, PATIENCE_S)):
        bundle: Data = {"lines": LINES, "packets": packets, "arq": ARQ | {"loss": loss, "attempts": GIVEN_UP_AFTER}}
        if patience_s is not None:
            bundle["reorder_timeout_s"] = patience_s
        pair = measured(scenario(bundle, runs=6)), measured(messages(bundle, runs=6, every_s=60))
        found[loss, packets, patience_s] = pair
        tell()
    return found


@dataclass(frozen=True)
class Scheduled:
    """A scheduler: TCP in bulk, and datagrams at a tenth and at half of the lines' rate."""

    bulk: Runs
    rtt_s: Estimate
    rtt_deviation_s: Estimate
    light: Runs
    half: Runs


def schedulers(tell: Told) -> dict[tuple[str, str], Scheduled]:
    """Every scheduler over every bundle."""
    found = {}
    for name, scheduler in product(MEMBERS, SCHEDULERS):
        bundle = {**MEMBERS[name], "scheduler": scheduler, "arq": ARQ}
        carried_bps = float(goodput_bps(WindowedBundle(LINES, RATE_BPS, 1500, 1e6, arq=REPETITION), header_bytes=28))
        light, half = (messages(bundle, runs=6, every_s=1472 * 8 / (share * carried_bps)) for share in (0.1, 0.5))
        data = scenario(bundle, runs=6)
        found[name, scheduler] = Scheduled(measured(data), *round_trips(data), measured(light), measured(half))
        tell()
    return found


def unnumbered(tell: Told) -> dict[tuple[str, str, str, str], Runs]:
    """Packets in order and out of order, by bundle, scheduler, header and variant of TCP."""
    found = {}
    names = list(MEMBERS)
    keys = [*product(names, SCHEDULERS[:3], ("long", "none"), ("sack",))]
    keys += [*product(names[:1], SCHEDULERS[:1], ("long", "none"), ("reno", "rack"))]
    for name, scheduler, header, variant in keys:
        bundle = {**MEMBERS[name], "scheduler": scheduler, "header": header, "arq": ARQ}
        found[name, scheduler, header, variant] = measured(scenario(bundle, runs=6, variant=variant))
        tell()
    return found


def short_lines(tell: Told) -> dict[tuple[str, bool, int], Runs]:
    """Earliest delivery and round robin over a fast line and four slow ones, by `line_packets`."""
    found = {}
    (name,) = [name for name in MEMBERS if "9600" in name]
    for scheduler, repeats, packets in product(("round-robin", "earliest-delivery"), (False, True), (1, 2, 3, 4, 6)):
        arq = {"arq": ARQ} if repeats else {}
        bundle = {**MEMBERS[name], "scheduler": scheduler, "line_packets": packets, **arq}
        found[scheduler, repeats, packets] = measured(scenario(bundle, runs=4))
        tell()
    return found


STEADY_S, RESTLESS_S = 6000, 600
AWARE = (*SCHEDULERS, "drop-aware")


def restless(tell: Told) -> dict[str, Runs]:
    """Four lines that drop every ten minutes and four that drop a tenth as often, at other times in each run."""
    found: dict[str, list[Runs]] = {scheduler: [] for scheduler in AWARE}
    for seed in range(12):
        downs = [down_times(seed, line) for line in range(LINES)]
        for scheduler in AWARE:
            bundle = {
                "lines": LINES,
                "arq": ARQ,
                "scheduler": scheduler,
                "calls": {"schedule": downs},
                "on_drop": "lose",
                "reorder_timeout_s": PATIENCE_S,
            }
            found[scheduler].append(measured(scenario(bundle, runs=1, hours=6, max_window_segments=LINES * 2) | {"seed": seed}))
        tell()
    return {
        scheduler: Runs({name: np.concatenate([one[name] for one in ran]) for name in ran[0].columns})
        for scheduler, ran in found.items()
    }


def down_times(seed: int, line: int) -> list[list[float]]:
    """When a line of `restless` is down in six hours."""
    rng = np.random.default_rng([seed, line])
    mean_s, time_s = (RESTLESS_S if line % 2 else STEADY_S), 0.0
    downs: list[list[float]] = []
    while True:
        start_s = time_s + rng.exponential(mean_s)
        time_s = start_s + max(1.0, rng.exponential(REDIAL_S))
        if start_s > 6 * 3600:
            return downs
        downs.append([round(start_s, 3), round(time_s, 3)])

"""Write `docs/validation/erasure-bursts.md`: `make papers`. Takes nine minutes of one core."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import page
from impaired_codes import (
    GROUP,
    GROUP_PARITY,
    SEGMENT_BYTES,
    Code,
    across,
    bursts,
    convolutional,
    erasure,
    erasure_across,
    reed_solomon,
    uncoded,
)
from numpy.typing import NDArray
from scipy import stats

import farlink
from farlink.channels.trace import Trace
from farlink.channels.trace_file import write
from farlink.papers.celandroni.setting import modem
from farlink.tune.curves import ber_of, curves
from farlink.tune.modem import Setting
from farlink.tune.offered import Path as NetworkPath

# Half of the carrier of Celandroni's section IV with QPSK, and its path.
CHANNEL_BPS, SHARE = 2e6, 0.5
ROUND_TRIP_S = 0.5
HEADER_BYTES = 40
RUNS, OUTAGE_RUNS, DURATION_S, WARMUP_S = 8, 40, 600.0, 60.0
# Segments of a pattern of losses, which each run enters at another place.
SEGMENTS = 400_000

CODES = (
    uncoded(),
    convolutional("8/9", "11111111/10000000"),
    erasure(46, 1),
    reed_solomon(),
    erasure(23, 2),
    convolutional("4/5", "11111111/10001000"),
    reed_solomon(GROUP),
    erasure_across(),
)
OVER_GROUP = CODES[-2].name
# The fluid engine is shown where it claims to hold.
MOST_FLUID_LOSS = 1e-2
WHITE_DBHZ = (70.0, 72.0, 74.0, 76.0, 78.0)
BURST_BITS = (4, 16, 64, 256, 1024, 4096, 16384)
# From one burst to the next, in segments without a code and in bits.
EVERY = 200
# Bursts that mostly stay within a segment.
SHORT_BITS = 1024
EVERY_BITS = EVERY * 8 * SEGMENT_BYTES
FADING_DBHZ, FADING_DB = 76.0, 1.5
COHERENCE_S = (0.02, 0.2, 2.0, 20.0)
OUTAGE_S = (0.002, 0.005, 0.02, 0.1, 1.0)
OUTAGES_PER_S = 0.1

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Cell:
    """Goodput of TCP over a code.

    Attributes
    ----------
    mean_bps, half_width_bps
        By the packet engine, and of its 95 % interval.
    fluid_bps
        By the fluid engine; None where it has no such channel.
    loss
        Share of the segments that the code does not save; None if that is not counted.
    """

    mean_bps: float
    half_width_bps: float
    fluid_bps: float | None = None
    loss: float | None = None


def main() -> None:
    """Run everything and write the page."""
    page.start(__doc__)
    parts = (
        ("white noise", white, WHITE_DBHZ),
        ("bursts", burst, BURST_BITS),
        ("fading", fading, COHERENCE_S),
        ("outages", outages, OUTAGE_S),
    )
    found: dict[str, dict[float, dict[str, Cell]]] = {}
    with page.steps("codes under impairments", sum(len(CODES) * len(places) for *_, places in parts)) as told:
        for name, run, places in parts:
            found[name] = {}
            for place in places:
                cells = found[name][place] = {}
                for code in CODES:
                    cell = run(code, place)
                    if cell is not None:
                        cells[code.name] = cell
                    told()
    page.write("erasure-bursts.md", {}, **of_page(found))


def of_page(found: dict[str, dict[float, dict[str, Cell]]]) -> page.Values:
    """Values of the page."""
    across_name = CODES[-1].name
    fluid = {name: largest_difference(found[name]) for name in ("white noise", "fading")}
    return {
        "rates": page.table(["code", "rate"], [[code.name, f"{code.rate:.3f}"] for code in CODES], "lr"),
        "white": table(found["white noise"], "C/N0", lambda at: f"{at:g} dBHz"),
        "white_fluid": 100 * fluid["white noise"],
        "bursts": table(found["bursts"], "mean burst", _bits),
        "burst_fluid_short": 100
        * largest_difference({at: of_segment(found["bursts"][at]) for at in BURST_BITS if at <= SHORT_BITS}),
        "burst_fluid_long": 100
        * largest_difference({at: of_segment(found["bursts"][at]) for at in BURST_BITS if at > SHORT_BITS}),
        "burst_fluid_across": 100
        * largest_difference({at: {across_name: found["bursts"][at][across_name]} for at in BURST_BITS}),
        "short": SHORT_BITS,
        "burst_losses": losses(found["bursts"]),
        "fading": table(found["fading"], "coherence", lambda at: f"{at:g} s"),
        "fading_fluid": 100 * fluid["fading"],
        "outages": table(found["outages"], "outage", lambda at: f"{1e3 * at:g} ms"),
        "every": EVERY,
        "runs": RUNS,
        "outage_runs": OUTAGE_RUNS,
        "duration": DURATION_S,
        "mean_cn0": FADING_DBHZ,
        "deviation": FADING_DB,
        "outage_every": 1 / OUTAGES_PER_S,
    }


def of_segment(cells: dict[str, Cell]) -> dict[str, Cell]:
    """Cells of the codes of one segment."""
    return {code.name: cells[code.name] for code in CODES if code.group == 1}


def largest_difference(found: dict[float, dict[str, Cell]]) -> float:
    """The largest difference of the fluid engine from the packet engine, as a share of it."""
    each = [cell for cells in found.values() for cell in cells.values()]
    return max(abs(cell.fluid_bps / cell.mean_bps - 1) for cell in each if cell.fluid_bps is not None)


def table(found: dict[float, dict[str, Cell]], head: str, words: Callable[[float], str]) -> str:
    """A row per place; in bold the best code, and those within its interval."""
    names = [code.name for code in CODES if any(code.name in cells for cells in found.values())]
    rows = []
    for place, cells in found.items():
        best = max(cells.values(), key=lambda cell: cell.mean_bps)
        row = [words(place)]
        for name in names:
            cell = cells.get(name)
            if cell is None:
                row.append("–")
                continue
            text = f"{cell.mean_bps / 1e3:.0f} ± {cell.half_width_bps / 1e3:.0f}"
            is_best = cell.mean_bps + cell.half_width_bps >= best.mean_bps - best.half_width_bps
            row.append(f"**{text}**" if is_best else text)
        rows.append(row)
    return page.table([head, *names], rows, "lr")


def losses(found: dict[float, dict[str, Cell]]) -> str:
    """Shares of lost segments."""
    names = [code.name for code in CODES]
    rows = [[_bits(place), *(_share(cells[name].loss) for name in names)] for place, cells in found.items()]
    return page.table(["mean burst", *names], rows, "lr")


def _share(loss: float | None) -> str:
    return "–" if loss is None else "0" if loss == 0 else f"{loss:.1e}"


def _bits(bits: float) -> str:
    return f"{bits:g} bits, {1e6 * bits / CHANNEL_BPS:g} µs"


def white(code: Code, cn0_dbhz: float) -> Cell | None:
    """White noise: losses as computed for tables, by soft decisions."""
    if code.name == OVER_GROUP:
        return None
    loss = float(noise_loss(code, np.array([cn0_dbhz]))[0])
    if code.group > 1:
        loss = float(across(np.full((1, GROUP + GROUP_PARITY), loss))[0, 0])
    return ran(code, {"kind": "loss", "loss": loss}, loss=loss, fluid=True)


def burst(code: Code, mean_bits: float) -> Cell:
    """Bursts of noise: half of the bits wrong within, none between; a pattern of lost segments is replayed."""
    wrong = bursts(int(SEGMENTS * 8 * SEGMENT_BYTES / code.rate), every_bits=EVERY_BITS, mean_bits=mean_bits, seed=1)
    lost = np.zeros(SEGMENTS, dtype=np.uint8)
    numbers = code.lost(wrong, 1)
    lost[numbers[numbers < SEGMENTS]] = 1
    trace = Trace("packet-loss", {"lost": lost}, {"title": "bursts"})
    loss = float(lost.mean())
    found = ran(code, {"kind": "packet-trace"}, trace=trace, loss=loss)
    # The fluid engine has no bursts: as many losses, each for itself.
    smooth = fluid_bps(code, {"kind": "loss", "loss": loss}) if loss <= MOST_FLUID_LOSS else None
    return replace(found, fluid_bps=smooth)


def fading(code: Code, coherence_s: float) -> Cell | None:
    """C/N0 in dB is a Gaussian process of the first order; it is constant during a fifth of the coherence time."""
    if code.name == OVER_GROUP:
        return None
    step_s = coherence_s / 5
    count = int(max(2400.0, 400 * coherence_s) / step_s)
    rng, rho = np.random.default_rng(2), np.exp(-step_s / coherence_s)
    noise = rng.normal(size=count)
    level = np.empty(count)
    level[0] = noise[0]
    for at in range(1, count):
        level[at] = rho * level[at - 1] + np.sqrt(1 - rho**2) * noise[at]
    cn0 = FADING_DBHZ + FADING_DB * level
    loss = noise_loss(code, cn0)
    if code.group > 1:
        # Of each block on the channel, and then of each segment.
        block_s = 8 * SEGMENT_BYTES * GROUP / (GROUP + GROUP_PARITY) / (code.rate * CHANNEL_BPS)
        groups = int(count * step_s / block_s) // (GROUP + GROUP_PARITY)
        places = (block_s * np.arange(groups * (GROUP + GROUP_PARITY)) / step_s).astype(np.int64)
        loss = across(loss[places].reshape(groups, -1)).reshape(-1)
        step_s = block_s * (GROUP + GROUP_PARITY) / GROUP
    ber = ber_of(loss, 8 * SEGMENT_BYTES)
    trace = Trace("ber", {"ber": ber}, {"title": "fading", "duration_s": loss.size * step_s})
    channel = {"kind": "ber-trace", "offset_s": "random", "lost_above_ber": 0.49}
    return ran(code, channel, trace=trace, loss=float(np.mean(loss)), fluid=True)


def outages(code: Code, down_s: float) -> Cell:
    """The link is down at random times; a code across segments repairs up to 3 segments that an outage cuts."""
    means = []
    for seed in range(OUTAGE_RUNS):
        rng = np.random.default_rng(seed)
        begins = np.cumsum(rng.exponential(1 / OUTAGES_PER_S, int(2 * DURATION_S * OUTAGES_PER_S) + 50) + down_s)
        down = [(float(one), float(one + down_s)) for one in begins if one < DURATION_S]
        kept = down if code.group == 1 else repaired(code, down)
        channel = {"kind": "outage", "schedule": [list(one) for one in kept]} if kept else {"kind": "none"}
        means.append(ran(code, channel, runs=1).mean_bps)
    half_width = stats.t.ppf(0.975, OUTAGE_RUNS - 1) * np.std(means, ddof=1) / np.sqrt(OUTAGE_RUNS)
    return Cell(float(np.mean(means)), float(half_width))


def repaired(code: Code, down: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """What is left of outages: they are wrong bits of the channel, and only the lost segments are down."""
    segment_s = 8 * SEGMENT_BYTES / (code.rate * CHANNEL_BPS)
    found: list[tuple[float, float]] = []
    for begin, end in down:
        for one in cut(code, int(begin * CHANNEL_BPS), int(end * CHANNEL_BPS)):
            if found and found[-1][1] >= one * segment_s - 1e-9:
                found[-1] = (found[-1][0], float((one + 1) * segment_s))
            else:
                found.append((float(one * segment_s), float((one + 1) * segment_s)))
    # Down in the middle of a segment is enough to lose it, and no other.
    return [(begin + 0.45 * segment_s, end - 0.45 * segment_s) for begin, end in found]


def cut(code: Code, begin: int, end: int) -> list[int]:
    """Segments that are lost if all bytes of the channel from one bit to another are wrong."""
    bits = round(code.group * 8 * SEGMENT_BYTES / code.rate)
    first, last = begin // bits, (end - 1) // bits
    edges = [(begin, end)] if last <= first + 1 else [(begin, (first + 1) * bits), (last * bits, end)]
    # Every fourth bit: all bytes and all blocks have wrong ones. Groups that are wrong as a whole are lost as a whole.
    found = {int(one) for edge in edges for one in code.lost(np.arange(*edge, 4, dtype=np.int64), 0)}
    found.update(range((first + 1) * code.group, last * code.group) if len(edges) > 1 else ())
    return sorted(found)


@cache
def settings() -> dict[str, Setting]:
    """The codes of a segment as settings of the paper's modem, by name."""
    named = {one.code_name: one for one in modem().settings() if one.modulation == "qpsk"}
    return {code.name: named[code.name] for code in CODES if code.group == 1}


def noise_loss(code: Code, cn0_dbhz: Floats) -> Floats:
    """Probability that a segment is lost on the channel; of a code across segments that a block is, which has no other code."""
    name = code.name if code.group == 1 else CODES[0].name
    found: Floats = noise_curves().loss(list(settings()).index(name), cn0_dbhz)
    return found


@cache
def noise_curves() -> Any:
    """Losses of the codes over C/N0."""
    reach = np.array([FADING_DBHZ - 6 * FADING_DB, FADING_DBHZ + 6 * FADING_DB])
    chosen = list(settings().values())
    return curves(modem(), chosen, reach, share=SHARE, flows=1, goodput="relation", path=NetworkPath(ROUND_TRIP_S))


def ran(
    code: Code,
    channel: dict[str, Any],
    *,
    trace: Trace | None = None,
    loss: float | None = None,
    fluid: bool = False,
    runs: int = RUNS,
) -> Cell:
    """Goodput of one Reno connection by the packet engine, and by the fluid engine."""
    with tempfile.TemporaryDirectory() as folder:
        if trace is not None:
            channel = {**channel, "file": str(write(trace, Path(folder) / "channel.npz"))}
        goodput = bulk(farlink.run(scenario(code, channel, runs)))
        smooth = None
        if fluid and loss is not None and loss <= MOST_FLUID_LOSS:
            smooth = fluid_bps(code, {name: value for name, value in channel.items() if name != "offset_s"})
    return Cell(goodput["mean"], goodput["ci95"] or 0.0, smooth, loss)


def fluid_bps(code: Code, channel: dict[str, Any]) -> float:
    """Goodput by the fluid engine."""
    return float(bulk(farlink.run(scenario(code, channel, 1), engine="fluid"))["mean"])


def bulk(result: Any) -> dict[str, Any]:
    """Goodput of the connection."""
    (row,) = (one for one in result.summary() if one["flow"] == "bulk")
    found: dict[str, Any] = row["goodput_bps"]
    return found


def scenario(code: Code, channel: dict[str, Any], runs: int) -> dict[str, Any]:
    """One Reno connection over the link."""
    rate_bps = CHANNEL_BPS * code.rate
    # A code across segments delivers a group when its last segment has arrived.
    wait_s = (code.group - 1) * 8 * SEGMENT_BYTES / rate_bps
    return {
        "title": f"{code.name} under impairments",
        "duration_s": DURATION_S,
        "runs": runs,
        "measure": {"warmup_s": WARMUP_S},
        "link": {
            "rate_bps": rate_bps,
            "delay_s": ROUND_TRIP_S / 2 + wait_s,
            "queue_packets": round((ROUND_TRIP_S + wait_s) * rate_bps / (8 * SEGMENT_BYTES)),
            "channel": channel,
            "return": {"delay_s": ROUND_TRIP_S / 2},
        },
        "transport": {"reno": {"kind": "tcp", "variant": "reno", "segment_bytes": SEGMENT_BYTES - HEADER_BYTES}},
        "flow": {"bulk": {"transport": "reno", "traffic": {"kind": "bulk"}}},
    }


if __name__ == "__main__":
    main()

"""What `docs/validation/bundle-axis.md` says: figures of measured cells, the simulator beside them, the picture."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import page
from bundle_studies import interval

import farlink
from farlink.plot.style import COLOURS, MARKERS, legend_above, new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Cell = Mapping[str, Any]
SEGMENT_BYTES = 1448
# A pseudo-terminal takes this much before its writer has to wait.
PTY_BYTES = 12288
# `queue_s` of farlink's process, 2 s of eight lines, is more than its least queue.
QUEUE_BYTES = 6000
WANTED_PING_S = 3.5
# Where the picture has what is lost.
_LOST_S = 100.0
# A world that woke later than this did not play its schedule; its cell is measured again, and bold until then.
MOST_LATE_S = 0.5


def down_times(one: Cell) -> list[list[list[float]]]:
    """When each line was not part of the bundle: from the loss of its carrier until both ends had it again."""
    cell, found = one["cell"], one["found"]
    times: list[list[list[float]]] = [[] for _ in range(cell["lines"])]
    for at_s, line, what in found["events"]:
        is_down = bool(times[line]) and times[line][-1][1] == cell["duration_s"]
        if what == "up" and is_down:
            times[line][-1][1] = at_s
        elif what in ("down", "left") and not is_down and at_s < cell["duration_s"]:
            times[line].append([max(at_s, 0.0), cell["duration_s"]])
    return times


def lines_up(one: Cell) -> float:
    """Share of the lines that was in the bundle, in the mean."""
    cell = one["cell"]
    down_s = sum(end - begin for times in down_times(one) for begin, end in times)
    return float(1 - down_s / (cell["lines"] * cell["duration_s"]))


def goodput_bps(one: Cell) -> float:
    """TCP's."""
    return float(8 * one["found"]["bytes"] / one["cell"]["duration_s"])


def silence_s(one: Cell) -> float:
    """The longest time in which TCP got nothing in order."""
    times = [0.0, *(at for at, _ in one["found"]["arrived"]), one["cell"]["duration_s"]]
    return float(np.diff(times).max())


def lost_a_drop_s(one: Cell, quiet_bps: float) -> float:
    """What an outage costs beyond the line's absence, in seconds of the whole bundle."""
    cell = one["cell"]
    missing_bps = quiet_bps * lines_up(one) - goodput_bps(one)
    drops = len(one["found"]["outages"])
    return missing_bps / quiet_bps * cell["duration_s"] / drops if drops else math.nan


def ping_s(one: Cell, percentile: float) -> float:
    """A percentile of the echoes' round trips, where those that were lost took for ever."""
    took = sorted(math.inf if took is None else took for _, took in one["found"]["pings"])
    return took[min(len(took) - 1, math.ceil(percentile / 100 * len(took)) - 1)]


def pings_lost(one: Cell) -> float:
    """Share of the echoes that were lost."""
    pings = one["found"]["pings"]
    return sum(took is None for _, took in pings) / len(pings)


def scenario_of(one: Cell) -> dict[str, Any]:
    """What the packet engine plays: the same lines, down at the same times, under the same TCP."""
    cell = one["cell"]
    times = down_times(one)
    if cell["ends"] == "pppd":
        bundle: dict[str, Any] = {"scheduler": "linux", "tty_bytes": PTY_BYTES}
        queue: dict[str, Any] = {}
    else:
        # One fragment is being sent and one waits; nobody acknowledges; ten seconds of patience.
        bundle = {"packets": "fragmented", "scheduler": "earliest-delivery", "line_packets": 2}
        bundle |= {"peer": "rfc1990", "reorder_timeout_s": 10} if any(times) else {}
        queue = {"queue_bytes": QUEUE_BYTES}
    calls = {"calls": {"schedule": times}} if any(times) else {}
    link = {"rate_bps": cell["rate_bps"], "delay_s": cell["delay_s"], "bundle": {"lines": cell["lines"], **bundle, **calls}}
    tcp = {
        "kind": "tcp",
        "variant": "rack",
        "congestion_control": "cubic",
        "segment_bytes": SEGMENT_BYTES,
        "timestamps": True,
        "max_window_segments": cell["window_bytes"] // SEGMENT_BYTES,
        "rto": {"algorithm": "linux", "initial_s": 1, "minimum_s": 0.2},
    }
    return {
        "title": "Three on one axis",
        "duration_s": cell["duration_s"],
        "runs": 1,
        "link": link | queue,
        "transport": {"tcp": tcp, "echo": {"kind": "udp"}},
        "flow": {
            "data": {"transport": "tcp", "traffic": {"kind": "bulk"}},
            "ping": {"transport": "echo", "traffic": {"kind": "cbr", "rate_bps": 8 * 56, "payload_bytes": 56}},
        },
    }


def simulated(one: Cell) -> dict[str, float]:
    """Goodput of the packet engine: if the flow begins at once, and the least and most of ten beginnings within two seconds."""
    begin = {"grid": {"flow.data.start_s": [0.2 * number for number in range(10)]}}
    rows = farlink.run(scenario_of(one) | begin).rows
    of_data = [at for at, flow in enumerate(rows["flow"]) if flow == "data"]
    found = [8 * rows["delivered_bytes"][at] / one["cell"]["duration_s"] for at in of_data]
    return {"bps": found[0], "least": min(found), "most": max(found), "mean": sum(found) / len(found)}


def row(name: str, one: Cell, quiet_bps: float | None) -> list[str]:
    """A cell beside the simulator."""
    found = one["found"]
    of = simulated(one)
    measured_bps = goodput_bps(one)
    late = f"{1e3 * found['late_p99_s']:.0f}/{1e3 * found['late_most_s']:.0f}"
    lost_s = math.nan if quiet_bps is None else lost_a_drop_s(one, quiet_bps)
    return [
        name,
        f"{len(found['outages'])}",
        f"{lines_up(one):.1%}",
        f"{measured_bps:.0f}",
        f"{of['bps']:.0f}",
        f"{of['bps'] / measured_bps - 1:+.1%}",
        f"{of['least']:.0f} to {of['most']:.0f}",
        "-" if math.isnan(lost_s) else f"{lost_s:.1f}",
        f"{silence_s(one):.0f}",
        *(_seconds(ping_s(one, percentile)) for percentile in (50, 95)),
        f"{pings_lost(one):.1%}",
        f"**{late}**" if found["late_most_s"] > MOST_LATE_S else late,
        f"{max(one['load']):.0f}",
        one["commit"],
        one["date"],
    ]


def _seconds(value: float) -> str:
    return "lost" if math.isinf(value) else f"{value:.2f}"


HEAD = [
    "cell",
    "drops",
    "lines up",
    "goodput, bit/s",
    "simulated",
    "apart",
    "begun at other times",
    "lost a drop, s",
    "silence, s",
]
HEAD += ["ping, s: median", "p95", "lost", "late, ms: p99/most", "load", "commit", "date"]


def of_rate(found: Mapping[str, Cell], ends: str, minutes: int) -> list[Cell]:
    """The runs of a rate of drops."""
    return [one for name, one in found.items() if name.startswith(f"{ends}, {minutes} min,")]


def together(values: Sequence[float], digits: int) -> str:
    """Mean and 95 % interval of runs."""
    if len(values) < 2 or not all(map(math.isfinite, values)):
        return ", ".join("lost" if math.isinf(value) else f"{value:.{digits}f}" for value in values) or "-"
    mean = interval(np.array(values))
    return f"{mean.mean:.{digits}f} ± {mean.half_width:.{digits}f}"


def rates(found: Mapping[str, Cell], minutes: Sequence[int]) -> list[list[str]]:
    """A row for each rate of drops: both ends side by side."""
    rows = []
    for each in minutes:
        one_rate = {ends: of_rate(found, ends, each) for ends in ("pppd", "farlink")}
        words = [f"{each} min"]
        for ends, runs in one_rate.items():
            quiet = found.get(f"{ends}, no drop")
            words.append(together([goodput_bps(one) for one in runs], 0))
            words.append(together([lost_a_drop_s(one, goodput_bps(quiet)) for one in runs], 1) if quiet else "-")
            words.append(together([ping_s(one, 95) for one in runs], 2))
        firsts = [found.get(f"{ends}, {each} min, run 1") for ends in ("farlink", "pppd")]
        both = [goodput_bps(one) for one in firsts if one is not None]
        words.append(f"{both[0] / both[1]:.2f}" if len(both) == 2 else "-")
        rows.append(words)
    return rows


RATES_HEAD = ["a line drops every", "pppd: goodput, bit/s", "lost a drop, s", "ping p95, s"]
RATES_HEAD += ["farlink: goodput, bit/s", "lost a drop, s", "ping p95, s", "goodput beside pppd's, run 1"]


def picture(found: Mapping[str, Cell], minutes: Sequence[int]) -> Figure:
    """Goodput and the ping's p95 against the time between drops of a line."""
    figure, axes = new_figure(height_in=6.4, rows=2, is_y_shared=False, is_x_shared=False)
    for place, ends in enumerate(("pppd", "farlink")):
        points = [(each, one) for each in minutes for one in of_rate(found, ends, each)]
        at = [each for each, _ in points]
        style: dict[str, Any] = {"color": COLOURS[place], "linestyle": "none"}
        measured = [goodput_bps(one) / 1000 for _, one in points]
        axes[0].plot(at, measured, marker=MARKERS[place], label=f"{ends}, measured", **style)
        model = [simulated(one)["bps"] / 1000 for _, one in points]
        axes[0].plot(at, model, marker="x", label=f"{ends}, simulated", **style)
        pings = [min(ping_s(one, 95), _LOST_S) for _, one in points]
        axes[1].plot(at, pings, marker=MARKERS[place], label=ends, **style)
    axes[0].set_ylabel("goodput, kbit/s")
    axes[0].set_ylim(bottom=0)
    axes[1].set_ylabel(f"ping beside TCP, p95, s\n({_LOST_S:g}: more than 5 % lost)")
    axes[1].set_yscale("log")
    axes[1].axhline(WANTED_PING_S, color="grey", linewidth=0.8)
    for ax in axes:
        ax.set_xlabel("a line drops every, min")
        legend_above(figure, ax)
    return figure


def write_page(found: Mapping[str, Cell], cells: Mapping[str, Cell]) -> None:
    """Write what there is."""
    if not found:
        raise RuntimeError("nothing was measured yet")
    minutes = sorted({round(cell["mean_up_s"] / 60) for cell in cells.values()} - {0})
    quiet = {ends: found.get(f"{ends}, no drop") for ends in ("pppd", "farlink")}
    rows = []
    for name in sorted(found, key=list(cells).index):
        beside = quiet[found[name]["cell"]["ends"]]
        rows.append(row(name, found[name], None if beside is None else goodput_bps(beside)))
    page.write(
        "bundle-axis.md",
        {"bundle-axis": picture(found, minutes)},
        only=True,
        rates=page.table(RATES_HEAD, rates(found, minutes), "lr"),
        cells=page.table(HEAD, rows, "lr"),
        measured=len(found),
        all_cells=len(cells),
        on_time=sum(one["found"]["late_most_s"] <= MOST_LATE_S for one in found.values()),
    )

"""Figure of a trace: its values over time, their distribution, its gaps or bursts."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from farlink.channels.bursts import segments, trace_runs
from farlink.channels.summary import MOST_WINDOWS, OUTAGE_S, gaps_s, windowed_rate_bps
from farlink.channels.trace import Trace
from farlink.errors import OutputError
from farlink.extras import require
from farlink.output import whole_file
from farlink.plot import ber_trace, cn0_trace, power_trace, style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from farlink.channels.receiver import Receiver

SUFFIXES = (".png", ".svg", ".pdf", ".html")

_INK, _FAINT, _GREY, _BLUE, _RED = style.INK, style.RULE, style.MUTED, style.COLOURS[0], style.COLOURS[1]
_MOST_DOTS = 3_000_000
_FIGURE = {
    "font.size": 9,
    "axes.titlesize": 10,
    "axes.titlelocation": "left",
    "axes.titleweight": "bold",
    "axes.titlecolor": _INK,
    "axes.edgecolor": _GREY,
    "axes.labelcolor": _INK,
    "text.color": _INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "xtick.color": _GREY,
    "ytick.color": _GREY,
    "xtick.labelcolor": _INK,
    "ytick.labelcolor": _INK,
    "svg.hashsalt": "farlink",
}


def figure(trace: Trace, receiver: Receiver | None = None) -> Figure:
    """Draw a trace.

    Parameters
    ----------
    trace
        Any trace.
    receiver
        Whose bit error rate is drawn of a received power.

    Returns
    -------
    Figure
        A Matplotlib figure of three panels; of seven for received power.

    Raises
    ------
    MissingExtraError
        If Matplotlib is not installed.
    """
    matplotlib = require("matplotlib", "a figure")
    require("matplotlib.figure", "a figure")
    with matplotlib.rc_context(_FIGURE):
        is_power = trace.kind == "power"
        drawn: Figure = style.figure_class()(figsize=power_trace.SIZE_IN if is_power else (9.0, 6.0), layout="constrained")
        if is_power:
            drawn.suptitle(_plain(trace.title), x=0.01, ha="left", fontsize=12, fontweight="bold")
            power_trace.draw(drawn, trace, receiver)
            return drawn
        grid = drawn.add_gridspec(2, 2, height_ratios=(1.25, 1))
        panels = (drawn.add_subplot(grid[0, :]), drawn.add_subplot(grid[1, 0]), drawn.add_subplot(grid[1, 1]))
        drawn.suptitle(_plain(trace.title), x=0.01, ha="left", fontsize=12, fontweight="bold")
        _DRAW[trace.kind](trace, *panels)
    return drawn


def save(trace: Trace, path: str | Path, receiver: Receiver | None = None) -> Path:
    """Draw a trace into a file; the file appears whole or not at all.

    Parameters
    ----------
    trace
        Any trace.
    path
        Its suffix decides: one of `SUFFIXES`. HTML stands for itself: the picture is in the page.
    receiver
        Whose bit error rate is drawn of a received power.

    Returns
    -------
    Path
        The file.

    Raises
    ------
    OutputError
        If the suffix is none of `SUFFIXES` or the file cannot be written.
    """
    path = Path(path)
    if path.suffix not in SUFFIXES:
        raise OutputError(f"{path}: no picture has the suffix {path.suffix or 'nothing'!r}", f"use {', '.join(SUFFIXES)}")
    drawn = figure(trace, receiver)
    matplotlib = require("matplotlib", "a figure")
    buffer = io.BytesIO()
    kind = "svg" if path.suffix == ".html" else path.suffix[1:]
    stamp = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(kind, {})
    with matplotlib.rc_context(_FIGURE):
        drawn.savefig(buffer, format=kind, dpi=130, metadata=stamp)
    data = buffer.getvalue()
    if path.suffix == ".html":
        data = _page(trace, data.decode(), style.least_width_px(drawn), receiver).encode()
    with whole_file(path) as temporary:
        temporary.write_bytes(data)
    return path


def _page(trace: Trace, svg: str, least_px: int, receiver: Receiver | None) -> str:
    """The picture and the properties of the trace; below a width in pixels the picture scrolls."""
    from html import escape

    from farlink.channels.describe import describe

    rows = "".join(f"<tr><th>{escape(name)}</th><td>{escape(value)}</td></tr>" for name, value in describe(trace, receiver))
    look = (
        "body{font:15px/1.5 system-ui,sans-serif;color:#222;max-width:960px;margin:2rem auto;padding:0 1rem}"
        f".scroll{{overflow-x:auto}}svg{{width:100%;min-width:{least_px}px;height:auto}}"
        "table{border-collapse:collapse}"
        "th{text-align:left;font-weight:normal;padding:.15rem 2rem .15rem 0;color:#555}"
    )
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
        f"<title>{escape(trace.title)}</title><style>{look}</style><h1>{escape(trace.title)}</h1>"
        f'<div class="scroll">{svg[svg.index("<svg") :]}</div><div class="scroll"><table>{rows}</table></div></html>\n'
    )


def _plain(title: str) -> str:
    """A title in which a dollar is one, and begins no formula."""
    return title.replace("$", r"\$")


def _draw_capacity(trace: Trace, over_time: Axes, cdf: Axes, gap_panel: Axes) -> None:
    duration_s = float(trace.meta["duration_s"])
    # A long trace in as many windows as a picture can show.
    window_s = 0.1 if duration_s <= 300 else max(1.0, float(f"{duration_s / 1e5:.1g}"))
    rates = windowed_rate_bps(trace, window_s)
    unit, scale = _rate_unit(float(rates.max()))
    window = "100 ms" if window_s == 0.1 else f"{window_s:g} s"
    _steps(over_time, rates / scale, np.arange(rates.size + 1) * window_s, fill=True)
    mean = float(rates.mean()) / scale
    over_time.axhline(mean, color=_INK, linewidth=0.8, linestyle="--")
    note = f"mean {mean:.3g} {unit}"
    over_time.set(title=f"Capacity, mean of each {window}   (dashed: {note})", xlabel="time, s", ylabel=f"capacity, {unit}")
    over_time.set(xlim=(0, duration_s), ylim=(0, None))
    for length_s, color in ((0.1, _BLUE), (1.0, _RED)):
        if 10 * length_s <= duration_s <= MOST_WINDOWS * length_s:
            values = windowed_rate_bps(trace, length_s)
            _cdf(cdf, values / scale, color, "100 ms" if length_s == 0.1 else "1 s")
    cdf.set(title="Share of windows with at most this capacity", xlabel=f"capacity, {unit}", ylabel="share", xlim=(0, None))
    if cdf.lines:
        cdf.legend(title="window", frameon=False, loc="lower right")
    _draw_gaps(gap_panel, gaps_s(trace), duration_s)


def _draw_gaps(panel: Axes, gaps: NDArray[np.float64], duration_s: float) -> None:
    """Share of time spent in gaps longer than a length, as a sender's timer would see it."""
    gaps = np.sort(gaps[gaps > 0])[::-1]
    panel.set(title="Time spent in gaps longer than this", xlabel="gap, s", ylabel="share of time")
    if gaps.size == 0:
        panel.text(0.5, 0.5, "no gap", transform=panel.transAxes, ha="center", color=_INK)
        return
    share = np.cumsum(gaps) / duration_s
    panel.step(np.append(gaps, gaps[-1] / 2), np.append(share, share[-1]), where="post", color=_RED, linewidth=1.2)
    panel.axvline(OUTAGE_S, color=_GREY, linewidth=0.8, linestyle=":")
    outage = float(gaps[gaps > OUTAGE_S + 1e-9].sum()) / duration_s
    panel.set(xscale="log", yscale="log", ylim=(share[0] / 10, 1.5))
    panel.text(
        0.04,
        0.06,
        f"longest {gaps[0]:.3g} s\nabove 100 ms (dotted): {100 * outage:.3g} % of time",
        transform=panel.transAxes,
        ha="left",
        va="bottom",
    )
    panel.grid(color=_FAINT, linewidth=0.5)


def _draw_delay(trace: Trace, over_time: Axes, cdf: Axes, tail: Axes) -> None:
    time_s, delay_ms = trace["time_s"], trace["delay_s"] * 1000
    duration_s = float(trace.meta["duration_s"])
    edges = np.concatenate((time_s, [duration_s]))
    _steps(over_time, delay_ms, edges)
    over_time.set(title="One-way delay", xlabel="time, s", ylabel="delay, ms", xlim=(0, duration_s), ylim=(0, None))
    _cdf(cdf, delay_ms, _BLUE, "delay")
    for percent, offset in ((1, 4), (50, -3), (99, -12)):
        value = float(np.percentile(delay_ms, percent))
        cdf.plot([value], [percent / 100], "o", color=_INK, markersize=4)
        cdf.annotate(f"{percent} %: {value:.3g} ms", (value, percent / 100), (8, offset), textcoords="offset points")
    cdf.set(title="Share of time with at most this delay", xlabel="delay, ms", ylabel="share")
    if "drop_rate" in trace.arrays:
        dropped = 100 * trace["drop_rate"]
        tail.vlines(time_s[dropped > 0], 0, dropped[dropped > 0], color=_RED, linewidth=0.7)
        tail.set(title=f"Pings lost   (mean {dropped.mean():.2g} %)", xlabel="time, s", ylabel="lost, %")
        tail.set(xlim=(0, duration_s), ylim=(0, None))
        return
    steps = np.diff(delay_ms)
    # A constant delay has no change by which to choose the range.
    limit = float(np.abs(steps).max(initial=0.0)) or 1.0
    tail.hist(steps, bins=np.linspace(-limit, limit, 61).tolist(), color=_BLUE)
    tail.set(title="Change from one value to the next", xlabel="change, ms", ylabel="count", yscale="log")
    # From below a count of one, or columns of equal height would show only their differences.
    tail.set_ylim(bottom=0.5)


def _draw_loss(trace: Trace, raster: Axes, histogram: Axes, spread: Axes) -> None:
    colors = require("matplotlib.colors", "a figure")
    parts = segments(trace)
    received = np.array([1 - part.mean() for part in parts])
    lost = trace["lost"]
    if len(parts) > 1:
        order = np.argsort(received, kind="stable")[::-1]
        rows = [parts[index] for index in order]
        what, ylabel = f"{len(parts)} recordings, best first", "recording"
    else:
        pooled, each = _pooled(lost)
        width = int(min(max(50, np.ceil(np.sqrt(pooled.size * 4) / 50) * 50), 1000))
        rows = np.split(pooled, np.arange(width, pooled.size, width))
        what, ylabel = f"{width * each} frames per line", "line"
    image = np.full((len(rows), max(row.size for row in rows)), np.nan, dtype=np.float32)
    for index, row in enumerate(rows):
        image[index, : row.size] = row
    palette = colors.ListedColormap(["#dbe6f2", _RED])
    raster.imshow(image, aspect="auto", interpolation="nearest", cmap=palette, vmin=0, vmax=1)
    raster.set(title=f"Lost frames (orange), {what}: {100 * lost.mean():.3g} % of {lost.size}", xlabel="frame", ylabel=ylabel)
    runs = trace_runs(trace)
    _run_histogram(histogram, runs.lost, "Bursts of losses", _RED)
    if len(parts) > 1:
        spread.hist(100 * received, bins=np.linspace(0, 100, 41).tolist(), color=_BLUE)
        spread.set(title="Recordings by share received", xlabel="received, %", ylabel="recordings", yscale="log")
    else:
        _run_histogram(spread, runs.received, "Good runs between them", _BLUE)


def _pooled(lost: NDArray[np.uint8]) -> tuple[NDArray[np.uint8], int]:
    """As many dots as a picture can show, each for several frames; a dot is lost if one of its frames is."""
    each = -(-lost.size // _MOST_DOTS)
    padded = np.append(lost, np.zeros(-lost.size % each, dtype=np.uint8))
    return padded.reshape(-1, each).max(axis=1), each


def _run_histogram(panel: Axes, lengths: NDArray[np.int64], title: str, color: str) -> None:
    panel.set(title=title, xlabel="length, frames", ylabel="count")
    if lengths.size == 0:
        panel.text(0.5, 0.5, "none", transform=panel.transAxes, ha="center", color=_INK)
        return
    longest = int(lengths.max())
    if longest <= 60:
        panel.bar(*np.unique(lengths, return_counts=True), color=color, width=0.9)
        panel.locator_params(axis="x", integer=True)
    else:
        bins = np.unique(np.round(np.geomspace(1, longest + 1, 40))).tolist()
        panel.hist(lengths, bins=bins, color=color)
        panel.set(xscale="log")
    if lengths.size > 50:
        panel.set_yscale("log")
    panel.text(
        0.97,
        0.94,
        f"{lengths.size} of them, mean {lengths.mean():.3g}, longest {longest}",
        transform=panel.transAxes,
        ha="right",
        va="top",
    )


def _draw_bits(trace: Trace, over_bits: Axes, distances: Axes, count: Axes) -> None:
    position, bits = trace["position"].astype(np.float64), float(trace["bits"])
    counts, edges = np.histogram(position, bins=min(400, max(20, int(bits // 1000))), range=(0, bits))
    over_bits.stairs(counts / np.diff(edges), edges, color=_RED, fill=True, alpha=0.6)
    over_bits.set(title=f"Bit error ratio   (mean {position.size / bits:.3g})", xlabel="bit", ylabel="errors per bit")
    over_bits.set(xlim=(0, bits), ylim=(0, None))
    gaps = np.diff(position)
    distances.set(title="Distance from one wrong bit to the next", xlabel="distance, bits", ylabel="count")
    if gaps.size:
        distances.hist(gaps, bins=np.geomspace(1, max(2.0, gaps.max()) + 1, 40).tolist(), color=_BLUE)
        distances.set(xscale="log")
    values, often = np.unique(counts, return_counts=True)
    count.bar(values, often, color=_GREY)
    count.set(title="Wrong bits per stretch of the upper panel", xlabel="wrong bits", ylabel="stretches")


def _steps(panel: Axes, values: NDArray[np.float64], edges: NDArray[np.floating], *, fill: bool = False) -> None:
    """Values that are constant between edges. `Axes.stairs` takes seconds for 100,000: it walks along its outline in Python."""
    if fill:
        # The area up to the largest of neighbouring values, in no more steps than a picture shows.
        first = np.arange(0, values.size, -(-values.size // 4000))
        ends = edges[np.append(first, values.size)]
        panel.fill_between(
            np.repeat(ends, 2)[1:-1], np.repeat(np.maximum.reduceat(values, first), 2), color=_BLUE, alpha=0.25, linewidth=0
        )
    panel.plot(np.repeat(edges, 2)[1:-1], np.repeat(values, 2), color=_BLUE, linewidth=0.7)


def _cdf(panel: Axes, values: NDArray[np.float64], color: str, label: str) -> None:
    panel.ecdf(values, color=color, linewidth=1.3, label=label)
    panel.grid(color=_FAINT, linewidth=0.5)


def _rate_unit(highest_bps: float) -> tuple[str, float]:
    for unit, scale in (("Gbit/s", 1e9), ("Mbit/s", 1e6), ("kbit/s", 1e3)):
        if highest_bps >= scale:
            return unit, scale
    return "bit/s", 1.0


_DRAW: dict[str, Any] = {
    "ber": ber_trace.draw,
    "cn0": cn0_trace.draw,
    "delivery": _draw_capacity,
    "rate": _draw_capacity,
    "delay": _draw_delay,
    "packet-loss": _draw_loss,
    "bit-errors": _draw_bits,
}

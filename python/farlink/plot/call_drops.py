"""Figure of calls and drops: histogram and survival with the fitted distributions, drops over time, when each link was up."""

from __future__ import annotations

import io
import math
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from farlink.channels.calls.clusters import drop_clocks
from farlink.channels.calls.distributions import Series
from farlink.channels.calls.goodness import BINS, kaplan_meier
from farlink.channels.calls.links import Link
from farlink.channels.calls.samples import bundle_span_s
from farlink.channels.calls.study import Study, Times
from farlink.errors import OutputError
from farlink.extras import require
from farlink.output import whole_file
from farlink.plot import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SUFFIXES = (".png", ".svg", ".pdf")

_UP, _DROP = style.COLOURS[0], style.COLOURS[1]
_LOOKS = {
    "exponential": (style.COLOURS[6], "-"),
    "weibull": (style.COLOURS[2], "--"),
    "two-state-markov": (style.COLOURS[3], "-."),
}
_MOST_LINES = 8
_PANEL_IN = 2.6
# The survival curve ends when this few calls are left under observation.
_FEW = 10
_UNITS = (("s", 1.0, 300.0), ("min", 60.0, 300.0), ("h", 3600.0, 96.0), ("days", 86_400.0, math.inf))


def figure(study: Study) -> Figure:
    """Draw a study.

    Parameters
    ----------
    study
        What the logs say.

    Returns
    -------
    Figure
        A Matplotlib figure of five panels, or of seven if the logs have handovers.

    Raises
    ------
    MissingExtraError
        If Matplotlib is not installed.
    """
    matplotlib = require("matplotlib", "a figure")
    require("matplotlib.figure", "a figure")
    times = study.whole.times
    strips = 0.6 + 0.32 * len(study.links)
    with matplotlib.rc_context(style.LOOK):
        count = 6 if "handover" in times else 4
        size_in = (style.WIDTH_IN, 0.6 + _PANEL_IN * count + strips)
        drawn: Figure = style.figure_class()(figsize=size_in, layout="constrained")
        grid = drawn.add_gridspec(count + 1, 1, height_ratios=(*(_PANEL_IN,) * count, strips))
        panels = [drawn.add_subplot(grid[row, 0]) for row in range(count)]
        between = times["airtime"] if times["airtime"].sample.events else times["inter-drop"]
        _histogram(panels[0], between, "time connected" if between is times["airtime"] else "time")
        is_known = times["up"].sample.events > 0
        _survival(
            panels[1],
            times["up"] if is_known else times["inter-drop"],
            "Still up after" if is_known else "Still without a drop after",
        )
        _survival(panels[2], times["redial"], "Not yet back after a drop")
        _cumulative(panels[3], study.links)
        if "handover" in times:
            _histogram(panels[4], times["handover"], "time", "handovers")
            _survival(panels[5], times["handover"], "Not yet handed over after", "handovers")
        _strips(drawn.add_subplot(grid[count, 0]), study.links)
        drawn.suptitle(textwrap.fill(_title(study), 50), x=0.01, ha="left", fontsize=12, fontweight="bold")
    return drawn


def check_suffix(path: Path) -> None:
    """Refuse a picture of an unknown kind.

    Raises
    ------
    OutputError
        If the suffix is not one of `SUFFIXES`.
    """
    if path.suffix not in SUFFIXES:
        raise OutputError(f"{path}: no picture has the suffix {path.suffix or 'nothing'!r}", f"use {', '.join(SUFFIXES)}")


def save(study: Study, path: str | Path) -> Path:
    """Draw a study into a file; the file appears whole or not at all.

    Parameters
    ----------
    study
        What the logs say.
    path
        Its suffix decides: one of `SUFFIXES`.

    Raises
    ------
    OutputError
        If the suffix is not one of `SUFFIXES` or the file cannot be written.
    """
    path = Path(path)
    check_suffix(path)
    drawn = figure(study)
    matplotlib = require("matplotlib", "a figure")
    buffer = io.BytesIO()
    stamp = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}.get(path.suffix, {})
    with matplotlib.rc_context({**style.LOOK, "svg.hashsalt": "farlink"}):
        drawn.savefig(buffer, format=path.suffix[1:], dpi=130, metadata=stamp)
    with whole_file(path) as temporary:
        temporary.write_bytes(buffer.getvalue())
    return path


def _title(study: Study) -> str:
    whole = study.whole
    names = study.links[0].name if len(study.links) == 1 else f"{len(study.links)} links"
    connected = f", {whole.connected_s / 3600:.3g} h connected" if whole.connected_s else ""
    handovers = sum(len(link.handovers_s) for link in study.links)
    return f"{names}: {whole.drops} drops in {whole.calls} calls{connected}" + (f", {handovers} handovers" if handovers else "")


def _histogram(panel: Axes, times: Times, what: str, events: str = "drops") -> None:
    """Fifteen bins of equal width, scaled to a density, as in figure 5.2 of the thesis."""
    values = times.sample.times_s[times.sample.is_observed]
    panel.set(title=f"Density of the {what} between {events}", ylabel="density")
    if values.size < 2:
        _say(panel, f"fewer than 2 {events}")
        return
    unit, scale = _unit(float(values.max()))
    edges = np.linspace(0.0, float(values.max()), BINS + 1)
    counts, _ = np.histogram(values, edges)
    panel.stairs(counts / (values.size * np.diff(edges) / scale), edges / scale, fill=True, color=_UP, alpha=0.3)
    at = np.linspace(edges[-1] / 400, edges[-1], 400)
    highest = float((counts / (values.size * np.diff(edges) / scale)).max())
    for one in times.judged:
        if one.fit.is_fitted:
            colour, look = _LOOKS[one.fit.distribution]
            density = one.fit.density(at) * scale
            # A density that is infinite at 0 leaves any axes.
            beyond = ", beyond the top at 0" if density[0] > 1.6 * highest else ""
            panel.plot(at / scale, density, color=colour, linestyle=look, label=f"{one.fit.distribution}{beyond}")
    panel.set(xlabel=f"{what}, {unit}", ylabel=f"density, 1/{unit}", xlim=(0, edges[-1] / scale), ylim=(0, 1.6 * highest))
    panel.legend(title=f"{values.size} {events}, {BINS} bins")
    panel.grid(True)


def _survival(panel: Axes, times: Times, title: str, events: str = "drops") -> None:
    """Kaplan and Meier's estimate; an exponential is a straight line."""
    panel.set(title=title, ylabel="probability", xlabel="time")
    if times.sample.events < 2:
        _say(panel, f"fewer than 2 {events}")
        return
    at, alive = kaplan_meier(times.sample)
    longest = float(times.sample.times_s.max())
    # Times that few calls survived are uncertain and would squeeze the rest.
    size = times.sample.times_s.size
    if not times.sample.is_complete and size > 2 * _FEW:
        longest = float(np.sort(times.sample.times_s)[-_FEW])
    is_shown = (alive >= 0.004) & (at <= longest)
    if not is_shown.any():
        is_shown[0] = True
    reach = longest if not times.sample.is_complete or is_shown.all() else float(at[is_shown][-1]) * 1.1
    unit, scale = _unit(reach)
    panel.step(
        np.concatenate(([0.0], at[is_shown], [reach])) / scale,
        np.concatenate(([1.0], alive[is_shown], [alive[is_shown][-1]])),
        where="post",
        color=_UP,
        linewidth=1.8,
        label="measured",
    )
    grid = np.linspace(reach / 400, reach, 400)
    for one in times.judged:
        if one.fit.is_fitted:
            colour, look = _LOOKS[one.fit.distribution]
            panel.plot(
                grid / scale, one.fit.survival(grid), color=colour, linestyle=look, linewidth=1.2, label=one.fit.distribution
            )
    lowest = max(float(alive[is_shown].min()), 0.004)
    panel.set(
        yscale="log", xlabel=f"time, {unit}", xlim=(0, reach / scale), ylim=(lowest * (0.6 if lowest < 0.3 else 0.97), 1.02)
    )
    if lowest >= 0.1:
        panel.set_yscale("linear")
    panel.legend()
    panel.grid(True)


def _cumulative(panel: Axes, links: list[Link]) -> None:
    """Number of drops over connected time: a straight line for a constant rate, stairs if they cluster."""
    has_times = any(not math.isnan(call.up_s) for link in links for call in link.calls)
    clocks = drop_clocks([link for link in links if link.calls])
    longest = max(length_s for _, length_s in clocks)
    unit, scale = _unit(longest)
    named = [link for link in links if link.calls]
    for index, (link, (times_s, length_s)) in enumerate(zip(named, clocks, strict=True)):
        colour = style.COLOURS[index % len(style.COLOURS)]
        steps = np.concatenate(([0.0], times_s, [length_s])) / scale
        counts = np.concatenate((np.arange(times_s.size + 1), [times_s.size]))
        label = link.name if index < _MOST_LINES else None
        panel.step(steps, counts, where="post", color=colour, linewidth=1.3, label=label)
        panel.plot([0, length_s / scale], [0, times_s.size], color=colour, linewidth=0.8, linestyle=":")
    clock = "connected" if has_times else "since the first call"
    panel.set(title="Drops so far (dotted: constant rate)", xlabel=f"time {clock}, {unit}", ylabel="drops")
    panel.set_xlim(0, longest / scale)
    # Room for the legend above the stairs, and for the stairs below the top.
    longest_name = max(len(link.name) for link in named[:_MOST_LINES])
    columns = 3 if longest_name <= 8 else 2 if longest_name <= 14 else 1
    rows = -(-min(len(named), _MOST_LINES) // columns)
    panel.set_ylim(0, (1.08 + 0.13 * rows) * max(times_s.size for times_s, _ in clocks) or 1.0)
    panel.legend(loc="upper left", ncols=columns)
    panel.grid(True)


def _strips(panel: Axes, links: list[Link]) -> None:
    """When each link was up, and where it dropped."""
    is_common = len(links) == 1 or bundle_span_s(links) is not None
    first_s = min(link.first_s for link in links)
    origins = [first_s if is_common else link.first_s for link in links]
    longest = max(link.last_s - origin for link, origin in zip(links, origins, strict=True))
    unit, scale = _unit(longest)
    for row, (link, origin) in enumerate(zip(links, origins, strict=True)):
        starts = np.array([(call.start_s - origin) / scale for call in link.calls])
        lengths = np.nan_to_num([call.up_s / scale for call in link.calls])
        _spans(panel, starts, lengths, row)
        drops = [(call.drop_s - origin) / scale for call in link.drops]
        panel.plot(
            drops, [row - 0.42] * len(drops), linestyle="none", marker="v", markersize=3.5, color=_DROP, markeredgewidth=0
        )
    panel.set_yticks(range(len(links)), [link.name for link in links])
    panel.set_ylim(len(links) - 0.4, -0.7)
    since = "the first call" if is_common else "the first call of each link"
    lengths_s = [call.up_s for link in links for call in link.calls if not math.isnan(call.up_s)]
    is_thin = not lengths_s or float(np.median(lengths_s)) < longest / 1000
    wider = "; calls drawn wider than they are" if is_thin else ""
    panel.set(
        title=f"Up (blue) and dropped (orange){wider.replace('; ', chr(10))}",
        xlabel=f"time since {since}, {unit}",
        xlim=(0, longest / scale),
    )
    panel.grid(True, axis="x")


def _spans(panel: Axes, starts: Series, lengths: Series, row: int) -> None:
    """Rectangles as one outline: thousands of calls are thousands of elements otherwise."""
    patches, paths = require("matplotlib.patches", "a figure"), require("matplotlib.path", "a figure")
    ends = starts + lengths
    low, high = np.full(starts.size, row - 0.3), np.full(starts.size, row + 0.3)
    corners = np.stack((starts, low, starts, high, ends, high, ends, low, starts, low), axis=-1).reshape(-1, 2)
    codes = np.tile([paths.Path.MOVETO, *[paths.Path.LINETO] * 3, paths.Path.CLOSEPOLY], starts.size)
    # A line around each, so that a call of minutes shows in a log of months.
    outline = patches.PathPatch(paths.Path(corners, codes), facecolor=_UP, edgecolor=_UP, linewidth=0.25, snap=False)
    panel.add_patch(outline)


def _say(panel: Axes, text: str) -> None:
    panel.text(0.5, 0.5, text, transform=panel.transAxes, ha="center", color=style.INK)
    panel.set(xticks=[], yticks=[])


def _unit(longest_s: float) -> tuple[str, float]:
    return next((unit, size) for unit, size, limit in _UNITS if longest_s / size < limit)

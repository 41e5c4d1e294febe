"""A quantity against the grid: a line per transport, flow or other key, with its intervals.

More lines than can be told apart get several panels; in each, the lines of the others are grey. A quantity that spans two
decades gets a logarithmic axis.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from farlink import units
from farlink.intervals import half_width
from farlink.plot.style import (
    COLOURS,
    MARKERS,
    MOST_SERIES,
    RULE,
    error_bars,
    legend_above,
    needs_log,
    new_figure,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Entry = dict[str, Any]
Line = list[tuple[float, float, float]]

_MOST_TICKS = 7
# Height of a legend for which a panel has room, inches: two lines.
_LEGEND_IN = 0.5
_MOST_SHIFT = 0.05

_TITLE = {"goodput_bps": "goodput", "delay_mean_s": "delay to in-order delivery", "delay_p99_s": "99 % delay"}


def against_grid(
    summary: list[Entry], grid_paths: list[str], quantity: str = "goodput_bps", *, title: str | None = None
) -> Figure:
    """Draw a quantity of a result's summary.

    Parameters
    ----------
    summary
        As `Result.summary` returns it.
    grid_paths
        The keys that vary.
    quantity
        What to draw, a key of the entries.
    title
        Shown above the axes.
    """
    if summary and quantity not in summary[0]:
        raise ValueError(f"no quantity {quantity!r}; the result has {', '.join(quantities(summary))}")
    x_path = main_path(summary, grid_paths)
    drawn = lines(summary, grid_paths, x_path, quantity) if x_path else {}
    panels = panels_of(list(drawn))
    height_in = 3.9 if len(panels) == 1 else 1.2 + 2.7 * len(panels)
    if x_path is None:
        height_in = 1.4 + 0.36 * len(_shown_means(summary, quantity))
    figure, axes = new_figure(height_in=height_in, rows=len(panels))
    if title:
        figure.suptitle(title, x=0.01, ha="left", fontsize=11, fontweight="bold")
    if x_path is None:
        _draw_categories(axes[0], summary, grid_paths, quantity)
        return figure
    legends_in = 0.0
    for ax, names in zip(axes, panels, strict=True):
        _draw_lines(ax, drawn, names, x_path, quantity)
        legends_in += max(0.0, legend_above(figure, ax, columns=4 if len(panels) == 1 else 3) - _LEGEND_IN)
    # Long names take room of their own, not that of the axes.
    figure.set_figheight(figure.get_figheight() + legends_in)
    for ax in axes[:-1]:
        ax.set_xlabel("")
    return figure


def panels_of(names: list[str]) -> list[list[str]]:
    """Names of the lines of each panel, in their order: as few panels as can be, of about as many lines each.

    Examples
    --------
    >>> [len(names) for names in panels_of([str(i) for i in range(13)])]
    [5, 4, 4]
    """
    count = max(1, math.ceil(len(names) / MOST_SERIES))
    sizes = [len(names) // count + (place < len(names) % count) for place in range(count)]
    starts = [sum(sizes[:place]) for place in range(count)]
    return [names[start : start + size] for start, size in zip(starts, sizes, strict=True)]


def quantities(summary: list[Entry]) -> list[str]:
    """The quantities of a summary."""
    return [key for key, value in summary[0].items() if isinstance(value, dict) and "ci95" in value] if summary else []


def main_path(summary: list[Entry], grid_paths: list[str]) -> str | None:
    """The numeric key with the most values, for the horizontal axis; None if no number varies."""
    best, most = None, 1
    for path in grid_paths:
        values = [entry[path] for entry in summary]
        if all(isinstance(v, int | float) and not isinstance(v, bool) for v in values) and len(set(values)) > most:
            best, most = path, len(set(values))
    return best


def lines(summary: list[Entry], grid_paths: list[str], x_path: str, quantity: str) -> dict[str, Line]:
    """Points ``(x, mean, half_width)`` of each line, by its name in the legend."""
    entries = shown_flows(summary)
    others = [path for path in grid_paths if path != x_path]
    others += [key for key in ("engine", "flow") if len({entry[key] for entry in entries}) > 1]
    others = [key for key in others if _varies(entries, key)]
    found: dict[str, Line] = {}
    for entry in entries:
        mean, ci = entry[quantity]["mean"], half_width(entry[quantity])
        name = ", ".join(units.show(entry[path], path) for path in others)
        if mean is not None:
            found.setdefault(name, []).append((float(entry[x_path]), mean, ci if ci is not None else math.nan))
    return {name: sorted(points) for name, points in found.items()}


def shown_flows(summary: list[Entry]) -> list[Entry]:
    """Single flows if a figure has room for them, otherwise the aggregate."""
    summary = [entry for entry in summary if entry["transport"] != "path"]
    flows = {entry["flow"] for entry in summary if entry["flow"] != "all"}
    if 1 < len(flows) <= 6:
        return [entry for entry in summary if entry["flow"] != "all"]
    return [entry for entry in summary if entry["flow"] == "all"] or summary


def is_log_spaced(values: list[float]) -> bool:
    """Whether positive values span more than a factor of twenty with steps that grow."""
    ordered = sorted(set(values))
    if len(ordered) < 3 or ordered[0] <= 0 or ordered[-1] / ordered[0] < 20:
        return False
    steps = [after - before for before, after in pairwise(ordered)]
    return steps[-1] > 3 * steps[0]


def _varies(entries: list[Entry], key: str) -> bool:
    return len({str(entry[key]) for entry in entries}) > 1


def _shown_means(summary: list[Entry], quantity: str) -> list[Entry]:
    return [entry for entry in shown_flows(summary) if entry[quantity]["mean"] is not None]


def _draw_lines(ax: Axes, drawn: dict[str, Line], names: list[str], x_path: str, quantity: str) -> None:
    """The lines of these names in colours, the others in grey."""
    all_x = [x for points in drawn.values() for x, _, _ in points]
    is_log = is_log_spaced(all_x)
    low, high = min(all_x, default=0.0), max(all_x, default=0.0)
    x_scale = units.scale_for(x_path, all_x)
    y_scale = units.scale_for(quantity, [mean for points in drawn.values() for _, mean, _ in points])
    means = [mean * y_scale.factor for points in drawn.values() for _, mean, _ in points]
    is_y_log = needs_log(means)
    floor = _floor(means) if is_y_log else 0.0
    for name, points in drawn.items():
        if name not in names:
            xs = [x * x_scale.factor for x, _, _ in points]
            ax.plot(xs, [max(mean * y_scale.factor, floor) for _, mean, _ in points], color=RULE, linewidth=1.2, zorder=1)
    for i, name in enumerate(names):
        points = drawn[name]
        # All lines of a point stay near it, however many they are.
        shift = min(0.011, _MOST_SHIFT / len(names)) * (i - (len(names) - 1) / 2)
        xs = _shifted([x * x_scale.factor for x, _, _ in points], low, high, x_scale.factor, shift, is_log)
        ys = [mean * y_scale.factor for _, mean, _ in points]
        ax.errorbar(
            xs,
            [max(y, floor) for y in ys],
            yerr=error_bars(0.0 if y < floor else ci * y_scale.factor for y, (_, _, ci) in zip(ys, points, strict=True)),
            label=name or None,
            color=COLOURS[i],
            marker=MARKERS[i],
            markersize=5,
            capsize=3,
            elinewidth=1.2,
        )
        beneath = [(x, floor) for x, y in zip(xs, ys, strict=True) if y < floor]
        if beneath:
            ax.plot(
                *zip(*beneath, strict=True),
                linestyle="none",
                marker="v",
                color=COLOURS[i],
                markerfacecolor="white",
                clip_on=False,
            )
    if is_log:
        ax.set_xscale("log")
    values = sorted(set(all_x))
    if len(values) <= _MOST_TICKS and not (is_log and all(math.log10(x).is_integer() for x in values)):
        ax.set_xticks([x * x_scale.factor for x in values], [x_scale.exact(x) for x in values])
        ax.minorticks_off()
    tops = [(mean + (0.0 if math.isnan(ci) else ci)) * y_scale.factor for points in drawn.values() for _, mean, ci in points]
    if is_y_log:
        ax.set_yscale("log")
        ax.set_ylim(floor, 1.3 * max(tops))
    else:
        ax.set_ylim(0, 1.08 * max(tops, default=1.0) or 1.0)
    ax.set_xlabel(_axis(units.label(x_path), x_scale.unit))
    ax.set_ylabel(_axis(_TITLE.get(quantity, units.label(quantity)), y_scale.unit))


def _floor(means: list[float]) -> float:
    """Start of a logarithmic axis: below the least mean above 0, but at most five decades below the greatest."""
    positive = [mean for mean in means if mean > 0]
    return max(0.7 * min(positive), 1e-5 * max(positive))


def _shifted(xs: list[float], low: float, high: float, factor: float, shift: float, is_log: bool) -> list[float]:
    """Set the points of one line a little aside, so that intervals of several lines do not hide each other."""
    if is_log:
        return [x * (high / low) ** (shift / 2) for x in xs]
    return [x + (high - low) * factor * shift / 2 for x in xs]


def _draw_categories(ax: Axes, summary: list[Entry], grid_paths: list[str], quantity: str) -> None:
    entries = _shown_means(summary, quantity)
    is_told_by_grid = any(path.endswith(".transport") for path in grid_paths)
    others = ("engine", "flow") if is_told_by_grid else ("engine", "flow", "transport")
    keys = [*grid_paths, *(key for key in others if _varies(entries, key))]
    names = [", ".join(units.show(entry[key], key) for key in keys) or str(entry["transport"]) for entry in entries]
    scale = units.scale_for(quantity, [entry[quantity]["mean"] for entry in entries])
    for i, entry in enumerate(entries):
        mean, ci = entry[quantity]["mean"] * scale.factor, (half_width(entry[quantity]) or 0.0) * scale.factor
        ax.barh(i, mean, xerr=error_bars([ci]), height=0.62, color=COLOURS[0], ecolor="#1b2733", capsize=4)
        ax.annotate(f" {mean:.3g}", (mean + ci, i), va="center", xytext=(4, 0), textcoords="offset points")
    ax.set_yticks(range(len(names)), names)
    ax.invert_yaxis()
    ax.grid(False, axis="y")
    ax.margins(x=0.12)
    ax.set_xlim(left=0)
    ax.set_xlabel(_axis(_TITLE.get(quantity, units.label(quantity)), scale.unit))


def _axis(name: str, unit: str) -> str:
    return f"{name} ({unit})" if unit else name

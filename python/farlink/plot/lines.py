"""Curves against a linear axis, with intervals: kinds in colours of their own, or ordered from dark to light."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from farlink.plot.curves import Line
from farlink.plot.style import COLOURS, MARKERS, MUTED, error_bars, legend_above, new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def lines(
    drawn: Sequence[Line],
    *,
    x_label: str,
    y_label: str,
    x_ticks: Sequence[float] = (),
    is_y_log: bool = False,
    is_ordered: bool = False,
    y_bottom: float | None = 0.0,
    marked: Sequence[tuple[float, str]] = (),
) -> Figure:
    """Draw curves against a linear axis.

    Parameters
    ----------
    drawn
        The curves; `look` is the number of a colour, `is_second` is dashed.
    x_label, y_label
        Quantities with their units.
    x_ticks
        Values to name, on an axis that is logarithmic from the first one above 0 on; an even one by default.
    is_y_log
        Whether the vertical axis is logarithmic; points at 0 are left out then.
    is_ordered
        Whether the curves have an order, which their colours show.
    y_bottom
        Start of a linear vertical axis; None to fit it to the curves.
    marked
        Heights to mark with a dotted line, and their words.
    """
    figure, (ax,) = new_figure(height_in=4.7)
    for place, line in enumerate(drawn):
        look = place if line.look is None else line.look
        points = [point for point in line.points if math.isfinite(point[1]) and (point[1] > 0 or not is_y_log)]
        ax.errorbar(
            [x for x, _, _ in points],
            [mean for _, mean, _ in points],
            yerr=error_bars(half for _, _, half in points),
            label=line.name,
            color=_shade(place, len(drawn)) if is_ordered else COLOURS[look % len(COLOURS)],
            marker=MARKERS[look % len(MARKERS)],
            markerfacecolor="white" if line.is_second else None,
            linestyle="--" if line.is_second else "-",
            markersize=5.0,
            capsize=3,
            elinewidth=1.2,
        )
    if is_y_log:
        ax.set_yscale("log")
    elif y_bottom is not None:
        # Above the highest there is room for its marker and interval, however little the values differ.
        ax.set_ylim(y_bottom, y_bottom + 1.06 * (ax.dataLim.y1 - y_bottom) or None)
    for height, words in marked:
        ax.axhline(height, color=MUTED, linewidth=1.0, linestyle=(0, (1, 2)), zorder=1)
        ax.annotate(words, (ax.get_xlim()[1], height), xytext=(-4, 4), textcoords="offset points", ha="right", color=MUTED)
    if x_ticks:
        first = min(x for x in x_ticks if x > 0)
        ax.set_xscale("symlog", base=2, linthresh=first)
        ax.set_xlim(min(x_ticks) - 0.2 * first, 1.1 * max(x_ticks))
        ax.xaxis.set_tick_params(which="minor", size=0)
        ax.set_xticks(x_ticks, [f"{x:g}" for x in x_ticks])
    else:
        ax.ticklabel_format(axis="x", style="sci", scilimits=(-3, 4))
    ax.set_xlabel(x_label)
    ax.set_ylabel(y_label)
    legend_above(figure, ax, columns=5)
    return figure


def _shade(place: int, count: int) -> tuple[float, float, float, float]:
    """A colour of an ordered scale, the palest left out."""
    from matplotlib import colormaps

    red, green, blue, alpha = colormaps["viridis"](0.88 * place / max(1, count - 1))
    return red, green, blue, alpha

"""Curves against a logarithmic axis, with 95 % intervals and the printed values of a paper."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from farlink.plot.style import COLOURS, MARKERS, MUTED, error_bars, legend_above, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Line:
    """A curve.

    Attributes
    ----------
    name
        In the legend.
    points
        ``(x, mean, half_width)``; the half-width may be NaN.
    look
        Number of its colour and marker; by default its place in the list.
    is_second
        Dashed, with hollow markers: the other of two kinds that share their colours.
    """

    name: str
    points: Sequence[tuple[float, float, float]]
    look: int | None = None
    is_second: bool = False


@dataclass(frozen=True)
class Anchor:
    """Something printed: a point, a height (x is None) or a place on the axis (y is None), with its words."""

    at: tuple[float | None, float | None]
    words: str


def curves(
    lines: Sequence[Line], *, x_label: str, y_label: str, anchors: Sequence[Anchor] = (), y_top: float | None = None
) -> Figure:
    """Draw curves against a logarithmic axis.

    Parameters
    ----------
    lines
        What to draw.
    x_label, y_label
        Quantities with their units.
    anchors
        What is printed, in grey.
    y_top
        Top of the vertical axis; by default a little above the curves.
    """
    figure, (ax,) = new_figure(height_in=4.7)
    everywhere = [x for line in lines for x, _, _ in line.points]
    decades = math.log10(max(everywhere) / min(everywhere))
    looks = len({place if line.look is None else line.look for place, line in enumerate(lines)})
    for place, line in enumerate(lines):
        look = place if line.look is None else line.look
        # Set a little aside, so that intervals do not hide each other; lines of two kinds that are compared stay together.
        aside = 10 ** (0.004 * decades * (look - (looks - 1) / 2))
        ax.errorbar(
            [x * aside for x, _, _ in line.points],
            [mean for _, mean, _ in line.points],
            yerr=error_bars(half_width for _, _, half_width in line.points),
            label=line.name,
            color=COLOURS[look % len(COLOURS)],
            marker=MARKERS[look % len(MARKERS)],
            markerfacecolor="white" if line.is_second else None,
            linestyle="--" if line.is_second else "-",
            markersize=5.5,
            capsize=3,
            elinewidth=1.2,
        )
    ax.set_xscale("log")
    highest = max(mean + (0.0 if math.isnan(half) else half) for line in lines for _, mean, half in line.points)
    ax.set_ylim(0, y_top or 1.08 * highest)
    for anchor in anchors:
        _mark(ax, anchor)
    ax.set_xlabel(x_label)
    ax.set_ylabel(y_label)
    # A column for each of two kinds.
    legend_above(figure, ax, columns=2 if any(line.is_second for line in lines) else min(len(lines), 4))
    return figure


def _mark(ax: Axes, anchor: Anchor) -> None:
    x, y = anchor.at
    dotted = (0, (1, 2))
    if x is not None and y is not None:
        ax.plot([x], [y], marker="o", markersize=15, markerfacecolor="none", markeredgecolor=MUTED, linestyle="none", zorder=1)
        left, right = ax.get_xlim()
        is_far_right = math.log(x / left) > 0.8 * math.log(right / left)
        # The words stay within the axes.
        _say(ax, anchor.words, (x, y), (-13, -14) if is_far_right else (13, 9), "right" if is_far_right else "left")
    elif x is not None:
        ax.axvline(x, color=MUTED, linewidth=1.0, linestyle=dotted, zorder=1)
        left, right = ax.get_xlim()
        is_left = math.log(x / left) < 0.5 * math.log(right / left)
        _say(ax, anchor.words, (x, 0), (5, 7) if is_left else (-5, 7), "left" if is_left else "right")
    elif y is not None:
        ax.axhline(y, color=MUTED, linewidth=1.0, linestyle=dotted, zorder=1)
        _say(ax, anchor.words, (ax.get_xlim()[1], y), (-4, 4), "right")


def _say(ax: Axes, words: str, at: tuple[float, float], aside_pt: tuple[float, float], align: str) -> None:
    ax.annotate(f"printed: {words}", at, xytext=aside_pt, textcoords="offset points", ha=align, color=MUTED)

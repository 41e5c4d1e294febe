"""Computed curves and simulated points on them, in panels above each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from farlink.plot.style import COLOURS, INK, MARKERS, error_bars, legend_above, new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Traced:
    """A curve and the simulated points on it.

    Attributes
    ----------
    name
        In the legend.
    curve
        ``(x, y)``, from left to right.
    points
        ``(x, mean, half_width)``; the half-width may be NaN.
    star
        A point of the curve to mark.
    """

    name: str
    curve: Sequence[tuple[float, float]]
    points: Sequence[tuple[float, float, float]] = ()
    star: tuple[float, float] | None = None


@dataclass(frozen=True)
class Panel:
    """Axes of a figure."""

    title: str
    traced: Sequence[Traced]


def points_on_curves(panels: Sequence[Panel], *, x_label: str, y_label: str, y_top: float | None = None) -> Figure:
    """Draw curves without and points with markers, against a logarithmic axis.

    Parameters
    ----------
    panels
        From the top; curves of the same place share their colour, and the first panel has the legend.
    x_label, y_label
        Quantities with their units.
    y_top
        Top of every vertical axis; by default each has its own.
    """
    figure, all_axes = new_figure(height_in=1.2 + 2.9 * len(panels), rows=len(panels), is_y_shared=False)
    for axes, panel in zip(all_axes, panels, strict=True):
        for traced, colour, marker in zip(panel.traced, COLOURS, MARKERS, strict=False):
            axes.plot([x for x, _ in traced.curve], [y for _, y in traced.curve], color=colour, label=traced.name)
            if traced.points:
                axes.errorbar(
                    [x for x, _, _ in traced.points],
                    [mean for _, mean, _ in traced.points],
                    yerr=error_bars(half for _, _, half in traced.points),
                    linestyle="none", marker=marker, markersize=5, color=colour, capsize=3,
                )  # fmt: skip
            if traced.star:
                axes.plot(*traced.star, marker="*", markersize=12, color=colour, markeredgecolor=INK, zorder=3)
        axes.set_xscale("log")
        axes.set_ylim(0, y_top)
        axes.set_ylabel(y_label)
        axes.set_title(panel.title, loc="left", fontsize=10, fontweight="bold", color=INK)
    all_axes[-1].set_xlabel(x_label)
    legend_above(figure, all_axes[0])
    return figure

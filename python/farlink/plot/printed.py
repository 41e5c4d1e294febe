"""Numbers with the printed values of a paper, a line for each."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from farlink.plot.style import COLOURS, RULE, error_bars, legend_above, name_rows, new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Measured:
    """A printed number and ours.

    Attributes
    ----------
    name
        What it is.
    printed
        As printed.
    ours
        Mean and half-width of its 95 % interval.
    others
        The same by other definitions.
    """

    name: str
    printed: float
    ours: tuple[float, float]
    others: Sequence[float] = ()


def beside_printed(measured: Sequence[Measured], *, x_label: str) -> Figure:
    """Draw printed numbers and ours on a common axis, with the span of other definitions in the background."""
    figure, (ax,) = new_figure(height_in=1.0 + 0.36 * len(measured))
    for place, one in enumerate(measured):
        known = [value for value in one.others if math.isfinite(value)]
        if known:
            ax.plot(
                [min(known), max(known)], [place, place], color=RULE, linewidth=9, solid_capstyle="butt",
                label="other definitions" if place == 0 else None,
            )  # fmt: skip
    places = range(len(measured))
    ax.errorbar(
        [one.ours[0] for one in measured], places, xerr=error_bars(one.ours[1] for one in measured),
        linestyle="none", marker="o", markersize=7, capsize=3, color=COLOURS[0], label="farlink",
    )  # fmt: skip
    ax.plot(
        [one.printed for one in measured], places,
        linestyle="none", marker="|", markersize=15, markeredgewidth=2.5, color=COLOURS[1], label="printed",
    )  # fmt: skip
    name_rows(ax, [one.name for one in measured], x_label)
    legend_above(figure, ax)
    return figure

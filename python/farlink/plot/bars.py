"""Named numbers as horizontal bars with 95 % intervals, each with its bound."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from farlink.plot.style import COLOURS, INK, error_bars, legend_above, name_rows, new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Bar:
    """A number with its name.

    Attributes
    ----------
    name
        What it is of.
    mean, half_width
        The number and its 95 % interval; the half-width may be NaN.
    bound
        What it cannot pass; NaN if there is none.
    """

    name: str
    mean: float
    half_width: float
    bound: float = math.nan


def bars(drawn: Sequence[Bar], *, x_label: str, bound_words: str) -> Figure:
    """Draw numbers as bars, from the top, on a common axis from 0."""
    figure, (ax,) = new_figure(height_in=1.0 + 0.42 * len(drawn))
    places = range(len(drawn))
    ax.barh(
        places, [bar.mean for bar in drawn], height=0.6, color=COLOURS[0], label="farlink",
        xerr=error_bars(bar.half_width for bar in drawn), capsize=3, ecolor=INK,
    )  # fmt: skip
    bounded = [(place, bar.bound) for place, bar in enumerate(drawn) if math.isfinite(bar.bound)]
    if bounded:
        ax.plot(
            [bound for _, bound in bounded], [place for place, _ in bounded],
            linestyle="none", marker="|", markersize=18, markeredgewidth=2.5, color=COLOURS[1], label=bound_words,
        )  # fmt: skip
    name_rows(ax, [bar.name for bar in drawn], x_label)
    legend_above(figure, ax)
    return figure

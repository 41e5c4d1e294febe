"""Error rates against Eb/N0, with 95 % intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from farlink.plot.style import COLOURS, MARKERS, legend_above, new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Eb/N0 in dB, rate, lower and upper end of its interval.
Point = tuple[float, float, float, float]


def error_rate(lines: Mapping[str, Sequence[Point]], *, title: str | None = None) -> Figure:
    """Draw error rates against Eb/N0; a rate of 0 shows by the upper end of its interval.

    Parameters
    ----------
    lines
        Name in the legend -> points.
    title
        Shown above the axes.
    """
    figure, (ax,) = new_figure(height_in=4.6)
    if title:
        figure.suptitle(title, x=0.01, ha="left", fontsize=11, fontweight="bold")
    for look, (name, points) in enumerate(lines.items()):
        seen = [point for point in points if point[1] > 0]
        ax.errorbar(
            [x for x, *_ in seen],
            [rate for _, rate, *_ in seen],
            yerr=[[rate - max(low, 0.0) for _, rate, low, _ in seen], [high - rate for _, rate, _, high in seen]],
            label=name,
            color=COLOURS[look % len(COLOURS)],
            marker=MARKERS[look % len(MARKERS)],
            markersize=5.5,
            capsize=3,
            elinewidth=1.2,
        )
        none = [(x, high) for x, rate, _, high in points if rate == 0]
        if none:
            ax.plot(
                *zip(*none, strict=True),
                linestyle="none",
                marker="v",
                color=COLOURS[look % len(COLOURS)],
                markerfacecolor="white",
            )
    ax.set_yscale("log")
    ax.set_xlabel("Eb/N0 (dB)")
    ax.set_ylabel("error rate")
    legend_above(figure, ax)
    return figure

"""Delay from first transmission to in-order delivery, against the grid."""

from __future__ import annotations

from typing import TYPE_CHECKING

from farlink.plot.against_grid import Entry, against_grid

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def delay(summary: list[Entry], grid_paths: list[str], *, title: str | None = None) -> Figure:
    """Draw the mean delay of a result's summary; parameters as for `against_grid`.

    The axis is logarithmic if the delays span more than a factor of ten.
    """
    figure = against_grid(summary, grid_paths, "delay_mean_s", title=title)
    means = [entry["delay_mean_s"]["mean"] for entry in summary if entry["delay_mean_s"]["mean"]]
    ax = figure.axes[0]
    if means and max(means) > 10 * min(means) and ax.get_ylabel().startswith("delay"):
        ax.set_yscale("log")
        ax.autoscale(axis="y")
    return figure

"""Minimum bit error rate against information rate: the settings of a modem, and those that are worth a look."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from farlink.plot.style import COLOURS, INK, MARKERS, legend_above, new_figure
from farlink.units import scale_for

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Information rate in b/s, and bit error rate.
Place = tuple[float, float]

# Lower error rates are no errors to anybody.
_LEAST = 1e-12


def staircase(settings: Mapping[str, Sequence[Place]], minimum: Sequence[Place], *, chosen: Place | None = None) -> Figure:
    """Draw every setting, the staircase through those of minimum error rate, and the one that is chosen.

    Parameters
    ----------
    settings
        Name in the legend -> settings of that kind.
    minimum
        The staircase, from the slowest to the fastest.
    chosen
        A setting to mark.
    """
    figure, (ax,) = new_figure(height_in=4.7)
    scale = scale_for("rate_bps", [rate for places in settings.values() for rate, _ in places])

    def at(places: Sequence[Place]) -> tuple[list[float], list[float]]:
        return [rate * scale.factor for rate, _ in places], [max(ber, _LEAST) for _, ber in places]

    rates, bers = at(minimum)
    ax.step(rates, bers, where="pre", color=INK, linewidth=1.1, label="minimum", zorder=1)
    ax.plot(rates, bers, linestyle="none", marker="o", markersize=11, markerfacecolor="none", markeredgecolor=INK, zorder=2)
    for look, (name, places) in enumerate(settings.items()):
        colour, marker = COLOURS[look % len(COLOURS)], MARKERS[look % len(MARKERS)]
        ax.plot(*at(places), linestyle="none", marker=marker, color=colour, label=name, markersize=5, zorder=3)
    if chosen is not None:
        ax.plot(*at([chosen]), linestyle="none", marker="*", markersize=15, color=COLOURS[1], label="best goodput", zorder=4)
    ax.set_yscale("log")
    ax.set_ylim(_LEAST / 3, 1)
    ax.set_xlim(left=0)
    ax.set_xlabel(f"information rate ({scale.unit})")
    ax.set_ylabel(f"bit error rate ({_LEAST:.0e} stands for less)".replace("e-", "e−"))
    legend_above(figure, ax, columns=5)
    return figure

"""Goodput against the grid, with the share of the link on the right."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from farlink.plot.against_grid import Entry, against_grid, main_path, shown_flows

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# From this share of the link on, the axis reaches to the link's rate.
_WORTH_THE_WHOLE = 0.4


def goodput(summary: list[Entry], grid_paths: list[str], *, title: str | None = None) -> Figure:
    """Draw the goodput of a result's summary; parameters as for `against_grid`."""
    figure = against_grid(summary, grid_paths, "goodput_bps", title=title)
    rate_bps = _link_rate_bps(summary)
    if rate_bps is not None and main_path(summary, grid_paths) is not None:
        ax = figure.axes[0]
        shown_per_bps = _shown_per_bps(ax.get_ylabel())
        full = rate_bps * shown_per_bps
        bottom, top = ax.get_ylim()
        if top > _WORTH_THE_WHOLE * full:
            ax.set_ylim(bottom, max(full * 1.02, top))

        def to_share(shown: Any) -> Any:
            return 100 * shown / full

        def from_share(share: Any) -> Any:
            return share * full / 100

        for panel in figure.axes:
            right = panel.secondary_yaxis("right", functions=(to_share, from_share))
            right.set_ylabel("share of the link (%)")
            right.spines["right"].set_visible(False)
            right.tick_params(length=0)
    return figure


def _link_rate_bps(summary: list[Entry]) -> float | None:
    """The bottleneck rate, if it is the same at every point."""
    rates = set()
    for entry in shown_flows(summary):
        goodput_bps, fraction = entry["goodput_bps"]["mean"], entry["goodput_fraction"]["mean"]
        if goodput_bps and fraction:
            rates.add(float(f"{goodput_bps / fraction:.3g}"))
    return rates.pop() if len(rates) == 1 else None


def _shown_per_bps(axis_label: str) -> float:
    for unit, factor in (("(Gb/s)", 1e-9), ("(Mb/s)", 1e-6), ("(kb/s)", 1e-3)):
        if axis_label.endswith(unit):
            return factor
    return 1.0

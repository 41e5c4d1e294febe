"""Figures: one per file, numbers in, a Matplotlib figure out."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from farlink.series import Series


def _window(series: Series, flow: str | None) -> Figure:
    from farlink.plot.window import window

    return window([series], flow)


def _sequence(series: Series, flow: str | None) -> Figure:
    from farlink.plot.sequence import sequence

    return sequence(series, flow)


def _round_trip(series: Series, flow: str | None) -> Figure:
    from farlink.plot.round_trip import round_trip

    return round_trip(series, flow)


FIGURES: dict[str, Callable[[Series, str | None], Figure]] = {
    "window": _window,
    "sequence": _sequence,
    "round-trip": _round_trip,
}
"""Figures of one run, by name."""

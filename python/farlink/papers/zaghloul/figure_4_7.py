"""Figure 4.7 and eq. (17): how slow start grows with delayed acknowledgements."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from farlink.models.tcp_latency import sikdar, slow_start
from farlink.papers.check import Check, Verdict, number
from farlink.papers.estimate import Estimate
from farlink.papers.item import Drawing, Workbench

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_ROUNDS = 14
_SUMMED = 10


def figure_4_7(_bench: Workbench) -> tuple[list[Check], list[Drawing]]:
    """The constant of eq. (17), and the sum that it is not."""
    offset = Estimate(float(2 + 3 * np.sqrt(2) / 2))
    printed, closed = (float(sikdar.segments_in_rounds(_SUMMED, packet_sum=kind)) for kind in ("printed", "closed"))
    summed = float(np.sum(sikdar.window_in_round(np.arange(1, _SUMMED + 1))))
    is_other = abs(closed - summed) < 1e-9 < abs(printed - summed)
    verdict = Verdict.MISPRINT if is_other else Verdict.AGREES
    digits = "agrees within the printed digits"
    sums = "eq. (17) is not the sum of the windows of eq. (16), which is (2 + 3 / sqrt 2) (2^(k/2) - 1)"
    cell = f"packets of {_SUMMED} rounds, by eq. (17)"
    return [
        Check("figure-4.7", "constant of eq. (17)", 4.12, "model", offset, number(offset, "4.12"), digits),
        Check("figure-4.7", cell, round(printed, 1), "model", Estimate(closed), verdict, sums),
    ], [_drawing()]


def _drawing() -> Drawing:
    def draw() -> Figure:
        from farlink.plot.style import COLOURS, MARKERS, legend_above, new_figure

        figure, (axes,) = new_figure()
        rounds = np.arange(1, _ROUNDS + 1)
        laws = {
            "every segment acknowledged": slow_start.window_in_round(rounds, segments_per_ack=1),
            "Allman and Paxson": slow_start.window_in_round(rounds),
            "Sikdar, eq. (16)": sikdar.window_in_round(rounds),
            "Sikdar, whole segments": sikdar.window_in_round(rounds, is_whole=True),
        }
        for (name, window), colour, marker in zip(laws.items(), COLOURS, MARKERS, strict=False):
            axes.plot(rounds, window, color=colour, marker=marker, markersize=4, label=name)
        axes.set_ylim(0, 120)
        axes.set_xlabel("round")
        axes.set_ylabel("cwnd (segments)")
        legend_above(figure, axes)
        return figure

    return Drawing(
        "figure-4-7",
        "Window of slow start by round",
        "Both laws of delayed acknowledgements meet after ten rounds, at 38 segments; from there on they part.",
        draw,
    )

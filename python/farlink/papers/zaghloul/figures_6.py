"""Figures 6.4 to 6.6: transfer time against drops, losses and the timeout."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from farlink.models.multilink import call_drops
from farlink.models.ranges import Floats
from farlink.papers.check import Check, Verdict, claim, number
from farlink.papers.estimate import Estimate
from farlink.papers.item import Drawing, Workbench
from farlink.papers.zaghloul.setting import INMARSAT, LABORATORY, MEGABYTE, MINUTE_S

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LABORATORY_BYTES, _INMARSAT_BYTES = 10 * MEGABYTE, 100 * MEGABYTE
# Figure 6.4, minutes between the drops of a link.
INTERVALS_MIN = (52, 30, 20)
# Minutes between the drops of an Inmarsat link, of which the figures' one is not printed.
_INMARSAT_INTERVALS = (10, 20, 50)


def figure_6_4(_bench: Workbench) -> tuple[list[Check], list[Drawing]]:
    """Six Iridium links in the laboratory, with drops added."""
    rates_hz = 1 / (np.array(INTERVALS_MIN) * MINUTE_S)
    log_times = np.log(LABORATORY.minutes(LABORATORY_BYTES, drop_rate_hz=rates_hz))
    slopes = np.diff(log_times) / np.diff(rates_hz)
    bend = Estimate(float(slopes[1] / slopes[0]))
    verdict: Verdict = claim(bend, at_least=0.95, at_most=1.05)
    bound = float(call_drops.highest_drop_rate_hz(LABORATORY.loss_rate, timeout_s=LABORATORY.timeout_s)) / LABORATORY.links
    check = Check(
        "figure-6.4",
        "growth of the logarithm with the drop rate, from 1/30 to 1/20 min over that from 1/52 to 1/30 min",
        "the higher call dropping rate leads to an exponential increase in TCP transfer latency",
        "model",
        bend,
        verdict,
        "1 for an exponential: agrees within 5 %; by eq. (36) the time is hyperbolic, without bound at a drop of each link in "
        f"{1 / bound / MINUTE_S:.1f} minutes",
    )
    axis = np.linspace(0.005, 0.08, 200)
    curves = {"eq. (36)": LABORATORY.minutes(LABORATORY_BYTES, drop_rate_hz=axis / MINUTE_S)}
    marks = (1 / np.array(INTERVALS_MIN), np.exp(log_times))
    text = "Six links, 10 MB, round trip 18.2 s, p = 5e-4, first timeout 60 s; dots: the three rates of the experiment."
    return [check], [
        _drawing("figure-6-4", "Transfer time against drops", text, "drops of a link per minute", axis, curves, marks)
    ]


def figure_6_5(_bench: Workbench) -> tuple[list[Check], list[Drawing]]:
    """Four Inmarsat links, losses from 0.05 % to 0.15 %."""
    ends = np.array([5e-4, 1.5e-3])
    grown = {minutes: float(np.diff(_inmarsat(minutes, loss_rate=ends))[0]) for minutes in _INMARSAT_INTERVALS}
    stated = Estimate(grown[round(INMARSAT.drop_interval_s / MINUTE_S)])
    check = Check(
        "figure-6.5",
        "growth of the transfer time from p = 0.05 % to 0.15 %, minutes",
        25,
        "model",
        stated,
        number(stated, "25", relative=0.1),
        "“approximately 25-minute increase”: agrees within 10 %; the drop rate is not printed, a drop of each link in 50 "
        f"minutes is taken, as in Greenland; with one in ten minutes it is {grown[10]:.1f} minutes",
    )
    axis = np.linspace(4e-4, 1.6e-3, 200)
    curves = {f"a drop of each link in {minutes} min": _inmarsat(minutes, loss_rate=axis) for minutes in _INMARSAT_INTERVALS}
    text = (
        "Four links, 100 MB, round trip 0.61 s, window 40 KB, first timeout 60 s. The bend is where losses become frequent "
        "enough for the window to stay below its limit."
    )
    return [check], [_drawing("figure-6-5", "Transfer time against losses", text, "loss (%)", 100 * axis, curves)]


def figure_6_6(_bench: Workbench) -> tuple[list[Check], list[Drawing]]:
    """Four Inmarsat links, first timeouts from 60 to 120 s."""
    ends = np.array([60.0, 120.0])
    ratios = {minutes: _inmarsat(minutes, timeout_s=ends) for minutes in _INMARSAT_INTERVALS}
    rare, frequent = (float(ratios[minutes][1] / ratios[minutes][0]) for minutes in (50, 10))
    value = Estimate(frequent)
    check = Check(
        "figure-6.6",
        "transfer time with 120 s over that with 60 s, a drop of each link in 10 minutes",
        "the timeout value becomes an important factor when the call drop rate is high",
        "model",
        value,
        claim(value, at_least=1.5 * rare),
        f"important: agrees if it is half as much again as with a drop of each link in 50 minutes, {rare:.3f}",
    )
    axis = np.linspace(60, 120, 200)
    curves = {f"a drop of each link in {minutes} min": _inmarsat(minutes, timeout_s=axis) for minutes in _INMARSAT_INTERVALS}
    text = "Four links, 100 MB, round trip 0.61 s, window 40 KB, p = 5e-4; the figure's drop rates are not printed."
    return [check], [_drawing("figure-6-6", "Transfer time against the timeout", text, "first timeout (s)", axis, curves)]


def _inmarsat(interval_min: float, **changes: Floats) -> Floats:
    return INMARSAT.minutes(_INMARSAT_BYTES, drop_rate_hz=1 / (interval_min * MINUTE_S), **changes)


def _drawing(
    name: str,
    heading: str,
    caption: str,
    label: str,
    axis: Floats,
    curves: Mapping[str, Floats],
    marks: tuple[Floats, Floats] | None = None,
) -> Drawing:
    def draw() -> Figure:
        from farlink.plot.style import COLOURS, legend_above, new_figure

        figure, (axes,) = new_figure()
        for (curve, times), colour in zip(curves.items(), COLOURS, strict=False):
            axes.plot(axis, times, color=colour, label=curve)
        if marks is not None:
            axes.plot(*marks, "o", color=COLOURS[0])
        axes.set_ylim(0, None)
        axes.set_xlabel(label)
        axes.set_ylabel("transfer time (min)")
        legend_above(figure, axes)
        return figure

    return Drawing(name, heading, caption, draw)

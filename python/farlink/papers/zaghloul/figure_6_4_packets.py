"""Figure 6.4 packet by packet: transfers of 10 MB over six modems at three rates of drops, beside eq. (36)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from farlink.models.ranges import Floats
from farlink.papers.check import Check, claimed
from farlink.papers.estimate import Estimate
from farlink.papers.item import Drawing, Workbench
from farlink.papers.zaghloul.figures_6 import INTERVALS_MIN, LABORATORY_BYTES
from farlink.papers.zaghloul.packets import READINGS, REDIAL_S, calls, mean_of, of_runs, scenario
from farlink.papers.zaghloul.setting import LABORATORY, MINUTE_S

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_RUNS = 200
_NEAR = 0.1

Times = dict[tuple[str, int], Floats]


def figure_6_4_packets(bench: Workbench) -> tuple[list[Check], list[Drawing]]:
    """Each reading of what is not printed, at each rate."""
    found: Times = {}
    checks = []
    for reading, settings in READINGS.items():
        for minutes in INTERVALS_MIN:
            title = f"figure 6.4, a drop in {minutes} min, {reading}"
            traffic = {"kind": "file", "bytes": round(LABORATORY_BYTES)}
            up = {"distribution": "exponential", "mean_s": minutes * MINUTE_S - REDIAL_S}
            built = scenario(title, links=LABORATORY.links, traffic=traffic, runs=_RUNS, drops=calls(up=up), **settings)
            times = np.array(of_runs(bench.run(title, built), "duration_s")) / MINUTE_S
            found[reading, minutes] = times
            checks.append(_check(reading, minutes, times))
    return checks, [_drawing(found)]


def _check(reading: str, minutes: int, times: Floats) -> Check:
    predicted = float(LABORATORY.minutes(LABORATORY_BYTES, drop_rate_hz=1 / (minutes * MINUTE_S)))
    low, high = np.quantile(times, [0.25, 0.75])
    mean = mean_of(times.tolist())
    share = Estimate(mean.mean / predicted, mean.half_width / predicted)
    return claimed(
        "figure-6.4-packets",
        f"a drop of each link in {minutes} min, {reading}: mean time over eq. (36)",
        "The proposed model agrees well with the measurements' mean",
        share,
        at_least=1 - _NEAR,
        at_most=1 + _NEAR,
        rule=f"agrees within {_NEAR:.0%}; the figure's numbers are not printed",
        cause=f"{mean.mean:.0f} minutes, quartiles {low:.0f} and {high:.0f}; eq. (36) says {predicted:.0f}",
    )


def _drawing(found: Times) -> Drawing:
    def draw() -> Figure:
        from farlink.plot.style import COLOURS, MARKERS, MUTED, legend_above, new_figure

        figure, (axes,) = new_figure()
        axis = np.linspace(0.012, 0.055, 200)
        axes.plot(axis, LABORATORY.minutes(LABORATORY_BYTES, drop_rate_hz=axis / MINUTE_S), "--", color=MUTED, label="eq. (36)")
        for look, reading in enumerate(READINGS):
            # Side by side, so that bars do not cover each other.
            at = [1 / minutes + 0.0004 * (look - 1) for minutes in INTERVALS_MIN]
            times = [found[reading, minutes] for minutes in INTERVALS_MIN]
            means = np.array([one.mean() for one in times])
            ends = np.array([np.quantile(one, [0.25, 0.75]) for one in times]).T
            # A mean may lie outside the quartiles.
            bars = np.maximum(0.0, [means - ends[0], ends[1] - means])
            axes.errorbar(
                at, means, yerr=bars, linestyle="none", marker=MARKERS[look], color=COLOURS[look], capsize=3, label=reading
            )
        axes.set_ylim(0, None)
        axes.set_xlabel("drops of a link per minute")
        axes.set_ylabel("transfer time (min)")
        legend_above(figure, axes)
        return figure

    return Drawing(
        "figure-6-4-packets",
        "Transfer time of 10 MB over six modems against drops, packet by packet",
        f"Means of {_RUNS} runs; bars from the first to the third quartile, as in the thesis's figure.",
        draw,
    )

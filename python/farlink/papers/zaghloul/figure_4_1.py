"""Figure 4.1: timers over a series of round trips, twice the mean against mean and deviation."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from farlink.models.ranges import Floats
from farlink.models.tcp_latency import timeout
from farlink.papers.check import Check, Verdict, claim
from farlink.papers.estimate import Estimate
from farlink.papers.item import Drawing, Workbench

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# The round trips behind the figure are not printed: at random, independent, with the mean and deviation of figure 4.6.
MEAN_S, DEVIATION_S = 21.0, 8.7
_SAMPLES, _SHOWN, _SERIES = 5000, 150, 20


def figure_4_1(bench: Workbench) -> tuple[list[Check], list[Drawing]]:
    """How often each timer goes off before the acknowledgement comes."""
    late = np.array([_late(_round_trips(bench.seed, series)) for series in range(bench.repetitions(_SERIES))])
    half_width = 1.96 * late.std(axis=0, ddof=1) / np.sqrt(len(late)) if len(late) > 1 else np.full(2, np.nan)
    twice, deviation = (Estimate(float(mean), float(half)) for mean, half in zip(late.mean(axis=0), half_width, strict=True))
    quotient = late[:, 0] / late[:, 1]
    spread = 1.96 * float(quotient.std(ddof=1)) / np.sqrt(len(quotient)) if len(quotient) > 1 else np.nan
    verdict: Verdict = claim(Estimate(float(quotient.mean()), float(spread)), at_least=1.0)
    rule = (
        f"agrees if the timer of RFC 793 goes off for nothing more often ({twice.mean:.3f} of the round trips) than that of "
        f"mean and deviation ({deviation.mean:.4f}); gamma distributed round trips, as those of the figure are not printed"
    )
    check = Check(
        "figure-4.1",
        "needless timeouts with twice the mean, over those with mean and four deviations",
        "the RTT variance is estimated and the timeout value takes this estimate into consideration",
        "model",
        Estimate(float(quotient.mean()), float(spread)),
        verdict,
        rule,
    )
    return [check], [_drawing(_round_trips(bench.seed, 0))]


def _round_trips(seed: int, series: int) -> Floats:
    shape = (MEAN_S / DEVIATION_S) ** 2
    return np.random.default_rng([seed, series]).gamma(shape, MEAN_S / shape, _SAMPLES)


def _timers(samples: Floats) -> tuple[Floats, Floats]:
    # RFC 793 smooths with 0.8 to 0.9 of the old mean.
    return 2 * timeout.timers_s(samples, deviations=0.0), timeout.timers_s(samples)


def _late(samples: Floats) -> tuple[float, float]:
    """Share of the round trips that outlast the timer set before, of both timers."""
    twice, deviation = (float(np.mean(samples[1:] > timer[:-1])) for timer in _timers(samples))
    return twice, deviation


def _drawing(samples: Floats) -> Drawing:
    def draw() -> Figure:
        from farlink.plot.style import COLOURS, MUTED, legend_above, new_figure

        figure, (axes,) = new_figure()
        number = np.arange(1, _SHOWN + 1)
        twice, deviation = _timers(samples[: _SHOWN + 1])
        axes.plot(number, samples[1 : _SHOWN + 1], ".", color=MUTED, markersize=4, label="round trip")
        axes.step(number, twice[:-1], where="mid", color=COLOURS[1], label="twice the mean (RFC 793)")
        axes.step(number, deviation[:-1], where="mid", color=COLOURS[0], label="mean and four deviations (Jacobson)")
        axes.set_xlabel("round trip")
        axes.set_ylabel("time (s)")
        axes.set_ylim(0, 1.35 * float(np.max(deviation)))
        legend_above(figure, axes)
        return figure

    return Drawing(
        "figure-4-1",
        "Timers over a series of random round trips",
        f"The first {_SHOWN} of a series: independent, gamma distributed, mean {MEAN_S:g} s and standard deviation "
        f"{DEVIATION_S:g} s, as in figure 4.6. A point above a line is a timeout for nothing.",
        draw,
    )

"""Figure 5.2 and table 5.3: times between the drops of a link, fitted and tested as the thesis does, from simulated drops."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from farlink.channels.calls import goodness, samples
from farlink.channels.calls.distributions import DISTRIBUTIONS
from farlink.channels.calls.fits import fit
from farlink.channels.calls.samples import Sample, sample
from farlink.models.ranges import Floats
from farlink.papers.check import Check, claim, number
from farlink.papers.estimate import Estimate
from farlink.papers.item import Drawing, Workbench
from farlink.papers.zaghloul.setting import MINUTE_S
from farlink.papers.zaghloul.simulated_drops import DROPS, drop_times_s, link_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Table 5.3: mean minutes between the drops of a link.
GREENLAND_MIN, KANSAS_MIN = 50, 52
_SERIES = 100
# Other distributions of the same mean, to see what the test lets pass: shapes of Weibull distributions.
_SHAPES = (0.9, 0.8, 0.65)
_DRAWS = 200


def figure_5_2(bench: Workbench) -> tuple[list[Check], list[Drawing]]:
    """The chi-square test with 15 bins at 5 %, on 394 drops of a constant rate."""
    series = [_intervals(bench, GREENLAND_MIN, index) for index in range(bench.repetitions(_SERIES))]
    accepted = [goodness.chi_square(one, fit(one)).is_accepted is True for one in series]
    share = share_of(accepted)
    passed = ", ".join(f"{100 * _passed(shape, bench.seed):.0f} % with shape {shape}" for shape in _SHAPES)
    first = series[0]
    verdict = goodness.chi_square(first, fit(first))
    return [
        Check(
            "figure-5.2",
            f"share of {len(series)} series of {DROPS} drops whose exponential fit is accepted, 15 bins at 5 %",
            "the ICTD of the Greenland-Kansas connections followed an exponential distribution",
            "packet",
            share,
            claim(share, at_least=0.8),
            "agrees if more than four in five are: a right fit is rejected in one of twenty. The test lets others pass as "
            f"well: of Weibull distributions of the same mean, {passed}",
        )
    ], [_drawing(first, verdict)]


def table_5_3(bench: Workbench) -> tuple[list[Check], list[Drawing]]:
    """The rates, and whether so many drops tell them apart."""
    count = bench.repetitions(_SERIES)
    means: dict[int, list[float]] = {}
    checks = []
    for name, minutes in (("Kansas-Greenland", GREENLAND_MIN), ("Kansas-Kansas", KANSAS_MIN)):
        # Random numbers of their own: else each pair would be the same drops on two scales.
        begin = 0 if minutes == GREENLAND_MIN else _SERIES
        series = [_intervals(bench, minutes, begin + index) for index in range(count)]
        means[minutes] = [float(fit(one).mean_s) / MINUTE_S for one in series]
        spread = 1.96 * float(np.std(means[minutes], ddof=1)) / math.sqrt(count) if count > 1 else math.nan
        value = Estimate(float(np.mean(means[minutes])), spread)
        checks.append(
            Check(
                "table-5.3",
                f"{name}: mean minutes between the drops of a link that drops so often",
                minutes,
                "packet",
                value,
                number(value, str(minutes), relative=0.03),
                f"mean of {count} series of {DROPS} drops: agrees within 3 %; one series alone leaves 10 % either way",
            )
        )
    told = share_of([_is_told_apart(a, b) for a, b in zip(means[GREENLAND_MIN], means[KANSAS_MIN], strict=True)])
    checks.append(
        Check(
            "table-5.3",
            f"share of pairs of {DROPS} drops that tell 1/50 from 1/52 min",
            "the main reason for the difference in the call drop rates in both cases",
            "packet",
            told,
            claim(told, at_least=0.5),
            "likelihood ratio at 5 %; agrees if half of the pairs are told apart. The thesis prints no interval, and for the "
            f"laboratory no number: {DROPS} drops leave {196 / math.sqrt(DROPS):.0f} % either way, so that the difference of "
            "4 %, and its reason, may be chance",
        )
    )
    return checks, []


def _intervals(bench: Workbench, minutes: float, series: int) -> Sample:
    """Times from drop to drop of one series: the thesis's inter-call-drop time difference."""
    times_s = drop_times_s(bench, minutes * MINUTE_S, series=series)
    return samples.inter_drop_times([link_of(times_s)])


def share_of(hits: list[bool]) -> Estimate:
    """Share of what is true, with the interval of Agresti and Coull."""
    count = len(hits)
    share = sum(hits) / count
    # Agresti and Coull: two more of each keep the interval from vanishing where all are alike.
    middle = (sum(hits) + 2) / (count + 4)
    return Estimate(share, abs(share - middle) + 1.96 * math.sqrt(middle * (1 - middle) / (count + 4)))


def _is_told_apart(first_min: float, second_min: float) -> bool:
    """Whether two samples of as many exponential times differ at 5 %, by the ratio of their likelihoods."""
    both = (first_min + second_min) / 2
    return 2 * DROPS * (2 * math.log(both) - math.log(first_min) - math.log(second_min)) > 3.841


def _passed(shape: float, seed: int) -> float:
    """Share of samples of a Weibull distribution that the test takes for exponential."""
    scale_s = GREENLAND_MIN * MINUTE_S / math.gamma(1 + 1 / shape)
    generator = np.random.default_rng([seed, round(1000 * shape)])
    times_s = DISTRIBUTIONS["weibull"].draw(np.array([shape, scale_s]), generator, DROPS * _DRAWS).reshape(_DRAWS, DROPS)
    found = [sample("inter-drop", row.tolist()) for row in times_s]
    return sum(goodness.chi_square(one, fit(one)).is_accepted is True for one in found) / _DRAWS


def density_drawing(name: str, heading: str, caption: str, drawn: Sample, printed_min: float | None = None) -> Drawing:
    """A histogram of 15 bins, scaled to a density, with the exponential that is fitted to it."""

    def draw() -> Figure:
        from farlink.plot.style import COLOURS, legend_above, new_figure

        figure, (axes,) = new_figure()
        minutes = drawn.times_s[drawn.is_observed] / MINUTE_S
        edges = np.linspace(0, float(minutes.max()), goodness.BINS + 1)
        counts, _ = np.histogram(minutes, edges)
        axes.stairs(
            counts / (minutes.size * np.diff(edges)), edges, fill=True, color=COLOURS[0], alpha=0.3,
            label=f"{minutes.size} drops, {goodness.BINS} bins",
        )  # fmt: skip
        at: Floats = np.linspace(0, edges[-1], 300)
        mean = fit(drawn).mean_s / MINUTE_S
        axes.plot(at, np.exp(-at / mean) / mean, color=COLOURS[6], label=f"exponential, mean {mean:.1f} min")
        if printed_min is not None:
            axes.plot(
                at, np.exp(-at / printed_min) / printed_min, color=COLOURS[1], linestyle="--",
                label=f"the thesis's, {printed_min:g} min",
            )  # fmt: skip
        axes.set_xlim(0, edges[-1])
        axes.set_xlabel("time between drops (min)")
        axes.set_ylabel("density (1/min)")
        legend_above(figure, axes)
        return figure

    return Drawing(name, heading, caption, draw)


def _drawing(first: Sample, verdict: goodness.Verdict) -> Drawing:
    accepted = "accepts" if verdict.is_accepted else "rejects"
    caption = (
        f"{DROPS} simulated times between drops of one link, mean 50 minutes with the redial; the chi-square test {accepted} "
        f"the exponential fit (p {verdict.p:.2g}, {verdict.bins} bins after joining)."
    )
    heading = "Density of the time between drops, simulated"
    return density_drawing("figure-5-2", heading, caption, first, GREENLAND_MIN)

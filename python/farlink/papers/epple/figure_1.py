"""Figure 1: short-term bit error rates of the four channels, on synthetic traces."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from farlink.papers.check import Check, Verdict, claim
from farlink.papers.epple.fading import STAND_IN, Fading, clear, short_term_ber, trace
from farlink.papers.epple.intervals import interval
from farlink.papers.epple.printed import PLACES
from farlink.papers.epple.setting import PAPER_SETTING, Setting
from farlink.papers.estimate import Estimate
from farlink.papers.item import Drawing, Workbench

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# "spikes in BER calculations at around 30, 60 and 90 seconds".
_SECONDS = 100.0
_LEAST_S = 20.0
_TRACES = 5
_FADE_BER = 1e-4

Series = dict[str, tuple[NDArray[np.float64], NDArray[np.float64]]]


def figure_1(bench: Workbench, setting: Setting = PAPER_SETTING) -> tuple[list[Check], list[Drawing]]:
    """Short-term bit error rates over 100 s, and what the text says of them."""
    count = bench.repetitions(_TRACES)
    means: dict[str, list[float]] = {}
    lengths: dict[str, list[float]] = {}
    improves: list[float] = []
    series: Series = {}
    with bench.watch("Epple, figure 1: synthetic traces") as tell:
        for done, place in enumerate(PLACES):
            light = Fading(place, duration_s=_seconds(bench))
            for text in light.texts(bench, setting, count):
                power = trace(text)
                ber, free = short_term_ber(power, setting.ber), clear(power)
                means.setdefault(place, []).append(float(ber[free].mean()))
                lengths.setdefault(place, []).append(_fade_s(ber, free, _seconds(bench) / ber.size))
                if place == "KIODO":
                    half = ber.size // 2
                    improves.append(float(ber[half:][free[half:]].mean() / ber[:half][free[:half]].mean()))
                series.setdefault(place, _thinned(ber))
            tell(done + 1, len(PLACES))
    checks = [
        _claim(
            f"{place} ({STAND_IN}): long-term bit error rate, blockages cut",
            "The white dashed line marks the BER_LT of 1e-6",
            interval(means[place]),
            (1 - 1e-3) * setting.ber,
            (1 + 1e-3) * setting.ber,
            "the mean over samples that are not blocked: agrees within 0.1 % of what was asked for",
        )
        for place in PLACES
    ]
    checks.append(
        _claim(
            f"KIODO ({STAND_IN}): mean bit error rate of the second half over that of the first",
            "BER_ST is getting better towards the end of the measurement",
            interval(improves),
            -np.inf,
            1.0,
            "better: agrees if the ratio lies below 1 with its interval; the rising edge of the pass",
        )
    )
    strongest = max(others := [interval(lengths[place]) for place in PLACES if place != "FASOLT"], key=lambda one: one.mean)
    fasolt = interval(lengths["FASOLT"])
    checks.append(
        _claim(
            f"FASOLT ({STAND_IN}): mean length of fades above a bit error rate of {_FADE_BER:g} over the longest of the other "
            f"{len(others)} places",
            "The FASOLT link suffers from very long and deep fades compared to the other measurements",
            _quotient(fasolt, strongest),
            1.0,
            np.inf,
            "long: agrees if the ratio lies above 1 with its interval; blockages do not count",
        )
    )
    return checks, [_drawing(series, setting, _seconds(bench))]


def _seconds(bench: Workbench) -> float:
    return max(_LEAST_S, bench.share(_SECONDS))


def _claim(cell: str, printed: str, value: Estimate, at_least: float, at_most: float, rule: str) -> Check:
    verdict: Verdict = claim(value, at_least=at_least, at_most=at_most)
    return Check("figure-1", cell, printed, "model", value, verdict, f"{rule}; {STAND_IN}")


def _quotient(above: Estimate, below: Estimate) -> Estimate:
    from farlink.papers.estimate import ratio

    return ratio(above, below)


def _fade_s(ber: NDArray[np.float64], free: NDArray[np.bool_], sample_s: float) -> float:
    """Mean length of the runs of samples above the threshold that nothing blocks."""
    is_faded = (ber > _FADE_BER) & free
    edges = np.flatnonzero(np.diff(np.concatenate(([False], is_faded, [False])).astype(np.int8)))
    starts, ends = edges[::2], edges[1::2]
    return float((ends - starts).mean() * sample_s) if starts.size else 0.0


def _thinned(ber: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Lowest and highest of each of a thousand spans."""
    spans = ber[: ber.size // 1000 * 1000].reshape(1000, -1)
    return spans.min(axis=1), spans.max(axis=1)


def _drawing(series: Series, setting: Setting, duration_s: float) -> Drawing:
    def draw() -> Figure:
        from farlink.plot.style import COLOURS, INK, MUTED, new_figure

        figure, all_axes = new_figure(height_in=7.5, rows=len(series))
        for axes, (place, (low, high)), colour in zip(all_axes, series.items(), COLOURS, strict=False):
            time_s = (np.arange(low.size) + 0.5) * duration_s / low.size
            floor = 1e-12
            axes.fill_between(time_s, np.maximum(low, floor), np.maximum(high, floor), color=colour, linewidth=0.4)
            axes.axhline(setting.ber, color=INK, linewidth=1.0, linestyle="--")
            axes.set_yscale("log")
            axes.set_ylim(floor, 1)
            axes.set_yticks([1e-12, 1e-9, 1e-6, 1e-3, 1])
            axes.set_ylabel("BER")
            axes.annotate(
                f"{place} ({STAND_IN})", (0.01, 0.05), xycoords="axes fraction", fontweight="bold", color=INK,
                bbox={"facecolor": "white", "edgecolor": "none", "pad": 1.5, "alpha": 0.8},
            )  # fmt: skip
            if place == "KIODO":
                for spike_s in (30, 60, 90):
                    axes.axvline(spike_s, color=MUTED, linewidth=1.0, linestyle=(0, (1, 2)))
                axes.annotate(
                    "printed: spikes around 30, 60 and 90 s", (30, 0.2), xytext=(4, -4), textcoords="offset points",
                    color=MUTED,
                )  # fmt: skip
        all_axes[-1].set_xlabel("time (s)")
        return figure

    return Drawing(
        "figure-1",
        "Short-term bit error rates of four synthetic channels",
        f"Lowest to highest of each 0.1 s, first trace of each place, a {STAND_IN} of the measurements, which are not "
        f"published; dashed: the long-term bit error rate of {setting.ber:g} that each was scaled to, blockages and lost "
        "tracking cut.",
        draw,
    )

"""Write `docs/validation/rain.md` and its pictures: `make papers`. Takes a minute."""

from __future__ import annotations

import csv
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from farlink.channels.importers.gaps import filled
from farlink.channels.importers.recording import Hints, load_one
from farlink.channels.rain.distribution import MARGINALS, Distribution
from farlink.channels.rain.levels import Measured, read_measured
from farlink.channels.rain.prediction import SlantPath, length_in_rain_m, predict, versions
from farlink.channels.rain.process import TWO_SCALES, first_order, normal_process
from farlink.channels.rain.scaling import GroundPath, to_slant_path
from farlink.channels.synthesis.streams import stream
from farlink.cli.progress import progress_bar
from farlink.plot.style import COLOURS, INK, TEXT_PT, legend_above, new_figure, picture_svg

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "validation" / "rain.md"
PICTURES = ROOT / "docs" / "pictures"
DATA = Path(os.environ.get("FARLINK_DATA", ROOT.parent / "shared" / "data"))

LOUVAIN = {"latitude_deg": 50.67, "longitude_deg": 4.61, "elevation_deg": 30.0, "height_m": 160.0}
FREQUENCIES_HZ = (19.7e9, 39.402e9)
# Where the prediction is judged: rarer, two years hold too few fades; more often, clouds are a good part of what was measured.
JUDGED_PERCENT = (0.01, 0.5)
RUNS, YEARS, STEP_S = 20, 2, 60.0
SHOWN_PERCENT = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0)

RECORDS = {
    "one month": ("one_cml.h5", "cml_0/channel_1"),
    "six months": ("gap0_gap4_2012.csv.gz", None),
}
# Between the stations of the first link; an elevation as of Alphasat.
ALLGAEU = SlantPath(47.666, 10.06, 30.0, 19.7e9)
THRESHOLDS_DB = (1.0, 3.0, 5.0)
LEVELS_DB = np.array([0.6, 1, 1.5, 2, 3, 4, 5, 6, 7, 8, 10, 12, 15, 20])
LAGS_MIN = (1, 10, 60, 240)
PROCESSES = {"first-order": first_order(2e-4), "two-scales": TWO_SCALES}

Series = NDArray[np.float64]

PAGE_TEXT = """\
<!-- Written by docs/rain.py (`make papers`). -->
# Rain: predicted, drawn, measured

C/N0 under rain comes from a series drawn so that it meets a prediction ({versions}), or from
the attenuation that a microwave link measured. Here each is beside a measurement.

## The prediction beside two years of a satellite

Excess attenuation of Alphasat's beacons at Louvain-la-Neuve (50.67 north, 4.61 east, 160 m, elevation 30 degrees), September
2018 to August 2020, and what P.618 predicts for rain there in an average year, for a polarisation between the two linear ones.

{ccdf}

{judged}

The more common the attenuation, the more of it is missing in the prediction, which is for rain alone: what clouds add is part
of the measured excess. The measured curve of 39.4 GHz bends at 36 dB, as that of a receiver at the end of its range would; the
point at 0.005 % says little.

![Attenuation exceeded](../pictures/rain-ccdf.svg)

Points: measured. Lines: P.618. Bands: {runs} drawn series of {years} years each, the middle 95 % of them: so much do two years
differ by chance, if the process is right.

## What is drawn

Attenuation exceeded at 19.7 GHz, in dB: the prediction, and the mean of {runs} series of {years} years (a value per minute)
with the half-width of its 95 % interval, for each `distribution`.

{drawn}

`prediction`, the default, maps the process onto the predicted distribution itself. `lognormal` (P.1853-2) fits a lognormal
distribution to it; `offset-lognormal` (P.1853-1) takes an offset off such a fit, whatever that does to its values. {met}

## A microwave link brought to a satellite path

One month of a link of 6.45 km at 25.4 GHz in the Allgäu (October 2016), its loss less that of dry minutes, brought by P.838 to
an elevation of 30 degrees at 19.7 GHz, where {length:.2f} km of the path lie below the height of rain. Beside it what P.618
predicts there for an average year.

{scaled}

A month in autumn is not a year, so that the two need not agree: this tells that the order of magnitude is right, and no more.
Over the ground the slant path is {ground:.2f} km long, the link 6.45 km; that showers fill the shorter path better is left out.

## How fades come and go

The attenuation of two microwave links, minute by minute, beside series drawn with the measured distribution of each link and
the two processes: {runs} series as long as the record, ± the half-width of the 95 % interval of their mean. Fades are times
above a threshold of attenuation; slopes are differences from minute to minute while above 1 dB. Loss is logged in steps of
0.3 dB and 1 dB, which blurs the small slopes. Minutes without a value hold the one before.

{dynamics}

{said}

![Fades over 3 dB](../pictures/rain-dynamics.svg)

Points: measured. Lines: the mean of {runs} series. Bands: the middle 95 % of them.

## Sources

- Alphasat: M. Razavian, C. Oestges, D. Vanhoenacker-Janvier, statistics of the ground station of UCLouvain, read off the
  published curves.
- Microwave links: example data of [pycomlink](https://github.com/pycomlink/pycomlink) 0.6.0 (BSD-3-Clause).

## What is chosen, not known

- The share of the time with rain on the path is that of P.837 at the station, as P.1853 says. P.618 also gives a share for the
  path, which is larger.
- `first-order` is the default, as it is nearer to these two links. Its rate, 2e-4 per second, is that of P.1853-1.
- Wet antennas add up to some dB to the attenuation of microwave links while it rains; nothing is taken off. The second link's
  length and frequency are not known, so that it serves for fades only.
- The constants of `two-scales` are those of another implementation (ITURPropagPY); P.1853-2 itself was not read.
- No clouds, no gases that vary, no scintillation.
"""


@dataclass(frozen=True)
class Dynamics:
    """How an attenuation comes and goes.

    Attributes
    ----------
    values
        For each threshold fades per day, mean and median minutes; the slopes; the autocorrelation.
    lengths_min
        Of the fades of more than 3 dB.
    days
        Length of the record.
    """

    values: Series
    lengths_min: Series
    days: float


def main() -> int:
    """Compute everything, draw it and write the page."""
    for folder in ("alphasat-ccdf-derived", "cml-pycomlink"):
        if not (DATA / folder).is_dir():
            print(f"error: {DATA / folder} is not there\nhint: set FARLINK_DATA to the measured data", file=sys.stderr)
            return 2
    measured = read_ccdf(DATA / "alphasat-ccdf-derived" / "ccdf.csv")
    predicted = {hz: predict(SlantPath(**LOUVAIN, frequency_hz=hz)) for hz in FREQUENCIES_HZ}
    drawn, dynamics = {}, {}
    with progress_bar("series") as tell:
        for run in range(RUNS):
            process = normal_process(
                round(YEARS * 365.25 * 86_400 / STEP_S), STEP_S, PROCESSES["first-order"], stream(run, "rain")
            )
            for hz, prediction in predicted.items():
                for name, marginal in MARGINALS.items():
                    drawn.setdefault((hz, name), []).append(exceeded(marginal(prediction)(process), measured["percent"]))
            tell(run + 1, 2 * RUNS)
        for name, (file, column) in RECORDS.items():
            found = read_measured(load_one(DATA / "cml-pycomlink" / file, None, Hints(column=column)))
            dynamics[name] = of_record(found)
        tell(2 * RUNS, 2 * RUNS)
    link = read_measured(load_one(DATA / "cml-pycomlink" / "one_cml.h5", None, Hints(column="cml_0/channel_1")))
    text = PAGE_TEXT.format(
        versions=versions(),
        ccdf="\n".join(table_of_ccdf(measured, predicted)),
        judged=judged(measured, predicted),
        runs=RUNS,
        years=YEARS,
        drawn="\n".join(table_of_drawn(predicted[FREQUENCIES_HZ[0]], drawn, measured["percent"])),
        met=met(predicted, drawn, measured["percent"]),
        length=length_in_rain_m(ALLGAEU) / 1e3,
        ground=length_in_rain_m(ALLGAEU) / 1e3 * np.cos(np.radians(ALLGAEU.elevation_deg)),
        scaled="\n".join(table_of_scaled(link)),
        dynamics="\n\n".join("\n".join(table_of_dynamics(name, found)) for name, found in dynamics.items()),
        said=said_of_dynamics(dynamics),
    )
    PAGE.write_text(text, encoding="utf-8")
    print(PAGE.relative_to(ROOT))
    for stem, figure in (
        ("rain-ccdf", picture_of_ccdf(measured, predicted, drawn)),
        ("rain-dynamics", picture_of_dynamics(dynamics)),
    ):
        svg = picture_svg(figure, stem)
        (PICTURES / f"{stem}.svg").write_text(svg, encoding="utf-8")
        print((PICTURES / f"{stem}.svg").relative_to(ROOT))
    return 0


def read_ccdf(path: Path) -> dict[Any, Series]:
    """Percent of the time, and attenuation exceeded at each frequency."""
    with path.open(encoding="utf-8") as file:
        rows = [[float(cell) for cell in row] for row in list(csv.reader(file))[1:]]
    columns = np.array(rows[::-1]).T
    return {"percent": columns[0], **dict(zip(FREQUENCIES_HZ, columns[1:], strict=True))}


def exceeded(attenuation_db: Series, percent: Series) -> Series:
    """Attenuation that a series exceeds for each share of its time."""
    return np.quantile(attenuation_db, 1 - percent / 100)


def mean_and_half(runs: list[Series]) -> tuple[Series, Series]:
    """Mean over runs, and the half-width of its 95 % interval."""
    values = np.array(runs)
    half = stats.t.ppf(0.975, len(runs) - 1) * values.std(axis=0, ddof=1) / np.sqrt(len(runs))
    return values.mean(axis=0), half


def table_of_ccdf(measured: dict[Any, Series], predicted: dict[float, Distribution]) -> list[str]:
    """A row per share of the time."""
    lines = [
        "| of the time | 19.7 GHz measured | P.618 | P.618 over measured | 39.4 GHz measured | P.618 | P.618 over measured |",
        "|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for index, percent in enumerate(measured["percent"]):
        cells = []
        for hz in FREQUENCIES_HZ:
            found, expected = float(predicted[hz].exceeded_db(percent)), measured[hz][index]
            cells += [f"{expected:.2f} dB", f"{found:.2f} dB", f"{found / expected:.2f}"]
        lines.append(f"| {percent:g} % | {' | '.join(cells)} |")
    return lines


def judged(measured: dict[Any, Series], predicted: dict[float, Distribution]) -> str:
    """How far the prediction is off."""
    percent = measured["percent"]
    inside = (percent >= JUDGED_PERCENT[0]) & (percent <= JUDGED_PERCENT[1])
    parts = []
    for hz in FREQUENCIES_HZ:
        off = predicted[hz].exceeded_db(percent[inside]) / measured[hz][inside] - 1
        worst = off[np.argmax(np.abs(off))]
        parts.append(
            f"at {hz / 1e9:.3g} GHz {100 * np.sqrt(np.mean(off**2)):.0f} % (root mean square; the worst {100 * worst:+.0f} %)"
        )
    return (
        f"From {JUDGED_PERCENT[0]:g} to {JUDGED_PERCENT[1]:g} % of the time the prediction is off by\n"
        + " and\n".join(parts)
        + "."
    )


def table_of_drawn(prediction: Distribution, drawn: dict[Any, list[Series]], percent: Series) -> list[str]:
    """A row per share of the time."""
    lines = [
        "| of the time | P.618 | " + " | ".join(f"`{name}`" for name in MARGINALS) + " |",
        "|--:|--:|" + "--:|" * len(MARGINALS),
    ]
    found = {name: mean_and_half(drawn[FREQUENCIES_HZ[0], name]) for name in MARGINALS}
    for share in SHOWN_PERCENT:
        index = int(np.argmin(np.abs(percent - share)))
        cells = [f"{found[name][0][index]:.2f} ± {found[name][1][index]:.2f}" for name in MARGINALS]
        lines.append(f"| {share:g} % | {float(prediction.exceeded_db(share)):.2f} | {' | '.join(cells)} |")
    return lines


def met(predicted: dict[float, Distribution], drawn: dict[Any, list[Series]], percent: Series) -> str:
    """At how many points the mean of the series meets the prediction."""
    hits, worst = 0, 0.0
    for hz in FREQUENCIES_HZ:
        mean, half = mean_and_half(drawn[hz, "prediction"])
        wanted = predicted[hz].exceeded_db(percent)
        hits += int(np.count_nonzero(np.abs(mean - wanted) <= half))
        worst = max(worst, float(np.max(np.abs(mean / wanted - 1))))
    return (
        f"Of {2 * percent.size} points\nat both frequencies the interval of `prediction` holds {hits}; the mean is off by "
        f"{100 * worst:.1f} % at most."
    )


def table_of_scaled(link: Measured) -> list[str]:
    """A row per share of the time."""
    assert link.frequency_hz is not None
    assert link.length_m is not None
    known = link.attenuation_db[np.isfinite(link.attenuation_db)]
    ground = GroundPath(link.frequency_hz, link.length_m, link.tilt_deg or 90.0)
    slant = to_slant_path(known, ground, ALLGAEU)
    prediction = predict(ALLGAEU)
    lines = [
        "| of the month, of a year | link, 25.4 GHz | brought to 19.7 GHz, 30 degrees | P.618 there |",
        "|--:|--:|--:|--:|",
    ]
    for share in (0.03, 0.1, 0.3, 1.0, 3.0):
        pair = [float(exceeded(values, np.array(share))) for values in (known, slant)]
        lines.append(f"| {share:g} % | {pair[0]:.2f} dB | {pair[1]:.2f} dB | {float(prediction.exceeded_db(share)):.2f} dB |")
    return lines


def of_record(found: Measured) -> dict[str, Any]:
    """How a measured attenuation comes and goes, and how series of the same distribution do."""
    whole = filled(found.time_s, found.attenuation_db, "hold", lost=np.inf, where=found.source)
    minutes = np.arange(int(whole.duration_s / 60)) * 60.0
    attenuation = whole.values[np.searchsorted(whole.time_s, minutes + 30.0) - 1]
    share = np.array([100 * np.mean(attenuation > level) for level in LEVELS_DB])
    # Levels that at least five minutes were above, and fewer than above the one before.
    kept = np.concatenate(([True], np.diff(share) < 0)) & (share * attenuation.size / 100 >= 5)
    distribution = Distribution(share[kept][::-1], LEVELS_DB[kept][::-1], 100 * float(np.mean(attenuation > 0)))
    result: dict[str, Any] = {"measured": dynamics_of(attenuation)}
    for name, parts in PROCESSES.items():
        result[name] = [
            dynamics_of(distribution.of_normal(normal_process(attenuation.size, 60.0, parts, stream(run, name))))
            for run in range(RUNS)
        ]
    return result


def dynamics_of(attenuation_db: Series) -> Dynamics:
    """How an attenuation comes and goes, minute by minute."""
    days, values = attenuation_db.size / 1440, []
    lengths: Series = np.zeros(0)
    for threshold_db in THRESHOLDS_DB:
        edges = np.flatnonzero(np.diff(np.concatenate(([False], attenuation_db > threshold_db, [False])).astype(np.int8)))
        runs = (edges[1::2] - edges[::2]).astype(np.float64)
        values += [runs.size / days, runs.mean(), float(np.median(runs))]
        lengths = runs if threshold_db == 3 else lengths
    slopes = np.abs(np.diff(attenuation_db))[attenuation_db[1:] > THRESHOLDS_DB[0]]
    values += [*np.percentile(slopes, [50, 90, 99])]
    centred = attenuation_db - attenuation_db.mean()
    values += [float(np.mean(centred[:-lag] * centred[lag:]) / np.mean(centred**2)) for lag in LAGS_MIN]
    return Dynamics(np.array(values), lengths, days)


def table_of_dynamics(name: str, found: dict[str, Any]) -> list[str]:
    """A row per quantity."""
    labels = [
        f"{what} over {threshold:g} dB"
        for threshold in THRESHOLDS_DB
        for what in ("fades per day", "mean length, min,", "median length, min,")
    ]
    labels += [f"slope, dB/min, {p} %" for p in (50, 90, 99)] + [f"autocorrelation at {lag} min" for lag in LAGS_MIN]
    days = found["measured"].days
    lines = [
        f"| {name} ({days:.0f} days) | measured | " + " | ".join(f"`{one}`" for one in PROCESSES) + " |",
        "|---|--:|--:|--:|",
    ]
    each = {one: mean_and_half([run.values for run in found[one]]) for one in PROCESSES}
    for index, label in enumerate(labels):
        cells = [f"{each[one][0][index]:.2f} ± {each[one][1][index]:.2f}" for one in PROCESSES]
        lines.append(f"| {label} | {found['measured'].values[index]:.2f} | {' | '.join(cells)} |")
    return lines


def said_of_dynamics(dynamics: dict[str, dict[str, Any]]) -> str:
    """What the tables amount to at 3 dB."""
    parts = []
    for one in PROCESSES:
        ratios = []
        for found in dynamics.values():
            mean, _ = mean_and_half([run.values for run in found[one]])
            ratios.append((mean[3] / found["measured"].values[3], mean[4] / found["measured"].values[4]))
        numbers = " and ".join(f"{rate:.1f}" for rate, _ in ratios)
        lengths = " and ".join(f"{length:.2f}" for _, length in ratios)
        parts.append(
            f"`{one}` has {numbers} times as many fades over 3 dB as the two links, {lengths} times as long in the mean"
        )
    return (
        ";\n".join(parts)
        + """. Both are
sums of first-order filters, whose path crosses a level the more often the finer it is looked at: a value per second makes many
fades of seconds. Where that matters, give `step_s` the time that the coding takes to react."""
    )


def picture_of_ccdf(
    measured: dict[Any, Series], predicted: dict[float, Distribution], drawn: dict[Any, list[Series]]
) -> Figure:
    """Attenuation exceeded, over the share of the time."""
    figure, (ax,) = new_figure(height_in=4.6)
    percent = measured["percent"]
    fine = np.geomspace(percent.min(), percent.max(), 200)
    for hz, colour in zip(FREQUENCIES_HZ, COLOURS, strict=False):
        low, high = np.quantile(np.array(drawn[hz, "prediction"]), [0.025, 0.975], axis=0)
        ax.fill_between(percent, low, high, color=colour, alpha=0.2, linewidth=0, label=f"{hz / 1e9:.3g} GHz, drawn")
        ax.plot(fine, predicted[hz].exceeded_db(fine), color=colour, label=f"{hz / 1e9:.3g} GHz, P.618")
        ax.plot(percent, measured[hz], "o", color=colour, markersize=5, label=f"{hz / 1e9:.3g} GHz, measured")
    ax.set(xscale="log", yscale="log", xlabel="share of the time (%)", ylabel="attenuation exceeded (dB)")
    legend_above(figure, ax, columns=3)
    return figure


def picture_of_dynamics(dynamics: dict[str, dict[str, Any]]) -> Figure:
    """How many fades over 3 dB last longer than a time."""
    figure, axes = new_figure(height_in=5.8, rows=2, is_y_shared=False)
    for ax, (name, found) in zip(axes, dynamics.items(), strict=True):
        grid = np.unique(np.round(np.geomspace(1, 300, 60)))
        for one, colour in zip(PROCESSES, COLOURS, strict=False):
            rates = np.array([longer(run, grid) for run in found[one]])
            low, high = np.quantile(rates, [0.025, 0.975], axis=0)
            ax.fill_between(grid, np.maximum(low, 1e-4), np.maximum(high, 1e-4), color=colour, alpha=0.2, linewidth=0)
            mean = rates.mean(axis=0)
            ax.plot(grid[mean > 0], mean[mean > 0], color=colour, label=one)
        rate = longer(found["measured"], grid)
        ax.plot(grid[rate > 0], rate[rate > 0], "o", color=INK, markersize=3.5, label="measured")
        ax.set(xscale="log", yscale="log", ylabel="fades per day", ylim=(0.5 / found["measured"].days / 4, None))
        ax.set_title(f"{name}: fades over 3 dB that last as long or longer", fontsize=TEXT_PT, loc="left")
    axes[-1].set_xlabel("length (min)")
    legend_above(figure, axes[0])
    return figure


def longer(found: Dynamics, grid: Series) -> Series:
    """Fades over 3 dB per day that last at least as long."""
    return np.array([np.count_nonzero(found.lengths_min >= length) for length in grid]) / found.days


if __name__ == "__main__":
    sys.exit(main())

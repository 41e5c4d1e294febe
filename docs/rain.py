"""Write `docs/validation/rain.md` and its pictures: `make papers`. Takes a minute."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import page
from numpy.typing import NDArray
from page import DATA
from scipy import stats

from farlink.channels.importers.gaps import filled
from farlink.channels.importers.recording import Hints, load_one
from farlink.channels.rain.distribution import MARGINALS, Distribution
from farlink.channels.rain.levels import Measured, read_measured
from farlink.channels.rain.prediction import SlantPath, length_in_rain_m, predict, versions
from farlink.channels.rain.process import TWO_SCALES, first_order, normal_process
from farlink.channels.rain.scaling import GroundPath, to_slant_path
from farlink.channels.synthesis.streams import stream
from farlink.plot.style import COLOURS, INK, TEXT_PT, legend_above, new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LOUVAIN = {"latitude_deg": 50.67, "longitude_deg": 4.61, "elevation_deg": 30.0, "height_m": 160.0}
FREQUENCIES_HZ = (19.7e9, 39.402e9)
# Range in which the prediction is judged: below it two years have too few fades; above it clouds add much to the measurement.
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


@dataclass(frozen=True)
class Dynamics:
    """Dynamics of an attenuation.

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


def main() -> None:
    """Compute everything, draw it and write the page."""
    page.start(__doc__, DATA / "alphasat-ccdf-derived", DATA / "cml-pycomlink")
    measured = read_ccdf(DATA / "alphasat-ccdf-derived" / "ccdf.csv")
    predicted = {hz: predict(SlantPath(**LOUVAIN, frequency_hz=hz)) for hz in FREQUENCIES_HZ}
    drawn, dynamics = {}, {}
    with page.steps("series", RUNS + len(RECORDS), "parts") as told:
        for run in range(RUNS):
            process = normal_process(
                round(YEARS * 365.25 * 86_400 / STEP_S), STEP_S, PROCESSES["first-order"], stream(run, "rain")
            )
            for hz, prediction in predicted.items():
                for name, marginal in MARGINALS.items():
                    drawn.setdefault((hz, name), []).append(exceeded(marginal(prediction)(process), measured["percent"]))
            told()
        for name, (file, column) in RECORDS.items():
            found = read_measured(load_one(DATA / "cml-pycomlink" / file, None, Hints(column=column)))
            dynamics[name] = of_record(found)
            told()
    link = read_measured(load_one(DATA / "cml-pycomlink" / "one_cml.h5", None, Hints(column="cml_0/channel_1")))
    pictures = {
        "rain-ccdf": picture_of_ccdf(measured, predicted, drawn),
        "rain-dynamics": picture_of_dynamics(dynamics),
    }
    page.write(
        "rain.md",
        pictures,
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
    """Errors of the prediction."""
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
    """Number of points at which the mean of the series meets the prediction."""
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
    """Dynamics of a measured attenuation, and of synthetic series with the same distribution."""
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
    """Dynamics of an attenuation by minutes."""
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
    """Summary of the tables at 3 dB."""
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
    """Number of fades over 3 dB that last longer than a time."""
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
    main()

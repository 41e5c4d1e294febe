"""Write `docs/validation/fading.md` and its pictures: `make papers`. Takes some minutes."""

from __future__ import annotations

import json
import math
import time
from typing import TYPE_CHECKING, Any

import numpy as np
import page
from numpy.typing import NDArray
from scipy import signal, stats

from farlink.channels.fades import fade_statistics
from farlink.channels.synthesis import PRESETS, downlink, settle
from farlink.channels.synthesis.marginals import NODES, mapped, weibull, weibull_variance
from farlink.channels.synthesis.streams import stream
from farlink.plot.style import COLOURS, INK, TEXT_PT, legend_above, new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

STATISTICS = page.DATA / "fso-10khz-derived" / "stats.json"

RATE_HZ = 10_000.0
RUNS = 40
RUN_S = 100.0
THRESHOLDS_DB = (0, -3, -6, -10)
JUDGED_DB = (-3, -6)
RECORDS = ("moderate", "weak")
ELEVATIONS_DEG = (5, 10, 20, 30, 60, 90)
LAGS_S = np.unique(np.round(np.geomspace(1e-4, 2.0, 80), 4))
EDGES_DB = np.arange(-30.0, 8.01, 0.25)

Series = NDArray[np.float64]


def main() -> None:
    """Draw everything and write the page."""
    page.start(__doc__, STATISTICS)
    measured = json.loads(STATISTICS.read_text(encoding="utf-8"))["records"]
    found: dict[str, Series] = {}
    per_second = []
    with page.steps("records", len(RECORDS) * RUNS) as told:
        for name in RECORDS:
            runs = []
            for seed in range(1, RUNS + 1):
                power = settle(name, seed=seed, duration_s=RUN_S).power()["power_w"]
                runs.append(statistics(power))
                if name == "weak":
                    seconds = power.reshape(int(RUN_S), -1)
                    per_second.append(seconds.var(axis=1) / seconds.mean(axis=1) ** 2)
                told()
            found[name] = np.array(runs)
        first_order = np.array([statistics(first_order_power(seed)) for seed in range(1, RUNS + 1)])
    drawn, cpu_s = {}, {}
    for name in PRESETS:
        settle(name, seed=2).power()
        begin = time.process_time()
        drawn[name] = settle(name).power()
        cpu_s[name] = time.process_time() - begin
    spread = np.mean([(s.min(), s.max()) for s in per_second], axis=0)
    pictures = {
        "fading-presets": picture_of_power(drawn, 0.0, RUN_S, 500),
        "fading-second": picture_of_power(drawn, 60.0, 61.0, 1000),
        "fading-distribution": picture_of_distribution(drawn, measured),
        "fading-correlation": picture_of_correlation(drawn, measured),
    }
    page.write(
        "fading.md",
        pictures,
        verdict=verdict(measured, found),
        runs=RUNS,
        seconds=RUN_S,
        fades="\n".join(table_of_fades(measured, found)),
        beyond=beyond(measured, found),
        first_order="\n".join(table_of_first_order(measured, first_order)),
        tails=tails(measured, drawn),
        seconds_measured="{SI_min:.3f} and {SI_max:.3f}".format(**measured["weak"]["per_second"]),
        seconds_found=f"{spread[0]:.3f} and {spread[1]:.3f}",
        presets="\n".join(table_of_presets(drawn, cpu_s)),
        passes=6,
        elevation="\n".join(table_of_elevation(6)),
    )


def statistics(power: Series) -> list[tuple[float, float]]:
    """Rate and mean length of the fades below each threshold."""
    return [(found.rate_per_s, found.mean_s) for found in fade_statistics(power, RATE_HZ, THRESHOLDS_DB)]


def first_order_power(seed: int) -> Series:
    """The distribution of `moderate` over a first-order process."""
    keep = math.exp(-1 / (10e-3 * RATE_HZ))
    noise = stream(seed, "first order").standard_normal(int(RUN_S * RATE_HZ))
    noise[0] /= math.sqrt(1 - keep * keep)
    path = signal.lfilter([math.sqrt(1 - keep * keep)], [1, -keep], noise)
    return mapped(path, [weibull(NODES, weibull_variance(1.83))], RATE_HZ)


def clear_power(trace: Any) -> Series:
    """Power where nothing blocks."""
    power: Series = trace["power_w"]
    return power[trace["blocked"] == 0] if "blocked" in trace.arrays else power


def mean_and_half(runs: Series) -> tuple[Series, Series]:
    """Mean over runs without NaN, and the half-width of its 95 % interval."""
    counts = np.sum(np.isfinite(runs), axis=0)
    half = stats.t.ppf(0.975, np.maximum(counts - 1, 1)) * np.nanstd(runs, axis=0, ddof=1) / np.sqrt(counts)
    return np.nanmean(runs, axis=0), half


def at(measured: dict[str, Any], name: str, threshold_db: int) -> tuple[float, float, int]:
    """Measured rate per second, mean length in ms, and number of fades."""
    (row,) = [row for row in measured[name]["fades_below_threshold"] if row["threshold_dB"] == threshold_db]
    return row["fades_per_s"], row["mean_ms"], row["n"]


def ratios(measured: dict[str, Any], name: str, runs: Series, threshold_db: int) -> tuple[float, float, float, float]:
    """Synthetic over measured rate, half-width of its interval, and the same of the length."""
    mean, half = mean_and_half(runs)
    index = THRESHOLDS_DB.index(threshold_db)
    rate, length_ms, _ = at(measured, name, threshold_db)
    return mean[index, 0] / rate, half[index, 0] / rate, 1e3 * mean[index, 1] / length_ms, 1e3 * half[index, 1] / length_ms


def verdict(measured: dict[str, Any], found: dict[str, Series]) -> str:
    """One sentence per record."""
    sentences = []
    for name in RECORDS:
        each = [ratios(measured, name, found[name], threshold_db) for threshold_db in JUDGED_DB]
        worst = max(abs(r - 1) for row in each for r in (row[0], row[2]))
        reach = max(abs(r - 1) + h for row in each for r, h in ((row[0], row[1]), (row[2], row[3])))
        kept = "within 20 %" if reach <= 0.2 else "not surely within 20 %" if worst <= 0.2 else "**not within 20 %**"
        sentences.append(
            f"`{name}` is {kept}: the largest difference at -3 and -6 dB is {100 * worst:.0f} %,\n"
            f"{100 * reach:.0f} % at the far end of its interval."
        )
    return "\n".join(sentences)


def beyond(measured: dict[str, Any], found: dict[str, Series]) -> str:
    """Differences at the thresholds that are not judged."""
    parts = []
    for name in RECORDS:
        rate, rate_half, length, length_half = ratios(measured, name, found[name], -10)
        parts.append(
            f"`{name}` at -10 dB has {rate:.2f} ± {rate_half:.2f} times the measured rate\n"
            f"and {length:.2f} ± {length_half:.2f} times the length"
        )
    return "Not judged, and farther off: " + ";\n".join(parts) + ". Fades so deep are rarer than measured."


def table_of_fades(measured: dict[str, Any], found: dict[str, Series]) -> list[str]:
    """A row per record and threshold."""
    lines = [
        "| preset | fades | threshold | rate measured | synthetic | ratio | length measured | synthetic | ratio |",
        "|---|--:|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for name in RECORDS:
        mean, half = mean_and_half(found[name])
        for index, threshold_db in enumerate(THRESHOLDS_DB):
            rate, length_ms, count = at(measured, name, threshold_db)
            r = ratios(measured, name, found[name], threshold_db)
            lines.append(
                f"| `{name}` | {count:,} | {threshold_db} dB | {rate:.3g} /s | {mean[index, 0]:.3g} ± {half[index, 0]:.2g} "
                f"| {r[0]:.2f} ± {r[1]:.2f} | {length_ms:.3g} ms | {1e3 * mean[index, 1]:.3g} ± {1e3 * half[index, 1]:.2g} "
                f"| {r[2]:.2f} ± {r[3]:.2f} |"
            )
    return lines


def table_of_first_order(measured: dict[str, Any], runs: Series) -> list[str]:
    """A row per threshold."""
    lines = ["| threshold | rate measured | first order | length measured | first order |", "|--:|--:|--:|--:|--:|"]
    mean, _ = mean_and_half(runs)
    for index, threshold_db in enumerate(THRESHOLDS_DB):
        rate, length_ms, _ = at(measured, "moderate", threshold_db)
        lines.append(
            f"| {threshold_db} dB | {rate:.3g} /s | {mean[index, 0]:.3g} /s "
            f"| {length_ms:.3g} ms | {1e3 * mean[index, 1]:.2g} ms |"
        )
    return lines


def tails(measured: dict[str, Any], drawn: dict[str, Any]) -> str:
    """The level exceeded in all but 0.1 % of the time, beside the measured one."""
    parts = []
    for name in RECORDS:
        power = clear_power(drawn[name])
        level = 10 * np.log10(np.quantile(power, 1e-3) / power.mean())
        known = measured[name]["quantiles_dB_re_mean"]["0.001"]
        parts.append(f"a thousandth of the time `{name}` is below {level:.1f} dB (measured {known:.1f})")
    return ",\n".join(parts)


def table_of_presets(drawn: dict[str, Any], cpu_s: dict[str, float]) -> list[str]:
    """A row per preset."""
    lines = [
        "| preset | stands for | index | 1/e | fades below -3 dB | below -6 dB | blocked | CPU |",
        "|---|---|--:|--:|--:|--:|--:|--:|",
    ]
    for name, trace in drawn.items():
        power = clear_power(trace)
        blocked = f"{100 * trace['blocked'].mean():.2g} %" if "blocked" in trace.arrays else "-"
        below = fade_statistics(trace["power_w"], RATE_HZ, JUDGED_DB, blocked=trace.arrays.get("blocked"))
        cells = [f"{found.rate_per_s:.3g} /s x {1e3 * found.mean_s:.3g} ms" if found.fades else "none" for found in below]
        tau_s = LAGS_S[np.argmax(correlation(trace) < math.exp(-1))]
        lines.append(
            f"| `{name}` | {PRESETS[name].title} | {power.var() / power.mean() ** 2:.3f} | {1e3 * tau_s:.1f} ms "
            f"| {cells[0]} | {cells[1]} | {blocked} | {cpu_s[name]:.2f} s |"
        )
    return lines


def table_of_elevation(seeds: int) -> list[str]:
    """Index of synthetic passes and of the table, by elevation."""
    quiet = {"direction": "whole", "jitter_rad": 0, "tracking_loss_every_s": 0, "transmit_power": "elevation"}
    passes = [settle("kiodo", quiet, seed=seed) for seed in range(1, seeds + 1)]
    powers = [wanted.power()["power_w"] for wanted in passes]
    geometry = passes[0].geometry
    assert geometry is not None
    seconds = np.arange(0.0, passes[0].duration_s)
    elevation = geometry.elevation_deg(seconds)
    top = int(elevation.argmax())
    lines = ["| elevation | table | its mean over 20 s | synthetic | distance |", "|--:|--:|--:|--:|--:|"]
    for wanted_deg in ELEVATIONS_DEG:
        centre = int(np.argmin(np.abs(elevation[: top + 1] - wanted_deg)))
        begin = int(max(centre - 10, 0) * RATE_HZ)
        indices = [p[begin : begin + int(20 * RATE_HZ)] for p in powers]
        index = np.mean([p.var() / p.mean() ** 2 for p in indices])
        table = float(downlink.scintillation_index(np.array(float(wanted_deg))))
        around = downlink.scintillation_index(elevation[max(centre - 10, 0) : max(centre - 10, 0) + 21]).mean()
        range_km = float(geometry.range_m(seconds[centre : centre + 1])[0]) / 1e3
        lines.append(f"| {wanted_deg} degrees | {table:.3g} | {around:.3g} | {index:.3g} | {range_km:,.0f} km |")
    return lines


def correlation(trace: Any) -> Series:
    """Autocorrelation of the power at `LAGS_S`, over unblocked pairs."""
    power = trace["power_w"]
    clear = trace["blocked"] == 0 if "blocked" in trace.arrays else np.ones(power.size, dtype=bool)
    centred = np.where(clear, power - power[clear].mean(), 0.0)
    variance = np.dot(centred, centred) / np.count_nonzero(clear)
    found = []
    for lag in np.round(LAGS_S * RATE_HZ).astype(int):
        pairs = np.count_nonzero(clear[:-lag] & clear[lag:])
        found.append(np.dot(centred[:-lag], centred[lag:]) / pairs / variance)
    return np.array(found)


def picture_of_power(drawn: dict[str, Any], start_s: float, end_s: float, buckets: int) -> Figure:
    """Least, mean and greatest power over time, a row per preset."""
    figure, axes = new_figure(height_in=9.2, rows=len(drawn), is_y_shared=True)
    for ax, (name, trace), colour in zip(axes, drawn.items(), COLOURS, strict=False):
        level = 10 * np.log10(trace["power_w"] / clear_power(trace).mean())
        inside = level[int(start_s * RATE_HZ) : int(end_s * RATE_HZ)].reshape(buckets, -1)
        time_s = start_s + (np.arange(buckets) + 0.5) * (end_s - start_s) / buckets
        if inside.shape[1] > 100:
            ax.fill_between(time_s, inside.min(axis=1), inside.max(axis=1), color=colour, alpha=0.35, linewidth=0)
        mean = 10 * np.log10((10 ** (inside / 10)).mean(axis=1))
        ax.plot(time_s, mean, color=colour, linewidth=0.9)
        ax.set_title(f"{name} (synthetic)", fontsize=TEXT_PT, loc="left")
        ax.set(ylim=(-25, 8), xlim=(start_s, end_s))
    axes[-1].set_xlabel("time (s)")
    figure.supylabel("received power (dB relative to the mean)", fontsize=10, color=INK)
    return figure


def picture_of_distribution(drawn: dict[str, Any], measured: dict[str, Any]) -> Figure:
    """Share of the time below a power."""
    figure, (ax,) = new_figure(height_in=4.6)
    for (name, trace), colour in zip(drawn.items(), COLOURS, strict=False):
        power = np.sort(clear_power(trace))
        below = np.searchsorted(power, power.mean() * 10 ** (EDGES_DB / 10)) / power.size
        seen = (below > 2e-5) & (below < 1)
        ax.plot(EDGES_DB[seen], below[seen], color=colour, label=name)
        if name in RECORDS:
            quantiles = measured[name]["quantiles_dB_re_mean"]
            ax.plot(
                list(quantiles.values()),
                [float(q) for q in quantiles],
                "o",
                color=colour,
                markersize=4,
                label=f"{name}, measured",
            )
    ax.set(yscale="log", ylim=(5e-5, 1.1), xlabel="received power (dB relative to the mean)", ylabel="share of the time below")
    legend_above(figure, ax)
    return figure


def picture_of_correlation(drawn: dict[str, Any], measured: dict[str, Any]) -> Figure:
    """Autocorrelation of the power."""
    figure, (ax,) = new_figure(height_in=4.6)
    for (name, trace), colour in zip(drawn.items(), COLOURS, strict=False):
        ax.plot(1e3 * LAGS_S, correlation(trace), color=colour, label=name)
        if name in RECORDS:
            lags = measured[name]["acf_I"]
            ax.plot(
                [float(lag) for lag in lags], list(lags.values()), "o", color=colour, markersize=4, label=f"{name}, measured"
            )
    ax.set(xscale="log", xlabel="lag (ms)", ylabel="autocorrelation of the power")
    legend_above(figure, ax)
    return figure


if __name__ == "__main__":
    main()

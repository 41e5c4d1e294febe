"""Figure of a received power: over time, its bit error rate, its distribution, its memory and its fades."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from farlink.channels import fades, power
from farlink.channels.receiver import Receiver
from farlink.channels.trace import Trace
from farlink.plot import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SIZE_IN = (9.5, 10.5)

_BLUE, _RED, _GREEN = style.COLOURS[:3]
# Shortest trace with statistics of fades; lowest error rate that is drawn.
_FEWEST_FADES = 5
_LOWEST_BER = 1e-15
_SHADE = "#d9dee3"


def draw(drawn: Figure, trace: Trace, receiver: Receiver | None) -> None:
    """Draw a received power into an empty figure.

    Parameters
    ----------
    drawn
        The figure.
    trace
        A trace of kind ``"power"``.
    receiver
        Whose bit error rate is drawn; none for power without a unit.
    """
    grid = drawn.add_gridspec(4, 6, height_ratios=(1.1, 1.1, 1, 1))
    over_time = drawn.add_subplot(grid[0, :])
    mask = power.blocked(trace)
    rate_hz = power.sample_rate_hz(trace)
    _over_time(over_time, trace, rate_hz, fades.mean_power(trace["power_w"], blocked=mask))
    errors = drawn.add_subplot(grid[1, :], sharex=over_time)
    _errors(errors, trace, receiver, rate_hz, mask)
    for panel in (over_time, errors):
        _blockages(panel, mask, rate_hz)
    if mask.any():
        said = f"shaded: blocked, {100 * mask.mean():.3g} % of the time"
        over_time.set_title(said, loc="right", fontweight="normal")
    _density(drawn.add_subplot(grid[2, :2]), trace, mask)
    _cumulative(drawn.add_subplot(grid[2, 2:4]), trace, mask)
    _memory(drawn.add_subplot(grid[2, 4:]), trace, rate_hz, mask)
    _fade_panels(drawn.add_subplot(grid[3, :3]), drawn.add_subplot(grid[3, 3:]), trace, rate_hz, mask)


def _over_time(panel: Axes, trace: Trace, rate_hz: float, mean_w: float) -> None:
    found = fades.bands(trace["power_w"] / mean_w, rate_hz)
    floor = 10 ** (_lowest_level_db(trace["power_w"] / mean_w) / 10)
    low, mean, high = (10 * np.log10(np.maximum(values, floor)) for values in (found.low, found.mean, found.high))
    _band(panel, found.edges_s, low, high, _BLUE)
    panel.stairs(mean, found.edges_s, color=_BLUE, linewidth=0.9, baseline=None)
    panel.axhline(0, color=style.INK, linewidth=0.8, linestyle="--")
    named = "" if power.is_relative(trace) else f"   (dashed: mean {_watts(mean_w)}, {10 * np.log10(mean_w / 1e-3):.1f} dBm)"
    panel.set(title=f"Received power{named}", xlabel="time, s", ylabel="dB re mean", xlim=(0, found.edges_s[-1]))
    panel.grid(color=style.RULE, linewidth=0.5)


def _blockages(panel: Axes, mask: NDArray[np.bool_], rate_hz: float) -> None:
    edges = np.flatnonzero(np.diff(np.concatenate(([False], mask, [False])).astype(np.int8)))
    for start, end in zip(edges[::2] / rate_hz, edges[1::2] / rate_hz, strict=True):
        panel.axvspan(start, end, color=_SHADE, linewidth=0, zorder=0)


def _errors(panel: Axes, trace: Trace, receiver: Receiver | None, rate_hz: float, mask: NDArray[np.bool_]) -> None:
    panel.set(xlabel="time, s", ylabel="bit error rate")
    if receiver is None or power.is_relative(trace):
        reason = "no receiver is named" if receiver is None else "the power has no unit: calibrate it first"
        panel.set(title="Short-term bit error rate", yticks=[])
        panel.text(0.5, 0.5, reason, transform=panel.transAxes, ha="center", color=style.INK)
        return
    short_term = fades.short_term_ber(trace["power_w"], receiver)
    found = fades.bands(short_term, rate_hz)
    low, mean, high = (np.maximum(values, _LOWEST_BER) for values in (found.low, found.mean, found.high))
    _band(panel, found.edges_s, low, high, _RED)
    panel.stairs(mean, found.edges_s, color=_RED, linewidth=0.9, baseline=None)
    long_term = float(short_term[~mask].mean())
    panel.axhline(max(long_term, _LOWEST_BER), color=style.INK, linewidth=0.8, linestyle="--")
    panel.set(title=f"Short-term bit error rate, {receiver.name}   (dashed: long-term {long_term:.3g})", yscale="log")
    panel.set_ylim(max(_LOWEST_BER, float(low.min()) / 3), 1.0)
    panel.grid(color=style.RULE, linewidth=0.5)


def _band(panel: Axes, edges_s: NDArray[np.float64], low: NDArray[np.float64], high: NDArray[np.float64], colour: str) -> None:
    panel.fill_between(
        edges_s, np.append(low, low[-1]), np.append(high, high[-1]), step="post", color=colour, alpha=0.3, linewidth=0
    )


def _density(panel: Axes, trace: Trace, mask: NDArray[np.bool_]) -> None:
    edges, density = fades.histogram(trace["power_w"], blocked=mask)
    panel.stairs(np.where(density > 0, density, np.nan), edges, color=_BLUE, linewidth=1.2, baseline=None)
    shown = np.flatnonzero(density > 0)
    panel.set(title="Density", xlabel="power, dB re mean", ylabel="1/dB", yscale="log")
    if shown.size:
        panel.set_xlim(edges[shown[0]] - 1, edges[shown[-1] + 1] + 1)
    index = fades.scintillation_index(trace["power_w"], blocked=mask)
    panel.text(0.5, 0.05, f"scintillation\nindex {index:.3g}", transform=panel.transAxes, ha="center", va="bottom")
    panel.grid(color=style.RULE, linewidth=0.5)


def _cumulative(panel: Axes, trace: Trace, mask: NDArray[np.bool_]) -> None:
    level_db, share = fades.cumulative(trace["power_w"], blocked=mask)
    panel.step(level_db, share, where="post", color=_BLUE, linewidth=1.3)
    panel.set(title="Share of time at or below", xlabel="power, dB re mean", ylabel="share", yscale="log")
    panel.set_xlim(right=max(1.0, float(level_db[-1]) + 1) if level_db.size else 1.0)
    panel.grid(color=style.RULE, linewidth=0.5)


def _memory(panel: Axes, trace: Trace, rate_hz: float, mask: NDArray[np.bool_]) -> None:
    lags_s, correlation = fades.autocorrelation(
        trace["power_w"], rate_hz, min(10.0, float(trace.meta["duration_s"]) / 4), blocked=mask
    )
    time_s = fades.correlation_time_s(lags_s, correlation)
    panel.set(title="Autocorrelation", xlabel="lag, ms", ylabel="correlation")
    if lags_s.size > 1:
        panel.plot(1e3 * lags_s[1:], correlation[1:], color=_GREEN, linewidth=1.2)
        panel.set_xscale("log")
    panel.axhline(np.exp(-1), color=style.MUTED, linewidth=0.8, linestyle=":")
    panel.set_ylim(min(-0.1, float(correlation.min())), 1.05)
    if np.isfinite(time_s):
        panel.text(0.96, 0.95, f"1/e (dotted)\nat {1e3 * time_s:.3g} ms", transform=panel.transAxes, ha="right", va="top")
    panel.grid(color=style.RULE, linewidth=0.5)


def _fade_panels(rates: Axes, lengths: Axes, trace: Trace, rate_hz: float, mask: NDArray[np.bool_]) -> None:
    found = fades.fade_statistics(trace["power_w"], rate_hz, _thresholds(trace["power_w"], mask), blocked=mask)
    found = [one for one in found if one.fades >= _FEWEST_FADES]
    rates.set(title="Fades per second", xlabel="threshold, dB re mean", ylabel="fades per second")
    lengths.set(title="Length of a fade", xlabel="threshold, dB re mean", ylabel="length, ms")
    if not found:
        for panel in (rates, lengths):
            panel.text(0.5, 0.5, f"fewer than {_FEWEST_FADES} fades", transform=panel.transAxes, ha="center", color=style.INK)
        return
    threshold = [one.threshold_db for one in found]
    rate = np.array([one.rate_per_s for one in found])
    rates.plot(threshold, rate, color=_RED, linewidth=1.4)
    half = np.array([one.rate_ci95_per_s for one in found])
    rates.fill_between(threshold, np.maximum(rate - half, rate / 10), rate + half, color=_RED, alpha=0.2, linewidth=0)
    rates.set_yscale("log")
    for name, values, look in (
        ("99 %", [one.p99_s for one in found], ":"),
        ("90 %", [one.p90_s for one in found], "--"),
        ("mean", [one.mean_s for one in found], "-"),
        ("median", [one.median_s for one in found], "-."),
    ):
        lengths.plot(threshold, 1e3 * np.array(values), color=_RED, linestyle=look, linewidth=1.4, label=name)
    lengths.set_yscale("log")
    lengths.legend(frameon=False, ncols=2)
    for panel in (rates, lengths):
        panel.grid(color=style.RULE, linewidth=0.5)


def _thresholds(power_w: NDArray[np.float64], mask: NDArray[np.bool_]) -> list[float]:
    clear = power_w[~mask]
    lowest = _lowest_level_db(clear / clear.mean())
    top = 10 * np.log10(max(float(np.percentile(clear, 95) / clear.mean()), 1.1))
    return [float(one) for one in np.linspace(lowest, top, 50)]


def _lowest_level_db(relative: NDArray[np.float64]) -> float:
    """Lower limit of a picture, in dB: the least power, but at least -40 dB."""
    lowest = float(relative.min())
    return max(-40.0, 10 * np.log10(lowest)) if lowest > 0 else -40.0


def _watts(power_w: float) -> str:
    for unit, scale in (("W", 1.0), ("mW", 1e-3), ("µW", 1e-6), ("nW", 1e-9)):
        if power_w >= scale:
            return f"{power_w / scale:.3g} {unit}"
    return f"{power_w:.3g} W"

"""Summary statistics of a trace."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from farlink.arguments import checked_arguments
from farlink.channels.bursts import is_intermediate, run_lengths, segments, trace_runs
from farlink.channels.trace import Trace

if TYPE_CHECKING:
    from farlink.channels.receiver import Receiver

# Percentiles of a received power.
LEVELS = (0.1, 1, 10, 50, 90, 99)

# Shares of the time for which C/N0 is below a level, and depths of fades below the highest C/N0.
CN0_PERCENT = (0.01, 0.1, 1.0, 10.0, 50.0)
FADES_DB = (3.0, 10.0)
BER_LEVELS = (1e-7, 1e-6, 1e-5, 1e-4, 1e-3)

# Gaps in a delivery trace above this count as outage.
OUTAGE_S = 0.1

_LONGEST_CORRELATION_S = 30.0

# Largest number of windows whose rate is printed and drawn: 0.1 s over five days.
MOST_WINDOWS = 4_500_000


@checked_arguments
def summary(trace: Trace) -> dict[str, float]:
    """Numbers that characterise a trace, by name; the suffix is the unit, ratios have none.

    Parameters
    ----------
    trace
        Any trace.

    Returns
    -------
    dict
        ``duration_s``, and for capacity ``rate_mean_bps``, percentiles ``rate_100ms_p5_bps``, ``longest_gap_s``,
        ``time_in_gaps``; for delay ``delay_p50_s`` and the like; for losses ``loss``, ``burst_mean_frames`` and the like; for
        received power see `power_summary`; for error rates ``ber`` and shares ``time_above_1e-06`` and the like; for C/N0
        ``cn0_max_dbhz``, ``cn0_p1_dbhz`` and the like, and fades below the highest.

    Examples
    --------
    >>> summary(Trace("packet-loss", {"lost": [0, 1, 1, 0]}))["burst_mean_frames"]
    2.0
    """
    return _SUMMARY[trace.kind](trace)


def windowed_rate_bps(trace: Trace, window_s: float) -> NDArray[np.float64]:
    """Mean capacity in consecutive windows of a ``delivery`` or ``rate`` trace, in bit/s; a last incomplete one is left out.

    Parameters
    ----------
    trace
        The trace.
    window_s
        Length of a window, in s.
    """
    duration_s = float(trace.meta["duration_s"])
    windows = max(1, int(duration_s / window_s + 1e-9))
    edges = np.arange(windows + 1, dtype=np.float64) * np.float64(window_s)
    rates: NDArray[np.float64] = np.diff(_carried_bits(trace, edges)) / edges[1]
    return rates


def gaps_s(trace: Trace) -> NDArray[np.float64]:
    """Times without capacity, in s: between opportunities of a ``delivery`` trace, or at rate 0 of a ``rate`` trace."""
    if trace.kind == "delivery":
        return np.diff(np.concatenate(([0.0], trace["opportunity_s"])))
    spans = np.diff(np.concatenate((trace["time_s"], [float(trace.meta["duration_s"])])))
    down = trace["rate_bps"] == 0
    starts = np.flatnonzero(down & ~np.concatenate(([False], down[:-1])))
    if starts.size == 0:
        return np.zeros(0)
    down_s = np.append(np.where(down, spans, 0.0), 0.0)
    lengths: NDArray[np.float64] = np.add.reduceat(down_s, np.append(starts, spans.size))[:-1].astype(np.float64)
    return lengths


def _carried_bits(trace: Trace, at_s: NDArray[np.float64]) -> NDArray[np.float64]:
    """Bits that could have crossed before each time."""
    if trace.kind == "delivery":
        # Times are whole milliseconds: half a microsecond of room keeps rounding from moving one over an edge.
        count = np.searchsorted(trace["opportunity_s"], at_s - 5e-7)
        return np.asarray(count * 8.0 * float(trace["bytes_per_opportunity"]), dtype=np.float64)
    ends = np.concatenate((trace["time_s"], [float(trace.meta["duration_s"])]))
    carried = np.concatenate(([0.0], np.cumsum(np.diff(ends) * trace["rate_bps"])))
    return np.interp(at_s, ends, carried)


def _capacity(trace: Trace) -> dict[str, float]:
    duration_s = float(trace.meta["duration_s"])
    if trace.kind == "delivery":
        bits = trace["opportunity_s"].size * 8.0 * float(trace["bytes_per_opportunity"])
    else:
        bits = float(_carried_bits(trace, np.array([duration_s]))[0])
    found = {"duration_s": duration_s, "rate_mean_bps": bits / duration_s}
    for name, window_s in (("100ms", 0.1), ("1s", 1.0)):
        if duration_s >= window_s and duration_s / window_s <= MOST_WINDOWS:
            rates = windowed_rate_bps(trace, window_s)
            found |= {f"rate_{name}_p{p}_bps": float(np.percentile(rates, p)) for p in (1, 5, 50, 95, 99)}
    gaps = gaps_s(trace)
    found["longest_gap_s"] = float(gaps.max(initial=0.0))
    found["time_in_gaps"] = float(gaps[gaps > OUTAGE_S + 1e-9].sum()) / duration_s
    return found


def _delay(trace: Trace) -> dict[str, float]:
    time_s, delay_s = trace["time_s"], trace["delay_s"]
    duration_s = float(trace.meta["duration_s"])
    held = np.diff(np.concatenate((time_s, [duration_s])))
    found = {"duration_s": duration_s, "delay_mean_s": float(np.average(delay_s, weights=held))}
    found["delay_min_s"] = float(delay_s.min())
    found |= {f"delay_p{p}_s": float(np.percentile(delay_s, p)) for p in (1, 50, 95, 99)}
    found["delay_max_s"] = float(delay_s.max())
    found["longest_gap_s"] = float(held.max())
    if "drop_rate" in trace.arrays:
        found["loss"] = float(trace["drop_rate"].mean())
        found["time_with_loss"] = float((trace["drop_rate"] > 0).mean())
    return found


def _packet_loss(trace: Trace) -> dict[str, float]:
    lost, parts = trace["lost"], segments(trace)
    runs = trace_runs(trace)
    found = {"frames": float(lost.size), "loss": float(lost.mean()), **_bursts("", runs.lost, runs.received)}
    if len(parts) > 1:
        received = np.array([1 - part.mean() for part in parts])
        found["links"] = float(len(parts))
        found["links_below_5_percent"] = float((received < 0.05).mean())
        found["links_above_95_percent"] = float((received > 0.95).mean())
        found["links_with_nothing"] = float((received == 0).mean())
        found["links_with_everything"] = float((received == 1).mean())
        found["intermediate_links"] = float(sum(is_intermediate(part) for part in parts))
        between = trace_runs(trace, intermediate_only=True)
        found |= _bursts("intermediate_", between.lost, between.received)
    return found


def _bursts(prefix: str, lost: NDArray[np.int64], received: NDArray[np.int64]) -> dict[str, float]:
    found = {f"{prefix}bursts": float(lost.size)}
    if lost.size:
        found[f"{prefix}burst_mean_frames"] = float(lost.mean())
        found[f"{prefix}burst_median_frames"] = float(np.median(lost))
        found[f"{prefix}burst_p95_frames"] = float(np.percentile(lost, 95))
        found[f"{prefix}burst_max_frames"] = float(lost.max())
        found[f"{prefix}losses_in_bursts_of_5"] = float(lost[lost >= 5].sum() / lost.sum())
    if received.size:
        found[f"{prefix}good_run_mean_frames"] = float(received.mean())
    return found


def _bit_errors(trace: Trace) -> dict[str, float]:
    position, bits = trace["position"], float(trace["bits"])
    found = {"bits": bits, "errors": float(position.size), "ber": position.size / bits}
    if position.size > 1:
        distance = np.diff(position)
        found["distance_median_bits"] = float(np.median(distance))
        found["distance_max_bits"] = float(distance.max())
    return found


def power_summary(trace: Trace, receiver: Receiver | None = None) -> dict[str, float]:
    """Numbers that characterise a received power, without its blockages.

    Parameters
    ----------
    trace
        A trace of kind ``"power"``.
    receiver
        Adds its long-term bit error rate, ``ber``, and the share of the time in which half of the wrong bits fall,
        ``time_of_half_the_errors``, unless the power has no unit.

    Returns
    -------
    dict
        ``power_mean_w``, ``scintillation_index``, percentiles ``level_p1_db`` relative to the mean, ``correlation_time_s``
        (lag at which the autocorrelation has fallen to 1/e; NaN if it does not within half a minute), ``blockages``,
        ``time_blocked`` and the like.
    """
    from farlink.channels import fades, power

    rate_hz, mask = power.sample_rate_hz(trace), power.blocked(trace)
    clear = trace["power_w"][~mask]
    found = {
        "duration_s": float(trace.meta["duration_s"]),
        "sample_rate_hz": rate_hz,
        "is_relative": float(power.is_relative(trace)),
    }
    found["scintillation_index"] = fades.scintillation_index(trace["power_w"], blocked=mask)
    mean_w = fades.mean_power(trace["power_w"], blocked=mask)
    found["power_mean_w"] = mean_w
    with np.errstate(divide="ignore"):
        found |= {f"level_p{p}_db": float(10 * np.log10(np.percentile(clear, p) / mean_w)) for p in LEVELS}
    found["correlation_time_s"] = fades.correlation_time_s(
        *fades.autocorrelation(trace["power_w"], rate_hz, _LONGEST_CORRELATION_S, blocked=mask)
    )
    runs = run_lengths(mask).lost
    found |= {"blockages": float(runs.size), "time_blocked": float(mask.mean())}
    found["longest_blockage_s"] = float(runs.max(initial=0)) / rate_hz
    if receiver is not None and not power.is_relative(trace):
        short_term = fades.short_term_ber(clear, receiver)
        found |= {"ber": float(short_term.mean()), "time_of_half_the_errors": _time_of_half(short_term)}
    return found


def _time_of_half(short_term: NDArray[np.float64]) -> float:
    """Share of the samples that have half of the wrong bits, taken from the worst on."""
    errors = np.cumsum(np.sort(short_term)[::-1])
    return float(np.searchsorted(errors, errors[-1] / 2) + 1) / errors.size


def _cn0(trace: Trace) -> dict[str, float]:
    from farlink.channels.rain.series import fades_s, quantiles_dbhz, time_below

    found = {"duration_s": float(trace.meta["duration_s"]), "cn0_max_dbhz": float(trace["cn0_dbhz"].max())}
    shares = np.array(CN0_PERCENT)
    levels = quantiles_dbhz(trace, shares / 100)
    found |= {f"cn0_p{share:g}_dbhz": float(level) for share, level in zip(shares, levels, strict=True)}
    found["time_without_signal"] = float(time_below(trace, np.array([-1e9]))[0])
    for depth_db in FADES_DB:
        lengths = fades_s(trace, found["cn0_max_dbhz"] - depth_db)
        found[f"fades_{depth_db:g}_db"] = float(lengths.size)
        found[f"time_in_fades_{depth_db:g}_db"] = float(lengths.sum()) / found["duration_s"]
        if lengths.size:
            found[f"fade_{depth_db:g}_db_median_s"] = float(np.median(lengths))
            found[f"fade_{depth_db:g}_db_max_s"] = float(lengths.max())
    return found


def _ber(trace: Trace) -> dict[str, float]:
    ber = trace["ber"]
    found = {"duration_s": float(trace.meta["duration_s"]), "ber": float(ber.mean()), "ber_max": float(ber.max())}
    return found | {f"time_above_{level:g}": float((ber > level).mean()) for level in BER_LEVELS}


_SUMMARY = {
    "ber": _ber,
    "cn0": _cn0,
    "delivery": _capacity,
    "rate": _capacity,
    "delay": _delay,
    "packet-loss": _packet_loss,
    "bit-errors": _bit_errors,
    "power": power_summary,
}

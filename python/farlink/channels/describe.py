"""A trace in words: the lines that people read."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from farlink.channels.summary import BER_LEVELS, CN0_PERCENT, FADES_DB, LEVELS, power_summary, summary
from farlink.channels.trace import KINDS, Trace
from farlink.untrusted import printable

if TYPE_CHECKING:
    from farlink.channels.receiver import Receiver

_RATES = (("100ms", "Rate over 100 ms"), ("1s", "Rate over 1 s"))
_PERCENTILES = (1, 5, 50, 95, 99)


def describe(trace: Trace, receiver: Receiver | None = None) -> list[tuple[str, str]]:
    """Label and value of each line of the description of a trace.

    Parameters
    ----------
    trace
        Any trace.
    receiver
        The receiver for the bit error rate of a received power.

    Examples
    --------
    >>> describe(Trace("packet-loss", {"lost": [0, 1, 1, 0]}))[2]
    ('Frames lost', '50 %')
    """
    found = power_summary(trace, receiver) if trace.kind == "power" else summary(trace)
    lines = [("Kind", trace.kind)]
    lines += [
        (label, printable(trace.meta[key]))
        for key, label in (("source", "Source"), ("licence", "Licence"))
        if trace.meta.get(key)
    ]
    lines = lines[:1] + _DESCRIBE[trace.kind](found) + lines[1:]
    lines += _origin(trace)
    if trace.meta.get("notes"):
        lines.append(("Note", printable(trace.meta["notes"], 2000)))
    return [*lines, ("In a scenario", KINDS[trace.kind].use)]


def _capacity(found: dict[str, float]) -> list[tuple[str, str]]:
    lines = [("Duration", f"{found['duration_s']:.6g} s"), ("Mean rate", _rate(found["rate_mean_bps"]))]
    for name, label in _RATES:
        if f"rate_{name}_p50_bps" in found:
            values = [f"{found[f'rate_{name}_p{p}_bps'] / 1e6:.3g}" for p in _PERCENTILES]
            lines.append((f"{label}, p{'/'.join(map(str, _PERCENTILES))}", f"{' / '.join(values)} Mbit/s"))
    lines.append(("Longest gap", f"{found['longest_gap_s']:.4g} s"))
    return [*lines, ("Time in gaps over 100 ms", _percent(found["time_in_gaps"]))]


def _delay(found: dict[str, float]) -> list[tuple[str, str]]:
    names = ("min", "p1", "p50", "p95", "p99", "max")
    values = " / ".join(f"{1000 * found[f'delay_{name}_s']:.4g}" for name in names)
    lines = [
        ("Duration", f"{found['duration_s']:.6g} s"),
        ("Mean one-way delay", f"{1000 * found['delay_mean_s']:.4g} ms"),
        ("One-way delay, min/p1/p50/p95/p99/max", f"{values} ms"),
        ("Longest time between values", f"{found['longest_gap_s']:.4g} s"),
    ]
    if "loss" in found:
        lines += [("Pings lost", _percent(found["loss"])), ("Time with any ping lost", _percent(found["time_with_loss"]))]
    return lines


def _packet_loss(found: dict[str, float]) -> list[tuple[str, str]]:
    lines = [("Frames", f"{found['frames']:.0f}"), ("Frames lost", _percent(found["loss"])), *_bursts("", "", found)]
    if "links" in found:
        lines.append(("Recordings", f"{found['links']:.0f}"))
        lines.append(("  receiving below 5 % / above 95 %", _pair(found, "links_below_5_percent", "links_above_95_percent")))
        lines.append(("  receiving nothing / everything", _pair(found, "links_with_nothing", "links_with_everything")))
        lines.append(("Intermediate recordings (5-95 %)", f"{found['intermediate_links']:.0f}"))
        lines += _bursts("intermediate_", "  ", found)
    return lines


def _bursts(prefix: str, indent: str, found: dict[str, float]) -> list[tuple[str, str]]:
    lines = []
    if found[f"{prefix}bursts"]:
        values = " / ".join(f"{found[f'{prefix}burst_{name}_frames']:.3g}" for name in ("mean", "median", "p95", "max"))
        lines.append((f"{indent}Loss bursts", f"{found[f'{prefix}bursts']:.0f}"))
        lines.append((f"{indent}Burst length, mean/median/p95/longest", f"{values} frames"))
        lines.append((f"{indent}Losses in bursts of 5 or more", _percent(found[f"{prefix}losses_in_bursts_of_5"])))
    if f"{prefix}good_run_mean_frames" in found:
        lines.append((f"{indent}Good run, mean", f"{found[f'{prefix}good_run_mean_frames']:.4g} frames"))
    return lines


def _bit_errors(found: dict[str, float]) -> list[tuple[str, str]]:
    return [
        ("Bits", f"{found['bits']:.0f}"),
        ("Wrong bits", f"{found['errors']:.0f}"),
        ("Bit error ratio", f"{found['ber']:.3g}"),
    ]


def _power(found: dict[str, float]) -> list[tuple[str, str]]:
    mean_dbm = 10 * math.log10(found["power_mean_w"] / 1e-3)
    lines = [
        ("Duration", f"{found['duration_s']:.6g} s"),
        ("Sampling rate", f"{found['sample_rate_hz']:.6g} Hz"),
        ("Mean power", f"{found['power_mean_w']:.4g} W, {mean_dbm:.2f} dBm" if not found["is_relative"] else "without a unit"),
        ("Scintillation index", f"{found['scintillation_index']:.3g}"),
        ("Level, p0.1/1/10/50/90/99", f"{' / '.join(_level(found[f'level_p{p}_db']) for p in LEVELS)} dB re mean"),
    ]
    if not math.isnan(found["correlation_time_s"]):
        lines.append(("Correlation time, 1/e", f"{1e3 * found['correlation_time_s']:.3g} ms"))
    if found["blockages"]:
        longest = f"longest {found['longest_blockage_s']:.3g} s"
        blockages = f"{found['blockages']:.0f} blockage{'s' if found['blockages'] != 1 else ''}"
        lines.append(("Blocked", f"{_percent(found['time_blocked'])} in {blockages}, {longest}"))
    if "ber" in found:
        lines.append(
            ("Long-term bit error rate", f"{found['ber']:.4g}" + (", blockages left out" if found["blockages"] else ""))
        )
        lines.append(("Half of the wrong bits", f"in {_percent(found['time_of_half_the_errors'])} of the time"))
    return lines


def _cn0(found: dict[str, float]) -> list[tuple[str, str]]:
    levels = [found[f"cn0_p{percent:g}_dbhz"] for percent in CN0_PERCENT]
    days = found["duration_s"] / 86_400
    lines = [
        ("Duration", f"{found['duration_s']:.6g} s" + (f", {days:.4g} days" if days >= 2 else "")),
        ("Highest C/N0", f"{found['cn0_max_dbhz']:.2f} dBHz"),
        (
            f"C/N0, p{'/'.join(f'{percent:g}' for percent in CN0_PERCENT)}",
            f"{' / '.join(f'{level:.2f}' if math.isfinite(level) else 'no signal' for level in levels)} dBHz",
        ),
    ]
    if found["time_without_signal"]:
        lines.append(("No signal", f"{_percent(found['time_without_signal'])} of the time"))
    for depth_db in FADES_DB:
        name = f"{depth_db:g}_db"
        if found[f"fades_{name}"]:
            lengths = f"median {found[f'fade_{name}_median_s']:.4g} s, longest {found[f'fade_{name}_max_s']:.4g} s"
            share = _percent(found[f"time_in_fades_{name}"])
            lines.append((f"Fades of over {depth_db:g} dB", f"{found[f'fades_{name}']:.0f}, {share} of the time, {lengths}"))
    return lines


def _ber(found: dict[str, float]) -> list[tuple[str, str]]:
    lines = [
        ("Duration", f"{found['duration_s']:.6g} s"),
        ("Bit error rate, mean", f"{found['ber']:.4g}"),
        ("Highest", f"{found['ber_max']:.4g}"),
    ]
    return lines + [
        (f"Above {level:g}", f"{_percent(found[f'time_above_{level:g}'])} of the time")
        for level in BER_LEVELS
        if found[f"time_above_{level:g}"]
    ]


def _origin(trace: Trace) -> list[tuple[str, str]]:
    """How a trace was made: synthesis and calibration."""
    lines = []
    if trace.meta.get("synthetic"):
        lines.append(
            (
                "Synthetic",
                ", ".join(f"{key} {printable(trace.meta[key])}" for key in ("preset", "seed") if key in trace.meta) or "yes",
            )
        )
    done = trace.meta.get("calibration")
    if done:
        lines.append(
            (
                "Calibrated",
                f"to a bit error rate of {done['ber']:g} with {printable(done.get('receiver'))}, by {done['gain_db']:.2f} dB",
            )
        )
    return lines


def _level(level_db: float) -> str:
    return f"{level_db:.2f}" if math.isfinite(level_db) else "no power"


def _rate(rate_bps: float) -> str:
    for unit, scale in (("Gbit/s", 1e9), ("Mbit/s", 1e6), ("kbit/s", 1e3)):
        if rate_bps >= scale:
            return f"{rate_bps / scale:.4g} {unit}"
    return f"{rate_bps:.4g} bit/s"


def _percent(share: float) -> str:
    return f"{100 * share:.3g} %"


def _pair(found: dict[str, float], first: str, second: str) -> str:
    return f"{_percent(found[first])} / {_percent(found[second])}"


_DESCRIBE = {
    "ber": _ber,
    "cn0": _cn0,
    "delivery": _capacity,
    "rate": _capacity,
    "delay": _delay,
    "packet-loss": _packet_loss,
    "bit-errors": _bit_errors,
    "power": _power,
}

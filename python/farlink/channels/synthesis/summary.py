"""A synthetic trace in words, labelled as synthetic."""

from __future__ import annotations

import math

import numpy as np

from farlink.channels.describe import describe
from farlink.channels.fades import fade_statistics
from farlink.channels.synthesis.generate import Synthesis
from farlink.channels.synthesis.presets import PRESETS
from farlink.channels.synthesis.text import AnySynthesis
from farlink.channels.trace import Trace

_THRESHOLDS_DB = (-3, -6, -10)


def summary_lines(wanted: AnySynthesis, trace: Trace) -> list[tuple[str, str]]:
    """Label and value of each line of the description of a synthetic trace.

    Parameters
    ----------
    wanted
        The requested trace.
    trace
        The trace that was drawn.
    """
    if not isinstance(wanted, Synthesis):
        return [("Title", trace.title), *describe(trace)]
    power = trace["power_w"]
    blocked = trace.arrays.get("blocked")
    clear = power if blocked is None else power[blocked == 0]
    lines = [
        ("Title", trace.title),
        ("Stands for", f"{PRESETS[wanted.name].title}; not measured"),
        ("Duration", f"{wanted.duration_s:g} s, {power.size:,} samples at {wanted.values['sample_rate_hz']:g} Hz"),
    ]
    if wanted.geometry is not None:
        ends_s = np.array([0.0, wanted.duration_s])
        elevation, distance = wanted.geometry.elevation_deg(ends_s), wanted.geometry.range_m(ends_s) / 1e3
        lines.append(("Elevation", f"{elevation[0]:.1f} to {elevation[1]:.1f} degrees"))
        lines.append(("Distance", f"{distance[0]:,.0f} to {distance[1]:,.0f} km"))
        factor = wanted.path_factor(np.linspace(0.0, wanted.duration_s, 1001))
        span_db = 10 * math.log10(float(factor.max() / factor.min()))
        is_adapted = wanted.values["transmit_power"] == "elevation"
        lines.append(("Path", f"{span_db:.1f} dB" + (", made up for by the transmitter" if is_adapted else " from end to end")))
    if clear.size:
        mean_w = float(clear.mean())
        where = "" if blocked is None else ", where nothing blocks, as are the next lines"
        lines.append(("Mean power", f"{mean_w:.4g} W ({10 * math.log10(1e3 * mean_w):.2f} dBm){where}"))
        lines.append(("Scintillation index", f"{float(clear.var()) / mean_w**2:.3g}"))
        for found in fade_statistics(power, wanted.values["sample_rate_hz"], _THRESHOLDS_DB, blocked=blocked):
            length = f"{found.rate_per_s:.3g} per second, {1e3 * found.mean_s:.3g} ms in the mean" if found.fades else "none"
            lines.append((f"Fades below {found.threshold_db:g} dB", length))
    if blocked is not None:
        starts = np.count_nonzero(np.diff(blocked.astype(np.int8), prepend=0) == 1)
        lines.append(("Blocked", f"{100 * float(blocked.mean()):.3g} % of the time, {starts} times"))
    return lines

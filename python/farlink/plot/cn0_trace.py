"""Panels of a C/N0 trace: over time, how often it is low, how long fades last."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from farlink.channels.rain.series import fades_s, time_below
from farlink.channels.summary import FADES_DB
from farlink.channels.trace import Trace
from farlink.plot import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_BUCKETS = 2000
_DAY_S = 2 * 86_400.0


def draw(trace: Trace, over_time: Axes, below: Axes, lengths: Axes) -> None:
    """Draw a trace of kind ``cn0`` into three axes.

    Parameters
    ----------
    trace
        The trace.
    over_time, below, lengths
        Where to draw.
    """
    duration_s, highest = float(trace.meta["duration_s"]), float(trace["cn0_dbhz"].max())
    unit_s, unit = (86_400.0, "days") if duration_s > _DAY_S else (3600.0, "hours") if duration_s > 7200 else (1.0, "s")
    time_s, cn0_dbhz = trace["time_s"], trace["cn0_dbhz"]
    lowest = float(cn0_dbhz[np.isfinite(cn0_dbhz)].min())
    floor = min(lowest, highest - 1.0) - 1.0
    shown = np.where(np.isfinite(cn0_dbhz), cn0_dbhz, floor)
    # A step: each value again just before the next.
    times = np.append(np.repeat(time_s, 2)[1:], duration_s)
    times, values = style.thin(times, np.repeat(shown, 2), _BUCKETS)
    times, values = np.append(times, duration_s), np.append(values, shown[-1])
    over_time.plot(times / unit_s, values, color=style.COLOURS[0], linewidth=0.7)
    over_time.set(title="C/N0" + ("   (bottom: no signal)" if not np.isfinite(cn0_dbhz).all() else ""), ylabel="C/N0, dBHz")
    over_time.set(xlabel=f"time, {unit}", xlim=(0, duration_s / unit_s), ylim=(floor, highest + 0.05 * (highest - floor)))

    levels = np.linspace(floor, highest, 400)
    share = 100 * time_below(trace, levels)
    seen = share > 0
    below.plot(levels[seen], share[seen], color=style.COLOURS[0], linewidth=1.3)
    below.set(title="Share of time below this C/N0", xlabel="C/N0, dBHz", ylabel="share, %", yscale="log", ylim=(None, 150))
    below.grid(color=style.RULE, linewidth=0.5)

    lengths.set(title="Fades that last longer than this", xlabel="length, s", ylabel="fades")
    for depth_db, colour in zip(FADES_DB, style.COLOURS, strict=False):
        found = np.sort(fades_s(trace, highest - depth_db))
        if found.size:
            lengths.step(found, np.arange(found.size, 0, -1), where="pre", color=colour, label=f"over {depth_db:g} dB")
    if lengths.lines:
        lengths.set(xscale="log", yscale="log")
        lengths.legend(frameon=False)
        lengths.grid(color=style.RULE, linewidth=0.5)
    else:
        lengths.text(0.5, 0.5, f"none over {FADES_DB[0]:g} dB", transform=lengths.transAxes, ha="center", color=style.INK)

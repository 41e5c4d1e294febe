"""Panels of a recorded bit error rate: over time, how often it is high, and for how long."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from farlink.channels.trace import Trace
from farlink.plot import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_LEVELS = (1e-6, 1e-4)
_BUCKETS = 2000
_LOWEST = 1e-12


def draw(trace: Trace, over_time: Axes, above: Axes, lengths: Axes) -> None:
    """Draw a trace of kind ``ber`` into three axes.

    Parameters
    ----------
    trace
        The trace.
    over_time, above, lengths
        Where to draw.
    """
    ber: NDArray[np.float64] = trace["ber"]
    duration_s = float(trace.meta["duration_s"])
    step_s = duration_s / ber.size
    unit_s, unit = (3600.0, "hours") if duration_s > 7200 else (1.0, "s")
    times, values = style.thin(step_s * np.arange(ber.size, dtype=np.float64), np.clip(ber, _LOWEST, 1.0), _BUCKETS)
    over_time.step(times / unit_s, values, where="post", color=style.COLOURS[0], linewidth=0.7)
    over_time.set(title="Bit error rate", ylabel="bit error rate", xlabel=f"time, {unit}", yscale="log", ylim=(_LOWEST, 1))
    over_time.set(xlim=(0, duration_s / unit_s))

    levels = np.geomspace(_LOWEST, 0.5, 400)
    share = 100 * (1 - np.searchsorted(np.sort(ber), levels, side="right") / ber.size)
    seen = share > 0
    above.plot(levels[seen], share[seen], color=style.COLOURS[0], linewidth=1.3)
    above.set(title="Share of time above this rate", xlabel="bit error rate", ylabel="share, %")
    if seen.any():
        above.set(xscale="log", yscale="log")
    above.grid(color=style.RULE, linewidth=0.5)

    lengths.set(title="Times above a rate that last longer than this", xlabel="length, s", ylabel="number")
    for level, colour in zip(_LEVELS, style.COLOURS, strict=False):
        edges = np.diff(np.concatenate([[0], (ber > level).astype(np.int8), [0]]))
        found = np.sort(step_s * (np.flatnonzero(edges < 0) - np.flatnonzero(edges > 0)))
        if found.size:
            lengths.step(found, np.arange(found.size, 0, -1), where="pre", color=colour, label=f"above {level:g}")
    if lengths.lines:
        lengths.set(xscale="log", yscale="log")
        lengths.legend(frameon=False)
        lengths.grid(color=style.RULE, linewidth=0.5)
    else:
        lengths.text(0.5, 0.5, f"none above {_LEVELS[0]:g}", transform=lengths.transAxes, ha="center", color=style.INK)

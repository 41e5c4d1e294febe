"""Congestion window and slow-start threshold over time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from farlink import units
from farlink.plot.style import COLOURS, INK, MUTED, TEXT_PT, legend_above, new_figure, thin

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from numpy import float64
    from numpy.typing import NDArray

    from farlink.series import Series

    Array = NDArray[float64]


def window(
    runs: list[Series],
    flow: str | None = None,
    *,
    names: list[str] | None = None,
    span_s: tuple[float, float] | None = None,
    title: str | None = None,
) -> Figure:
    """Draw cwnd, ssthresh and the moments of retransmission, a panel per run.

    Parameters
    ----------
    runs
        Runs to compare.
    flow
        Which flow; the first by default.
    names
        A name for each panel.
    span_s
        Part of the run to show; all of it by default.
    """
    figure, panels = new_figure(height_in=1.1 + (2.4 if len(runs) == 1 else 1.25 * len(runs)), rows=len(runs))
    highest = [float(run.select("cwnd", flow)[1].max(initial=0.0)) for run in runs]
    scale = units.scale_for("cwnd_bytes", highest)
    for i, (ax, run) in enumerate(zip(panels, runs, strict=True)):
        time, value = thin(*_within(*run.select("cwnd", flow), span_s))
        ax.step(time, value * scale.factor, where="post", color=COLOURS[0], linewidth=1.3, label="cwnd")
        time, value = run.select("ssthresh", flow)
        # An initial threshold without a limit would squash everything else.
        finite = value * scale.factor <= 1.5 * max(highest) * scale.factor
        time, value = _within(time[finite], value[finite], span_s)
        ax.step(time, value * scale.factor, where="post", color=COLOURS[1], linewidth=1.1, linestyle="--", label="ssthresh")
        again, _ = _within(*run.select("retransmitted_sequence", flow), span_s, carry=False)
        if len(again):
            ax.plot(
                again, [0.0] * len(again), linestyle="none", marker="|", markersize=9, color=INK, clip_on=False,
                label="segment sent again",
            )  # fmt: skip
        if names:
            ax.set_title(names[i], fontsize=TEXT_PT, loc="left", color=MUTED, pad=3)
        ax.set_ylim(bottom=0)
        ax.margins(x=0.01)
    if span_s is not None:
        panels[-1].set_xlim(*span_s)
    panels[-1].set_xlabel("time (s)")
    figure.supylabel(f"window ({scale.unit})", fontsize=10)
    legend_above(figure, panels[0])
    if title:
        panels[0].set_title(title)
    return figure


def _within(time: Array, value: Array, span_s: tuple[float, float] | None, *, carry: bool = True) -> tuple[Array, Array]:
    """The observations in a span, and the one before it, whose value still holds at its start."""
    if span_s is None or not len(time):
        return time, value
    start, end = (int(i) for i in time.searchsorted(span_s))
    first = max(start - carry, 0)
    return time[first:end], value[first:end]

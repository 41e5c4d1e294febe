"""Time-sequence graph of one run: data sent, retransmitted and acknowledged."""

from __future__ import annotations

from typing import TYPE_CHECKING

from farlink import units
from farlink.plot.style import COLOURS, INK, legend_above, new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from farlink.series import Series

_MOST_POINTS = 3000


def sequence(
    run: Series, flow: str | None = None, *, span_s: tuple[float, float] | None = None, title: str | None = None
) -> Figure:
    """Draw sequence numbers over time.

    Parameters
    ----------
    run
        The run.
    flow
        Which flow; the first by default.
    span_s
        Part of the run to show; all of it by default. A long span is drawn as a picture, not point by point.
    """
    figure, (ax,) = new_figure(height_in=4.6)
    drawn = {}
    for quantity in ("sent_sequence", "acknowledged", "retransmitted_sequence"):
        time, value = run.select(quantity, flow)
        if span_s is not None:
            inside = (time >= span_s[0]) & (time <= span_s[1])
            time, value = time[inside], value[inside]
        drawn[quantity] = (time, value)
    scale = units.scale_for("bytes_bytes", [float(value.max(initial=0.0)) for _, value in drawn.values()])
    time, value = drawn["sent_sequence"]
    ax.plot(
        time, value * scale.factor, linestyle="none", marker="o", markersize=2.6, color=COLOURS[0], label="sent",
        rasterized=len(time) > _MOST_POINTS,
    )  # fmt: skip
    time, value = drawn["acknowledged"]
    ax.step(
        time, value * scale.factor, where="post", color=COLOURS[2], linewidth=1.3, label="acknowledged",
        rasterized=len(time) > _MOST_POINTS,
    )  # fmt: skip
    time, value = drawn["retransmitted_sequence"]
    ax.plot(
        time, value * scale.factor, linestyle="none", marker="D", markersize=6, color=COLOURS[1], markeredgecolor=INK,
        markeredgewidth=0.7, label="sent again",
    )  # fmt: skip
    ax.set_xlabel("time (s)")
    ax.set_ylabel(f"sequence number ({scale.unit})")
    ax.margins(x=0.01, y=0.03)
    legend_above(figure, ax)
    if title:
        ax.set_title(title)
    return figure

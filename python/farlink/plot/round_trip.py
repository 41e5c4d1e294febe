"""Round-trip time as the sender measures it, and bytes in flight, over time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from farlink import units
from farlink.plot.style import COLOURS, new_figure, thin

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from farlink.series import Series


def round_trip(
    run: Series, flow: str | None = None, *, span_s: tuple[float, float] | None = None, title: str | None = None
) -> Figure:
    """Draw RTT above bytes in flight; parameters as for `sequence`."""
    figure, panels = new_figure(height_in=4.2, rows=2, is_y_shared=False)
    for ax, quantity, key, name, colour in zip(
        panels,
        ("rtt", "in_flight"),
        ("rtt_s", "in_flight_bytes"),
        ("round-trip time", "in flight"),
        (COLOURS[3], COLOURS[0]),
        strict=True,
    ):
        time, value = run.select(quantity, flow)
        if span_s is not None:
            inside = (time >= span_s[0]) & (time <= span_s[1])
            time, value = time[inside], value[inside]
        time, value = thin(time, value)
        scale = units.scale_for(key, [float(value.max(initial=0.0))])
        ax.step(time, value * scale.factor, where="post", color=colour, linewidth=1.2)
        ax.set_ylabel(f"{name} ({scale.unit})")
        ax.set_ylim(bottom=0)
        ax.margins(x=0.01)
    panels[-1].set_xlabel("time (s)")
    if title:
        panels[0].set_title(title)
    return figure

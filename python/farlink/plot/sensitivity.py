"""Bit error rate of receivers against received power."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from farlink.channels.receiver import Receiver
from farlink.plot.style import COLOURS, legend_above, new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def sensitivity(receivers: Sequence[Receiver], *, lowest_ber: float = 1e-12) -> Figure:
    """Draw the sensitivity curves of receivers.

    Parameters
    ----------
    receivers
        One curve each.
    lowest_ber
        End of the curves.
    """
    figure, (ax,) = new_figure(height_in=4.6)
    for look, receiver in enumerate(receivers):
        power_dbm, ber = receiver.sensitivity_curve(lowest_ber)
        ax.plot(power_dbm, ber, color=COLOURS[look % len(COLOURS)], label=receiver.name)
    ax.set_yscale("log")
    ax.set_xlabel("received power (dBm)")
    ax.set_ylabel("bit error rate")
    legend_above(figure, ax)
    return figure

"""Quantities of the paper's figures, from results."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from farlink.papers.curves import curve
from farlink.papers.estimate import Curve, Estimate, as_points, scaled
from farlink.papers.item import Drawing
from farlink.papers.pathapati.path import BER, FILE_BYTES, TRANSPORT
from farlink.plot.curves import Line
from farlink.plot.lines import lines
from farlink.result import Result

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True)
class Measure:
    """A vertical axis of the figures.

    Attributes
    ----------
    quantity
        Of a result.
    label
        With its unit.
    factor
        From the quantity to what is drawn.
    is_log
        Whether its axis is logarithmic.
    """

    quantity: str
    label: str
    factor: float = 1.0
    is_log: bool = False


GOODPUT = Measure("goodput_bps", "goodput from first message to last delivery (kb/s)", 1e-3)
DELAY = Measure("arrival_delay_mean_s", "mean delay from first transmission to arrival (s)")
IN_ORDER_DELAY = Measure("delay_mean_s", "mean delay from first transmission to delivery in order (s)", is_log=True)
DELIVERED = Measure("delivered_bytes", "delivered (share of 1 MB)", 1 / FILE_BYTES)
OVERHEAD = Measure("overhead_bytes", "overhead sent (MB)", 1e-6, is_log=True)

Curves = dict[tuple[str, str], Curve]
"""By transport and quantity: a value of `Measure.quantity` against the bit error rate."""


def measured(result: Result, names: Mapping[str, object] | list[str], *measures: Measure) -> Curves:
    """Curves of transports against the bit error rate."""
    return {
        (name, measure.quantity): scaled(curve(result, BER, {TRANSPORT: name}, measure.quantity), measure.factor)
        for name in names
        for measure in measures
    }


def value(curves: Curves, name: str, measure: Measure, ber: float) -> Estimate:
    """A point of a curve."""
    return dict(curves[name, measure.quantity])[ber]


def against_ber(
    name: str,
    heading: str,
    caption: str,
    curves: Curves,
    names: Mapping[str, str],
    measure: Measure,
    *,
    is_ordered: bool = False,
) -> Drawing:
    """A figure of one measure against the bit error rate.

    Parameters
    ----------
    name, heading, caption
        Of the drawing.
    curves
        Everything measured.
    names
        Transports to draw, and what they are called.
    measure
        What to draw.
    is_ordered
        Whether the transports have an order.
    """
    drawn = [Line(words, as_points(curves[key, measure.quantity])) for key, words in names.items()]

    return Drawing(
        name,
        heading,
        caption,
        lambda: lines(
            drawn,
            x_label="bit error rate",
            y_label=measure.label,
            is_y_log=measure.is_log,
            is_ordered=is_ordered,
            y_bottom=None if measure is DELAY else 0.0,
        ),
    )

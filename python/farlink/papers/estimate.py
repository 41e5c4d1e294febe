"""Numbers with 95 % intervals, and what follows from two of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise


@dataclass(frozen=True)
class Estimate:
    """A mean over independent runs and the half-width of its 95 % interval; NaN where one run cannot tell.

    Examples
    --------
    >>> Estimate(0.48, 0.01).low
    0.47
    """

    mean: float
    half_width: float = 0.0

    @property
    def low(self) -> float:
        """Lower end of the interval."""
        return self.mean - self.half_width

    @property
    def high(self) -> float:
        """Upper end of the interval."""
        return self.mean + self.half_width

    @property
    def ci95(self) -> float | None:
        """The half-width as a result states it: None where it is unknown."""
        return self.half_width if math.isfinite(self.half_width) else None


Curve = Sequence[tuple[float, Estimate]]


def ratio(above: Estimate, below: Estimate) -> Estimate:
    """Quotient of two means, its interval by linear propagation as if they were independent.

    Runs that share their seeds are positively correlated; the interval is then wider than it needs to be.

    Examples
    --------
    >>> quotient = ratio(Estimate(0.6, 0.03), Estimate(0.5, 0.0))
    >>> round(quotient.mean, 3), round(quotient.half_width, 3)
    (1.2, 0.06)
    """
    if not below.mean:
        return Estimate(math.nan, math.nan)
    quotient = above.mean / below.mean
    return Estimate(quotient, math.hypot(above.half_width, quotient * below.half_width) / abs(below.mean))


def mean(estimates: Sequence[Estimate]) -> Estimate:
    """Mean of independent estimates.

    Examples
    --------
    >>> mean([Estimate(1.0, 0.3), Estimate(3.0, 0.4)])
    Estimate(mean=2.0, half_width=0.25)
    """
    count = len(estimates)
    return Estimate(
        math.fsum(one.mean for one in estimates) / count, math.hypot(*(one.half_width for one in estimates)) / count
    )


def scaled(curve: Curve, factor: float) -> Curve:
    """A curve in another unit."""
    return [(x, Estimate(at.mean * factor, at.half_width * factor)) for x, at in curve]


def as_points(points: Curve) -> list[tuple[float, float, float]]:
    """A curve as a figure takes it."""
    return [(x, at.mean, at.half_width) for x, at in points]


def crossing(curve: Curve, level: float) -> Estimate:
    """Where a falling curve first passes `level`, straight between points on a logarithmic horizontal axis.

    The interval is from where the lower ends of the points' intervals pass to where the upper ends do; its half-width is
    half of that. NaN if the curve does not pass.

    Examples
    --------
    >>> curve = [(1e-8, Estimate(1.0, 0.1)), (1e-6, Estimate(0.0, 0.1))]
    >>> where = crossing(curve, 0.5)
    >>> f"{where.mean:.1e} {where.half_width:.1e}"
    '1.0e-07 4.8e-08'
    """
    middle = _passes([(x, at.mean) for x, at in curve], level)
    first, last = (_passes([(x, end) for x, end in ends], level) for ends in _ends(curve))
    return Estimate(middle, (last - first) / 2)


def _ends(curve: Curve) -> tuple[list[tuple[float, float]], list[tuple[float, float]]]:
    return [(x, at.low) for x, at in curve], [(x, at.high) for x, at in curve]


def _passes(points: Sequence[tuple[float, float]], level: float) -> float:
    for (x, y), (next_x, next_y) in pairwise(points):
        if y >= level > next_y:
            share = (y - level) / (y - next_y)
            return float(x * (next_x / x) ** share)
    return math.nan

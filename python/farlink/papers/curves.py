"""Curves out of results."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from farlink.papers.estimate import Curve, Estimate, ratio
from farlink.result import Result


def curve(result: Result, x_path: str, where: Mapping[str, Any], quantity: str = "goodput_fraction") -> Curve:
    """A quantity against one key of the grid, in the order of the grid.

    Parameters
    ----------
    result
        What was run.
    x_path
        The key on the horizontal axis.
    where
        Values of other keys of the grid that single the curve out.
    quantity
        A quantity of the summary.
    """
    entries = [entry for entry in result.summary() if all(entry[path] == value for path, value in where.items())]
    flows = {entry["flow"] for entry in entries}
    chosen = [entry for entry in entries if entry["flow"] == "all" or "all" not in flows]
    return [(float(entry[x_path]), estimate(entry[quantity])) for entry in chosen]


def estimate(found: Mapping[str, float | None]) -> Estimate:
    """A quantity of a summary; NaN for what is unknown."""
    mean, half_width = found["mean"], found["ci95"]
    return Estimate(math.nan if mean is None else mean, math.nan if half_width is None else half_width)


def at(points: Curve, x: float) -> Estimate:
    """A curve's height at `x`, straight between points on logarithmic axes; of the nearest point beyond its ends.

    Examples
    --------
    >>> between = at([(1e-8, Estimate(0.9, 0.09)), (1e-6, Estimate(0.1, 0.01))], 1e-7)
    >>> round(between.mean, 3), round(between.half_width, 3)
    (0.3, 0.03)
    """
    ordered = sorted(points, key=lambda point: point[0])
    for (left, first), (right, second) in pairwise(ordered):
        if left <= x <= right and first.mean > 0 and second.mean > 0:
            share = math.log(x / left) / math.log(right / left)
            mean = first.mean ** (1 - share) * second.mean**share
            relative = (1 - share) * first.half_width / first.mean + share * second.half_width / second.mean
            return Estimate(mean, mean * relative)
    return min(ordered, key=lambda point: abs(math.log(point[0] / x)))[1]


def spread(values: Sequence[Estimate]) -> Estimate:
    """How far the largest lies above the smallest, as a share of the smallest.

    Examples
    --------
    >>> round(spread([Estimate(0.5), Estimate(0.55), Estimate(0.52)]).mean, 3)
    0.1
    """
    quotient = ratio(max(values, key=lambda one: one.mean), min(values, key=lambda one: one.mean))
    return Estimate(quotient.mean - 1, quotient.half_width)

"""Intervals of what is computed from the rows of a result."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

from farlink.papers.estimate import Estimate

# Student's t for 95 %, by degrees of freedom.
_T_95 = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131, 2.120)


def interval(values: Sequence[float]) -> Estimate:
    """Mean of independent values and the half-width of its 95 % interval by Student's t; NaN for a single one.

    Where a value is unknown, both are.

    Examples
    --------
    >>> found = interval([1.0, 2.0, 3.0])
    >>> found.mean, round(found.half_width, 3)
    (2.0, 2.484)
    """
    count = len(values)
    if not all(map(math.isfinite, values)):
        return Estimate(math.nan, math.nan)
    if count < 2:
        return Estimate(values[0] if values else math.nan, math.nan)
    t = _T_95[count - 2] if count - 2 < len(_T_95) else 1.96 + 2.4 / (count - 1)
    return Estimate(statistics.fmean(values), t * statistics.stdev(values) / math.sqrt(count))


def paired(above: Sequence[float], below: Sequence[float]) -> Estimate:
    """Mean of the quotients of runs that share their seeds, with its interval; unknown if one is divided by 0.

    Examples
    --------
    >>> paired([1.0, 2.0], [2.0, 4.0])
    Estimate(mean=0.5, half_width=0.0)
    >>> paired([1.0, 2.0], [2.0, 0.0])
    Estimate(mean=nan, half_width=nan)
    """
    return interval([one / other if other else math.nan for one, other in zip(above, below, strict=True)])

"""Quantiles of Student's t distribution, by which intervals of one confidence level follow from those of another."""

from __future__ import annotations

import math
from functools import lru_cache

# Above so many degrees of freedom a series in their inverse is as good as the sum of as many terms.
_MANY = 400


@lru_cache(maxsize=4096)
def t_quantile(degrees: int, level: float) -> float:
    """The factor of the standard error for a two-sided interval of a level.

    Parameters
    ----------
    degrees
        Degrees of freedom, at least 1.
    level
        Confidence level, between 0 and 1, both excluded.

    Returns
    -------
    float
        Half of the width over the standard error, above 0.

    Raises
    ------
    ValueError
        If there is no degree of freedom, or the level is not between 0 and 1.

    References
    ----------
    Abramowitz and Stegun, Handbook of Mathematical Functions, 26.7.3, 26.7.4 and 26.7.5.

    Examples
    --------
    >>> [round(t_quantile(degrees, 0.95), 3) for degrees in (1, 9, 100_000)]
    [12.706, 2.262, 1.96]
    """
    if degrees < 1:
        raise ValueError(f"degrees must be at least 1, not {degrees!r}; an interval needs two values")
    if not 0 < level < 1:
        raise ValueError(f"level must be above 0 and below 1, not {level!r}; 0.95 is usual")
    if degrees > _MANY:
        return _by_series(degrees, level)
    # The angle whose tangent is t over the root of the degrees of freedom.
    low, high = 0.0, math.pi / 2
    for _ in range(80):
        middle = (low + high) / 2
        if _within(degrees, middle) < level:
            low = middle
        else:
            high = middle
    return math.sqrt(degrees) * math.tan((low + high) / 2)


def widened(half_width: float, degrees: int, level: float, known_level: float = 0.95) -> float:
    """The half-width at a level of an interval by Student's t that is known at another.

    Examples
    --------
    >>> round(widened(2.262, 9, 0.99), 2)
    3.25
    """
    if level == known_level:
        return half_width
    return half_width * t_quantile(degrees, level) / t_quantile(degrees, known_level)


def _within(degrees: int, angle: float) -> float:
    """Probability of a t no further from 0 than an angle says."""
    sine, cosine = math.sin(angle), math.cos(angle)
    is_odd = degrees % 2 == 1
    term = total = cosine if is_odd else 1.0
    if degrees == 1:
        total = 0.0
    for factor in range(3 if is_odd else 2, degrees - 1, 2):
        term *= cosine**2 * (factor - 1) / factor
        total += term
    return 2 / math.pi * (angle + sine * total) if is_odd else sine * total


def _by_series(degrees: int, level: float) -> float:
    from statistics import NormalDist  # imports fractions, decimals and random numbers besides

    normal = NormalDist().inv_cdf(0.5 + level / 2)
    first = (normal**3 + normal) / 4
    second = (5 * normal**5 + 16 * normal**3 + 3 * normal) / 96
    return normal + first / degrees + second / degrees**2

"""Times in words."""

from __future__ import annotations

import math


def duration(seconds: float) -> str:
    """A time in its most readable unit.

    Examples
    --------
    >>> duration(53.2), duration(3000), duration(17510), duration(864000), duration(float("nan"))
    ('53.2 s', '50 min', '4.86 h', '10 d', '–')
    """
    if not math.isfinite(seconds):
        return "–" if math.isnan(seconds) else "∞"
    for unit, size, limit in (("s", 1.0, 120.0), ("min", 60.0, 120.0), ("h", 3600.0, 72.0)):
        if seconds / size < limit:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 86_400:.3g} d" if seconds < 86_400_000 else f"{seconds / 86_400:.2e} d"


def durations(interval: tuple[float, float]) -> str:
    """An interval of times, each with its unit.

    Examples
    --------
    >>> durations((2640.0, 12000.0))
    '44 min to 3.33 h'
    """
    low, high = duration(interval[0]), duration(interval[1])
    if low.rpartition(" ")[2] == high.rpartition(" ")[2] and " " in low:
        low = low.rpartition(" ")[0]
    return "–" if math.isnan(interval[0]) else f"{low} to {high}"

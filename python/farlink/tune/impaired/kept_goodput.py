"""Goodput that was simulated, kept so that an interrupted study goes on where it was, and a repeated one takes no time."""

from __future__ import annotations

import math
from typing import Any

from farlink.kept_results import KeptResults


def _impossible(found: Any) -> str:
    """Errors in a share of the link's rate and the half-width of its interval; empty if there are none."""
    if not isinstance(found, dict) or set(found) != {"share", "half_width"}:
        return "it does not hold what a simulation finds"
    for name, value in found.items():
        if not (type(value) is float and math.isfinite(value) and value >= 0):
            return f"{name} is no number from 0 on"
    return ""


KEPT = KeptResults("goodput", ".json", format=2, most_bytes=1 << 14, impossible=_impossible)

"""Simulated error rates, kept so that they are computed once, and believed only where such a simulation can give them."""

from __future__ import annotations

import math
from typing import Any

from farlink.kept_results import KeptResults

_COUNTS = ("bits", "wrong_bits", "events", "gave_up", "packets", "wrong_packets", "packet_bits")
_RATES = ("bit_error_rate", "event_rate", "packet_error_rate")
_FLAGS = ("interrupted", "reached")


def _impossible(found: Any) -> str:
    """Errors in the numbers of a simulation; empty if there are none."""
    if not isinstance(found, dict) or set(found) != {*_COUNTS, *_RATES, *_FLAGS}:
        return "it does not hold what a simulation finds"
    if not all(isinstance(found[name], bool) for name in _FLAGS):
        return "it does not say whether the simulation ended"
    for name in _COUNTS:
        if type(found[name]) is not int or not 0 <= found[name] < 1 << 63:
            return f"{name} is no number of them"
    for part, whole in (("wrong_bits", "bits"), ("wrong_packets", "packets")):
        if found[part] > found[whole]:
            return f"{part} is above {whole}"
    for name in _RATES:
        rate = found[name]
        if not isinstance(rate, list | tuple) or len(rate) != 3 or not all(type(one) is float for one in rate):
            return f"{name} is no estimate with its interval"
        value, low, high = rate
        if not (0 <= low <= value <= high <= 1 and math.isfinite(value)):
            return f"{name} is no rate within its interval, from 0 to 1"
    for rate, part, whole in (("bit_error_rate", "wrong_bits", "bits"), ("packet_error_rate", "wrong_packets", "packets")):
        if found[whole] and not math.isclose(found[rate][0], found[part] / found[whole], rel_tol=1e-9):
            return f"{rate} is not {part} of {whole}"
    return ""


KEPT = KeptResults("codes", ".rate.json", format=2, most_bytes=1 << 16, impossible=_impossible)

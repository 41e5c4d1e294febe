"""State of an interface, in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def details(seen: Mapping[str, Any]) -> str:
    """Carrier, addresses, last proof of each way, round trips, and bytes of probes today.

    Parameters
    ----------
    seen
        What `InterfaceLine.observed` gives.
    """
    if not seen["is_port_there"]:
        return f"there is no interface {seen['port']}"
    words = [
        f"{seen['port']} {'with' if seen['carrier'] else 'without'} carrier, {', '.join(seen['addresses']) or 'no address'}"
    ]
    words.append(f"last proof outward {_ago(seen['last_outward_s'])}, inward {_ago(seen['last_inward_s'])}")
    if seen["round_trip_s"] is not None:
        times = [seen[f"{which}round_trip_s"] for which in ("", "least_", "median_")]
        words.append("round trip {} (least {}, median {})".format(*(f"{1000 * one:.3g} ms" for one in times)))
    words.append(f"{seen['probe_bytes_today']} bytes of probes today")
    if seen["noticed_s"] is None:
        words[-1] += ", the budget is spent: silence is not noticed until midnight UTC"
    return "; ".join(words + [seen[key] for key in ("failure", "route_failure") if seen[key]])


def _ago(age_s: float | None) -> str:
    return "never" if age_s is None else f"{age_s:.1f} s ago"

"""Common parts of the forms for AeroTP."""

from __future__ import annotations

import math
from dataclasses import dataclass

from farlink.engines.model.point import Flow, Point, refused


@dataclass(frozen=True)
class Sending:
    """A reliable sender on its path."""

    payload_bytes: float
    packet_bytes: float
    loss: float
    rate_bps: float
    """Its own, or that of the bottleneck."""
    is_set: bool
    """Whether the rate is its own, not learnt."""
    one_way_s: float
    """Of a full packet, its own time on each hop included."""
    round_trip_s: float


def sending(flow: Flow, point: Point) -> Sending:
    """A reliable flow on its path; other modes and rates are refused."""
    keys, sizes, path = flow.transport, flow.sizes, point.path
    if keys["mode"] != "reliable":
        what = f'has bounds for the mode "reliable", not for {keys["mode"]!r}'
        raise refused(flow.transport_key("mode"), what, 'give "reliable"')
    control = keys.get("rate_control") or ("fixed" if "rate_bps" in keys else "learnt")
    if control not in ("fixed", "learnt") or keys.get("alone") is False:
        key = "alone" if control in ("fixed", "learnt") else "rate_control"
        what = "has bounds for a set rate, or for one that is learnt on a path of its own"
        raise refused(flow.transport_key(key), what, "give rate_bps, or leave both keys out")
    path.refuse_losses_back("takes acknowledgements to arrive")
    rate_bps = min(path.bottleneck.rate_bps, float(keys.get("rate_bps") or math.inf))
    if float(keys.get("rate_bps") or 0) > path.bottleneck.rate_bps:
        what = f"has no drops, and {keys['rate_bps']:g} bit/s overflow the queue of {path.bottleneck.table}"
        raise refused(flow.transport_key("rate_bps"), what, f"give at most {path.bottleneck.rate_bps:g}")
    one_way_s = path.one_way_s(sizes.packet_bytes)
    return Sending(
        payload_bytes=sizes.payload_bytes,
        packet_bytes=sizes.packet_bytes,
        loss=path.loss(sizes.packet_bytes),
        rate_bps=rate_bps,
        is_set="rate_bps" in keys,
        one_way_s=one_way_s,
        round_trip_s=one_way_s + path.way_back_s(sizes.packet_bytes - sizes.payload_bytes),
    )

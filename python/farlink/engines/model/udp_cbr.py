"""Datagrams at a constant rate: what the path loses, and when the rest arrives. Exact where no packet waits."""

from __future__ import annotations

import math

from farlink.engines.model.answer import Answer
from farlink.engines.model.point import Flow, Hop, Point, refused


def answer(flow: Flow, point: Point) -> Answer:
    """Rate, losses and delay of one flow of datagrams."""
    path = point.path
    lengths, headers = _datagrams(flow)
    interval_s = _interval_s(flow)
    arriving = sum(length * (1 - path.loss(length + headers)) for length in lengths)
    lost = sum(path.loss(length + headers) for length in lengths) / len(lengths)
    goodput_bps = 8 * arriving / interval_s
    values = {
        "goodput_bps": goodput_bps,
        "goodput_fraction": goodput_bps / path.bottleneck.rate_bps,
        "loss_fraction": lost,
        "sent_bps": 8 * sum(length + headers for length in lengths) / interval_s,
    }
    if "bytes" in flow.traffic:
        last_s = flow.start_s + 8 * float(flow.traffic["bytes"]) / float(flow.traffic["rate_bps"])
        if last_s > point.duration_s:
            what = f"finds that the last datagram is sent at {last_s:.4g} s, and the run ends before"
            raise refused("duration_s", what, f"give more than {last_s:.4g}")
        values["delivered_bytes"] = float(flow.traffic["bytes"]) * arriving / sum(lengths)
    _refuse_queues(flow, point)
    form = "arrivals by the product over the hops"
    if len(lengths) == 1 and point.count == 1:
        delay_s = path.one_way_s(lengths[0] + headers)
        values |= dict.fromkeys(("arrival_delay_mean_s", "delay_mean_s", "delay_p50_s", "delay_p99_s"), delay_s)
        return Answer(values, f"{form}, delays by their sum", "exact: no datagram waits for another")
    return Answer(values, form, "exact but for delays, which queues decide")


def _datagrams(flow: Flow) -> tuple[list[float], float]:
    """Payloads of the datagrams of a message, and the headers of each."""
    whole, left = divmod(float(flow.traffic["payload_bytes"]), flow.sizes.payload_bytes)
    lengths = [float(flow.sizes.payload_bytes)] * int(whole) + ([left] if left else [])
    return lengths, float(flow.sizes.packet_bytes - flow.sizes.payload_bytes)


def _interval_s(flow: Flow) -> float:
    return 8 * float(flow.traffic["payload_bytes"]) / float(flow.traffic["rate_bps"])


def _refuse_queues(flow: Flow, point: Point) -> None:
    """Refuse flows that together overload a hop, or overflow its queue."""
    load_bps, longest, burst_bytes = 0.0, 0.0, 0.0
    for one in point.flows:
        lengths, headers = _datagrams(one)
        message_bytes = sum(length + headers for length in lengths)
        load_bps += one.count * 8 * message_bytes / _interval_s(one)
        burst_bytes += one.count * message_bytes
        longest = max(longest, max(lengths) + headers)
    for hop in point.path.hops:
        # While a message of each is sent, those of flows with shorter intervals come again.
        burst_s = 8 * burst_bytes / hop.rate_bps
        again = [one.count * len(_datagrams(one)[0]) * max(1, math.ceil(burst_s / _interval_s(one))) for one in point.flows]
        at_once = sum(again)
        if load_bps > hop.rate_bps:
            what = f"has no closed form for {load_bps:.6g} bit/s with headers over {hop.table}, which carries {hop.rate_bps:g}"
            raise refused(flow.key("traffic.rate_bps"), what, "send less")
        _refuse_overflow(hop, at_once, longest)


def _refuse_overflow(hop: Hop, at_once: int, longest: float) -> None:
    # One datagram is being sent; all others may wait.
    if hop.holds_packets(longest) < at_once - 1:
        what = f"has no drops, and {at_once} datagrams that arrive together overflow the queue"
        raise refused(hop.queue_key, what, f"give {at_once - 1} packets of {longest:.0f} bytes or more")

"""A file over AeroTP: rounds of selective repeat after each other, farlink.models.aerotp, and the bound of any scheme."""

from __future__ import annotations

import math

from farlink.engines.model.aerotp import sending
from farlink.engines.model.answer import Answer
from farlink.engines.model.point import Flow, Point, refused
from farlink.models import aerotp, bounds


def answer(flow: Flow, point: Point) -> Answer:
    """When a file is complete."""
    sender, file_bytes = sending(flow, point), float(flow.traffic["bytes"])
    if sender.loss >= 1:
        raise refused(
            f"{point.path.hops[0].table}.channel", "finds that every packet would be lost", "give a smaller loss or ber"
        )
    if not sender.is_set:
        what = "has times of files at a set rate, and one that is learnt begins low"
        raise refused(flow.transport_key("rate_bps"), what, f"give up to {sender.rate_bps:g}")
    header = sender.packet_bytes - sender.payload_bytes
    packets = math.ceil(file_bytes / sender.payload_bytes)
    wire_bytes = (file_bytes + packets * header) / (1 - sender.loss)
    rounds = float(aerotp.rounds_of_the_worst(sender.loss, packets=packets))
    # The last packet's own time is in the one-way delay.
    ahead_s = sender.one_way_s - 8 * sender.packet_bytes / sender.rate_bps
    time_s = ahead_s + 8 * wire_bytes / sender.rate_bps + sender.round_trip_s * (rounds - 1)
    least_s = ahead_s + float(
        bounds.completion_bound_s(
            file_bytes,
            loss_rate=sender.loss,
            rate_bps=sender.rate_bps,
            delay_s=0.0,
            payload_bytes=sender.payload_bytes,
            header_bytes=header,
        )
    )
    if flow.start_s + time_s > point.duration_s:
        what = f"finds that the file takes {time_s:.4g} s, and the run ends before"
        raise refused("duration_s", what, f"give more than {flow.start_s + time_s:.4g}")
    goodput_bps = 8 * file_bytes / time_s
    return Answer(
        {
            "goodput_bps": goodput_bps,
            "goodput_fraction": goodput_bps / point.path.bottleneck.rate_bps,
            "loss_fraction": sender.loss,
            "delivered_bytes": file_bytes,
            "duration_s": time_s,
            "transfer_time_mean_s": time_s,
        },
        "selective repeat, one round after another (farlink.models.aerotp)",
        f"within a third of packets, rounds overlap; no scheme takes less than {least_s:.4g} s",
    )

"""AeroTP that always has data: what any reliable transport delivers at most, farlink.models.bounds."""

from __future__ import annotations

from farlink.engines.model.aerotp import sending
from farlink.engines.model.answer import Answer
from farlink.engines.model.point import Flow, Point
from farlink.models import bounds


def answer(flow: Flow, point: Point) -> Answer:
    """The bound of goodput of one reliable flow."""
    sender = sending(flow, point)
    share = float(bounds.payload_share(sender.payload_bytes, header_bytes=sender.packet_bytes - sender.payload_bytes))
    goodput_bps = (1 - sender.loss) * share * sender.rate_bps
    return Answer(
        {
            "goodput_bps": goodput_bps,
            "goodput_fraction": goodput_bps / point.path.bottleneck.rate_bps,
            "loss_fraction": sender.loss,
        },
        "what arrives of full packets at the rate, (1 - p) l / (l + l') R (Elias 1955)",
        "an upper bound of any scheme, reached where the rate is known and losses are repaired once each",
    )

"""The links of the paper, and table 1's equations on them.

Everything that is computed takes a `Setting`: with another bit error rate or other distances, every number follows.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from farlink.models import arq
from farlink.papers.epple.saturated import ACK_BYTES, DISTANCES_M, SPEED_OF_LIGHT_MPS

PROTOCOLS = {"tcp": "TCP", "sr": "selective repeat"}


@dataclass(frozen=True)
class Setting:
    """Common properties of the paper's links.

    Attributes
    ----------
    ber
        Bit error rate, for fading channels the long-term one.
    rate_bps
        Rate of the reference receiver, of both directions.
    distances_m
        By place, as table 1 is computed: the text has 500 m for the testbed and 1400 m for ATENAA.
    speed_mps
        Speed of light; table 1 is computed with 3e8.
    payloads_bytes
        User data in a packet that stands in the place of the paper's 500, 1000 and 1500.
    """

    ber: float = 1e-6
    rate_bps: float = 622e6
    distances_m: Mapping[str, float] = field(default_factory=lambda: dict(DISTANCES_M))
    speed_mps: float = SPEED_OF_LIGHT_MPS
    payloads_bytes: Mapping[int, int] = field(default_factory=lambda: {500: 500, 1000: 1000, 1500: 1500})

    def rtt_s(self, place: str) -> float:
        """Propagation there and back, equation (4) without processing."""
        return float(arq.round_trip_s(self.distances_m[place], speed_mps=self.speed_mps))

    def delay_s(self, place: str) -> float:
        """Propagation one way."""
        return self.rtt_s(place) / 2

    def packet_s(self, payload_bytes: int, protocol: str) -> float:
        """How long a packet is on the transmitter."""
        return 8 * (payload_bytes + HEADER_BYTES[protocol]) / self.rate_bps

    def round_trip_s(self, place: str, payload_bytes: int, protocol: str) -> float:
        """From the first bit of a packet to the last one of its acknowledgement."""
        return self.rtt_s(place) + self.packet_s(payload_bytes, protocol) + 8 * REPORT_BYTES[protocol] / self.rate_bps

    def goodput(self, place: str, payload_bytes: int, protocol: str, *, counted: str = "data") -> float:
        """Equation (8) or (10) at this bit error rate.

        Parameters
        ----------
        place
            A key of `distances_m`.
        payload_bytes
            User data in a packet.
        protocol
            ``"tcp"`` (go-back-N, a header of 20 bytes) or ``"sr"`` (60 bytes).
        counted
            Whose bits count in the loss: ``"data"`` as table 1 is computed, ``"packet"`` as equation (5) is written,
            ``"ack"`` as equation (6) is printed (a sum) or ``"true-ack"`` (the probability that it stands for).

        Returns
        -------
        float
            Fraction of the link rate; NaN where the printed sum of equation (6) exceeds 1.
        """
        header = HEADER_BYTES[protocol]
        lengths = {"payload_bytes": payload_bytes, "header_bytes": header}
        loss = self.loss(payload_bytes, protocol, counted=counted)
        if loss > 1:
            return math.nan
        if protocol == "sr":
            return float(arq.goodput_selective_repeat(loss, **lengths))
        capacity = arq.round_trip_capacity(self.rtt_s(place), rate_bps=self.rate_bps, **lengths)
        return float(arq.goodput_go_back_n(loss, capacity=capacity, **lengths))

    def loss(self, payload_bytes: int, protocol: str, *, counted: str = "data") -> float:
        """Loss probability of a packet by equation (5) or (6); see `goodput`."""
        whole = payload_bytes + HEADER_BYTES[protocol]
        if counted in ("ack", "true-ack"):
            return float(
                arq.packet_or_ack_loss(
                    self.ber,
                    packet_bytes=whole,
                    return_ber=self.ber,
                    ack_bytes=REPORT_BYTES[protocol],
                    as_printed=counted == "ack",
                )
            )
        return float(arq.packet_loss(self.ber, packet_bytes=payload_bytes if counted == "data" else whole))


HEADER_BYTES = {"tcp": 20, "sr": 60}
REPORT_BYTES = {"tcp": ACK_BYTES, "sr": 60}
"""An acknowledgement on the wire: what the back-channel columns imply."""

PAPER_SETTING = Setting()

r"""Latency of TCP Tahoe, Reno and SACK: Sikdar, Kalyanaraman and Vastola, as far as Zaghloul prints it, and what completes it.

- `packet_sums`: windows and segments of slow start: the printed sum, the closed one, and whole segments
- `lossless`: rounds of a transfer without loss, and of congestion avoidance
- `recovery`: what a loss costs each version
- `single_loss`, `multiple_losses`: the parts of the equation
- `recursion`: any number of losses, exactly
- `transfer`: the latency, by the equation or by the recursion
"""

from farlink.models.tcp_latency.sikdar.lossless import linear_rounds, lossless_rounds, lossless_s
from farlink.models.tcp_latency.sikdar.multiple_losses import between_losses_s, losses_if_several, multiple_losses_s
from farlink.models.tcp_latency.sikdar.packet_sums import (
    rounds_for_segments,
    rounds_to_window,
    segments_in_rounds,
    window_in_round,
)
from farlink.models.tcp_latency.sikdar.recovery import Recovery, recover
from farlink.models.tcp_latency.sikdar.single_loss import single_loss_s
from farlink.models.tcp_latency.sikdar.transfer import transfer_time_s

__all__ = [
    "Recovery",
    "between_losses_s",
    "linear_rounds",
    "losses_if_several",
    "lossless_rounds",
    "lossless_s",
    "multiple_losses_s",
    "recover",
    "rounds_for_segments",
    "rounds_to_window",
    "segments_in_rounds",
    "single_loss_s",
    "transfer_time_s",
    "window_in_round",
]

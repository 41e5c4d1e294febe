r"""Latency of a TCP transfer: Sikdar, Kalyanaraman and Vastola, for Tahoe, Reno and SACK."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from farlink.arguments import checked_arguments
from farlink.errors import ArgumentError
from farlink.models.parameters import DelayedAckTime, FirstTimeout, RoundTripTime, Seconds, SegmentLossRate, WholeLargestWindow
from farlink.models.ranges import Floats, floats, whole, whole_numbers
from farlink.models.tcp_latency.sikdar.lossless import lossless_s
from farlink.models.tcp_latency.sikdar.multiple_losses import losses_if_several, multiple_losses_s
from farlink.models.tcp_latency.sikdar.packet_sums import PacketSum
from farlink.models.tcp_latency.sikdar.recovery import LossPattern, Variant, Whole
from farlink.models.tcp_latency.sikdar.recursion import MOST_SEGMENTS, MOST_WINDOW, times_s
from farlink.models.tcp_latency.sikdar.single_loss import SEGMENTS_PER_ACK, single_loss_s
from farlink.models.tcp_latency.slow_start import DELAYED_ACK_S
from farlink.models.tcp_latency.timeout import sequence_mean_s

Method = Literal["recursion", "equation"]


@checked_arguments
def transfer_time_s(
    segments: ArrayLike,
    *,
    loss_rate: SegmentLossRate,
    rtt_s: RoundTripTime,
    timeout_s: FirstTimeout,
    window_segments: WholeLargestWindow,
    variant: Variant = "reno",
    losses: LossPattern = "correlated",
    delayed_ack_s: DelayedAckTime = DELAYED_ACK_S["bsd"],
    method: Method = "recursion",
    packet_sum: PacketSum = "whole",
    as_printed: bool = False,
) -> Seconds:
    r"""Mean time of a transfer from its first segment to its last acknowledgement; set-up comes on top.

    .. math::

        T(N) = t_{dack} + (1 - p)^N t_{nl}(N) + N p (1 - p)^{N - 1} E[t_{sl}(N)]
        + \left( 1 - (1 - p)^N - N p (1 - p)^{N - 1} \right) t_{ml}(N)

    Parameters
    ----------
    segments
        Segments of the transfer :math:`N`, whole, at least 1. Any shape.
    variant
        Version of TCP: ``"tahoe"``, ``"reno"`` or ``"sack"``.
    losses
        ``"correlated"``: behind a loss the rest of the round is lost, too; ``"independent"``: every segment for itself.
    method
        ``"recursion"`` is exact for the rounds of this model, with any number of losses; ``"equation"`` is the equation above.
    packet_sum
        With ``"equation"``: how the segments of a transfer without loss are counted, see `lossless.lossless_rounds`.
    as_printed
        With ``"equation"``: weigh the single loss by :math:`p (1 - p)^{N - 1}`, which is the probability of a loss at one given
        place, and take :math:`M - 2` distances between :math:`M` losses.

    Raises
    ------
    ValueError
        If a value lies outside its range, or the recursion is asked for more than 20,000 segments or windows above 200: the
        rate of long transfers has settled long before.

    Notes
    -----
    Recoveries, and what the thesis does not print of them, are ours: see `recovery`. A recovery loses nothing itself, but for
    retransmissions after timeouts. Beside the recursion (2 to 2000 segments, a window of 40, :math:`T_0 = 4 RTT`) the
    equation is within 12 % for correlated losses up to :math:`p = 0.1` and within 15 % for independent ones up to 0.03; for
    those at 0.1 it is off by a third either way.

    References
    ----------
    B. Sikdar, S. Kalyanaraman, K. S. Vastola, "Analytic models for the latency and steady-state throughput of TCP Tahoe, Reno
    and SACK", IEEE/ACM Transactions on Networking 11(6), 2003; Zaghloul, eq. (18).

    Examples
    --------
    >>> setting = {"loss_rate": 0.01, "rtt_s": 0.5, "timeout_s": 2.0, "window_segments": 40}
    >>> transfer_time_s([1, 10, 1000], **setting).round(2)
    array([ 0.63,  2.41, 95.42])
    >>> transfer_time_s([1, 10, 1000], method="equation", **setting).round(2)
    array([  0.63,   2.41, 106.36])
    """
    number, loss = whole(1, segments=segments), floats(loss_rate)
    delay, limit = floats(delayed_ack_s), whole_numbers(window_segments)
    rtt, first = floats(rtt_s), floats(timeout_s)
    number, loss, rtt, first, limit = np.broadcast_arrays(number, loss, rtt, first, limit)
    if method == "recursion":
        return delay + _by_recursion(number, loss, rtt, first, limit, variant, losses)

    setting = {"rtt_s": rtt, "window_segments": limit}
    lossless = lossless_s(number, packet_sum=packet_sum, **setting)
    setting |= {"loss_rate": loss, "timeout_s": first}
    single = single_loss_s(number, variant=variant, losses=losses, **setting)
    # Of a single segment there are no two losses; what is computed for it has no weight.
    several = np.maximum(number, 2)
    multiple = multiple_losses_s(
        several,
        loss_count=losses_if_several(several, loss_rate=loss),
        variant=variant,
        losses=losses,
        as_printed=as_printed,
        **setting,
    )
    none = (1 - loss) ** number
    one = loss * (1 - loss) ** (number - 1) * (1 if as_printed else number)
    return np.asarray(delay + none * lossless + one * single + np.maximum(0, 1 - none - one) * multiple)


def _by_recursion(
    number: Whole, loss: Floats, rtt: Floats, first: Floats, limit: Whole, variant: Variant, losses: LossPattern
) -> Floats:
    if np.any(number > MOST_SEGMENTS) or np.any(limit > MOST_WINDOW):
        asked = f"{number.max()} and {limit.max()}"
        raise ArgumentError(
            f"the recursion takes at most {MOST_SEGMENTS} segments and windows of {MOST_WINDOW}, not {asked}",
            'give fewer segments or a smaller window, or method = "equation"',
        )
    waits = sequence_mean_s(loss, timeout_s=first)
    # One recursion gives all lengths of a setting.
    settings = np.stack([array.ravel().astype(np.float64) for array in (loss, rtt, waits, limit)])
    distinct, member = np.unique(settings, axis=1, return_inverse=True)
    member = np.asarray(member).ravel()
    lengths, times = number.ravel(), np.empty(number.size)
    for index, (p, trip, wait, largest) in enumerate(distinct.T):
        chosen = member == index
        every = times_s(
            int(lengths[chosen].max()),
            loss_rate=float(p),
            rtt_s=float(trip),
            wait_s=float(wait),
            limit=int(largest),
            variant=variant,
            losses=losses,
            segments_per_ack=SEGMENTS_PER_ACK,
        )
        times[chosen] = every[lengths[chosen]]
    return times.reshape(number.shape)

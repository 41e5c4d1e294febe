r"""Time of a transfer in which one round loses segments: eq. (22) of Zaghloul, after Sikdar et al."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from farlink.arguments import checked_arguments
from farlink.models.parameters import FirstTimeout, RepeatLossRate, RoundTripTime, WholeLargestWindow
from farlink.models.ranges import Floats, floats, whole, whole_numbers
from farlink.models.tcp_latency.sikdar.lossless import linear_rounds, lossless_rounds
from farlink.models.tcp_latency.sikdar.packet_sums import (
    rounds_for_segments,
    rounds_to_window,
    segments_in_rounds,
    window_in_round,
)
from farlink.models.tcp_latency.sikdar.recovery import LossPattern, Recovery, Variant, Whole, recover
from farlink.models.tcp_latency.timeout import sequence_mean_s

# Segments that an acknowledgement answers, for which the law of slow start holds.
SEGMENTS_PER_ACK = 2


@checked_arguments
def rounds_after(recovery: Recovery, *, left: Whole, limit: Whole) -> Floats:
    """Rounds in which what is left after a recovery is sent without another loss."""
    window = np.minimum(recovery.next_window, limit)
    done = recovery.first_round - 1
    reached = np.maximum(rounds_to_window(window), recovery.first_round)
    offset = segments_in_rounds(done)
    starting = np.where(recovery.is_slow_start, segments_in_rounds(reached - 1) - offset, 0.0)
    slow = rounds_for_segments(left + offset) - done
    full = np.where(recovery.is_slow_start, reached - recovery.first_round, 0.0)
    linear = linear_rounds(
        np.maximum(0, left - starting), first_window_segments=window, window_segments=limit, segments_per_ack=SEGMENTS_PER_ACK
    )
    rounds = np.where(recovery.is_slow_start & (left <= starting), slow, full + linear)
    return np.asarray(np.where(left > 0, rounds, 0.0))


@checked_arguments
def single_loss_s(
    segments: ArrayLike,
    *,
    loss_rate: RepeatLossRate,
    rtt_s: RoundTripTime,
    timeout_s: FirstTimeout,
    window_segments: WholeLargestWindow,
    variant: Variant = "reno",
    losses: LossPattern = "correlated",
) -> Floats:
    r"""Mean time of a transfer with one loss, which begins with each of the segments as likely.

    .. math::

        t_{sl}(N) = \frac{1}{N} \sum_{i=1}^N \begin{cases}
        \left[ t_{nl}(i) + n_{loss} + 1 + t_{lin}(a, n) \right] RTT & \text{without timeouts} \\
        \left[ t_{nl}(i) + t_{TO} + r(n) + t_{lin}(a, n) \right] RTT + E[Z^{TO}] & \text{with timeouts} \end{cases}

    Parameters
    ----------
    segments
        Segments of the transfer :math:`N`, whole, at least 1. Any shape.
    variant
        Version of TCP: ``"tahoe"``, ``"reno"`` or ``"sack"``.
    losses
        ``"correlated"``: the rest of the round is lost, too; ``"independent"``: only that segment.

    Returns
    -------
    ndarray
        Time in s, of the broadcast shape, without set-up and the first delayed acknowledgement.

    Notes
    -----
    Which losses need a timeout, the rounds of a recovery and :math:`t_{lin}` are ours, see `recovery`; for Reno's single loss
    the rounds are the :math:`n_{loss} + 1` of the equation. The equation's bracket multiplies the timeouts by the round trip,
    too. No second loss comes into the recovery; acknowledgements in slow start let as many segments go as in congestion
    avoidance.

    References
    ----------
    Zaghloul, eq. (22).

    Examples
    --------
    >>> setting = {"loss_rate": 0.01, "rtt_s": 0.5, "timeout_s": 2.0, "window_segments": 40}
    >>> for variant in ("tahoe", "reno", "sack"):
    ...     print(variant, single_loss_s([10, 100], variant=variant, **setting).round(2))
    tahoe [5.09 9.53]
    reno [ 5.09 11.05]
    sack [5.09 9.94]
    """
    waits = sequence_mean_s(loss_rate, timeout_s=timeout_s)

    def mean(number: int, limit: int, rtt: float, wait: float) -> float:
        rounds, timeouts = _every_place(number, limit, variant, losses)
        return float(np.mean(rounds) * rtt + np.mean(timeouts) * wait)

    parts = (whole(1, segments=segments), whole_numbers(window_segments), floats(rtt_s), waits)
    return np.asarray(np.vectorize(mean, otypes=[np.float64])(*parts))


def _every_place(number: int, limit: int, variant: Variant, losses: LossPattern) -> tuple[Floats, Floats]:
    """Rounds, and whether there is a timeout, if the loss begins with each of the segments."""
    place = np.arange(1, number + 1)
    bound = np.full_like(place, limit)
    round_number = lossless_rounds(place, window_segments=bound)
    reached = rounds_to_window(limit)
    # Segments before the round: those of slow start, then full windows.
    slow = np.minimum(round_number, reached) - 1
    earlier = (segments_in_rounds(slow) + limit * np.maximum(0, round_number - reached)).astype(np.int64)
    window = np.minimum(limit, window_in_round(np.minimum(round_number, reached), is_whole=True)).astype(np.int64)

    sent = np.minimum(window, number - earlier)
    before = place - 1 - earlier
    lost = sent - before if losses == "correlated" else np.ones_like(place)
    fresh = np.minimum(before, number - earlier - sent)
    recovery = recover(variant, sent=sent, before=before, lost=lost, fresh=fresh)
    left = np.maximum(0, number - earlier - recovery.delivered)
    rounds = round_number + recovery.rounds + rounds_after(recovery, left=left, limit=bound)
    return rounds, recovery.has_timeout.astype(np.float64)

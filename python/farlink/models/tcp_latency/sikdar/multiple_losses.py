r"""Time of a transfer with several losses: the equations after (22) of Zaghloul, after Sikdar et al.

The first loss lies in a part of its own, up to the second; from there on losses follow each other at the mean distance. The
equations leave open from which window a later loss is repaired, and where in its round it lies; what stands here for it is
ours.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from farlink.arguments import checked_arguments, refused
from farlink.models.parameters import FirstTimeout, RepeatLossRate, RoundTripTime, Seconds, SegmentLossRate, WholeLargestWindow
from farlink.models.ranges import Floats, at_least, floats, whole, whole_numbers
from farlink.models.tcp_latency.sikdar.recovery import LossPattern, Variant, recover
from farlink.models.tcp_latency.sikdar.single_loss import SEGMENTS_PER_ACK, rounds_after, single_loss_s
from farlink.models.tcp_latency.timeout import sequence_mean_s


@checked_arguments
def losses_if_several(segments: ArrayLike, *, loss_rate: SegmentLossRate) -> Floats:
    r"""Mean number of losses of transfers that have at least two.

    .. math:: E[M | M \ge 2] = \frac{N p - N p (1 - p)^{N - 1}}{1 - (1 - p)^N - N p (1 - p)^{N - 1}}, \quad M \sim B(N, p)

    Parameters
    ----------
    segments
        Segments of the transfer :math:`N`, at least 2. Any shape.

    Returns
    -------
    ndarray
        Losses, at least 2, of the broadcast shape.

    Examples
    --------
    >>> losses_if_several([2, 100, 1000], loss_rate=0.01).round(2)
    array([ 2.  ,  2.39, 10.  ])
    """
    number, loss = np.broadcast_arrays(at_least(2, segments=segments), floats(loss_rate))
    mean = number * loss
    # For rare losses both differences vanish; their ratio tends to 2.
    kept = np.log1p(-loss)
    one = mean * np.exp((number - 1) * kept)
    several = -np.expm1(number * kept) - one
    is_rare = mean < 1e-4
    ratio = (mean - one) / np.where(is_rare, 1.0, several)
    return np.asarray(np.clip(np.where(is_rare, 2 + (number - 2) * loss / 3, ratio), 2.0, number))


@checked_arguments
def between_losses_s(
    distance_segments: ArrayLike,
    *,
    loss_rate: RepeatLossRate,
    rtt_s: RoundTripTime,
    timeout_s: FirstTimeout,
    window_segments: WholeLargestWindow,
    variant: Variant = "reno",
    losses: LossPattern = "correlated",
) -> Seconds:
    r"""Mean time from a loss to the next, if losses come at equal distances, :math:`t_{M\_loss}(D)`.

    The window at a loss is the one that grows from its half in :math:`D` segments, :math:`\sqrt{8 D / (3 b)}`, or the
    largest; the loss begins with each segment of the round as likely.

    Parameters
    ----------
    distance_segments
        Segments from a loss to the next :math:`D`, at least 1. Any shape.
    variant
        Version of TCP: ``"tahoe"``, ``"reno"`` or ``"sack"``.
    losses
        ``"correlated"``: the rest of the round is lost, too; ``"independent"``: only that segment.

    Notes
    -----
    Ours; the window is that of Padhye et al. for a period of so many segments.

    Examples
    --------
    >>> setting = {"loss_rate": 0.01, "rtt_s": 0.5, "timeout_s": 2.0, "window_segments": 40}
    >>> between_losses_s([10, 100, 1000], variant="sack", **setting).round(2)
    array([ 3.91,  8.65, 24.2 ])
    """
    waits = sequence_mean_s(loss_rate, timeout_s=timeout_s)

    def mean(distance: float, limit: int, rtt: float, wait: float) -> float:
        window = int(np.clip(np.rint(np.sqrt(8 * distance / (3 * SEGMENTS_PER_ACK))), 1, limit))
        before = np.arange(window)
        sent = np.full_like(before, window)
        lost = sent - before if losses == "correlated" else np.ones_like(before)
        recovery = recover(variant, sent=sent, before=before, lost=lost, fresh=before)
        # From the first lost segment to the next: what came before it in the round is not counted.
        left = np.maximum(0, round(distance) + before - recovery.delivered)
        rounds = recovery.rounds + rounds_after(recovery, left=left, limit=np.full_like(before, limit))
        return float(np.mean(rounds) * rtt + np.mean(recovery.has_timeout) * wait)

    parts = (at_least(1, distance_segments=distance_segments), whole_numbers(window_segments), floats(rtt_s))
    return np.asarray(np.vectorize(mean, otypes=[np.float64])(*parts, waits))


@checked_arguments
def multiple_losses_s(
    segments: ArrayLike,
    *,
    loss_count: ArrayLike,
    loss_rate: RepeatLossRate,
    rtt_s: RoundTripTime,
    timeout_s: FirstTimeout,
    window_segments: WholeLargestWindow,
    variant: Variant = "reno",
    losses: LossPattern = "correlated",
    as_printed: bool = False,
) -> Floats:
    r"""Mean time of a transfer with so many losses.

    .. math:: t_{ml}(N) = t_{sl}(m - 1) + (M - 1)\, t_{M\_loss}(D), \qquad D = \frac{N - m + 1}{M - 1}

    with the second loss at its mean place, :math:`m = 2 (N + 1) / (M + 1)`.

    Parameters
    ----------
    segments
        Segments of the transfer :math:`N`, whole, at least 2. Any shape.
    loss_count
        Losses :math:`M`, from 2 to `segments`; all parameters are broadcast against each other. It may be a mean, as that of
        `losses_if_several`.
    variant
        Version of TCP: ``"tahoe"``, ``"reno"`` or ``"sack"``.
    losses
        ``"correlated"``: the rest of the round is lost, too; ``"independent"``: only that segment.
    as_printed
        Take :math:`M - 2` distances, as the thesis does; the segments behind the last loss are sent in no time then.

    Returns
    -------
    ndarray
        Time in s, of the broadcast shape, without set-up and the first delayed acknowledgement.

    References
    ----------
    Zaghloul, eq. (23) and the one after it.

    Examples
    --------
    >>> setting = {"loss_rate": 0.01, "rtt_s": 0.5, "timeout_s": 2.0, "window_segments": 40}
    >>> multiple_losses_s(1000, loss_count=[2, 5, 10], **setting).round(1)
    array([ 42.2,  71.2, 106.2])
    """
    number = whole(2, segments=segments)
    count = at_least(2, loss_count=loss_count)
    if not np.all(count <= number):
        raise refused("loss_count", f"be at most segments, {segments!r}", loss_count)
    second = np.clip(np.rint(2 * (number + 1) / (count + 1)), 2, number)
    distance = np.maximum(1.0, (number - second + 1) / (count - 1))
    setting = {"loss_rate": loss_rate, "rtt_s": rtt_s, "timeout_s": timeout_s, "window_segments": window_segments}
    first = single_loss_s(second - 1, variant=variant, losses=losses, **setting)
    later = between_losses_s(distance, variant=variant, losses=losses, **setting)
    return np.asarray(first + (count - (2 if as_printed else 1)) * later)

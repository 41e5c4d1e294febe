r"""Slow start over a link that its window fills: rounds with a queue, while the round trip grows with the window.

The first acknowledgement of a round, which answers its first :math:`b` segments, comes
:math:`\tau_k = \tau + (\min(b, w_k) - 1) s` after the round's first segment went onto the link. If the link is done with the
round's :math:`w_k` segments by then, it waits for the rest; if not, it is not idle, and what is left of the round is the queue
of the next:

.. math::

    w_{k + 1} = w_k + \lceil w_k / b \rceil, \qquad I_k = \max(0, \tau_k - w_k s), \qquad B_{k + 1} = \max(0, w_k s - \tau_k)

with the round trip of a lone segment :math:`\tau` and the time of a segment on the link :math:`s`. Nothing is lost.

References
----------
J. Heidemann, K. Obraczka, J. Touch, "Modeling the performance of HTTP over several transport protocols", IEEE/ACM Transactions
on Networking 5(5), 1997; J. Kurose, K. Ross, "Computer networking", section "TCP delay modeling" of the early editions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from numpy.typing import ArrayLike

from farlink.arguments import checked_arguments, refused
from farlink.meanings import Meaning
from farlink.models.parameters import (
    DelayedAckTime,
    FirstTimeout,
    InitialWindow,
    Seconds,
    SegmentLossRate,
    WholeSegmentsPerAck,
    WholeTransferSegments,
)
from farlink.models.ranges import POSITIVE, Floats, at_least, floats, positive, whole, whole_numbers
from farlink.models.tcp_latency import cardwell, padhye, slow_start

# Mean numbers of losses after which there has been one: all but 1e-11.
_SURE = 25.0
# Of the window at a loss: it grows evenly from its half.
_MEAN_WINDOW = 0.75

SegmentTime = Annotated[ArrayLike, Meaning("Time of a segment on the link :math:`s`, in s", POSITIVE)]


@checked_arguments
def transfer_time_s(
    segments: WholeTransferSegments,
    *,
    rtt_s: ArrayLike,
    segment_s: SegmentTime,
    segments_per_ack: WholeSegmentsPerAck = 2.0,
    window_segments: ArrayLike = np.inf,
    initial_window_segments: InitialWindow = 1.0,
    delayed_ack_s: DelayedAckTime = 0.0,
) -> Seconds:
    r"""Time of a transfer from its first segment to its last acknowledgement; set-up comes on top.

    .. math:: T = t_{dack} + d s + \sum_{k=1}^{K - 1} I_k + \tau - s

    with the first :math:`K` windows that hold all :math:`d` segments.

    Parameters
    ----------
    rtt_s
        Round trip of a lone segment :math:`\tau`, its own time on the link included, in s, at least `segment_s`; all parameters
        are broadcast against each other.
    window_segments
        Largest window, in segments, at least `initial_window_segments`.

    Notes
    -----
    Exact with a segment per acknowledgement: the packet engine's times are these. With two, the last segment of an odd
    window is taken to be acknowledged with its round; in a real connection it may wait for the timer or for the next segment,
    which moves the end by less than a round trip where the timer outlasts two segments. Where it does not, as over a slow
    modem, every segment is acknowledged.

    References
    ----------
    Kurose and Ross, for a segment per acknowledgement and no limit.

    Examples
    --------
    Five segments of a second over a round trip of ten: windows of one, two and four, then of three that are limited.

    >>> transfer_time_s([1, 3, 5], rtt_s=10.0, segment_s=1.0, segments_per_ack=1)
    array([10., 21., 31.])
    >>> transfer_time_s(100, rtt_s=10.0, segment_s=1.0, segments_per_ack=1, window_segments=[5, 10, 40])
    array([222., 134., 134.])
    """
    rounds = _rounds(segments, rtt_s, segment_s, segments_per_ack, window_segments, initial_window_segments)
    each, limit = rounds.segment, rounds.limit
    # The link waits behind every round but the last.
    is_last = np.cumsum(rounds.sent, axis=0) >= rounds.number
    idle = np.sum(np.where(is_last, 0.0, np.maximum(0, rounds.heard_s(rounds.window) - rounds.window * each)), axis=0)
    limited = np.maximum(0, np.ceil(rounds.left / limit) - 1) * np.maximum(0, rounds.heard_s(limit) - limit * each)
    return np.asarray(floats(delayed_ack_s) + rounds.number * each + idle + limited + rounds.rtt - each)


@checked_arguments
def lossy_transfer_time_s(
    segments: WholeTransferSegments,
    *,
    loss_rate: SegmentLossRate,
    rtt_s: ArrayLike,
    segment_s: SegmentTime,
    timeout_s: FirstTimeout,
    segments_per_ack: WholeSegmentsPerAck = 2.0,
    window_segments: ArrayLike = np.inf,
    initial_window_segments: InitialWindow = 1.0,
    delayed_ack_s: DelayedAckTime = 0.0,
) -> Seconds:
    r"""Mean time of a transfer with losses: the parts of Cardwell's model, with the queue in each.

    .. math::

        E[T] = E[T(D_{ss})] + E[T_{loss}] + (d - E[D_{ss}]) \, \max \left( s, \frac{1}{R} \right), \qquad
        RTT_R = \max \left( \tau, \tfrac{3}{4} \min(E[W_u], W_{max}) \, s \right)

    with slow start as in `transfer_time_s` up to the first segment that is lost, :math:`D_{ss}`, or to the last; a recovery at
    the round trip of the window that slow start has reached in the mean; and the rate of Padhye et al. :math:`R` at the round
    trip of the mean window between two losses, which grows from its half, but no more than the link carries.

    Parameters
    ----------
    rtt_s
        Round trip of a lone segment :math:`\tau`, its own time on the link included, in s, at least `segment_s`.
    window_segments
        Largest window :math:`W_{max}`, in segments, at least `initial_window_segments`.

    Notes
    -----
    Ours. Without a loss it is `transfer_time_s`; over a link so fast that a window is no time it is Cardwell's model with whole
    rounds. The queue loses nothing.

    References
    ----------
    N. Cardwell, S. Savage, T. Anderson, "Modeling TCP latency", INFOCOM 2000.

    Examples
    --------
    A bundle of 19.2 kbit/s whose window of 33 packets fills it three times:

    >>> link = {"rtt_s": 6.0, "segment_s": 0.625, "timeout_s": 60.0, "segments_per_ack": 1, "window_segments": 33}
    >>> lossy_transfer_time_s([10, 100, 1000], loss_rate=[[0.0], [0.01]], **link).round(0)
    array([[ 25.,  82., 645.],
           [ 29., 106., 867.]])
    """
    number, loss = whole_numbers(segments).astype(np.float64), floats(loss_rate)
    trip, each = positive(rtt_s=rtt_s), floats(segment_s)
    path = {"segments_per_ack": segments_per_ack, "window_segments": window_segments}
    first = cardwell.slow_start_segments(number, loss_rate=loss)
    law = {"segments_per_ack": segments_per_ack, "initial_window_segments": initial_window_segments}
    starting = _mean_start_s(number, loss, trip, each, segments_per_ack, window_segments, initial_window_segments)
    reached = np.minimum(slow_start.window_after_segments(first, **law), window_segments)
    full = np.maximum(trip, reached * each)
    recovering = cardwell.recovery_s(number, loss_rate=loss, window_segments=reached, rtt_s=full, timeout_s=timeout_s)
    settled = _MEAN_WINDOW * np.minimum(padhye.mean_window(loss, segments_per_ack=segments_per_ack), window_segments)
    between = np.maximum(trip, np.where(np.isfinite(settled), settled, 0.0) * each)
    rate = padhye.throughput(loss, rtt_s=between, timeout_s=timeout_s, **path)
    after = (number - first) * np.maximum(each, 1 / rate)
    return np.asarray(floats(delayed_ack_s) + starting + recovering + after)


@checked_arguments
def mean_rtt_s(
    segments: WholeTransferSegments,
    *,
    rtt_s: ArrayLike,
    segment_s: SegmentTime,
    segments_per_ack: WholeSegmentsPerAck = 2.0,
    window_segments: ArrayLike = np.inf,
    initial_window_segments: InitialWindow = 1.0,
) -> Seconds:
    r"""Mean round trip over the segments of a transfer: the transient one, between that of the empty path and the full one.

    .. math:: \overline{RTT} = \tau + \frac{1}{d} \sum_{k=1}^{K} \left( n_k B_k + s Q_k \right)

    with :math:`n_k` segments in round :math:`k`, its window or what is left, and :math:`Q_k`, the sum over them of the segments
    of the same round that each finds in the queue.

    Parameters
    ----------
    rtt_s
        Round trip of a lone segment :math:`\tau`, its own time on the link included, in s, at least `segment_s`; all parameters
        are broadcast against each other.
    window_segments
        Largest window, in segments, at least `initial_window_segments`.

    Notes
    -----
    Acknowledgements come :math:`b s` after each other and let :math:`b + 1` segments go each, as long as the window grows, so
    the queue grows by a segment with each of them. From the largest window :math:`W` on, the round trip is
    :math:`W s - (b - 1) s / 2` if that is more than :math:`\tau`, as by Little's law. Ours.

    Examples
    --------
    >>> mean_rtt_s([1, 3, 1000], rtt_s=10.0, segment_s=1.0, segments_per_ack=1, window_segments=40).round(2)
    array([10.  , 10.33, 38.58])
    """
    rounds = _rounds(segments, rtt_s, segment_s, segments_per_ack, window_segments, initial_window_segments)
    each, answered, sent = rounds.segment, rounds.answered, rounds.sent
    before = np.concatenate([np.zeros_like(rounds.window[:1]), rounds.window[:-1]])
    # Each of so many acknowledgements lets a segment more go than it answers; the rest as many.
    growing = np.minimum(sent, (rounds.window - before) * (answered + 1))
    bursts, rest = np.divmod(growing, answered + 1)
    released = (answered + 1) * bursts * (bursts - 1) / 2 + rest * bursts
    found = growing * (growing - 1) / 2 - answered * released
    found = found + (sent - growing) * (rounds.window - before + (np.minimum(answered, rounds.window) - 1) / 2)
    # The first round goes out at once.
    found[0] = sent[0] * (sent[0] - 1) / 2
    queue = np.maximum(0, before * each - rounds.heard_s(before))
    queue[0] = 0.0
    slow = np.sum(sent * queue + each * found, axis=0)
    largest = np.where(rounds.left > 0, rounds.limit, 0.0)
    full = np.maximum(0, largest * each - rounds.heard_s(largest)) + (np.minimum(answered, rounds.limit) - 1) / 2 * each
    return np.asarray(rounds.rtt + (slow + rounds.left * full) / rounds.number)


def _mean_start_s(
    number: Floats, loss: Floats, rtt: Floats, segment: Floats, per_ack: ArrayLike, limit: ArrayLike, initial: ArrayLike
) -> Floats:
    """Mean time of slow start up to the first loss: rounds are whole, so that of the mean number of segments is another."""

    def mean(count: float, p: float, trip: float, each: float, answered: float, largest: float, first: float) -> float:
        # Behind so many segments there has been a loss as good as surely.
        most = int(min(count, np.ceil(_SURE / p))) if p > 0 else int(count)
        ends = np.arange(1, most + 1) if p > 0 else np.array([most])
        times = transfer_time_s(
            ends,
            rtt_s=trip,
            segment_s=each,
            segments_per_ack=answered,
            window_segments=largest,
            initial_window_segments=first,
        )
        share = p * (1 - p) ** (ends - 1.0)
        share[-1] = (1 - p) ** (most - 1.0)
        return float(np.sum(share * times))

    return np.asarray(np.vectorize(mean, otypes=[np.float64])(number, loss, rtt, segment, per_ack, limit, initial))


@dataclass(frozen=True)
class _Rounds:
    """Rounds of slow start up to the largest window, one row each; `left` go with that window."""

    number: Floats
    rtt: Floats
    segment: Floats
    answered: Floats
    limit: Floats
    window: Floats
    sent: Floats
    left: Floats

    def heard_s(self, window: Floats) -> Floats:
        """From the first segment of such a round on the link to the first acknowledgement that comes of it."""
        return np.asarray(self.rtt + (np.minimum(self.answered, np.maximum(window, 1)) - 1) * self.segment)


def _rounds(
    segments: ArrayLike, rtt_s: ArrayLike, segment_s: ArrayLike, per_ack: ArrayLike, limit: ArrayLike, initial: ArrayLike
) -> _Rounds:
    number, rtt, segment = whole(1, segments=segments).astype(np.float64), positive(rtt_s=rtt_s), positive(segment_s=segment_s)
    first, largest = at_least(1, initial_window_segments=initial), at_least(1, window_segments=limit)
    if not np.all(rtt >= segment):
        raise refused("rtt_s", f"be at least segment_s, {segment_s!r}", rtt_s)
    if not np.all(largest >= first):
        raise refused("window_segments", "be at least initial_window_segments", limit)
    answered = whole(1, segments_per_ack=per_ack).astype(np.float64)
    number, rtt, segment, first, largest, answered = np.broadcast_arrays(number, rtt, segment, first, largest, answered)
    windows, total = [np.minimum(first, largest)], first
    while np.any((windows[-1] < largest) & (total < number)):
        windows.append(np.minimum(windows[-1] + np.ceil(windows[-1] / answered), largest))
        total = total + windows[-1]
    window = np.stack(windows)
    sent_before = np.minimum(np.cumsum(window, axis=0) - window, number)
    sent = np.minimum(window, number - sent_before)
    return _Rounds(number, rtt, segment, answered, largest, window, sent, number - np.sum(sent, axis=0))

r"""Latency of a TCP transfer of any length: Cardwell, Savage and Anderson.

Slow start until the first loss, then what is left at the rate of Padhye et al. A transfer has set-up (`setup.setup_time_s`),
slow start, at most one recovery from the loss that ends it, congestion avoidance, and the delayed acknowledgement of its first
segment. Short transfers see little but slow start, long ones little but congestion avoidance.

References
----------
N. Cardwell, S. Savage, T. Anderson, "Modeling TCP latency", INFOCOM 2000.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from farlink.arguments import checked_arguments, refused
from farlink.models.parameters import (
    FirstTimeout,
    InitialWindow,
    RoundTripTime,
    Seconds,
    SegmentLossRate,
    SegmentsPerAck,
    TransferSegments,
)
from farlink.models.ranges import Floats, at_least, floats
from farlink.models.tcp_latency import padhye, slow_start
from farlink.models.tcp_latency.timeout import sequence_mean_s


@checked_arguments
def slow_start_segments(segments: TransferSegments, *, loss_rate: SegmentLossRate, as_printed: bool = False) -> Floats:
    r"""Mean number of segments that a transfer sends in its first slow start.

    .. math:: E[d_{ss}] = \frac{1 - (1 - p)^d}{p}

    Parameters
    ----------
    as_printed
        Take :math:`\frac{(1 - (1 - p)^d) (1 - p)}{p} + 1`, as the paper does: it counts a lost segment even where none is lost,
        and exceeds :math:`d` then.

    Returns
    -------
    ndarray
        Segments up to and including the first that is lost, or all, of the broadcast shape.

    References
    ----------
    Cardwell et al., eq. (5).

    Examples
    --------
    >>> slow_start_segments([1, 10, 1000], loss_rate=0.01).round(2)
    array([ 1.  ,  9.56, 100.  ])
    >>> slow_start_segments([1, 10, 1000], loss_rate=0.01, as_printed=True).round(2)
    array([  1.99,  10.47, 100.  ])
    """
    number, loss = floats(segments), floats(loss_rate)
    ends = _any_lost(number, loss)
    with np.errstate(invalid="ignore"):
        until = np.where(loss > 0, ends / loss, number)
    return np.asarray(until - ends + 1 if as_printed else until)


@checked_arguments
def slow_start_s(
    segments: ArrayLike,
    *,
    rtt_s: RoundTripTime,
    segments_per_ack: SegmentsPerAck = 2.0,
    window_segments: ArrayLike = np.inf,
    initial_window_segments: InitialWindow = 1.0,
) -> Seconds:
    r"""Time in which slow start sends so many segments.

    .. math::

        E[T_{ss}] = RTT \cdot \begin{cases}
        \log_\gamma \left( \frac{W_{max}}{w_1} \right) + 1
        + \frac{1}{W_{max}} \left( d - \frac{\gamma W_{max} - w_1}{\gamma - 1} \right) & W_{ss}(d) > W_{max} \\
        \log_\gamma \left( \frac{d (\gamma - 1)}{w_1} + 1 \right) & W_{ss}(d) \le W_{max} \end{cases}

    Parameters
    ----------
    segments
        Segments :math:`d`, not negative. Any shape.
    window_segments
        Largest window :math:`W_{max}`, in segments, at least `initial_window_segments`.

    Notes
    -----
    Rounds are not rounded.

    References
    ----------
    Cardwell et al., eq. (15).

    Examples
    --------
    >>> slow_start_s([10, 100], rtt_s=0.5, window_segments=20).round(2)
    array([2.21, 5.24])
    """
    number, rtt = at_least(0, segments=segments), floats(rtt_s)
    first, largest = floats(initial_window_segments), np.asarray(window_segments)
    if not np.all(largest >= first):
        raise refused("window_segments", "be at least initial_window_segments", window_segments)
    factor = slow_start.growth(segments_per_ack)
    law = {"segments_per_ack": segments_per_ack, "initial_window_segments": initial_window_segments}
    free = slow_start.rounds_for_segments(number, **law)
    is_limited = slow_start.window_after_segments(number, **law) > largest
    with np.errstate(invalid="ignore"):
        before = (factor * largest - first) / (factor - 1)
        limited = np.log(largest / first) / np.log(factor) + 1 + (number - before) / largest
    return np.asarray(rtt * np.where(is_limited, limited, free))


@checked_arguments
def recovery_s(
    segments: TransferSegments,
    *,
    loss_rate: SegmentLossRate,
    window_segments: ArrayLike,
    rtt_s: RoundTripTime,
    timeout_s: FirstTimeout,
) -> Seconds:
    r"""Mean time spent on the loss that ends slow start.

    .. math:: E[T_{loss}] = l_{ss} \left( \hat{Q} E[Z^{TO}] + (1 - \hat{Q}) RTT \right), \qquad l_{ss} = 1 - (1 - p)^d

    Parameters
    ----------
    window_segments
        Window at the end of slow start, in segments, at least 1.

    References
    ----------
    Cardwell et al., eqs. (16) to (20).

    Examples
    --------
    >>> recovery_s([10, 1000], loss_rate=0.01, window_segments=20, rtt_s=0.5, timeout_s=2.0).round(3)
    array([0.076, 0.79 ])
    """
    number, loss = floats(segments), floats(loss_rate)
    share = padhye.timeout_share(loss, window_segments=window_segments)
    waits = share * sequence_mean_s(loss, timeout_s=timeout_s) + (1 - share) * floats(rtt_s)
    return np.asarray(_any_lost(number, loss) * waits)


@checked_arguments
def transfer_time_s(
    segments: TransferSegments,
    *,
    loss_rate: SegmentLossRate,
    rtt_s: RoundTripTime,
    timeout_s: FirstTimeout,
    segments_per_ack: SegmentsPerAck = 2.0,
    window_segments: ArrayLike = np.inf,
    initial_window_segments: InitialWindow = 1.0,
    delayed_ack_s: ArrayLike = slow_start.DELAYED_ACK_S["bsd"],
    as_printed: bool = False,
) -> Seconds:
    r"""Mean time of a transfer from its first segment to its last acknowledgement; set-up comes on top.

    .. math:: E[T] = E[T_{ss}] + E[T_{loss}] + \frac{d - E[d_{ss}]}{R} + E[T_{delack}]

    Parameters
    ----------
    window_segments
        Largest window :math:`W_{max}`, in segments, at least `initial_window_segments`.
    delayed_ack_s
        Mean delay of the first segment's acknowledgement, in s, not negative: `slow_start.DELAYED_ACK_S`; 0 without delayed
        acknowledgements, or with two segments or more in the first round.
    as_printed
        Count the segments of slow start as the paper does; see `slow_start_segments`.

    Notes
    -----
    For long transfers the rate tends to `padhye.throughput`, :math:`R`.

    References
    ----------
    Cardwell et al., eqs. (21) to (25).

    Examples
    --------
    >>> transfer_time_s([1, 10, 1000], loss_rate=0.01, rtt_s=0.5, timeout_s=2.0).round(2)
    array([ 0.62,  2.46, 66.8 ])
    """
    number, loss = floats(segments), floats(loss_rate)
    first = slow_start_segments(number, loss_rate=loss, as_printed=as_printed)
    law = {"segments_per_ack": segments_per_ack, "initial_window_segments": initial_window_segments}
    window = np.minimum(slow_start.window_after_segments(first, **law), window_segments)
    starting = slow_start_s(first, rtt_s=rtt_s, window_segments=window_segments, **law)
    times = {"rtt_s": rtt_s, "timeout_s": timeout_s}
    recovering = recovery_s(number, loss_rate=loss, window_segments=window, **times)
    rate = padhye.throughput(loss, segments_per_ack=segments_per_ack, window_segments=window_segments, **times)
    return np.asarray(starting + recovering + (number - first) / rate + at_least(0, delayed_ack_s=delayed_ack_s))


def _any_lost(segments: Floats, loss: Floats) -> Floats:
    return np.asarray(-np.expm1(segments * np.log1p(-loss)))

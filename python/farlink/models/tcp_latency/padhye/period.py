r"""Periods of congestion avoidance between losses, and the rate without timeouts: Padhye, Firoiu, Towsley and Kurose.

The window grows by a segment every `segments_per_ack` rounds. With probability :math:`p` a segment is lost, and with it the
rest of its round; the loss shows by three duplicate acknowledgements, which halve the window, or by a timeout. Rounds take a
round trip, whatever the window. Slow start is left out, and so is fast recovery.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from farlink.arguments import checked_arguments
from farlink.models.parameters import FirstLossRate, LargestWindow, RoundTripTime, SegmentsPerAck
from farlink.models.ranges import Floats, at_least, floats, positive

# Stands for no loss where the equations divide by it: the window limit then rules to the last bit.
NO_LOSS = 1e-200

AtLoss = tuple[Floats, Floats, NDArray[np.bool_]]


@checked_arguments
def mean_window(loss_rate: FirstLossRate, *, segments_per_ack: SegmentsPerAck = 2.0) -> Floats:
    r"""Mean window at the end of a period between two losses, without a limit.

    .. math:: E[W_u] = \frac{2 + b}{3 b} + \sqrt{\frac{8 (1 - p)}{3 b p} + \left( \frac{2 + b}{3 b} \right)^2}

    Returns
    -------
    ndarray
        Window in segments, of the broadcast shape; infinite without loss.

    References
    ----------
    Padhye et al., section II; Zaghloul, eq. (5).

    Examples
    --------
    >>> mean_window([1e-4, 1e-2]).round(1)
    array([116.1,  12.2])
    """
    loss, per_ack = floats(loss_rate), floats(segments_per_ack)
    offset = (2 + per_ack) / (3 * per_ack)
    with np.errstate(divide="ignore"):
        return np.asarray(offset + np.sqrt(8 * (1 - loss) / (3 * per_ack * loss) + offset**2))


@checked_arguments
def period_segments(
    loss_rate: ArrayLike, *, segments_per_ack: SegmentsPerAck = 2.0, window_segments: LargestWindow = np.inf
) -> Floats:
    r"""Mean number of segments sent between two losses that duplicate acknowledgements show.

    .. math:: E[Y] = \frac{1 - p}{p} + \min(E[W_u], W_{max})

    Parameters
    ----------
    loss_rate
        Probability :math:`p` that a segment is the first of its round to be lost, in (0, 1). Any shape.

    Returns
    -------
    ndarray
        Segments, of the broadcast shape.

    References
    ----------
    Padhye et al., section II; Zaghloul, eqs. (4), (7), (26).

    Examples
    --------
    >>> period_segments(5e-4, window_segments=[np.inf, 33.1]).round(1)
    array([2051.3, 2032.1])
    """
    loss, window, _ = window_at_loss(positive(loss_rate=loss_rate), segments_per_ack, window_segments)
    return np.asarray((1 - loss) / loss + window)


@checked_arguments
def period_rounds(
    loss_rate: ArrayLike, *, segments_per_ack: SegmentsPerAck = 2.0, window_segments: LargestWindow = np.inf
) -> Floats:
    r"""Mean number of rounds between two losses that duplicate acknowledgements show.

    .. math::

        \frac{E[A]}{RTT} = \begin{cases}
        \frac{2 + b}{6} + \sqrt{\frac{2 b (1 - p)}{3 p} + \left( \frac{2 + b}{6} \right)^2} + 1 & E[W_u] < W_{max} \\
        \frac{b}{8} W_{max} + \frac{1 - p}{p W_{max}} + 2 & E[W_u] \ge W_{max} \end{cases}

    Parameters
    ----------
    loss_rate
        Probability :math:`p` that a segment is the first of its round to be lost, in (0, 1). Any shape.

    Returns
    -------
    ndarray
        Rounds, of the broadcast shape.

    Notes
    -----
    Where the cases change, the second is :math:`(2 - b) / 4` rounds longer: they meet for :math:`b = 2`.

    References
    ----------
    Padhye et al., section II; Zaghloul, eqs. (8) and (28).

    Examples
    --------
    >>> period_rounds(5e-4, window_segments=[np.inf, 33.1]).round(1)
    array([53.3, 70.7])
    """
    loss, window, is_limited = window_at_loss(positive(loss_rate=loss_rate), segments_per_ack, window_segments)
    per_ack = floats(segments_per_ack)
    offset = (2 + per_ack) / 6
    free = offset + np.sqrt(2 * per_ack * (1 - loss) / (3 * loss) + offset**2) + 1
    return np.asarray(np.where(is_limited, per_ack / 8 * window + (1 - loss) / (loss * window) + 2, free))


@checked_arguments
def throughput_without_timeouts(
    loss_rate: FirstLossRate,
    *,
    rtt_s: RoundTripTime,
    segments_per_ack: SegmentsPerAck = 2.0,
    window_segments: LargestWindow = np.inf,
) -> Floats:
    r"""Rate of a connection whose losses all show by duplicate acknowledgements.

    .. math:: B_{NT} = \frac{E[Y]}{E[A]}

    Returns
    -------
    ndarray
        Segments per second, of the broadcast shape; infinite without loss and limit.

    Notes
    -----
    For :math:`p \to 0` without a limit :math:`\frac{1}{RTT} \sqrt{\frac{3}{2 b p}}`, the law of Mathis et al. (1997).

    References
    ----------
    Padhye et al., section II; Zaghloul, eqs. (9), (25) and (29).

    Examples
    --------
    >>> throughput_without_timeouts([0.0, 5e-4], rtt_s=19.0, window_segments=33.1).round(3)
    array([1.742, 1.513])
    """
    loss, rtt = floats(loss_rate), floats(rtt_s)
    some = np.maximum(loss, NO_LOSS)
    sizes = {"segments_per_ack": segments_per_ack, "window_segments": window_segments}
    rate = period_segments(some, **sizes) / (period_rounds(some, **sizes) * rtt)
    return np.asarray(np.where(loss > 0, rate, np.asarray(window_segments) / rtt))


@checked_arguments
def window_at_loss(loss: Floats, segments_per_ack: ArrayLike, window_segments: ArrayLike) -> AtLoss:
    """Loss, window at the end of a period, and whether it is the largest; of the same shape."""
    free, largest = mean_window(loss, segments_per_ack=segments_per_ack), at_least(1, window_segments=window_segments)
    loss, free, largest = np.broadcast_arrays(loss, free, largest)
    return loss, np.minimum(free, largest), np.asarray(free >= largest)

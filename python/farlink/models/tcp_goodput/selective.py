"""Rate of a long connection that repairs losses within its window: Padhye's periods, timeouts for lost repairs only."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from farlink.arguments import checked_arguments
from farlink.models.parameters import FirstLossRate, FirstTimeout, RoundTripTime, SegmentsPerAck
from farlink.models.ranges import Floats, at_least, floats, within_0_and_1
from farlink.models.tcp_latency import padhye
from farlink.models.tcp_latency.timeout import sequence_mean_s


@checked_arguments
def throughput(
    loss_rate: FirstLossRate,
    *,
    rtt_s: RoundTripTime,
    timeout_s: FirstTimeout,
    segments_per_ack: SegmentsPerAck = 1.0,
    window_segments: ArrayLike = np.inf,
    timeouts_per_lost_repair: ArrayLike = 1.0,
) -> Floats:
    r"""Rate at which the segments of a long connection arrive.

    .. math:: B = \frac{(1 - p)\, E[Y]}{E[A] + q\, p\, E[Z^{TO}]}

    with the segments :math:`E[Y]` and the time :math:`E[A]` of a period between two losses (`padhye.period_segments`,
    `padhye.period_rounds`) and the mean length of a sequence of timeouts :math:`E[Z^{TO}]`.

    Parameters
    ----------
    window_segments
        Largest window, in segments, at least 1.
    timeouts_per_lost_repair
        Timeouts per retransmission that is lost :math:`q`, from 0 to 1: 1 with duplicate acknowledgements, 0 where a lost
        retransmission is found by time (RACK).

    Returns
    -------
    ndarray
        Segments per second, of the broadcast shape; the window over the round trip without loss.

    Notes
    -----
    Ours. Losses are independent, and the window has room for the duplicate acknowledgements that show them: too high by a
    third and more for windows at a loss (`padhye.mean_window`) below ten, by factors below six.

    References
    ----------
    Padhye et al., section II, for the periods.

    Examples
    --------
    >>> throughput([0.0, 1e-3, 1e-2], rtt_s=0.1, timeout_s=1.0, window_segments=70).round(1)
    array([700. , 384.5, 118.2])
    """
    loss, rtt, window = floats(loss_rate), floats(rtt_s), at_least(1, window_segments=window_segments)
    sizes = {"segments_per_ack": segments_per_ack, "window_segments": window_segments}
    some = np.where(loss > 0, loss, 0.5)
    waits = (
        within_0_and_1(timeouts_per_lost_repair=timeouts_per_lost_repair) * loss * sequence_mean_s(loss, timeout_s=timeout_s)
    )
    spent = padhye.period_rounds(some, **sizes) * rtt + waits
    return np.asarray(np.where(loss > 0, (1 - loss) * padhye.period_segments(some, **sizes) / spent, window / rtt))

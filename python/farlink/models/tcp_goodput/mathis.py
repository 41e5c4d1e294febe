"""Rate of a long connection without timeouts: the law of the inverse square root of Mathis, Semke, Mahdavi and Ott."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from farlink.arguments import checked_arguments
from farlink.models.parameters import RoundTripTime, SegmentsPerAck
from farlink.models.ranges import Floats, floats, within_0_and_1


@checked_arguments
def throughput(loss_rate: ArrayLike, *, rtt_s: RoundTripTime, segments_per_ack: SegmentsPerAck = 1.0) -> Floats:
    r"""Rate of a connection whose window swings between a half and the whole of what a loss ends.

    .. math:: B = \frac{1}{RTT} \sqrt{\frac{3}{2 b p}}

    Parameters
    ----------
    loss_rate
        Segment loss probability :math:`p`, in [0, 1]. Any shape.

    Returns
    -------
    ndarray
        Segments per second, of the broadcast shape; infinite without loss.

    Notes
    -----
    No timeouts, so too high from a loss of about 0.01 on; no limit by a link, a window or a queue.

    References
    ----------
    M. Mathis, J. Semke, J. Mahdavi, T. Ott, "The macroscopic behavior of the TCP congestion avoidance algorithm", Computer
    Communication Review 27(3), 1997, eq. (3), with its constant for periodic losses.

    Examples
    --------
    >>> throughput([0.0, 1e-4, 1e-2], rtt_s=0.5).round(2)
    array([   inf, 244.95,  24.49])
    """
    loss, rtt = within_0_and_1(loss_rate=loss_rate), floats(rtt_s)
    with np.errstate(divide="ignore", over="ignore"):
        return np.asarray(np.sqrt(3 / (2 * floats(segments_per_ack) * loss)) / rtt)

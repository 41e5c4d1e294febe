"""Relation (1) of Celandroni, Ferro and Potortì: goodput of a long Reno connection as a share of a link's rate."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from farlink.arguments import checked_arguments
from farlink.models.parameters import SegmentsPerAck
from farlink.models.ranges import Floats, floats, positive, within_0_and_1


@checked_arguments
def relation_1(
    loss_rate: ArrayLike,
    *,
    rtt_s: ArrayLike,
    timeout_s: ArrayLike,
    rate_segments_per_s: ArrayLike,
    segments_per_ack: SegmentsPerAck = 1.0,
) -> Floats:
    r"""Normalised throughput of a connection with timeouts over a link without limit.

    .. math::

        T_g = \sqrt{\frac{3}{2}} \frac{1}{\mu \left( \sqrt{b q}\, T
        + T_o \min \left[ 1, 3 \sqrt{3 b q / 8} \right] q\, (1 + 32 q^2) \right)}

    Parameters
    ----------
    loss_rate
        Segment loss probability :math:`q`, in [0, 1]. Any shape.
    rtt_s
        Round-trip time :math:`T`, in s, positive; all parameters are broadcast against each other.
    timeout_s
        First timeout of a sequence :math:`T_o`, in s, positive.
    rate_segments_per_s
        Rate of the link :math:`\mu`, in segments per second, positive.

    Returns
    -------
    ndarray
        Share of the rate, of the broadcast shape; above 1 where the link would be full, infinite without loss.

    Notes
    -----
    The formula as printed has :math:`T` under the root and lacks the factor 3; its own table I needs both as here, with
    :math:`T` = 0.50634 s. :math:`\sqrt{3/2}` stands before both terms; in Padhye's eq. (33), from which it comes, before the
    first only: relation (1) gives 22 % more where timeouts rule. To be used where it says less than half of the rate
    (`selection`).

    References
    ----------
    Celandroni, eq. (1) and table I.

    Examples
    --------
    Five connections, table I:

    >>> share = relation_1([1e-4, 1e-3, 1e-2, 1e-1], rtt_s=0.50634, timeout_s=2.0, rate_segments_per_s=455.0)
    >>> (5 * share).round(4)
    array([2.6561, 0.8345, 0.2478, 0.0429])
    """
    loss, rtt, first = within_0_and_1(loss_rate=loss_rate), positive(rtt_s=rtt_s), positive(timeout_s=timeout_s)
    per_ack, rate = floats(segments_per_ack), positive(rate_segments_per_s=rate_segments_per_s)
    waits = np.minimum(1, 3 * np.sqrt(3 * per_ack * loss / 8)) * loss * (1 + 32 * loss**2)
    with np.errstate(divide="ignore", over="ignore"):
        return np.asarray(np.sqrt(1.5) / (rate * (np.sqrt(per_ack * loss) * rtt + first * waits)))

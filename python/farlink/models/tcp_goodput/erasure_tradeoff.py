r"""What an erasure code at link level takes from TCP's rate and gives back in loss, after Barakat and Altman.

A TCP packet is cut into :math:`k` units, to which the link adds :math:`m` units of parity; any :math:`k` of the :math:`k + m`
give the packet back. More parity leaves fewer losses, which TCP answers with its window, and less of the link's rate. TCP takes
the lesser of what either allows, so that the best code is where the two meet.

The article itself (C. Barakat, E. Altman, "Bandwidth tradeoff between TCP and link-level FEC", Computer Networks 39(2), 2002)
could not be read: the equations here are derived from its abstract and from what Celandroni says of it, block erasure codes at
link level and independent losses of units, with the law of the inverse square root for TCP. Its numbers are not compared.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from farlink.arguments import checked_arguments
from farlink.models.bounds import packets_arrive
from farlink.models.parameters import Probabilities, RoundTripTime, SegmentsPerAck
from farlink.models.ranges import Floats, positive, whole, within_0_and_1
from farlink.models.tcp_goodput import mathis


@checked_arguments
def packet_loss(unit_loss: ArrayLike, *, data_units: ArrayLike, parity_units: ArrayLike) -> Probabilities:
    r"""Probability that a packet cannot be given back.

    .. math:: P = P(X > m), \quad X \sim B(k + m, p)

    Parameters
    ----------
    unit_loss
        Probability :math:`p` that a unit is lost, in [0, 1]. Any shape.
    data_units
        Units of a packet :math:`k`, whole, at least 1; all parameters are broadcast against each other.
    parity_units
        Units of parity :math:`m`, whole, not negative.

    Examples
    --------
    >>> [float(f"{packet_loss(0.01, data_units=20, parity_units=parity):.2g}") for parity in (0, 1, 2, 4)]
    [0.18, 0.019, 0.0013, 3.6e-06]
    """
    loss = within_0_and_1(unit_loss=unit_loss)
    data, parity = whole(1, data_units=data_units), whole(0, parity_units=parity_units)
    # Those "arrive" that are lost.
    return packets_arrive(data + parity, needed=parity + 1, loss_rate=1 - loss)


@checked_arguments
def throughput(
    unit_loss: ArrayLike,
    *,
    data_units: ArrayLike,
    parity_units: ArrayLike,
    rate_units_per_s: ArrayLike,
    rtt_s: RoundTripTime,
    flows: ArrayLike = 1,
    segments_per_ack: SegmentsPerAck = 1.0,
) -> Floats:
    r"""Rate of all connections over a link with an erasure code.

    .. math:: X = \min \left( \frac{\mu}{k + m}, \frac{N}{RTT} \sqrt{\frac{3}{2 b P}} \right)

    Parameters
    ----------
    unit_loss
        Probability that a unit is lost, in [0, 1]. Any shape.
    data_units, parity_units
        See `packet_loss`; all parameters are broadcast against each other.
    rate_units_per_s
        Rate of the link :math:`\mu`, parity included, in units per second, positive.
    flows
        Connections :math:`N`, at least 1.

    Returns
    -------
    ndarray
        Packets per second, of the broadcast shape.

    Notes
    -----
    A queue that overflows is not in it, nor are timeouts: too high near the corner and at losses above 0.01.

    Examples
    --------
    >>> limits = {"data_units": 20, "rate_units_per_s": 9000, "rtt_s": 0.5}
    >>> throughput(0.01, parity_units=[0, 1, 2, 3, 4], **limits).round(1)
    array([  5.7,  18. ,  67. , 280.9, 375. ])
    """
    data, parity = whole(1, data_units=data_units), whole(0, parity_units=parity_units)
    full = positive(rate_units_per_s=rate_units_per_s) / (data + parity)
    lost = packet_loss(unit_loss, data_units=data, parity_units=parity)
    free = whole(1, flows=flows) * mathis.throughput(lost, rtt_s=rtt_s, segments_per_ack=segments_per_ack)
    return np.asarray(np.minimum(full, free))


@checked_arguments
def best_parity_units(
    unit_loss: ArrayLike,
    *,
    data_units: int,
    rate_units_per_s: float,
    rtt_s: float,
    flows: int = 1,
    segments_per_ack: float = 1.0,
    most_units: int = 255,
) -> NDArray[np.int64]:
    """Parity that gives the highest rate, the least of several that do.

    Parameters
    ----------
    unit_loss
        Probability that a unit is lost, in [0, 1]. Any shape.
    data_units, rate_units_per_s, rtt_s, flows, segments_per_ack
        See `throughput`.
    most_units
        Most units of data and parity together: 255 for the usual codes over bytes.

    Returns
    -------
    ndarray
        Units of parity, of the shape of `unit_loss`.

    Examples
    --------
    >>> limits = {"data_units": 20, "rate_units_per_s": 9000.0, "rtt_s": 0.5}
    >>> best_parity_units([0.0, 1e-4, 1e-2, 0.1], **limits).tolist()
    [0, 1, 4, 11]
    """
    (most,) = whole(int(whole(1, data_units=data_units)), most_units=[most_units])
    parity = np.arange(most - data_units + 1)
    rates = throughput(
        np.asarray(unit_loss, dtype=np.float64)[..., None],
        data_units=data_units,
        parity_units=parity,
        rate_units_per_s=rate_units_per_s,
        rtt_s=rtt_s,
        flows=flows,
        segments_per_ack=segments_per_ack,
    )
    return np.asarray(np.argmax(rates, axis=-1))

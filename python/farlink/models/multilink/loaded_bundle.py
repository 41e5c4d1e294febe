r"""Round trip of TCP over a loaded bundle: the queue of a modem, and how long it takes for a packet.

Under load multilink PPP does not fragment, so that a packet goes over one link, and waits for the packets before it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from farlink.arguments import checked_arguments
from farlink.models.parameters import LinkRate, Seconds
from farlink.models.ranges import at_least, floats, positive, whole


@checked_arguments
def modem_time_s(
    packet_bytes: ArrayLike, *, rate_bps: LinkRate, propagation_s: ArrayLike = 0.0, repeats_s: ArrayLike = 0.0
) -> Seconds:
    r"""Time that a modem needs for a packet.

    .. math:: T_{MP} = \frac{8 L}{R} + T_{prop} + T_{ARQ}

    Parameters
    ----------
    packet_bytes
        Length of a packet :math:`L`, in bytes, positive. Any shape.
    propagation_s
        What the modem waits for the propagation :math:`T_{prop}`, in s, not negative.
    repeats_s
        Mean time for repetitions :math:`T_{ARQ}`, in s, not negative; `go_back_n` has it.

    Notes
    -----
    Ours: the thesis refers to an equation (47) that it does not have, and prints 5 s for the transmission and 6.5 s in all,
    with a propagation of 0.5 s; which leaves 1 s for the repetitions.

    References
    ----------
    Zaghloul, section 4.1.6.

    Examples
    --------
    >>> float(modem_time_s(1500, rate_bps=2400, propagation_s=0.5, repeats_s=1.0))
    6.5
    """
    clocking = 8 * positive(packet_bytes=packet_bytes) / floats(rate_bps)
    return np.asarray(clocking + at_least(0, propagation_s=propagation_s) + at_least(0, repeats_s=repeats_s))


@checked_arguments
def rtt_mean_s(queue_packets: ArrayLike, *, modem_time_s: ArrayLike) -> Seconds:
    r"""Mean round trip of a packet that finds the queue full.

    .. math:: RTT = Q_P T_{MP}

    Parameters
    ----------
    queue_packets
        Packets of the queue :math:`Q_P`, with the one that is sent, whole, at least 1. Any shape.
    modem_time_s
        Mean time of the modem for a packet :math:`T_{MP}`, in s, positive; broadcast against `queue_packets`.

    Notes
    -----
    The number of links does not count: each has a queue of its own. The way back, of short acknowledgements, is neglected.

    References
    ----------
    Zaghloul, section 4.1.6; 19.5 s there, and 20 s measured.

    Examples
    --------
    >>> float(rtt_mean_s(3, modem_time_s=6.5))
    19.5
    """
    return np.asarray(whole(1, queue_packets=queue_packets) * positive(modem_time_s=modem_time_s))


@checked_arguments
def rtt_deviation_s(queue_packets: ArrayLike, *, modem_deviation_s: ArrayLike) -> Seconds:
    r"""Standard deviation of the round trip of a packet that finds the queue full.

    .. math:: \sigma_{RTT} = \sqrt{Q_P}\, \sigma_{MP}

    Parameters
    ----------
    queue_packets
        Packets of the queue :math:`Q_P`, with the one that is sent, whole, at least 1. Any shape.
    modem_deviation_s
        Standard deviation of the modem's time for a packet :math:`\sigma_{MP}`, in s, not negative; broadcast against
        `queue_packets`.

    Notes
    -----
    Ours, for repetitions that are independent from packet to packet; fades longer than a packet make it greater, up to
    :math:`Q_P\, \sigma_{MP}`.

    Examples
    --------
    The 8.7 s of Zaghloul's figure 4.6 mean 5 s for each of three packets:

    >>> round(float(rtt_deviation_s(3, modem_deviation_s=5.0)), 2)
    8.66
    """
    return np.asarray(np.sqrt(whole(1, queue_packets=queue_packets)) * at_least(0, modem_deviation_s=modem_deviation_s))

"""Least retransmission timeout of a connection, by the round trip of its path."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from farlink.arguments import checked_arguments
from farlink.models.ranges import Floats, positive

_LEAST_S, _ROUND_TRIPS = 1.0, 4.0


@checked_arguments
def timeout_s(rtt_s: ArrayLike) -> Floats:
    r"""First timeout of a sequence, by the rule that relation (1) takes.

    .. math:: T_o = \max(1\,\mathrm{s}, 4 RTT)

    Parameters
    ----------
    rtt_s
        Least round-trip time that the connection sees, in s, positive. Any shape.

    Returns
    -------
    ndarray
        Time in s, of the shape of `rtt_s`.

    Notes
    -----
    Today's timers (RFC 6298) settle lower where the round trip is steady, near 1 s over a satellite. In relation (1), 1 s
    instead of 2 s is worth a third of the goodput at a loss of 0.1, and 4 % at 0.01.

    References
    ----------
    Celandroni, section III, after S. Shenker, L. Zhang, "Some observations on the dynamics of a congestion control algorithm",
    Computer Communication Review 20(5), 1990.

    Examples
    --------
    >>> timeout_s([0.1, 0.5]).tolist()
    [1.0, 2.0]
    """
    return np.asarray(np.maximum(_LEAST_S, _ROUND_TRIPS * positive(rtt_s=rtt_s)))

r"""Connection set-up: the three-way handshake over a path that loses SYN and SYN-ACK.

The sender of a SYN repeats it after :math:`T_s`, :math:`2 T_s`, :math:`4 T_s` ...; so does the answering side with its SYN-ACK.
"""

from __future__ import annotations

from typing import Annotated

import numpy as np
from numpy.typing import ArrayLike

from farlink.arguments import checked_arguments
from farlink.errors import ArgumentError
from farlink.meanings import Meaning
from farlink.models.parameters import Probabilities, Seconds
from farlink.models.ranges import (
    POSITIVE,
    Floats,
    at_least,
    floats,
    from_0_to_below_1,
    whole_from,
    whole_numbers,
)

LostSyns = Annotated[ArrayLike, Meaning("SYN lost, :math:`i`", whole_from(0))]
LostAnswers = Annotated[ArrayLike, Meaning("SYN-ACK lost, :math:`j`", whole_from(0))]
SynTimeout = Annotated[ArrayLike, Meaning("Time until the first SYN is repeated, :math:`T_s`, in s", POSITIVE)]


@checked_arguments
def handshake_probability(
    failures: LostSyns, *, return_failures: LostAnswers, loss_rate: ArrayLike, return_loss_rate: ArrayLike
) -> Probabilities:
    r"""Probability that so many SYN, then so many SYN-ACK, are lost before one gets through.

    .. math:: P_h(i, j) = p_r^i (1 - p_r)\, p_f^j (1 - p_f)

    Parameters
    ----------
    loss_rate
        Probability that a SYN is lost, :math:`p_r`, in [0, 1).
    return_loss_rate
        Probability that a SYN-ACK is lost, :math:`p_f`, in [0, 1).

    References
    ----------
    Cardwell et al., before eq. (4); Zaghloul, section 4.2.1.

    Examples
    --------
    >>> round(float(handshake_probability(1, return_failures=0, loss_rate=0.1, return_loss_rate=0.2)), 4)
    0.072
    """
    forward, back = from_0_to_below_1(loss_rate=loss_rate), from_0_to_below_1(return_loss_rate=return_loss_rate)
    lost, return_lost = whole_numbers(failures), whole_numbers(return_failures)
    return np.asarray(forward**lost * (1 - forward) * back**return_lost * (1 - back))


@checked_arguments
def handshake_s(failures: LostSyns, *, return_failures: LostAnswers, rtt_s: ArrayLike, timeout_s: SynTimeout) -> Seconds:
    r"""Time of a handshake in which so many SYN and SYN-ACK are lost.

    .. math:: L_h(i, j) = RTT + (2^i + 2^j - 2)\, T_s

    Parameters
    ----------
    rtt_s
        Round-trip time, in s, not negative.

    Notes
    -----
    Without a limit of the timer and of the attempts.

    References
    ----------
    Cardwell et al., before eq. (4); Zaghloul, section 4.2.1.

    Examples
    --------
    >>> float(handshake_s(2, return_failures=1, rtt_s=0.5, timeout_s=3.0))
    12.5
    """
    lost, return_lost = whole_numbers(failures), whole_numbers(return_failures)
    waits = 2.0**lost + 2.0**return_lost - 2
    return np.asarray(at_least(0, rtt_s=rtt_s) + waits * floats(timeout_s))


@checked_arguments
def setup_time_s(
    loss_rate: ArrayLike, *, rtt_s: ArrayLike, timeout_s: SynTimeout, return_loss_rate: ArrayLike | None = None
) -> Seconds:
    r"""Mean time of the handshake.

    .. math:: E[L_h] = RTT + T_s \left( \frac{1 - p_r}{1 - 2 p_r} + \frac{1 - p_f}{1 - 2 p_f} - 2 \right)

    Parameters
    ----------
    loss_rate
        Probability that a SYN is lost, :math:`p_r`, in [0, 1/2). Any shape.
    rtt_s
        Round-trip time, in s, not negative; all parameters are broadcast against each other.
    return_loss_rate
        Probability that a SYN-ACK is lost, :math:`p_f`, in [0, 1/2); that of a SYN if none.

    Raises
    ------
    ValueError
        If a value lies outside its range; from a loss of 1/2 on the waits double as fast as they become rare, and their mean
        is infinite.

    Notes
    -----
    Counts attempts without end. Systems give up after four to six, so that the mean over connections that come about is less:
    by 0.01 % of :math:`T_s` at a loss of 0.1 and six attempts.

    References
    ----------
    Cardwell et al., eq. (4); Zaghloul, section 4.2.1.

    Examples
    --------
    >>> setup_time_s([0.0, 0.1, 0.4], rtt_s=0.5, timeout_s=3.0)
    array([ 0.5 ,  1.25, 12.5 ])
    """
    forward = _below_half(loss_rate=loss_rate)
    back = forward if return_loss_rate is None else _below_half(return_loss_rate=return_loss_rate)
    waits = (1 - forward) / (1 - 2 * forward) + (1 - back) / (1 - 2 * back) - 2
    return np.asarray(at_least(0, rtt_s=rtt_s) + waits * floats(timeout_s))


def _below_half(**named: ArrayLike) -> Floats:
    ((name, value),) = named.items()
    array = from_0_to_below_1(**named)
    if not np.all(array < 0.5):
        raise ArgumentError(
            f"{name} must be below 1/2, not {value!r}: the mean of the doubling waits is infinite from there on",
            f"give {name} below 1/2",
        )
    return array

r"""Time of transfers, or parts of transfers, in which nothing is lost."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from farlink.arguments import checked_arguments
from farlink.models.parameters import RoundTripTime, Seconds, WholeLargestWindow, WholeSegmentsPerAck
from farlink.models.ranges import Floats, floats, whole, whole_numbers
from farlink.models.tcp_latency.sikdar.packet_sums import (
    PacketSum,
    rounds_for_segments,
    rounds_to_window,
    segments_in_rounds,
)


@checked_arguments
def lossless_rounds(segments: ArrayLike, *, window_segments: WholeLargestWindow, packet_sum: PacketSum = "whole") -> Floats:
    r"""Rounds of a transfer that loses nothing.

    .. math::

        \frac{t_{nl}(N)}{RTT} = \begin{cases} pkt^{-1}(N) & N \le N_{exp} \\
        n_{wm} + \left\lceil \frac{N - N_{exp}}{W_{max}} \right\rceil & N > N_{exp} \end{cases}, \qquad
        N_{exp} = pkt(n_{wm}) + W_{max}

    Parameters
    ----------
    segments
        Segments of the transfer :math:`N`, whole, not negative. Any shape.
    packet_sum
        ``"printed"`` is the equation with eq. (17); ``"whole"`` and ``"closed"`` take the windows up to the limit from eq.
        (16) and count the rounds: :math:`pkt^{-1}(N)` while :math:`w(n) < W_{max}`, and :math:`W_{max}` segments a round from
        then on.

    Returns
    -------
    ndarray
        Whole rounds, of the broadcast shape.

    Notes
    -----
    As printed, the round with the :math:`W_{max}` segments in :math:`N_{exp}` is missing from the second case: most transfers
    longer than :math:`N_{exp}` come out a round short.

    References
    ----------
    Sikdar et al.; Zaghloul, eqs. (19) to (21).

    Examples
    --------
    >>> lossless_rounds([1, 10, 100, 1000], window_segments=40)
    array([ 1.,  4., 10., 32.])
    >>> lossless_rounds([1, 10, 100, 1000], window_segments=40, packet_sum="printed")
    array([ 1.,  4., 10., 31.])
    """
    number, limit = whole(0, segments=segments), whole_numbers(window_segments)
    reached = rounds_to_window(limit)
    if packet_sum == "printed":
        exponential = segments_in_rounds(reached, packet_sum=packet_sum) + limit
        after = reached + np.ceil((number - exponential) / limit - 1e-9)
        return np.asarray(np.where(number <= exponential, rounds_for_segments(number, packet_sum=packet_sum), after))
    before = segments_in_rounds(reached - 1, packet_sum=packet_sum)
    after = reached - 1 + np.ceil((number - before) / limit - 1e-9)
    return np.asarray(np.where(number <= before, rounds_for_segments(number, packet_sum=packet_sum), after))


@checked_arguments
def linear_rounds(
    segments: ArrayLike,
    *,
    first_window_segments: ArrayLike,
    window_segments: WholeLargestWindow,
    segments_per_ack: WholeSegmentsPerAck = 2,
) -> Floats:
    r"""Rounds of congestion avoidance that so many segments take, :math:`t_{lin}(a, n)`.

    The window grows by a segment every :math:`b` rounds from :math:`n` up to :math:`W_{max}`.

    Parameters
    ----------
    segments
        Segments :math:`a`, whole, not negative. Any shape.
    first_window_segments
        Window of the first round :math:`n`, whole, in segments, at least 1; all parameters are broadcast against each other.

    Returns
    -------
    ndarray
        Whole rounds, of the broadcast shape.

    Notes
    -----
    Ours: the thesis names the function of Sikdar et al. and does not print it. Of :math:`m` steps of the window all rounds are
    full if :math:`b (m n + m (m - 1) / 2) \le a`; the greatest such :math:`m` follows from the root, what is left is
    divided by the window.

    References
    ----------
    Zaghloul, eq. (22).

    Examples
    --------
    >>> linear_rounds([0, 1, 8, 9, 100], first_window_segments=4, window_segments=40)
    array([ 0.,  1.,  2.,  3., 15.])
    """
    number, first = whole(0, segments=segments), whole(1, first_window_segments=first_window_segments)
    limit, per_ack = whole_numbers(window_segments), whole_numbers(segments_per_ack)
    first = np.minimum(first, limit)
    # Greatest m with b (m n + m (m - 1) / 2) <= a, and no more steps than lead to the limit.
    lead = first - 0.5
    steps = np.floor(np.sqrt(lead**2 + 2 * number / per_ack) - lead + 1e-9)
    steps = np.minimum(steps, limit - first)
    left = number - per_ack * (steps * first + steps * (steps - 1) / 2)
    return np.asarray(per_ack * steps + np.ceil(left / (first + steps) - 1e-9))


@checked_arguments
def lossless_s(
    segments: ArrayLike, *, rtt_s: RoundTripTime, window_segments: WholeLargestWindow, packet_sum: PacketSum = "whole"
) -> Seconds:
    r"""Time of a transfer that loses nothing, without set-up and the first delayed acknowledgement.

    Parameters
    ----------
    segments
        Segments of the transfer, whole, not negative. Any shape.
    packet_sum
        How the segments of slow start are counted; see `lossless_rounds`.

    References
    ----------
    Sikdar et al.; Zaghloul, eq. (21).

    Examples
    --------
    >>> lossless_s([1, 100], rtt_s=0.5, window_segments=40)
    array([0.5, 5. ])
    """
    return floats(rtt_s) * lossless_rounds(segments, window_segments=window_segments, packet_sum=packet_sum)

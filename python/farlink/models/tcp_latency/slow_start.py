r"""Slow start: how the window grows when acknowledgements are delayed.

Two laws. Allman and Paxson let the window grow by :math:`1/b` of itself in every round, to 1.5 times with :math:`b = 2`. Sikdar
et al. count in what the timer of delayed acknowledgements does: to :math:`\sqrt 2` times (`sikdar.window_in_round`).

References
----------
M. Allman, V. Paxson, "On estimating end-to-end network path properties", SIGCOMM 1999.
N. Cardwell, S. Savage, T. Anderson, "Modeling TCP latency", INFOCOM 2000.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from farlink.arguments import checked_arguments
from farlink.models.parameters import InitialWindow, SegmentsPerAck
from farlink.models.ranges import Floats, at_least, floats

# Mean time by which the acknowledgement of a lone first segment is delayed, in s: timers uniform to 200 ms (BSD), from 100 to
# 200 ms (Windows NT and 95); Cardwell et al., and Zaghloul, section 4.2.1. In a scenario: delayed_ack_timeout_s = [0, 0.2]
# and [0.1, 0.2].
DELAYED_ACK_S = {"bsd": 0.1, "windows": 0.15}


@checked_arguments
def growth(segments_per_ack: SegmentsPerAck = 2.0) -> Floats:
    r"""Factor by which the window grows in a round.

    .. math:: \gamma = 1 + \frac{1}{b}

    Returns
    -------
    ndarray
        Factor, of the shape of `segments_per_ack`.

    References
    ----------
    Allman and Paxson; Zaghloul, eq. (15).

    Examples
    --------
    >>> growth([1, 2])
    array([2. , 1.5])
    """
    return np.asarray(1 + 1 / floats(segments_per_ack))


@checked_arguments
def window_in_round(
    rounds: ArrayLike, *, segments_per_ack: SegmentsPerAck = 2.0, initial_window_segments: InitialWindow = 1.0
) -> Floats:
    r"""Window in a round of slow start.

    .. math:: w_n = w_1 \gamma^{n - 1}

    Parameters
    ----------
    rounds
        Number of the round :math:`n`, from 1. Any shape.

    Returns
    -------
    ndarray
        Window in segments, not rounded, of the broadcast shape.

    References
    ----------
    Allman and Paxson; Zaghloul, eq. (15) and figure 4.7.

    Examples
    --------
    >>> window_in_round([1, 2, 3, 10]).round(2)
    array([ 1.  ,  1.5 ,  2.25, 38.44])
    """
    number = at_least(1, rounds=rounds)
    first = floats(initial_window_segments)
    return np.asarray(first * growth(segments_per_ack) ** (number - 1))


@checked_arguments
def segments_in_rounds(
    rounds: ArrayLike, *, segments_per_ack: SegmentsPerAck = 2.0, initial_window_segments: InitialWindow = 1.0
) -> Floats:
    r"""Segments sent in the first rounds of slow start.

    .. math:: \sum_{i=1}^{n} w_1 \gamma^{i - 1} = w_1 \frac{\gamma^n - 1}{\gamma - 1}

    Parameters
    ----------
    rounds
        Rounds :math:`n`, not negative. Any shape.

    Returns
    -------
    ndarray
        Segments, not rounded, of the broadcast shape.

    References
    ----------
    Cardwell et al., on the way to eq. (11).

    Examples
    --------
    >>> segments_in_rounds([0, 1, 2, 10]).round(2)
    array([  0.  ,   1.  ,   2.5 , 113.33])
    """
    number, factor = at_least(0, rounds=rounds), growth(segments_per_ack)
    return np.asarray(floats(initial_window_segments) * (factor**number - 1) / (factor - 1))


@checked_arguments
def rounds_for_segments(
    segments: ArrayLike, *, segments_per_ack: SegmentsPerAck = 2.0, initial_window_segments: InitialWindow = 1.0
) -> Floats:
    r"""Rounds of slow start that so many segments take, without a limit of the window.

    .. math:: n = \log_\gamma \left( \frac{d (\gamma - 1)}{w_1} + 1 \right)

    Parameters
    ----------
    segments
        Segments :math:`d`, not negative. Any shape.

    Returns
    -------
    ndarray
        Rounds, not rounded, of the broadcast shape.

    References
    ----------
    Cardwell et al., eq. (15), second case.

    Examples
    --------
    >>> rounds_for_segments([1, 10, 100]).round(2)
    array([1.  , 4.42, 9.7 ])
    """
    number, factor = at_least(0, segments=segments), growth(segments_per_ack)
    first = floats(initial_window_segments)
    return np.asarray(np.log1p(number * (factor - 1) / first) / np.log(factor))


@checked_arguments
def window_after_segments(
    segments: ArrayLike, *, segments_per_ack: SegmentsPerAck = 2.0, initial_window_segments: InitialWindow = 1.0
) -> Floats:
    r"""Window in which the last of so many segments of slow start is sent.

    .. math:: W_{ss}(d) = \frac{d (\gamma - 1)}{\gamma} + \frac{w_1}{\gamma}

    Parameters
    ----------
    segments
        Segments :math:`d`, not negative. Any shape.

    Returns
    -------
    ndarray
        Window in segments, not rounded, of the broadcast shape.

    References
    ----------
    Cardwell et al., eq. (11).

    Examples
    --------
    >>> window_after_segments([1, 10, 100]).round(2)
    array([ 1.,  4., 34.])
    """
    number, factor = at_least(0, segments=segments), growth(segments_per_ack)
    first = floats(initial_window_segments)
    return np.asarray((number * (factor - 1) + first) / factor)

r"""Slow start with the timer of delayed acknowledgements: windows, segments and rounds.

The window of a round is a mean over connections in which the timer runs out and in which it does not. Three counts of segments:

- `"whole"`: windows of whole segments, added up
- `"closed"`: the sum of eq. (16) in closed form, :math:`(2 + 3 / \sqrt 2) (2^{k/2} - 1)`
- `"printed"`: eq. (17), which is not that sum
"""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from farlink.arguments import checked_arguments, refused
from farlink.models.ranges import Floats, at_least, whole

PacketSum = Literal["whole", "closed", "printed"]

# Offset and factor of eq. (17), and those of the sum of eq. (16).
_PRINTED_OFFSET = 2 + 1.5 * math.sqrt(2)
_PRINTED_FACTOR = math.sqrt(2) + 3 * 2 ** (-3 / 8)
_FACTOR = 2 + 3 / math.sqrt(2)
# Rounds for which whole windows are added up: the last has 2^59 segments.
_MOST_ROUNDS = 120


@checked_arguments
def window_in_round(rounds: ArrayLike, *, is_whole: bool = False) -> Floats:
    r"""Window in a round of slow start.

    .. math:: w(n) = 2^{(n - 1) / 2} + 2^{(n - 2) / 2}

    Parameters
    ----------
    rounds
        Number of the round :math:`n`, from 1. Any shape.
    is_whole
        Round down to whole segments.

    Returns
    -------
    ndarray
        Window in segments, of the shape of `rounds`.

    Notes
    -----
    For two segments per acknowledgement and a first window of one.

    References
    ----------
    Sikdar et al.; Zaghloul, eq. (16) and figure 4.7.

    Examples
    --------
    >>> window_in_round([1, 2, 3, 10]).round(2)
    array([ 1.71,  2.41,  3.41, 38.63])
    >>> window_in_round(range(1, 11), is_whole=True)
    array([ 1.,  2.,  3.,  4.,  6.,  9., 13., 19., 27., 38.])
    """
    window = (1 + math.sqrt(2)) * 2 ** ((at_least(1, rounds=rounds) - 2) / 2)
    return np.asarray(np.floor(window) if is_whole else window)


@checked_arguments
def segments_in_rounds(rounds: ArrayLike, *, packet_sum: PacketSum = "whole") -> Floats:
    r"""Segments sent in the first rounds of slow start.

    .. math::

        \sum_{n=1}^k w(n) = \left( 2 + \frac{3}{\sqrt 2} \right) \left( 2^{k/2} - 1 \right), \qquad
        pkt(k) = 2^{(k + 1) / 2} + 3 \cdot 2^{(4 k - 3) / 8} - 2 - \frac{3 \sqrt 2}{2}

    Parameters
    ----------
    rounds
        Rounds :math:`k`, whole, not negative. Any shape.
    packet_sum
        ``"whole"`` adds whole windows, ``"closed"`` is the left equation, ``"printed"`` the right.

    Returns
    -------
    ndarray
        Segments, of the shape of `rounds`.

    References
    ----------
    Sikdar et al.; Zaghloul, eq. (17).

    Examples
    --------
    >>> [round(float(segments_in_rounds(10, packet_sum=kind)), 1) for kind in ("printed", "closed", "whole")]
    [115.2, 127.8, 122.0]
    """
    number = whole(0, rounds=rounds)
    if packet_sum == "whole":
        if np.any(number > _MOST_ROUNDS):
            raise refused("rounds", f"be at most {_MOST_ROUNDS} for whole windows", rounds)
        return np.asarray(_SUMS[number])
    if packet_sum == "closed":
        return np.asarray(_FACTOR * (2 ** (number / 2) - 1))
    return np.asarray(_PRINTED_FACTOR * 2 ** (number / 2) - _PRINTED_OFFSET)


@checked_arguments
def rounds_for_segments(segments: ArrayLike, *, packet_sum: PacketSum = "whole") -> Floats:
    r"""Rounds of slow start that so many segments take, without a limit of the window.

    .. math::

        \left\lceil 2 \log_2 \left( 1 + \frac{N}{2 + 3 / \sqrt 2} \right) \right\rceil, \qquad
        \left\lceil 2 \log_2 \frac{2 N + 4 + 3 \sqrt 2}{2 \sqrt 2 + 3 \cdot 2^{5/8}} \right\rceil

    Parameters
    ----------
    segments
        Segments :math:`N`, not negative. Any shape.
    packet_sum
        ``"whole"`` counts whole windows, ``"closed"`` is the left equation, ``"printed"`` the right.

    Returns
    -------
    ndarray
        Whole rounds, of the shape of `segments`.

    References
    ----------
    Sikdar et al.; Zaghloul, eq. (21), first case.

    Examples
    --------
    >>> rounds_for_segments([1, 122, 123])
    array([ 1., 10., 11.])
    >>> rounds_for_segments([1, 122, 123], packet_sum="printed")
    array([ 1., 11., 11.])
    """
    number = at_least(0, segments=segments)
    if packet_sum == "whole":
        return np.asarray(np.searchsorted(_SUMS, number, side="left").astype(np.float64))
    if packet_sum == "closed":
        rounds = 2 * np.log2(1 + number / _FACTOR)
    else:
        rounds = np.maximum(0, 2 * np.log2((number + _PRINTED_OFFSET) / _PRINTED_FACTOR))
    # Rounding must not push a whole number over the next.
    return np.asarray(np.where(number > 0, np.ceil(rounds - 1e-9), 0.0))


@checked_arguments
def rounds_to_window(window_segments: ArrayLike) -> Floats:
    r"""First round whose window reaches a limit.

    .. math:: n_{wm} = \left\lceil 2 \log_2 \frac{2 W_{max}}{1 + \sqrt 2} \right\rceil

    Parameters
    ----------
    window_segments
        Limit :math:`W_{max}`, in segments, at least 1. Any shape.

    Returns
    -------
    ndarray
        Number of the round, at least 1, of the shape of `window_segments`.

    References
    ----------
    Sikdar et al.; Zaghloul, eq. (19).

    Examples
    --------
    >>> rounds_to_window([1, 4, 38.6, 64])
    array([ 1.,  4., 10., 12.])
    """
    limit = at_least(1, window_segments=window_segments)
    return np.asarray(np.maximum(1.0, np.ceil(2 * np.log2(2 * limit / (1 + math.sqrt(2))) - 1e-9)))


_SUMS = np.concatenate([[0.0], np.cumsum(window_in_round(np.arange(1, _MOST_ROUNDS + 1), is_whole=True))])

r"""Retransmission timeouts: how long a sequence of them lasts with the timer's back-off, and what the timer is set to.

A sequence begins with a timeout and ends with the first retransmission that arrives; each is lost with probability :math:`p`.
The timer doubles with every loss, six times at most (Padhye et al., section II).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from farlink.arguments import checked_arguments
from farlink.errors import ArgumentError
from farlink.models.parameters import RepeatLossRate, Seconds
from farlink.models.ranges import Floats, at_least, floats, positive, whole

# Doublings of the timer after which it stays: 64 times its first value.
DOUBLINGS = 6


@checked_arguments
def timeouts_in_sequence(loss_rate: RepeatLossRate) -> Floats:
    r"""Mean number of timeouts in a sequence, which is the mean number of retransmissions.

    .. math:: E[R] = \sum_{k=1}^\infty k\, p^{k-1} (1 - p) = \frac{1}{1 - p}

    Returns
    -------
    ndarray
        Number of timeouts, of the shape of `loss_rate`.

    References
    ----------
    Padhye et al., section II; Zaghloul, eq. (34).

    Examples
    --------
    >>> float(timeouts_in_sequence(0.2))
    1.25
    """
    return np.asarray(1 / (1 - floats(loss_rate)))


@checked_arguments
def sequence_s(timeouts: ArrayLike, *, timeout_s: ArrayLike, doublings: int = DOUBLINGS) -> Seconds:
    r"""Length of a sequence of so many timeouts.

    .. math::

        L_k = \begin{cases} (2^k - 1)\, T_0 & k \le m \\ (2^m - 1 + 2^m (k - m))\, T_0 & k > m \end{cases}

    Parameters
    ----------
    timeouts
        Timeouts :math:`k`, whole, not negative. Any shape.
    timeout_s
        The timer's first value :math:`T_0`, in s, positive; broadcast against `timeouts`.
    doublings
        Doublings :math:`m` of the timer, after which it stays.

    Notes
    -----
    The bracket of Zaghloul's second case is misplaced: 63 is to be multiplied by :math:`T_0`, too.

    References
    ----------
    Padhye et al., section II; Zaghloul, section 4.2.1.

    Examples
    --------
    >>> sequence_s([1, 2, 6, 7, 8], timeout_s=1.0)
    array([  1.,   3.,  63., 127., 191.])
    """
    count, first = whole(0, timeouts=timeouts), positive(timeout_s=timeout_s)
    (most,) = whole(0, doublings=[doublings])
    doubled = 2.0 ** np.minimum(count, most) - 1
    return np.asarray((doubled + 2.0**most * np.maximum(count - most, 0)) * first)


@checked_arguments
def backoff_factor(loss_rate: RepeatLossRate, *, doublings: int = DOUBLINGS) -> Floats:
    r"""What back-off makes of a timeout, but for the mean number of timeouts.

    .. math:: f(p) = 1 + \sum_{i=1}^{m} 2^{i-1} p^i = 1 + p + 2 p^2 + 4 p^3 + 8 p^4 + 16 p^5 + 32 p^6 \quad (m = 6)

    Parameters
    ----------
    doublings
        Doublings :math:`m` of the timer, after which it stays.

    Returns
    -------
    ndarray
        Factor, at least 1, of the shape of `loss_rate`.

    References
    ----------
    Padhye et al., section II, for :math:`m = 6`; Cardwell et al., eq. (19).

    Examples
    --------
    >>> backoff_factor([0.0, 0.1, 0.5]).round(4)
    array([1.   , 1.125, 4.   ])
    """
    loss = floats(loss_rate)
    (most,) = whole(0, doublings=[doublings])
    powers = np.arange(1, most + 1)
    return np.asarray(1 + np.sum(2.0 ** (powers - 1) * loss[..., None] ** powers, axis=-1))


@checked_arguments
def sequence_mean_s(loss_rate: RepeatLossRate, *, timeout_s: ArrayLike, doublings: int = DOUBLINGS) -> Seconds:
    r"""Mean length of a sequence of timeouts.

    .. math:: E[Z^{TO}] = \sum_{k=1}^\infty L_k\, p^{k-1} (1 - p) = T_0 \frac{f(p)}{1 - p}

    Parameters
    ----------
    timeout_s
        The timer's first value :math:`T_0`, in s, positive; broadcast against `loss_rate`.
    doublings
        Doublings of the timer, after which it stays.

    Notes
    -----
    The sequence never gives up, which TCP does: some twelve timeouts on most systems.

    References
    ----------
    Padhye et al., section II; Cardwell et al., eq. (18); Zaghloul, eq. (31).

    Examples
    --------
    >>> round(float(sequence_mean_s(5e-4, timeout_s=60)), 2)
    60.06
    """
    factor = backoff_factor(loss_rate, doublings=doublings)
    return np.asarray(positive(timeout_s=timeout_s) * factor * timeouts_in_sequence(loss_rate))


@checked_arguments
def retransmission_timeout_s(rtt_mean_s: ArrayLike, *, deviation_s: ArrayLike, deviations: ArrayLike = 4.0) -> Seconds:
    r"""What TCP's timer settles at over a steady round trip.

    .. math:: T_0 = E[RTT] + 4 D

    Parameters
    ----------
    rtt_mean_s
        Mean round-trip time, in s, positive. Any shape.
    deviation_s
        Its deviation :math:`D`, in s, not negative; all parameters are broadcast against each other. TCP smooths the mean
        deviation; the standard deviation is the greater of the two.
    deviations
        How many deviations are added, not negative.

    Notes
    -----
    Without the timer's lower and upper limits and its granularity, and without the noise of the smoothed values.

    References
    ----------
    V. Jacobson, "Congestion avoidance and control", SIGCOMM 1988, appendix A; Zaghloul, section 4.1.5.

    Examples
    --------
    The round trips of Zaghloul's figure 4.6, which bring the timer near the 60 s of his table 6.1:

    >>> round(float(retransmission_timeout_s(21.0, deviation_s=8.7)), 1)
    55.8
    """
    extra = at_least(0, deviations=deviations) * at_least(0, deviation_s=deviation_s)
    return np.asarray(positive(rtt_mean_s=rtt_mean_s) + extra)


@checked_arguments
def timers_s(samples_s: ArrayLike, *, gain: float = 1 / 8, deviation_gain: float = 1 / 4, deviations: float = 4.0) -> Floats:
    r"""TCP's timer after each of a series of round trips, by mean and deviation.

    .. math::

        D \leftarrow D + \delta_D (|R - S| - D), \qquad S \leftarrow S + \delta (R - S), \qquad T_0 = S + 4 D

    Parameters
    ----------
    samples_s
        Round trips :math:`R` in the order in which they are measured, in s, positive; one dimension.
    gain
        Weight of a sample in the mean :math:`\delta`, in (0, 1].
    deviation_gain
        Weight of a sample in the deviation :math:`\delta_D`, in (0, 1].
    deviations
        How many deviations are added, not negative.

    Returns
    -------
    ndarray
        Timer in s after each sample.

    Notes
    -----
    The first sample is the mean, half of it the deviation. Without the timer's limits and its granularity. The timer of RFC 793
    is twice the result with `deviations` of 0.

    References
    ----------
    V. Jacobson (1988), appendix A; RFC 6298, section 2; Zaghloul, section 4.1.5, where both gains are the same.

    Examples
    --------
    >>> timers_s([20.0, 20.0, 30.0, 20.0]).round(2)
    array([60.  , 50.  , 53.75, 46.72])
    """
    samples = np.atleast_1d(positive(samples_s=samples_s))
    at_least(0, deviations=deviations)
    if not (0 < gain <= 1 and 0 < deviation_gain <= 1):
        raise ArgumentError(
            f"gain and deviation_gain must be above 0 and at most 1, not {gain} and {deviation_gain}",
            "give both gains above 0 and at most 1, for example 1/8 and 1/4",
        )
    if samples.ndim > 1 or samples.size == 0:
        raise ArgumentError(
            f"samples_s must be a series of at least one round trip, not of shape {samples.shape}",
            "give the round trips one after the other",
        )
    mean, deviation = float(samples[0]), float(samples[0]) / 2
    timers = [mean + deviations * deviation]
    for sample in samples[1:]:
        deviation += deviation_gain * (abs(sample - mean) - deviation)
        mean += gain * (sample - mean)
        timers.append(mean + deviations * deviation)
    return np.asarray(timers)

r"""Go-back-N ARQ below TCP: round trips, what the ARQ gives up, and when it keeps TCP waiting too long.

A segment goes over the link as :math:`n` frames. A bad frame costs a window of :math:`N` frames: itself and those that the
receiver throws away until the frame comes again. A frame is given up after so many attempts, or never. Whether a frame is bad
depends on the frame before it (`fading`): the first attempt on the good frame before it, with :math:`a = P(bad | good)`; a
repetition on the failure a window ago, with :math:`c = P(bad | bad, N)`. Every frame that arrives leaves a good state behind,
so that the failures :math:`F` of the frames of a segment are independent:

.. math:: P(F = 0) = 1 - a, \qquad P(F = k) = a\, c^{k - 1} (1 - c)

The chain of this argument is ours: Zaghloul (sections 4.1.6 and 6.4.2) describes the mechanism and prints no equation, his
eq. (47) is missing, and the analysis to which he refers (A. F. Canton, T. Chahed, GLOBECOM 2001) is not at hand.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from farlink.arguments import checked_arguments
from farlink.errors import ArgumentError
from farlink.models.multilink.fading import FrameErrors, bad_again, checked
from farlink.models.ranges import Floats, at_least, positive, whole

# Failures of a segment up to which their distribution is computed.
_MOST_FAILURES = 5000


@dataclass(frozen=True)
class GoBackN:
    """Go-back-N over a link, one element for each combination of the parameters.

    Attributes
    ----------
    frames
        Frames of a segment :math:`n`, whole, at least 1.
    window_frames
        Frames that a failure costs :math:`N`, whole, at least 1: those that fit in a round trip of the link, and the bad one.
    frame_s
        Time of a frame, in s, positive.
    errors
        Probability that a frame is bad, by the frame before: `fading.rayleigh_frames`, or the same value twice for independent
        errors.
    base_s
        Round trip without repetitions, but for the segment's own frames, in s, not negative: propagation, processing, and the
        acknowledgement's way.
    attempts
        Attempts after which a frame is given up, whole, at least 1; never if none.

    Raises
    ------
    ValueError
        If a value lies outside its range, or no repetition ever arrives.
    """

    frames: ArrayLike
    window_frames: ArrayLike
    frame_s: ArrayLike
    errors: FrameErrors
    base_s: ArrayLike = 0.0
    attempts: int | None = None

    def __post_init__(self) -> None:
        whole(1, frames=self.frames)
        at_least(0, base_s=self.base_s)
        positive(frame_s=self.frame_s)
        if self.attempts is not None:
            whole(1, attempts=self.attempts)
        if np.any(self.failure_rates()[1] >= 1):
            raise ArgumentError(
                "errors.after_bad must be below 1: no repetition would ever arrive", "give errors whose after_bad is below 1"
            )

    def failure_rates(self) -> tuple[Floats, Floats]:
        """Probability that a first attempt fails, and that a repetition does."""
        again = bad_again(self.errors, frames=self.window_frames)
        first, again = np.broadcast_arrays(checked(self.errors).after_good, again)
        return first, again


@checked_arguments
def failures_mean(arq: GoBackN) -> Floats:
    r"""Mean number of failures of a frame that arrives.

    .. math:: E[F] = \frac{a}{1 - c}

    Parameters
    ----------
    arq
        The link and its ARQ.

    Returns
    -------
    ndarray
        Failures, of the broadcast shape. With limited attempts, of the frames that are not given up.

    Examples
    --------
    >>> round(float(failures_mean(GoBackN(25, 6, 0.2, FrameErrors(0.01, 0.9)))), 4)
    0.0219
    """
    return _moments(arq)[0]


@checked_arguments
def rtt_mean_s(arq: GoBackN) -> Floats:
    r"""Mean round trip of TCP's segments.

    .. math:: E[RTT] = T_b + n t (1 + N E[F])

    Parameters
    ----------
    arq
        The link and its ARQ.

    Returns
    -------
    ndarray
        Time in s, of the broadcast shape; of segments that arrive.

    Notes
    -----
    Of a segment that finds the link free. Behind others it waits for them: `loaded_bundle`.

    Examples
    --------
    A packet of 1500 bytes at 2.4 kbit/s in frames of 60 bytes, with 0.5 s of propagation:

    >>> round(float(rtt_mean_s(GoBackN(25, 6, 0.2, FrameErrors(0.01, 0.9), base_s=0.5))), 2)
    6.16
    """
    frames, time = whole(1, frames=arq.frames), positive(frame_s=arq.frame_s)
    return np.asarray(at_least(0, base_s=arq.base_s) + frames * time * (1 + _window(arq) * _moments(arq)[0]))


@checked_arguments
def rtt_deviation_s(arq: GoBackN) -> Floats:
    r"""Standard deviation of the round trip of TCP's segments.

    .. math:: \sigma_{RTT} = t N \sqrt{n \left( \frac{a (1 + c)}{(1 - c)^2} - \frac{a^2}{(1 - c)^2} \right)}

    Parameters
    ----------
    arq
        The link and its ARQ.

    Returns
    -------
    ndarray
        Time in s, of the broadcast shape; of segments that arrive.

    Examples
    --------
    >>> round(float(rtt_deviation_s(GoBackN(25, 6, 0.2, FrameErrors(0.01, 0.9), base_s=0.5))), 2)
    1.62
    """
    variance = whole(1, frames=arq.frames) * _moments(arq)[1]
    return np.asarray(_window(arq) * positive(frame_s=arq.frame_s) * np.sqrt(variance))


@checked_arguments
def residual_loss(arq: GoBackN) -> Floats:
    r"""Probability that a segment is lost because one of its frames is given up after A attempts.

    .. math::

        P = 1 - \left( (1 - q) (1 - u) + q (1 - c^A) \right) (1 - u)^{n - 1}, \qquad
        u = a\, c^{A - 1}, \qquad q = \frac{u}{u + 1 - c^A}

    Parameters
    ----------
    arq
        The link and its ARQ.

    Returns
    -------
    ndarray
        Probability, of the broadcast shape; 0 where nothing is given up.

    Notes
    -----
    The frame after one that was given up comes a window after its last attempt, so that it is given up with :math:`c^A`; the
    first frame of a segment follows such a frame with :math:`q`, the share of them.

    Examples
    --------
    >>> round(float(residual_loss(GoBackN(25, 6, 0.2, FrameErrors(0.01, 0.9), attempts=4))), 4)
    0.0393
    """
    first, again = arq.failure_rates()
    frames = whole(1, frames=arq.frames)
    if arq.attempts is None:
        return np.zeros(np.broadcast_shapes(first.shape, frames.shape))
    given_up, after = first * again ** (arq.attempts - 1), again**arq.attempts
    share = given_up / (given_up + 1 - after)
    kept = (1 - share) * (1 - given_up) + share * (1 - after)
    return np.asarray(1 - kept * (1 - given_up) ** (frames - 1))


@checked_arguments
def outlasts(arq: GoBackN, *, limit_s: ArrayLike) -> Floats:
    r"""Probability that a segment's round trip outlasts TCP's timer, which then goes off for nothing.

    .. math:: P \left( T_b + n t + N t \sum_{i=1}^n F_i > T_0 \right)

    Parameters
    ----------
    arq
        The link and its ARQ.
    limit_s
        TCP's timer :math:`T_0`, in s, positive; broadcast against the parameters of the link.

    Returns
    -------
    ndarray
        Probability, of the broadcast shape; of segments that arrive.

    Raises
    ------
    ValueError
        If a value lies outside its range, or more than 5000 failures of a segment fit into the limit.

    Notes
    -----
    Without queues, and of a timer that stands still. Of an adapted one, take `tcp_latency.timeout.retransmission_timeout_s`
    of the mean and the deviation here.

    Examples
    --------
    >>> arq = GoBackN(25, 6, 0.2, FrameErrors(0.01, 0.9), base_s=0.5)
    >>> outlasts(arq, limit_s=[6.0, 8.0, 12.0]).round(4)
    array([0.2222, 0.0786, 0.0163])
    """
    first, again = arq.failure_rates()
    limit, window = positive(limit_s=limit_s), _window(arq)
    frames, time = whole(1, frames=arq.frames), positive(frame_s=arq.frame_s)
    free = limit - at_least(0, base_s=arq.base_s) - frames * time
    # As many failures as fit; rounding must not take away one that just does.
    fitting = np.floor(free / (window * time) + 1e-9)
    if np.any(fitting > _MOST_FAILURES):
        raise ArgumentError(
            f"limit_s must leave room for at most {_MOST_FAILURES} failures of a segment, not {np.max(fitting):g}",
            "give a lower limit_s, or a longer round trip",
        )
    beyond = np.vectorize(_more_failures, otypes=[np.float64], excluded=["attempts"])
    return np.asarray(beyond(fitting, frames, first, again, attempts=arq.attempts))


def _window(arq: GoBackN) -> Floats:
    return whole(1, window_frames=arq.window_frames).astype(np.float64)


def _moments(arq: GoBackN) -> tuple[Floats, Floats]:
    """Mean and variance of the failures of a frame that arrives."""
    first, again = arq.failure_rates()
    if arq.attempts is None:
        mean = first / (1 - again)
        return mean, np.asarray(first * (1 + again) / (1 - again) ** 2 - mean**2)
    count = np.arange(1, arq.attempts)
    ways = (first * (1 - again))[..., None] * again[..., None] ** (count - 1)
    arrives = 1 - first * again ** (arq.attempts - 1)
    mean = np.sum(count * ways, axis=-1) / arrives
    return mean, np.asarray(np.sum(count**2 * ways, axis=-1) / arrives - mean**2)


def _more_failures(most: float, frames: int, first: float, again: float, attempts: int | None) -> float:
    """Probability that the frames of a segment fail more often in all."""
    if most < 0:
        return 1.0
    length = int(most) + 1
    one = np.concatenate([[1 - first], first * (1 - again) * again ** np.arange(length - 1)])
    if attempts is not None:
        one = one[:attempts] / (1 - first * again ** (attempts - 1))
    within, power, left = np.ones(1), one, int(frames)
    while left:
        if left % 2:
            within = np.convolve(within, power)[:length]
        power = np.convolve(power, power)[:length]
        left //= 2
    return max(0.0, 1.0 - float(np.sum(within)))

r"""Frame errors of a link in Rayleigh fading as two states: good frames arrive, bad ones do not.

A frame is bad if the received power stands below a threshold; the margin is how far its mean stands above. How long fades last
against a frame follows from speed, carrier and data rate, by the Doppler frequency times the frame's length.

References
----------
M. Zorzi, R. R. Rao, L. B. Milstein, "Error statistics in data transmission over fading channels", IEEE Transactions on
Communications 46(11), 1998, and "On the accuracy of a first-order Markov model for data transmission on fading channels",
ICUPC 1995.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from farlink.arguments import checked_arguments, refused
from farlink.errors import ArgumentError
from farlink.models.arq import SPEED_OF_LIGHT_MPS
from farlink.models.parameters import LinkRate, Probabilities, Seconds
from farlink.models.ranges import Floats, at_least, floats, positive, whole, within_0_and_1

# Doppler phase of a frame up to which the Bessel function is added up; beyond, its expansion is right to 1e-6.
_FAST = 300.0
# Panels of the integral over the angle, from 1e-12 to pi in equal ratios, and nodes in each.
_PANELS, _NODES = 32, 12


class FrameErrors(NamedTuple):
    """Probability that a frame is bad, by the frame before it.

    Attributes
    ----------
    after_good
        If the frame before was good.
    after_bad
        If the frame before was bad.
    """

    after_good: Floats
    after_bad: Floats


@checked_arguments
def doppler_hz(speed_mps: ArrayLike, *, carrier_hz: ArrayLike) -> Floats:
    r"""Largest Doppler shift.

    .. math:: f_D = \frac{v}{c} f_c

    Parameters
    ----------
    speed_mps
        Speed :math:`v`, in m/s, not negative. Any shape.
    carrier_hz
        Carrier frequency :math:`f_c`, in Hz, positive; broadcast against `speed_mps`.

    Returns
    -------
    ndarray
        Frequency in Hz, of the broadcast shape.

    Notes
    -----
    Of the movement against what scatters; the shift of a satellite's pass is followed by the receiver and does not fade.

    Examples
    --------
    >>> round(float(doppler_hz(10.0, carrier_hz=1.626e9)), 1)
    54.2
    """
    return np.asarray(at_least(0, speed_mps=speed_mps) / SPEED_OF_LIGHT_MPS * positive(carrier_hz=carrier_hz))


@checked_arguments
def frame_s(frame_bytes: ArrayLike, *, rate_bps: LinkRate) -> Seconds:
    r"""Time of a frame on the link.

    .. math:: T = \frac{8 l}{R}

    Parameters
    ----------
    frame_bytes
        Length of a frame :math:`l`, in bytes, positive. Any shape.

    Examples
    --------
    >>> float(frame_s(60, rate_bps=2400))
    0.2
    """
    return np.asarray(8 * positive(frame_bytes=frame_bytes) / floats(rate_bps))


@checked_arguments
def rayleigh_frames(margin_db: ArrayLike, *, doppler_hz: ArrayLike, frame_s: ArrayLike) -> FrameErrors:
    r"""Two-state errors of frames in Rayleigh fading.

    .. math::

        P_E = 1 - e^{-1/F}, \qquad P(bad | good) = Q(\theta, \rho \theta) - Q(\rho \theta, \theta), \qquad
        P(good | bad) = \frac{Q(\theta, \rho \theta) - Q(\rho \theta, \theta)}{e^{1/F} - 1}

    with :math:`\rho = J_0(2 \pi f_D T)`, :math:`\theta = \sqrt{\frac{2 / F}{1 - \rho^2}}` and Marcum's :math:`Q`.

    Parameters
    ----------
    margin_db
        Mean signal-to-noise ratio over the one at which frames fail, :math:`F`, in dB. Any shape.
    doppler_hz
        Largest Doppler shift :math:`f_D`, in Hz, not negative; all parameters are broadcast against each other.
    frame_s
        Time of a frame :math:`T`, in s, positive.

    Returns
    -------
    FrameErrors
        Probabilities, of the broadcast shape. Without movement a state never changes.

    Notes
    -----
    The difference of both :math:`Q` is computed as one integral, which keeps its digits where fades last for thousands of
    frames (the derivation is ours):

    .. math::

        Q(\theta, \rho \theta) - Q(\rho \theta, \theta) = \frac{1}{\pi} \int_0^\pi \left( 1 - \exp \left( -\frac{1}{F} \frac{1
        - \rho^2}{1 - 2 \rho \cos s + \rho^2} \right) \right) ds

    Simon's integral of :math:`Q` has Poisson's kernel in front, which is the derivative of an angle: that angle is :math:`s`.
    Two states forget the past but for one frame. That fits slow fading (:math:`f_D T < 0.1`), and fast fading (above 0.2),
    where frames are nearly independent; in between the correlation oscillates, and two states do not show it.

    References
    ----------
    Zorzi, Rao and Milstein (1995); the correlation is that of W. C. Jakes, "Microwave mobile communications", 1974.

    Examples
    --------
    >>> errors = rayleigh_frames(10.0, doppler_hz=[0.05, 0.5, 50.0], frame_s=0.2)
    >>> errors.after_good.round(3), errors.after_bad.round(3)
    (array([0.008, 0.068, 0.095]), array([0.925, 0.358, 0.096]))
    """
    inverse = 10 ** (-np.asarray(margin_db, dtype=np.float64) / 10)
    if not np.all(np.isfinite(inverse) & (inverse > 0)):
        raise refused("margin_db", "be finite", margin_db)
    phase = 2 * np.pi * at_least(0, doppler_hz=doppler_hz) * positive(frame_s=frame_s)
    inverse, less = np.broadcast_arrays(inverse, _one_less_correlation(phase))
    after_good = _crossing(inverse, less)
    return FrameErrors(after_good=after_good, after_bad=np.asarray(1 - after_good / np.expm1(inverse)))


@checked_arguments
def error_rate(errors: FrameErrors) -> Floats:
    r"""Share of the frames that are bad.

    .. math:: P_E = \frac{P(bad | good)}{P(bad | good) + P(good | bad)}

    Parameters
    ----------
    errors
        Probabilities by the frame before.

    Returns
    -------
    ndarray
        Probability, of the shape of `errors`.

    Raises
    ------
    ValueError
        If a probability lies outside its range, or no state is ever left.

    Examples
    --------
    >>> round(float(error_rate(FrameErrors(0.02, 0.81))), 4)
    0.0952
    """
    enter, stay = checked(errors)
    # In this order a sum of 1 stays one.
    return np.asarray(enter / (enter + (1 - stay)))


@checked_arguments
def bad_again(errors: FrameErrors, *, frames: ArrayLike) -> Probabilities:
    r"""Probability that a frame is bad so many frames after a bad one.

    .. math:: P(bad | bad, N) = P_E + (1 - P_E)\, (P(bad | bad) - P(bad | good))^N

    Parameters
    ----------
    errors
        Probabilities by the frame before.
    frames
        Frames after the bad one :math:`N`, whole, at least 1; broadcast against `errors`.

    Examples
    --------
    >>> bad_again(FrameErrors(0.02, 0.81), frames=[1, 5, 50]).round(4)
    array([0.81  , 0.3736, 0.0952])
    """
    enter, stay = checked(errors)
    rate = error_rate(errors)
    return np.asarray(rate + (1 - rate) * (stay - enter) ** whole(1, frames=frames))


@checked_arguments
def checked(errors: FrameErrors) -> FrameErrors:
    """The probabilities as arrays of the same shape, refused outside their range or where no state is ever left."""
    enter = within_0_and_1(after_good=errors.after_good)
    stay = within_0_and_1(after_bad=errors.after_bad)
    enter, stay = np.broadcast_arrays(enter, stay)
    if np.any((enter == 0) & (stay == 1)):
        raise ArgumentError(
            "after_good must be above 0 or after_bad below 1: as it is, a state is never left",
            "give an after_good above 0, or an after_bad below 1",
        )
    return FrameErrors(enter, stay)


def _one_less_correlation(phase: Floats) -> Floats:
    """1 - J_0(x), with the digits of a small difference; the sign of a correlation does not count."""
    slow = np.minimum(phase, _FAST)
    # The trapezoidal rule over a period converges as soon as it has more nodes than the phase.
    count = int(2 * np.max(slow, initial=1.0)) + 48
    angles = np.pi * (np.arange(count) + 0.5) / count
    less = 2 * np.mean(np.sin(slow[..., None] * np.sin(angles) / 2) ** 2, axis=-1)
    far = np.maximum(phase, _FAST)
    fast = np.sqrt(2 / (np.pi * far)) * (np.cos(far - np.pi / 4) + np.sin(far - np.pi / 4) / (8 * far))
    correlation = np.where(phase <= _FAST, 1 - less, fast)
    return np.asarray(np.where(correlation >= 0, np.where(phase <= _FAST, less, 1 - fast), 1 + correlation))


def _crossing(inverse: Floats, less: Floats) -> Floats:
    """Probability that the power is below the threshold a frame after it was above, of 1/F and 1 - rho."""
    edges = np.geomspace(1e-12, np.pi, _PANELS + 1)
    nodes, weights = np.polynomial.legendre.leggauss(_NODES)
    width = np.diff(np.log(edges))[:, None]
    log_angle = np.log(edges[:-1])[:, None] + width * (nodes + 1) / 2
    angle = np.exp(log_angle).ravel()
    step = (width * weights / 2 * np.exp(log_angle)).ravel()
    gap = less[..., None]
    kernel = gap * (2 - gap) / (gap**2 + 4 * (1 - gap) * np.sin(angle / 2) ** 2 + 1e-300)
    inside = -np.expm1(-inverse[..., None] * kernel)
    # Up to the first edge the integrand stays what it is there.
    return np.asarray((np.sum(inside * step, axis=-1) + inside[..., 0] * edges[0]) / np.pi)

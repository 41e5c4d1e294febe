r"""Power that a moving beam puts on the receiver: pointing jitter and the sway of buildings."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from farlink.channels.synthesis.process import Band, Butterworth, gaussian_process
from farlink.channels.synthesis.streams import stream


def jitter(
    samples: int, sample_rate_hz: float, seed: int, *, jitter_rad: float, beam_radius_rad: float, cutoff_hz: float
) -> NDArray[np.float64]:
    r"""Pointing factor of a Gaussian beam, :math:`\exp(-2 \theta^2 / w^2)`, over its mean.

    Parameters
    ----------
    samples
        How many samples.
    sample_rate_hz
        Their rate, in Hz.
    seed
        Seed of the realisation.
    jitter_rad
        Standard deviation of the pointing error on each of the two axes, in rad.
    beam_radius_rad
        Angle w from the axis at which the beam has 1/e^2 of its peak, in rad.
    cutoff_hz
        Cut-off of the jitter's spectrum (Butterworth of order 3), in Hz.

    Notes
    -----
    The factor to the power 1 / k, k = w^2 / (4 sigma^2), is uniform; its mean k / (k + 1) is taken out.
    """
    shape = Butterworth(3, cutoff_hz)
    theta_squared = np.zeros(samples)
    for axis in ("jitter-x", "jitter-y"):
        theta_squared += gaussian_process(shape, samples, sample_rate_hz, stream(seed, axis)) ** 2
    ratio = (jitter_rad / beam_radius_rad) ** 2
    factor: NDArray[np.float64] = np.exp(-2 * ratio * theta_squared) * (1 + 4 * ratio)
    return factor


def sway(
    samples: int, sample_rate_hz: float, seed: int, *, deviation: float, low_hz: float, high_hz: float
) -> NDArray[np.float64]:
    """Factor of a building that sways: Gaussian around 1, within a band of frequencies.

    Parameters
    ----------
    samples
        How many samples.
    sample_rate_hz
        Their rate, in Hz.
    seed
        Seed of the realisation.
    deviation
        Standard deviation of the factor, up to 0.25, so that it hardly ever meets 0.
    low_hz, high_hz
        The band, in Hz.
    """
    path = gaussian_process(Band(low_hz, high_hz), samples, sample_rate_hz, stream(seed, "sway"))
    return np.maximum(1 + deviation * path, 0.0)


def jitter_index(jitter_rad: float, beam_radius_rad: float) -> float:
    """Scintillation index of the pointing factor, 1 / (k (k + 2)) with k = w^2 / (4 sigma^2).

    Parameters
    ----------
    jitter_rad
        Standard deviation of the pointing error on each axis, in rad.
    beam_radius_rad
        Angle at which the beam has 1/e^2 of its peak, in rad.
    """
    if jitter_rad == 0:
        return 0.0
    k = beam_radius_rad**2 / (4 * jitter_rad**2)
    return 1 / (k * (k + 2))

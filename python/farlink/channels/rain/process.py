"""The course of rain in time: a normal process of given correlation, exact at any step."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from farlink.arguments import check_range, checked_arguments
from farlink.extras import require

Series = NDArray[np.float64]


@dataclass(frozen=True)
class Part:
    """One filter of a process.

    Attributes
    ----------
    rate_per_s
        Inverse of its correlation time, in 1/s.
    weight
        Its weight in the sum.
    """

    rate_per_s: float
    weight: float


def first_order(rate_per_s: float) -> tuple[Part, ...]:
    """The process of Maseng and Bakken: autocorrelation ``exp(-rate_per_s * lag)``.

    References
    ----------
    Maseng and Bakken, A stochastic dynamic model of rain attenuation, IEEE Transactions on Communications 29, 1981;
    ITU-R P.1853-1, Annex 1, section 2.2, step B: 2e-4 per second.
    """
    return (Part(rate_per_s, 1.0),)


TWO_SCALES = (Part(9.0186e-4, 0.3746), Part(5.0990e-5, 0.7738))
"""The process of ITU-R P.1853-2, Annex 1: correlation times of 18 minutes and 5 hours, driven by the same noise.

The constants are those of the implementation in ITURPropagPY, not read in the Recommendation; the variance of the sum is 1 with
them, as it has to be.
"""


@checked_arguments
def normal_process(samples: int, step_s: float, parts: tuple[Part, ...], rng: np.random.Generator) -> Series:
    r"""A stationary normal process of mean 0 and variance 1, the sum of first-order filters of one white noise.

    .. math:: x_i(k) = \rho_i x_i(k-1) + \sqrt{1 - \rho_i^2} \, n(k), \qquad \rho_i = e^{-\beta_i \Delta t}

    The first sample is drawn from the stationary distribution, so that nothing has to be thrown away; P.1853 throws away
    the first 200,000 (-1) or 5,000,000 (-2).

    Parameters
    ----------
    samples
        How many, at least 1.
    step_s
        Time between them, in s, above 0.
    parts
        The filters.
    rng
        Source of the noise.

    Returns
    -------
    ndarray
        Shape ``(samples,)``.

    Notes
    -----
    As every sum of first-order filters its path crosses a level ever more often, the finer it is looked at: the number of
    fades and their length depend on the step.

    Examples
    --------
    >>> normal_process(3, 1.0, first_order(2e-4), np.random.default_rng(1)).shape
    (3,)
    """
    check_range(step_s >= 1e-9, "step_s", "be at least 1e-9", step_s)
    keep = np.exp(-step_s * np.array([part.rate_per_s for part in parts]))
    weight = np.array([part.weight for part in parts])
    gain = np.sqrt(-np.expm1(2 * np.log(keep)))
    # Covariance of the filters' outputs, which share their noise.
    covariance = np.outer(gain, gain) / -np.expm1(np.add.outer(np.log(keep), np.log(keep)))
    state = np.linalg.cholesky(covariance) @ rng.standard_normal(len(parts))
    noise = rng.standard_normal(samples - 1)
    lfilter = require("scipy.signal", "rain attenuation").lfilter
    found: Series = np.zeros(samples)
    for index in range(len(parts)):
        found[0] += weight[index] * state[index]
        later, _ = lfilter([gain[index]], [1.0, -keep[index]], noise, zi=[keep[index] * state[index]])
        found[1:] += weight[index] * later
    found /= np.sqrt(weight @ covariance @ weight)
    return found

r"""Whether round trips look like those of a wireless link with ARQ, or of a queue on a wired one.

ARQ adds a whole number of its windows to a round trip, mostly none, and from packet to packet nearly independently. A queue
adds what is left of a packet and those behind it, and the next packet finds most of them still there. Five numbers of a series
of round trips tell of that (`features`), and a logistic function weighs them. Its weights are **fitted** to simulated links of
random settings, and the errors are those on other simulated links: docs/validation/link-kinds.md. No measured series has been
tried.

References
----------
Zaghloul, section 6.4.2: "Since the mean RTT is higher for wireless links, RTT models may be used to detect wireless links". The
thesis has no method. The mean alone does not tell a wireless link from a long one, which is why it is not used here.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from farlink.arguments import check_range, checked_arguments
from farlink.errors import ArgumentError
from farlink.models.ranges import Floats, positive

FEWEST = 100
# Round trips this far above the least, in standard deviations, have waited.
_FLOOR_DEVIATIONS = 0.15
_LEAST_QUANTILE = 0.005
# Steps that are tried, and round trips that have waited for which there are enough of them.
_STEPS = 400
_FEWEST_WAITING = 8


class Features(NamedTuple):
    """Findings in a series of round trips.

    Attributes
    ----------
    correlation
        Of a round trip with the next one.
    at_floor
        Share of the round trips that have not waited: near the least.
    on_steps
        How well those that have waited stand on multiples of one step, 0 to 1.
    spread
        Common logarithm of their standard deviation over the least.
    skewness
        A tenth of their skewness.
    """

    correlation: float
    at_floor: float
    on_steps: float
    spread: float
    skewness: float


# Fitted by docs/link_kinds.py: constant, and one weight for each of `Features`.
WEIGHTS = (-5.64, -1.0, -2.21, 9.4, -1.29, 5.44)


@checked_arguments
def features(rtts_s: ArrayLike, *, resolution_s: float = 1e-3) -> Features:
    r"""What a series of round trips shows of the kind of its link.

    Parameters
    ----------
    rtts_s
        Round trips of packets of one length, in the order in which they were sent, in s, positive; one dimension, at least 100.
    resolution_s
        Resolution and noise of the clock, in s, above 0.

    Returns
    -------
    Features
        The five numbers.

    Raises
    ------
    ArgumentError
        If there are too few round trips, or one is not positive.

    Notes
    -----
    Steps are those at which :math:`|\sum_j e^{2 \pi i x_j / \tau}|` of the waiting times x is largest, over steps :math:`\tau`
    from half the shortest waiting time to a third above their median.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> arq = features(0.5 + 0.2 * rng.geometric(0.8, 500) + rng.uniform(0, 1e-3, 500))
    >>> round(arq.at_floor, 2), round(arq.on_steps, 2)
    (0.8, 1.0)
    """
    rtts = positive(rtts_s=rtts_s)
    check_range(0 < resolution_s <= 10, "resolution_s", "be above 0 and at most 10", resolution_s)
    if rtts.ndim != 1 or rtts.size < FEWEST:
        message = f"rtts_s must be a series of at least {FEWEST} round trips, not of shape {rtts.shape}"
        raise ArgumentError(message, "give the round trips one after the other")
    least, deviation = float(np.quantile(rtts, _LEAST_QUANTILE)), float(rtts.std())
    above = rtts - least
    is_waiting = above > max(resolution_s, _FLOOR_DEVIATIONS * deviation)
    if deviation <= 1e-12 * least:
        return Features(0.0, 1.0, 0.0, -9.0, 0.0)
    from_mean = (rtts - rtts.mean()) / deviation
    return Features(
        float(np.mean(from_mean[1:] * from_mean[:-1])),
        float(1 - is_waiting.mean()),
        _on_steps(above[is_waiting]),
        float(np.log10(deviation / least + 1e-9)),
        float(np.mean(from_mean**3)) / 10,
    )


@checked_arguments
def wireless_probability(rtts_s: ArrayLike, *, resolution_s: float = 1e-3) -> float:
    """Probability that a series of round trips is of a wireless link with ARQ, if one in two is.

    Parameters
    ----------
    rtts_s
        As of `features`.
    resolution_s
        As of `features`.

    Returns
    -------
    float
        From 0 to 1; above one half says wireless.

    Raises
    ------
    ArgumentError
        As of `features`.

    Notes
    -----
    Holds for a link whose packets mostly wait for repetitions, if at all. A queue of other traffic in front of the ARQ hides
    it: more than half of such links are then taken for wired ones. Errors, and over which settings:
    docs/validation/link-kinds.md.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> round(wireless_probability(0.5 + 0.2 * rng.geometric(0.8, 500) + rng.uniform(0, 1e-3, 500)), 2)
    0.99
    >>> wait_s = 0.0
    >>> queue = [0.5 + (wait_s := max(0.0, wait_s + rng.exponential(0.1) - 0.15)) for _ in range(500)]
    >>> round(wireless_probability(queue), 2)
    0.02
    """
    values = np.array([1.0, *features(rtts_s, resolution_s=resolution_s)])
    return float(1 / (1 + np.exp(-(values @ np.array(WEIGHTS)))))


def _on_steps(waiting_s: Floats) -> float:
    if waiting_s.size < _FEWEST_WAITING:
        return 0.0
    low = max(0.45 * float(np.quantile(waiting_s, 0.02)), float(np.ptp(waiting_s)) / _STEPS)
    high = 1.3 * float(np.median(waiting_s))
    if not 0 < low < high:
        return 0.0
    steps = np.geomspace(low, high, _STEPS)
    return float(np.abs(np.exp(2j * np.pi * waiting_s[:, None] / steps).mean(axis=0)).max())

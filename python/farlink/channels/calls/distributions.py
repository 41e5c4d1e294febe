"""Distributions of times between drops, fitted by maximum likelihood to times some of which are censored.

Each works on many samples at once, one a row, so that a bootstrap costs little more than a fit.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from farlink.arguments import check_range, checked_arguments

Series = NDArray[np.float64]
Mask = NDArray[np.bool_]


class Distribution(Protocol):
    """A family of distributions. Parameters are a row of numbers, or one row per sample.

    Attributes
    ----------
    name
        In words.
    parameters
        Names of its parameters, with unit.
    fewest
        Observed times that a fit needs.
    """

    name: str
    parameters: tuple[str, ...]
    fewest: int

    def fit(self, times: Series, observed: Mask, start: Series | None = None) -> Series:
        """The parameters with the largest likelihood of the times; the search begins at `start`."""
        ...

    def cumulative_hazard(self, parameters: Series, times: Series) -> Series:
        """Minus the logarithm of the probability of a longer time."""
        ...

    def log_density(self, parameters: Series, times: Series) -> Series:
        """Logarithm of the density, in 1/s."""
        ...

    def draw(self, parameters: Series, generator: np.random.Generator, count: int) -> Series:
        """Random times, in s."""
        ...

    def mean_s(self, parameters: Series) -> Series:
        """Mean, in s."""
        ...

    def to_line(self, parameters: Series) -> Series:
        """The parameters on the whole real line: logarithms, and the logarithm of the odds of a probability."""
        ...

    def from_line(self, values: Series) -> Series:
        """The inverse of `to_line`."""
        ...


def log_likelihood(family: Distribution, parameters: Series, times: Series, observed: Mask) -> Series:
    """Logarithm of the likelihood: density of observed times, survival function of censored ones."""
    density = family.log_density(parameters, times)
    return np.asarray(np.where(observed, density, -family.cumulative_hazard(parameters, times)).sum(axis=-1))


class Exponential:
    """The time to the next drop does not depend on how long the link has been up: a Poisson process."""

    name = "exponential"
    parameters: tuple[str, ...] = ("mean_s",)
    fewest = 2

    def fit(self, times: Series, observed: Mask, start: Series | None = None) -> Series:
        """Time in all over the number of drops."""
        del start
        return np.asarray(times.sum(axis=-1) / np.maximum(observed.sum(axis=-1), 1))[..., None]

    def cumulative_hazard(self, parameters: Series, times: Series) -> Series:
        """Time over mean."""
        return np.asarray(times / parameters[..., 0:1])

    def log_density(self, parameters: Series, times: Series) -> Series:
        """Minus the logarithm of the mean, minus time over mean."""
        return np.asarray(-np.log(parameters[..., 0:1]) - times / parameters[..., 0:1])

    def draw(self, parameters: Series, generator: np.random.Generator, count: int) -> Series:
        """Times."""
        return np.asarray(parameters[..., 0:1] * generator.standard_exponential((*parameters.shape[:-1], count)))

    def mean_s(self, parameters: Series) -> Series:
        """The parameter."""
        return parameters[..., 0]

    def to_line(self, parameters: Series) -> Series:
        """Its logarithm."""
        return np.log(parameters)

    def from_line(self, values: Series) -> Series:
        """Its exponential."""
        return np.exp(values)


class Weibull:
    """Drops become likelier (shape above 1) or less likely (below 1) the longer the link has been up."""

    name = "weibull"
    parameters: tuple[str, ...] = ("shape", "scale_s")
    fewest = 5

    # Newton's method in ln(shape); it converges in a few steps, these are for bad luck.
    _STEPS = 60

    def fit(self, times: Series, observed: Mask, start: Series | None = None) -> Series:
        """Newton's method for the shape, with the scale that belongs to it."""
        longest = times.max(axis=-1, keepdims=True)
        logs = np.log(times / longest)
        drops = np.maximum(observed.sum(axis=-1), 1)
        mean_log = np.where(observed, logs, 0.0).sum(axis=-1) / drops
        log_shape = np.zeros(times.shape[:-1]) if start is None else np.broadcast_to(np.log(start[..., 0]), times.shape[:-1])
        for _ in range(self._STEPS):
            shape = np.exp(log_shape)
            powers = np.exp(shape[..., None] * logs)
            total, first = powers.sum(axis=-1), (powers * logs).sum(axis=-1)
            second = (powers * logs * logs).sum(axis=-1)
            gap = first / total - 1 / shape - mean_log
            slope = shape * ((second - first**2 / total) / total) + 1 / shape
            step = np.clip(gap / slope, -1.0, 1.0)
            log_shape = np.clip(log_shape - step, -7.0, 7.0)
            if np.max(np.abs(step)) < 1e-10:
                break
        shape = np.exp(log_shape)
        scale = longest[..., 0] * (np.exp(shape[..., None] * logs).sum(axis=-1) / drops) ** (1 / shape)
        return np.stack((shape, scale), axis=-1)

    def cumulative_hazard(self, parameters: Series, times: Series) -> Series:
        """(time / scale)^shape."""
        # If times are nearly equal, the shape is so large that the power overflows; the probability is 0 there either way.
        return np.asarray(np.exp(np.minimum(parameters[..., 0:1] * np.log(times / parameters[..., 1:2]), 700.0)))

    def log_density(self, parameters: Series, times: Series) -> Series:
        """Of the hazard and the survival."""
        shape, scale = parameters[..., 0:1], parameters[..., 1:2]
        return np.asarray(
            np.log(shape / scale) + (shape - 1) * np.log(times / scale) - self.cumulative_hazard(parameters, times)
        )

    def draw(self, parameters: Series, generator: np.random.Generator, count: int) -> Series:
        """Times."""
        unit = generator.standard_exponential((*parameters.shape[:-1], count))
        return np.asarray(parameters[..., 1:2] * unit ** (1 / parameters[..., 0:1]))

    def mean_s(self, parameters: Series) -> Series:
        """Scale times gamma(1 + 1 / shape)."""
        gamma = np.vectorize(_gamma, otypes=[np.float64])
        return np.asarray(parameters[..., 1] * gamma(1 + 1 / parameters[..., 0]))

    def to_line(self, parameters: Series) -> Series:
        """Logarithms."""
        return np.log(parameters)

    def from_line(self, values: Series) -> Series:
        """Exponentials."""
        return np.exp(values)


class TwoStateMarkov:
    """Drops come from a bad state only, which a two-state Markov chain enters and leaves: an interrupted Poisson process.

    The times between its drops are a mixture of two exponentials (Kuczura, "The interrupted Poisson process as an overflow
    process", Bell System Technical Journal 52, 1973): with `p_short` from the one of mean `short_s`, else from that of
    `long_s`. `markov_states` gives the chain.
    """

    name = "two-state-markov"
    parameters: tuple[str, ...] = ("p_short", "short_s", "long_s")
    fewest = 20

    _STEPS = 2000
    # From parameters that are nearly right, as in a bootstrap, fewer steps and a likelihood less exact will do.
    _WARM_STEPS = 100
    # Start of the search: probability of the short component, and both means as multiples of the exponential's.
    _STARTS = ((0.5, 0.3, 1.5), (0.1, 0.05, 1.1), (0.8, 0.5, 3.0))

    def fit(self, times: Series, observed: Mask, start: Series | None = None) -> Series:
        """Expectation maximisation from several starts, keeping the likeliest result; from `start` alone if it is given."""
        if start is not None:
            return self._climb(times, observed, np.broadcast_to(start, (*times.shape[:-1], 3)), self._WARM_STEPS, 1e-3)
        mean = Exponential().fit(times, observed)
        ends = [self._climb(times, observed, _row(mean, begin), self._STEPS, 1e-6) for begin in self._STARTS]
        likelihoods = np.stack([log_likelihood(self, end, times, observed) for end in ends])
        best = likelihoods.argmax(axis=0)
        return np.asarray(np.take_along_axis(np.stack(ends), best[None, ..., None], axis=0)[0])

    def _climb(self, times: Series, observed: Mask, begin: Series, steps: int, exact: float) -> Series:
        p, short, long = begin[..., 0].copy(), begin[..., 1].copy(), begin[..., 2].copy()
        least = times.min(axis=-1) / 2
        before = -np.inf
        for step in range(steps):
            # Both on a scale of logarithms that cannot underflow.
            one = np.log(p)[..., None] - times / short[..., None] - np.where(observed, np.log(short)[..., None], 0.0)
            two = np.log1p(-p)[..., None] - times / long[..., None] - np.where(observed, np.log(long)[..., None], 0.0)
            whole = np.logaddexp(one, two)
            weight = np.exp(one - whole)
            rest = 1 - weight
            p = np.clip(weight.mean(axis=-1), 1e-6, 1 - 1e-6)
            short = np.maximum((weight * times).sum(axis=-1) / np.maximum((weight * observed).sum(axis=-1), 1e-9), least)
            long = np.maximum((rest * times).sum(axis=-1) / np.maximum((rest * observed).sum(axis=-1), 1e-9), least)
            if step % 10 == 9:
                now = whole.sum(axis=-1)
                if np.max(np.abs(now - before)) < exact:
                    break
                before = now
        is_swapped = short > long
        return np.stack(
            (np.where(is_swapped, 1 - p, p), np.where(is_swapped, long, short), np.where(is_swapped, short, long)), axis=-1
        )

    def cumulative_hazard(self, parameters: Series, times: Series) -> Series:
        """Of the mixture."""
        p, short, long = (parameters[..., index : index + 1] for index in range(3))
        return np.asarray(-np.logaddexp(np.log(p) - times / short, np.log1p(-p) - times / long))

    def log_density(self, parameters: Series, times: Series) -> Series:
        """Of the mixture."""
        p, short, long = (parameters[..., index : index + 1] for index in range(3))
        return np.asarray(np.logaddexp(np.log(p / short) - times / short, np.log((1 - p) / long) - times / long))

    def draw(self, parameters: Series, generator: np.random.Generator, count: int) -> Series:
        """Times."""
        shape = (*parameters.shape[:-1], count)
        mean = np.where(generator.random(shape) < parameters[..., 0:1], parameters[..., 1:2], parameters[..., 2:3])
        return np.asarray(mean * generator.standard_exponential(shape))

    def mean_s(self, parameters: Series) -> Series:
        """Of the mixture."""
        return np.asarray(parameters[..., 0] * parameters[..., 1] + (1 - parameters[..., 0]) * parameters[..., 2])

    def to_line(self, parameters: Series) -> Series:
        """Log odds and logarithms."""
        p = parameters[..., 0]
        return np.stack((np.log(p / (1 - p)), np.log(parameters[..., 1]), np.log(parameters[..., 2])), axis=-1)

    def from_line(self, values: Series) -> Series:
        """The inverse."""
        return np.stack((1 / (1 + np.exp(-values[..., 0])), np.exp(values[..., 1]), np.exp(values[..., 2])), axis=-1)


DISTRIBUTIONS: dict[str, Distribution] = {one.name: one for one in (Exponential(), Weibull(), TwoStateMarkov())}
"""What can be fitted, simplest first."""


@checked_arguments
def markov_states(p_short: float, short_s: float, long_s: float) -> dict[str, float]:
    r"""The two-state chain behind a mixture of two exponentials of rates :math:`r_1 > r_2`.

    .. math:: \lambda = p r_1 + (1 - p) r_2, \quad \omega = r_1 r_2 / \lambda, \quad \gamma = r_1 + r_2 - \lambda - \omega

    Parameters
    ----------
    p_short, short_s, long_s
        Parameters of `TwoStateMarkov`.

    Returns
    -------
    dict
        ``bad_drop_interval_s``, mean time between drops in the bad state, :math:`1 / \lambda`; ``bad_s`` and ``good_s``, mean
        lengths of the states, :math:`1 / \gamma` and :math:`1 / \omega`. In the good state nothing drops.

    References
    ----------
    A. Kuczura, Bell System Technical Journal 52 (1973), pages 437-448.

    Examples
    --------
    >>> states = markov_states(0.5, 60.0, 600.0)
    >>> {name: round(value, 1) for name, value in states.items()}
    {'bad_drop_interval_s': 109.1, 'bad_s': 163.0, 'good_s': 330.0}
    """
    check_range(0 <= p_short <= 1, "p_short", "be from 0 to 1", p_short)
    check_range(0 < short_s < float("inf"), "short_s", "be above 0 and finite", short_s)
    check_range(0 < long_s < float("inf"), "long_s", "be above 0 and finite", long_s)
    fast, slow = 1 / short_s, 1 / long_s
    rate = p_short * fast + (1 - p_short) * slow
    leave_good = fast * slow / rate
    leave_bad = fast + slow - rate - leave_good
    return {
        "bad_drop_interval_s": 1 / rate,
        "bad_s": 1 / leave_bad if leave_bad > 0 else float("inf"),
        "good_s": 1 / leave_good,
    }


def _row(mean: Series, begin: tuple[float, float, float]) -> Series:
    p, short, long = begin
    return np.concatenate((np.full_like(mean, p), short * mean, long * mean), axis=-1)


def _gamma(value: float) -> float:
    from math import gamma, inf

    return gamma(value) if value < 170 else inf

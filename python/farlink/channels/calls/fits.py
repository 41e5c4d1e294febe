"""Fits of distributions to times between drops, with 95 % intervals."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from farlink.arguments import checked_arguments
from farlink.channels.calls.distributions import DISTRIBUTIONS, Distribution, Series, log_likelihood, markov_states
from farlink.channels.calls.samples import Sample
from farlink.errors import JournalError
from farlink.extras import require

LEVEL = 0.95
Interval = tuple[float, float]


@dataclass(frozen=True)
class Fit:
    """A distribution that was fitted to a sample, or why it was not.

    Attributes
    ----------
    distribution
        One of `DISTRIBUTIONS`.
    parameters
        Name and value of each parameter; none if it was not fitted.
    intervals
        Name and 95 % interval of each parameter for which there is one.
    mean_s
        Mean of the distribution, in s; NaN if it was not fitted.
    mean_ci_s
        95 % interval of the mean, in s.
    log_likelihood, aic
        Logarithm of the likelihood, and Akaike's criterion: twice the number of parameters less twice that. Less is better.
    reason
        Why there is no fit, or no interval; empty otherwise.
    """

    distribution: str
    parameters: dict[str, float] = field(default_factory=dict)
    intervals: dict[str, Interval] = field(default_factory=dict)
    mean_s: float = math.nan
    mean_ci_s: Interval = (math.nan, math.nan)
    log_likelihood: float = math.nan
    aic: float = math.nan
    reason: str = ""

    @property
    def is_fitted(self) -> bool:
        """Whether there is a fit."""
        return bool(self.parameters)

    @property
    def row(self) -> Series:
        """Its parameters, as the distribution takes them."""
        return np.array(list(self.parameters.values()), dtype=np.float64)

    @property
    def family(self) -> Distribution:
        """Its distribution."""
        return DISTRIBUTIONS[self.distribution]

    @property
    def states(self) -> dict[str, float]:
        """The chain behind a two-state Markov fit, by `markov_states`; empty for others."""
        return markov_states(**self.parameters) if self.distribution == "two-state-markov" and self.is_fitted else {}

    def density(self, times_s: Series) -> Series:
        """Density at some times, in 1/s."""
        return np.asarray(np.exp(self.family.log_density(self.row, times_s)))

    def survival(self, times_s: Series) -> Series:
        """Probability of a longer time than each."""
        return np.asarray(np.exp(-self.family.cumulative_hazard(self.row, times_s)))

    def to_dict(self) -> dict[str, Any]:
        """For JSON; what is unknown is null."""
        return {
            "distribution": self.distribution,
            "parameters": self.parameters,
            "intervals": {name: list(interval) for name, interval in self.intervals.items()},
            "mean_s": self.mean_s,
            "mean_ci_s": list(self.mean_ci_s),
            "log_likelihood": self.log_likelihood,
            "aic": self.aic,
            "states": self.states,
            "reason": self.reason,
        }


@checked_arguments
def fit(sample: Sample, distribution: str = "exponential") -> Fit:
    """Fit a distribution to a sample by maximum likelihood.

    Parameters
    ----------
    sample
        Times, some of which may be censored.
    distribution
        One of ``"exponential"``, ``"weibull"``, ``"two-state-markov"``.

    Returns
    -------
    Fit
        Without parameters, and with the reason, if the sample has fewer observed times than the distribution needs.

    Raises
    ------
    JournalError
        If there is no such distribution.

    Notes
    -----
    Intervals of an exponential are exact if nothing is censored; with n drops in a time T under observation they are those of
    a Poisson number of drops, on the safe side: 2T over the chi-square quantiles with 2n + 2 and 2n degrees of freedom. Those
    of the others follow from the curvature of the likelihood, on logarithms of the parameters, and are approximate.

    Examples
    --------
    >>> from farlink.channels.calls.samples import sample
    >>> found = fit(sample("up", [600.0, 1200.0, 3000.0, 7200.0]))
    >>> found.mean_s, [round(end) for end in found.mean_ci_s]
    (3000.0, [1369, 11011])
    >>> fit(sample("up", [600.0, 1200.0]), "weibull").reason
    'needs 5 drops, there are 2'
    """
    if distribution not in DISTRIBUTIONS:
        raise JournalError(f"there is no distribution {distribution!r}", f"distributions: {', '.join(DISTRIBUTIONS)}")
    family = DISTRIBUTIONS[distribution]
    if sample.events < family.fewest:
        return Fit(distribution, reason=f"needs {family.fewest} drops, there are {sample.events}")
    row = family.fit(sample.times_s, sample.is_observed)
    likelihood = float(log_likelihood(family, row, sample.times_s, sample.is_observed))
    intervals, mean_ci_s, reason = _intervals(family, row, sample)
    return Fit(
        distribution,
        dict(zip(family.parameters, row.tolist(), strict=True)),
        intervals,
        float(family.mean_s(row)),
        mean_ci_s,
        likelihood,
        2 * len(family.parameters) - 2 * likelihood,
        reason,
    )


@checked_arguments
def mean_at_least_s(exposure_s: float) -> float:
    """The mean time between drops that is exceeded with 95 % confidence where none was seen for so long.

    Examples
    --------
    >>> round(mean_at_least_s(3600.0))
    1202
    """
    return exposure_s / -math.log(1 - LEVEL)


def _intervals(family: Distribution, row: Series, sample: Sample) -> tuple[dict[str, Interval], Interval, str]:
    if family.name == "exponential":
        interval = _exponential_interval(sample)
        return {"mean_s": interval}, interval, ""
    stats = require("scipy.stats", "the statistics of call drops")
    line = family.to_line(row)
    covariance = _covariance(family, line, sample)
    if covariance is None:
        return {}, (math.nan, math.nan), "no interval: the likelihood has no peak there"
    width = float(stats.norm.ppf((1 + LEVEL) / 2)) * np.sqrt(np.diag(covariance))
    low, high = family.from_line(line - width), family.from_line(line + width)
    intervals = {name: (float(a), float(b)) for name, a, b in zip(family.parameters, low, high, strict=True)}
    gradient = _gradient(lambda at: math.log(float(family.mean_s(family.from_line(at)))), line)
    half = float(stats.norm.ppf((1 + LEVEL) / 2) * np.sqrt(gradient @ covariance @ gradient))
    mean_s = float(family.mean_s(row))
    return intervals, (mean_s * math.exp(-half), mean_s * math.exp(min(half, 700.0))), ""


def _exponential_interval(sample: Sample) -> Interval:
    stats = require("scipy.stats", "the statistics of call drops")
    drops, twice = sample.events, 2 * sample.exposure_s
    more = 0 if sample.is_complete else 2
    tail = (1 - LEVEL) / 2
    return twice / float(stats.chi2.ppf(1 - tail, 2 * drops + more)), twice / float(stats.chi2.ppf(tail, 2 * drops))


def _covariance(family: Distribution, line: Series, sample: Sample) -> Series | None:
    """Inverse of the observed information, or None if the likelihood is flat."""

    def at(values: Series) -> float:
        return float(log_likelihood(family, family.from_line(values), sample.times_s, sample.is_observed))

    count, step = line.size, 1e-3
    hessian = np.empty((count, count))
    unit = np.eye(count) * step
    for i in range(count):
        for j in range(count):
            hessian[i, j] = (
                at(line + unit[i] + unit[j])
                - at(line + unit[i] - unit[j])
                - at(line - unit[i] + unit[j])
                + at(line - unit[i] - unit[j])
            ) / (4 * step * step)
    if not np.isfinite(hessian).all() or np.linalg.eigvalsh(-hessian).min() < 1e-3:
        return None
    return np.asarray(np.linalg.inv(-hessian))


def _gradient(function: Any, line: Series) -> Series:
    step = 1e-4
    return np.array([(function(line + step * unit) - function(line - step * unit)) / (2 * step) for unit in np.eye(line.size)])

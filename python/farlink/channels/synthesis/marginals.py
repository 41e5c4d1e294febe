r"""Distributions of received power: a Gaussian process g becomes :math:`I = F^{-1}(\Phi(g))`, of mean 1.

A distribution is a product of one or two independent factors, each with its own process. To add one: a function for a new
factor, if need be, and one line in `MARGINALS`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from farlink.arguments import check_range, checked_arguments
from farlink.extras import require

# Log of the quantile at Phi(g), of a factor of mean 1 and the given variance.
LogQuantile = Callable[[NDArray[np.float64], float], NDArray[np.float64]]

# Nodes of the tables through which processes are mapped; Phi(-8) is 6e-16.
NODES = np.linspace(-8.0, 8.0, 2049)


def lognormal(g: NDArray[np.float64], variance: float) -> NDArray[np.float64]:
    r"""Log of the lognormal quantile, :math:`\sigma g - \sigma^2 / 2` with :math:`\sigma^2 = \ln(1 + v)`.

    Parameters
    ----------
    g
        Standard normal variate.
    variance
        Variance v of the power around its mean 1, which is the scintillation index.
    """
    sigma = math.sqrt(math.log1p(variance))
    return sigma * g - sigma**2 / 2


def gamma(g: NDArray[np.float64], variance: float) -> NDArray[np.float64]:
    """Log of the gamma quantile of shape 1 / v and mean 1.

    Parameters
    ----------
    g
        Standard normal variate.
    variance
        Variance v of the power around its mean 1.
    """
    special = require("scipy.special", "synthetic fading")
    if variance < 1e-6:  # practically normal; here the incomplete gamma function loses its precision
        return lognormal(g, variance)
    shape = 1 / variance
    # Each tail from its own end: Phi(g) is 1 to the last digit beyond g = 8.3.
    quantile = np.where(g < 0, special.gammaincinv(shape, special.ndtr(g)), special.gammainccinv(shape, special.ndtr(-g)))
    log_quantile: NDArray[np.float64] = np.log(np.maximum(quantile, np.finfo(float).tiny)) - math.log(shape)
    return log_quantile


def weibull(g: NDArray[np.float64], variance: float) -> NDArray[np.float64]:
    r"""Log of the Weibull quantile of mean 1, :math:`\ln(-\ln \Phi(-g)) / k - \ln \Gamma(1 + 1/k)`.

    Parameters
    ----------
    g
        Standard normal variate.
    variance
        Variance of the power around its mean 1; see `weibull_shape`.
    """
    special = require("scipy.special", "synthetic fading")
    shape = weibull_shape(variance)
    # For g far below 0 the inner logarithm is -Phi(g), and log1p keeps its digits.
    inner = np.where(g < 0, -np.log1p(-special.ndtr(g)), -special.log_ndtr(-g))
    log_quantile: NDArray[np.float64] = np.log(inner) / shape - math.lgamma(1 + 1 / shape)
    return log_quantile


@checked_arguments
def weibull_variance(shape: float) -> float:
    """Variance of a Weibull distribution of mean 1 and shape k.

    Parameters
    ----------
    shape
        Shape k.

    Examples
    --------
    >>> round(weibull_variance(1.83), 3)
    0.321
    """
    check_range(shape >= 0.01, "shape", "be at least 0.01", shape)
    return math.expm1(math.lgamma(1 + 2 / shape) - 2 * math.lgamma(1 + 1 / shape))


@checked_arguments
def weibull_shape(variance: float) -> float:
    """Shape k of the Weibull distribution of mean 1 that has this variance.

    Parameters
    ----------
    variance
        Variance, above 0.

    Examples
    --------
    >>> round(weibull_shape(weibull_variance(4.63)), 6)
    4.63
    """
    low, high = math.log(0.05), math.log(1e4)
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if weibull_variance(math.exp(middle)) > variance else (low, middle)
    return math.exp(low)


@dataclass(frozen=True)
class Marginal:
    """A distribution of received power.

    Parameters
    ----------
    factors
        Quantiles of its independent factors, the fast one first.
    meaning
        Its purpose in one line.
    """

    factors: tuple[LogQuantile, ...]
    meaning: str


MARGINALS: dict[str, Marginal] = {
    "lognormal": Marginal((lognormal,), "weak turbulence, scintillation index below 0.3"),
    "gamma-gamma": Marginal((gamma, gamma), "moderate and strong turbulence: fast Y(beta) times slow X(alpha)"),
    "weibull": Marginal((weibull,), "power behind a single-mode fibre"),
}


@checked_arguments
def gamma_gamma_index(alpha: float, beta: float) -> float:
    r"""Scintillation index of gamma-gamma fading, :math:`1/\alpha + 1/\beta + 1/(\alpha\beta)`.

    Parameters
    ----------
    alpha, beta
        Shapes of the slow and of the fast factor.

    Examples
    --------
    >>> round(gamma_gamma_index(4.5, 2.5), 3)
    0.711
    """
    check_range(alpha > 0, "alpha", "be above 0", alpha)
    check_range(beta > 0, "beta", "be above 0", beta)
    return 1 / alpha + 1 / beta + 1 / (alpha * beta)


def mapped(g: NDArray[np.float64], tables: Sequence[NDArray[np.float64]], samples_per_knot: float) -> NDArray[np.float64]:
    """Map a Gaussian process through quantiles that change each second, without a step.

    Between two knots of time the power moves linearly from one quantile of its g to the other, so that its mean stays.

    Parameters
    ----------
    g
        The process.
    tables
        Log of the quantile at `NODES`, one table for each knot of time, or one for all.
    samples_per_knot
        Samples from knot to knot.
    """
    if all(table is tables[0] for table in tables):
        return np.exp(np.interp(g, NODES, tables[0]))
    power = np.empty_like(g)
    edges = np.ceil(np.arange(len(tables)) * samples_per_knot).astype(np.int64)
    for knot in range(len(tables) - 1):
        start, end = min(edges[knot], g.size), min(edges[knot + 1], g.size)
        inside = g[start:end]
        share = np.arange(start, end) / samples_per_knot - knot
        before = np.exp(np.interp(inside, NODES, tables[knot]))
        power[start:end] = before + share * (np.exp(np.interp(inside, NODES, tables[knot + 1])) - before)
    return power

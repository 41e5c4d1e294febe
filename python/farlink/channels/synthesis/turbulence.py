"""Power through turbulence: processes, their distribution, and changes along a pass or with the weather."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from farlink.channels.synthesis import downlink
from farlink.channels.synthesis.marginals import (
    MARGINALS,
    NODES,
    LogQuantile,
    gamma,
    lognormal,
    mapped,
)
from farlink.channels.synthesis.orbit import Pass
from farlink.channels.synthesis.process import Butterworth, GaussianShaped, Spectrum, gaussian_process, warped_process
from farlink.channels.synthesis.streams import stream

# How the ratio alpha / beta is chosen where only the scintillation index is known: that of the preset for a strong path.
_ALPHA_OVER_BETA = 1.8
# Correlation time of the slow factor over that of the fast one, from the same preset.
_SLOW_OVER_FAST = 40 / 6


@dataclass(frozen=True)
class Factor:
    """One random factor of the power: variance at each knot of time, and quantiles.

    Parameters
    ----------
    variance
        Variance of the factor at the beginning of each second, or of all.
    log_quantile
        Quantile for the knot of that number: a function of g and variance.
    """

    variance: NDArray[np.float64]
    log_quantile: Callable[[int], LogQuantile]

    def tables(self) -> list[NDArray[np.float64]]:
        """Log of its quantile at `NODES`, for each knot."""
        kept: dict[tuple[LogQuantile, float], NDArray[np.float64]] = {}
        tables = []
        for knot, variance in enumerate(self.variance):
            key = (self.log_quantile(knot), float(variance))
            if key not in kept:
                kept[key] = key[0](NODES, key[1])
            tables.append(kept[key])
        return tables


def turbulence(
    values: Mapping[str, Any], samples: int, seed: int, transmitter: int, geometry: Pass | None
) -> NDArray[np.float64]:
    """Power through turbulence over its mean.

    Parameters
    ----------
    values
        All parameters.
    samples
        How many samples.
    seed
        Seed of the realisation.
    transmitter
        Number of the beam: each has its own turbulence, and all the same weather.
    geometry
        The pass, or None.
    """
    rate_hz = values["sample_rate_hz"]
    knots = math.ceil(samples / rate_hz) + 2
    elevation_deg = None if geometry is None else geometry.elevation_deg(_within(geometry, np.arange(float(knots))))
    fast = _fast(values, samples, stream(seed, f"fast-{transmitter}"), elevation_deg)
    slow_tau_s = values["slow_tau_s"]
    factors = _factors(values, elevation_deg, _drift(values, knots, seed))
    if len(factors) == 1 and values["slow_share"] == 0:
        return mapped(fast, factors[0].tables(), rate_hz)
    slow = gaussian_process(GaussianShaped(slow_tau_s), samples, rate_hz, stream(seed, f"slow-{transmitter}"))
    if len(factors) == 1:
        share = values["slow_share"]
        return mapped(math.sqrt(1 - share) * fast + math.sqrt(share) * slow, factors[0].tables(), rate_hz)
    return mapped(fast, factors[0].tables(), rate_hz) * mapped(slow, factors[1].tables(), rate_hz)


def _fast(
    values: Mapping[str, Any], samples: int, rng: np.random.Generator, elevation_deg: NDArray[np.float64] | None
) -> NDArray[np.float64]:
    def spectrum(tau_s: float) -> Spectrum:
        return GaussianShaped(tau_s) if values["spectrum"] == "gaussian" else Butterworth.with_tau(values["order"], tau_s)

    rate_hz = values["sample_rate_hz"]
    if values["tau_s"] > 0 or elevation_deg is None:
        return gaussian_process(spectrum(values["tau_s"]), samples, rate_hz, rng)
    tau_s = downlink.correlation_time_s(elevation_deg) * values["tau_factor"]
    return warped_process(spectrum(1.0), tau_s, samples, rate_hz, rng)


def _factors(values: Mapping[str, Any], elevation_deg: NDArray[np.float64] | None, drift: NDArray[np.float64]) -> list[Factor]:
    marginal = MARGINALS[values["marginal"]]
    if len(marginal.factors) == 2:
        return [
            Factor(drift / shape, lambda _, quantile=quantile: quantile)  # type: ignore[misc]
            for quantile, shape in zip(marginal.factors, (values["beta"], values["alpha"]), strict=True)
        ]
    if values["scintillation_index"] > 0 or elevation_deg is None:
        return [Factor(drift * values["scintillation_index"], lambda _: marginal.factors[0])]
    index = drift * downlink.scintillation_index(elevation_deg, values["aperture_m"])
    strong = downlink.gamma_gamma_share(elevation_deg, values["aperture_m"])
    if values["marginal"] != "lognormal" or not strong.any():
        return [Factor(index, lambda _: marginal.factors[0])]
    # Slow variance comes in as the share of gamma-gamma grows, and the fast factor makes up for the rest of the index.
    slow = strong * np.array([1 / (_ALPHA_OVER_BETA * _beta(v)) for v in index])
    fast = (1 + index) / (1 + slow) - 1
    return [Factor(fast, lambda knot: _blend(float(strong[knot]))), Factor(slow, lambda _: gamma)]


def _blend(share: float) -> LogQuantile:
    if share in (0.0, 1.0):
        return gamma if share else lognormal

    def log_quantile(g: NDArray[np.float64], variance: float) -> NDArray[np.float64]:
        blended: NDArray[np.float64] = np.log(share * np.exp(gamma(g, variance)) + (1 - share) * np.exp(lognormal(g, variance)))
        return blended

    return log_quantile


def _beta(index: float) -> float:
    """Beta of gamma-gamma fading of that index: 1/alpha + 1/beta + 1/(alpha beta) with alpha = 1.8 beta."""
    r = _ALPHA_OVER_BETA
    # index r beta^2 - (1 + r) beta - 1 = 0
    return ((1 + r) + math.sqrt((1 + r) ** 2 + 4 * index * r)) / (2 * index * r)


def _drift(values: Mapping[str, Any], knots: int, seed: int) -> NDArray[np.float64]:
    """Factor of the scintillation index, of mean 1, at each knot: in weak turbulence the index is in proportion to Cn2."""
    deviation = values["cn2_drift"]
    if deviation == 0:
        return np.ones(knots)
    path = gaussian_process(GaussianShaped(values["cn2_drift_tau_s"]), knots, 1.0, stream(seed, "cn2"))
    drift: NDArray[np.float64] = np.exp(deviation * path - deviation**2 / 2)
    return drift


def _within(geometry: Pass, time_s: NDArray[np.float64]) -> NDArray[np.float64]:
    # The last knots may lie beyond the end of a pass, where elements tell nothing.
    return np.minimum(time_s, geometry.duration_s)

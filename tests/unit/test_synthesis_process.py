"""Synthetic fading: the correlated processes, and their mapping to distributions."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, special, stats
from tests.correlation import autocorrelation_at

from farlink.channels.synthesis import settle, synthesize
from farlink.channels.synthesis.marginals import (
    MARGINALS,
    NODES,
    gamma,
    lognormal,
    mapped,
    weibull,
    weibull_shape,
    weibull_variance,
)
from farlink.channels.synthesis.process import Band, Butterworth, GaussianShaped, gaussian_process, warped_process
from farlink.channels.synthesis.streams import stream
from farlink.errors import TraceError

RATE_HZ = 10_000.0


@pytest.mark.parametrize(
    "spectrum",
    [Butterworth.with_tau(2, 5e-3), Butterworth.with_tau(3, 5e-3), Butterworth.with_tau(8, 5e-3), GaussianShaped(5e-3)],
    ids=["butterworth-2", "butterworth-3", "butterworth-8", "gaussian"],
)
def test_process_has_variance_1_and_its_correlation_time(spectrum):
    path = gaussian_process(spectrum, 2_000_000, RATE_HZ, stream(1, "test"))

    # 200 s and a correlation time of 5 ms: the standard error of either is about 0.01.
    assert path.mean() == pytest.approx(0, abs=0.03)
    assert path.var() == pytest.approx(1, abs=0.04)
    assert autocorrelation_at(path, 50) == pytest.approx(math.exp(-1), abs=0.03)
    assert autocorrelation_at(path, 20) == pytest.approx(spectrum.autocorrelation(2e-3), abs=0.03)


def test_correlation_time_of_order_3_is_0_32_over_the_cutoff():
    assert Butterworth.with_tau(3, 1.0).cutoff_hz == pytest.approx(0.32, rel=0.03)


def test_process_is_stationary_at_both_ends_and_they_are_independent():
    spectrum = Butterworth.with_tau(3, 5e-3)
    paths = np.array([gaussian_process(spectrum, 500, RATE_HZ, stream(seed, "ends")) for seed in range(4000)])

    # Standard error of a variance over 4000 draws: 0.022.
    assert paths[:, 0].var() == pytest.approx(1, abs=0.09)
    assert paths[:, -1].var() == pytest.approx(1, abs=0.09)
    assert np.corrcoef(paths[:, 0], paths[:, -1])[0, 1] == pytest.approx(0, abs=0.06)
    # The slope at the ends equals that in the middle: no transient.
    slopes = np.diff(paths, axis=1).var(axis=0)
    assert slopes[0] == pytest.approx(slopes.mean(), rel=0.12)
    assert slopes[-1] == pytest.approx(slopes.mean(), rel=0.12)


def test_band_has_no_power_outside():
    path = gaussian_process(Band(1.0, 10.0), 1_000_000, RATE_HZ, stream(1, "band"))
    power = np.abs(np.fft.rfft(path)) ** 2
    frequency = np.fft.rfftfreq(path.size, 1 / RATE_HZ)

    assert power[(frequency > 0.5) & (frequency < 20)].sum() / power.sum() > 0.95


def test_only_a_first_order_process_crosses_levels_more_often_when_sampled_faster():
    """The reason why order 1 is refused."""

    def crossings(path):
        return np.count_nonzero((path[1:] < 0) != (path[:-1] < 0))

    rng = stream(1, "first order")
    a = math.exp(-1 / 500)
    from scipy.signal import lfilter

    first_order = lfilter([math.sqrt(1 - a * a)], [1, -a], rng.standard_normal(1_000_000))
    ours = gaussian_process(Butterworth(2, 10.0), 1_000_000, RATE_HZ, rng)

    assert crossings(first_order) > 3 * crossings(first_order[::16])
    assert crossings(ours) < 1.25 * crossings(ours[::16])


def test_first_order_is_refused_with_the_reason():
    with pytest.raises(TraceError, match=r"order: 1 is a first-order process.*infinitely often") as refused:
        settle("testbed", {"order": 1})
    assert "order=2" in refused.value.remedy
    with pytest.raises(TraceError, match="infinitely often"):
        Butterworth(1, 10.0)


def test_warped_process_keeps_its_variance_and_changes_speed_smoothly():
    tau_s = np.array([2e-3] * 51 + list(np.linspace(2e-3, 8e-3, 50)) + [8e-3] * 102)
    path = warped_process(Butterworth.with_tau(3, 1.0), tau_s, 2_000_000, RATE_HZ, stream(3, "warped"))

    assert path[:500_000].var() == pytest.approx(1, abs=0.06)
    assert path[1_000_000:].var() == pytest.approx(1, abs=0.08)
    assert autocorrelation_at(path[:500_000], 20) == pytest.approx(math.exp(-1), abs=0.05)
    assert autocorrelation_at(path[1_000_000:], 80) == pytest.approx(math.exp(-1), abs=0.06)
    steps = np.abs(np.diff(path))
    at_seconds = steps[int(RATE_HZ) - 1 :: int(RATE_HZ)]
    assert at_seconds.max() < 1.01 * steps.max()
    assert at_seconds.mean() == pytest.approx(steps.mean(), rel=0.25)


# Distributions.


@pytest.mark.parametrize("quantile", [lognormal, gamma, weibull])
@given(variance=st.floats(0.001, 3.0))
@settings(max_examples=40)
def test_factor_has_mean_1_and_its_variance_and_never_falls(quantile, variance):
    power = np.exp(quantile(NODES, variance))
    weight = np.exp(-(NODES**2) / 2) / math.sqrt(2 * math.pi)

    assert np.all(np.diff(power) >= 0)
    mean = integrate.simpson(power * weight, x=NODES)
    assert mean == pytest.approx(1, rel=2e-3)
    assert integrate.simpson(power**2 * weight, x=NODES) - mean**2 == pytest.approx(variance, rel=0.02)


@pytest.mark.parametrize("variance", [0.05, 0.4, 1.5])
def test_quantiles_match_scipy(variance):
    g = np.array([-6.0, -3.0, -1.0, 0.0, 1.0, 3.0, 6.0])
    probability = special.ndtr(g)
    shape = weibull_shape(variance)
    ours = {name: np.exp(f(g, variance)) for name, f in (("lognormal", lognormal), ("gamma", gamma), ("weibull", weibull))}

    sigma = math.sqrt(math.log1p(variance))
    np.testing.assert_allclose(
        ours["lognormal"], stats.lognorm(sigma, scale=math.exp(-(sigma**2) / 2)).ppf(probability), rtol=1e-6
    )
    np.testing.assert_allclose(ours["gamma"], stats.gamma(1 / variance, scale=variance).ppf(probability), rtol=1e-5)
    scale = 1 / math.gamma(1 + 1 / shape)
    np.testing.assert_allclose(ours["weibull"], stats.weibull_min(shape, scale=scale).ppf(probability), rtol=1e-5)


def independent_samples(trace, apart_s):
    return trace["power_w"][:: int(apart_s * RATE_HZ)] / trace.meta["parameters"]["mean_power_w"]


@pytest.mark.parametrize(
    ("overrides", "distribution"),
    [
        (
            {"marginal": "lognormal", "scintillation_index": 0.2},
            stats.lognorm(math.sqrt(math.log(1.2)), scale=1 / math.sqrt(1.2)),
        ),
        (
            {"marginal": "weibull", "scintillation_index": weibull_variance(1.83)},
            stats.weibull_min(1.83, scale=1 / math.gamma(1 + 1 / 1.83)),
        ),
        ({"marginal": "gamma-gamma", "alpha": 1e4, "beta": 3.0}, stats.gamma(3.0, scale=1 / 3.0)),
    ],
    ids=["lognormal", "weibull", "gamma-gamma with X at rest"],
)
def test_samples_follow_the_distribution(overrides, distribution):
    trace = synthesize("testbed", duration_s=100, seed=11, sway=0, tau_s=3e-3, **overrides)

    # Samples 8 correlation times apart are nearly independent: 4166 of them.
    assert stats.kstest(independent_samples(trace, 0.024), distribution.cdf).pvalue > 0.01


def test_gamma_gamma_follows_the_distribution_of_a_product():
    trace = synthesize("fasolt", duration_s=400, seed=5, transmitters=1)
    rng = np.random.default_rng(1)
    drawn = rng.gamma(4.5, 1 / 4.5, 100_000) * rng.gamma(2.5, 1 / 2.5, 100_000)

    assert stats.ks_2samp(independent_samples(trace, 0.1), drawn).pvalue > 0.01


def test_mapping_between_knots_has_no_step_and_keeps_the_mean():
    g = gaussian_process(Butterworth.with_tau(3, 2e-3), 400_000, 1000.0, stream(1, "map"))
    tables = [lognormal(NODES, v) for v in np.linspace(0.05, 0.3, 402)]
    power = mapped(g, tables, 1000.0)

    assert power.mean() == pytest.approx(1, abs=0.01)
    assert power[:50_000].var() < power[-50_000:].var() / 3
    constant = mapped(np.full(400_000, -2.0), tables, 1000.0)
    assert np.abs(np.diff(constant)).max() < 3e-5


@pytest.mark.parametrize("name", MARGINALS)
@given(seed=st.integers(0, 2**63), index=st.floats(0.01, 0.6))
@settings(max_examples=5)
def test_every_distribution_gives_power_above_0(name, seed, index):
    trace = synthesize("testbed", duration_s=5, seed=seed, sway=0, marginal=name, scintillation_index=index, alpha=1 / index)

    assert np.all(trace["power_w"] > 0)
    assert np.all(np.isfinite(trace["power_w"]))

"""Distributions of rain attenuation, the underlying process, and that synthetic series follow both."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("scipy")

from scipy import stats

from farlink.channels.rain.distribution import MARGINALS, Distribution, lognormal
from farlink.channels.rain.process import TWO_SCALES, first_order, normal_process
from farlink.errors import TraceError

# P.618 for 19.7 GHz at 30 degrees over Louvain-la-Neuve, two digits.
LOUVAIN = Distribution([0.001, 0.01, 0.1, 1.0, 5.0], [25.0, 12.0, 4.2, 1.0, 0.31], 6.9)


@st.composite
def distributions(draw):
    size = draw(st.integers(2, 8))
    rains = draw(st.floats(0.5, 100))
    shares = np.sort(draw(st.lists(st.floats(1e-4, 0.95), min_size=size, max_size=size, unique=True)))
    if np.min(np.diff(np.log(shares))) < 0.05:
        shares = np.geomspace(1e-3, 0.5, size)
    steps = draw(st.lists(st.floats(0.05, 2), min_size=size, max_size=size))
    return Distribution(rains * shares, np.exp(np.cumsum(steps))[::-1] / 5, rains)


@given(distribution=distributions(), share=st.floats(1e-4, 0.999))
def test_share_and_attenuation_are_each_others_inverse(distribution, share):
    percent = share * distribution.rain_percent

    assert float(distribution.exceeded_percent(distribution.exceeded_db(percent))) == pytest.approx(percent, rel=1e-6)


@given(distribution=distributions())
def test_the_distribution_passes_its_points_and_is_monotone(distribution):
    fine = np.geomspace(distribution.percent[0] / 10, distribution.rain_percent, 200)

    np.testing.assert_allclose(distribution.exceeded_db(distribution.percent), distribution.attenuation_db, rtol=1e-9)
    assert np.all(np.diff(distribution.exceeded_db(fine)) <= 0)
    assert float(distribution.exceeded_db(distribution.rain_percent)) == 0


def test_a_lognormal_distribution_is_recovered():
    true = Distribution([0.01, 5.0], np.exp(-0.9 + 1.1 * stats.norm.isf(np.array([0.01, 5.0]) / 7)), 7.0)
    percent = np.geomspace(0.001, 6.9, 50)

    np.testing.assert_allclose(lognormal(true).exceeded_db(percent), true.exceeded_db(percent))
    assert float(true.exceeded_db(3.5)) == pytest.approx(math.exp(-0.9))


@given(distribution=distributions(), deviates=st.lists(st.floats(-6, 6), min_size=2, max_size=30))
def test_a_deviate_is_exceeded_as_often_as_its_attenuation(distribution, deviates):
    deviate = np.sort(np.array(deviates))
    found = distribution.of_normal(deviate)

    assert np.all(np.diff(found) >= 0)
    assert np.all((found > 0) <= (stats.norm.sf(deviate) * 100 <= distribution.rain_percent * (1 + 1e-9)))
    wet = found > 1e-12
    np.testing.assert_allclose(distribution.exceeded_percent(found[wet]), 100 * stats.norm.sf(deviate[wet]), rtol=1e-6)


@pytest.mark.parametrize("name", MARGINALS)
def test_every_marginal_is_dry_as_often_as_asked_and_never_negative(name):
    deviate = stats.norm.isf((np.arange(100_000) + 0.5) / 100_000)
    found = MARGINALS[name](LOUVAIN)(deviate)

    assert found.min() == 0
    assert 100 * np.mean(found > 0) == pytest.approx(LOUVAIN.rain_percent, abs=0.002)


@pytest.mark.parametrize(
    ("percent", "attenuation", "rains", "said"),
    [
        ([0.1], [4.0], 5, "1 shares of the time and 1 attenuations"),
        ([0.1, 1], [4.0], 5, "2 shares of the time and 1 attenuations"),
        ([1, 0.1], [1.0, 4.0], 5, "shares of the time from 1 to 0.1 %"),
        ([0.1, 5], [4.0, 1.0], 5, "below the 5 % of the time with rain"),
        ([0.1, 1], [1.0, 4.0], 5, "attenuations from 1 to 4 dB"),
        ([0.1, 1], [4.0, -1.0], 5, "attenuations from 4 to -1 dB"),
        ([0.1, 1], [4.0, math.nan], 5, "attenuations from 4 to nan dB"),
        ([0.1, 1], [4.0, 1.0], 0, "rain for 0 % of the time"),
        ([0.1, 1], [4.0, 1.0], 101, "rain for 101 % of the time"),
    ],
)
def test_refused_distributions(percent, attenuation, rains, said):
    with pytest.raises(TraceError) as refused:
        Distribution(percent, attenuation, rains)

    assert said in f"{refused.value.message} {refused.value.remedy}"


def test_rain_too_rare_for_a_fit_is_refused():
    with pytest.raises(TraceError, match=r"rain for 0.015 % of the time") as refused:
        lognormal(Distribution([0.001, 0.005], [4.0, 1.0], 0.015))

    assert "too rare for a lognormal fit: distribution=prediction" in refused.value.remedy


# The process.


@pytest.mark.parametrize("step_s", [1.0, 60.0])
@pytest.mark.parametrize("parts", [first_order(2e-4), TWO_SCALES], ids=["first-order", "two-scales"])
def test_process_has_standard_normal_samples_from_the_first(parts, step_s):
    ends = np.array([normal_process(20, step_s, parts, np.random.default_rng(seed))[[0, -1]] for seed in range(4000)])

    # Five standard errors of a mean, and of a variance, of 4000.
    assert np.abs(ends.mean(axis=0)).max() < 5 / math.sqrt(4000)
    assert np.abs(ends.var(axis=0) - 1).max() < 5 * math.sqrt(2 / 4000)


@settings(max_examples=20)
@given(step_s=st.sampled_from([10.0, 60.0, 600.0]), rate_per_s=st.floats(1e-4, 1e-3), seed=st.integers(0, 1000))
def test_first_order_forgets_exponentially(step_s, rate_per_s, seed):
    process = normal_process(200_000, step_s, first_order(rate_per_s), np.random.default_rng(seed))
    keep = math.exp(-rate_per_s * step_s)

    # Innovations are white and of the variance that keeps the process standard.
    innovation = process[1:] - keep * process[:-1]
    assert innovation.var() == pytest.approx(1 - keep**2, rel=5 * math.sqrt(2 / 200_000))
    assert abs(np.mean(innovation[1:] * innovation[:-1])) / innovation.var() < 5 / math.sqrt(200_000)


def test_correlation_of_two_scales_is_that_of_their_parts():
    lag_s, steps = 600.0, 10
    runs = []
    for seed in range(40):
        process = normal_process(400_000, lag_s / steps, TWO_SCALES, np.random.default_rng(seed))
        runs.append(np.mean(process[:-steps] * process[steps:]) / np.mean(process**2))
    found, error = float(np.mean(runs)), float(np.std(runs, ddof=1) / math.sqrt(len(runs)))

    # By hand, for a small step: weights squared on each rate, and the product of both on their common noise.
    rates, weights = np.array([part.rate_per_s for part in TWO_SCALES]), np.array([part.weight for part in TWO_SCALES])
    common = 2 * math.sqrt(rates.prod()) / rates.sum()
    decay = np.exp(-rates * lag_s)
    wanted = weights**2 @ decay + weights.prod() * common * decay.sum()
    assert found == pytest.approx(wanted / (weights @ weights + 2 * weights.prod() * common), abs=4 * error + 1e-3)


def test_long_series_meet_the_distribution_only_without_an_offset():
    percent = np.array([0.1, 0.3, 1.0, 3.0])
    levels = LOUVAIN.exceeded_db(percent)
    shares = {name: [] for name in ("prediction", "offset-lognormal")}
    for seed in range(15):
        process = normal_process(500_000, 120.0, first_order(2e-4), np.random.default_rng(seed))
        for name, runs in shares.items():
            series = MARGINALS[name](LOUVAIN)(process)
            runs.append([100 * np.mean(series > level) for level in levels])
    mean = {name: np.mean(runs, axis=0) for name, runs in shares.items()}
    half = stats.t.ppf(0.999, 14) * np.std(shares["prediction"], axis=0, ddof=1) / math.sqrt(15)

    assert np.all(np.abs(mean["prediction"] - percent) <= half)
    assert np.all(np.abs(mean["offset-lognormal"] - percent)[2:] > half[2:])

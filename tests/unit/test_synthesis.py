"""Synthetic fading: distribution, correlation, passes, blockages, labels, and the measured fades that it has to meet."""

from __future__ import annotations

import json
import math
import os
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, special, stats

from farlink.channels import cache
from farlink.channels.fades import fade_statistics
from farlink.channels.synthesis import PARAMETERS, PRESETS, downlink, settle, synthesize, synthetic_file
from farlink.channels.synthesis.blockage import Renewal, tracking_losses, transmission
from farlink.channels.synthesis.elements import next_pass
from farlink.channels.synthesis.marginals import (
    MARGINALS,
    NODES,
    gamma,
    gamma_gamma_index,
    lognormal,
    mapped,
    weibull,
    weibull_shape,
    weibull_variance,
)
from farlink.channels.synthesis.orbit import LIGHT_SPEED_M_PER_S, CircularPass
from farlink.channels.synthesis.pointing import jitter, jitter_index
from farlink.channels.synthesis.process import Band, Butterworth, GaussianShaped, gaussian_process, warped_process
from farlink.channels.synthesis.streams import stream
from farlink.channels.synthesis.summary import summary_lines
from farlink.channels.synthesis.text import parse
from farlink.channels.trace import read, resolve
from farlink.errors import TraceError

RATE_HZ = 10_000.0

# Rate per second and mean length in ms of the fades below a threshold in dB: one measured record each, of 60 s and 120 s.
MEASURED = {
    "moderate": {-3: (33.2, 6.2), -6: (15.3, 4.1), -10: (4.4, 2.7)},
    "weak": {-3: (8.9, 3.0), -6: (0.983, 2.36)},
}


def autocorrelation_at(path, lag):
    centred = path - path.mean()
    return float((centred[:-lag] * centred[lag:]).mean() / centred.var())


# Processes.


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
    # The slope at the ends is that of the middle: no transient.
    slopes = np.diff(paths, axis=1).var(axis=0)
    assert slopes[0] == pytest.approx(slopes.mean(), rel=0.12)
    assert slopes[-1] == pytest.approx(slopes.mean(), rel=0.12)


def test_band_has_no_power_outside():
    path = gaussian_process(Band(1.0, 10.0), 1_000_000, RATE_HZ, stream(1, "band"))
    power = np.abs(np.fft.rfft(path)) ** 2
    frequency = np.fft.rfftfreq(path.size, 1 / RATE_HZ)

    assert power[(frequency > 0.5) & (frequency < 20)].sum() / power.sum() > 0.95


def test_first_order_crosses_levels_more_often_the_faster_it_is_sampled_and_ours_does_not():
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


def test_warped_process_keeps_its_variance_while_its_speed_changes_without_a_step():
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
@settings(max_examples=40, deadline=None)
def test_factor_has_mean_1_and_its_variance_and_never_falls(quantile, variance):
    power = np.exp(quantile(NODES, variance))
    weight = np.exp(-(NODES**2) / 2) / math.sqrt(2 * math.pi)

    assert np.all(np.diff(power) >= 0)
    mean = integrate.simpson(power * weight, x=NODES)
    assert mean == pytest.approx(1, rel=2e-3)
    assert integrate.simpson(power**2 * weight, x=NODES) - mean**2 == pytest.approx(variance, rel=0.02)


@pytest.mark.parametrize("variance", [0.05, 0.4, 1.5])
def test_quantiles_are_those_of_scipy(variance):
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

    # 8 correlation times apart, samples are as good as independent: 4166 of them.
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
@settings(max_examples=5, deadline=None)
def test_every_distribution_gives_power_above_0(name, seed, index):
    trace = synthesize("testbed", duration_s=5, seed=seed, sway=0, marginal=name, scintillation_index=index, alpha=1 / index)

    assert np.all(trace["power_w"] > 0)
    assert np.all(np.isfinite(trace["power_w"]))


# Presets.


@pytest.mark.parametrize(("name", "index", "tau_s"), [("testbed", 0.12, 3e-3), ("atenaa", 0.2, 3.5e-3)])
def test_index_and_correlation_time_of_a_preset(name, index, tau_s):
    powers = [synthesize(name, seed=seed, sway=0, clear_mean_s=0)["power_w"] for seed in (1, 2, 3)]

    found = [power.var() / power.mean() ** 2 for power in powers]
    assert np.mean(found) == pytest.approx(index, rel=0.04)
    # The logarithm is the Gaussian process itself.
    assert np.mean([autocorrelation_at(np.log(p), round(tau_s * RATE_HZ)) for p in powers]) == pytest.approx(
        math.exp(-1), abs=0.02
    )


def test_fasolt_is_the_mean_of_two_beams():
    two = [synthesize("fasolt", seed=seed)["power_w"] for seed in range(4)]
    one = [synthesize("fasolt", seed=seed, transmitters=1)["power_w"] for seed in range(4)]

    index = gamma_gamma_index(4.5, 2.5)
    assert index == pytest.approx(0.711, abs=0.001)
    assert np.mean([p.var() / p.mean() ** 2 for p in one]) == pytest.approx(index, rel=0.08)
    assert np.mean([p.var() / p.mean() ** 2 for p in two]) == pytest.approx(index / 2, rel=0.08)
    second = 2 * two[0] - one[0]
    assert abs(np.corrcoef(one[0], second)[0, 1]) < 0.1


@pytest.mark.parametrize("name", PRESETS)
def test_preset_is_reproducible_and_labelled(name):
    trace = synthesize(name, duration_s=20, seed=3)

    assert trace.to_bytes() == synthesize(name, duration_s=20, seed=3).to_bytes()
    assert not np.array_equal(trace["power_w"], synthesize(name, duration_s=20, seed=4)["power_w"])
    assert trace.kind == "power"
    assert trace.title.endswith("(synthetic)")
    assert trace.meta["synthetic"] is True
    assert (trace.meta["preset"], trace.meta["seed"], trace.duration_s) == (name, 3, 20.0)
    assert set(trace.meta["parameters"]) == set(PARAMETERS)
    assert trace.meta["notes"].startswith("Not measured")
    assert trace["power_w"].size == 200_000
    clear = trace["power_w"] if "blocked" not in trace.arrays else trace["power_w"][trace["blocked"] == 0]
    assert clear.mean() == pytest.approx(37.2e-9, rel=0.25)


def test_a_setting_leaves_the_other_parts_alone():
    plain = synthesize("testbed", duration_s=5, sway=0)["power_w"]
    swaying = synthesize("testbed", duration_s=5)["power_w"]
    brighter = synthesize("testbed", duration_s=5, sway=0, mean_power_w=74.4e-9)["power_w"]

    np.testing.assert_allclose(brighter, 2 * plain)
    ratio = swaying / plain
    assert ratio.std() == pytest.approx(0.05, rel=0.6)
    assert np.abs(np.diff(ratio)).max() < 2e-3


def test_presets_with_the_same_seed_do_not_fade_together():
    one, other = (synthesize(name, duration_s=50, sway=0, clear_mean_s=0)["power_w"] for name in ("testbed", "atenaa"))

    assert abs(np.corrcoef(one, other)[0, 1]) < 0.05


def test_drift_of_cn2_makes_seconds_differ():
    def spread(**overrides):
        power = synthesize("testbed", duration_s=200, sway=0, **overrides)["power_w"].reshape(20, -1)
        return np.std(np.log(power.var(axis=1) / power.mean(axis=1) ** 2))

    assert spread(cn2_drift=0.6, cn2_drift_tau_s=20) > 2.5 * spread()


# The measured records.


def fades_of(name, seeds):
    """Mean of rate and length below each threshold over runs of 100 s, and the half-widths of their 95 % intervals."""
    found = []
    for seed in range(1, seeds + 1):
        below = fade_statistics(synthesize(name, seed=seed)["power_w"], RATE_HZ, list(MEASURED[name]))
        found.append([(fade.rate_per_s, fade.mean_s) for fade in below])
    half_width = stats.t.ppf(0.975, seeds - 1) * np.std(found, axis=0, ddof=1) / math.sqrt(seeds)
    return dict(zip(MEASURED[name], zip(np.mean(found, axis=0), half_width, strict=True), strict=True))


def test_fades_of_the_moderate_record_are_met():
    found = fades_of("moderate", 10)

    for threshold_db in (-3, -6):
        (rate, length_s), (rate_half, length_half) = found[threshold_db]
        measured_rate, measured_ms = MEASURED["moderate"][threshold_db]
        # The whole interval lies within 20 %.
        assert abs(rate - measured_rate) + rate_half < 0.2 * measured_rate
        assert abs(1e3 * length_s - measured_ms) + 1e3 * length_half < 0.2 * measured_ms


def test_fades_of_the_weak_record_are_met():
    found = fades_of("weak", 20)

    for threshold_db in (-3, -6):
        (rate, length_s), _ = found[threshold_db]
        measured_rate, measured_ms = MEASURED["weak"][threshold_db]
        assert rate == pytest.approx(measured_rate, rel=0.2)
        assert 1e3 * length_s == pytest.approx(measured_ms, rel=0.2)


# Passes.


@pytest.mark.parametrize(("elevation_deg", "range_km"), [(5, 2352), (10, 1955), (20, 1412), (30, 1091), (60, 694), (90, 610)])
def test_range_by_elevation(elevation_deg, range_km):
    here = CircularPass(610e3, elevation_deg, 90.0)

    assert float(here.range_m(np.array(0.0))) / 1e3 == pytest.approx(range_km, abs=0.6)
    assert float(here.elevation_deg(np.array(0.0))) == pytest.approx(elevation_deg, abs=1e-6)


@given(altitude_m=st.floats(200e3, 1500e3), highest=st.floats(12, 90), start=st.floats(5, 10))
@settings(max_examples=50, deadline=None)
def test_pass_rises_culminates_and_falls(altitude_m, highest, start):
    rising = CircularPass(altitude_m, start, highest)
    time_s = np.linspace(0, 2 * rising.culmination_s, 201)
    elevation, distance = rising.elevation_deg(time_s), rising.range_m(time_s)

    assert elevation[0] == pytest.approx(start, abs=1e-3)
    assert elevation.max() == pytest.approx(highest, abs=1e-3)
    np.testing.assert_allclose(elevation, elevation[::-1], atol=1e-3)
    assert np.all(np.diff(elevation[:101]) > 0)
    assert np.all(np.diff(distance[:101]) < 0)
    falling = CircularPass(altitude_m, highest, highest, is_rising=False)
    # At the culmination itself elevation hardly changes with the phase.
    np.testing.assert_allclose(falling.range_m(time_s[:100]), distance[100:200], rtol=1e-4)


def test_falling_is_rising_reversed_in_geometry_and_power():
    rising = settle("kiodo", duration_s=60)
    end_deg = float(rising.geometry.elevation_deg(np.array(60.0)))
    falling = settle("kiodo", {"direction": "falling", "start_elevation_deg": end_deg}, duration_s=60)

    np.testing.assert_allclose(falling.delay()["delay_s"][1:], rising.delay()["delay_s"][:0:-1], rtol=1e-5)
    seconds = falling.power()["power_w"].reshape(60, -1).mean(axis=1)
    assert seconds[:10].mean() > 1.2 * seconds[-10:].mean()


def test_whole_pass_is_as_long_as_the_pass():
    wanted = settle("kiodo", {"direction": "whole", "sample_rate_hz": 3000})

    assert (
        wanted.duration_s == math.floor(wanted.geometry.duration_s) == pytest.approx(2 * wanted.geometry.culmination_s, abs=1)
    )
    elevation = wanted.geometry.elevation_deg(np.array([0, wanted.duration_s / 2, wanted.duration_s]))
    assert elevation == pytest.approx([5, 90, 5], abs=0.5)


def test_delay_is_the_range_over_the_speed_of_light():
    trace = settle("kiodo").delay()

    assert trace.kind == "delay"
    assert trace["time_s"].size == 10_000
    assert trace["delay_s"][0] == pytest.approx(2352.1e3 / LIGHT_SPEED_M_PER_S, rel=1e-4)
    assert np.all(np.diff(trace["delay_s"]) < 0)
    assert trace.meta["synthetic"] is True
    assert trace.title.endswith("(synthetic)")
    with pytest.raises(TraceError, match="testbed has no pass"):
        settle("testbed").delay()


def test_index_follows_the_elevation():
    """In each ten seconds the index is that of the table."""
    wanted = {"jitter_rad": 0, "tracking_loss_every_s": 0, "transmit_power": "elevation"}
    powers = [synthesize("kiodo", seed=seed, duration_s=300, **wanted)["power_w"].reshape(30, -1) for seed in (1, 2)]
    found = np.mean([p.var(axis=1) / p.mean(axis=1) ** 2 for p in powers], axis=0)
    elevation = settle("kiodo", duration_s=300).geometry.elevation_deg(10 * np.arange(30) + 5.0)

    np.testing.assert_allclose(found, downlink.scintillation_index(elevation), rtol=0.2)


@pytest.mark.parametrize(
    ("elevation_deg", "index"), [(5, 0.31), (10, 0.16), (20, 0.046), (30, 0.018), (60, 0.004), (90, 0.003)]
)
def test_table_by_elevation(elevation_deg, index):
    assert downlink.scintillation_index(np.array(float(elevation_deg))) == pytest.approx(index)
    assert 1.6e-3 <= downlink.correlation_time_s(np.array(float(elevation_deg))) <= 3.5e-3


def test_factor_on_the_correlation_time():
    quiet = {"jitter_rad": 0, "tracking_loss_every_s": 0, "transmit_power": "elevation"}
    slow, usual = (np.log(synthesize("kiodo", duration_s=60, tau_factor=f, **quiet)["power_w"]) for f in (2.0, 1.0))

    assert autocorrelation_at(slow, 60) == pytest.approx(autocorrelation_at(usual, 30), abs=0.04)
    with pytest.raises(TraceError, match=r"tau_s: 0\.000185 is below 5 samples"):
        settle("kiodo", {"tau_factor": 0.1})


def test_small_aperture_scintillates_more_and_is_gamma_gamma_at_low_elevation():
    elevation = np.array([5.0, 14.0, 16.0, 90.0])

    assert np.all(downlink.scintillation_index(elevation, 0.05) > 2 * downlink.scintillation_index(elevation, 0.4))
    np.testing.assert_array_equal(downlink.gamma_gamma_share(elevation, 0.05), [1, 1, 0, 0])
    np.testing.assert_array_equal(downlink.gamma_gamma_share(elevation, 0.4), [0, 0, 0, 0])
    quiet = {"jitter_rad": 0, "tracking_loss_every_s": 0, "transmit_power": "elevation", "aperture_m": 0.08}
    power = np.concatenate([synthesize("kiodo", seed=seed, duration_s=40, **quiet)["power_w"] for seed in (1, 2, 3, 4)])
    found = power / power.mean()
    expected = downlink.scintillation_index(settle("kiodo", duration_s=40).geometry.elevation_deg(np.arange(41.0)), 0.08).mean()
    assert found.var() == pytest.approx(expected, rel=0.2)
    # Gamma-gamma has deeper fades than lognormal fading of the same index.
    sigma = math.sqrt(math.log1p(expected))
    below = stats.norm.cdf((math.log(0.1) + sigma**2 / 2) / sigma)
    assert (found < 0.1).mean() > 1.2 * below


def test_power_follows_distance_unless_the_transmitter_makes_up_for_it():
    quiet = {"jitter_rad": 0, "tracking_loss_every_s": 0, "scintillation_index": 1e-6}
    wanted = settle("kiodo", quiet, duration_s=100)
    power = wanted.power()["power_w"]
    ends_m = wanted.geometry.range_m(np.array([0.0, 100.0]))

    assert power[-1] / power[0] == pytest.approx((ends_m[0] / ends_m[1]) ** 2, rel=0.01)
    assert power.mean() == pytest.approx(37.2e-9, rel=1e-3)
    hazy = synthesize("kiodo", duration_s=100, zenith_loss_db=1.0, **quiet)["power_w"]
    assert hazy[-1] / hazy[0] > 2 * power[-1] / power[0]
    adapted = synthesize("kiodo", duration_s=100, zenith_loss_db=1.0, transmit_power="elevation", **quiet)["power_w"]
    assert adapted[:10_000].mean() == pytest.approx(adapted[-10_000:].mean(), rel=1e-3)
    assert adapted.mean() == pytest.approx(37.2e-9, rel=1e-3)


@pytest.fixture
def elements():
    root = Path(os.environ.get("FARLINK_DATA", Path(__file__).resolve().parents[3] / "shared" / "data"))
    file = root / "tle" / "iridium-next.2025-01.txt"
    if not file.is_file():
        pytest.skip(f"{file} is not there: set FARLINK_DATA to the directory of the measured data")
    return file


STATION = {"latitude_deg": 48.087, "longitude_deg": 11.28, "height_m": 600.0}


def test_pass_from_elements(elements):
    pytest.importorskip("skyfield")
    found = next_pass(elements, "IRIDIUM 106", max_elevation_deg=40.0, **STATION)
    time_s = np.arange(0.0, found.duration_s, 5.0)
    elevation, distance = found.elevation_deg(time_s), found.range_m(time_s)

    assert elevation[0] == pytest.approx(5, abs=0.1)
    assert elevation.max() >= 40
    # Iridium flies at 780 km.
    assert 770e3 < distance.min() < 1300e3
    assert distance[0] == pytest.approx(float(CircularPass(780e3, 5.0, 90.0).range_m(np.array(0.0))), rel=0.02)
    circular = CircularPass(780e3, 5.0, float(elevation.max()))
    assert found.duration_s == pytest.approx(circular.duration_s, rel=0.08)


def test_synthesis_from_elements(elements):
    pytest.importorskip("skyfield")
    given = {"orbit": "elements", "elements": str(elements), "satellite": "41917", "max_elevation_deg": 30, **STATION}
    rising, falling = settle("kiodo", given), settle("kiodo", {**given, "direction": "falling", "start_elevation_deg": 15})

    assert rising.power().meta["pass_start_utc"].startswith("2025-01-2")
    assert rising.delay()["delay_s"][0] > rising.delay()["delay_s"][-1]
    with pytest.raises(TraceError, match="longer than the pass"):
        settle("kiodo", {**given, "direction": "falling", "start_elevation_deg": 15}, duration_s=500)
    assert falling.geometry.elevation_deg(np.array(0.0)) == pytest.approx(15, abs=0.01)
    with pytest.raises(TraceError, match="has no 'IRIDUM 106'") as refused:
        settle("kiodo", {**given, "satellite": "IRIDUM 106"})
    assert "IRIDIUM 106" in refused.value.remedy
    with pytest.raises(TraceError, match="no pass of 41917 reaches 90 degrees"):
        settle("kiodo", {**given, "max_elevation_deg": 90})
    with pytest.raises(TraceError, match="'noon' is not a time"):
        settle("kiodo", {**given, "after_utc": "noon"})


def test_elements_need_a_file(tmp_path):
    pytest.importorskip("skyfield")
    text = tmp_path / "text.txt"
    text.write_text("nothing\n")

    with pytest.raises(TraceError, match="no two-line elements"):
        settle("kiodo", {"orbit": "elements", "elements": str(text), "satellite": "X"})
    with pytest.raises(TraceError, match="no such file"):
        settle("kiodo", {"orbit": "elements", "elements": str(tmp_path / "none"), "satellite": "X"})
    with pytest.raises(TraceError, match="satellite: empty"):
        settle("kiodo", {"orbit": "elements", "elements": str(text)})


# Pointing and blockage.


def test_jitter_has_mean_1_its_index_and_its_speed():
    factor = jitter(4_000_000, RATE_HZ, 1, jitter_rad=1e-6, beam_radius_rad=4e-6, cutoff_hz=50.0)

    assert factor.mean() == pytest.approx(1, abs=0.01)
    assert factor.var() == pytest.approx(jitter_index(1e-6, 4e-6), rel=0.1)
    # To the power 1 / k it is uniform.
    k = 4.0
    uniform = (factor * k / (k + 1)) ** k
    assert stats.kstest(uniform[::400], "uniform").pvalue > 0.01
    slow = jitter(400_000, RATE_HZ, 1, jitter_rad=1e-6, beam_radius_rad=4e-6, cutoff_hz=10.0)
    assert np.abs(np.diff(slow)).mean() < 0.3 * np.abs(np.diff(factor)).mean()


RENEWAL = Renewal(10.0, 0.6, (0.02, 0.2), (0.5, 4.0), (0.01, 0.05), (0.2, 2.0), 0.3)


def test_blockages_are_those_of_the_table():
    blocks = list(RENEWAL.blocks(100_000.0, stream(1, "blocks")))
    dark_s = np.array([block.dark_s for block in blocks])
    clear_s = np.array([b.start_s - a.end_s for a, b in pairwise(blocks)])
    short = dark_s <= 0.2

    assert short.mean() == pytest.approx(0.6, abs=0.02)
    assert stats.kstest(clear_s, stats.expon(scale=10.0).cdf).pvalue > 0.01
    assert stats.kstest(dark_s[short], stats.loguniform(0.02, 0.2).cdf).pvalue > 0.01
    assert stats.kstest(dark_s[~short], stats.loguniform(0.5, 4.0).cdf).pvalue > 0.01
    for block in blocks:
        assert 0.01 <= block.fall_s <= 0.05
        assert 0.01 <= block.rise_s <= 0.05
        assert (0.2 <= block.search_s <= 2.0) if block.dark_s > 0.3 else block.search_s == 0


def test_blocked_share_is_the_expected_one_from_the_first_second_on():
    mean_short, mean_long = (0.2 - 0.02) / math.log(10), (4 - 0.5) / math.log(8)
    each = 0.6 * mean_short + 0.4 * (mean_long + 1.1) + 0.06
    expected = each / (each + 10)

    shares, first = [], []
    for seed in range(1, 301):
        blocks = RENEWAL.blocks(100.0, stream(seed, "share"))
        blocked = transmission(blocks, 10_000, 100.0, 1e-4)[1]
        shares.append(blocked.mean())
        first.append(blocked[:100].mean())
    assert np.mean(shares) == pytest.approx(expected, rel=0.1)
    assert np.mean(first) == pytest.approx(expected, rel=0.45)


def test_edges_are_smooth_and_inside_the_mask():
    blocks = list(RENEWAL.blocks(200.0, stream(1, "edges")))
    passed, blocked = transmission(iter(blocks), 2_000_000, RATE_HZ, 1e-4)

    assert np.all(passed[~blocked] == 1)
    assert passed.min() == pytest.approx(1e-4)
    # The steepest cosine edge, of 10 ms, moves by pi / 2 / 100 a sample.
    assert np.abs(np.diff(passed)).max() <= 0.0158
    for block in blocks:
        if block.start_s > 0 and block.end_s < 200:
            dark = slice(
                math.ceil((block.start_s + block.fall_s) * RATE_HZ),
                int((block.start_s + block.fall_s + block.dark_s) * RATE_HZ),
            )
            assert passed[dark].max() < 2e-4


def test_kiodo_loses_tracking_at_about_30_60_and_90_s():
    trace = synthesize("kiodo", seed=9)
    starts = np.flatnonzero(np.diff(trace["blocked"].astype(int)) == 1) / RATE_HZ

    assert starts == pytest.approx([30, 60, 90], abs=1.1)
    assert 0.15 < trace["blocked"].mean() * 100 < 0.55
    lengths = [b.dark_s for b in tracking_losses(30_000.0, 30.0, 0.1, stream(1, "t"))]
    assert np.mean(lengths) == pytest.approx(0.1, rel=0.05)
    assert len(lengths) == pytest.approx(1000, abs=1)


def test_traces_without_blockage_have_no_mask():
    assert "blocked" not in synthesize("fasolt", duration_s=5).arrays
    assert "blocked" in synthesize("atenaa", duration_s=1).arrays


# What is refused.


@pytest.mark.parametrize(
    ("name", "given", "said", "remedy"),
    [
        ("kidoo", {}, "'kidoo' is no preset", "did you mean 'kiodo'?"),
        ("zzz", {}, "'zzz' is no preset", "choose one of: fasolt, kiodo"),
        ("kiodo", {"alfa": 3}, "'alfa' is no parameter", "did you mean 'alpha'?"),
        ("kiodo", {"alpha": "three"}, "alpha: 'three' is not a number from 0.2 to 10000", "for example 4.5"),
        ("kiodo", {"alpha": True}, "alpha: True is not a number", "shape of the slow factor"),
        ("kiodo", {"order": 1}, "order: 1 is a first-order process", "order=2 or more"),
        ("kiodo", {"alpha": math.nan}, "alpha: nan is not a number from 0.2", "shape of the slow factor"),
        ("kiodo", {"transmitters": 1.5}, "transmitters: 1.5 is not a whole number from 1 to 64", "beams"),
        ("kiodo", {"marginal": "weibul"}, "marginal: 'weibul' is not one of lognormal", "'weibull'?"),
        ("kiodo", {"start_elevation_deg": 3}, "start_elevation_deg: 3 is not a number from 5 to 90", "elevation at the start"),
        ("kiodo", {"max_elevation_deg": 5, "start_elevation_deg": 9}, "9 is above max_elevation_deg = 5", "at most max"),
        ("kiodo", {"orbit": "none"}, "scintillation_index: 0 means by elevation", "orbit=circular"),
        ("kiodo", {"direction": "falling"}, "comes down to 5 degrees after 0.0 s", "start_elevation_deg=14.5"),
        ("kiodo", {"duration_s": 1000}, "duration_s: 1000 s is longer than the pass", "at most 6"),
        ("testbed", {"duration_s": -1}, "duration_s: -1 is not above 0", "for example 100"),
        ("testbed", {"duration_s": math.inf}, "duration_s: inf is not above 0", "for example 100"),
        ("testbed", {"duration_s": 1e6}, "10,000,000,000 samples", "sample_rate_hz"),
        ("testbed", {"seed": -1}, "seed: -1 is not a whole number", "seed=1"),
        ("testbed", {"tau_s": 1e-4}, "tau_s: 0.0001 is below 5 samples", "sample faster"),
        ("testbed", {"sway_high_hz": 500, "sample_rate_hz": 4000}, "sway_high_hz: 500 is above a tenth", "sample faster"),
        ("atenaa", {"short_min_s": 1}, "short_min_s: 1 is above short_max_s = 0.2", "at most short_max_s"),
    ],
)  # fmt: skip
def test_refusals_name_value_rule_and_remedy(name, given, said, remedy):
    with pytest.raises(TraceError) as refused:
        synthesize(name, **given)

    assert said in refused.value.message
    assert remedy in refused.value.remedy


@given(
    name=st.sampled_from(sorted(PRESETS)),
    key=st.sampled_from(sorted(PARAMETERS)),
    value=st.one_of(st.floats(), st.text(max_size=8)),
)
@settings(max_examples=200, deadline=None)
def test_any_value_is_settled_or_refused(name, key, value):
    try:
        wanted = settle(name, {key: value}, duration_s=1)
    except TraceError:
        return
    known = PARAMETERS[key]
    if isinstance(known.default, str):
        assert not known.choices or wanted.values[key] in known.choices
    else:
        assert known.low <= wanted.values[key] <= known.high


# Names of traces.


def test_synthetic_name_is_drawn_once_into_the_cache():
    path = resolve("synthetic:testbed?seed=7&duration_s=2&sway=0", kinds=("power",))
    first = path.stat().st_mtime_ns
    trace = read(path)

    np.testing.assert_array_equal(trace["power_w"], synthesize("testbed", seed=7, duration_s=2, sway=0)["power_w"])
    assert trace.meta["parameters"]["sway"] == 0
    assert resolve("synthetic:testbed?seed=7&duration_s=2&sway=0").stat().st_mtime_ns == first
    assert resolve("synthetic:testbed?seed=8&duration_s=2&sway=0") != path
    assert path.parent == cache.directory()
    assert cache.import_file(Path("synthetic:testbed?seed=7&duration_s=2&sway=0")).title == trace.title


def test_damaged_file_in_the_cache_is_drawn_again():
    path = synthetic_file("synthetic:testbed?duration_s=1")
    whole = path.read_bytes()
    path.write_bytes(whole[:100])

    assert synthetic_file("synthetic:testbed?duration_s=1").read_bytes() == whole


@pytest.mark.parametrize(
    ("text", "said", "remedy"),
    [
        ("synthetic:kidoo", "'kidoo' is no preset", "did you mean 'kiodo'?"),
        ("synthetic:", "'' is no preset", "choose one of"),
        ("synthetic:kiodo?sed=7", "'sed' is no parameter", "choose one of"),
        ("synthetic:kiodo?seed=x", "seed: 'x' is not a whole number", "seed=1"),
        ("synthetic:kiodo?duration_s=long", "duration_s: 'long' is not a number of seconds", "duration_s=100"),
        ("synthetic:kiodo?seed", "'seed' is not key=value", "key=value"),
    ],
)
def test_refused_names(text, said, remedy):
    with pytest.raises(TraceError) as refused:
        resolve(text)

    assert said in refused.value.message
    assert remedy in refused.value.remedy


def test_power_is_refused_where_a_delay_is_wanted():
    with pytest.raises(TraceError, match=r"a power trace, where delay is wanted"):
        resolve("synthetic:kiodo", kinds=("delay",))


def test_summary_says_that_it_is_synthetic():
    wanted = parse("synthetic:atenaa?duration_s=20&seed=2")
    lines = dict(summary_lines(wanted, wanted.power()))

    assert lines["Title"] == "ATENAA, seed 2 (synthetic)"
    assert lines["Stands for"].endswith("not measured")
    assert "Blocked" in lines


def test_summary_tells_what_the_transmitter_makes_up_for():
    wanted = settle("kiodo", {"transmit_power": "elevation"}, duration_s=20)
    ends_m = wanted.geometry.range_m(np.array([0.0, 20.0]))

    line = dict(summary_lines(wanted, wanted.power()))["Path"]
    assert line == f"{20 * math.log10(ends_m[0] / ends_m[1]):.1f} dB, made up for by the transmitter"


def test_meta_is_plain_json():
    json.dumps(synthesize("kiodo", duration_s=1).meta, allow_nan=False)

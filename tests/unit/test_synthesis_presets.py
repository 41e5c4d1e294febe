"""Synthetic fading: properties of each preset, and the measured fades that it must match."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats
from tests.correlation import autocorrelation_at

from farlink.channels.fades import fade_statistics
from farlink.channels.synthesis import PARAMETERS, PRESETS, synthesize
from farlink.channels.synthesis.marginals import gamma_gamma_index

RATE_HZ = 10_000.0

# Rate per second and mean length in ms of the fades below a threshold in dB: one measured record each, of 60 s and 120 s.
MEASURED = {
    "moderate": {-3: (33.2, 6.2), -6: (15.3, 4.1), -10: (4.4, 2.7)},
    "weak": {-3: (8.9, 3.0), -6: (0.983, 2.36)},
}


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


def test_presets_with_the_same_seed_are_independent():
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


def test_moderate_preset_matches_its_measured_fades():
    found = fades_of("moderate", 10)

    for threshold_db in (-3, -6):
        (rate, length_s), (rate_half, length_half) = found[threshold_db]
        measured_rate, measured_ms = MEASURED["moderate"][threshold_db]
        # The whole interval lies within 20 %.
        assert abs(rate - measured_rate) + rate_half < 0.2 * measured_rate
        assert abs(1e3 * length_s - measured_ms) + 1e3 * length_half < 0.2 * measured_ms


def test_weak_preset_matches_its_measured_fades():
    found = fades_of("weak", 20)

    for threshold_db in (-3, -6):
        (rate, length_s), _ = found[threshold_db]
        measured_rate, measured_ms = MEASURED["weak"][threshold_db]
        assert rate == pytest.approx(measured_rate, rel=0.2)
        assert 1e3 * length_s == pytest.approx(measured_ms, rel=0.2)

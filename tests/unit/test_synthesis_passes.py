"""Synthetic fading over a pass: range, elevation, delay and index as the satellite moves."""

from __future__ import annotations

import math
import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from tests.correlation import autocorrelation_at

from farlink.channels.synthesis import downlink, settle, synthesize
from farlink.channels.synthesis.elements import next_pass
from farlink.channels.synthesis.orbit import LIGHT_SPEED_M_PER_S, CircularPass
from farlink.errors import TraceError


@pytest.mark.parametrize(("elevation_deg", "range_km"), [(5, 2352), (10, 1955), (20, 1412), (30, 1091), (60, 694), (90, 610)])
def test_range_by_elevation(elevation_deg, range_km):
    here = CircularPass(610e3, elevation_deg, 90.0)

    assert float(here.range_m(np.array(0.0))) / 1e3 == pytest.approx(range_km, abs=0.6)
    assert float(here.elevation_deg(np.array(0.0))) == pytest.approx(elevation_deg, abs=1e-6)


@given(altitude_m=st.floats(200e3, 1500e3), highest=st.floats(12, 90), start=st.floats(5, 10))
@settings(max_examples=50)
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
    """In every ten seconds the scintillation index matches the table."""
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


def test_power_follows_distance_unless_the_transmitter_compensates():
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
    with pytest.raises(TraceError, match="no pass of 41917 reaches 90 degrees within 10 days"):
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


def test_the_turbulence_profile_is_hufnagel_valley_5_7():
    """The profile's name: a coherence length of 5 cm and an isoplanatic angle of 7 microradians at 0.5 um at zenith."""
    height = np.geomspace(0.01, 40e3, 20_001)
    profile, square = downlink.hufnagel_valley(height), (2 * math.pi / 0.5e-6) ** 2

    coherence_m = (0.423 * square * np.trapezoid(profile, height)) ** (-3 / 5)
    angle_rad = (2.914 * square * np.trapezoid(profile * height ** (5 / 3), height)) ** (-3 / 5)

    assert coherence_m == pytest.approx(0.05, rel=0.02)
    assert angle_rad == pytest.approx(7e-6, rel=0.02)


@pytest.mark.parametrize("is_rising", [True, False])
@pytest.mark.parametrize(("altitude_m", "start", "highest"), [(550e3, 5.0, 90.0), (780e3, 2.0, 40.0), (36_500e3, 30.0, 80.0)])
def test_culmination_and_set_times_match_the_pass(altitude_m, start, highest, is_rising):
    here = CircularPass(altitude_m, start, highest, is_rising)
    culminates_s, sets_s = here.culmination_s, here.duration_s

    assert float(here.elevation_deg(np.array(culminates_s))) == pytest.approx(highest, abs=1e-4)
    assert float(here.elevation_deg(np.array(sets_s))) == pytest.approx(min(5.0, start), abs=1e-6)
    assert (culminates_s > 0) is is_rising


def test_a_geostationary_satellite_never_sets():
    assert CircularPass(35_786e3, 30.0, 80.0).duration_s == np.inf

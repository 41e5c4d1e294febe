"""Attenuation from levels, its transfer to another path, and refusals."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("scipy")

from farlink.channels.importers.recording import Hints, load_one
from farlink.channels.rain.convert import cn0_of_measured
from farlink.channels.rain.levels import Measured, read_measured
from farlink.channels.rain.measured import attenuation_of_levels
from farlink.channels.rain.prediction import SlantPath, length_in_rain_m, specific_attenuation
from farlink.channels.rain.scaling import GroundPath, rain_rate_mm_per_h, to_slant_path
from farlink.errors import TraceError

DATA = Path(os.environ.get("FARLINK_DATA") or Path(__file__).parents[3] / "shared" / "data") / "cml-pycomlink"
MINUTES = np.arange(3 * 1440.0) * 60
ON_THE_LINK = {"clear_sky_dbhz": 80, "scale": "none"}


def levels_with_a_shower():
    """Three days: noise of 0.3 dB, a shower of half an hour up to 12 dB on the second day, a drift of 1 dB per day."""
    rng = np.random.default_rng(1)
    rain = np.zeros(MINUTES.size)
    rain[2000:2030] = 12 * np.hanning(32)[1:-1]
    return rain, 60 + MINUTES / 86_400 + 0.15 * rng.standard_normal(MINUTES.size) + rain


def read(tmp_path, text, **hints):
    path = tmp_path / "link.csv"
    path.write_text(text)
    return read_measured(load_one(path, None, Hints(**hints)))


def test_a_shower_is_found_on_a_drifting_level():
    rain, loss_db = levels_with_a_shower()
    found = attenuation_of_levels(MINUTES, loss_db)

    assert np.abs(found - rain).max() < 1
    assert np.count_nonzero(found[:1900]) == np.count_nonzero(found[2200:]) == 0


def test_missing_levels_stay_missing_and_leave_the_rest_alone():
    _, loss_db = levels_with_a_shower()
    holed = loss_db.copy()
    holed[[10, 2010, 4000]] = np.nan
    found, whole = attenuation_of_levels(MINUTES, holed), attenuation_of_levels(MINUTES, loss_db)

    assert np.flatnonzero(np.isnan(found)).tolist() == [10, 2010, 4000]
    np.testing.assert_allclose(np.delete(found, [10, 2010, 4000]), np.delete(whole, [10, 2010, 4000]), atol=0.05)


@given(offset_db=st.floats(-100, 100))
def test_a_constant_offset_of_the_level_does_not_matter(offset_db):
    _, loss_db = levels_with_a_shower()

    np.testing.assert_allclose(
        attenuation_of_levels(MINUTES, loss_db + offset_db), attenuation_of_levels(MINUTES, loss_db), atol=1e-6
    )


# Files.


def test_levels_in_text_are_read_and_placeholders_count_as_missing(tmp_path):
    levels = [[60 * k, -53 if 300 <= k < 320 else -45, 15] for k in range(600)]
    levels[200][1], levels[310][2] = -99.9, 255
    found = read(tmp_path, "time_s,rsl,tsl\n" + "".join(f"{','.join(map(str, row))}\n" for row in levels))

    assert np.flatnonzero(np.isnan(found.attenuation_db)).tolist() == [200, 310]
    assert np.nanmax(found.attenuation_db) == 8
    assert np.count_nonzero(found.attenuation_db == 8) == 19


def test_attenuation_in_text_is_read_unchanged(tmp_path):
    found = read(tmp_path, "time_s,rsl,attenuation_db\n0,-40,0\n60,-42,2\n120,-40,\n")

    np.testing.assert_array_equal(found.attenuation_db, [0, 2, np.nan])
    assert found.frequency_hz is None


def test_hdf5_channels_carry_the_parameters_of_their_link(tmp_path):
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "links.h5", "w") as file:
        link = file.create_group("cml_7")
        link.attrs.update(site_a_latitude=47.6394, site_a_longitude=10.0772, site_b_latitude=47.6923, site_b_longitude=10.0419)
        channel = link.create_group("channel_1")
        channel.attrs.update(frequency=25.417e9, polarization="H")
        channel["time"], channel["rx"], channel["tx"] = MINUTES, 15 - levels_with_a_shower()[1], np.full(MINUTES.size, 15.0)
    found = read_measured(load_one(tmp_path / "links.h5", None, Hints()))

    assert (found.frequency_hz, found.tilt_deg) == (25.417e9, 0.0)
    assert found.length_m == pytest.approx(6449, abs=1)
    assert found.source == "links.h5, cml_7/channel_1"
    with pytest.raises(TraceError, match="no channel cml_8") as refused:
        read_measured(load_one(tmp_path / "links.h5", None, Hints(column="cml_8")))
    assert "cml_7/channel_1" in refused.value.remedy


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("time_s,attenuation_db\n0,0\n60,-0.5\n", "an attenuation of -0.5 dB at 60 s"),
        ("time_s,attenuation_db\n0,0\n120,1\n60,2\n", "times do not ascend at row 3, 60 s"),
        ("time_s,attenuation_db\n0,0\n60,deep\n", "line 3: attenuation_db is 'deep', not a number"),
        ("time_s,humidity\n0,0\n60,1\n", "columns time_s, humidity"),
        ("time_s,tsl\n0,0\n60,1\n", "tsl is a level sent, and none is received"),
        ("time_s,rsl\n0,-99.9\n60,-99.9\n", "no level is a number"),
        ("attenuation_db,humidity\n0,80\n1,81\n", "no times"),
    ],
)
def test_refused_files(tmp_path, text, said):
    with pytest.raises(TraceError) as refused:
        read(tmp_path, text)

    assert "link.csv" in refused.value.message
    assert said in refused.value.message
    assert refused.value.remedy


# C/N0 of it.


def test_gaps_are_named_and_handled_as_asked():
    measured = Measured(np.arange(20.0) * 60, np.where(np.arange(20) == 5, np.nan, 2.0), "x")

    with pytest.raises(TraceError, match=r"x.csv: missing for 60 s in 1 gap: 300 to 360 s"):
        cn0_of_measured(measured, ON_THE_LINK, where="x.csv")
    held = cn0_of_measured(measured, ON_THE_LINK, gaps="hold")
    lost = cn0_of_measured(measured, ON_THE_LINK, gaps="outage")
    assert held["cn0_dbhz"].tolist() == [78]
    assert (lost["time_s"].tolist(), lost["cn0_dbhz"].tolist()) == ([0, 300, 360], [78, -np.inf, 78])
    assert "held at the value before; attenuation as measured" in held.meta["notes"]


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"scale": "none"}, "no C/N0 is given"),
        ({**ON_THE_LINK, "eirp_dbw": 50}, "clear_sky_dbhz and eirp_dbw are both given"),
        ({"scale": "none", "eirp_dbw": 50, "frequency_hz": 2e10}, "g_over_t_dbk: nan is not a number"),
        ({"clear_sky_dbhz": 80}, "the file does not say carrier of the link that measured"),
        ({"clear_sky_dbhz": 80, "measured_frequency_hz": 2e10}, "the file does not say its length"),
        ({"clear_sky_dbhz": 80, "measured_frequency_hz": 2e10, "measured_length_m": 5e3}, "latitude_deg is not given"),
        ({"clear_sky": 80}, "'clear_sky' is no parameter of rain"),
        ({"clear_sky_dbhz": 500}, "clear_sky_dbhz: 500 is not a number from -50 to 200"),
    ],
)
def test_refused_settings(settings, said):
    with pytest.raises(TraceError) as refused:
        cn0_of_measured(Measured(np.arange(3.0), np.zeros(3), "x"), settings)

    assert said in refused.value.message
    assert refused.value.remedy


# The other path.


def test_the_same_path_at_the_same_frequency_has_the_same_rain():
    pytest.importorskip("itur", reason="the extra 'rain' is not installed")
    wanted = SlantPath(50.67, 4.61, 30.0, 19.7e9, 160.0, tilt_deg=90.0)
    ground = GroundPath(19.7e9, length_in_rain_m(wanted), tilt_deg=90.0)
    attenuation_db = np.array([0.0, 1.0, 5.0, 20.0])
    found = to_slant_path(attenuation_db, ground, wanted)

    # By hand: the coefficients at 30 degrees differ slightly from those of a horizontal path.
    k, alpha = specific_attenuation(19.7e9, tilt_deg=90.0)
    k_up, alpha_up = specific_attenuation(19.7e9, elevation_deg=30.0, tilt_deg=90.0)
    rate = rain_rate_mm_per_h(attenuation_db, ground)
    np.testing.assert_allclose(k * rate**alpha * ground.length_m / 1e3, attenuation_db)
    np.testing.assert_allclose(found, k_up * rate**alpha_up * ground.length_m / 1e3)
    np.testing.assert_allclose(found, attenuation_db, rtol=0.05)


def test_measured_link_has_the_fades_stated_in_its_description():
    if not DATA.is_dir():
        pytest.skip(f"{DATA} is missing: set FARLINK_DATA to the directory of the measured data")
    pytest.importorskip("h5py")
    found = read_measured(load_one(DATA / "one_cml.h5", None, Hints(column="cml_0/channel_1")))

    # The description uses the excess over one level for the whole month: 1.0, 4.7 and 7.5 dB at 90, 99 and 99.9 %. Here dry
    # minutes and drifts count as zero.
    known = found.attenuation_db[np.isfinite(found.attenuation_db)]
    quantiles = np.quantile(known, [0.9, 0.99, 0.999])
    assert np.all(quantiles < [1.0, 4.7, 7.5])
    assert np.all(quantiles[1:] > 0.8 * np.array([4.7, 7.5]))
    assert (found.frequency_hz, found.tilt_deg) == (25.417e9, 90.0)

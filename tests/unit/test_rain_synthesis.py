"""``synthetic:rain``: series are labelled, reproducible by seed, and follow the prediction."""

from __future__ import annotations

import json
import sys

import numpy as np
import pytest

from farlink.channels.cache import resolve
from farlink.channels.rain.series import quantiles_dbhz
from farlink.channels.synthesis import rain
from farlink.channels.trace_file import read
from farlink.errors import MissingExtraError, TraceError

SITE = {"latitude_deg": 50.67, "longitude_deg": 4.61, "elevation_deg": 30, "frequency_hz": 19.7e9, "height_m": 160}
NAME = "synthetic:rain?latitude_deg=50.67&longitude_deg=4.61&elevation_deg=30&frequency_hz=19.7e9&clear_sky_dbhz=95"


@pytest.fixture
def _itur():
    pytest.importorskip("itur", reason="the extra 'rain' is not installed")


@pytest.mark.usefixtures("_itur")
def test_a_named_series_is_generated_once_cached_and_labelled():
    path = resolve(f"{NAME}&duration_s=86400&step_s=60&seed=3")
    first = path.stat().st_mtime_ns
    trace = read(path)

    assert trace.title == "rain at 19.7 GHz, seed 3 (synthetic)"
    assert trace.meta["synthetic"] is True
    assert "P.618-13 by itur" in trace.meta["source"]
    assert (trace.duration_s, trace["cn0_dbhz"].max()) == (86_400, 95)
    assert resolve(f"{NAME}&duration_s=86400&step_s=60&seed=3").stat().st_mtime_ns == first
    assert resolve(f"{NAME}&duration_s=86400&step_s=60&seed=4") != path
    json.dumps(trace.meta, allow_nan=False)


@pytest.mark.usefixtures("_itur")
def test_a_budget_and_its_clear_sky_cn0_give_the_same_series():
    budget = {"eirp_dbw": 55, "g_over_t_dbk": 20, "range_m": 38.5e6}
    by_budget = rain.settle({**SITE, **budget, "step_s": 60}, duration_s=1e6).draw()
    clear_dbhz = by_budget.meta["clear_sky_dbhz"]
    by_hand = rain.settle({**SITE, "clear_sky_dbhz": clear_dbhz, "step_s": 60}, duration_s=1e6).draw()

    assert clear_dbhz == pytest.approx(55 + 20 - 210.046 + 228.599, abs=2e-3)
    np.testing.assert_array_equal(by_budget["cn0_dbhz"], by_hand["cn0_dbhz"])
    warm = rain.settle({**SITE, **budget, "step_s": 60, "system_temperature_k": 150}, duration_s=1e6).draw()
    assert np.all(warm["cn0_dbhz"] <= by_budget["cn0_dbhz"])
    assert warm["cn0_dbhz"].min() < by_budget["cn0_dbhz"].min() - 1


@pytest.mark.usefixtures("_itur")
def test_twenty_years_have_the_predicted_attenuation():
    wanted = rain.settle({**SITE, "clear_sky_dbhz": 95, "step_s": 300}, duration_s=20 * 365.25 * 86_400)
    shares = np.array([0.1, 0.3, 1.0])
    exceeded = 95 - quantiles_dbhz(wanted.draw(), shares / 100)

    # Four standard deviations: of two years they are 7.6, 5.7 and 4.2 % (docs/validation/rain.md), of ten times two less.
    allowed = 4 * np.array([0.076, 0.057, 0.042]) / np.sqrt(10)
    assert np.all(np.abs(exceeded / wanted.prediction().exceeded_db(shares) - 1) < allowed)


@pytest.mark.parametrize(
    ("text", "said", "remedy"),
    [
        ("synthetic:rain?clear_sky_dbhz=95", "latitude_deg is not given", "latitude_deg=..."),
        (NAME.replace("&clear_sky_dbhz=95", ""), "no C/N0 is given", "clear_sky_dbhz=..."),
        (f"{NAME}&eirp_dbw=50", "clear_sky_dbhz and eirp_dbw are both given", "leave one out"),
        (f"{NAME}&elevation_deg=3", "elevation_deg: 3 is not a number from 5 to 90", "elevation"),
        (f"{NAME}&frequency_hz=nan", "frequency_hz: nan is not a number", "carrier"),
        (f"{NAME}&distribution=gamma", "'gamma' is not one of prediction", "give one of"),
        (f"{NAME}&seed=-1", "seed: -1 is not a whole number", "seed=1"),
        (f"{NAME}&duration_s=0", "duration_s: 0 is not above 0", "86400"),
        (f"{NAME}&duration_s=1e12", "not 2 to 100,000,000", "another duration_s or step_s"),
        (f"{NAME}&stepp_s=1", "'stepp_s' is no parameter of rain", "did you mean 'step_s'?"),
    ],
)
def test_refused_names(text, said, remedy):
    with pytest.raises(TraceError) as refused:
        resolve(text)

    assert said in refused.value.message
    assert remedy in refused.value.remedy


def test_a_rain_series_is_refused_as_received_power():
    with pytest.raises(TraceError, match="a cn0 trace, where power is wanted"):
        resolve(NAME, kinds=("power",))


def test_the_missing_library_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "itur", None)
    monkeypatch.setitem(sys.modules, "itur.models.itu837", None)

    with pytest.raises(MissingExtraError, match="rain attenuation needs itur") as refused:
        rain.settle({**SITE, "clear_sky_dbhz": 95}).prediction()
    assert refused.value.remedy == "install it with: pip install 'farlink[rain]'"


@pytest.mark.usefixtures("_itur")
def test_a_place_without_rain_is_refused():
    with pytest.raises(TraceError, match=r"% of the time at 23 north, 30 east"):
        rain.settle({**SITE, "latitude_deg": 23, "longitude_deg": 30, "clear_sky_dbhz": 95}).prediction()


@pytest.mark.usefixtures("_itur")
def test_the_prediction_is_extrapolated_beyond_its_turning_point():
    tropics = {"latitude_deg": 3.133, "longitude_deg": 101.7, "elevation_deg": 10, "frequency_hz": 50e9, "clear_sky_dbhz": 40}
    wanted = rain.settle({**tropics, "step_s": 600}, duration_s=3e8)
    predicted, trace = wanted.prediction(), wanted.draw()

    assert predicted.percent[0] > 0.001
    assert np.all(np.diff(predicted.exceeded_db(np.geomspace(1e-4, 4, 50))) < 0)
    # Fades deeper than the signal give a C/N0 below 0 dBHz, which is not an error.
    assert trace["cn0_dbhz"].min() < -50
    assert np.isfinite(trace["cn0_dbhz"]).all()

"""Link budgets against hand calculation, and the effect of rain on the noise."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from farlink.channels.rain.budget import ClearSky, LinkBudget, free_space_loss_db, noise_rise_db
from farlink.channels.rain.series import cn0_trace
from farlink.errors import TraceError


def test_budget_matches_hand_calculation():
    # 36,000 km at 12 GHz: 20 lg(36000) = 91.126, 20 lg(12) = 21.584, and 92.448 for km and GHz: 205.157 dB.
    budget = LinkBudget(50.0, 15.0, 12e9, 36_000e3, gas_loss_db=0.3, other_loss_db=1.2)

    assert budget.free_space_loss_db == pytest.approx(205.157, abs=1e-3)
    assert budget.clear_sky_dbhz == pytest.approx(50 + 15 - 205.157 - 0.3 - 1.2 + 228.599, abs=2e-3)


@given(frequency_hz=st.floats(1e6, 1e12), range_m=st.floats(1, 1e12))
def test_twice_the_distance_or_the_frequency_costs_6_db(frequency_hz, range_m):
    loss_db = free_space_loss_db(frequency_hz, range_m)

    assert free_space_loss_db(2 * frequency_hz, range_m) - loss_db == pytest.approx(20 * math.log10(2))
    assert free_space_loss_db(frequency_hz, 2 * range_m) - loss_db == pytest.approx(20 * math.log10(2))


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"range_m": 0.0}, "range_m: 0 is not above 0"),
        ({"frequency_hz": -1.0}, "frequency_hz: -1 is not above 0"),
        ({"gas_loss_db": -0.5}, "gas_loss_db: -0.5 dB is a gain"),
        ({"eirp_dbw": math.nan}, "eirp_dbw: nan is not a number"),
    ],
)
def test_refused_budgets(values, said):
    with pytest.raises(TraceError, match=said):
        _ = LinkBudget(
            **{"eirp_dbw": 50.0, "g_over_t_dbk": 15.0, "frequency_hz": 12e9, "range_m": 36e6, **values}
        ).clear_sky_dbhz


def test_noise_rise_matches_hand_calculation():
    # Through 3.0103 dB the antenna sees half rain, half sky: 275/2 + 2.7/2 - 2.7 = 136.15 K more.
    rise_db = noise_rise_db(10 * math.log10(2), system_temperature_k=136.15)

    assert float(rise_db) == pytest.approx(10 * math.log10(2))


@given(attenuation_db=st.floats(0, 100), more_db=st.floats(0.001, 50), system_k=st.floats(10, 3000), gas_db=st.floats(0, 5))
def test_noise_rises_with_rain_up_to_the_rain_temperature(attenuation_db, more_db, system_k, gas_db):
    low, high = noise_rise_db([attenuation_db, attenuation_db + more_db], system_temperature_k=system_k, gas_loss_db=gas_db)

    assert 0 <= low <= high <= 10 * math.log10(1 + 275 / system_k)


def test_without_rain_cn0_is_that_of_clear_sky():
    sky = ClearSky(90.0, system_temperature_k=150.0, gas_loss_db=0.7)

    assert float(sky.under(0.0)) == 90.0
    assert float(sky.under(np.inf)) == -np.inf


def test_a_system_without_noise_is_refused():
    with pytest.raises(TraceError, match="system_temperature_k: 0 is not above 0"):
        noise_rise_db(3.0, system_temperature_k=0.0)


def test_a_trace_has_one_entry_per_change():
    attenuation_db = np.array([0.0, 0, 0, 2, 2, np.inf, 0, 0])
    trace = cn0_trace(np.arange(8.0), attenuation_db, ClearSky(80.0), duration_s=8.0, meta={"title": "t"})

    assert trace["time_s"].tolist() == [0, 3, 5, 6]
    assert trace["cn0_dbhz"].tolist() == [80, 78, -np.inf, 80]
    assert (trace.duration_s, trace.meta["clear_sky_dbhz"]) == (8.0, 80.0)


@pytest.mark.parametrize("bad", [-0.1, math.nan])
def test_invalid_attenuation_is_refused_with_its_time(bad):
    with pytest.raises(TraceError, match=rf"an attenuation of {bad:g} dB at 20 s"):
        cn0_trace(np.array([0.0, 10, 20]), np.array([0.0, 1, bad]), ClearSky(80.0), duration_s=30.0, meta={})

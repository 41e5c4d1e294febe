"""``synthetic:vehicle``: the delay to a vehicle follows its speed and geometry, is labelled and reproducible."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from farlink.channels.cache import resolve
from farlink.channels.synthesis import synthetic_file, vehicle
from farlink.channels.synthesis.summary import summary_lines
from farlink.channels.synthesis.text import settled
from farlink.channels.trace_file import read
from farlink.errors import FarlinkError, TraceError

LIGHT_MPS = 299_792_458


def test_a_named_drive_is_generated_once_cached_and_labelled():
    path = resolve("synthetic:vehicle?duration_s=20&seed=3")
    first = path.stat().st_mtime_ns
    trace = read(path)

    assert (trace.kind, trace.title, trace.duration_s) == ("delay", "vehicle at 20 km/h, seed 3 (synthetic)", 20)
    assert trace.meta["synthetic"] is True
    assert dict(summary_lines(settled("vehicle", {}), trace))["Synthetic"] == "preset vehicle, seed 3"
    assert resolve("synthetic:vehicle?duration_s=20&seed=3").stat().st_mtime_ns == first
    assert resolve("synthetic:vehicle?duration_s=20&seed=4") != path
    json.dumps(trace.meta, allow_nan=False)


@given(
    distance_m=st.floats(1, 1e6),
    share=st.floats(1e-3, 1.99),
    speed_mps=st.floats(0, 300),
    angle_deg=st.floats(0, 90),
    seed=st.integers(0, 2**64 - 1),
)
def test_the_distance_stays_on_the_stretch_and_keeps_to_the_speed(distance_m, share, speed_mps, angle_deg, seed):
    stretch_m = max(share * distance_m, 1e-3)
    keys = {"distance_m": distance_m, "stretch_m": stretch_m, "speed_mps": speed_mps, "angle_deg": angle_deg}
    drive = vehicle.settle(keys, duration_s=20, seed=seed)
    away_m = drive.distance_m(np.linspace(0, 20, 401))

    assert np.all(away_m <= distance_m + stretch_m / 2 + 1e-6)
    assert np.all(away_m >= distance_m - stretch_m / 2 - 1e-6)
    assert np.all(np.abs(np.diff(away_m)) <= speed_mps * 0.05 * (1 + 1e-9) + 1e-6)
    np.testing.assert_allclose(drive.draw()["delay_s"][0], away_m[0] / LIGHT_MPS, rtol=1e-12)


def test_straight_away_it_has_all_its_speed_and_abeam_the_least_distance_in_the_middle():
    straight, abeam = (vehicle.settle({"angle_deg": angle, "distance_m": 500}, duration_s=100) for angle in (0, 90))
    time_s = np.linspace(0, 100, 100_001)

    assert np.median(np.abs(np.diff(straight.distance_m(time_s)))) == pytest.approx(20 / 3.6 * 1e-3, rel=1e-6)
    assert straight.distance_m(time_s).min() == pytest.approx(500 - 138.9, abs=0.1)
    assert abeam.distance_m(time_s).min() == pytest.approx(500, abs=1e-3)
    assert abeam.distance_m(time_s).max() == pytest.approx(math.hypot(500, 138.9), abs=0.1)


@pytest.mark.parametrize(
    ("given", "said", "remedy"),
    [
        ({"stretch_m": "3000"}, "stretch_m: 3000 is not below twice distance_m = 1400", "less than 2800"),
        ({"speed_mps": "-1"}, "speed_mps: -1 is not a number from 0 to 100000", "speed of the vehicle"),
        ({"speed_mps": "nan"}, "speed_mps: nan is not", "speed of the vehicle"),
        ({"angle_deg": "91"}, "angle_deg: 91 is not a number from 0 to 90", "line of sight"),
        ({"sped_mps": "5"}, "'sped_mps' is no parameter of vehicle", "did you mean 'speed_mps'?"),
        ({"seed": "-1"}, "seed: -1 is not a whole number", "seed=1"),
        ({"duration_s": "0"}, "duration_s: 0 is not above 0", "for example 100"),
        ({"duration_s": "inf"}, "duration_s: inf is not above 0", "for example 100"),
        ({"duration_s": "1e9"}, "not 1 to 100,000,000", "another duration_s or step_s"),
    ],
)  # fmt: skip
def test_refusals_name_value_rule_and_remedy(given, said, remedy):
    with pytest.raises(TraceError) as refused:
        settled("vehicle", given)

    assert said in refused.value.message
    assert remedy in refused.value.remedy


def test_its_trace_is_its_delay_and_no_power():
    with pytest.raises(FarlinkError, match="is its delay"):
        vehicle.settle({}).delay()
    with pytest.raises(TraceError, match="a delay trace, where power is wanted"):
        synthetic_file("synthetic:vehicle", kinds={"power"})


def test_its_small_changes_fill_their_picture():
    pytest.importorskip("matplotlib")
    from farlink.plot import trace as plots

    trace = vehicle.settle({}).draw()
    changes_ms = 1000 * np.abs(np.diff(trace["delay_s"]))
    *_, tail = plots.figure(trace).axes

    assert changes_ms.max() <= tail.get_xlim()[1] < 1.2 * changes_ms.max()
    assert tail.get_ylim()[0] == 0.5

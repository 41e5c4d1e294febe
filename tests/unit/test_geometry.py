"""Delay and elevation of satellites, beside vectors in space, the engine's pass and Zaghloul's numbers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from farlink.channels.geometry import (
    GEO_ALTITUDE_M,
    geostationary_elevation_deg,
    orbital_period_s,
    relay_delay_s,
    slant_range_m,
)
from farlink.channels.synthesis.orbit import EARTH_RADIUS_M, LIGHT_SPEED_M_PER_S, CircularPass
from farlink.cli import app
from farlink.errors import ArgumentError


def place(latitude_deg: float, longitude_deg: float, radius_m: float) -> np.ndarray:
    latitude, longitude = np.radians([latitude_deg, longitude_deg])
    return radius_m * np.array([np.cos(latitude) * np.cos(longitude), np.cos(latitude) * np.sin(longitude), np.sin(latitude)])


@given(st.floats(-90, 90), st.floats(-180, 180), st.floats(-180, 180))
def test_elevation_and_distance_are_those_of_vectors(latitude, longitude, satellite):
    station = place(latitude, longitude, EARTH_RADIUS_M)
    ray = place(0, satellite, EARTH_RADIUS_M + GEO_ALTITUDE_M) - station
    distance = float(np.linalg.norm(ray))
    sine = float(ray @ station) / distance / EARTH_RADIUS_M

    elevation = geostationary_elevation_deg(latitude, longitude, satellite)

    assert np.sin(np.radians(elevation)) == pytest.approx(sine, abs=1e-7)
    if elevation >= 0:
        assert slant_range_m(GEO_ALTITUDE_M, min(elevation, 90.0)) == pytest.approx(distance, rel=1e-6)


@given(st.floats(2e5, 2e7), st.floats(5, 90))
def test_distance_is_that_of_a_pass(altitude, elevation):
    there = CircularPass(altitude, elevation, 90.0)

    assert slant_range_m(altitude, elevation) == pytest.approx(float(there.range_m(np.array([0.0]))[0]), rel=1e-6)


@given(st.floats(1e5, 4e8), st.floats(0, 90), st.floats(0, 90))
def test_delay_is_between_those_of_zenith_and_horizon(altitude, up, down):
    delay = relay_delay_s(altitude, up, down)

    assert 2 * altitude / LIGHT_SPEED_M_PER_S <= delay * (1 + 1e-9)
    assert delay <= relay_delay_s(altitude, 0, 0) * (1 + 1e-9)
    assert delay == pytest.approx(relay_delay_s(altitude, down, up))


def test_geostationary_period_is_a_sidereal_day():
    assert orbital_period_s(GEO_ALTITUDE_M) == pytest.approx(86_164.1, rel=5e-4)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: slant_range_m(35_786, 10), "altitude_m must be from 1e5 to 4e8 m, not 35786"),
        (lambda: slant_range_m(GEO_ALTITUDE_M, -1), "elevation_deg must be from 0 to 90 degrees, not -1"),
        (lambda: relay_delay_s(GEO_ALTITUDE_M, 10, 91), "elevation_deg must be from 0 to 90 degrees, not 91"),
        (lambda: slant_range_m(GEO_ALTITUDE_M, float("nan")), "elevation_deg"),
        (lambda: geostationary_elevation_deg(91, 0, 0), "latitude_deg must be from -90 to 90"),
        (lambda: geostationary_elevation_deg(0, 0, 361), "satellite_longitude_deg must be from -360 to 360"),
        (lambda: orbital_period_s(0.0), "altitude_m must be"),
    ],
)
def test_values_out_of_range_are_refused(call, message):
    with pytest.raises(ArgumentError, match=message):
        call()


def printed(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["delay", *arguments])
    return result.exit_code, " ".join(result.output.split())


def test_command_prints_what_a_scenario_needs():
    status, output = printed("--elevation", "35,10")

    assert status == 0
    assert f"delay_s = {relay_delay_s(GEO_ALTITUDE_M, 35, 10):.4f}" in output


def test_command_takes_places():
    status, output = printed("--at", "52.5,13.4", "--at", "40.7,-74.0", "--satellite", "-15")

    assert status == 0
    up, down = (geostationary_elevation_deg(*where, -15) for where in ((52.5, 13.4), (40.7, -74.0)))
    assert f"{up:.1f}° at the sender, {down:.1f}° at the receiver" in output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "neither --elevation nor --at is given"),
        (["--elevation", "1,2,3"], "more than two stations"),
        (["--elevation", "ten"], "not numbers"),
        (["--elevation", "95"], "from 0 to 90 degrees"),
        (["--elevation", "10", "--altitude", "high"], "not a number of m"),
        (["--elevation", "10", "--satellite", "5"], "--satellite without a place"),
        (["--at", "52.5,13.4", "--satellite", "13", "--elevation", "30"], "--elevation and --at are both given"),
        (["--at", "52.5,13.4"], "--at without a satellite"),
        (["--at", "52.5", "--satellite", "5"], "not a latitude and a longitude"),
        (["--at", "85,0", "--satellite", "0"], "below the horizon"),
        (["--at", "1,1", "--at", "2,2", "--at", "3,3", "--satellite", "0"], "3 places"),
        (["--at", "50,0", "--satellite", "0", "--altitude", "780e3"], "only a geostationary satellite"),
    ],
)
def test_command_refuses_what_it_cannot_compute(arguments, message):
    status, output = printed(*arguments)

    assert status != 0
    assert message in output

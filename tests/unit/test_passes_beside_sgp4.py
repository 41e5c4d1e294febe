"""The pass of a scenario against SGP4 with the same circular orbit, seen from a station on a rotating ellipsoid."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest

import farlink

LIGHT_SPEED_M_PER_S = 299_792_458.0
# Earth of SGP4 (WGS 72), km^3/s^2, and the radius to which a scenario's altitudes refer, km.
GRAVITY, RADIUS_KM = 398_600.8, 6371.0
LOWEST_DEG = 10.0
RATE_BPS, DATA_BYTES, PACKET_BYTES = 1e5, 100, 128


def seen_passes(altitude_m, inclination_deg, latitude_deg, hours):
    """Duration in s, highest elevation in degrees and mean range in m of each whole pass."""
    api = pytest.importorskip("skyfield.api")
    sgp4 = pytest.importorskip("sgp4.api")
    motion = 60 * math.sqrt(GRAVITY / (RADIUS_KM + altitude_m / 1e3) ** 3)
    record = sgp4.Satrec()
    # 2025-01-01, counted from the end of 1949; nearly circular, without drag.
    record.sgp4init(sgp4.WGS72, "i", 1, 27394.0, 0.0, 0.0, 0.0, 1e-6, 0.0, math.radians(inclination_deg), 0.0, motion, 0.0)
    scale = api.load.timescale(builtin=True)
    satellite = api.EarthSatellite.from_satrec(record, scale)
    time_s = np.arange(0.0, hours * 3600, 10.0)
    times = scale.tt_jd(scale.utc(2025, 1, 1).tt + time_s / 86_400)
    altitude, _, distance = (satellite - api.wgs84.latlon(latitude_deg, 10.0)).at(times).altaz()
    elevation = altitude.degrees
    edges = np.flatnonzero(np.diff(elevation >= LOWEST_DEG))

    def crossing_s(at):
        return time_s[at] + 10.0 * (LOWEST_DEG - elevation[at]) / (elevation[at + 1] - elevation[at])

    for rise, set_ in pairwise(edges):
        if elevation[rise + 1] >= LOWEST_DEG:
            inside = slice(rise + 1, set_ + 1)
            yield crossing_s(set_) - crossing_s(rise), elevation[inside].max(), distance.m[inside].mean()


def simulated_pass(altitude_m, inclination_deg, highest_deg, run_s):
    """Duration in s and mean range in m, of a datagram each second."""
    delay = {
        "kind": "pass",
        "altitude_m": altitude_m,
        "inclination_deg": inclination_deg,
        "max_elevation_deg": highest_deg,
        "min_elevation_deg": LOWEST_DEG,
        "step_s": 1.0,
    }
    result = farlink.run(
        {
            "duration_s": run_s,
            "runs": 1,
            "link": {"rate_bps": RATE_BPS, "delay_s": delay},
            "transport": {"udp": {"kind": "udp"}},
            "flow": {
                "data": {
                    "transport": "udp",
                    "traffic": {"kind": "cbr", "rate_bps": 8 * DATA_BYTES, "payload_bytes": DATA_BYTES},
                }
            },
        }
    )
    row = list(result.columns["flow"]).index("data")
    delivered_bytes, delay_s = (float(result.columns[name][row]) for name in ("delivered_bytes", "arrival_delay_mean_s"))
    return delivered_bytes / DATA_BYTES, (delay_s - 8 * PACKET_BYTES / RATE_BPS) * LIGHT_SPEED_M_PER_S


@pytest.mark.parametrize(
    ("altitude_m", "inclination_deg", "latitude_deg", "hours", "tolerance"),
    [
        pytest.param(780e3, 86.4, 48.0, 48, 0.02, id="leo, nearly polar"),
        pytest.param(550e3, 53.0, 40.0, 48, 0.02, id="leo"),
        pytest.param(8062e3, 0.0, 0.0, 24, 0.003, id="meo over the equator", marks=pytest.mark.nightly),
        pytest.param(8062e3, 0.0, 30.0, 24, 0.003, id="meo over the equator, from 30 degrees north"),
        pytest.param(15_000e3, 30.0, 20.0, 48, 0.04, id="meo", marks=pytest.mark.nightly),
        # In passes of six hours the track is no longer a great circle, as the reference says.
        pytest.param(20_180e3, 55.0, 40.0, 48, 0.2, id="navigation satellite"),
        pytest.param(20_180e3, 55.0, 0.0, 48, 0.08, id="navigation satellite, from the equator", marks=pytest.mark.nightly),
    ],
)
def test_pass_lasts_as_long_as_by_sgp4(altitude_m, inclination_deg, latitude_deg, hours, tolerance):
    seen = [found for found in seen_passes(altitude_m, inclination_deg, latitude_deg, hours) if found[1] >= 25][:4]

    assert seen
    for duration_s, highest_deg, mean_m in seen:
        ours_s, ours_m = simulated_pass(altitude_m, inclination_deg, min(highest_deg, 90.0), 2 * duration_s)
        assert ours_s == pytest.approx(duration_s, rel=tolerance, abs=2)
        assert ours_m == pytest.approx(mean_m, rel=0.015)

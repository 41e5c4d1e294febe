"""Rain attenuation by P.618 and its components, against the examples that ITU-R publishes for such programs.

The examples are those of the workbook of ITU-R working party 3M, revision 5.1 (P.618-13, P.837-7, P.838-3, P.839-4), as they
stand in the tests of ITU-Rpy; revision 8.3.0 has the same values for rain of P.618-14.
"""

from __future__ import annotations

import pytest

pytest.importorskip("itur", reason="the extra 'rain' is not installed")

from farlink.channels.rain import prediction
from farlink.channels.rain.prediction import SlantPath

WORKBOOK = "ITU-R, validation examples for the P series, revision 5.1"

# Latitude, longitude, height in m, GHz, elevation, tilt, percent, rain rate at 0.01 %, attenuation in dB.
ATTENUATION = [
    (51.5, -0.14, 31.382984, 14.25, 31.07699124, 0, 1, 26.48052, 0.495317069),
    (51.5, -0.14, 31.382984, 29, 31.07699124, 0, 0.001, 26.48052, 45.19865638),
    (41.9, 12.49, 46.122988, 29, 40.232036, 0, 0.01, 33.936232, 28.74272193),
    (33.94, 18.43, 0, 14.25, 46.35969261, 0, 0.001, 27.13586832, 12.98151687),
    (22.9, -43.23, 0, 29, 22.27833468, 0, 0.1, 50.639304, 29.31896844),
    (25.78, -80.22, 8.61728, 29, 52.67898486, 0, 0.1, 78.2994993, 25.56295492),
    (28.717, 77.3, 209.383699, 29, 48.24117054, 90, 1, 63.61888808, 5.887821871),
    (3.133, 101.7, 51.251456, 29, 85.80459566, 90, 0.01, 99.15117186, 83.37856227),
    (9.05, 38.7, 2539.861878, 14.25, 20.14335809, 90, 0.1, 42.91007183, 5.881071312),
]


@pytest.mark.published(f"{WORKBOOK}: P.618-13, attenuation by rain")
@pytest.mark.parametrize(
    ("latitude", "longitude", "height_m", "ghz", "elevation", "tilt", "percent", "rain_rate", "printed_db"), ATTENUATION
)
def test_attenuation_matches_the_examples(latitude, longitude, height_m, ghz, elevation, tilt, percent, rain_rate, printed_db):
    path = SlantPath(latitude, longitude, elevation, ghz * 1e9, height_m, tilt)

    found = prediction.exceeded_db(path, percent, rain_rate_mm_per_h=rain_rate)
    assert float(found) == pytest.approx(printed_db, rel=1e-9)


@pytest.mark.published(f"{WORKBOOK}: P.618-13, length of the slant path below the height of rain")
def test_path_length_in_rain_matches_the_examples():
    path = SlantPath(51.5, -0.14, 31.07699124, 14.25e9, 31.382984)

    assert prediction.length_in_rain_m(path) == pytest.approx(4690.817392, abs=1e-6)


@pytest.mark.published(f"{WORKBOOK}: P.837-7, probability of rain")
@pytest.mark.parametrize(
    ("latitude", "longitude", "printed_percent"),
    [(51.5, -0.14, 5.36150960), (3.133, 101.7, 4.53654368), (22.9, -43.23, 1.41773353)],
)
def test_share_of_the_time_with_rain_matches_the_examples(latitude, longitude, printed_percent):
    path = SlantPath(latitude, longitude, 30, 20e9)

    assert prediction.rain_percent(path) == pytest.approx(printed_percent, abs=1e-7)


@pytest.mark.published(f"{WORKBOOK}: P.838-3, coefficients of the specific attenuation")
@pytest.mark.parametrize(
    ("elevation", "ghz", "tilt", "printed_k", "printed_alpha"),
    [(31.07699124, 14.25, 0, 0.03975488, 1.12418043), (85.80459566, 29, 90, 0.21737148, 0.93950825)],
)
def test_specific_attenuation_matches_the_examples(elevation, ghz, tilt, printed_k, printed_alpha):
    k, alpha = prediction.specific_attenuation(ghz * 1e9, elevation_deg=elevation, tilt_deg=tilt)

    assert k == pytest.approx(printed_k, abs=5e-9)
    assert alpha == pytest.approx(printed_alpha, abs=5e-9)

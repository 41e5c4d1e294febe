"""Rain attenuation that ITU-R P.618 predicts for a path to a satellite, by the package itur."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from farlink.channels.rain.distribution import Distribution
from farlink.errors import TraceError
from farlink.extras import require

# Shares of the time, in percent, of a prediction; P.618 holds from 0.001 to 5 %.
PERCENT = (0.001, 0.002, 0.003, 0.005, 0.01, 0.02, 0.03, 0.05, 0.1, 0.2, 0.3, 0.5, 1.0, 2.0, 3.0, 5.0)

_RANGES = {
    "latitude_deg": (-90.0, 90.0),
    "longitude_deg": (-180.0, 360.0),
    "height_m": (-500.0, 9000.0),
    "elevation_deg": (5.0, 90.0),
    "frequency_hz": (1e9, 55e9),
    "tilt_deg": (0.0, 90.0),
}


@dataclass(frozen=True)
class SlantPath:
    """A path from a station on the ground to a satellite.

    Parameters
    ----------
    latitude_deg, longitude_deg
        Of the station, north and east, in degrees.
    elevation_deg
        Of the satellite above the horizon, 5 to 90 degrees.
    frequency_hz
        Carrier, 1 to 55 GHz, in Hz.
    height_m
        Of the station above mean sea level, in m; None takes it from the map of P.1511.
    tilt_deg
        Of the polarisation against the horizontal: 0 horizontal, 90 vertical, 45 circular.

    Raises
    ------
    TraceError
        If a value is out of range.
    """

    latitude_deg: float
    longitude_deg: float
    elevation_deg: float
    frequency_hz: float
    height_m: float | None = None
    tilt_deg: float = 45.0

    def __post_init__(self) -> None:
        for name, (low, high) in _RANGES.items():
            value = getattr(self, name)
            if value is not None and not low <= value <= high:
                raise TraceError(f"{name}: {value:g} is not a number from {low:g} to {high:g}", "give it for this link")


def rain_percent(path: SlantPath) -> float:
    """Share of the time with rain at the station, in percent.

    Raises
    ------
    MissingExtraError
        If itur is not installed.

    References
    ----------
    ITU-R P.837-7, Annex 1; P.1853 takes it for the share of the time with rain on the path.
    """
    return float(_model("itu837").rainfall_probability(path.latitude_deg, path.longitude_deg).value)


def exceeded_db(path: SlantPath, percent: ArrayLike, *, rain_rate_mm_per_h: float | None = None) -> NDArray[np.float64]:
    """Attenuation by rain that is exceeded for a share of an average year.

    Parameters
    ----------
    path
        The path.
    percent
        Share of the time, 0.001 to 5 %. Any shape.
    rain_rate_mm_per_h
        Rain rate exceeded for 0.01 % of the time at the station, in mm/h; None takes it from the map of P.837.

    Returns
    -------
    ndarray
        In dB, of the shape of `percent`.

    Raises
    ------
    TraceError
        If a share is out of range.
    MissingExtraError
        If itur is not installed.

    Notes
    -----
    A prediction for the average of many years; single years differ from it (ITU-R P.678).

    References
    ----------
    ITU-R P.618-13, Annex 1, section 2.2.1.1, with P.837-7, P.838-3 and P.839-4.
    """
    shares = np.asarray(percent, dtype=np.float64)
    bad = shares[~((shares >= 0.001) & (shares <= 5))]
    if bad.size:
        raise TraceError(f"{bad.flat[0]:g} % of the time", "P.618 predicts from 0.001 to 5 %")
    height_km = None if path.height_m is None else path.height_m / 1e3
    given = {} if rain_rate_mm_per_h is None else {"R001": rain_rate_mm_per_h}
    model = _model("itu618")
    found = [
        model.rain_attenuation(
            path.latitude_deg,
            path.longitude_deg,
            path.frequency_hz / 1e9,
            path.elevation_deg,
            hs=height_km,
            p=float(share),
            tau=path.tilt_deg,
            **given,
        ).value
        for share in shares.flat
    ]
    return np.array(found, dtype=np.float64).reshape(shares.shape)


def predict(path: SlantPath) -> Distribution:
    """The whole distribution of the attenuation by rain on a path.

    Parameters
    ----------
    path
        The path.

    Raises
    ------
    TraceError
        If it rains too rarely there for one.
    MissingExtraError
        If itur is not installed.

    Notes
    -----
    Where rain costs more than about 100 dB the formula of P.618 turns over: rarer attenuations come out less than more frequent
    ones. Such points are left out, and what is rarer is extrapolated.
    """
    rains = rain_percent(path)
    shares = np.array([share for share in PERCENT if share < rains])
    if shares.size < 2:
        raise TraceError(
            f"rain for {rains:.3g} % of the time at {path.latitude_deg:g} north, {path.longitude_deg:g} east",
            "P.618 predicts nothing for so dry a place",
        )
    attenuation_db = exceeded_db(path, shares)
    more_often_db = np.append(np.maximum.accumulate(attenuation_db[::-1])[::-1][1:], 0.0)
    kept = attenuation_db > more_often_db
    return Distribution(shares[kept], attenuation_db[kept], rains)


def specific_attenuation(frequency_hz: float, *, elevation_deg: float = 0.0, tilt_deg: float = 45.0) -> tuple[float, float]:
    r"""Coefficients :math:`k` and :math:`\alpha` of the attenuation :math:`k R^\alpha`, in dB/km, by rain of R mm/h.

    Raises
    ------
    MissingExtraError
        If itur is not installed.

    References
    ----------
    ITU-R P.838-3, eq. (1) to (5).
    """
    k, alpha = _model("itu838").rain_specific_attenuation_coefficients(frequency_hz / 1e9, elevation_deg, tilt_deg)
    return float(k), float(alpha)


def length_in_rain_m(path: SlantPath) -> float:
    """Length of a path below the height to which rain reaches, in m; 0 if the station is above it.

    Raises
    ------
    MissingExtraError
        If itur is not installed.

    References
    ----------
    ITU-R P.618-13, eq. (1), for elevations of 5 degrees and more; the height is that of P.839-4.
    """
    top_m = 1e3 * float(_model("itu839").rain_height(path.latitude_deg, path.longitude_deg).value)
    height_m = path.height_m
    if height_m is None:
        height_m = 1e3 * float(_model("itu1511").topographic_altitude(path.latitude_deg, path.longitude_deg).value)
    return max(top_m - height_m, 0.0) / math.sin(math.radians(path.elevation_deg))


def versions() -> str:
    """Source of the prediction: the package and its version, and the version of P.618."""
    return f"ITU-R P.618-{_model('itu618').get_version()} by itur {require('itur', 'rain attenuation').__version__}"


def _model(name: str) -> Any:
    with warnings.catch_warnings():
        # Its own use of older names of NumPy and pyproj is not the user's business.
        warnings.simplefilter("ignore")
        return require(f"itur.models.{name}", "rain attenuation")

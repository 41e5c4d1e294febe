"""Attenuation measured on one path, converted to another through the rain rate."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from farlink.arguments import checked_arguments
from farlink.channels.rain.prediction import SlantPath, length_in_rain_m, specific_attenuation
from farlink.errors import TraceError


@dataclass(frozen=True)
class GroundPath:
    """A microwave link over the ground.

    Parameters
    ----------
    frequency_hz
        Carrier, 1 to 100 GHz, in Hz.
    length_m
        Its length, in m, above 0.
    tilt_deg
        Of the polarisation: 0 horizontal, 90 vertical.

    Raises
    ------
    TraceError
        If a value is out of range.
    """

    frequency_hz: float
    length_m: float
    tilt_deg: float = 90.0

    def __post_init__(self) -> None:
        for name, low, high in (("frequency_hz", 1e9, 100e9), ("length_m", 1.0, 1e6), ("tilt_deg", 0.0, 90.0)):
            value = getattr(self, name)
            if not low <= value <= high:
                raise TraceError(f"{name} of the measured link: {value:g} is not from {low:g} to {high:g}", "give it")


def rain_rate_mm_per_h(attenuation_db: ArrayLike, path: GroundPath) -> NDArray[np.float64]:
    r"""Mean rain rate along a link for an attenuation.

    .. math:: R = \left( \frac{A}{k L} \right)^{1/\alpha}

    Parameters
    ----------
    attenuation_db
        Attenuation by rain, in dB, at least 0. Any shape.
    path
        The link.

    Returns
    -------
    ndarray
        In mm/h, of the shape of `attenuation_db`.

    References
    ----------
    ITU-R P.838-3, eq. (1).
    """
    k, alpha = specific_attenuation(path.frequency_hz, tilt_deg=path.tilt_deg)
    rate: NDArray[np.float64] = (np.asarray(attenuation_db, dtype=np.float64) / (k * path.length_m / 1e3)) ** (1 / alpha)
    return rate


def to_slant_path(attenuation_db: ArrayLike, measured: GroundPath, wanted: SlantPath) -> NDArray[np.float64]:
    r"""Attenuation on a path to a satellite, in the rain that a link over the ground has measured.

    .. math:: A_2 = k_2 \left( \frac{A_1}{k_1 L_1} \right)^{\alpha_2 / \alpha_1} L_2

    with :math:`L_2` from the station up to the height of rain (P.839).

    Parameters
    ----------
    attenuation_db
        Attenuation measured, in dB, at least 0. Any shape.
    measured
        The link that measured it.
    wanted
        The path to the satellite.

    Returns
    -------
    ndarray
        In dB, of the shape of `attenuation_db`.

    Raises
    ------
    MissingExtraError
        If itur is not installed.

    Notes
    -----
    The mean rain rate along the link is taken for that along the slant path: right for paths of like length over the ground,
    which is :math:`L_2 \cos` of the elevation. A longer link averages showers away, a shorter one sees more of them: the
    factor :math:`r` of P.530, for rain exceeded for 0.01 % of the time, changes by 29 % from 3.2 to 6.4 km at 25 GHz and
    30 mm/h. It is not applied, as it is not for the light rain that is most of what is measured. A slant path crosses rain up
    to its height as if it were as strong there as at the ground, and the map's height is that of an average year.

    References
    ----------
    ITU-R P.838-3, eq. (1); P.618-13, eq. (1); P.839-4.
    """
    k, alpha = specific_attenuation(wanted.frequency_hz, elevation_deg=wanted.elevation_deg, tilt_deg=wanted.tilt_deg)
    found: NDArray[np.float64] = k * rain_rate_mm_per_h(attenuation_db, measured) ** alpha * (length_in_rain_m(wanted) / 1e3)
    return found


@checked_arguments
def distance_m(latitude_deg: float, longitude_deg: float, other_latitude_deg: float, other_longitude_deg: float) -> float:
    """Distance over a sphere of 6,371 km, in m.

    Examples
    --------
    >>> round(distance_m(47.6394, 10.0772, 47.6923, 10.0419))
    6449
    """
    here, there = math.radians(latitude_deg), math.radians(other_latitude_deg)
    east = math.radians(other_longitude_deg - longitude_deg)
    half = math.sin((there - here) / 2) ** 2 + math.cos(here) * math.cos(there) * math.sin(east / 2) ** 2
    return 2 * 6_371_000.0 * math.asin(math.sqrt(half))

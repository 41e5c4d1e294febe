"""Distance, delay and elevation between a station on the ground and a satellite at rest or at one instant.

For a delay that changes during a run see `farlink.channels.synthesis.orbit` and ``delay_s = { kind = "pass", ... }`` of a
scenario. The earth is a sphere of 6,371 km. Beside the ellipsoid of WGS 84, elevations of a geostationary satellite differ by
at most 0.03 degrees, and delays from station to station by at most 0.06 ms (100,000 random places).
"""

from __future__ import annotations

import math

from farlink.arguments import check_range, checked_arguments
from farlink.channels.synthesis.orbit import EARTH_MU, EARTH_RADIUS_M, LIGHT_SPEED_M_PER_S

GEO_ALTITUDE_M = 35_786e3
"""Altitude of the geostationary orbit above the equator, in m."""

_LOWEST_M, _HIGHEST_M = 1e5, 4e8


@checked_arguments
def slant_range_m(altitude_m: float, elevation_deg: float) -> float:
    """Distance from a station to a satellite, in m.

    Parameters
    ----------
    altitude_m
        Height of the satellite above the ground, from 1e5 to 4e8 m.
    elevation_deg
        Angle of the satellite above the station's horizon, from 0 to 90 degrees.

    Raises
    ------
    ArgumentError
        If one is out of range.

    Notes
    -----
    The law of cosines in the triangle of the earth's centre, station and satellite.

    Examples
    --------
    >>> round(slant_range_m(GEO_ALTITUDE_M, 10) / 1e3)
    40581
    """
    check_range(_LOWEST_M <= altitude_m <= _HIGHEST_M, "altitude_m", "be from 1e5 to 4e8 m", altitude_m)
    check_range(0 <= elevation_deg <= 90, "elevation_deg", "be from 0 to 90 degrees", elevation_deg)
    elevation = math.radians(elevation_deg)
    across = EARTH_RADIUS_M * math.cos(elevation)
    return math.sqrt((EARTH_RADIUS_M + altitude_m) ** 2 - across**2) - EARTH_RADIUS_M * math.sin(elevation)


@checked_arguments
def relay_delay_s(altitude_m: float, up_elevation_deg: float, down_elevation_deg: float) -> float:
    """Propagation delay from one station over a satellite to another, one way, in s: a bent pipe.

    Zaghloul (section 2.2) calls it the two-way delay, up and down. The satellite's own processing is not in it.

    Parameters
    ----------
    altitude_m
        Height of the satellite above the ground, from 1e5 to 4e8 m.
    up_elevation_deg, down_elevation_deg
        Elevation of the satellite at the sending and at the receiving station, from 0 to 90 degrees.

    Raises
    ------
    ArgumentError
        If one is out of range.

    Examples
    --------
    >>> [round(1e3 * relay_delay_s(GEO_ALTITUDE_M, elevation, elevation), 1) for elevation in (90, 10, 0)]
    [238.7, 270.7, 278.0]
    """
    up, down = (slant_range_m(altitude_m, elevation) for elevation in (up_elevation_deg, down_elevation_deg))
    return (up + down) / LIGHT_SPEED_M_PER_S


@checked_arguments
def geostationary_elevation_deg(latitude_deg: float, longitude_deg: float, satellite_longitude_deg: float) -> float:
    """Elevation at which a station sees a geostationary satellite, in degrees; negative if it is below the horizon.

    Parameters
    ----------
    latitude_deg
        Of the station, from -90 to 90, north positive.
    longitude_deg, satellite_longitude_deg
        From -360 to 360, east positive.

    Raises
    ------
    ArgumentError
        If one is out of range.

    Notes
    -----
    Refraction, which lifts the satellite by half a degree at the horizon, is left out.

    Examples
    --------
    >>> round(geostationary_elevation_deg(52.5, 13.4, 13.0), 1)
    30.0
    >>> geostationary_elevation_deg(85, 0, 0) < 0
    True
    """
    check_range(-90 <= latitude_deg <= 90, "latitude_deg", "be from -90 to 90 degrees", latitude_deg)
    for name, value in (("longitude_deg", longitude_deg), ("satellite_longitude_deg", satellite_longitude_deg)):
        check_range(-360 <= value <= 360, name, "be from -360 to 360 degrees", value)
    apart = math.radians(longitude_deg - satellite_longitude_deg)
    # Cosine of the angle at the earth's centre between the station and the point below the satellite.
    cosine = math.cos(math.radians(latitude_deg)) * math.cos(apart)
    sine = math.sqrt(max(0.0, 1 - cosine * cosine))
    return math.degrees(math.atan2(cosine - EARTH_RADIUS_M / (EARTH_RADIUS_M + GEO_ALTITUDE_M), sine))


@checked_arguments
def orbital_period_s(altitude_m: float) -> float:
    """Time in which a satellite on a circular orbit goes round the earth's centre, in s (Kepler's third law).

    Parameters
    ----------
    altitude_m
        Height above the ground, from 1e5 to 4e8 m.

    Raises
    ------
    ArgumentError
        If it is out of range.

    Examples
    --------
    >>> round(orbital_period_s(780e3) / 60, 1)
    100.3
    """
    check_range(_LOWEST_M <= altitude_m <= _HIGHEST_M, "altitude_m", "be from 1e5 to 4e8 m", altitude_m)
    return 2 * math.pi * math.sqrt((EARTH_RADIUS_M + altitude_m) ** 3 / EARTH_MU)

"""A pass from two-line orbital elements, computed with skyfield."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from farlink.channels.synthesis.orbit import LOWEST_DEG
from farlink.channels.trace import read_bytes
from farlink.errors import TraceError
from farlink.extras import require
from farlink.near_names import nearest

_STEP_S = 1.0
_SEARCHED_DAYS = 10


@dataclass(frozen=True)
class ElementsPass:
    """A pass of a satellite whose elements are known, as positions at steps of a second.

    Parameters
    ----------
    time_s
        Times from the start, in s.
    elevation
        Elevation at those times, in degrees.
    distance_m
        Distance from station to satellite at those times, in m.
    start_utc
        When it starts, ISO 8601.
    """

    time_s: NDArray[np.float64]
    elevation: NDArray[np.float64]
    distance_m: NDArray[np.float64]
    start_utc: str

    @property
    def duration_s(self) -> float:
        """See `farlink.channels.synthesis.orbit.Pass`."""
        return float(self.time_s[-1])

    def elevation_deg(self, time_s: NDArray[np.float64]) -> NDArray[np.float64]:
        """See `farlink.channels.synthesis.orbit.Pass`."""
        return self._between(self.elevation, time_s)

    def range_m(self, time_s: NDArray[np.float64]) -> NDArray[np.float64]:
        """See `farlink.channels.synthesis.orbit.Pass`."""
        return self._between(self.distance_m, time_s)

    def _between(self, values: NDArray[np.float64], time_s: NDArray[np.float64]) -> NDArray[np.float64]:
        interpolate = require("scipy.interpolate", "a pass from elements")
        found: NDArray[np.float64] = interpolate.CubicSpline(self.time_s, values)(time_s)
        return found


def next_pass(
    file: str | Path,
    satellite: str,
    *,
    latitude_deg: float,
    longitude_deg: float,
    height_m: float = 0.0,
    after_utc: str = "",
    start_elevation_deg: float = 5.0,
    max_elevation_deg: float = 30.0,
    is_rising: bool = True,
) -> ElementsPass:
    """The next pass that culminates high enough.

    Parameters
    ----------
    file
        Two-line elements, with or without lines of names.
    satellite
        Name or catalogue number in the file.
    latitude_deg, longitude_deg, height_m
        The station, in degrees north and east and m above the ellipsoid.
    after_utc
        Earliest time, ISO 8601 in UTC; by default the epoch of the elements.
    start_elevation_deg
        Elevation at which the pass starts.
    max_elevation_deg
        The culmination lies at least so high.
    is_rising
        Whether it starts before culmination; otherwise where it comes down through `start_elevation_deg`.

    Raises
    ------
    TraceError
        If the file has no such satellite, or no such pass follows within ten days.
    """
    api = require("skyfield.api", "a pass from elements")
    timescale = api.load.timescale(builtin=True)
    found = _element_set(Path(file), satellite, timescale)
    station = api.wgs84.latlon(latitude_deg, longitude_deg, elevation_m=height_m)
    begin = found.epoch if not after_utc else timescale.from_datetime(_utc(after_utc))
    times, events = found.find_events(station, begin, begin + _SEARCHED_DAYS, altitude_degrees=LOWEST_DEG)
    rise, highest = None, -90.0
    for time, event in zip(times, events, strict=True):
        if event == 0:
            rise, highest = time, -90.0
        elif rise is not None and event == 1:
            highest = max(highest, float((found - station).at(time).altaz()[0].degrees))
        elif rise is not None and highest >= max_elevation_deg and start_elevation_deg <= highest:
            return _sampled(found - station, timescale, rise, time, start_elevation_deg, is_rising)
    raise TraceError(
        f"max_elevation_deg: no pass of {satellite} reaches {max_elevation_deg:g} degrees within {_SEARCHED_DAYS} days",
        "give a lower max_elevation_deg, or another station",
    )


def _sampled(path: Any, timescale: Any, rise: Any, fall: Any, start_deg: float, is_rising: bool) -> ElementsPass:
    def seen(time_s: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        altitude, _, distance = path.at(timescale.tt_jd(rise.tt + time_s / 86_400)).altaz()
        return np.asarray(altitude.degrees), np.asarray(distance.m)

    seconds = float((fall.tt - rise.tt) * 86_400)
    coarse_s = np.append(np.arange(0.0, seconds, _STEP_S), seconds)
    elevation = seen(coarse_s)[0]
    top = int(elevation.argmax())
    leg = slice(0, top + 1) if is_rising else slice(len(coarse_s) - 1, top - 1 if top else None, -1)
    start_s = float(np.interp(start_deg, elevation[leg], coarse_s[leg]))
    # A spline wants at least a few points.
    time_s = np.linspace(start_s, seconds, max(int((seconds - start_s) / _STEP_S), 4) + 1)
    elevation, distance_m = seen(time_s)
    start = timescale.tt_jd(rise.tt + start_s / 86_400)
    return ElementsPass(time_s - start_s, elevation, distance_m, start.utc_iso())


def _element_set(file: Path, satellite: str, timescale: Any) -> Any:
    api = require("skyfield.api", "a pass from elements")
    lines = [line.rstrip() for line in read_bytes(file).decode("utf-8", errors="replace").splitlines() if line.strip()]
    names = []
    for index in range(len(lines) - 1):
        if not (lines[index].startswith("1 ") and lines[index + 1].startswith("2 ")):
            continue
        number = lines[index][2:7].strip()
        name = lines[index - 1].removeprefix("0 ").strip() if index and not lines[index - 1].startswith("2 ") else number
        names.append(name)
        if satellite.strip().casefold() in (name.casefold(), number):
            try:
                return api.EarthSatellite(lines[index], lines[index + 1], name, timescale)
            except ValueError as error:
                raise TraceError(f"{file}: the elements of {name} are malformed: {error}", "download them again") from error
    if not names:
        raise TraceError(f"{file}: no two-line elements in it", "give a file of lines that begin with '1 ' and '2 '")
    near = nearest(satellite, names, likeness=0.3)
    raise TraceError(
        f"satellite: {file} has no {satellite!r}",
        f"did you mean {near!r}?" if near else f"it has {', '.join(names[:5])}" + (" and more" if len(names) > 5 else ""),
    )


def _utc(text: str) -> datetime:
    try:
        found = datetime.fromisoformat(text)
    except ValueError as error:
        raise TraceError(f"after_utc: {text!r} is not a time", "give it as 2025-01-23T12:00:00, in UTC") from error
    return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)

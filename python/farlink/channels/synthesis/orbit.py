"""A pass of a satellite: elevation and slant range over time, of a circular orbit or from elements."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from farlink.arguments import check_range, checked_arguments
from farlink.channels.trace import Trace
from farlink.errors import TraceError, core_errors

EARTH_RADIUS_M = 6_371_000.0
# Gravitational parameter of the earth (WGS 84), in m^3/s^2.
EARTH_MU = 3.986004418e14
LIGHT_SPEED_M_PER_S = 299_792_458.0
# The satellite counts as lost below this elevation.
LOWEST_DEG = 5.0


class Pass(Protocol):
    """Geometry of a pass."""

    @property
    def duration_s(self) -> float:
        """Time from the start until the satellite is down at 5 degrees, in s."""
        ...

    def elevation_deg(self, time_s: NDArray[np.float64]) -> NDArray[np.float64]:
        """Elevation at times from the start."""
        ...

    def range_m(self, time_s: NDArray[np.float64]) -> NDArray[np.float64]:
        """Distance from station to satellite at times from the start."""
        ...


@dataclass(frozen=True)
class CircularPass:
    """A pass of a circular orbit over a sphere that does not turn: that of a scenario's ``delay_s = { kind = "pass", ... }``.

    Parameters
    ----------
    altitude_m
        Height above the ground, in m.
    start_elevation_deg
        Elevation at time 0.
    max_elevation_deg
        Elevation at culmination.
    is_rising
        Whether time 0 lies before culmination.

    Notes
    -----
    The earth's turning changes a pass of a low orbit by some per cent of its duration.

    Examples
    --------
    >>> rising = CircularPass(610e3, 5.0, 90.0)
    >>> [round(float(r) / 1e3) for r in rising.range_m(np.array([0.0, rising.culmination_s]))]
    [2352, 610]
    """

    altitude_m: float
    start_elevation_deg: float
    max_elevation_deg: float
    is_rising: bool = True

    def __post_init__(self) -> None:
        if self.start_elevation_deg > self.max_elevation_deg:
            raise TraceError(
                f"start_elevation_deg: {self.start_elevation_deg:g} is above max_elevation_deg = {self.max_elevation_deg:g}",
                "start below the culmination",
            )

    @property
    def culmination_s(self) -> float:
        """Time of the highest elevation, in s; negative if the pass starts after it."""
        return self._times()[0]

    @property
    def duration_s(self) -> float:
        """See `Pass`."""
        return self._times()[1]

    def elevation_deg(self, time_s: NDArray[np.float64]) -> NDArray[np.float64]:
        """See `Pass`."""
        return self._seen(time_s)[0]

    def range_m(self, time_s: NDArray[np.float64]) -> NDArray[np.float64]:
        """See `Pass`."""
        return self._seen(time_s)[1]

    def _seen(self, time_s: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        from farlink import _core

        times = np.asarray(time_s, dtype=float)
        with core_errors():
            elevation, distance = _core.circular_pass(
                times.ravel(), self.altitude_m, self.max_elevation_deg, self.start_elevation_deg, self.is_rising
            )
        return elevation.reshape(times.shape), distance.reshape(times.shape)

    def _times(self) -> tuple[float, float]:
        """Times of culmination and set, in s."""
        from farlink import _core

        with core_errors():
            return _core.circular_pass_times(self.altitude_m, self.max_elevation_deg, self.start_elevation_deg, self.is_rising)


@checked_arguments
def delay_trace(geometry: Pass, duration_s: float, title: str, step_s: float = 0.01) -> Trace:
    """The one-way propagation delay of a pass, as a trace.

    Parameters
    ----------
    geometry
        The pass.
    duration_s
        How long, in s.
    title
        Title of the trace.
    step_s
        Time from value to value, in s.

    Examples
    --------
    >>> trace = delay_trace(CircularPass(610e3, 5.0, 90.0), 100.0, "KIODO")
    >>> round(1e3 * float(trace["delay_s"][0]), 3)
    7.846
    """
    check_range(1e-6 <= step_s < np.inf, "step_s", "be at least 1e-6 and finite", step_s)
    time_s: NDArray[np.float64] = np.arange(math.ceil(duration_s / step_s - 1e-9), dtype=np.float64) * step_s
    delay_s = geometry.range_m(time_s) / LIGHT_SPEED_M_PER_S
    return Trace("delay", {"time_s": time_s, "delay_s": delay_s}, {"duration_s": duration_s, "title": title})

"""Propagation delay to a vehicle that drives to and fro: the synthetic trace ``vehicle``, labelled as synthetic."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from farlink.arguments import checked_arguments
from farlink.channels.parameter import Parameter, Value, read_value
from farlink.channels.synthesis.orbit import LIGHT_SPEED_M_PER_S
from farlink.channels.synthesis.request import check_request, check_samples
from farlink.channels.synthesis.streams import root_seed, stream
from farlink.channels.trace import Trace
from farlink.errors import TraceError

NAME = "vehicle"
TITLE = "propagation delay to a vehicle that drives to and fro, 1.4 km away at 20 km/h as atenaa's"
DURATION_S = 100.0

_P = Parameter

PARAMETERS: dict[str, Parameter] = {
    "distance_m": _P(1400.0, "distance of the middle of the stretch", 1.0, 1e9),
    "speed_mps": _P(20 / 3.6, "speed of the vehicle, in m/s", 0.0, 1e5),
    "stretch_m": _P(50 * 20 / 3.6, "length of the stretch, which is shorter than twice distance_m", 1e-3, 1e9),
    "angle_deg": _P(0.0, "between the stretch and the line of sight at its middle; 0: straight towards and away", 0.0, 90.0),
    "step_s": _P(0.01, "time from value to value", 1e-6, 3600.0),
}


@dataclass(frozen=True)
class VehicleSynthesis:
    """A drive that is settled but not yet drawn.

    Parameters
    ----------
    values
        All parameters.
    duration_s
        How long, in s.
    seed
        Seed of its random stream.
    """

    values: dict[str, Value]
    duration_s: float
    seed: int

    name: ClassVar[str] = NAME
    kind: ClassVar[str] = "delay"
    made_by: ClassVar[str] = ""

    @property
    def title(self) -> str:
        """Title of its trace."""
        return f"vehicle at {3.6 * float(self.values['speed_mps']):.3g} km/h, seed {self.seed} (synthetic)"

    def draw(self, progress: Callable[[int, int], None] | None = None) -> Trace:
        """Draw the one-way propagation delay, a trace of kind ``delay``.

        Parameters
        ----------
        progress
            Called with the steps done and planned.
        """
        step_s = float(self.values["step_s"])
        time_s: NDArray[np.float64] = np.arange(round(self.duration_s / step_s), dtype=np.float64) * step_s
        delay_s = self.distance_m(time_s) / LIGHT_SPEED_M_PER_S
        if progress is not None:
            progress(1, 1)
        return Trace("delay", {"time_s": time_s, "delay_s": delay_s}, self._meta())

    def distance_m(self, time_s: NDArray[np.float64]) -> NDArray[np.float64]:
        """Distance to the vehicle, in m, at times from the start.

        Parameters
        ----------
        time_s
            The times, in s.
        """
        middle_m, stretch_m = float(self.values["distance_m"]), float(self.values["stretch_m"])
        # Where on the way out or back it is at the start is drawn.
        start_m = 2 * stretch_m * stream(root_seed(self.seed, NAME), "start").random()
        driven_m = np.mod(start_m + float(self.values["speed_mps"]) * time_s, 2 * stretch_m)
        along_m = stretch_m / 2 - np.abs(driven_m - stretch_m)
        cosine = math.cos(math.radians(float(self.values["angle_deg"])))
        squared: NDArray[np.float64] = middle_m**2 + along_m**2 + 2 * cosine * middle_m * along_m
        return np.sqrt(squared)

    def delay(self) -> Trace:
        """Refused: the trace is the delay already.

        Raises
        ------
        TraceError
            Always.
        """
        raise TraceError("the trace of a vehicle is its delay", "leave --delay out: -o writes it")

    def _meta(self) -> dict[str, Any]:
        return {
            "title": self.title,
            "source": "farlink, synthetic motion",
            "notes": "Not measured: straight to and fro at constant speed; where it starts is drawn.",
            "duration_s": self.duration_s,
            "synthetic": True,
            "preset": self.name,
            "seed": self.seed,
            "parameters": {name: self.values[name] for name in sorted(self.values)},
        }


@checked_arguments
def settle(overrides: Mapping[str, object], *, duration_s: float | None = None, seed: int = 1) -> VehicleSynthesis:
    """Check the parameters.

    Parameters
    ----------
    overrides
        Parameters, see `PARAMETERS`; numbers may be texts.
    duration_s
        How long, in s; 100 s by default.
    seed
        Seed of the random stream, at least 0.

    Raises
    ------
    TraceError
        If a name is unknown, a value not allowed, or values contradict each other.

    Notes
    -----
    The vehicle turns at once at the ends of the stretch. A body that shakes on its suspension moves by centimetres, a tenth of
    a nanosecond: it is left out.

    References
    ----------
    Epple, sections 2.3 and 4.1.1: an aircraft simulator 1400 m away that drives at 20 km/h on a taxiway. Where the taxiway
    lies is not printed: straight towards and away, as by default, changes the delay most.

    Examples
    --------
    >>> trace = settle({"stretch_m": 100}, duration_s=60.0).draw()
    >>> [round(1e6 * float(end), 3) for end in (trace["delay_s"].min(), trace["delay_s"].max())]
    [4.503, 4.837]
    """
    check_request(duration_s, seed)
    wanted_s = DURATION_S if duration_s is None else duration_s
    values = {name: known.default for name, known in PARAMETERS.items()}
    values |= {name: read_value(name, value, PARAMETERS, NAME) for name, value in overrides.items()}
    stretch_m, distance_m = float(values["stretch_m"]), float(values["distance_m"])
    if stretch_m >= 2 * distance_m:
        raise TraceError(
            f"stretch_m: {stretch_m:g} is not below twice distance_m = {distance_m:g}",
            f"give less than {2 * distance_m:g}, or a larger distance_m",
        )
    samples = round(wanted_s / float(values["step_s"]))
    check_samples(samples, wanted_s, least=1, step="step_s")
    return VehicleSynthesis(values, samples * float(values["step_s"]), seed)

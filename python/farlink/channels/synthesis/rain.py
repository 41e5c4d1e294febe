"""Synthetic C/N0 under rain: the synthetic trace ``rain``, labelled as synthetic."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from farlink.arguments import checked_arguments
from farlink.channels.parameter import Parameter, Value
from farlink.channels.rain.distribution import MARGINALS, Distribution
from farlink.channels.rain.prediction import predict, versions
from farlink.channels.rain.process import TWO_SCALES, first_order, normal_process
from farlink.channels.rain.series import cn0_trace
from farlink.channels.rain.settings import LINK, PATH, given, link_of, path_of, read_values
from farlink.channels.synthesis.request import check_request, check_samples
from farlink.channels.synthesis.streams import root_seed, stream
from farlink.channels.trace import Trace
from farlink.errors import TraceError

NAME = "rain"
TITLE = "C/N0 of a satellite link under rain, by ITU-R P.618 and P.1853; needs latitude, longitude, elevation and frequency"
DURATION_S = 30 * 86_400.0

_P = Parameter

PARAMETERS: dict[str, Parameter] = {
    **PATH,
    **LINK,
    "distribution": _P("prediction", "how the prediction is met: as it is, or by a lognormal fit", choices=tuple(MARGINALS)),
    "process": _P("first-order", "course in time, of P.1853-1 or -2", choices=("first-order", "two-scales")),
    "rate_per_s": _P(2e-4, "inverse of the correlation time (first-order)", 1e-7, 1.0),
    "step_s": _P(1.0, "time from value to value", 1e-3, 3600.0),
}


@dataclass(frozen=True)
class RainSynthesis:
    """A realisation that is settled but not yet drawn.

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
    kind: ClassVar[str] = "cn0"

    @property
    def title(self) -> str:
        """Title of its trace."""
        return f"rain at {float(self.values['frequency_hz']) / 1e9:g} GHz, seed {self.seed} (synthetic)"

    @property
    def made_by(self) -> str:
        """Versions that influence the drawn values, other than those of farlink and NumPy."""
        return versions()

    def prediction(self) -> Distribution:
        """The distribution of the attenuation that is to be met."""
        return predict(path_of(self.values))

    def draw(self, progress: Callable[[int, int], None] | None = None) -> Trace:
        """Draw the C/N0, a trace of kind ``cn0``.

        Parameters
        ----------
        progress
            Called with the steps done and planned.

        Raises
        ------
        MissingExtraError
            If itur is not installed.
        """
        tell = progress or (lambda _done, _total: None)
        prediction = self.prediction()
        attenuation = MARGINALS[str(self.values["distribution"])](prediction)
        tell(1, 3)
        step_s = float(self.values["step_s"])
        samples = round(self.duration_s / step_s)
        is_first = self.values["process"] == "first-order"
        parts = first_order(float(self.values["rate_per_s"])) if is_first else TWO_SCALES
        rng = stream(root_seed(self.seed, self.name), "rain")
        attenuation_db = attenuation(normal_process(samples, step_s, parts, rng))
        tell(2, 3)
        time_s = step_s * np.arange(samples, dtype=np.float64)
        trace = cn0_trace(time_s, attenuation_db, link_of(self.values), duration_s=self.duration_s, meta=self._meta())
        tell(3, 3)
        return trace

    def delay(self) -> Trace:
        """Refused: the distance does not change.

        Raises
        ------
        TraceError
            Always.
        """
        raise TraceError("rain has no pass, so its delay does not vary", "give a plain delay_s")

    def _meta(self) -> dict[str, Any]:
        course = "P.1853-1" if self.values["process"] == "first-order" else "P.1853-2"
        return {
            "title": self.title,
            "source": f"farlink, synthetic rain: {versions()}, course in time of {course}",
            "notes": "Not measured: attenuation by rain alone, no clouds, no scintillation.",
            "synthetic": True,
            "preset": self.name,
            "seed": self.seed,
            "parameters": given(self.values),
        }


@checked_arguments
def settle(overrides: Mapping[str, object], *, duration_s: float | None = None, seed: int = 1) -> RainSynthesis:
    """Check the parameters.

    Parameters
    ----------
    overrides
        Parameters, see `PARAMETERS`; numbers may be texts.
    duration_s
        How long, in s; 30 days by default.
    seed
        Seed of the random stream, at least 0.

    Raises
    ------
    TraceError
        If a name is unknown, a value missing or not allowed.

    Notes
    -----
    P.618 predicts from 1 to 55 GHz, P.1853 was made for 4 to 55 GHz; both from 5 degrees of elevation. Attenuation rarer than
    0.001 % of the time is extrapolated.

    Examples
    --------
    >>> site = {"latitude_deg": 50.67, "longitude_deg": 4.61, "elevation_deg": 30, "frequency_hz": 19.7e9}
    >>> settle({**site, "clear_sky_dbhz": 95}, seed=7).title
    'rain at 19.7 GHz, seed 7 (synthetic)'
    """
    check_request(duration_s, seed, for_example_s=86_400)
    wanted_s = DURATION_S if duration_s is None else duration_s
    values = read_values(overrides, PARAMETERS)
    path_of(values)
    link_of(values)
    samples = round(wanted_s / float(values["step_s"]))
    check_samples(samples, wanted_s, least=2, step="step_s")
    return RainSynthesis(values, samples * float(values["step_s"]), seed)

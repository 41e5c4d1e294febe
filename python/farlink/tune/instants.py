"""A series of C/N0 at equal distances in time."""

from __future__ import annotations

import math

import numpy as np

from farlink.arguments import checked_arguments
from farlink.channels.trace import Trace
from farlink.errors import TuneError
from farlink.tune.curves import Floats

MOST_INSTANTS = 10_000_000
_TICKS_PER_S = 1_000_000


@checked_arguments
def instants(trace: Trace, detection_s: float, step_s: float | None = None) -> tuple[float, Floats]:
    """The C/N0 that holds at each instant.

    Parameters
    ----------
    trace
        Of kind ``cn0``.
    detection_s
        A delay that is to be a whole number of steps.
    step_s
        From instant to instant; unless given the longest of which all times, the duration and the delay are multiples, to the
        microsecond. Values of C/N0 shorter than a given step may be passed over, and the delay is rounded to it.

    Returns
    -------
    float, ndarray
        The step in s, and C/N0 in dBHz. Shape ``(n,)``.

    Raises
    ------
    TuneError
        If the step is not positive or longer than the series, or there would be too many instants.

    Examples
    --------
    >>> trace = Trace("cn0", {"time_s": [0.0, 10.0], "cn0_dbhz": [80.0, 70.0]}, {"duration_s": 20.0})
    >>> instants(trace, 4.0)
    (2.0, array([80., 80., 80., 80., 80., 70., 70., 70., 70., 70.]))
    """
    duration_s = float(trace.meta["duration_s"])
    if step_s is None:
        times = np.round(np.array([*trace["time_s"], duration_s, detection_s]) * _TICKS_PER_S).astype(np.int64)
        step_s = max(1, int(np.gcd.reduce(times))) / _TICKS_PER_S
        remedy = "the times are uneven: give a step, such as 1 s"
    else:
        remedy = f"give one above 0 and at most the {duration_s:g} s of the series"
    if not 0 < step_s <= duration_s * (1 + 1e-9):
        raise TuneError(f"a step of {step_s:g} s", remedy)
    count = math.floor(duration_s / step_s * (1 + 1e-12))
    if count > MOST_INSTANTS:
        raise TuneError(f"{count:,} steps of {step_s:g} s, and at most {MOST_INSTANTS:,} are played", remedy)
    at = np.searchsorted(trace["time_s"], step_s * np.arange(count) + 1e-9 * step_s, side="right") - 1
    found: Floats = trace["cn0_dbhz"][at]
    return step_s, found

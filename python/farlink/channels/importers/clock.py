"""The clock of a recording: its times are there, and ascend."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from farlink.errors import TraceError

# Largest absolute value of a time: 30,000 years, where a double still resolves milliseconds.
MOST_SECONDS = 1e12


def check_clock(time_s: NDArray[np.float64], where: str, *, entry: str, first: int, remedy: str) -> None:
    """Refuse times that are missing or do not ascend.

    Parameters
    ----------
    time_s
        Times, in s.
    where
        The file, for messages.
    entry
        What an entry is called, and in `first` the number of the first one.
    first
        0 or 1.
    remedy
        What to do about times that do not ascend.

    Raises
    ------
    TraceError
        With the entry and its time.
    """
    missing = np.flatnonzero(~np.isfinite(time_s))
    if missing.size:
        raise TraceError(f"{where}: the time of {entry} {missing[0] + first} is missing", f"complete or remove that {entry}")
    beyond = np.flatnonzero(np.abs(time_s) > MOST_SECONDS)
    if beyond.size:
        at = int(beyond[0])
        raise TraceError(f"{where}: the time of {entry} {at + first} is {time_s[at]:g} s", "check the column of the times")
    steps = np.diff(time_s)
    back = np.flatnonzero(steps <= 0)
    if back.size:
        at = int(back[0]) + 1
        what = "goes backwards" if steps[at - 1] < 0 else "stands still"
        raise TraceError(
            f"{where}: the clock {what} at {entry} {at + first}, {time_s[at]:.9g} s after {time_s[at - 1]:.9g} s", remedy
        )

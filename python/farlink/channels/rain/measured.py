"""Attenuation by rain from the levels of a microwave link: the loss beyond that of dry hours."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from farlink.arguments import checked_arguments

Series = NDArray[np.float64]

# Interval at which the level of dry minutes is updated.
_EVERY_S = 6 * 3600.0


@checked_arguments
def attenuation_of_levels(
    time_s: Series,
    loss_db: Series,
    *,
    wet_window_s: float = 3600.0,
    wet_deviation_db: float = 0.8,
    dry_window_s: float = 3 * 86_400.0,
) -> Series:
    """Attenuation by rain: the loss of a path in wet minutes, less its loss in the dry minutes around.

    A minute is wet where the standard deviation of the loss in a window around it is above a threshold. The loss in dry
    weather is the median of the dry minutes of three days.

    Parameters
    ----------
    time_s
        Times, in s, ascending at nearly equal steps. Shape ``(n,)``.
    loss_db
        Level sent less level received, in dB; NaN where missing. Shape ``(n,)``.
    wet_window_s
        Window of the deviation, in s.
    wet_deviation_db
        Deviation above which it rains, in dB.
    dry_window_s
        Window of the loss in dry weather, in s.

    Returns
    -------
    ndarray
        Attenuation in dB, at least 0; 0 in dry minutes; NaN where the level is missing. Shape ``(n,)``.

    Notes
    -----
    Steady drizzle that hardly varies within an hour passes for dry. What water on the antennas costs is not taken off: some
    dB at most, in every wet minute (Schleiss et al., IEEE Geoscience and Remote Sensing Letters 10, 2013).

    References
    ----------
    Wet and dry as of Schleiss and Berne, IEEE Geoscience and Remote Sensing Letters 7 (2010), as in pycomlink, whose examples
    take 60 minutes and 0.8 dB. pycomlink holds the last level before the rain; in rain of days that is not a dry one.

    Examples
    --------
    >>> minutes = np.arange(600.0) * 60
    >>> loss = np.full(600, 60.0)
    >>> loss[300:320] = 68.0
    >>> found = attenuation_of_levels(minutes, loss)
    >>> found[[0, 299, 300, 319, 320]]
    array([0., 0., 8., 8., 0.])
    """
    step_s = float(np.median(np.diff(time_s)))
    known = np.isfinite(loss_db)
    wet = _deviation(loss_db, known, max(round(wet_window_s / step_s), 2)) > wet_deviation_db
    dry = known & ~wet
    if not dry.any():
        dry = known
    centres = np.arange(time_s[0], time_s[-1] + _EVERY_S, _EVERY_S)
    first = np.searchsorted(time_s[dry], centres - dry_window_s / 2)
    last = np.searchsorted(time_s[dry], centres + dry_window_s / 2)
    levels, used = loss_db[dry], last > first
    medians = [float(np.median(levels[a:b])) for a, b in zip(first[used], last[used], strict=True)]
    excess = loss_db - np.interp(time_s, centres[used], medians)
    return np.where(known, np.where(wet, np.maximum(excess, 0.0), 0.0), np.nan)


def _deviation(values: Series, known: NDArray[np.bool_], samples: int) -> Series:
    """Standard deviation of the known values in a window around each sample; NaN if there are none."""
    window = np.ones(samples)
    # Deviations from a middle keep the sums of squares small.
    centred = np.where(known, values - np.median(values[known]), 0.0)
    with np.errstate(invalid="ignore", divide="ignore"):
        count = np.round(np.convolve(known, window, "same"))
        mean = np.convolve(centred, window, "same") / count
        found: Series = np.sqrt(np.maximum(np.convolve(centred**2, window, "same") / count - mean**2, 0.0))
    return found

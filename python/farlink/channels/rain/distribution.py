"""Distributions of rain attenuation, and their mapping from a normal deviate."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from farlink.arguments import checked_arguments
from farlink.errors import TraceError
from farlink.extras import require

Series = NDArray[np.float64]

# Shares of the time, in percent, at which P.1853 fits the attenuation. P.618 predicts at most 5 %.
FITTED_PERCENT = (0.01, 0.02, 0.03, 0.05, 0.1, 0.2, 0.3, 0.5, 1.0, 2.0, 3.0, 5.0)


@dataclass(frozen=True)
class Distribution:
    r"""Attenuation that is exceeded for a share of the time.

    Between the points, and beyond them, :math:`\ln A` is linear in :math:`Q^{-1}(p / p_0)`, the normal quantile of a share of
    the time with rain: a lognormal distribution is one line.

    Parameters
    ----------
    percent
        Shares of the time, in percent, ascending, each above 0 and below `rain_percent`. Shape ``(n,)``, at least two.
    attenuation_db
        Attenuation exceeded for as long, in dB, above 0 and descending. Shape ``(n,)``.
    rain_percent
        Share of the time with rain on the path, :math:`p_0`, in percent, up to 100.

    Raises
    ------
    TraceError
        If one of these does not hold.

    Examples
    --------
    >>> found = Distribution([0.01, 0.1, 1.0], [12.0, 4.2, 1.0], 7.0)
    >>> found.exceeded_db([0.01, 0.05, 7.0]).round(2)
    array([12.  ,  5.93,  0.  ])
    >>> found.exceeded_percent([4.2, 0.0]).round(3)
    array([0.1, 7. ])
    """

    percent: Series
    attenuation_db: Series
    rain_percent: float

    def __post_init__(self) -> None:
        for name in ("percent", "attenuation_db"):
            object.__setattr__(self, name, np.atleast_1d(np.asarray(getattr(self, name), dtype=np.float64)))
        percent, attenuation = self.percent, self.attenuation_db
        if not 0 < self.rain_percent <= 100:
            raise TraceError(f"rain for {self.rain_percent:g} % of the time", "it is above 0 and at most 100 %")
        if percent.size != attenuation.size or percent.size < 2:
            raise TraceError(
                f"{percent.size} shares of the time and {attenuation.size} attenuations", "give two or more, and one for each"
            )
        if not (percent[0] > 0 and np.all(np.diff(percent) > 0) and percent[-1] < self.rain_percent):
            raise TraceError(
                f"shares of the time from {percent[0]:g} to {percent[-1]:g} %",
                f"they ascend, above 0 and below the {self.rain_percent:g} % of the time with rain",
            )
        if not (np.all(attenuation > 0) and np.all(np.diff(attenuation) < 0)):
            raise TraceError(
                f"attenuations from {attenuation[0]:g} to {attenuation[-1]:g} dB",
                "they are above 0 dB, and less the more often they are exceeded",
            )

    def exceeded_db(self, percent: ArrayLike) -> Series:
        """Attenuation exceeded for a share of the time, in dB; 0 beyond the share with rain. Shape of `percent`."""
        share = np.asarray(percent, dtype=np.float64) / self.rain_percent
        with np.errstate(over="ignore"):
            found = np.exp(_line(_quantile(np.minimum(share, 1.0)), *self._points))
        return np.where(share < 1, found, 0.0)

    def exceeded_percent(self, attenuation_db: ArrayLike) -> Series:
        """Share of the time for which an attenuation in dB is exceeded, in percent. Shape of `attenuation_db`."""
        quantile, log = self._points
        with np.errstate(divide="ignore"):
            at = _line(np.log(np.asarray(attenuation_db, dtype=np.float64)), log, quantile)
        found: Series = self.rain_percent * _special().ndtr(-at)
        return found

    def of_normal(self, deviate: Series) -> Series:
        """Attenuation, in dB, that is exceeded with the same probability as a standard normal deviate."""
        found = np.zeros_like(deviate)
        rains = deviate > _quantile(np.array(self.rain_percent / 100))
        found[rains] = self.exceeded_db(100 * _special().ndtr(-deviate[rains]))
        return found

    @property
    def _points(self) -> tuple[Series, Series]:
        """Ascending normal quantiles, and the logarithm of the attenuation at each."""
        return _quantile(self.percent / self.rain_percent)[::-1], np.log(self.attenuation_db)[::-1]


@checked_arguments
def lognormal(prediction: Distribution) -> Distribution:
    """The lognormal distribution, given rain, that fits another at `FITTED_PERCENT` best: least squares of the logarithm.

    References
    ----------
    ITU-R P.1853-2, Annex 1, section 2: the distribution of its rain attenuation.

    Examples
    --------
    >>> true = Distribution([0.01, 1.0], [12.0, 1.0], 7.0)
    >>> bool(np.isclose(lognormal(true).exceeded_db(0.1), true.exceeded_db(0.1)))
    True
    """
    percent, log = _fitted_points(prediction)
    slope, middle = np.polyfit(_quantile(percent / prediction.rain_percent), log, 1)
    return Distribution(percent, np.exp(middle + slope * _quantile(percent / prediction.rain_percent)), prediction.rain_percent)


def offset_lognormal(prediction: Distribution) -> Callable[[Series], Series]:
    r"""Maps a normal deviate to a lognormal distribution over all time, less an offset that makes it 0 without rain.

    .. math:: A = \max(e^{m + \sigma x} - A_{off}, 0), \qquad A_{off} = e^{m + \sigma Q^{-1}(p_0)}

    Notes
    -----
    Taking off the offset makes every attenuation less than what was fitted: the distribution is not that of the prediction
    (Boulanger et al., IEEE Transactions on Antennas and Propagation 61, 2013).

    References
    ----------
    ITU-R P.1853-1, Annex 1, section 2.2, steps A to D.
    """
    percent, log = _fitted_points(prediction)
    slope, middle = np.polyfit(_quantile(percent / 100), log, 1)
    offset_db = np.exp(middle + slope * _quantile(np.array(prediction.rain_percent / 100)))

    def attenuation(deviate: Series) -> Series:
        found: Series = np.maximum(np.exp(middle + slope * deviate) - offset_db, 0.0)
        return found

    return attenuation


# Mappings of a standard normal deviate to the prediction, by name.
MARGINALS: dict[str, Callable[[Distribution], Callable[[Series], Series]]] = {
    "prediction": lambda prediction: prediction.of_normal,
    "lognormal": lambda prediction: lognormal(prediction).of_normal,
    "offset-lognormal": offset_lognormal,
}


def _fitted_points(prediction: Distribution) -> tuple[Series, Series]:
    percent = np.array([share for share in FITTED_PERCENT if share < prediction.rain_percent])
    if percent.size < 2:
        raise TraceError(
            f"rain for {prediction.rain_percent:.3g} % of the time", "too rare for a lognormal fit: distribution=prediction"
        )
    return percent, np.log(prediction.exceeded_db(percent))


def _quantile(share: Series) -> Series:
    """Normal deviate that is exceeded for a share of the time."""
    found: Series = -_special().ndtri(share)
    return found


def _line(at: Series, x: Series, y: Series) -> Series:
    """Linear between points, and on along the first and the last piece."""
    piece = np.clip(np.searchsorted(x, at) - 1, 0, x.size - 2)
    slope = np.diff(y) / np.diff(x)
    found: Series = y[piece] + slope[piece] * (at - x[piece])
    return found


def _special() -> Any:
    return require("scipy.special", "rain attenuation")

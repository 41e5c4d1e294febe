r"""How long calls stay up, by a description of what drops them.

The causes are independent of each other, so that their survival functions multiply. A call begins at a time that does not
depend on the handovers: the first comes after the residual time of a renewal process, and each is survived with
:math:`1 - p`:

.. math:: S_h(t) = \sum_k (1 - p)^k P(N(t) = k)
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import lru_cache

import numpy as np

from farlink.arguments import check_range, checked_arguments
from farlink.channels.calls.generator import low_signal
from farlink.channels.calls.generator.causes import READING_S, Cells, DropCauses, Handovers, Series
from farlink.extras import require

_STEP_S = 1.0
_MOST_STEPS = 200_000
_INTERVALS = 20_000
# Logarithm of a survival below which rounding decides.
_FLOOR = -600.0


@checked_arguments
def log_survival(causes: DropCauses, ages_s: Series) -> Series:
    """Logarithm of the probability that a call is still up at some ages.

    Parameters
    ----------
    causes
        What drops it.
    ages_s
        Ages in s, not negative. Any shape.

    Returns
    -------
    ndarray
        Logarithms, of the same shape; not below -690.

    Raises
    ------
    ArgumentError
        If an age is negative or above 200,000 s.

    Notes
    -----
    To the second for handovers and cells, to the 4 s of the modem's answers for a low signal.

    Examples
    --------
    >>> causes = DropCauses(handovers=Handovers(failure=0.1), other_mean_s=3600)
    >>> np.exp(log_survival(causes, np.array([0.0, 600.0, 3600.0]))).round(3)
    array([1.   , 0.758, 0.189])
    """
    ages = np.asarray(ages_s, dtype=np.float64)
    is_within = not ages.size or bool(ages.min() >= 0 and ages.max() <= _MOST_STEPS * _STEP_S)
    check_range(is_within, "ages_s", f"be from 0 to {_MOST_STEPS * _STEP_S:g}", ages.tolist() if ages.size < 5 else "others")
    total = np.zeros(ages.shape)
    if not ages.size:
        return total
    total = total - ages / causes.other_mean_s
    if causes.set_up is not None:
        total = total - causes.set_up.drops * -np.expm1(-ages / causes.set_up.mean_s)
    for source, failure in _renewals(causes):
        if failure > 0:
            grid, values = _renewal_log_survival(source, failure, float(ages.max()))
            total = total + np.interp(ages, grid, values)
    if causes.low_signal is not None:
        at_s, values = low_signal.log_survival(causes.low_signal, float(ages.max()))
        # A call begins anywhere between two answers; over all of that, its survival is straight from answer to answer.
        total = total + np.log(np.interp(ages, at_s + READING_S, np.exp(values)))
    return np.asarray(np.clip(total, -690.0, 0.0))


@checked_arguments
def drop_rates_hz(causes: DropCauses) -> dict[str, float]:
    """Drops per second of time up, cause by cause, of a line that is dialled again at once.

    Parameters
    ----------
    causes
        What drops it.

    Returns
    -------
    dict
        ``"handover"``, ``"cell"``, ``"low signal"`` and ``"other"``; drops at the beginning of calls have no rate.

    Notes
    -----
    Handovers come by the clock on the wall, so that their rate is the probability over the mean interval. That of a low signal
    is the one of a call that has been up for four times its correlation, at most two hours.

    Examples
    --------
    >>> rates = drop_rates_hz(DropCauses(handovers=Handovers(failure=0.057), other_mean_s=6000))
    >>> {name: round(1 / rate) for name, rate in rates.items() if rate}
    {'handover': 10000, 'other': 6000}
    """
    handover = 0.0 if causes.handovers is None else causes.handovers.failure / causes.handovers.mean_s
    cell = 0.0 if causes.cells is None else causes.cells.failure_in_all / causes.cells.mean_s
    low = 0.0
    if causes.low_signal is not None:
        # Where the chain has forgotten its beginning.
        span_s = min(16_000.0, max(600.0, 8 * causes.low_signal.correlation_s))
        at_s, values = low_signal.log_survival(causes.low_signal, span_s)
        half = at_s.size // 2
        if values[-1] > _FLOOR:
            low = max(0.0, float((values[half] - values[-1]) / (at_s[-1] - at_s[half])))
        else:
            # No call lives that long: one over the mean.
            low = 1 / float(np.exp(values).sum() * READING_S)
    return {"handover": handover, "cell": cell, "low signal": low, "other": 1 / causes.other_mean_s}


def _renewals(causes: DropCauses) -> list[tuple[Handovers | Cells, float]]:
    found: list[tuple[Handovers | Cells, float]] = []
    if causes.handovers is not None:
        found.append((causes.handovers, causes.handovers.failure))
    if causes.cells is not None:
        found.append((causes.cells, causes.cells.failure_in_all))
    return found


def _renewal_log_survival(source: Handovers | Cells, failure: float, span_s: float) -> tuple[Series, Series]:
    """Survival of renewals, on a grid of whole seconds."""
    count = 2 + math.ceil(span_s / _STEP_S)
    density = _density(replace(source, failure=0.0))
    # The residual time of the first: P(longer) over the mean.
    first = np.concatenate(([0.0], np.maximum(1 - np.cumsum(density), 0.0), np.zeros(count)))[:count]
    first /= _mean_steps(density)
    # Rate of the renewals that a call reaches, by age: u = first + (1 - p) u * density.
    recursion = -(1 - failure) * density[:count]
    recursion[0] += 1
    reached = require("scipy.signal", "the survival of calls").lfilter([1.0], recursion, first)
    return np.asarray(np.arange(count) * _STEP_S), np.asarray(np.log(np.maximum(1 - failure * np.cumsum(reached), 1e-300)))


@lru_cache(maxsize=32)
def _density(source: Handovers | Cells) -> Series:
    """Distribution of an interval in whole seconds; each is shared between its neighbours, so that the mean stays."""
    times = source.intervals_s((np.arange(_INTERVALS) + 0.5) / _INTERVALS) / _STEP_S
    whole = np.floor(times).astype(np.int64)
    part = times - whole
    length = int(whole.max()) + 2
    return np.asarray((np.bincount(whole, 1 - part, length) + np.bincount(whole + 1, part, length)) / _INTERVALS)


def _mean_steps(density: Series) -> float:
    return float(np.arange(density.size) @ density)

"""How long calls survive the rule that a low signal drops them, and when they drop by a series of the signal."""

from __future__ import annotations

import math
from types import EllipsisType

import numpy as np

from farlink.channels.calls.generator.causes import READING_S, LowSignal, Series
from farlink.extras import require

# The chain's ratio goes so many deviations to either side, in steps this small against its change from answer to answer.
_DEVIATIONS, _STEP = 5.0, 0.6
_MOST_STEPS = 400

Place = tuple[slice | int | EllipsisType, ...]


def log_survival(signal: LowSignal, span_s: float) -> tuple[Series, Series]:
    """Logarithm of the probability that a call is still up, by its age, if only the signal drops it.

    Parameters
    ----------
    signal
        The signal and the rules.
    span_s
        Oldest age, in s.

    Returns
    -------
    ages_s, logarithms
        At every answer of the modem, every 4 s, from age 0 on. Between two of them nothing drops.

    Notes
    -----
    A chain of the ratio, on points between which the ratios of the rules lie, and of the number of answers in a row below each
    of them. A call begins at a time that does not depend on the signal, with its first answer. Beside drawn signals:
    `tests/unit/test_call_generator.py`.
    """
    decay = math.exp(-READING_S / signal.correlation_s)
    innovation_db = signal.deviation_db * math.sqrt(1 - decay**2)
    points_db = _points_db(signal, innovation_db)
    from_mean = points_db - signal.mean_db
    move = np.exp(-0.5 * ((from_mean[None, :] - decay * from_mean[:, None]) / innovation_db) ** 2)
    move /= move.sum(axis=1, keepdims=True)
    stationary = np.exp(-0.5 * (from_mean / signal.deviation_db) ** 2)
    answers = [_Answers(axis, int(np.sum(points_db < level_db))) for axis, (level_db, _) in enumerate(signal.rules)]
    # Answers in a row below each ratio, an axis each; the last axis is the ratio.
    state = np.zeros((*signal.answers, points_db.size))
    state[(0,) * len(signal.rules)] = stationary / stationary.sum()
    count = 1 + math.ceil(span_s / READING_S)
    left = np.empty(count)
    for step in range(count):
        if step:
            state = state @ move
        for one in answers:
            state = one.counted(state)
        left[step] = state.sum()
    return np.asarray(np.arange(count) * READING_S), np.asarray(np.log(np.clip(left, 1e-300, 1.0)))


def _points_db(signal: LowSignal, innovation_db: float) -> Series:
    levels = sorted({level_db for level_db, _ in signal.rules})
    step = max(_STEP * innovation_db, 2 * _DEVIATIONS * signal.deviation_db / _MOST_STEPS)
    if len(levels) > 1:
        # So that every ratio of a rule lies midway between two points.
        gap = min(np.diff(levels))
        step = gap / math.ceil(gap / step)
    low, high = signal.mean_db - _DEVIATIONS * signal.deviation_db, signal.mean_db + _DEVIATIONS * signal.deviation_db
    first = math.floor((low - levels[0]) / step)
    last = math.ceil((high - levels[0]) / step)
    return np.asarray(levels[0] + (np.arange(first, last + 1) + 0.5) * step, dtype=np.float64)


class _Answers:
    """Counts the answers in a row below a ratio, one axis of the state.

    Parameters
    ----------
    axis
        The axis.
    below
        How many of the points, which rise, lie below the ratio.
    """

    def __init__(self, axis: int, below: int) -> None:
        every: Place = (slice(None),) * axis
        self._axis = axis
        self._before: Place = (*every, slice(None, -1), ..., slice(None, below))
        self._after: Place = (*every, slice(1, None), ..., slice(None, below))
        self._above: Place = (..., slice(below, None))
        self._none: Place = (*every, 0, ..., slice(below, None))
        self._counted: Series | None = None

    def counted(self, state: Series) -> Series:
        """The state after an answer: one more in a row where the ratio is below, none where it is not; too many are gone.

        The array is written again by the next call.
        """
        if self._counted is None:
            self._counted = np.zeros_like(state)  # what is not written below stays 0
        self._counted[self._after] = state[self._before]
        np.add.reduce(state[self._above], axis=self._axis, out=self._counted[self._none])
        return self._counted


def series_db(signal: LowSignal, count: int, generator: np.random.Generator) -> Series:
    """The ratio at so many answers of the modem, in dB, every 4 s."""
    lfilter = require("scipy.signal", "a signal that varies").lfilter
    decay = math.exp(-READING_S / signal.correlation_s)
    noise = generator.standard_normal(count) * math.sqrt(1 - decay**2)
    if count:
        noise[0] /= math.sqrt(1 - decay**2)
    return np.asarray(signal.mean_db + signal.deviation_db * lfilter([1.0], [1.0, -decay], noise))


class LowSpells:
    """Answers of a series at which a rule is met, for calls that begin anywhere in it.

    Parameters
    ----------
    signal
        With the rules.
    ratios_db
        The ratio at each answer.
    """

    def __init__(self, signal: LowSignal, ratios_db: Series) -> None:
        self._met: list[tuple[int, np.ndarray]] = []
        places = np.arange(ratios_db.size)
        for (level_db, _), answers in zip(signal.rules, signal.answers, strict=True):
            last_above = np.maximum.accumulate(np.where(ratios_db >= level_db, places, -1))
            self._met.append((answers, np.flatnonzero(places - last_above >= answers)))

    def first(self, begin: int) -> int | None:
        """The first answer at which a call that had its first one at `begin` drops; None if it does not."""
        found = []
        for answers, met in self._met:
            place = int(np.searchsorted(met, begin + answers - 1))
            if place < met.size:
                found.append(int(met[place]))
        return min(found, default=None)

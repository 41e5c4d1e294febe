r"""What measured calls say of a description: its parameters by maximum likelihood, with intervals by profiles of it.

A call that dropped at an age t, known to the second, has the probability :math:`S(t - 1/2) - S(t + 1/2)`; one that was closed
on purpose :math:`S(t)`. Which parameters are free is the caller's choice: short calls do not tell causes apart that come at
nearly a constant rate, as handovers do within the first 9 min of a call.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from farlink.arguments import checked_arguments, refused
from farlink.channels.calls.generator.causes import DropCauses, Series
from farlink.channels.calls.generator.survival import log_survival
from farlink.channels.calls.links import Link
from farlink.channels.calls.samples import Sample, up_times
from farlink.errors import JournalError
from farlink.extras import require
from farlink.near_names import instead

# Half the resolution of logs, in s.
_HALF_S = 0.5
# Half the 95 % quantile of chi-square with one degree of freedom.
_DROP = 1.9207
# Free parameters -> how they are mapped to the whole line, and their limits there.
_LOGARITHM = (math.log, math.exp)
_ODDS = (lambda p: math.log(p / (1 - p)), lambda x: 1 / (1 + math.exp(-x)))
_LEVEL = (float, float)
FREE: dict[str, tuple[tuple[Callable[[float], float], Callable[[float], float]], float, float]] = {
    "other_mean_s": (_LOGARITHM, 10.0, 1e9),
    "set_up.drops": (_LOGARITHM, 1e-6, 5.0),
    "set_up.mean_s": (_LOGARITHM, 0.1, 60.0),
    "handovers.failure": (_ODDS, 1e-6, 0.999),
    "cells.failure": (_ODDS, 1e-6, 0.999),
    "cells.speed_mps": (_LOGARITHM, 0.1, 1e3),
    "low_signal.mean_db": (_LEVEL, -20.0, 60.0),
    "low_signal.correlation_s": (_LOGARITHM, 2.0, 2000.0),
}
"""Parameters that can be fitted, each with its mapping to the line and the range that is searched."""


@dataclass(frozen=True)
class CauseFit:
    """A description that was fitted.

    Attributes
    ----------
    causes
        With the fitted values.
    values, intervals
        Name and value of each free parameter, and its 95 % interval; an end that the likelihood does not fix is that of the
        range that was searched.
    log_likelihood, aic
        Of the sample.
    events
        Drops in it.
    """

    causes: DropCauses
    values: dict[str, float]
    intervals: dict[str, tuple[float, float]]
    log_likelihood: float
    aic: float
    events: int


@checked_arguments
def fit(sample: Sample, start: DropCauses, *, free: Sequence[str], with_intervals: bool = True) -> CauseFit:
    """Fit the free parameters of a description to up times of calls.

    Parameters
    ----------
    sample
        Up times, those of calls that did not drop censored: `samples.up_times`.
    start
        The description: its other parameters stay, the free ones begin there.
    free
        Names in `FREE`, for example ``"handovers.failure"``.
    with_intervals
        Whether to search for the intervals, which takes ten times as long.

    Returns
    -------
    CauseFit
        The fit.

    Raises
    ------
    JournalError
        If a name is not in `FREE`, names a cause that `start` lacks, or the sample has fewer drops than there are names.

    Examples
    --------
    >>> from farlink.channels.calls.samples import sample
    >>> up = sample("up", [300, 900, 2000, 4000], [True, True, False, True])
    >>> found = fit(up, DropCauses(other_mean_s=600), free=["other_mean_s"])
    >>> round(found.values["other_mean_s"]), [round(end) for end in found.intervals["other_mean_s"]]
    (2400, [926, 9651])
    """
    for name in free:
        if not isinstance(name, str):
            raise refused("free", "be names of parameters", free)
        if name not in FREE:
            raise JournalError(f"there is nothing to fit of the name {name!r}", instead(name, FREE))
        if _value(start, name) is None:
            raise JournalError(f"{name} cannot be fitted: the description has no {name.partition('.')[0]}", "give it a start")
    if not free or sample.events < len(free):
        message = f"{len(free)} parameters cannot be fitted to {sample.events} drops"
        raise JournalError(message, "name at least one, and no more than there are drops")
    times = _Times(sample)
    begin = [_to_line(name, float(_value(start, name))) for name in free]
    line, best = _search(lambda values: -times.log_likelihood(_with(start, free, values)), begin)
    causes = _with(start, free, line)
    found = {name: float(_value(causes, name)) for name in free}
    intervals = {}
    if with_intervals:
        intervals = {name: _profile(times, start, free, line, -best, place) for place, name in enumerate(free)}
    return CauseFit(causes, found, intervals, -best, 2 * len(free) + 2 * best, sample.events)


@checked_arguments
def log_likelihood(sample: Sample, causes: DropCauses) -> float:
    """Logarithm of the likelihood of up times by a description, for example of calls that it was not fitted to.

    Parameters
    ----------
    sample
        Up times, as `fit` takes them.
    causes
        The description.

    Examples
    --------
    >>> from farlink.channels.calls.samples import sample
    >>> round(log_likelihood(sample("up", [300, 900], [True, False]), DropCauses(other_mean_s=600)), 3)
    -8.397
    """
    return _Times(sample).log_likelihood(causes)


@checked_arguments
def expected_drops(sample: Sample, causes: DropCauses, *, ages_s: ArrayLike) -> Series:
    """Drops that a description expects of some calls, between ages: the sum of their cumulative hazards there.

    Parameters
    ----------
    sample
        Up times.
    causes
        The description.
    ages_s
        Ages in s, ascending, at least two.

    Returns
    -------
    ndarray
        Expected drops, one fewer than ages.

    Examples
    --------
    >>> from farlink.channels.calls.samples import sample
    >>> expected_drops(sample("up", [300, 900]), DropCauses(other_mean_s=600), ages_s=[0, 600, 1200]).round(2)
    array([1.5, 0.5])
    """
    ages = np.atleast_1d(np.asarray(ages_s, dtype=np.float64))
    reached = np.minimum(sample.times_s[:, None], ages[None, :])
    hazard = -log_survival(causes, reached)
    return np.asarray(np.diff(hazard, axis=1).sum(axis=0))


@checked_arguments
def still_up(sample: Sample, *, ages_s: ArrayLike) -> tuple[Series, Series]:
    """Share of calls still up at some ages, without a model, and its standard error by Greenwood's formula.

    Parameters
    ----------
    sample
        Up times, some censored.
    ages_s
        Ages in s.

    Returns
    -------
    survival, errors
        One of each per age.

    References
    ----------
    E. L. Kaplan, P. Meier, Journal of the American Statistical Association 53, 1958.

    Examples
    --------
    >>> from farlink.channels.calls.samples import sample
    >>> still_up(sample("up", [10, 20, 30, 40], [True, False, True, False]), ages_s=[5, 15, 35])[0]
    array([1.   , 0.75 , 0.375])
    """
    # Drops come before calls that are closed at the same age.
    order = np.lexsort((~sample.is_observed, sample.times_s))
    times, observed = sample.times_s[order], sample.is_observed[order]
    at_risk = times.size - np.arange(times.size)
    survival = np.concatenate(([1.0], np.cumprod(1 - observed / at_risk)))
    spread = np.concatenate(([0.0], np.cumsum(observed / (at_risk * np.maximum(at_risk - 1, 1)))))
    place = np.searchsorted(times, np.asarray(ages_s, dtype=np.float64), side="right")
    return survival[place], survival[place] * np.sqrt(spread[place])


def halves(links: Sequence[Link], *, pause_s: float = 3600.0) -> tuple[Sample, Sample]:
    """Up times of every other contact of each link, and of those in between: one to fit, the other held out.

    Parameters
    ----------
    links
        Links of logs.
    pause_s
        Calls of a link that follow within this time are one contact: they are not independent enough to be divided.
    """
    parts: tuple[list[Link], list[Link]] = ([], [])
    for link in links:
        sides: tuple[list[Any], list[Any]] = ([], [])
        side, last_s = 0, -math.inf
        for call in link.calls:
            if math.isfinite(last_s) and call.start_s - last_s > pause_s:
                side = 1 - side
            sides[side].append(call)
            last_s = call.drop_s
        for part, calls in zip(parts, sides, strict=True):
            part.append(replace(link, calls=calls))
    return up_times(parts[0]), up_times(parts[1])


class _Times:
    """A sample, with the ages at which its likelihood needs the survival."""

    def __init__(self, sample: Sample) -> None:
        self.sample = sample
        before, after = np.maximum(sample.times_s - _HALF_S, 0.0), sample.times_s + _HALF_S
        self.ages, places = np.unique(np.concatenate((before, sample.times_s, after)), return_inverse=True)
        self.before, self.at, self.after = np.split(places, 3)

    def log_likelihood(self, causes: DropCauses) -> float:
        logs = log_survival(causes, self.ages)
        before, at, after = logs[self.before], logs[self.at], logs[self.after]
        dropped = before + np.log(np.maximum(-np.expm1(after - before), 1e-300))
        return float(np.where(self.sample.is_observed, dropped, at).sum())


def _search(function: Callable[[Sequence[float]], float], begin: Sequence[float]) -> tuple[list[float], float]:
    """Nelder and Mead's method, begun again where it ended."""
    if not begin:
        return [], function([])
    optimize = require("scipy.optimize", "the statistics of call drops")
    at = list(begin)
    for _ in range(2):
        found = optimize.minimize(function, at, method="Nelder-Mead", options={"xatol": 1e-3, "fatol": 1e-4, "maxiter": 2000})
        at = found.x.tolist()
    return at, float(found.fun)


def _profile(
    times: _Times, start: DropCauses, free: Sequence[str], line: Sequence[float], best: float, place: int
) -> tuple[float, float]:
    """Where the likelihood, with the other parameters fitted again, is 1.92 below its largest value."""
    optimize = require("scipy.optimize", "the statistics of call drops")
    name = free[place]
    mapping, low, high = FREE[name]
    others = [one for one in free if one != name]

    def below(value: float) -> float:
        fixed = _set(start, name, mapping[1](value))
        begin = [line[free.index(one)] for one in others]
        _, least = _search(lambda values: -times.log_likelihood(_with(fixed, others, values)), begin)
        return best + least - _DROP

    ends = []
    for limit, step in ((low, -0.25), (high, 0.25)):
        edge = mapping[0](limit)
        inside, outside = line[place], line[place] + step
        while (outside - edge) * step < 0 and below(outside) < 0:
            inside, step = outside, 2 * step
            outside += step
        if (outside - edge) * step >= 0:
            outside = edge
            if below(edge) < 0:
                ends.append(limit)
                continue
        ends.append(mapping[1](float(optimize.brentq(below, inside, outside, xtol=1e-3))) if below(inside) < 0 else limit)
    return ends[0], ends[1]


def _to_line(name: str, value: float) -> float:
    mapping, low, high = FREE[name]
    return float(mapping[0](min(max(value, low), high)))


def _with(start: DropCauses, free: Sequence[str], line: Sequence[float]) -> DropCauses:
    for name, value in zip(free, line, strict=True):
        mapping, low, high = FREE[name]
        start = _set(start, name, mapping[1](min(max(float(value), mapping[0](low)), mapping[0](high))))
    return start


def _set(start: DropCauses, name: str, value: float) -> DropCauses:
    table, _, key = name.rpartition(".")
    return replace(start, **{table: replace(getattr(start, table), **{key: value})} if table else {key: value})


def _value(causes: DropCauses, name: str) -> Any:
    found: Any = causes
    for part in name.split("."):
        if not is_dataclass(found) or part not in {one.name for one in fields(found)}:
            return None
        found = getattr(found, part)
    return found

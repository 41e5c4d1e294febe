"""Gaps of a measured series, and how they are filled."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from farlink.channels.importers.clock import check_clock
from farlink.errors import TraceError

Series = NDArray[np.float64]

POLICIES = ("refuse", "hold", "outage")

# A step of time this many usual steps long is a gap; but only where so large a part of the steps is usual.
_LONG, _REGULAR = 1.5, 0.9
_MOST_NAMED = 4


@dataclass(frozen=True)
class Filled:
    """A series without gaps.

    Attributes
    ----------
    time_s, values
        Times from the first on, in s, and values; each holds until the time of the next.
    duration_s
        End of the last value, in s.
    gaps_s
        Beginning and end of every gap, in s. Shape ``(gaps, 2)``.
    note
        What was missing and how it was filled; None if nothing was.
    """

    time_s: Series
    values: Series
    duration_s: float
    gaps_s: Series
    note: str | None


def filled(time_s: Series, values: Series, policy: str, *, lost: float, where: str) -> Filled:
    """Fill the gaps of a series as requested.

    Missing are values that are NaN and, in a series of nearly equal steps (nine of ten within half to one and a half of the
    median), what lies beyond the usual step of a value before a longer step.

    Parameters
    ----------
    time_s
        Times, in s.
    values
        The values; NaN where missing.
    policy
        ``"refuse"``; ``"hold"``, which keeps the value before (at the beginning the first there is); or ``"outage"``.
    lost
        Value in an outage.
    where
        Name of the series, for messages.

    Raises
    ------
    TraceError
        If the policy is unknown, a time is missing or not after the one before, no value is there, or there are gaps and
        the policy is to refuse; names times in s from the first.

    Examples
    --------
    >>> found = filled(np.array([0.0, 1, 2, 5]), np.array([7.0, np.nan, 8, 9]), "hold", lost=-np.inf, where="x.csv")
    >>> found.values, found.gaps_s.tolist()
    (array([7., 7., 8., 9.]), [[1.0, 2.0]])
    >>> found.note
    'missing for 1.0 s in 1 gap: 1.0 to 2.0 s; held at the value before'
    """
    if policy not in POLICIES:
        raise TraceError(
            f"gaps {policy!r} is not one of {', '.join(POLICIES)}", "hold keeps the last value, outage means no signal"
        )
    check_clock(time_s, where, entry="row", first=1, remedy="sort the rows, and remove what was recorded twice")
    missing = np.isnan(values)
    if missing.all():
        raise TraceError(f"{where}: no value is a number", "check the column")
    time_s = time_s - time_s[0]
    usual_s = float(np.median(np.diff(time_s))) if time_s.size > 1 else 1.0
    duration_s = float(time_s[-1]) + usual_s
    after = _after_long_steps(time_s, usual_s)
    # A long step means missing rows: a gap that begins one usual step after the value before it.
    all_times = np.concatenate((time_s, time_s[after - 1] + usual_s))
    order = np.argsort(all_times, kind="stable")
    all_times = all_times[order]
    all_values = np.concatenate((values, np.full(after.size, np.nan)))[order]
    gaps_s = _runs(np.isnan(all_values), all_times, duration_s)
    if not gaps_s.size:
        return Filled(time_s, values, duration_s, gaps_s, None)
    said = _said(gaps_s, usual_s)
    if policy == "refuse":
        raise TraceError(
            f"{where}: {said}", "say what they are: --gaps hold (as the value before) or --gaps outage (no signal)"
        )
    if policy == "outage":
        found = np.where(np.isnan(all_values), lost, all_values)
        return Filled(all_times, found, duration_s, gaps_s, f"{said}; taken as outages")
    known = np.flatnonzero(~missing)
    last = known[np.maximum(np.searchsorted(known, np.arange(values.size), side="right") - 1, 0)]
    return Filled(time_s, values[last], duration_s, gaps_s, f"{said}; held at the value before")


def _after_long_steps(time_s: Series, usual_s: float) -> NDArray[np.int64]:
    """Index of each value after a long step; none in a series of unequal steps, such as one that records changes only."""
    steps = np.diff(time_s)
    is_usual = (steps > usual_s / 2) & (steps <= _LONG * usual_s)
    if steps.size == 0 or is_usual.mean() < _REGULAR:
        return np.zeros(0, dtype=np.int64)
    return np.flatnonzero(steps > _LONG * usual_s) + 1


def _runs(missing: NDArray[np.bool_], time_s: Series, end_s: float) -> Series:
    edges = np.flatnonzero(np.diff(np.concatenate(([False], missing, [False])).astype(np.int8)))
    found: Series = np.append(time_s, end_s)[edges].reshape(-1, 2)
    return found


def _said(gaps_s: Series, usual_s: float) -> str:
    count = len(gaps_s)
    # To a tenth of a step or finer.
    decimals = max(0, 1 - math.floor(math.log10(usual_s)))
    named = ", ".join(f"{start:,.{decimals}f} to {end:,.{decimals}f} s" for start, end in gaps_s[:_MOST_NAMED])
    more = f" and {count - _MOST_NAMED:,} more" if count > _MOST_NAMED else ""
    missing_s = f"{np.diff(gaps_s).sum():,.{decimals}f}"
    return f"missing for {missing_s} s in {count:,} gap{'s' if count > 1 else ''}: {named}{more}"

"""How long calls last: what was measured, and the curves that were fitted to it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from farlink.channels.calls.describe import fit_rows
from farlink.channels.calls.goodness import kaplan_meier
from farlink.channels.calls.study import Times, judged
from farlink.web.data.calls import Span, up_times

Points = list[tuple[float, float]]

_GRID = 200
# Enough for a test at 5 %; `farlink bundle fit` draws more.
_REPLICATES = 99
# The measured curve ends when this few calls are left under observation.
_FEW = 10
_MOST_STEPS = 2000


@dataclass(frozen=True)
class Survival:
    """Curves of the share of calls that are still up, over the time in s, and a row for each fit.

    Attributes
    ----------
    calls, drops
        How many.
    measured
        Kaplan and Meier's estimate, as steps.
    fitted
        Distribution -> its curve.
    rows
        Distribution, mean, interval, AIC and what the tests say.
    reason
        Why there is nothing to fit; empty otherwise.
    """

    calls: int
    drops: int
    measured: Points
    fitted: dict[str, Points]
    rows: list[tuple[str, ...]]
    reason: str = ""


def survival_of(spans: Iterable[Span]) -> Survival:
    """Fit the up times of calls.

    Parameters
    ----------
    spans
        Of one line, or of several that are taken as one.
    """
    sample = up_times(spans)
    calls = int(sample.times_s.size)
    if sample.events < 2:
        reason = f"{sample.events} of {calls} calls dropped: a fit needs 2 drops"
        return Survival(calls, sample.events, [], {}, [], reason)
    times = judged(sample, replicates=_REPLICATES)
    reach_s = _reach_s(times)
    at, alive = kaplan_meier(sample)
    shown = at <= reach_s
    steps = [(0.0, 1.0), *zip(at[shown].tolist(), alive[shown].tolist(), strict=True)]
    steps = steps[:: max(1, len(steps) // _MOST_STEPS)]
    measured = [*steps, (reach_s, steps[-1][1])]
    grid = np.linspace(0.0, reach_s, _GRID)
    grid[0] = reach_s / (100 * _GRID)
    fitted = {
        one.fit.distribution: list(zip(grid.tolist(), one.fit.survival(grid).tolist(), strict=True))
        for one in times.judged
        if one.fit.is_fitted
    }
    return Survival(calls, sample.events, measured, fitted, fit_rows(times))


def _reach_s(times: Times) -> float:
    """How far the curves go. Times that few calls survived are uncertain and would squeeze the rest."""
    sample = times.sample
    if not sample.is_complete and sample.times_s.size > 2 * _FEW:
        return float(np.sort(sample.times_s)[-_FEW])
    return float(sample.times_s.max())

"""Samples of times that distributions are fitted to: up times, times between drops, redial times."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from farlink.channels.calls.links import Link
from farlink.errors import JournalError

Series = NDArray[np.float64]
Mask = NDArray[np.bool_]

# Logs have whole seconds: a time of 0 is one that was rounded down.
SHORTEST_S = 0.5
# A link that is not dialled for longer than this was given up, not redialled.
PAUSE_S = 3600.0


@dataclass(frozen=True)
class Sample:
    """Times, some of which are only known to be longer than so much.

    Attributes
    ----------
    name
        What they are.
    times_s
        In s, above 0.
    is_observed
        Where False, the time is censored: what ends it had not happened yet.
    note
        What a reader should know of them.
    """

    name: str
    times_s: Series
    is_observed: Mask
    note: str = ""

    @property
    def events(self) -> int:
        """How many are not censored."""
        return int(np.count_nonzero(self.is_observed))

    @property
    def exposure_s(self) -> float:
        """Sum of all times, in s."""
        return float(self.times_s.sum())

    @property
    def is_complete(self) -> bool:
        """Whether none is censored."""
        return bool(self.is_observed.all())


def sample(name: str, times_s: ArrayLike, is_observed: ArrayLike | None = None, note: str = "") -> Sample:
    """A sample of times; 0 is replaced by half a second, because the clock has a resolution of one second.

    Parameters
    ----------
    name
        What they are.
    times_s
        In s, at least 0.
    is_observed
        False for those that are censored; by default none is.
    note
        What a reader should know of them.

    Raises
    ------
    JournalError
        If a time is negative or no number.
    """
    times = np.asarray(times_s, dtype=np.float64)
    if times.size and not (np.isfinite(times).all() and times.min() >= 0):
        raise JournalError(f"{name}: a time is negative or no number", "times are in s, at least 0")
    observed = np.ones(times.shape, dtype=bool) if is_observed is None else np.asarray(is_observed, dtype=bool)
    return Sample(name, np.maximum(times, SHORTEST_S), observed, note)


def up_times(links: Iterable[Link]) -> Sample:
    """How long links were up. Calls that ended on purpose, or that the log leaves open, are censored."""
    calls = [call for link in links for call in link.calls]
    known = [call for call in calls if not math.isnan(call.up_s)]
    unknown = sum(math.isnan(call.up_s) and call.outcome == "dropped" for call in calls)
    note = f"{unknown} drops without a known time are left out" if unknown else ""
    return sample("up", [call.up_s for call in known], [call.outcome == "dropped" for call in known], note)


def airtimes(links: Iterable[Link]) -> Sample:
    """Time connected from one drop of a link to the next, pauses between calls not counted; the last of a link is censored.

    Of a link that is never closed on purpose it is the up time. Of one that makes short calls it is what compares with
    links that are always up. A drop at an unknown time counts, with no time of its own.
    """
    times: list[float] = []
    observed: list[bool] = []
    for link in links:
        if all(math.isnan(call.up_s) for call in link.calls):
            continue
        passed = 0.0
        for call in link.calls:
            passed += 0.0 if math.isnan(call.up_s) else call.up_s
            if call.outcome == "dropped":
                times.append(passed)
                observed.append(True)
                passed = 0.0
        if passed > 0:
            times.append(passed)
            observed.append(False)
    return sample("airtime", times, observed)


def inter_drop_times(links: Iterable[Link]) -> Sample:
    """Time from one drop of a link to its next, by the clock on the wall: the thesis's inter-call-drop time difference."""
    times: list[float] = []
    for link in links:
        times += np.diff([call.drop_s for call in link.drops]).tolist()
    return sample("inter-drop", times)


def handover_times(links: Iterable[Link]) -> Sample:
    """Time from one handover of a link to its next, while it is up; from the last one of a call to its end is censored."""
    times: list[float] = []
    observed: list[bool] = []
    for link in links:
        handovers_s = np.array(link.handovers_s, dtype=np.float64)
        for call in link.calls:
            inside = handovers_s[(handovers_s >= call.start_s) & (handovers_s <= call.end_s)]
            if inside.size == 0:
                continue
            times += [*np.diff(inside).tolist(), call.end_s - float(inside[-1])]
            observed += [True] * (inside.size - 1) + [False]
    kept = [(time, seen) for time, seen in zip(times, observed, strict=True) if seen or time > 0]
    return sample("handover", [time for time, _ in kept], [seen for _, seen in kept])


def bundle_span_s(links: Sequence[Link]) -> tuple[float, float] | None:
    """The time that the logs of all links have in common, in s since 1970; None if there is none or only one link."""
    if len(links) < 2:
        return None
    first, last = max(link.first_s for link in links), min(link.last_s for link in links)
    return (first, last) if last > first else None


def bundle_drop_times_s(links: Sequence[Link]) -> Series:
    """Times at which any link drops, in s since 1970, in order, while the logs of all of them run."""
    span = bundle_span_s(links)
    if span is None:
        return np.empty(0)
    times = [call.drop_s for link in links for call in link.drops if span[0] <= call.drop_s <= span[1]]
    return np.sort(np.array(times, dtype=np.float64))


def bundle_inter_drop_times(links: Sequence[Link]) -> Sample:
    """Time from a drop of any link to the next drop of any link."""
    return sample("inter-drop", np.diff(bundle_drop_times_s(links)))


def redial_times(links: Iterable[Link], pause_s: float = PAUSE_S) -> Sample:
    """Time from a drop until the link is up again, including failed and blocked dials; censored if the log ends first.

    Parameters
    ----------
    links
        The links.
    pause_s
        Longer times are pauses and left out, as of a glider that dives.
    """
    times: list[float] = []
    observed: list[bool] = []
    pauses, is_late = 0, False
    for link in links:
        for index, call in enumerate(link.calls):
            if call.outcome != "dropped":
                continue
            is_last = index + 1 == len(link.calls)
            gap_s = (link.last_s if is_last else link.calls[index + 1].start_s) - call.drop_s
            if gap_s > pause_s:
                pauses += 1
            elif gap_s > 0 or not is_last:
                times.append(gap_s)
                observed.append(not is_last)
                is_late |= math.isnan(call.end_s)
    notes = [f"{pauses} longer than {pause_s:g} s left out as pauses"] if pauses else []
    if is_late:
        notes.append("where a drop's time is unknown, from the beginning of its call")
    return sample("redial", times, observed, "; ".join(notes))

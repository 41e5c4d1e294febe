"""Causes of drops, as Zaghloul's section 5.1 finds them: a signal that was low for long, and handovers between satellites.

A handover is not reported: it is seen as an answer to "what is the signal?" that comes late, and falls on multiples of about
ten minutes; those that were not seen are interpolated. Drops are then matched with them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from farlink.channels.calls.clusters import wilson
from farlink.channels.calls.distributions import Series
from farlink.channels.calls.links import Call, Link
from farlink.extras import require

# (SNR in dB, how long below it in s): the observations of section 5.1.
LOW_SNR = ((0.0, 16.0), (2.0, 20.0))
# Answers come every 4 s; in a handover after 6 s or more.
LATE_S = 6.0
HANDOVER_S = 600.0
# By how much an interval between two handovers that were seen may be off a multiple of ten minutes, per interval in it.
_OFF_S = 45.0
_OFF_MOST_S = 100.0
# No interpolation across more intervals than these.
_STEPS = 12
# The table of the thesis has minutes: a drop in the minute of a handover matches it.
MATCH_S = 30.0
# The last answer before a drop is no older than this, or nothing is known of the signal.
_STALE_S = 15.0


@dataclass(frozen=True)
class Cause:
    """How many drops have a cause.

    Attributes
    ----------
    name
        Which.
    drops
        How many of them.
    of
        Of how many drops for which it could be known.
    by_chance
        How many that would be if drops came at any time; NaN where that is not known.
    p
        Probability of at least this number by chance; NaN if it is not known.
    """

    name: str
    drops: int
    of: int
    by_chance: float = math.nan
    p: float = math.nan

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        low, high = wilson(self.drops, self.of)
        return {**asdict(self), "share": self.drops / self.of if self.of else math.nan, "share_ci": [low, high]}


@dataclass(frozen=True)
class Handover:
    """One line of the table of handovers.

    Attributes
    ----------
    time_s
        When, in s since 1970.
    is_observed
        Whether the log or a late answer showed it; otherwise it is interpolated.
    """

    time_s: float
    is_observed: bool


def causes(links: Sequence[Link], *, match_s: float = MATCH_S) -> list[Cause]:
    """Causes of drops, as far as the log shows them.

    Parameters
    ----------
    links
        Links, with readings of their signal if there are any.
    match_s
        Largest distance between a drop and the handover that it belongs to, in s.

    Returns
    -------
    list of Cause
        The causes that the log names; low signal and handovers if it has readings of it; signal bars if it has those.
    """
    return [*_named(links), *_low_snr(links), *_handover(links, match_s), *_bars(links)]


def low_snr_spells(link: Link, below_db: float, for_s: float) -> list[tuple[float, float]]:
    """Begin and end of the times at which every answer was below a ratio, for so long or longer, within one call.

    Parameters
    ----------
    link
        With readings of its signal.
    below_db
        The ratio, in dB.
    for_s
        How long, in s, from the first such answer to the last one, or to the drop.
    """
    spells = []
    for call in link.calls:
        times, values = _readings(link, call)
        begin = math.nan
        for index, (time, value) in enumerate(zip(times, values, strict=True)):
            if value >= below_db:
                begin = math.nan
                continue
            begin = time if math.isnan(begin) else begin
            is_last = index + 1 == len(times)
            is_over = is_last or values[index + 1] >= below_db
            end = call.drop_s if is_last and call.outcome == "dropped" and call.drop_s - time <= _STALE_S else time
            if is_over and end - begin >= for_s:
                spells.append((float(begin), float(end)))
    return spells


def handovers(link: Link, *, late_s: float = LATE_S, period_s: float = HANDOVER_S) -> list[Handover]:
    """Handovers of a link: those that its log reports; else those that late answers show, and those interpolated between them.

    Parameters
    ----------
    link
        With handovers, or with readings of its signal every 4 s.
    late_s
        From how long a time between two answers on the second is late, in s.
    period_s
        Time from one handover to the next, in s.

    Returns
    -------
    list of Handover
        In the order of time. Late answers that are no multiple of the period from any other are left out, and nothing is
        interpolated across such a gap.

    References
    ----------
    Zaghloul, section 5.1 and table 5.1.
    """
    if link.handovers_s:
        return [Handover(time_s, True) for time_s in link.handovers_s]
    late: list[float] = []
    for call in link.calls:
        times, _ = _readings(link, call)
        late += times[1:][np.diff(times) >= late_s].tolist()
    steps: dict[tuple[int, int], int] = {}
    for i, first in enumerate(late):
        beyond = int(np.searchsorted(late, first + (_STEPS + 0.5) * period_s))
        steps |= {(i, j): count for j in range(i + 1, beyond) if (count := _periods(late[j] - first, period_s))}
    # In ascending order: the last that is written is the nearest.
    after = dict(reversed(steps))
    before = {j: i for i, j in steps}
    found: dict[float, bool] = {}
    for first, second in after.items():
        # Each is the other's nearest: a late answer that has another cause falls out.
        if before[second] == first:
            count = steps[first, second]
            for step, time in enumerate(np.linspace(late[first], late[second], count + 1).tolist()):
                found[time] = found.get(time, False) or step in (0, count)
    return [Handover(time, found[time]) for time in sorted(found)]


def _periods(seconds: float, period_s: float) -> int:
    """How many periods a time is; 0 if it is no multiple."""
    count = round(seconds / period_s)
    return count if abs(seconds - count * period_s) <= min(count * _OFF_S, _OFF_MOST_S) else 0


def _named(links: Sequence[Link]) -> list[Cause]:
    drops = [call for link in links for call in link.drops]
    names = sorted({call.cause for call in drops if call.cause})
    return [Cause(name, sum(call.cause == name for call in drops), len(drops)) for name in names]


def _low_snr(links: Sequence[Link]) -> list[Cause]:
    known = [(link, call) for link in links for call in link.drops if _is_known(link, call)]
    if not known:
        return []
    found = []
    for below_db, for_s in LOW_SNR:
        ends = {link.name: {end for _, end in low_snr_spells(link, below_db, for_s)} for link in links}
        hits = sum(call.drop_s in ends[link.name] for link, call in known)
        found.append(Cause(f"SNR below {below_db:g} dB for {for_s:g} s", hits, len(known)))
        spells = sum(len(one) for one in ends.values())
        if spells:
            found.append(Cause(f"of the times that SNR was below {below_db:g} dB for {for_s:g} s", hits, spells))
    return found


def _handover(links: Sequence[Link], match_s: float) -> list[Cause]:
    hits = drops = 0
    chance = 0.0
    for link in links:
        times = np.array([one.time_s for one in handovers(link)])
        if times.size < 2:
            continue
        inside = [call.drop_s for call in link.drops if times[0] <= call.drop_s <= times[-1]]
        drops += len(inside)
        hits += sum(bool(np.min(np.abs(times - drop_s)) <= match_s) for drop_s in inside)
        # Each interval has half a window at either end.
        chance += len(inside) * float(np.minimum(np.diff(times), 2 * match_s).sum() / (times[-1] - times[0]))
    if drops == 0:
        return []
    stats = require("scipy.stats", "the statistics of call drops")
    p = float(stats.binom.sf(hits - 1, drops, chance / drops))
    return [Cause(f"within {match_s:g} s of a handover", hits, drops, chance, p)]


def _bars(links: Sequence[Link]) -> list[Cause]:
    """Drops of calls by signal bars at their beginning; by chance as many as by the share of calls that began so."""
    calls = [call for link in links for call in link.calls if call.bars is not None and call.outcome != "open"]
    drops = [call for call in calls if call.outcome == "dropped"]
    levels = sorted({call.bars for call in calls if call.bars is not None})
    if not drops or len(levels) < 2:
        return []
    stats = require("scipy.stats", "the statistics of call drops")
    found = []
    for level in levels:
        began = sum(call.bars == level for call in calls)
        hits = sum(call.bars == level for call in drops)
        p = float(stats.hypergeom.sf(hits - 1, len(calls), began, len(drops)))
        found.append(Cause(f"{level} bars at the beginning", hits, len(drops), len(drops) * began / len(calls), p))
    return found


def _is_known(link: Link, call: Call) -> bool:
    times, _ = _readings(link, call)
    return times.size > 0 and call.drop_s - float(times[-1]) <= _STALE_S


def _readings(link: Link, call: Call) -> tuple[Series, Series]:
    """Times and ratios of the answers during a call."""
    if not link.snr or math.isnan(call.end_s):
        return np.empty(0), np.empty(0)
    times_s, ratios_db = link.readings
    first = int(np.searchsorted(times_s, call.start_s, side="left"))
    last = int(np.searchsorted(times_s, call.end_s, side="right"))
    return times_s[first:last], ratios_db[first:last]

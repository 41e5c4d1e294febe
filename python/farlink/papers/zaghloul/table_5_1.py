"""Table 5.1: handovers from satellite to satellite, as observed and as interpolated."""

from __future__ import annotations

import math
from itertools import pairwise

from farlink.channels.synthesis.orbit import EARTH_MU, EARTH_RADIUS_M
from farlink.papers.check import Check, Verdict, number
from farlink.papers.estimate import Estimate
from farlink.papers.item import Drawing, Workbench
from farlink.papers.zaghloul.setting import MINUTE_S

# Time of 16 July 2004, and whether it was observed.
TABLE_5_1 = (
    ("13:21", False),
    ("13:31", True),
    ("13:41", False),
    ("13:51", False),
    ("14:01", False),
    ("14:12", True),
    ("14:22", False),
    ("14:32", True),
    ("14:42", False),
    ("14:52", True),
)
# Iridium: 11 satellites in each of six planes, 780 km up.
_ALTITUDE_M, _IN_PLANE = 780e3, 11


def table_5_1(_bench: Workbench) -> tuple[list[Check], list[Drawing]]:
    """The interpolation between what was observed, the ten minutes of the text, and the orbit's."""
    observed = [_minute(clock) for clock, is_observed in TABLE_5_1 if is_observed]
    apart = Estimate((observed[-1] - observed[0]) / _handovers(observed), 1 / _handovers(observed))
    every = [_minute(clock) for clock, _ in TABLE_5_1]
    interpolated = _interpolated(observed, apart.mean, len(every))
    off = max(abs(ours - printed) for ours, printed in zip(interpolated, every, strict=True))
    orbit = Estimate(2 * math.pi * math.sqrt((EARTH_RADIUS_M + _ALTITUDE_M) ** 3 / EARTH_MU) / MINUTE_S / _IN_PLANE)
    return [
        Check(
            "table-5.1",
            "largest difference of a linear interpolation between the four observed handovers from the ten printed, minutes",
            "a simple linear interpolation was used to predict the missing handover events",
            "model",
            Estimate(off),
            Verdict.AGREES if off <= 1.0 else Verdict.DIFFERS,
            "agrees within a minute, as times are printed in whole minutes",
        ),
        Check(
            "table-5.1",
            "mean minutes between handovers, from the first observed to the last",
            "separated by multiples of 10 minutes which correspond to the Iridium inter-satellite handover event",
            "measured",
            apart,
            number(apart, "10", relative=0.05),
            f"{observed[-1] - observed[0]:.0f} minutes are {_handovers(observed)} handovers; the interval is that of whole "
            "minutes at both ends; within 5 %",
        ),
        Check(
            "table-5.1",
            "minutes between two satellites of a plane of Iridium over one place, beside the mean of the table",
            round(apart.mean, 1),
            "model",
            orbit,
            number(orbit, f"{apart.mean:.1f}", relative=0.05),
            f"a circular orbit at {_ALTITUDE_M / 1e3:g} km has a period of {orbit.mean * _IN_PLANE:.1f} minutes for its "
            f"{_IN_PLANE} satellites; within 5 %. Likely, but not tested: a modem keeps a satellite until it sets, and now and "
            "then changes to another plane, so that it changes less often than satellites follow each other",
        ),
    ], []


def _minute(clock: str) -> float:
    hours, minutes = clock.split(":")
    return 60.0 * int(hours) + int(minutes)


def _handovers(observed: list[float]) -> int:
    """How many handovers of about ten minutes lie between the first and the last that were observed."""
    return sum(round((later - earlier) / 10) for earlier, later in pairwise(observed))


def _interpolated(observed: list[float], apart_min: float, count: int) -> list[float]:
    """Handovers at equal distances between those observed, the first of them one before the first observed."""
    found = [observed[0] - apart_min, observed[0]]
    for earlier, later in pairwise(observed):
        steps = round((later - earlier) / 10)
        found += [earlier + (later - earlier) * step / steps for step in range(1, steps + 1)]
    return found[:count]

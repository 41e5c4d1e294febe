"""Section 5.1: drops matched with handovers, where chance alone would match them."""

from __future__ import annotations

import math

import numpy as np

from farlink.channels.calls import causes
from farlink.papers.check import Check, claim, number
from farlink.papers.estimate import Estimate
from farlink.papers.item import Drawing, Workbench
from farlink.papers.zaghloul.setting import MINUTE_S
from farlink.papers.zaghloul.simulated_drops import drop_times_s, link_of

# 182 drops on seven modems.
_DROPS, _MODEMS = 182, 7
_SERIES = 20
# The table of handovers has minutes, and about ten of them between two: 13:21, 13:31, ... 14:12.
_HANDOVER_S = (14 * 60 + 52 - 13 * 60 - 21) * MINUTE_S / 9


def section_5_1(bench: Workbench) -> tuple[list[Check], list[Drawing]]:
    """Drops of the engine, which knows no handovers, matched with a table of them."""
    shares = np.array([_matched(bench, series) for series in range(bench.repetitions(_SERIES))])
    spread = 1.96 * float(shares.std(ddof=1)) / math.sqrt(shares.size) if shares.size > 1 else math.nan
    value = Estimate(100 * float(shares.mean()), 100 * spread)
    single = Estimate(10.0 - value.mean, 1.96 * 100 * math.sqrt(0.1 * 0.9 / _DROPS))
    return [
        Check(
            "section-5.1",
            "drops that match a handover though none is due to one, %",
            10,
            "packet",
            value,
            number(value, "10", relative=0.1),
            f"means of {shares.size} times {_DROPS} drops on {_MODEMS} links: a match is a drop in the minute of a handover, "
            "the thesis does not say how near is near; agrees within a tenth. What was found is what chance gives",
        ),
        Check(
            "section-5.1",
            f"matches beyond chance among {_DROPS} drops, %",
            "10% of the call drops are due to handovers",
            "model",
            single,
            claim(single, at_least=5.0),
            "agrees if half of the 10 % or more are left when chance is taken away; the interval is that of 10 % of 182 drops",
        ),
    ], []


def _matched(bench: Workbench, series: int) -> float:
    """Share of the drops of seven links that fall within half a minute of a handover."""
    hits = 0
    generator = np.random.default_rng([bench.seed, series])
    for modem in range(_MODEMS):
        times_s = drop_times_s(bench, 50 * MINUTE_S, series=10_000 + _MODEMS * series + modem, drops=_DROPS // _MODEMS)
        link = link_of(times_s[: _DROPS // _MODEMS])
        begin_s = float(generator.uniform(0, _HANDOVER_S))
        handovers_s = np.arange(begin_s - _HANDOVER_S, link.last_s + _HANDOVER_S, _HANDOVER_S)
        away_s = [float(np.min(np.abs(handovers_s - call.drop_s))) for call in link.drops]
        hits += sum(away <= causes.MATCH_S for away in away_s)
    return hits / _DROPS

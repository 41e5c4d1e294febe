"""Figure 5.3: the drops of all links of a bundle as one Poisson process, the sum of the links' own."""

from __future__ import annotations

import math

import numpy as np

from farlink.channels.calls import goodness
from farlink.channels.calls.fits import fit
from farlink.channels.calls.samples import sample
from farlink.papers.check import Check, claim, number
from farlink.papers.estimate import Estimate
from farlink.papers.item import Drawing, Workbench
from farlink.papers.zaghloul.figure_5_2 import GREENLAND_MIN, density_drawing, share_of
from farlink.papers.zaghloul.setting import GREENLAND, MINUTE_S
from farlink.papers.zaghloul.simulated_drops import DROPS, drop_times_s

_SERIES = 80
# So many drops of each link that all links together have as many as the thesis observed.
_LINK_DROPS = math.ceil(DROPS / GREENLAND.links)
# Series of figure 5.2 and table 5.3 have lower numbers.
_FIRST_SERIES = 20_000


def figure_5_3(bench: Workbench) -> tuple[list[Check], list[Drawing]]:
    """Times between drops of any of eight links: rate n β, and exponential by the test of the thesis."""
    merged = [_merged(bench, series) for series in range(bench.repetitions(_SERIES))]
    means = np.array([times_s.mean() / MINUTE_S for times_s in merged])
    spread = 1.96 * float(means.std(ddof=1)) / math.sqrt(means.size) if means.size > 1 else math.nan
    value = Estimate(float(means.mean()), spread)
    printed = GREENLAND_MIN / GREENLAND.links
    samples = [sample("inter-drop", times_s.tolist()) for times_s in merged]
    share = share_of([goodness.chi_square(one, fit(one)).is_accepted is True for one in samples])
    drops = round(float(np.mean([times_s.size for times_s in merged])))
    checks = [
        Check(
            "figure-5.3",
            f"{GREENLAND.links} links: mean minutes between drops of any, by λ = n β",
            printed,
            "packet",
            value,
            number(value, f"{printed:g}", relative=0.03),
            f"mean of {means.size} series of {drops} drops: within 3 %; each link drops every {GREENLAND_MIN} minutes, redials "
            "included",
        ),
        Check(
            "figure-5.3",
            f"share of {len(samples)} series of the bundle whose exponential fit is accepted, 15 bins at 5 %",
            "the random process characterized by the time difference between call drops for the whole bundle can be modeled by "
            "merging the n Poisson random processes into a single Poisson random process",
            "packet",
            share,
            claim(share, at_least=0.8),
            "agrees if more than four in five are: a right fit is rejected in one of twenty",
        ),
    ]
    heading = "Density of the time between drops of a bundle, simulated"
    caption = f"{drops} simulated times between drops of any of eight links that each drop every {GREENLAND_MIN} minutes."
    return checks, [density_drawing("figure-5-3", heading, caption, samples[0], printed)]


def _merged(bench: Workbench, series: int) -> np.ndarray:
    """Times from drop to drop, whichever link drops."""
    # Every link is heard of until then: an end at the last drop of one would leave out the others' long times.
    horizon_s = GREENLAND_MIN * MINUTE_S * _LINK_DROPS
    first = _FIRST_SERIES + GREENLAND.links * series
    # Four standard deviations more than the horizon has on average.
    enough = _LINK_DROPS + math.ceil(4 * math.sqrt(_LINK_DROPS))
    links = [
        drop_times_s(bench, GREENLAND_MIN * MINUTE_S, series=first + link, drops=enough) for link in range(GREENLAND.links)
    ]
    drops_s = np.sort(np.concatenate(links))
    return np.diff(drops_s[drops_s < horizon_s])

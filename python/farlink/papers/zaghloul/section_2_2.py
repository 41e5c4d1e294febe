"""Section 2.2: delays over geostationary satellites, and periods of low orbits."""

from __future__ import annotations

from farlink.channels.geometry import GEO_ALTITUDE_M, orbital_period_s, relay_delay_s
from farlink.papers.check import Check, Verdict, number
from farlink.papers.estimate import Estimate
from farlink.papers.item import Drawing, Workbench
from farlink.papers.zaghloul.setting import MINUTE_S

# Low orbits of the text, in m, and their periods, in minutes.
_LEO_M, _LEO_MINUTES = (700e3, 1000e3), (90, 120)


def section_2_2(_bench: Workbench) -> tuple[list[Check], list[Drawing]]:
    """The printed delays beside those of the zenith and of ten degrees, and the periods of low orbits."""
    delays = {elevation: Estimate(1e3 * relay_delay_s(GEO_ALTITUDE_M, elevation, elevation)) for elevation in (90, 10, 0)}
    periods = [orbital_period_s(altitude) / MINUTE_S for altitude in _LEO_M]
    inside = all(_LEO_MINUTES[0] <= period <= _LEO_MINUTES[1] for period in periods)
    return [
        Check(
            "section-2.2",
            "ms up and down over a geostationary satellite in the zenith of both stations",
            240,
            "model",
            delays[90],
            number(delays[90], "240", relative=0.01),
            "within 1 %: the thesis prints tens",
        ),
        Check(
            "section-2.2",
            "the same at an elevation of 10 degrees",
            "about 270",
            "model",
            delays[10],
            number(delays[10], "270", relative=0.01),
            f"the thesis names no elevation; at the horizon it would be {delays[0].mean:.0f} ms; within 1 %",
        ),
        Check(
            "section-2.2",
            "minutes of the longest period of the low orbits, 700 to 1000 km",
            "between 90 and 120",
            "model",
            Estimate(periods[-1]),
            Verdict.AGREES if inside else Verdict.DIFFERS,
            f"agrees if both ends of the heights are inside; the shortest is {periods[0]:.1f}",
        ),
    ], []

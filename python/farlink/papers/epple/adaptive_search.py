"""The search for the rule of an adaptive packet length, over the engine: ``python -m farlink.papers.epple.adaptive_search``.

The search tries points of a coarse grid on traces 11 to 15. Gains are reported on other traces, which the search never sees.
The gain of a point is the mean, over channels, protocols and long-term bit error rates, of the logarithm of its goodput over
that of the fixed length that is best on the same traces: 0.01 is one percent.
"""

from __future__ import annotations

import math
import statistics
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any

from farlink.papers.epple.adaptive import HEADER_BYTES, LENGTHS_BYTES, LONGEST_BYTES, TRACES, transport
from farlink.papers.epple.fading import Fading, over_fading
from farlink.papers.epple.printed import PLACES
from farlink.papers.epple.setting import PAPER_SETTING, Setting
from farlink.papers.item import Workbench

TRAINING_TRACES = 5
_SECONDS = 0.5
_BERS = (1e-6, 1e-5, 1e-4)
# Goodput over a trace that is blocked throughout is taken as zero: it has no ratio.
_NOTHING = 1e-6
_EXPONENTS = (0.25, 0.5, 0.75)
_PIVOTS_BYTES = (250, 400, 1000)

Keys = Mapping[str, Any]


@dataclass(frozen=True)
class Training(Fading):
    """Traces that follow those of the evaluation."""

    def texts(self, bench: Workbench, setting: Setting, count: int) -> list[str]:
        """Names of so many traces."""
        return super().texts(bench, setting, TRACES + count)[TRACES:]


def gain_over_best_fixed(
    bench: Workbench,
    points: Mapping[str, Keys],
    *,
    places: tuple[str, ...] = PLACES,
    bers: tuple[float, ...] = _BERS,
    setting: Setting = PAPER_SETTING,
) -> dict[str, dict[str, float]]:
    """Gain of each point of a grid over the best fixed length.

    Parameters
    ----------
    bench
        Where to run.
    points
        Keys of ``adaptive_length``, and ``segment_bytes``, by names.
    places, bers
        Channels and long-term bit error rates.
    setting
        The link.

    Returns
    -------
    dict
        By point: mean logarithm of the ratio to the best fixed length, of each place, and of all of them as ``"all"``.
    """
    logs: dict[str, dict[str, list[float]]] = {name: {place: [] for place in places} for name in points}
    for place, protocol, ber in product(places, ("tcp", "sr"), bers):
        light = Training(place, duration_s=_SECONDS)
        tables = {f"fixed-{length}": transport(setting, place, protocol, length) for length in LENGTHS_BYTES}
        tables |= {name: transport(setting, place, protocol, LONGEST_BYTES, keys) for name, keys in points.items()}
        found = over_fading(
            bench, setting, light, tables, use=f"search, {protocol}, {ber:g}", bers=ber, count=bench.runs or TRAINING_TRACES
        )
        best = max((found[f"fixed-{length}"].goodput for length in LENGTHS_BYTES), key=math.fsum)
        for name in points:
            pairs = zip(found[name].goodput, best, strict=True)
            logs[name][place] += [math.log(max(one, _NOTHING) / other) for one, other in pairs if other > _NOTHING]
    return {
        name: {place: statistics.fmean(values) for place, values in of.items()}
        | {"all": statistics.fmean(value for values in of.values() for value in values)}
        for name, of in logs.items()
    }


def best(table: Mapping[str, Mapping[str, float]], where: str = "all") -> str:
    """The point with the largest gain."""
    return max(table, key=lambda name: table[name][where])


def grid(base: Keys, **values: tuple[float, ...]) -> dict[str, Keys]:
    """All points of a grid.

    Examples
    --------
    >>> list(grid({"rule": "power"}, scale=(1.0, 2.0)))
    ['scale-1', 'scale-2']
    """
    points = [dict(zip(values, point, strict=True)) for point in product(*values.values())]
    return {
        "_".join(f"{key}-{value:g}" for key, value in point.items()).replace(".", "p"): {**base, **point} for point in points
    }


def bent_rules(base: Keys) -> dict[str, Keys]:
    """Points of the power rule: exponents that bend equation (11) and leave one length unchanged, and factors on it."""
    points = [(exponent, (pivot / HEADER_BYTES) ** (1 - exponent)) for exponent in _EXPONENTS for pivot in _PIVOTS_BYTES]
    points += [(1.0, scale) for scale in (0.7, 1.0, 1.4)]
    return {
        f"bend-{place}": {**base, "exponent": exponent, "scale": round(scale, 2)}
        for place, (exponent, scale) in enumerate(points)
    }


def search(bench: Workbench) -> Iterator[tuple[str, dict[str, Keys], dict[str, dict[str, float]]]]:
    """Search each kind of rule in turn; the power rule starts with the memory that is best with equation (11).

    Yields
    ------
    tuple
        What was searched, its points and their gains.
    """
    memories = {"memory_s": (0.1e-3, 0.3e-3, 1e-3, 3e-3), "prior_losses": (0.001, 0.01)}
    points = grid({"rule": "optimal"}, **memories)
    found = gain_over_best_fixed(bench, points)
    yield "estimate, equation (11)", points, found

    estimator = {key: points[best(found)][key] for key in ("memory_s", "prior_losses")}
    points = bent_rules({"rule": "power", **estimator})
    found = gain_over_best_fixed(bench, points)
    yield "estimate, power", points, found

    bend = {key: points[best(found)][key] for key in ("exponent", "scale")}
    points = grid({"rule": "power", **bend}, **memories)
    yield "estimate, power, memory again", points, gain_over_best_fixed(bench, points)

    lengths = {"min_bytes": (190.0, 350.0), "segment_bytes": (1200.0, 2300.0)}
    points = grid({"rule": "two-lengths"}, memory_s=(0.3e-3, 1e-3), **lengths)
    yield "estimate, two lengths", points, gain_over_best_fixed(bench, points)

    points = bent_rules({"estimate": "genie", "rule": "power"})
    yield "genie, power", points, gain_over_best_fixed(bench, points)


def main() -> None:
    """Print every point with its gain, best first, on each channel and on all of them."""
    out = sys.stdout
    for title, points, found in search(Workbench()):
        places = list(next(iter(found.values())))
        print(f"\n{title}: gain over the best fixed length in %, {', '.join(places)}", file=out)
        for name in sorted(found, key=lambda name: -found[name]["all"]):
            values = "  ".join(f"{100 * (math.exp(found[name][place]) - 1):7.2f}" for place in places)
            print(f"{values}  {dict(points[name])}", file=out, flush=True)


if __name__ == "__main__":
    main()

"""Points that are drawn: a table `[sample]` in place of a grid. A Latin hypercube, Sobol's sequence or Saltelli's design of it.

The table is turned into one ``[[grid_zip]]``: engines and results know its points, and nothing of how they were drawn.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from farlink.errors import ScenarioError
from farlink.extras import require
from farlink.near_names import instead
from farlink.scenario import Scenario, from_data
from farlink.untrusted import printable

_KINDS = ("latin-hypercube", "sobol", "saltelli")
_KEYS = ("kind", "points", "seed", "range")
_RANGE_KEYS = ("from", "to", "scale")
_SCALES = ("linear", "log")
_MOST_POINTS = 10_000_000


def drawn(data: Mapping[str, Any], scenario: Scenario) -> Scenario:
    """The scenario with its sample drawn; as it is without one.

    Parameters
    ----------
    data
        Its tables.
    scenario
        What they are of.

    Raises
    ------
    ScenarioError
        If the table ``[sample]`` is refused.
    MissingExtraError
        If SciPy, or SALib for Saltelli's design, is not installed.

    Notes
    -----
    Sobol's points are balanced if their number is a power of 2. Both are scrambled by the seed (McKay, Beckman, Conover 1979;
    Owen 1998), with SciPy's ``stats.qmc``; the same version of SciPy draws the same points. Saltelli's design (Saltelli
    et al. 2010) has ``points`` times the number of ranges and two more points, by SALib: total effects follow (`indices`).
    """
    if "sample" not in data:
        return scenario
    table = data["sample"]
    if not isinstance(table, dict):
        raise ScenarioError(
            f"sample: {printable(repr(table), 60)} is no table", "write [sample] with kind, points and [sample.range]"
        )
    for key in table:
        if key not in _KEYS:
            raise ScenarioError(f"sample.{key} is not known", instead(key, _KEYS))
    kind = table.get("kind", "latin-hypercube")
    if kind not in _KINDS:
        raise ScenarioError(f"sample.kind: {printable(repr(kind), 60)} is not known", f"one of {', '.join(_KINDS)}")
    points, seed = _whole("points", table.get("points"), 1), _whole("seed", table.get("seed", 1), 0)
    if kind != "latin-hypercube" and points & (points - 1):
        near = 1 << points.bit_length()
        raise ScenarioError(
            f"sample.points: {points} is no power of 2, as Sobol's points want it", f"give {near // 2} or {near}"
        )
    ranges = _ranges(table.get("range"))
    other = {key: value for key, value in data.items() if key != "sample"}
    axes = {
        path: [_at(position, *ends) for position in column]
        for (path, ends), column in zip(ranges.items(), _positions(kind, len(ranges), points, seed), strict=True)
    }
    zips = [*other.get("grid_zip", []), axes]
    made = from_data({**other, "grid_zip": zips}, base=scenario.base, source=None, path=scenario.path)
    return Scenario(made.data, scenario.base, None, scenario.path, scenario.overrides)


def _positions(kind: str, dimensions: int, points: int, seed: int) -> list[list[float]]:
    """Positions in [0, 1) on each axis."""
    if kind == "saltelli":
        design = require("SALib.sample.sobol", 'kind = "saltelli"')
        problem = {"num_vars": dimensions, "names": [*map(str, range(dimensions))], "bounds": [[0.0, 1.0]] * dimensions}
        found = design.sample(problem, points, calc_second_order=False, seed=seed)
    else:
        qmc = require("scipy.stats.qmc", "[sample]")
        sampler = (
            qmc.Sobol(dimensions, scramble=True, seed=seed) if kind == "sobol" else qmc.LatinHypercube(dimensions, seed=seed)
        )
        found = sampler.random(points)
    columns: list[list[float]] = found.T.tolist()
    return columns


def _at(position: float, low: float, high: float, is_log: bool) -> float:
    if is_log:
        return math.exp(math.log(low) + position * (math.log(high) - math.log(low)))
    return low + position * (high - low)


def _ranges(table: Any) -> dict[str, tuple[float, float, bool]]:
    if not isinstance(table, dict) or not table:
        raise ScenarioError(
            "sample.range: nothing varies", 'write [sample.range]: "link.channel.ber" = { from = 1e-8, to = 1e-4 }'
        )
    found = {}
    for path, ends in flat_ranges(table).items():
        where = f'sample.range."{path}"'
        if not isinstance(ends, dict) or not {"from", "to"} <= ends.keys() or not ends.keys() <= {*_RANGE_KEYS}:
            remedy = 'for example { from = 1e-8, to = 1e-4, scale = "log" }'
            raise ScenarioError(f"{where}: {printable(repr(ends), 60)} is no range", remedy)
        low, high, scale = ends["from"], ends["to"], ends.get("scale", "linear")
        if not all(isinstance(end, int | float) and not isinstance(end, bool) for end in (low, high)) or not low < high:
            raise ScenarioError(
                f"{where}: {printable(repr(low), 30)} to {printable(repr(high), 30)} is no range",
                "give two numbers, the smaller first",
            )
        if scale not in _SCALES:
            raise ScenarioError(f"{where}: the scale {printable(repr(scale), 30)} is not known", f"one of {', '.join(_SCALES)}")
        if scale == "log" and low <= 0:
            raise ScenarioError(f"{where}: no logarithmic scale begins at {low}", 'give a number above 0, or scale = "linear"')
        found[path] = (float(low), float(high), scale == "log")
    return found


def flat_ranges(table: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Ranges by dotted path, also of tables that TOML has made of paths without quotes."""
    flat: dict[str, Any] = {}
    for key, value in table.items():
        path = f"{prefix}{key}"
        if isinstance(value, dict) and not {"from", "to"} & value.keys():
            flat.update(flat_ranges(value, f"{path}."))
        else:
            flat[path] = value
    return flat


def _whole(name: str, value: Any, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= _MOST_POINTS:
        raise ScenarioError(
            f"sample.{name}: {printable(repr(value), 60)} is not a whole number from {least} to {_MOST_POINTS}",
            f"for example {name} = 64",
        )
    return value

"""Intervals of a summary as they are shown: at the confidence level that the scenario asks for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

# Level of the intervals of a scenario that names none.
UNLESS_NAMED = 0.95


def levels_of(scenario: Mapping[str, Any], points: Sequence[Mapping[str, Any]]) -> list[float]:
    """Confidence level of the intervals at each point of the grid: ``precision.level``, 0.95 if the scenario names none.

    Examples
    --------
    >>> levels_of({"precision": {"level": 0.99}}, [{}, {"precision.level": 0.9}])
    [0.99, 0.9]
    >>> levels_of({}, [{}])
    [0.95]
    """
    precision = scenario.get("precision")
    named = precision.get("level") if isinstance(precision, Mapping) else None
    return [float(point.get("precision.level", UNLESS_NAMED if named is None else named)) for point in points]


def half_width(quantity: Mapping[str, Any]) -> float | None:
    """The half-width to show of a quantity of a summary: at the scenario's level, or at 95 % if it names none.

    Examples
    --------
    >>> half_width({"mean": 1.0, "ci95": 0.1}), half_width({"mean": 1.0, "ci95": 0.1, "half_width": 0.13})
    (0.1, 0.13)
    """
    found: float | None = quantity.get("half_width", quantity["ci95"])
    return found


def percent(level: float) -> str:
    """A confidence level for people.

    Examples
    --------
    >>> percent(0.95), percent(0.999)
    ('95 %', '99.9 %')
    """
    return f"{100 * level:.10g} %"


def interval_words(levels: Iterable[float], *, several: bool = False) -> str:
    """Intervals of these levels in words.

    Examples
    --------
    >>> interval_words([0.99, 0.99]), interval_words([0.9, 0.99], several=True)
    ('99 % interval', 'intervals at the level of each')
    """
    known = sorted(set(levels))
    plural = "s" if several else ""
    return f"{percent(known[0])} interval{plural}" if len(known) == 1 else f"interval{plural} at the level of each"

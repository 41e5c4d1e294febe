"""Converts the extension's output to a result."""

from __future__ import annotations

from typing import TYPE_CHECKING

from farlink.result import Result
from farlink.scenario import Point, Scenario

if TYPE_CHECKING:
    from farlink._core import RunOutput


def from_core(scenario: Scenario, points: list[Point], output: RunOutput) -> Result:
    """The result of a scenario that the extension has run."""
    from farlink import _core

    return Result(
        scenario=scenario,
        version=_core.__version__,
        seed=int(scenario.normalised().get("seed", 1)),
        points=points,
        columns=output["rows"],
        summary_columns=output["summary"],
        interrupted=output["interrupted"],
        approximations=scenario.approximations(),
        notes=[scenario.in_its_words(note) for note in output["notes"]],
    )

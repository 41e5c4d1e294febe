"""Converts the extension's output to a result."""

from __future__ import annotations

from typing import TYPE_CHECKING

from farlink.columns import Columns
from farlink.engines.piece import Piece
from farlink.result import Result
from farlink.scenario import Expanded, Scenario

if TYPE_CHECKING:
    from farlink._core import RunOutput


def from_core(scenario: Scenario, expanded: Expanded, output: RunOutput, piece: Piece | None = None) -> Result:
    """The result of a scenario that the extension has run at these points."""
    from farlink import _core

    return Result(
        scenario=scenario,
        version=_core.__version__,
        seed=expanded.seed,
        points=expanded.points,
        columns=Columns(output["rows"]),
        summary_columns=Columns(output["summary"]),
        interrupted=output["interrupted"],
        approximations=expanded.approximations,
        notes=[scenario.in_its_words(note) for note in output["notes"]],
        numbers=None if piece is None else piece.points,
    )

"""The engine `model`: closed forms in place of a simulation. No run, no seed, no interval: a number for each flow and point.

- `point`: a grid point as closed forms see it: flows, and a path with losses, rates and delays
- `forms`: which form covers a flow; a new one is a file beside it and a line there
- `table`: the columns of a result

What no form covers is refused by name. A form is used within the range that its file states, and the result says which it was.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from farlink.engines.model.forms import answers
from farlink.engines.model.point import points
from farlink.engines.model.table import Table
from farlink.engines.piece import Piece
from farlink.limits import check_threads
from farlink.result import Result
from farlink.scenario import Scenario

if TYPE_CHECKING:
    from farlink._core import Cancel


def check(scenario: Scenario, piece: Piece | None = None) -> None:
    """Refuse what `run` would refuse."""
    run(scenario, rows=False, piece=piece)


def run(
    scenario: Scenario,
    *,
    threads: int | None = None,
    progress: Callable[[int, int], None] | None = None,
    announce: Callable[[str], None] | None = None,  # noqa: ARG001 (nothing takes long)
    rows: bool = True,
    cancel: Cancel | None = None,
    piece: Piece | None = None,
) -> Result:
    """Evaluate every point of a scenario, or some, once; see `farlink.run`. Threads and seeds change nothing."""
    from farlink import _core

    check_threads(threads)
    numbers = None if piece is None else piece.points
    expanded = scenario.expanded(numbers)
    settings = expanded.points
    table = Table()
    interrupted = False
    try:
        for number, point in enumerate(points(scenario, numbers)):
            if cancel is not None and cancel.is_set():
                interrupted = True
                break
            table.add(number, point, answers(point))
            if progress is not None:
                progress(number + 1, len(settings))
    except KeyboardInterrupt:
        interrupted = True
    return Result(
        scenario=scenario,
        version=_core.__version__,
        seed=expanded.seed,
        points=settings,
        columns=table.rows() if rows else {},
        summary_columns=table.summary(),
        interrupted=interrupted,
        approximations=expanded.approximations,
        notes=table.notes(len(settings)),
        numbers=numbers,
    )

"""The packet engine: a discrete-event simulation of the real state machines, in Rust."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from numbers import Integral
from typing import TYPE_CHECKING, Any

from farlink.engines.core_result import from_core
from farlink.engines.piece import Piece
from farlink.errors import ArgumentError, ScenarioError, core_errors
from farlink.limits import check_threads
from farlink.result import Result
from farlink.scenario import Scenario
from farlink.series import QUANTITIES, Series

if TYPE_CHECKING:
    from farlink._core import Cancel


def run(
    scenario: Scenario,
    *,
    threads: int | None = None,
    progress: Callable[[int, int], None] | None = None,
    announce: Callable[[str], None] | None = None,
    rows: bool = True,
    cancel: Cancel | None = None,
    piece: Piece | None = None,
) -> Result:
    """Run every point and seed of a scenario, or a piece of it; see `farlink.run`."""
    from farlink import _core

    check_threads(threads)
    points, runs = (None, None) if piece is None else (piece.points, piece.runs)
    expanded = scenario.expanded(points)
    span = None if runs is None else (runs.start, runs.stop)
    chosen = None if points is None else list(points)
    with core_errors(scenario.in_its_words):
        output = _core.run(scenario.to_json(), threads, progress, announce, rows, cancel, chosen, span)
    return from_core(scenario, expanded, output, piece)


def trace(
    scenario: Scenario, *, point: int = 0, run: int = 0, pcap: bool = False, quantities: Sequence[str] | None = None
) -> Series:
    """Run one run again and observe it; see `farlink.trace_run`."""
    from farlink import _core

    for name, number in (("point", point), ("run", run)):
        if isinstance(number, bool) or not isinstance(number, Integral):
            raise ArgumentError(f"{name}: {number!r} is not a whole number", "both count from 0")
    point, run = int(point), int(run)
    is_list = isinstance(quantities, Sequence) and not isinstance(quantities, str | bytes)
    if quantities is not None and not (is_list and all(isinstance(name, str) for name in quantities)):
        raise ArgumentError(f"quantities: {quantities!r} is no list of what can be observed", f"any of {', '.join(QUANTITIES)}")
    points = scenario.points()
    if not 0 <= point < len(points):
        raise ScenarioError(f"grid point {point} does not exist", f"the scenario has points 0 to {len(points) - 1}")
    runs = _runs(scenario.normalised())
    if not 0 <= run < runs:
        raise ScenarioError(f"run {run} does not exist", f"the scenario has runs 0 to {runs - 1}")
    with core_errors(scenario.in_its_words):
        output = _core.trace_run(_observing(scenario, quantities).to_json(), point, run, True, pcap)
    series = output["series"]
    return Series(
        point=point,
        run=run,
        values=points[point],
        flow=series["flow"],
        quantity=series["quantity"],
        time_s=series["time_s"],
        value=series["value"],
        pcapng=output["pcapng"],
    )


def _runs(scenario: Mapping[str, Any]) -> int:
    """How many runs of a point there may be: those that are planned, or that a precision rule allows."""
    precision = scenario.get("precision")
    return int(precision["max_runs"]) if precision else int(scenario["runs"])


def _observing(scenario: Scenario, quantities: Sequence[str] | None) -> Scenario:
    """The scenario with other series to observe."""
    measure = scenario.data.get("measure", {})
    if quantities is None or not isinstance(measure, dict):
        return scenario
    return replace(scenario, data={**scenario.data, "measure": {**measure, "series": list(quantities)}})

"""Studies in pieces: any runs of any grid point, on any machine and in any order, with the rows of the whole study."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from farlink.engines import Progress, named_engines, prepare
from farlink.engines.core_result import from_core
from farlink.engines.piece import whole
from farlink.errors import ArgumentError, core_errors
from farlink.joined import by_engine, refused, stacked
from farlink.limits import check_threads
from farlink.result import Result
from farlink.scenario import Point, Scenario

if TYPE_CHECKING:
    from farlink._core import Cancel, RunOutput


class Study:
    """A scenario that is ready to run in pieces.

    The files that it names are read once, and error events of its codings are collected once. After that, `run` gives the rows
    of some runs of one grid point: the same, to the bit, that `farlink.run` has for them. `next_runs` says which runs are
    wanted next, and `together` makes the result of the whole study from its pieces. Several threads may run pieces at the same
    time; the interpreter is released meanwhile. What the table ``[limits]`` allows holds for each piece.

    Parameters
    ----------
    scenario, set, runs, seed
        As for `farlink.run`.
    engine
        Name of the engine; it must be given if the scenario names several.
    threads
        Threads that all pieces share; all cores by default. The rows do not depend on it.
    progress
        Called with the work done and the work there is while error events are collected.
    cancel
        Stops that: `KeyboardInterrupt` is raised.

    Raises
    ------
    ScenarioError
        If the scenario is refused.

    Examples
    --------
    >>> study = Study(
    ...     {
    ...         "duration_s": 20,
    ...         "runs": 5,
    ...         "link": {"rate_bps": 1e6, "delay_s": 0.25, "channel": {"kind": "ber", "ber": 1e-6}},
    ...         "transport": {"sack": {"kind": "tcp", "variant": "sack"}},
    ...         "flow": {"bulk": {"transport": "sack", "traffic": {"kind": "bulk"}}},
    ...     }
    ... )
    >>> early = study.run(0, first_run=0, runs=2)
    >>> study.next_runs(0, [early])
    range(2, 5)
    >>> late = study.run(0, first_run=2, runs=3)
    >>> study.together([late, early]).finished_runs
    5
    """

    def __init__(
        self,
        scenario: str | Path | Mapping[str, Any] | Scenario,
        *,
        set: Mapping[str, Any] | Iterable[str] = (),
        engine: str | None = None,
        runs: int | None = None,
        seed: int | None = None,
        threads: int | None = None,
        progress: Progress | None = None,
        cancel: Cancel | None = None,
    ) -> None:
        from farlink import _core

        check_threads(threads)
        self.scenario = prepare(scenario, set=set, engine=engine, runs=runs, seed=seed)
        self._expanded = self.scenario.expanded()
        self.points: list[Point] = self._expanded.points
        engines = named_engines(self.scenario)
        if len(engines) > 1:
            remedy = f"one study for each: engine={' or engine='.join(map(repr, engines))}"
            raise ArgumentError(f"engine: the scenario names {len(engines)} engines", remedy)
        self.engine = engines[0]
        if self.engine == "model":
            raise ArgumentError("engine: closed forms have no runs to divide into pieces", 'farlink.run(..., engine="model")')
        with core_errors(self.scenario.in_its_words):
            self._core = _core.study(self.scenario.to_json(), self.engine == "fluid", threads, progress, cancel)

    def __repr__(self) -> str:
        return f"Study({self.scenario.title!r}: {len(self.points)} points, engine {self.engine})"

    def run(
        self,
        point: int = 0,
        *,
        first_run: int = 0,
        runs: int = 1,
        progress: Progress | None = None,
        cancel: Cancel | None = None,
    ) -> Result:
        """Run some runs of a grid point.

        Parameters
        ----------
        point
            Number of the grid point, from 0: an index into `points`.
        first_run
            Number of the first run, from 0. Runs beyond those that the scenario asks for may be had as well.
        runs
            How many. The fluid engine has one run per point.
        progress
            Called with the runs done and the runs there are, about ten times a second.
        cancel
            Stops the runs from any thread.

        Returns
        -------
        Result
            Rows of these runs, and a summary of these runs only. If interrupted, it has the finished runs.

        Raises
        ------
        ScenarioError
            If there is no such point, or the runs are estimated to cost more than ``[limits]`` allows.
        """
        point, first_run, runs = self._known_point(point), whole("first_run", first_run), whole("runs", runs)
        with core_errors(self.scenario.in_its_words):
            return self._result(self._core.run(point, first_run, runs, progress, cancel))

    def next_runs(self, point: int, results: Iterable[Result] = ()) -> range:
        """The runs that the whole study would do next at a grid point.

        A rule ``[precision]`` is evaluated only at certain numbers of runs, in their order, so that the study ends where
        `farlink.run` ends it, however its runs are cut into pieces.

        Parameters
        ----------
        point
            Number of the grid point, from 0.
        results
            Pieces with the runs that there are: those of this point count, and must be its first ones.

        Returns
        -------
        range
            Numbers of the runs; empty if there are enough.

        Raises
        ------
        ArgumentError
            If rows are missing, occur twice or are of another study.
        """
        point = self._known_point(point)
        return self.next_runs_of(point, [piece.columns for piece in self._pieces(results)])

    def next_runs_of(self, point: int, tables: Sequence[Mapping[str, Any]]) -> range:
        """As `next_runs`, from tables of rows; without a column ``point`` they are of this point."""
        rows = stacked(tables)
        if rows and "point" not in rows:
            rows = {"point": np.full(len(rows["run"]), point, dtype=np.uint64), **rows}
        try:
            with core_errors(self.scenario.in_its_words):
                wanted = self._core.next_runs(point, rows)
        except ValueError as error:
            raise refused(error) from error
        return range(*wanted) if wanted is not None else range(0)

    def together(self, results: Iterable[Result]) -> Result:
        """The result of all pieces, equal to that of `farlink.run` once all runs are included.

        Parameters
        ----------
        results
            In any order.

        Returns
        -------
        Result
            With rows in the order of points and runs, and the summary made anew from them. Notes are those of the whole study
            and of each piece.

        Raises
        ------
        ArgumentError
            If there is no piece, one is of another study, or a run occurs twice.
        """
        pieces = self._pieces(results)
        if not pieces:
            raise ArgumentError("results: there is no piece", "give the results of Study.run")
        rows, summary = by_engine(
            stacked([piece.columns for piece in pieces]), stacked([piece.summary_columns for piece in pieces]), [self.engine]
        )
        notes = [*self._core.notes(), *(note for piece in pieces for note in piece.notes)]
        output: RunOutput = {
            "interrupted": any(piece.interrupted for piece in pieces),
            "notes": list(dict.fromkeys(notes)),
            "rows": rows,
            "summary": summary,
        }
        return self._result(output)

    def _result(self, output: RunOutput) -> Result:
        return from_core(self.scenario, self._expanded, output)

    def _known_point(self, point: int) -> int:
        number = whole("point", point)
        if number >= len(self.points):
            raise ArgumentError(f"point: there is no point {number}", f"the study has points 0 to {len(self.points) - 1}")
        return number

    def _pieces(self, results: Iterable[Result]) -> list[Result]:
        """The pieces, all of this study."""
        pieces: list[Result] = list(results)
        for number, piece in enumerate(pieces):
            if not isinstance(piece, Result):
                raise ArgumentError(f"results: entry {number} is no Result", "give the results of Study.run")
            if piece.scenario.data != self.scenario.data or not piece.columns:
                raise ArgumentError(
                    f"results: entry {number} is of another scenario, or without rows", "give the results of this study's run"
                )
        return pieces

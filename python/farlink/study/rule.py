"""A rule of precision at one point: which runs are wanted next, asked in the order of the runs only."""

from __future__ import annotations

import json
from typing import Any

from farlink.errors import StudyError
from farlink.scenario import Scenario
from farlink.study.execute import needs_events
from farlink.study.locks import held
from farlink.study.pieces import Study
from farlink.study.plan import Plan, Unit
from farlink.study.store import Store
from farlink.study.unit_file import DamagedUnit, UnitContent


class Rule:
    """The runs of a point for which a rule decides.

    Parameters
    ----------
    plan, store
        The study.
    engine, point
        Where.
    """

    def __init__(self, plan: Plan, store: Store, engine: str, point: int) -> None:
        self._plan, self._store, self._engine, self._point = plan, store, engine, point
        self._study: Study | None = None
        self._asked: list[Unit] = []
        self._rows: list[UnitContent] = []
        # Keys of units that are not done yet.
        self.waits_for: set[str] = set()

    def next_units(self) -> list[Unit]:
        """The units that are wanted next, once all asked before have a file; empty if there are enough."""
        if self._study is None:
            self._study = self._prepared()
        for unit in self._asked[len(self._rows) :]:
            self._rows.append(self._store.read(unit.key))
        wanted = self._study.next_runs_of(0, [content.rows for content in self._rows])
        units = self._plan.units(self._engine, self._point, wanted)
        self._asked += units
        return units

    def done(self) -> list[UnitContent]:
        """Finished runs among those that the rule wants, in their order, without gaps."""
        while units := self.next_units():
            for unit in units:
                try:
                    self._store.read(unit.key)
                except (DamagedUnit, OSError):
                    return self._rows + self._first_of(units)
        return self._rows

    def _first_of(self, units: list[Unit]) -> list[UnitContent]:
        found = []
        for unit in units:
            try:
                found.append(self._store.read(unit.key))
            except (DamagedUnit, OSError):
                break
        return found

    def is_enough(self) -> bool:
        """Whether the rule wants no more."""
        return bool(self._asked) and len(self._rows) == len(self._asked)

    def _prepared(self) -> Study:
        text = self._plan.given(self._point)
        data: dict[str, Any] = {**json.loads(text), "engines": [self._engine]}
        scenario = Scenario(data, self._plan.scenario.base)
        if not needs_events(text):
            return Study(scenario, threads=1)
        try:
            with held(self._store.folder / "events.lock", wait=True):
                return Study(scenario, threads=1)
        except OSError as error:
            raise StudyError(
                f"cannot lock {self._store.folder}: {error.strerror}", "choose a folder that you may write to"
            ) from error

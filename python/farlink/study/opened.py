"""The folder of a study, opened: how far it is, and its result so far."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from farlink.build import SHOWN, build_name
from farlink.engines import named_engines
from farlink.errors import ArgumentError, FarlinkError, StudyError
from farlink.extras import require
from farlink.joined import by_engine, stacked
from farlink.output import check_directory
from farlink.result import Result
from farlink.scenario import Scenario
from farlink.study.plan import Plan, files_of
from farlink.study.progress import Status, status_of
from farlink.study.rule import Rule
from farlink.study.store import DESCRIPTION, Store
from farlink.study.unit_file import DamagedUnit, UnitContent

if TYPE_CHECKING:
    from farlink.study.indices import Index

# Engines whose rows are functions of scenario, seed and run.
_ENGINES = ("packet", "fluid", "model")
# A unit takes about so long.
_UNIT_S = 1.0
_MOST_RUNS_PER_UNIT = 10_000


@dataclass(frozen=True)
class OpenedStudy:
    """A study in a folder, which may be finished, under way or abandoned.

    Attributes
    ----------
    store
        The folder.
    plan
        What the study consists of.
    """

    store: Store
    plan: Plan

    def __repr__(self) -> str:
        return f"OpenedStudy({self.plan.scenario.title!r} in {self.store.folder}: {len(self.plan)} points)"

    @classmethod
    def at(cls, folder: str | Path) -> OpenedStudy:
        """Open a folder; see `farlink.study.open`."""
        require("pyarrow.parquet", "a study in a folder")
        if not isinstance(folder, str | Path):
            raise ArgumentError(f"folder: {folder!r} is no name of a folder", "give what -o of farlink sweep has named")
        store = Store(Path(folder))
        found = store.description()
        try:
            scenario = _scenario(found["scenario"])
            engines = tuple(str(name) for name in found["engines"])
            files = {str(name): str(digest) for name, digest in found["files"].items()}
            runs_per_unit, build = int(found["runs_per_unit"]), str(found["build"])
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise StudyError(
                f"{store.description_path} is not a description of a study", "begin it in another folder"
            ) from error
        if build != build_name():
            message = f"{store.folder} is of build {build[:SHOWN]}, and this is build {build_name()[:SHOWN]}: rows may differ"
            raise StudyError(message, "take the farlink that began it, or begin anew: --as DIR2")
        return cls(store, Plan(scenario, engines, files, runs_per_unit))

    @classmethod
    def begun(
        cls,
        scenario: Scenario,
        folder: str | Path,
        *,
        progress: Callable[[int, int], None] | None = None,
        drawn: object = None,
        earlier: Store | None = None,
    ) -> OpenedStudy:
        """Begin a study in a folder, or take one up that was begun there.

        Parameters
        ----------
        scenario
            What is studied.
        folder
            New, empty, or that of the same study.
        progress
            Called with the points that were checked, and all.
        drawn
            What the points were drawn from, to be described.
        earlier
            Folder of another study, whose units may be taken over: units here are as long as there.

        Raises
        ------
        StudyError
            If the folder is that of another study, build or file, or the scenario names an engine without units.
        ScenarioError
            If the scenario is refused at some point.
        """
        require("pyarrow.parquet", "a study in a folder")
        store = Store(Path(folder))
        engines = tuple(named_engines(scenario))
        for name in engines:
            if name not in _ENGINES:
                message = f"engines: {name} cannot be divided into units, since it plays in real time"
                raise StudyError(message, f"give --engine with some of {', '.join(_ENGINES)}")
        files = files_of(scenario)
        if store.description_path.exists():
            opened = cls.at(folder)
            _check_same(opened, scenario, engines, files)
            opened.plan.check(progress)
            return opened
        check_directory(store.folder)
        if store.folder.exists() and any(_is_foreign(entry.name) for entry in store.folder.iterdir()):
            raise StudyError(
                f"{store.folder} is not empty, and not the folder of a study", "give a new folder, or an empty one"
            )
        plan = Plan(scenario, engines, files)
        plan.check(progress)
        store.folder.mkdir(parents=True, exist_ok=True)
        store.describe(
            {
                "farlink": _version(),
                "build": build_name(),
                "scenario": _described(scenario),
                "engines": list(engines),
                "files": files,
                "runs_per_unit": _runs_per_unit(plan, store) if earlier is None else _runs_of(earlier),
                "points": len(plan),
                **({"drawn": drawn} if drawn is not None else {}),
            }
        )
        # Another coordinator may have come first.
        opened = cls.at(folder)
        _check_same(opened, scenario, engines, files)
        opened.plan._digests.update(plan._digests)
        return opened

    def status(self) -> Status:
        """How far it is: units done and known, rate, time left, failures."""
        return status_of(self.store, self.plan)

    def result(self) -> Result:
        """The result of what is done, in the order of the study: however it was computed, the same to the byte.

        Returns
        -------
        Result
            ``interrupted`` if units are missing. Runs count up to the first that is missing at their point, so that means never
            depend on the order in which units were done.

        Raises
        ------
        StudyError
            If nothing is done yet.
        """
        rows: list[dict[str, Any]] = []
        summaries: list[Mapping[str, Any]] = []
        contents: list[UnitContent] = []
        is_whole = True
        for _, point, found, is_enough in self._done():
            is_whole = is_whole and is_enough
            contents += found
            for content in found:
                rows.append(_of_point(content.rows, point))
                if content.summary is not None:
                    summaries.append(
                        {**content.summary, "point": np.full(len(content.summary["flow"]), point, dtype=np.uint64)}
                    )
        if not rows:
            raise StudyError(f"{self.store.folder}: no unit is done yet", "wait for the first, or run farlink sweep")
        present = [name for name in self.plan.engines if any(name in table["engine"][:1] for table in rows)]
        columns, summary = by_engine(stacked(rows), stacked(summaries), present)
        return Result(
            scenario=self.plan.scenario,
            version=_version(),
            seed=int(json.loads(self.plan.points.normalised(0, [])).get("seed", 1)),
            points=[self.plan.settings(point) for point in range(len(self.plan))],
            columns=columns,
            summary_columns=summary,
            interrupted=not is_whole,
            approximations=list(dict.fromkeys(one for content in contents for one in content.approximations)),
            notes=list(dict.fromkeys(note for content in contents for note in content.notes)),
        )

    def indices(self, quantity: str, *, engine: str | None = None, flow: str = "all") -> list[Index]:
        """How much each parameter of a drawn study matters for a quantity; see `farlink.study.indices.study_indices`."""
        from farlink.study.indices import study_indices

        return study_indices(self, quantity, engine=engine, flow=flow)

    def _done(self) -> Iterator[tuple[str, int, list[UnitContent], bool]]:
        """Progress at each point: of each engine, the units before the first that is missing, and whether they are all."""
        finished = self.store.finished()
        for engine in self.plan.engines:
            for point in range(len(self.plan)):
                runs = self.plan.runs(engine, point)
                if runs is None:
                    rule = Rule(self.plan, self.store, engine, point)
                    found = rule.done()
                    yield engine, point, found, rule.is_enough()
                    continue
                units = self.plan.units(engine, point, runs)
                found = []
                for unit in units:
                    try:
                        if unit.key not in finished:
                            break
                        found.append(self.store.read(unit.key))
                    except (DamagedUnit, OSError):
                        break
                yield engine, point, found, len(found) == len(units)


def _of_point(rows: Mapping[str, Any], point: int) -> dict[str, Any]:
    return {**rows, "point": np.full(len(rows["flow"]), point, dtype=np.uint64)}


def _check_same(opened: OpenedStudy, scenario: Scenario, engines: tuple[str, ...], files: Mapping[str, str]) -> None:
    """Refuse a folder of another study."""
    there, folder = opened.plan, opened.store.folder
    for name in sorted({*files, *there.files}):
        if name in files and name in there.files and files[name] != there.files[name]:
            message = f"{name} has changed since the study in {folder} began"
            raise StudyError(message, f"put the file back as it was, or begin anew: {_ANEW}")
    if there.engines != engines:
        message = f"{folder} is of a study with the engines {', '.join(there.engines)}, not {', '.join(engines)}"
        raise StudyError(message, f"begin this one elsewhere: {_ANEW}")
    other = _difference(there.scenario.data, scenario.data)
    if other:
        raise StudyError(f"{folder} is of another study: {other}", f"begin this one elsewhere: {_ANEW}")


_ANEW = "-o DIR2, or --as DIR2 besides, which takes over what still holds"


def _difference(there: Mapping[str, Any], here: Mapping[str, Any], path: str = "") -> str:
    """The first key in which two scenarios differ, in words; empty if in none but the title."""
    for key in dict.fromkeys([*there, *here]):
        where = f"{path}.{key}" if path else key
        if where == "title" or there.get(key) == here.get(key):
            continue
        one, other = there.get(key), here.get(key)
        if isinstance(one, dict) and isinstance(other, dict):
            return _difference(one, other, where)
        return f"{where} is {_short(one)} there and {_short(other)} here"
    return ""


def _short(value: Any) -> str:
    text = "not given" if value is None else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _described(scenario: Scenario) -> dict[str, Any]:
    return {
        "data": scenario.data,
        "base": str(scenario.base.absolute()),
        "source": scenario.source,
        "path": None if scenario.path is None else str(scenario.path),
        "overrides": list(scenario.overrides),
    }


def _scenario(described: Mapping[str, Any]) -> Scenario:
    path = described["path"]
    overrides: Iterable[str] = described["overrides"]
    return Scenario(
        dict(described["data"]),
        Path(described["base"]),
        described["source"],
        None if path is None else Path(path),
        tuple(overrides),
    )


def _is_foreign(name: str) -> bool:
    """Whether a file is none that a start which was killed has left."""
    return not (name.endswith(".lock") or name.startswith(f".{DESCRIPTION}."))


def _runs_per_unit(plan: Plan, store: Store) -> int:
    """Runs of the packet engine that take about a second, by the first run of the first, a middle and the last point."""
    if "packet" not in plan.engines or (plan.runs("packet", 0) or range(2)) == range(1):
        return 1
    from farlink.study.execute import computed

    spent = []
    for point in sorted({0, len(plan) // 2, len(plan) - 1}):
        unit = plan.units("packet", point, range(1))[0]
        try:
            work = partial(computed, str(store.folder), plan.job(unit))
            first_s = _seconds(work)
            # The first time, the scenario is read and prepared, and modules are imported.
            again_s = _seconds(work) if first_s < _UNIT_S else first_s
        except FarlinkError:  # the unit will say so
            continue
        spent.append(again_s)
    mean_s = sum(spent) / len(spent) if spent else _UNIT_S
    return max(1, min(_MOST_RUNS_PER_UNIT, round(_UNIT_S / max(mean_s, 1e-6))))


def _runs_of(earlier: Store) -> int:
    """Runs in a unit of an earlier study."""
    found = earlier.description().get("runs_per_unit")
    if isinstance(found, bool) or not isinstance(found, int) or not 1 <= found <= _MOST_RUNS_PER_UNIT:
        raise StudyError(f"{earlier.description_path} describes no study", "leave --as out, and give another folder with -o")
    return found


def _seconds(work: Callable[[], object]) -> float:
    """Processor time of this thread and of those it starts, in s."""
    begin = time.process_time()
    work()
    return time.process_time() - begin


def _version() -> str:
    from farlink import _core

    return _core.__version__

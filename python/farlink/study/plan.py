"""Plan of a study in a folder: units of work, of about a second each, and their keys.

A unit is (engine, point, range of runs). Its key is SHA-256 over all that its rows depend on: the build, the engine, the
scenario at the point with every default written out (less title, grid, number of runs and limits), the content of the files
that it names, the first run and the number of runs. Equal keys have equal rows, in whatever study, on whatever machine.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from farlink.build import build_name
from farlink.errors import ScenarioError, core_errors
from farlink.scenario import Point, Scenario, find_data_file

if TYPE_CHECKING:
    from farlink._core import Points

# Keys of a scenario that its rows do not depend on, once engine and runs are given.
_IDLE = ("title", "engines", "runs", "limits")
# A rule of precision says how many runs there are, except to the fluid engine, which has one and ends it by the rule.
_PRECISION = "precision"

_DIGEST_BYTES = 32


@dataclass(frozen=True)
class Unit:
    """A piece of work."""

    engine: str
    point: int
    first_run: int
    runs: int
    key: str


@dataclass(frozen=True)
class Plan:
    """A study, divided into units.

    Attributes
    ----------
    scenario
        What is studied, with its grid.
    engines
        In the order of the table.
    files
        SHA-256 of each file that the scenario names, by its name there.
    runs_per_unit
        Runs in a unit of the packet engine.
    """

    scenario: Scenario
    engines: tuple[str, ...]
    files: Mapping[str, str]
    runs_per_unit: int = 1
    _digests: dict[str, bytearray] = field(default_factory=dict, init=False, repr=False, compare=False)

    @cached_property
    def points(self) -> Points:
        """The points of the grid, made one by one."""
        from farlink import _core

        with core_errors(self.scenario.in_its_words):
            return _core.Points(self.scenario.to_json())

    def __len__(self) -> int:
        return len(self.points)

    def settings(self, point: int) -> Point:
        """Values of what varies at a point."""
        found: Point = json.loads(self._named(self.points.settings(point)))
        return found

    def given(self, point: int) -> str:
        """The scenario at a point as JSON, with the names of files as in the scenario."""
        with core_errors(self.scenario.in_its_words):
            return self._named(self.points.given(point))

    def check(self, progress: Callable[[int, int], None] | None = None) -> None:
        """Check every point, before anything runs, and keep their digests.

        Raises
        ------
        ScenarioError
            The first refusal.
        """
        every = max(1, len(self) // 200)
        # The fluid engine has digests of its own; the others share theirs.
        of_kind = {engine == "fluid": bytearray() for engine in self.engines}
        kinds = [(_left_out("fluid" if fluid else ""), digests) for fluid, digests in of_kind.items()]
        for first in range(0, len(self), every):
            with core_errors(self.scenario.in_its_words):
                for point in range(first, min(first + every, len(self))):
                    for left_out, digests in kinds:
                        digests += self._digest(left_out, point)
            if progress is not None:
                progress(first, len(self))
        self._digests.update({engine: of_kind[engine == "fluid"] for engine in self.engines})

    def runs(self, engine: str, point: int) -> range | None:
        """The runs that the study asks for at a point; None if a rule of precision decides."""
        if engine != "packet":
            return range(1)
        return self._runs_at(point) if self._varies_runs else self._runs_everywhere

    def units(self, engine: str, point: int, runs: range) -> list[Unit]:
        """The units of a range of runs."""
        size = self.runs_per_unit if engine == "packet" else 1
        return [
            Unit(
                engine, point, first, min(size, runs.stop - first), self.key(engine, point, first, min(size, runs.stop - first))
            )
            for first in range(runs.start, runs.stop, size)
        ]

    def key(self, engine: str, point: int, first_run: int, runs: int) -> str:
        """The key of a unit."""
        known = self._digests.get(engine)
        start = point * _DIGEST_BYTES
        if known is None:
            with core_errors(self.scenario.in_its_words):
                digest = self._digest(_left_out(engine), point)
        else:
            digest = bytes(known[start : start + _DIGEST_BYTES])
        text = f"{build_name()} {engine} {digest.hex()} {first_run} {runs}"
        return hashlib.sha256(text.encode()).hexdigest()

    def planned(self) -> Iterator[Unit]:
        """All units whose runs are known beforehand."""
        for engine in self.engines:
            for point in range(len(self)):
                runs = self.runs(engine, point)
                if runs is not None:
                    yield from self.units(engine, point, runs)

    def planned_count(self) -> int:
        """How many units `planned` has."""
        if self._varies_runs:
            return sum(1 for _ in self.planned())
        count = 0
        for engine in self.engines:
            runs = self.runs(engine, 0)
            size = self.runs_per_unit if engine == "packet" else 1
            count += 0 if runs is None else len(self) * -(-len(runs) // size)
        return count

    @property
    def has_rule(self) -> bool:
        """Whether a rule of precision decides how many runs there are at some point."""
        return "packet" in self.engines and (self._varies_runs or self._runs_everywhere is None)

    def job(self, unit: Unit) -> dict[str, Any]:
        """A worker's order for a unit, as JSON knows it."""
        return {
            "key": unit.key,
            "build": build_name(),
            "engine": unit.engine,
            "scenario": self.given(unit.point),
            "base": str(self.scenario.base),
            "files": dict(self.files),
            "first_run": unit.first_run,
            "runs": unit.runs,
        }

    @cached_property
    def _varies_runs(self) -> bool:
        return any(path.split(".")[0] in ("runs", _PRECISION) for path in self.scenario.grid_paths)

    @cached_property
    def _runs_everywhere(self) -> range | None:
        return self._runs_at(0)

    def _runs_at(self, point: int) -> range | None:
        with core_errors(self.scenario.in_its_words):
            data = json.loads(self.points.normalised(point, []))
        return None if data.get(_PRECISION) is not None else range(int(data["runs"]))

    def _digest(self, left_out: list[str], point: int) -> bytes:
        """SHA-256 over the scenario at a point and the files that it names: over what it says, not how the grid says it."""
        text = self.points.normalised(point, left_out)
        if not self.files:
            return hashlib.sha256(text.encode()).digest()
        text = self._named(text)
        named = {name: digest for name, digest in self.files.items() if json.dumps(name, ensure_ascii=False) in text}
        return hashlib.sha256(f"{text}{json.dumps(named, sort_keys=True) if named else ''}".encode()).digest()

    def _named(self, text: str) -> str:
        """A text of the extension with the names of files as in the scenario, not those in the cache."""
        return self.scenario.in_its_words(text) if self.files else text


def _left_out(engine: str) -> list[str]:
    """Keys at the top of a scenario that an engine's rows do not depend on."""
    return [*_IDLE] if engine == "fluid" else [*_IDLE, _PRECISION]


def files_of(scenario: Scenario) -> dict[str, str]:
    """SHA-256 of the content of each file that a scenario names, by its name there.

    Raises
    ------
    ScenarioError
        If one cannot be read.
    """
    scenario.to_json()
    found = {}
    for name in scenario.files():
        found[name] = "" if name.startswith("synthetic:") else digest_of(find_data_file(name, base=scenario.base))
    return found


def digest_of(path: Path) -> str:
    """SHA-256 of a file's content: of all files if it is a folder or a pattern in one, of the archive if it is a member of one.

    Raises
    ------
    ScenarioError
        If it cannot be read.
    """
    there = next((place for place in (path, *path.parents) if place.exists()), path)
    try:
        if there.is_dir() and there != path and "*" not in path.name:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
        if there.is_dir():
            files = sorted(file for file in there.rglob("*") if file.is_file())
            parts = [f"{file.relative_to(there).as_posix()} {digest_of(file)}" for file in files]
            return hashlib.sha256("\n".join(parts).encode()).hexdigest()
        with there.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise ScenarioError(f"cannot read {path}: {error.strerror}", "put the file back, or correct its name") from error

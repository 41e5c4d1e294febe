"""Gives the units of a study out until all are done. All that is known is in the folder: killed, it goes on from there."""

from __future__ import annotations

import os
import shutil
import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, CancelledError, Executor, Future, wait
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from farlink.errors import StudyError
from farlink.study.execute import run_unit
from farlink.study.plan import Plan, Unit
from farlink.study.rule import Rule
from farlink.study.store import Store
from farlink.study.unit_file import DamagedUnit

if TYPE_CHECKING:
    from farlink._core import Cancel

# A unit that ends its worker so often is set aside.
MOST_CRASHES = 3
# Units at hand for each worker, so that none waits for the coordinator.
_AHEAD = 2
# From so many new units on, the size of a unit's file is taken to be known.
_SIZED = 8
_LOOK_S = 0.2


@dataclass(frozen=True)
class Shard:
    """A part of a study, for several coordinators that know nothing of each other.

    Attributes
    ----------
    index, count
        Part `index` of `count`, from 0.
    """

    index: int = 0
    count: int = 1

    @classmethod
    def parse(cls, text: str) -> Shard:
        """Read ``I/N``.

        Raises
        ------
        StudyError
            If it is not of that form, or there is no such part.

        Examples
        --------
        >>> Shard.parse("3/4")
        Shard(index=3, count=4)
        """
        index, slash, count = text.partition("/")
        if not (slash and all(part.isascii() and part.isdigit() and len(part) <= 6 for part in (index, count))):
            raise StudyError(f"--shard {text}: not of the form I/N", "for example --shard 0/4, and 1/4, 2/4, 3/4 elsewhere")
        if int(index) >= int(count):
            allowed = (
                f"parts count from 0: 0/{count} to {int(count) - 1}/{count}" if int(count) else "give at least one part: 0/1"
            )
            raise StudyError(f"--shard {text}: there is no such part", allowed)
        return cls(int(index), int(count))

    def has(self, number: int) -> bool:
        """Whether a point or a unit is of this part, by its number."""
        return number % self.count == self.index


@dataclass
class Outcome:
    """Outcome of a coordinator."""

    executed: int = 0
    """Units that were computed."""
    there: int = 0
    """Units that were done already."""
    set_aside: int = 0
    """Units that cannot be done."""
    interrupted: bool = False
    remarks: list[str] = field(default_factory=list)


class Coordinator:
    """Gives out the units of a plan.

    Parameters
    ----------
    plan, store
        What is to be done, and where.
    executor, workers
        Who does it, and how many.
    shard
        The part that is to be done.
    earlier
        Another folder, whose units are taken over where their keys are the same.
    tell
        Called with each remark, such as that a unit was set aside.
    progress
        Called with the units done and all units that are known.
    cancel
        Stops it: units under way are lost.
    """

    def __init__(
        self,
        plan: Plan,
        store: Store,
        executor: Executor,
        workers: int,
        *,
        shard: Shard | None = None,
        earlier: Store | None = None,
        tell: Callable[[str], None],
        progress: Callable[[int, int], None],
        cancel: Cancel | None = None,
    ) -> None:
        self._plan, self._store, self._executor, self._earlier = plan, store, executor, earlier
        self._shard, self._tell, self._progress, self._cancel = shard or Shard(), tell, progress, cancel
        self._capacity = _AHEAD * workers
        self._finished = store.finished()
        self._outcome = Outcome()
        self._again: deque[Unit] = deque()
        self._crashes: dict[str, int] = {}
        self._failed: set[str] = set()
        self._under_way: dict[Future[dict[str, Any]], Unit] = {}
        self._waits: dict[str, Rule] = {}
        self._bytes, self._total = 0, 0
        self._source = self._all_units()

    def work(self) -> Outcome:
        """Work until all units of the shard are done, or were set aside.

        Raises
        ------
        StudyError
            If nothing can go on: a full disk, workers of another build, unlike rows of one unit.
        """
        planned = self._plan.planned_count()
        # Of a plan with rules only those units are known that were asked for.
        self._total = 0 if self._plan.has_rule else len(range(self._shard.index, planned, self._shard.count))
        while True:
            while len(self._under_way) < self._capacity and (unit := self._next()) is not None:
                self._under_way[self._executor.submit(run_unit, str(self._store.folder), self._plan.job(unit))] = unit
            if not self._under_way:
                return self._outcome
            done, _ = wait(self._under_way, timeout=_LOOK_S, return_when=FIRST_COMPLETED)
            if self._cancel is not None and self._cancel.is_set():
                self._outcome.interrupted = True
                return self._outcome
            for future in done:
                self._finish(self._under_way.pop(future), future)
            self._report()

    def _report(self) -> None:
        done = self._outcome.executed + self._outcome.there
        self._progress(done, max(self._total, done + len(self._under_way)))

    def _next(self) -> Unit | None:
        if self._again:
            return self._again.popleft()
        return next(self._source, None)

    def _is_own(self, number: int, unit: Unit) -> bool:
        """Points with a rule of precision are not divided: it needs the rows of all runs so far."""
        return self._shard.has(unit.point if self._plan.has_rule else number)

    def _all_units(self) -> Iterator[Unit]:
        """Units that have no file yet; those of rules come later, when the runs before are done."""
        number = 0
        for engine in self._plan.engines:
            for point in range(len(self._plan)):
                runs = self._plan.runs(engine, point)
                if runs is None:
                    if self._shard.has(point):
                        rule = Rule(self._plan, self._store, engine, point)
                        yield from self._asked(rule)
                    continue
                for unit in self._plan.units(engine, point, runs):
                    if self._is_own(number, unit):
                        yield from self._missing([unit])
                    number += 1

    def _asked(self, rule: Rule) -> list[Unit]:
        """The units that a rule wants next and that have no file yet."""
        while wanted := rule.next_units():
            self._total += len(wanted)
            missing = self._missing(wanted)
            if missing:
                rule.waits_for = {unit.key for unit in missing}
                self._waits.update(dict.fromkeys(rule.waits_for, rule))
                return missing
        return []

    def _missing(self, units: list[Unit]) -> list[Unit]:
        missing = []
        for unit in units:
            if (unit.key in self._finished and self._is_whole(unit)) or (
                self._earlier is not None and self._store.take_over(unit.key, self._earlier)
            ):
                self._outcome.there += 1
            else:
                self._store.try_again(unit.key)
                missing.append(unit)
        return missing

    def _is_whole(self, unit: Unit) -> bool:
        try:
            self._store.check(unit.key)
        except (DamagedUnit, OSError) as error:
            self._tell(f"{self._store.unit_path(unit.key)} is computed anew: {error}")
            self._finished.discard(unit.key)
            return False
        return True

    def _finish(self, unit: Unit, future: Future[dict[str, Any]]) -> None:
        try:
            answer = future.result()
        except CancelledError as error:
            message = "the units under way were cancelled: what runs them is gone"
            raise StudyError(message, "start it again, then give the same command again: what is done stays") from error
        except Exception as error:
            if _is_without_farlink(error):
                message = f"a worker has no farlink, or not all of it: {error}"
                raise StudyError(message, "install the same farlink where workers run") from error
            # Whatever an executor says of a worker that is gone: the unit may or may not be the cause.
            self._crash(unit, str(error) or type(error).__name__)
            return
        kind = answer.get("error")
        if kind in ("build", "file", "disk", "unlike"):
            raise StudyError(answer["message"], f"{answer['remedy']}; then give the same command again: what is done stays")
        if kind is not None:
            self._set_aside(unit, f"{answer['message']}; {answer['remedy']}")
            return
        self._outcome.executed += 1
        self._bytes += answer["bytes"]
        if self._outcome.executed == _SIZED:
            self._check_room()
        rule = self._waits.pop(unit.key, None)
        if rule is not None:
            rule.waits_for.discard(unit.key)
            if not rule.waits_for:
                self._again.extend(self._asked(rule))

    def _crash(self, unit: Unit, what: str) -> None:
        self._crashes[unit.key] = self._crashes.get(unit.key, 0) + 1
        if self._crashes[unit.key] < MOST_CRASHES:
            self._again.append(unit)
        else:
            self._set_aside(unit, f"{what}, {MOST_CRASHES} times")

    def _set_aside(self, unit: Unit, why: str) -> None:
        self._outcome.set_aside += 1
        self._waits.pop(unit.key, None)
        place = ", ".join(f"{path} = {value}" for path, value in self._plan.settings(unit.point).items())
        runs = f"runs {unit.first_run} to {unit.first_run + unit.runs - 1}"
        about = {"engine": unit.engine, "point": unit.point, "place": place, "runs": runs, "error": why, "at": time.time()}
        self._store.set_aside(unit.key, about)
        self._tell(f"set aside: {unit.engine}, point {unit.point}{f' ({place})' if place else ''}, {runs}: {why}")

    def _check_room(self) -> None:
        """Refuse to go on if the rest, as large as what there is, does not fit the disk."""
        left = self._total - self._outcome.executed - self._outcome.there
        size = self._bytes // self._outcome.executed
        # A file takes whole blocks.
        block = os.statvfs(self._store.folder).f_frsize if hasattr(os, "statvfs") else 1
        needed = left * -(-size // block) * block
        free = shutil.disk_usage(self._store.folder).free
        if needed > free:
            message = f"{self._store.folder}: {left} units of {size} bytes do not fit the disk"
            remedy = f"{needed / 1e9:.3g} GB are needed and {free / 1e9:.3g} GB are free: free some, or begin in another folder"
            raise StudyError(message, remedy)


def _is_without_farlink(error: BaseException) -> bool:
    """Whether a worker could not import farlink, by the error or by what it was raised from."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ModuleNotFoundError) and (cause.name or "").split(".")[0] == "farlink":
            return True
        cause = cause.__cause__
    return "No module named 'farlink" in str(error)

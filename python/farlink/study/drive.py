"""Works on a study in a folder: locks, error events, workers, until all units are done."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from farlink.build import cores
from farlink.errors import StudyError
from farlink.limits import check_threads
from farlink.study.coordinate import Coordinator, Outcome, Shard
from farlink.study.execute import needs_events
from farlink.study.local import LocalWorkers
from farlink.study.locks import held
from farlink.study.opened import OpenedStudy
from farlink.study.pieces import Study
from farlink.study.store import Store

if TYPE_CHECKING:
    from farlink._core import Cancel


def work(
    study: OpenedStudy,
    *,
    workers: int | None = None,
    shard: Shard | None = None,
    earlier: Store | None = None,
    scheduler: str | None = None,
    tell: Callable[[str], None] = lambda _text: None,
    progress: Callable[[int, int], None] = lambda _done, _all: None,
    cancel: Cancel | None = None,
) -> Outcome:
    """Compute the units of a study that have no file yet.

    Parameters
    ----------
    study
        Opened or begun.
    workers
        Processes on this machine, of one thread each; one for each core by default.
    shard
        The part to do; all by default. Others do theirs at the same time, over the same folder.
    earlier
        Another folder, whose units are taken over where their keys are the same.
    scheduler
        Address of a Dask scheduler whose workers do it, such as ``"tcp://host:8786"``, in place of processes on this machine.
    tell, progress
        Called with remarks, and with the units done and known.
    cancel
        Stops it.

    Raises
    ------
    StudyError
        If another coordinator is at work, the scheduler is not there, or nothing can go on.
    """
    check_threads(workers)
    with _alone(study, shard, tell):
        _collect_events(study, workers or cores(), progress, cancel)
        with _executor(scheduler, workers or cores()) as (executor, count):
            coordinator = Coordinator(
                study.plan,
                study.store,
                executor,
                count,
                shard=shard,
                earlier=earlier,
                tell=tell,
                progress=progress,
                cancel=cancel,
            )
            return coordinator.work()


@contextmanager
def _alone(study: OpenedStudy, shard: Shard | None, tell: Callable[[str], None]) -> Iterator[None]:
    """One coordinator works on the whole, or one on each shard."""
    with ExitStack() as stack:
        folder = study.store.folder
        try:
            if shard is None:
                stack.enter_context(held(folder / "coordinator.lock", tell=tell))
            else:
                stack.enter_context(held(folder / "coordinator.lock", shared=True, tell=tell))
                stack.enter_context(held(folder / f"shard-{shard.index}-of-{shard.count}.lock"))
        except OSError as error:
            raise StudyError(f"cannot write to {folder}: {error.strerror}", "choose a folder that you may write to") from error
        yield


def _collect_events(study: OpenedStudy, threads: int, progress: Callable[[int, int], None], cancel: Cancel | None) -> None:
    """Collect error events of coded channels on all cores, once, before the units that need them."""
    scenario = study.plan.scenario
    if "packet" not in study.plan.engines or not needs_events(scenario.to_json()):
        return
    packets = scenario.with_overrides(['engines=["packet"]'])
    with held(study.store.folder / "events.lock", wait=True):
        Study(packets, threads=threads, progress=progress, cancel=cancel)


@contextmanager
def _executor(scheduler: str | None, workers: int) -> Iterator[tuple[Executor, int]]:
    if scheduler is not None:
        from farlink.study.cluster import connected

        with connected(scheduler) as (executor, count):
            yield executor, count
        return
    executor = LocalWorkers(workers)
    try:
        yield executor, workers
    finally:
        executor.shutdown(cancel_futures=True)

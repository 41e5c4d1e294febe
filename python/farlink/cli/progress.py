"""A progress bar for work that takes longer than a second."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress

_QUIET_S = 1.0


@contextmanager
def progress_bar(title: str, unit: str = "runs") -> Iterator[Callable[[int, int], None]]:
    """Yield a function to call with the work done and planned; it draws on standard error, and only on a terminal."""
    start = time.monotonic()
    bar: Progress | None = None

    def update(done: int, total: int) -> None:
        nonlocal bar
        if bar is None:
            if sys.stderr is None or not sys.stderr.isatty() or time.monotonic() - start < _QUIET_S:
                return
            bar = _new_bar(unit)
            bar.add_task(title, total=total)
            bar.start()
        bar.update(bar.task_ids[0], completed=done, total=total)

    try:
        yield update
    finally:
        if bar is not None:
            bar.stop()


def _new_bar(unit: str) -> Progress:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn(unit),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
    )

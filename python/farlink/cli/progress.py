"""Progress of work that takes longer than a second: a bar, or the name of the step if its duration is unknown."""

from __future__ import annotations

import shutil
import sys
import threading
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


@contextmanager
def busy(first: str) -> Iterator[Callable[[str], None]]:
    """Show the current step and its duration on standard error if that is a terminal; yield a function to name the next one.

    Parameters
    ----------
    first
        What is done first.
    """
    if sys.stderr is None or not sys.stderr.isatty():
        yield lambda _what: None
        return
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    shown = Progress(
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        TimeElapsedColumn(),
        console=Console(stderr=True),
        transient=True,
    )
    task = shown.add_task(first)
    timer = threading.Timer(_QUIET_S, shown.start)
    timer.daemon = True
    timer.start()
    try:
        yield lambda what: shown.update(task, description=what)
    finally:
        timer.cancel()
        timer.join()
        shown.stop()


class StatusLine:
    """A line on a terminal's standard error that is written over. It has no thread: one that began early would keep rights."""

    def __init__(self) -> None:
        self._is_seen = sys.stderr is not None and sys.stderr.isatty()
        self._is_shown = False

    def __enter__(self) -> StatusLine:
        return self

    def __exit__(self, *_: object) -> None:
        self.clear()

    def show(self, text: str) -> None:
        """Show this in place of what it shows."""
        if self._is_seen:
            width = shutil.get_terminal_size().columns - 1
            sys.stderr.write(f"\r\x1b[K{text[:width]}")
            sys.stderr.flush()
            self._is_shown = True

    def clear(self) -> None:
        """Show nothing, before something else is written."""
        if self._is_shown:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
            self._is_shown = False


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

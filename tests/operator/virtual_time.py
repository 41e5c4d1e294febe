"""An event loop in virtual time: where nothing is ready, the clocks go on to the next timer at once."""

from __future__ import annotations

import asyncio
import selectors
import time
from collections.abc import Iterator
from contextlib import contextmanager

MOST_ROUNDS = 5000
"""So often the loop goes round at one time, at most: what waits for a time that is over does so for ever."""
ROUND_S = 1e-9
"""What a round takes. asyncio rings a timer that is due within the resolution of the clock; where no time went by at all, a
task that waits for an instant later by the last bit would be woken again and again."""


class Clocks:
    """The monotonic clock, and the wall clock, which may be set."""

    def __init__(self, monotonic_s: float = 1000.0, wall_s: float = 1_767_225_600.0) -> None:
        self.monotonic_s = monotonic_s
        self._ahead_s = wall_s - monotonic_s

    @property
    def wall_s(self) -> float:
        """The time of day, in s since 1970."""
        return self.monotonic_s + self._ahead_s

    def set_wall(self, by_s: float) -> None:
        """Set the wall clock, forward or back."""
        self._ahead_s += by_s

    def sleep(self, for_s: float) -> None:
        """The machine sleeps: both clocks go on, and nobody does anything meanwhile."""
        self.monotonic_s += for_s

    @contextmanager
    def installed(self) -> Iterator[None]:
        """Put these clocks in the place of the system's."""
        kept = {name: getattr(time, name) for name in ("monotonic", "time", "time_ns")}
        time.monotonic = lambda: self.monotonic_s  # type: ignore[assignment]
        time.time = lambda: self.wall_s  # type: ignore[assignment]
        time.time_ns = lambda: int(self.wall_s * 1e9)  # type: ignore[assignment]
        try:
            yield
        finally:
            for name, former in kept.items():
                setattr(time, name, former)


class _Selector(selectors.DefaultSelector):  # type: ignore[misc,valid-type]
    def __init__(self, clocks: Clocks) -> None:
        super().__init__()
        self._clocks = clocks
        self._idle_rounds = 0

    def select(self, timeout: float | None = None) -> list:
        ready = super().select(0)
        self._idle_rounds += 1
        assert self._idle_rounds < MOST_ROUNDS, f"awake for ever at {self._clocks.monotonic_s} s"
        self._clocks.monotonic_s += ROUND_S
        if not ready and timeout != 0:
            self._idle_rounds = 0
            assert timeout is not None, "nothing will ever happen again"
            self._clocks.monotonic_s += max(0.0, timeout)
        return ready


def loop_with(clocks: Clocks) -> asyncio.SelectorEventLoop:
    """A loop whose time is that of the clocks, which must be installed while it runs."""
    return asyncio.SelectorEventLoop(_Selector(clocks))

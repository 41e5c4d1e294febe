"""Messages that strangers cause, of which there may be any number: so many a minute are told, the rest is counted."""

from __future__ import annotations

import time
from collections.abc import Callable

_WINDOW_S = 60.0


class Sparing:
    """Tells what strangers cause, 20 messages a minute.

    Parameters
    ----------
    tell
        Gets them.
    most
        How many a minute.
    clock
        Reading of a clock that is never set, in s.

    Examples
    --------
    >>> said, now = [], [0.0]
    >>> tell = Sparing(said.append, most=2, clock=lambda: now[0])
    >>> for at in range(5):
    ...     tell(f"refused {at}")
    >>> now[0] = 61.0
    >>> tell("refused 5")
    >>> said
    ['refused 0', 'refused 1', '3 more were refused within a minute', 'refused 5']
    """

    def __init__(self, tell: Callable[[str], None], *, most: int = 20, clock: Callable[[], float] = time.monotonic) -> None:
        self._tell, self._most, self._clock = tell, most, clock
        self._began = clock()
        self._told = self._left_out = 0

    def __call__(self, said: str) -> None:
        """Tell it, or count it."""
        now = self._clock()
        if now - self._began >= _WINDOW_S:
            if self._left_out:
                self._tell(f"{self._left_out} more were refused within a minute")
            self._began, self._told, self._left_out = now, 0, 0
        if self._told < self._most:
            self._told += 1
            self._tell(said)
        else:
            self._left_out += 1

"""Drops that the operator makes itself, as a test: a Poisson process for each line, beside the network's (figure 6.3)."""

from __future__ import annotations

import random
import re
from collections.abc import Iterable

from farlink.errors import ArgumentError

_RATE = re.compile(r"(\d+(?:\.\d+)?)/(\d+(?:\.\d+)?)?(s|min|h|d)")
_UNIT_S = {"s": 1.0, "min": 60.0, "h": 3600.0, "d": 86400.0}


def rate_hz(text: str) -> float:
    """A rate of drops per line, in 1/s.

    Raises
    ------
    ArgumentError
        If it is none.

    Examples
    --------
    >>> round(1 / rate_hz("1/20min")), round(1 / rate_hz("3/h"))
    (1200, 1200)
    """
    found = _RATE.fullmatch(text.replace(" ", ""))
    rate = float(found[1]) / (float(found[2] or 1) * _UNIT_S[found[3]]) if found and float(found[2] or 1) > 0 else 0.0
    if not 0 < rate <= 100:
        raise ArgumentError(f"--rate {text[:40]!r} is no rate of drops", "give drops of a line in a time, for example 1/20min")
    return rate


class Injector:
    """When each line's call is dropped as a test.

    Parameters
    ----------
    rate
        Drops per second of each line that is up.
    lines
        Those that are dropped.
    seed
        Of the draws; each line has a stream of its own.

    Examples
    --------
    >>> injector = Injector(0.1, ["kansas"], seed=1)
    >>> injector.up("kansas", 100.0)
    >>> injector.due(100.0), injector.due(1000.0)
    ([], ['kansas'])
    """

    def __init__(self, rate: float, lines: Iterable[str], seed: int) -> None:
        self.rate = rate
        self._streams = {line: random.Random(f"{seed} {line}") for line in lines}
        self._drops_at: dict[str, float] = {}

    @property
    def lines(self) -> list[str]:
        """Lines that are dropped."""
        return list(self._streams)

    def up(self, line: str, now: float) -> None:
        """The call of a line is up: when it is dropped is drawn."""
        if line in self._streams:
            self._drops_at[line] = now + self._streams[line].expovariate(self.rate)

    def down(self, line: str) -> None:
        """The call of a line is over."""
        self._drops_at.pop(line, None)

    @property
    def next_at(self) -> float | None:
        """When the next drop is due."""
        return min(self._drops_at.values(), default=None)

    def due(self, now: float) -> list[str]:
        """The lines that are dropped now."""
        found = [line for line, at in self._drops_at.items() if at <= now]
        for line in found:
            del self._drops_at[line]
        return found

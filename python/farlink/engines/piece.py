"""A part of a study: some grid points, some runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from numbers import Integral

from farlink.errors import ArgumentError
from farlink.untrusted import printable

# Whole numbers that a double holds.
_LARGEST = 2**53


@dataclass(frozen=True)
class Piece:
    """Which points, and which of their runs.

    Attributes
    ----------
    points
        Their numbers in the grid, ascending; None for all.
    runs
        The runs of each; None for those that the scenario asks for.
    """

    points: tuple[int, ...] | None = None
    runs: range | None = None

    @classmethod
    def asked(cls, points: Sequence[int] | None, first_run: int | None, runs: int | None) -> Piece | None:
        """The piece that arguments name; None for the whole study.

        Raises
        ------
        ArgumentError
            If numbers are not whole, points occur twice, or a first run is given without the number of runs.
        """
        if points is None and first_run is None:
            return None
        span = None
        if first_run is not None:
            if runs is None:
                raise ArgumentError(f"first_run: how many runs from {first_run} on is not given", "give runs=10, for example")
            first = whole("first_run", first_run)
            span = range(first, first + whole("runs", runs))
            if not span:
                raise ArgumentError("runs: 0 runs are nothing to do", "give at least 1")
        return cls(None if points is None else _points(points), span)

    def has_run(self, run: int) -> bool:
        """Whether it has a run that there is only once, as of engines without random numbers."""
        return self.runs is None or run in self.runs


def whole(name: str, value: int) -> int:
    """A whole number of at least 0.

    Raises
    ------
    ArgumentError
        If it is none.

    Examples
    --------
    >>> whole("first_run", 40)
    40
    """
    if isinstance(value, bool) or not isinstance(value, Integral) or not 0 <= value < _LARGEST:
        raise ArgumentError(
            f"{name}: {printable(repr(value), 60)} is not a whole number of at least 0", "points and runs count from 0"
        )
    return int(value)


def _points(points: Sequence[int]) -> tuple[int, ...]:
    try:
        numbers = sorted(whole("points", number) for number in points)
    except TypeError as error:
        raise ArgumentError(
            f"points: {printable(repr(points), 60)} is no list of numbers", "for example points=[3, 4]"
        ) from error
    if not numbers:
        raise ArgumentError("points: no point is chosen", "give at least one, counted from 0, or leave it out for all")
    for one, other in pairwise(numbers):
        if one == other:
            raise ArgumentError(f"points: {one} occurs twice", "give each point once")
    return tuple(numbers)

"""Ranges of the parameters of the closed forms."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from farlink.arguments import numbers, refused
from farlink.meanings import Range

Floats = NDArray[np.float64]
# Larger ones are not counted exactly.
_MOST_WHOLE = 2.0**53

IN_0_TO_1 = Range("in [0, 1]", (("be from 0 to 1", lambda array: (array >= 0) & (array <= 1)),))
IN_0_TO_BELOW_1 = Range("in [0, 1)", (("be from 0 to below 1", lambda array: (array >= 0) & (array < 1)),))
POSITIVE = Range("positive", (("be positive", lambda array: array > 0),))


def from_on(least: float) -> Range:
    """Numbers of at least `least`."""
    words = "not negative" if least == 0 else f"at least {least:g}"
    return Range(words, ((f"be at least {least:g}", lambda array: array >= least),))


def whole_from(least: int) -> Range:
    """Whole numbers of at least `least`."""
    whole_rule = f"be a whole number of at least {least}"
    return Range(
        f"whole, {from_on(least).words}",
        (
            (whole_rule, lambda array: (array >= least) & (array == np.floor(array)) & np.isfinite(array)),
            (f"be at most {_MOST_WHOLE:g}", lambda array: array <= _MOST_WHOLE),
        ),
    )


def floats(value: ArrayLike) -> Floats:
    """A parameter whose annotation has its range, as an array."""
    return np.asarray(value, dtype=np.float64)


def whole_numbers(value: ArrayLike) -> NDArray[np.int64]:
    """A parameter whose annotation has its range, as an array of whole numbers."""
    return floats(value).astype(np.int64)


def within_0_and_1(**named: ArrayLike) -> Floats:
    """The value as an array, refused unless it is from 0 to 1."""
    return _within(IN_0_TO_1, named)


def from_0_to_below_1(**named: ArrayLike) -> Floats:
    """The value as an array, refused unless it is from 0 to below 1."""
    return _within(IN_0_TO_BELOW_1, named)


def positive(**named: ArrayLike) -> Floats:
    """The value as an array, refused unless it is above 0."""
    return _within(POSITIVE, named)


def at_least(least: float, **named: ArrayLike) -> Floats:
    """The value as an array, refused if it is below `least`."""
    return _within(from_on(least), named)


def whole(least: int, **named: ArrayLike) -> NDArray[np.int64]:
    """The value as an array of whole numbers, refused if it is not whole or below `least`."""
    return _within(whole_from(least), named).astype(np.int64)


def _within(allowed: Range, named: dict[str, ArrayLike]) -> Floats:
    ((name, value),) = named.items()
    array = floats(numbers(name, value))
    broken = allowed.broken_rule(array)
    if broken is not None:
        raise refused(name, broken, value)
    return array

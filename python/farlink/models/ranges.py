"""What the parameters of the closed forms may be."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from farlink.arguments import numbers, refused

Floats = NDArray[np.float64]
# Larger ones are not counted exactly.
_MOST_WHOLE = 2.0**53


def within_0_and_1(**named: ArrayLike) -> Floats:
    """The value as an array, refused unless it is from 0 to 1."""
    ((name, value),) = named.items()
    array = np.asarray(numbers(name, value), dtype=np.float64)
    if not np.all((array >= 0) & (array <= 1)):
        raise refused(name, "be from 0 to 1", value)
    return array


def at_least(least: float, **named: ArrayLike) -> Floats:
    """The value as an array, refused if it is below `least`."""
    ((name, value),) = named.items()
    array = np.asarray(numbers(name, value), dtype=np.float64)
    if not np.all(array >= least):
        raise refused(name, f"be at least {least:g}", value)
    return array


def positive(**named: ArrayLike) -> Floats:
    """The value as an array, refused unless it is above 0."""
    ((name, value),) = named.items()
    array = np.asarray(numbers(name, value), dtype=np.float64)
    if not np.all(array > 0):
        raise refused(name, "be positive", value)
    return array


def from_0_to_below_1(**named: ArrayLike) -> Floats:
    """The value as an array, refused unless it is from 0 to below 1."""
    ((name, value),) = named.items()
    array = np.asarray(numbers(name, value), dtype=np.float64)
    if not np.all((array >= 0) & (array < 1)):
        raise refused(name, "be from 0 to below 1", value)
    return array


def whole(least: int, **named: ArrayLike) -> NDArray[np.int64]:
    """The value as an array of whole numbers, refused if it is not whole or below `least`."""
    ((name, value),) = named.items()
    array = np.asarray(numbers(name, value), dtype=np.float64)
    if not np.all((array >= least) & (array == np.floor(array)) & np.isfinite(array)):
        raise refused(name, f"be a whole number of at least {least}", value)
    if not np.all(array <= _MOST_WHOLE):
        raise refused(name, f"be at most {_MOST_WHOLE:g}", value)
    return array.astype(np.int64)

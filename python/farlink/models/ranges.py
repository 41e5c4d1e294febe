"""What the parameters of the closed forms may be."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]


def within_0_and_1(**named: ArrayLike) -> Floats:
    """The value as an array, refused unless it is from 0 to 1."""
    ((name, value),) = named.items()
    array = np.asarray(value, dtype=np.float64)
    if not np.all((array >= 0) & (array <= 1)):
        raise ValueError(f"{name} must be from 0 to 1, not {value!r}")
    return array


def at_least(least: float, **named: ArrayLike) -> Floats:
    """The value as an array, refused if it is below `least`."""
    ((name, value),) = named.items()
    array = np.asarray(value, dtype=np.float64)
    if not np.all(array >= least):
        raise ValueError(f"{name} must be at least {least:g}, not {value!r}")
    return array


def positive(**named: ArrayLike) -> Floats:
    """The value as an array, refused unless it is above 0."""
    ((name, value),) = named.items()
    array = np.asarray(value, dtype=np.float64)
    if not np.all(array > 0):
        raise ValueError(f"{name} must be positive, not {value!r}")
    return array


def from_0_to_below_1(**named: ArrayLike) -> Floats:
    """The value as an array, refused unless it is from 0 to below 1."""
    ((name, value),) = named.items()
    array = np.asarray(value, dtype=np.float64)
    if not np.all((array >= 0) & (array < 1)):
        raise ValueError(f"{name} must be from 0 to below 1, not {value!r}")
    return array


def whole(least: int, **named: ArrayLike) -> NDArray[np.int64]:
    """The value as an array of whole numbers, refused if it is not whole or below `least`."""
    ((name, value),) = named.items()
    array = np.asarray(value, dtype=np.float64)
    if not np.all((array >= least) & (array == np.floor(array)) & np.isfinite(array)):
        raise ValueError(f"{name} must be a whole number of at least {least}, not {value!r}")
    return array.astype(np.int64)

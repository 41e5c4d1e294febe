"""Ascending whole numbers, such as positions of wrong bits: as NumPy's sets, but without hashing millions of them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Whole = NDArray[np.int64]


def distinct(values: Whole) -> Whole:
    """Each of some ascending numbers once.

    Examples
    --------
    >>> distinct(np.array([1, 1, 4, 7, 7, 7]))
    array([1, 4, 7])
    """
    return values[is_first(values)]


def is_first(values: Whole) -> NDArray[np.bool_]:
    """Whether each of some ascending numbers differs from the one before."""
    return np.concatenate([np.ones(min(1, values.size), dtype=bool), values[1:] != values[:-1]])


def merged(some: Whole, others: Whole) -> Whole:
    """All numbers of two ascending lists, each once.

    Examples
    --------
    >>> merged(np.array([1, 4]), np.array([2, 4, 9]))
    array([1, 2, 4, 9])
    """
    if others.size == 0 or some.size == 0:
        return distinct(some if others.size == 0 else others)
    # Runs that ascend are merged, not sorted.
    return distinct(np.sort(np.concatenate([some, others]), kind="stable"))


def occurrences(values: Whole) -> tuple[Whole, Whole]:
    """Each of some ascending numbers once, and how often it is there.

    Examples
    --------
    >>> occurrences(np.array([1, 1, 4, 7, 7, 7]))
    (array([1, 4, 7]), array([2, 1, 3]))
    """
    begins = np.flatnonzero(is_first(values))
    return values[begins], np.diff(np.append(begins, values.size))

"""Ranges of numbers that several parts take."""

from __future__ import annotations

from numbers import Integral

from farlink.errors import ArgumentError, ScenarioError

_MOST_THREADS = 1024
# Whole numbers of a scenario; a double holds all of them.
_LARGEST_SEED = 10**15


def check_threads(threads: int | None) -> None:
    """Refuse a number of threads that no machine has use for.

    Raises
    ------
    ScenarioError
        If it is below 1 or above 1024.

    Examples
    --------
    >>> check_threads(None)
    >>> check_threads(100_000)
    Traceback (most recent call last):
        ...
    farlink.errors.ScenarioError: threads: 100000 is out of range
    """
    if threads is not None and (isinstance(threads, bool) or not isinstance(threads, Integral)):
        raise ArgumentError(f"threads: {threads!r} is not a whole number", "give a whole number, or leave it out")
    if threads is not None and not 1 <= threads <= _MOST_THREADS:
        remedy = f"give 1 to {_MOST_THREADS}, or leave it out to use every core"
        raise ScenarioError(f"threads: {threads} is out of range", remedy)


def check_seed(seed: int) -> None:
    """Refuse a seed that a scenario could not have.

    Raises
    ------
    ScenarioError
        If it is below 0 or above 1e15.

    Examples
    --------
    >>> check_seed(-1)
    Traceback (most recent call last):
        ...
    farlink.errors.ScenarioError: seed: -1 is out of range
    """
    if not 0 <= seed <= _LARGEST_SEED:
        raise ScenarioError(f"seed: {seed} is out of range", "give a whole number from 0 to 1e15")

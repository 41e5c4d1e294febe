"""Columns of a table as the extension gives them: NumPy is imported when somebody asks for an array."""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterator, Mapping
from typing import Any


class Columns(Mapping[str, Any]):
    """Columns by name: arrays of NumPy (``uint64`` and ``float64``), and lists of texts.

    A table that is printed needs no arrays, and the import of NumPy takes longer than all else that a short run imports.

    Examples
    --------
    >>> columns = Columns({"run": array("Q", [0, 1]), "flow": ["bulk", "all"]})
    >>> columns["run"]
    array([0, 1], dtype=uint64)
    >>> columns.listed("run")
    [0, 1]
    """

    def __init__(self, held: Mapping[str, list[str] | array[int] | array[float]]) -> None:
        self._held: dict[str, Any] = dict(held)

    def __getitem__(self, name: str) -> Any:
        values = self._held[name]
        if not isinstance(values, array):
            return values
        import numpy as np

        # The array has the memory of the column: nothing is copied.
        whole = self._held[name] = np.asarray(values, dtype=np.uint64 if values.typecode == "Q" else np.float64)
        return whole

    def __iter__(self) -> Iterator[str]:
        return iter(self._held)

    def __len__(self) -> int:
        return len(self._held)

    def listed(self, name: str) -> list[Any]:
        """A column as a list of Python's values."""
        return _listed(self._held[name])


def plain(columns: Mapping[str, Any], name: str) -> list[Any]:
    """A column as Python's values, None where it is not a number (NaN).

    Examples
    --------
    >>> plain({"delay_s": [0.5, math.nan]}, "delay_s")
    [0.5, None]
    """
    values = columns.listed(name) if isinstance(columns, Columns) else _listed(columns[name])
    return [None if isinstance(value, float) and math.isnan(value) else value for value in values]


def _listed(values: Any) -> list[Any]:
    return list(values.tolist() if hasattr(values, "tolist") else values)

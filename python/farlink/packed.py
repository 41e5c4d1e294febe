"""Columns in few bytes, for sending them to another process: nothing is lost, not a bit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

# How a column is packed: as it is; one value for all rows; different values and which of them each row has.
_PLAIN, _SAME, _FEW = 0, 1, 2


def pack(columns: Mapping[str, Any]) -> dict[str, tuple[Any, ...]]:
    """Columns in another form: one value where all rows have the same, names once.

    Examples
    --------
    >>> packed = pack({"run": np.arange(3), "flow": ["bulk", "all", "bulk"], "timeouts": np.full(3, np.nan)})
    >>> {name: values.tolist() if hasattr(values, "tolist") else values for name, values in unpack(packed).items()}
    {'run': [0, 1, 2], 'flow': ['bulk', 'all', 'bulk'], 'timeouts': [nan, nan, nan]}
    """
    return {name: _packed(values) for name, values in columns.items()}


def unpack(packed: Mapping[str, tuple[Any, ...]]) -> dict[str, Any]:
    """The columns that were packed."""
    return {name: _unpacked(*values) for name, values in packed.items()}


def _packed(values: Any) -> tuple[Any, ...]:
    if isinstance(values, list) and all(isinstance(value, str) for value in values):
        names = list(dict.fromkeys(values))
        place = {name: number for number, name in enumerate(names)}
        width = np.min_scalar_type(max(len(names) - 1, 0))
        return _FEW, names, _packed(np.array([place[value] for value in values], dtype=width))
    if isinstance(values, np.ndarray) and values.dtype.kind in "uif" and values.size > 1:
        # Bits and not values are compared: 0.0 and -0.0 differ, a NaN is equal to itself.
        bits = np.ascontiguousarray(values).view(f"u{values.dtype.itemsize}")
        if (bits == bits[0]).all():
            return _SAME, values[:1].copy(), values.size
    return _PLAIN, values


def _unpacked(how: int, *parts: Any) -> Any:
    if how == _SAME:
        value, size = parts
        return np.repeat(value, size)
    if how == _FEW:
        names, places = parts
        return [names[place] for place in _unpacked(*places).tolist()]
    return parts[0]

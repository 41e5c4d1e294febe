"""Values of properties: what has another type than ModemManager documents, counts as missing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from farlink.untrusted import printable


def text(table: Any, key: str | int, most: int = 120) -> str:
    """A text on one line; empty if there is none.

    Examples
    --------
    >>> text({"Model": "E1750"}, "Model"), text({"Model": 7}, "Model"), text(None, "Model")
    ('E1750', '', '')
    """
    value = table.get(key) if isinstance(table, Mapping) else None
    return printable(value, most) if isinstance(value, str) else ""


def whole(table: Any, key: str | int) -> int | None:
    """A whole number; None if there is none.

    Examples
    --------
    >>> whole({"State": 8}, "State"), whole({"State": True}, "State"), whole({}, "State")
    (8, None, None)
    """
    value = table.get(key) if isinstance(table, Mapping) else None
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def number(table: Any, key: str) -> float | None:
    """A finite number; None if there is none."""
    value = table.get(key) if isinstance(table, Mapping) else None
    if not isinstance(value, int | float) or isinstance(value, bool):
        return None
    return float(value) if abs(value) < 1e300 else None


def path(table: Any, key: str) -> str:
    """The path of an object; empty if there is none: ``/`` stands for nothing."""
    value = text(table, key, 400)
    return value if value.startswith("/") and value != "/" else ""

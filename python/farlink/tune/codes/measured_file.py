"""Measured points of a modem from a CSV file."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from farlink.errors import TuneError
from farlink.untrusted import read_text

_NUMBERS = ("cn0_dbhz", "rate_bps", "ber", "loss", "symbol_rate_hz")
_TEXTS = ("modulation", "code")
_ALWAYS = ("cn0_dbhz", "rate_bps", "ber")
_NONE_SEEN = "without an error in n bits the upper end of the 95 % interval is 3 / n: give that"


def read_points(path: Path) -> list[dict[str, Any]]:
    """The points of a CSV file: names in its first line, lines that begin with # left out.

    Raises
    ------
    TuneError
        If it cannot be read, lacks a column, has an unknown one, or a cell is not a number.
    """
    remedy = f"the first line names the columns: {','.join(_ALWAYS)}, and if needed loss, modulation, symbol_rate_hz, code"
    try:
        text = read_text(path, TuneError)
    except OSError as error:
        raise TuneError(f"cannot read measured points {path}: {error.strerror}", "give the path of a CSV file") from error
    except UnicodeDecodeError as error:
        raise TuneError(f"{path} is not a text file in UTF-8", "save it as CSV in UTF-8") from error
    numbered = [(at, line) for at, line in enumerate(text.lstrip("\ufeff").splitlines(), start=1) if _counts(line)]
    if not numbered:
        raise TuneError(f"{path}: there is no line in it", remedy)
    try:
        rows = list(csv.reader(io.StringIO("\n".join(line for _, line in numbered)), skipinitialspace=True, strict=True))
    except csv.Error as error:
        raise TuneError(f"{path}: {error}", remedy) from error
    if len(rows) != len(numbered):
        raise TuneError(f"{path}: a cell has more than one line", "keep each point on a line")
    head = [name.strip() for name in rows[0]]
    unknown = [name for name in head if name not in (*_NUMBERS, *_TEXTS)]
    missing = [name for name in _ALWAYS if name not in head]
    if unknown or missing or len(set(head)) < len(head):
        twice = next((name for name in head if head.count(name) > 1), "")
        what = f"no column is called {unknown[0]!r}" if unknown else f"column {missing[0]!r} is missing" if missing else ""
        raise TuneError(f"{path}: {what or f'column {twice!r} occurs twice'}", remedy)
    if len(rows) == 1:
        raise TuneError(f"{path}: there is no point in it", "give at least one line below the names")
    return [_point(path, number, head, row) for (number, _), row in zip(numbered[1:], rows[1:], strict=True)]


def _counts(line: str) -> bool:
    return bool(line.strip()) and not line.lstrip().startswith("#")


def _point(path: Path, number: int, head: Sequence[str], row: Sequence[str]) -> dict[str, Any]:
    if len(row) != len(head):
        raise TuneError(f"{path}: line {number} has {len(row)} values, not {len(head)}", "give one for each column")
    found: dict[str, Any] = {}
    for name, cell in zip(head, row, strict=True):
        text = cell.strip()
        if not text:
            if name in _ALWAYS:
                raise TuneError(f"{path}: line {number}: {name} is empty", "give a number, or leave the line out")
            continue
        if name in _TEXTS:
            found[name] = text
            continue
        try:
            found[name] = float(text)
        except ValueError as error:
            raise TuneError(f"{path}: line {number}: {name} is {text!r}", "give a number, with a point for decimals") from error
    _check(path, number, found)
    return found


def _check(path: Path, number: int, point: Mapping[str, Any]) -> None:
    """Refuse a value outside its range by the line, which the check of the description does not know."""
    where = f"{path}: line {number}"
    for name in _NUMBERS:
        value = point.get(name, 1.0)
        if not math.isfinite(value):
            raise TuneError(f"{where}: {name} is {value}", "give a finite number")
        if name in ("rate_bps", "symbol_rate_hz") and value <= 0:
            raise TuneError(f"{where}: {name} is {value:g}", "it is above 0")
    for name, most in (("ber", 0.5), ("loss", 1.0)):
        value = point.get(name, most)
        if not 0 < value <= most:
            remedy = _NONE_SEEN if value == 0 else f"it is a share: above 0, and at most {most:g}"
            raise TuneError(f"{where}: {name} is {value:g}", remedy)

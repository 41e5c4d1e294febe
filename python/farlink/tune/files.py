"""Look-up tables as files: CSV, JSON, TOML; written whole or not at all."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from farlink.errors import TuneError
from farlink.extras import require
from farlink.output import whole_file
from farlink.tune.row import CANDIDATE, NO_TRANSMISSION, OK, Row
from farlink.untrusted import read_text, toml_tables

if TYPE_CHECKING:
    from farlink.tune.table import Table

_COLUMNS = [field.name for field in fields(Row)]
_TEXT = ("status", "modulation", "family", "code", "access", "reason")
_WHOLE = ("flows", "step", "segment_bytes")
_ALWAYS = ("share", "flows", "cn0_dbhz", "status", "step")
_REMEDY = "make a table with: farlink tune STUDY.toml -o table.csv"


def text(table: Table, suffix: str) -> str:
    """A table as text.

    Parameters
    ----------
    table
        The table.
    suffix
        ``".csv"``, which has the rows only, ``".json"`` or ``".toml"``.

    Raises
    ------
    TuneError
        If there is no such form.
    """
    return _form(suffix)(table)


def write(table: Table, path: str | Path) -> None:
    """Write a table in the form that the file's suffix names.

    Raises
    ------
    TuneError
        If there is no such form.
    OutputError
        If it cannot be written.
    """
    path = Path(path)
    content = text(table, path.suffix)
    with whole_file(path) as temporary:
        temporary.write_text(content, encoding="utf-8")


def check_suffix(path: Path) -> None:
    """Refuse a file of an unknown format before the work starts.

    Raises
    ------
    TuneError
        It names those that there are.
    """
    _form(path.suffix)


def read_rows(path: str | Path) -> list[Row]:
    """The rows of a table.

    Parameters
    ----------
    path
        A file that `write` has written.

    Raises
    ------
    TuneError
        If it cannot be read, or is no look-up table.
    """
    path = Path(path)
    _form(path.suffix)
    try:
        content = read_text(path, TuneError)
    except OSError as error:
        raise TuneError(f"cannot read {path}: {error.strerror}", _REMEDY) from error
    except UnicodeDecodeError as error:
        raise TuneError(f"{path} is not a text file in UTF-8", _REMEDY) from error
    try:
        found = _READ[path.suffix](content)
    except (ValueError, KeyError, TypeError, RecursionError, OverflowError, csv.Error) as error:
        raise TuneError(f"{path} is no look-up table: {error}", _REMEDY) from error
    if not found:
        raise TuneError(f"{path}: there is no row in it", _REMEDY)
    return [_row(path, number, one) for number, one in enumerate(found, start=1)]


def _csv(table: Table) -> str:
    page = io.StringIO()
    rows = table.to_dict()["rows"]
    writer = csv.DictWriter(page, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    for row in rows:
        writer.writerow({name: "" if value is None else value for name, value in row.items()})
    return page.getvalue()


def _json(table: Table) -> str:
    return json.dumps(table.to_dict(), allow_nan=False, indent=1, ensure_ascii=False) + "\n"


def _toml(table: Table) -> str:
    content: str = require("tomli_w", "writing TOML").dumps(_without_none(table.to_dict()))
    return content


def _without_none(value: Any) -> Any:
    """TOML has no null: such keys are left out."""
    if isinstance(value, Mapping):
        return {name: _without_none(one) for name, one in value.items() if one is not None}
    return [_without_none(one) for one in value] if isinstance(value, list | tuple) else value


def _form(suffix: str) -> Callable[[Table], str]:
    if suffix not in _WRITE:
        raise TuneError(f"no look-up table has the suffix {suffix!r}", f"use one of {', '.join(_WRITE)}")
    return _WRITE[suffix]


def _csv_rows(content: str) -> list[dict[str, Any]]:
    found = []
    for line in csv.DictReader(io.StringIO(content)):
        row: dict[str, Any] = {}
        for name, value in line.items():
            if name is None or value is None:
                raise ValueError("a line has another number of values than the first")
            if name in _TEXT:
                row[name] = value if value or name == "reason" else None
            else:
                row[name] = None if value == "" else int(value) if name in _WHOLE else float(value)
        found.append(row)
    return found


def _row(path: Path, number: int, data: Any) -> Row:
    """A row, refused if it lacks what the reader needs."""
    if not isinstance(data, Mapping):
        raise TuneError(f"{path}: row {number} is {data!r}", _REMEDY)
    unknown = [name for name in data if name not in _COLUMNS]
    missing = [name for name in _ALWAYS if data.get(name) is None]
    if unknown or missing:
        what = f"has no column {unknown[0]!r} in this version" if unknown else f"lacks {missing[0]!r}"
        raise TuneError(f"{path}: row {number} {what}", _REMEDY)
    for name, value in data.items():
        is_right = isinstance(value, str) if name in _TEXT else isinstance(value, int | float) and not isinstance(value, bool)
        if value is not None and not is_right:
            raise TuneError(f"{path}: row {number}: {name} is {value!r}", _REMEDY)
    if data["status"] not in (statuses := (OK, NO_TRANSMISSION, CANDIDATE)):
        known = ", ".join(repr(one) for one in statuses)
        raise TuneError(f"{path}: row {number}: status is {data['status']!r}", f"it is one of {known}")
    return Row(**{name: value for name, value in data.items() if value is not None})


_WRITE: dict[str, Callable[[Table], str]] = {".csv": _csv, ".json": _json, ".toml": _toml}
_READ: dict[str, Callable[[str], list[dict[str, Any]]]] = {
    ".csv": _csv_rows,
    ".json": lambda content: list(json.loads(content)["rows"]),
    ".toml": lambda content: list(toml_tables(content)["rows"]),
}

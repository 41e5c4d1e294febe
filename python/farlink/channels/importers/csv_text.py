"""Columns of numbers as text: CSV or another separator, with or without a header.

Lines before the data that begin with ``#`` or ``%`` are comments, the last of them perhaps the header. Cells that are empty or
``nan`` are missing. With ``;`` between the cells a comma is a decimal point. Times are numbers, or dates and times as of ISO
8601.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from farlink.channels.importers.power_series import is_time, named_column, seconds_per_unit, time_column
from farlink.channels.importers.recording import Recording
from farlink.errors import TraceError
from farlink.untrusted import lines_of, printable

_SEPARATORS = {"comma": ",", "semicolon": ";", "tab": "\t", "space": None}
_FIRST, _LAST = np.datetime64("1678-01-01", "us"), np.datetime64("2262-01-01", "us")
_MISSING = ("", "nan", "na", "n/a", "null", "none", "-")


@dataclass(frozen=True)
class Text:
    """The lines of data, and how to cut them.

    Attributes
    ----------
    names
        Names of the columns; numbers from 1 if there is no header.
    lines, first_line
        The rows, and the number of the first of them in the file.
    separator
        Separator of cells; None is any white space.
    """

    names: list[str]
    lines: list[str]
    first_line: int
    separator: str | None


def names_in(data: bytes, is_value: Callable[[str], bool]) -> list[str]:
    """Names in the header of a text; none if it begins with numbers, or is no text.

    Parameters
    ----------
    data
        The beginning of a file.
    is_value
        Whether a name is that of a measured quantity, which distinguishes a header in a comment from other comments.
    """
    if b"\0" in data or not data.strip():
        return []
    lines = lines_of(data.decode("utf-8-sig", "replace"))
    start = _first_of_data(lines)
    header = lines[start] if start < len(lines) else ""
    cells = _commented(lines, start, header, is_value) or _cells(header, _sniffed(header))
    return cells if all(_number(name) is None for name in cells) else []


def read(recording: Recording, is_value: Callable[[str], bool]) -> Text:
    """The lines of a text, and the names of its columns.

    Parameters
    ----------
    recording
        The measured file.
    is_value
        See `names_in`.

    Raises
    ------
    TraceError
        If it is empty, has a header and no rows, or the same name twice.
    """
    lines = lines_of(recording.text())
    start = _first_of_data(lines)
    while lines and not lines[-1].strip():
        lines.pop()
    if start >= len(lines):
        raise TraceError(f"{recording.where}: the file is empty", "fetch or record it again")
    separator = _separator(recording, lines[start])
    cells = _cells(lines[start], separator)
    has_header = not any(_number(cell) is not None or _stamp_ns(cell) is not None for cell in cells)
    commented = [] if has_header else _commented(lines, start, lines[start], is_value)
    names = cells if has_header else commented or [str(number + 1) for number in range(len(cells))]
    if len(set(names)) < len(names):
        raise TraceError(f"{recording.where}: two columns have the same name", "give every column a name of its own")
    if names == ["1", "2"] and recording.hints.time_column is None and recording.hints.sample_rate_hz is None:
        # Two columns without a header: the first is the time.
        names = ["time", "2"]
    start += has_header
    if start >= len(lines):
        raise TraceError(f"{recording.where}: a header and no rows", "fetch or record it again")
    return Text(names, lines[start:], start + 1, separator)


def _first_of_data(lines: list[str]) -> int:
    start = 0
    while start < len(lines) and (not lines[start].strip() or lines[start][0] in "#%"):
        start += 1
    return start


def _commented(lines: list[str], start: int, data: str, is_value: Callable[[str], bool]) -> list[str]:
    """Names in the last comment before the data, if there are as many as cells."""
    comment = next((line for line in reversed(lines[:start]) if line.strip()), "").lstrip("#% ")
    cells = _cells(comment, _sniffed(data))
    return cells if len(cells) == len(_cells(data, _sniffed(data))) and any(is_value(name) for name in cells) else []


def _separator(recording: Recording, line: str) -> str | None:
    said = recording.hints.separator
    if said is None:
        return _sniffed(line)
    if said in _SEPARATORS:
        return _SEPARATORS[said]
    if len(said) == 1:
        return said if said != " " else None
    raise TraceError(f"separator {said!r}", f"give one character, or one of: {', '.join(_SEPARATORS)}")


def _sniffed(line: str) -> str | None:
    return next((mark for mark in "\t;," if mark in line), None)


def _cells(line: str, separator: str | None) -> list[str]:
    return [cell.strip().strip('"') for cell in line.split(separator)]


def series(recording: Recording, is_value: Callable[[str], bool]) -> tuple[str, NDArray[np.float64], NDArray[np.float64]]:
    """The column of values of a text, and its times.

    Parameters
    ----------
    recording
        The measured file, and what the user says of it: ``column``, ``time_column`` or ``sample_rate_hz``.
    is_value
        Whether a name is that of the wanted quantity.

    Returns
    -------
    tuple
        Name of the column, times in s, and values, NaN where missing; both of one entry per row.

    Raises
    ------
    TraceError
        If the column is not known, there are no times, or a cell is not a number; names the line.
    """
    hints, where = recording.hints, recording.where
    text = read(recording, is_value)
    if hints.column is not None:
        name = named_column(hints.column, "--column", text.names, where)
    else:
        found = [name for name in text.names if is_value(name)]
        if len(found) != 1:
            what = f"{len(found)} columns of it" if found else "no column of it"
            raise TraceError(f"{where}: {what} among {', '.join(text.names[:8])}", "say which it is with --column NAME")
        name = found[0]
    values = column(recording, text, name)
    if hints.sample_rate_hz is not None:
        if not 0 < hints.sample_rate_hz < np.inf:
            raise TraceError(f"a sampling rate of {hints.sample_rate_hz:g} Hz", "it is above 0 Hz")
        return name, np.arange(values.size) / hints.sample_rate_hz, values
    times = time_column(hints, text.names, where)
    if times is None:
        raise TraceError(f"{where}: no times", "give the column with --time-column NAME, or --sample-rate-hz HZ")
    return name, column(recording, text, times) * seconds_per_unit(times), values


def column(recording: Recording, text: Text, name: str) -> NDArray[np.float64]:
    """The numbers of a column; what is missing is NaN, dates are seconds since the first.

    Parameters
    ----------
    recording
        The measured file, for messages.
    text
        Its lines.
    name
        Of the column.

    Raises
    ------
    TraceError
        If a cell is not a number, naming its line.
    """
    index = text.names.index(name)
    try:
        if text.separator == ";" or not all(text.lines):
            raise ValueError  # commas may be decimal points; empty lines are missing samples, which NumPy would skip
        return np.loadtxt(text.lines, delimiter=text.separator, usecols=index, comments=None, ndmin=1)
    except ValueError:
        return _column_by_line(recording, text, index, name)


def _column_by_line(recording: Recording, text: Text, index: int, name: str) -> NDArray[np.float64]:
    """The same for cells that are missing, dates, or numbers with a decimal comma; names the first other line."""
    values = np.empty(len(text.lines))
    reads_dates = is_time(name) or name == recording.hints.time_column
    first_ns: int | None = None
    for number, line in enumerate(text.lines):
        cells = _cells(line, text.separator) or [""]
        where = f"{recording.where}, line {text.first_line + number}"
        if len(cells) != len(text.names):
            raise TraceError(
                f"{where}: {len(cells)} fields instead of {len(text.names)}",
                "complete or remove that line; the file may be truncated",
            )
        cell = cells[index].replace(",", ".") if text.separator == ";" else cells[index]
        value = float("nan") if cell.lower() in _MISSING else _number(cell)
        stamp_ns = _stamp_ns(cell) if value is None and reads_dates else None
        if stamp_ns is not None:
            first_ns = stamp_ns if first_ns is None else first_ns
            value = (stamp_ns - first_ns) * 1e-9
        if value is None:
            raise TraceError(
                f"{where}: {printable(name, 40)} is {printable(cell, 40)!r}, not a number",
                "complete or remove that line, or say --separator",
            )
        values[number] = value
    return values


def _number(cell: str) -> float | None:
    try:
        return float(cell)
    except ValueError:
        return None


def _stamp_ns(cell: str) -> int | None:
    """Nanoseconds since 1970 of a date and time."""
    if not 10 <= len(cell) <= 40 or cell[4:5] != "-":
        return None
    try:
        moment = np.datetime64(cell.removesuffix("Z"), "us")
    except (ValueError, OverflowError):
        return None
    # Nanoseconds of 64 bits hold the years 1678 to 2261, and wrap beyond.
    if not _FIRST <= moment <= _LAST:
        return None
    return int(np.datetime64(cell.removesuffix("Z"), "ns").astype(np.int64))

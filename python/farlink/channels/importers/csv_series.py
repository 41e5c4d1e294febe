"""CSV series of one's own: a header line with ``time_s`` and ``delay_s`` or ``rate_bps``, or with ``lost``.

The value of a row holds until the time of the next; the last as long as the median row. ``lost`` is 0 or 1 for each frame,
in the order of sending.
"""

from __future__ import annotations

import csv
import math
from array import array
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from farlink.channels.importers.clock import MOST_SECONDS
from farlink.channels.importers.recording import Recording
from farlink.channels.trace import Trace
from farlink.errors import TraceError
from farlink.untrusted import printable

NAME = "csv"
KINDS = ("delay", "rate", "packet-loss")
DESCRIPTION = "CSV with a header: time_s and delay_s, time_s and rate_bps, or lost (0 or 1 per frame)"

_SERIES = {"delay_s": "delay", "rate_bps": "rate"}


def recognises(recording: Recording) -> bool:
    """Whether its first line names one of the columns."""
    first = recording.data[:1000].removeprefix(b"\xef\xbb\xbf").split(b"\n", 1)[0].decode("utf-8", "replace")
    columns = {name.strip() for name in first.split(",")}
    return bool(columns & {"lost", *_SERIES})


def trace(recording: Recording) -> Trace:
    """The trace in a recording.

    Raises
    ------
    TraceError
        If a column is missing, a value is not a number or out of range, or time goes back; names the line.
    """
    columns, lines = _columns(recording)
    meta: dict[str, str | float] = {"title": recording.name, "source": recording.name}
    if "lost" in columns and not set(_SERIES) & set(columns):
        lost = columns["lost"]
        _refuse(recording, lines, (lost != 0) & (lost != 1), lost, "lost is 0 or 1")
        return Trace("packet-loss", {"lost": lost}, meta)
    named = [name for name in _SERIES if name in columns]
    if len(named) != 1 or "time_s" not in columns:
        raise TraceError(
            f"{recording.where}: columns {', '.join(columns) or 'of other names'}",
            "needed: time_s and one of delay_s, rate_bps; or lost",
        )
    name = named[0]
    time_s, values = columns["time_s"], columns[name]
    _refuse(recording, lines, values < 0, values, f"{name} is at least 0")
    steps = np.diff(time_s)
    _refuse(recording, lines, np.concatenate(([False], steps <= 0)), time_s, "time_s ascends from line to line")
    time_s = time_s - time_s[0]
    meta["duration_s"] = float(time_s[-1] + (np.median(steps) if steps.size else 1.0))
    return Trace(_SERIES[name], {"time_s": time_s, name: values}, meta)


def _columns(recording: Recording) -> tuple[dict[str, NDArray[np.float64]], NDArray[np.int64]]:
    """The columns by name, and the line of each row."""
    reader = csv.reader(_lines(recording.text()))
    try:
        header = [name.strip() for name in next(reader, [])]
        if not header:
            raise TraceError(f"{recording.where}: the file is empty", "fetch or record it again")
        wanted = {name: index for index, name in enumerate(header) if name in ("time_s", "lost", *_SERIES)}
        # Numbers as they come: the cells of a long file would take many times its own length.
        columns = {name: array("d") for name in wanted}
        lines = array("q")
        for row in reader:
            if not row:
                continue
            if len(row) != len(header):
                raise TraceError(
                    f"{recording.where}, line {reader.line_num}: {len(row)} fields instead of {len(header)}",
                    "complete or remove that line; the file may be truncated",
                )
            lines.append(reader.line_num)
            for name, index in wanted.items():
                columns[name].append(_number(recording, row[index], name, reader.line_num))
    except csv.Error as error:
        where = f"{recording.where}, line {reader.line_num}"
        raise TraceError(f"{where}: {error}", "check that it is the measured file itself") from error
    if not lines:
        raise TraceError(f"{recording.where}: a header and no rows", "fetch or record it again")
    return {name: np.array(values) for name, values in columns.items()}, np.array(lines)


def _lines(text: str) -> Iterator[str]:
    """The lines of a text with their ends, one after the other."""
    at = 0
    while at < len(text):
        end = text.find("\n", at) + 1 or len(text)
        yield text[at:end]
        at = end


def _number(recording: Recording, cell: str, name: str, line: int) -> float:
    try:
        value = float(cell)
    except ValueError:
        rule = "not a number"
    else:
        if math.isfinite(value) and (name != "time_s" or abs(value) <= MOST_SECONDS):
            return value
        rule = f"beyond {MOST_SECONDS:g} s" if math.isfinite(value) else "not finite"
    raise TraceError(f"{recording.where}, line {line}: {name} is {printable(cell, 40)!r}, {rule}", "mend or remove that line")


def _refuse(
    recording: Recording, lines: NDArray[np.int64], bad: NDArray[np.bool_], values: NDArray[np.float64], rule: str
) -> None:
    if np.any(bad):
        first = int(np.flatnonzero(bad)[0])
        raise TraceError(f"{recording.where}, line {lines[first]}: {values[first]:g} is out of order or range", rule)

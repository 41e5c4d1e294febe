"""CSV series of one's own: a header line with ``time_s`` and ``delay_s`` or ``rate_bps``, or with ``lost``.

The value of a row holds until the time of the next; the last as long as the median row. ``lost`` is 0 or 1 for each frame,
in the order of sending.
"""

from __future__ import annotations

import csv
import io

import numpy as np
from numpy.typing import NDArray

from farlink.channels.importers.recording import Recording
from farlink.channels.trace import Trace
from farlink.errors import TraceError

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
            f"{recording.where}: columns {', '.join(columns)}", "needed: time_s and one of delay_s, rate_bps; or lost"
        )
    name = named[0]
    time_s, values = columns["time_s"], columns[name]
    _refuse(recording, lines, values < 0, values, f"{name} is at least 0")
    steps = np.diff(time_s)
    _refuse(recording, lines, np.concatenate(([False], steps <= 0)), time_s, "time_s ascends from line to line")
    time_s = time_s - time_s[0]
    meta["duration_s"] = float(time_s[-1] + (np.median(steps) if steps.size else 1.0))
    return Trace(_SERIES[name], {"time_s": time_s, name: values}, meta)


def _columns(recording: Recording) -> tuple[dict[str, NDArray[np.float64]], list[int]]:
    """The columns by name, and the line of each row."""
    reader = csv.reader(io.StringIO(recording.text()))
    try:
        header = [name.strip() for name in next(reader)]
    except StopIteration:
        raise TraceError(f"{recording.where}: the file is empty", "fetch or record it again") from None
    rows, lines = [], []
    for row in reader:
        if not row:
            continue
        if len(row) != len(header):
            raise TraceError(
                f"{recording.where}, line {reader.line_num}: {len(row)} fields instead of {len(header)}",
                "complete or remove that line; the file may be truncated",
            )
        rows.append(row)
        lines.append(reader.line_num)
    if not rows:
        raise TraceError(f"{recording.where}: a header and no rows", "fetch or record it again")
    wanted = [index for index, name in enumerate(header) if name in ("time_s", "lost", *_SERIES)]
    columns = {header[index]: _numbers(recording, rows, lines, index, header[index]) for index in wanted}
    return columns, lines


def _numbers(recording: Recording, rows: list[list[str]], lines: list[int], index: int, name: str) -> NDArray[np.float64]:
    values = np.empty(len(rows))
    for number, row in enumerate(rows):
        try:
            values[number] = float(row[index])
        except ValueError:
            values[number] = np.nan
        if not np.isfinite(values[number]):
            raise TraceError(
                f"{recording.where}, line {lines[number]}: {name} is {row[index].strip()!r}, not a number",
                "complete or remove that line",
            )
    return values


def _refuse(recording: Recording, lines: list[int], bad: NDArray[np.bool_], values: NDArray[np.float64], rule: str) -> None:
    if np.any(bad):
        first = int(np.flatnonzero(bad)[0])
        raise TraceError(f"{recording.where}, line {lines[first]}: {values[first]:g} is out of order or range", rule)

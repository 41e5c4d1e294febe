"""Logs of calls: one module per format, one line here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from farlink.channels.calls.clock import Clock
from farlink.channels.calls.journal import Event
from farlink.channels.calls.logs import csv_events, fjordlink_5g, fjordlink_starlink, json_lines, seaglider, slocum
from farlink.channels.calls.logs.telemetry import Table, table_of
from farlink.errors import JournalError
from farlink.near_names import instead
from farlink.untrusted import check_lines, gunzip, lines_of, read_file


@dataclass(frozen=True)
class Log:
    """Contents of a log file.

    Attributes
    ----------
    name
        Its name, without directory.
    format
        In which format it is.
    lines
        How many lines it has, or rows.
    events
        What happened, in the order of the file.
    """

    name: str
    format: str
    lines: int
    events: list[Event]


class Format(Protocol):
    """Interface of the modules of this package."""

    NAME: str
    DESCRIPTION: str

    def recognises(self, name: str, head: list[str]) -> bool:
        """Whether a file has this format, judged by its name and its first lines that are not empty."""
        ...

    def events(self, lines: list[str], name: str, clock: Clock | None = None) -> Iterator[Event]:
        """The events in a file; `name` is that of the file, for messages, and `clock` reads its times."""
        ...


class TableFormat(Protocol):
    """Interface of the modules whose logs are tables (Parquet)."""

    NAME: str
    DESCRIPTION: str

    def recognises(self, columns: list[str]) -> bool:
        """Whether a table has this format, judged by its columns."""
        ...

    def events(self, table: Table, name: str) -> Iterator[Event]:
        """The events in a table."""
        ...


# In the order in which they try to recognise a file.
FORMATS: dict[str, Format] = {module.NAME: module for module in (json_lines, seaglider, slocum, csv_events)}
TABLE_FORMATS: dict[str, TableFormat] = {module.NAME: module for module in (fjordlink_5g, fjordlink_starlink)}

_HEAD_LINES = 20


def read(path: str | Path, format: str | None = None, zone: str | None = None) -> Log:
    """Read a log of calls.

    Parameters
    ----------
    path
        The file; compressed by gzip if its first bytes say so.
    format
        One of `FORMATS`, or None to recognise it.
    zone
        Where times without a zone were written, as `Clock` takes it; they are refused without it.

    Raises
    ------
    JournalError
        If it cannot be read, has no known format, or a line is invalid; names the line.
    """
    path = Path(path)
    known = {**FORMATS, **TABLE_FORMATS}
    if format is not None and format not in known:
        raise JournalError(f"there is no format of logs {format!r}", instead(format, known))
    data = _data(path)
    if data[:4] == b"PAR1":
        return _read_table(path, data, format)
    if format in TABLE_FORMATS:
        raise JournalError(f"{path}: no table (Parquet), as {format} is", f"text has {', '.join(FORMATS)}")
    check_lines(data, str(path), JournalError)
    lines = lines_of(_text(path, data))
    head = [line for line in lines if line.strip()][:_HEAD_LINES]
    if not head:
        raise JournalError(f"{path}: the file is empty", "give a log with at least one call")
    if format is None:
        format = next((name for name, module in FORMATS.items() if module.recognises(path.name, head)), None)
        if format is None:
            raise JournalError(f"{path}: no known log of calls", f"name it with --format: {_described(FORMATS)}")
    clock = Clock(zone or getattr(FORMATS[format], "ZONE", None))
    return _log(path, format, len(lines), list(FORMATS[format].events(lines, path.name, clock)), "lines")


def _read_table(path: Path, data: bytes, format: str | None) -> Log:
    if format in FORMATS:
        raise JournalError(f"{path}: a table (Parquet), and no text, as {format} is", f"tables: {', '.join(TABLE_FORMATS)}")
    table = table_of(data, str(path))
    if format is None:
        columns = list(table.column_names)
        format = next((name for name, module in TABLE_FORMATS.items() if module.recognises(columns)), None)
        if format is None:
            raise JournalError(f"{path}: no known table of calls", f"known are {_described(TABLE_FORMATS)}")
    return _log(path, format, table.num_rows, list(TABLE_FORMATS[format].events(table, path.name)), "rows")


def _log(path: Path, format: str, count: int, events: list[Event], what: str) -> Log:
    if not events:
        raise JournalError(f"{path}: no event in {count} {what}", f"is it of the format {format}?")
    return Log(path.name, format, count, events)


def _described(formats: Mapping[str, Format] | Mapping[str, TableFormat]) -> str:
    return ", ".join(f"{name} ({module.DESCRIPTION})" for name, module in formats.items())


def _data(path: Path) -> bytes:
    try:
        data = read_file(path, JournalError)
    except IsADirectoryError as error:
        raise JournalError(f"{path} is a directory", "give the files in it") from error
    except OSError as error:
        raise JournalError(f"{path}: {error.strerror}", "check the name of the log") from error
    return gunzip(data, str(path), JournalError)


def _text(path: Path, data: bytes) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise JournalError(f"{path}, line {line}: not text", "check that it is the log itself") from error

"""Telemetry of links as tables: a reading a second, from which calls, drops and handovers are taken."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import datetime
from typing import Any, Protocol

from farlink.channels.calls.clock import EARLIEST_S, LATEST_S
from farlink.channels.calls.journal import shortened
from farlink.errors import JournalError
from farlink.untrusted import parquet_table


class Table(Protocol):
    """The used part of pyarrow's table interface."""

    column_names: list[str]
    num_rows: int

    def __getitem__(self, name: str) -> Any:
        """A column."""
        ...


def table_of(data: bytes, where: str) -> Table:
    """The table in the bytes of a Parquet file.

    Raises
    ------
    JournalError
        If it is truncated, or too large.
    MissingExtraError
        If pyarrow is not installed.
    """
    table: Table = parquet_table(data, where, JournalError)
    return table


def column(table: Table, name: str, where: str) -> list[Any]:
    """The values of a column.

    Raises
    ------
    JournalError
        If there is none of that name.
    """
    if name not in table.column_names:
        near = ", ".join(shortened(one, 30) for one in table.column_names[:6])
        raise JournalError(f"{where}: no column {name}", f"it has {near}, ...")
    values: list[Any] = table[name].to_pylist()
    return values


def times_s(stamps: Sequence[Any], where: str) -> list[float]:
    """Times in s since 1970 from ISO 8601 with a zone.

    Raises
    ------
    JournalError
        If one is no such time, or no clock that was set shows it; names the row, from 1.
    """
    found = []
    for row, stamp in enumerate(stamps, start=1):
        try:
            moment = datetime.fromisoformat(stamp)
            seconds = moment.timestamp() if moment.tzinfo else math.nan
        except (TypeError, ValueError, OverflowError):
            seconds = math.nan
        if not EARLIEST_S <= seconds <= LATEST_S:
            message = f"{where}, row {row}: time: {shortened(str(stamp))!r} is no time with a zone between 1990 and 2200"
            raise JournalError(message, "leave the row out")
        found.append(seconds)
    return found

"""Alerts in the journal: when each was raised and cleared."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from contextlib import suppress

from farlink.errors import JournalError
from farlink.operator.journal.rows import AlertRow, checked_time
from farlink.untrusted import printable

COLUMNS = ("number", "alert", "line", "severity", "raised_s", "cleared_s", "cause")

TABLE = """
CREATE TABLE alert (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    alert TEXT NOT NULL,
    line TEXT,
    severity TEXT NOT NULL,
    raised_s REAL NOT NULL,
    cleared_s REAL,
    cause TEXT NOT NULL
);
"""

_MOST_CHARACTERS = 300


def insert(database: sqlite3.Connection, row: AlertRow) -> int:
    """Record that an alert is raised; the number of its row.

    Raises
    ------
    JournalError
        If its time is none.
    """
    texts = [printable(text, _MOST_CHARACTERS) for text in (row.alert, row.severity, row.cause)]
    line = None if row.line is None else printable(row.line, _MOST_CHARACTERS)
    cleared_s = None if row.cleared_s is None else checked_time(row.cleared_s)
    values = (row.number or None, texts[0], line, texts[1], checked_time(row.raised_s), cleared_s, texts[2])
    return int(database.execute("INSERT INTO alert VALUES (?, ?, ?, ?, ?, ?, ?)", values).lastrowid or 0)


def clear(database: sqlite3.Connection, number: int, cleared_s: float) -> None:
    """Record that it is cleared."""
    values = (checked_time(cleared_s), number)
    database.execute("UPDATE alert SET cleared_s = ? WHERE number = ? AND cleared_s IS NULL", values)


def every(database: sqlite3.Connection) -> tuple[AlertRow, ...]:
    """All of them, in the order of their numbers."""
    rows = database.execute(f"SELECT {', '.join(COLUMNS)} FROM alert ORDER BY number")
    return tuple(AlertRow(**dict(zip(COLUMNS, row, strict=True))) for row in rows)


def forget(database: sqlite3.Connection, before_s: float) -> None:
    """Delete those that were cleared before this time."""
    database.execute("DELETE FROM alert WHERE cleared_s < ?", (before_s,))


def restore(database: sqlite3.Connection, rows: Iterable[tuple[object, ...]]) -> None:
    """Insert rows of a damaged file; those that make no sense are left out."""
    for row in rows:
        with suppress(JournalError, TypeError, ValueError, AttributeError, sqlite3.Error):
            insert(database, AlertRow(**dict(zip(COLUMNS, row, strict=True))))  # type: ignore[arg-type]

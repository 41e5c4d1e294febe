"""Rescue of a damaged journal: rows are read one by one, and those that cannot be read are left out."""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from farlink.operator.journal import alert_rows
from farlink.operator.journal.schema import COLUMNS, crc_of

Rows = list[tuple[object, ...]]

# Table -> its key and its columns, the key first. Columns that a later version added are read if they are there.
_COLUMNS = {
    "connection": ("number", ("number", "start_s", "end_s")),
    "member": ("rowid", ("rowid", "connection", "modem", "position")),
    "transition": ("number", (*COLUMNS, "crc")),
    "nonsense": ("transition_number", ("transition_number", "crc", "said")),
    "gap": ("rowid", ("rowid", "first_number", "last_number", "reason")),
    "fact": ("rowid", ("rowid", "name", "content")),
    "alert": ("number", alert_rows.COLUMNS),
}
# After so many keys without a row, a table is taken to be at its end: of transitions, of which there are many, and of others.
_MOST_GAP = 1 << 15
_MOST_SMALL_GAP = 1 << 10


def highest_if_whole(path: Path) -> int | None:
    """The highest number of a transition in a file; None if the file is damaged, 0 if it has none. Changes nothing."""
    # SQLite reads zeros behind the end of a page that is cut off.
    with path.open("rb") as file:
        page_bytes = int.from_bytes(file.read(18)[16:], "big")
    page_bytes = 65536 if page_bytes == 1 else page_bytes
    if path.stat().st_size % (page_bytes or 1) != 0:
        return None
    try:
        with opened_copy(path) as database:
            if database.execute("PRAGMA quick_check(1)").fetchone() != ("ok",):
                return None
            known = {row[1] for row in database.execute("PRAGMA table_info(transition)")}
            highest = 0
            if "crc" in known:
                # A column that a later version added is empty.
                columns = ", ".join(name if name in known else "NULL" for name in COLUMNS)
                for number, *fields, crc in database.execute(f"SELECT {columns}, crc FROM transition"):
                    if crc is not None and crc != crc_of(fields):
                        return None
                    highest = max(highest, number)
            elif known:
                highest = database.execute("SELECT coalesce(max(number), 0) FROM transition").fetchone()[0]
            return highest
    except (sqlite3.DatabaseError, UnicodeDecodeError):
        return None


def salvaged(path: Path, last: int | None) -> dict[str, Rows]:
    """The readable rows of each table.

    Parameters
    ----------
    path
        The damaged file. It is copied before it is read, so it stays as it is.
    last
        The highest number of a transition that counts; None if it is unknown.
    """
    found: dict[str, Rows] = {table: [] for table in _COLUMNS}
    with opened_copy(path) as database:
        for table, (key, columns) in _COLUMNS.items():
            try:
                # Else SQLite refuses a file that is shorter than its header says.
                database.execute("PRAGMA writable_schema = ON")
                known = {row[1] for row in database.execute(f"PRAGMA table_info({table})")}
            except sqlite3.DatabaseError:
                return found
            if known:
                read = [column if column in known or column == "rowid" else "NULL" for column in columns]
                is_large = key in ("number", "transition_number") and table != "connection"
                end = last if is_large else None
                most_gap = _MOST_GAP if is_large else _MOST_SMALL_GAP
                found[table] = _rows(database, table, key, ", ".join(read), most_gap, end)
    return found


def _rows(database: sqlite3.Connection, table: str, key: str, columns: str, most_gap: int, end: int | None) -> Rows:
    """Rows in the order of their keys, which are the first column. Behind an unreadable one, keys are tried one by one."""
    rows: Rows = []
    at = missing = 0
    while missing < most_gap and not (missing and end is not None and at >= end):
        try:
            for row in database.execute(f"SELECT {columns} FROM {table} WHERE {key} > ? ORDER BY {key}", (at,)):
                if not isinstance(row[0], int) or row[0] <= at:
                    raise sqlite3.DatabaseError("keys out of order")
                rows.append(row)
                at, missing = row[0], 0
            return rows
        except (sqlite3.DatabaseError, UnicodeDecodeError, OverflowError):
            at, missing = at + 1, missing + 1
        try:
            one = database.execute(f"SELECT {columns} FROM {table} WHERE {key} = ?", (at,)).fetchone()
        except (sqlite3.DatabaseError, UnicodeDecodeError, OverflowError):
            continue
        if one is not None:
            rows.append(one)
            missing = 0
    return rows


@contextmanager
def opened_copy(path: Path) -> Iterator[sqlite3.Connection]:
    """A copy of a database with its write-ahead log, opened; it is removed afterwards."""
    with tempfile.TemporaryDirectory(prefix="farlink-journal-") as folder:
        database = sqlite3.connect(copied(path, Path(folder)), isolation_level=None)
        try:
            yield database
        finally:
            database.close()


def copied(path: Path, folder: Path) -> Path:
    """Copy a database with its write-ahead log into a folder; the copy's path."""
    copy = folder / "journal"
    for suffix in ("", "-wal"):
        with suppress(FileNotFoundError):
            shutil.copyfile(path.with_name(path.name + suffix), f"{copy}{suffix}")
    return copy

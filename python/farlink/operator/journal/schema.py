"""Tables of the journal, their version, and how a file of an older version becomes one of today."""

from __future__ import annotations

import sqlite3
import zlib
from collections.abc import Iterable

from farlink.errors import JournalError
from farlink.operator.journal import alert_rows

VERSION = 5
APPLICATION = 0x464C4A4E  # "FLJN": what `file` and other programs see in the header

# Of the table `transition`, as `Transition` has them.
COLUMNS = (
    *("number", "connection", "modem", "state", "time_s", "monotonic_s", "boot_id", "cause"),
    *("snr_db", "bars", "attempt", "bytes_in", "bytes_out", "is_injected", "caller"),
)

TABLES = f"""
{alert_rows.TABLE}
CREATE TABLE connection (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    start_s REAL NOT NULL,
    end_s REAL
);
CREATE TABLE member (
    connection INTEGER NOT NULL,
    modem TEXT NOT NULL,
    position INTEGER NOT NULL,
    UNIQUE (connection, modem)
);
CREATE TABLE transition (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    connection INTEGER NOT NULL,
    modem TEXT NOT NULL,
    state TEXT NOT NULL,
    time_s REAL NOT NULL,
    monotonic_s REAL NOT NULL,
    boot_id TEXT NOT NULL,
    cause TEXT NOT NULL,
    snr_db REAL,
    bars INTEGER,
    attempt INTEGER,
    bytes_in INTEGER,
    bytes_out INTEGER,
    is_injected INTEGER NOT NULL DEFAULT 0,
    crc INTEGER,
    caller TEXT
);
CREATE TABLE nonsense (
    transition_number INTEGER PRIMARY KEY,
    crc INTEGER NOT NULL,
    said BLOB NOT NULL
);
CREATE TABLE gap (
    first_number INTEGER NOT NULL,
    last_number INTEGER NOT NULL,
    reason TEXT NOT NULL
);
CREATE TABLE fact (
    name TEXT PRIMARY KEY,
    content TEXT NOT NULL
);
"""

# Version -> what makes a file of the next version of it. Version 1 had neither injected drops, nonsense, gaps nor CRCs,
# version 2 no facts, version 3 no alerts, version 4 no callers.
_STEPS = {
    1: """
ALTER TABLE transition ADD COLUMN is_injected INTEGER NOT NULL DEFAULT 0;
ALTER TABLE transition ADD COLUMN crc INTEGER;
CREATE TABLE nonsense (transition_number INTEGER PRIMARY KEY, crc INTEGER NOT NULL, said BLOB NOT NULL);
CREATE TABLE gap (first_number INTEGER NOT NULL, last_number INTEGER NOT NULL, reason TEXT NOT NULL);
""",
    2: "CREATE TABLE fact (name TEXT PRIMARY KEY, content TEXT NOT NULL);",
    3: alert_rows.TABLE,
    4: "ALTER TABLE transition ADD COLUMN caller TEXT;",
}


def prepare(database: sqlite3.Connection, name: str) -> int:
    """Make the tables of a new file, or bring those of an older version up to date, in one transaction.

    Returns
    -------
    int
        The version before; 0 of a new file.

    Raises
    ------
    JournalError
        If the file belongs to another program or a newer farlink.
    """
    version = version_of(database, name)
    if version == VERSION:
        return version
    steps = TABLES if version == 0 else "".join(_STEPS[at] for at in range(version, VERSION))
    database.executescript(
        f"BEGIN IMMEDIATE; {steps} PRAGMA application_id = {APPLICATION}; PRAGMA user_version = {VERSION}; COMMIT;"
    )
    return version


def version_of(database: sqlite3.Connection, name: str) -> int:
    """Version of a file; 0 if it is empty.

    Raises
    ------
    JournalError
        If the file belongs to another program or a newer farlink.
    """
    application = database.execute("PRAGMA application_id").fetchone()[0]
    version: int = database.execute("PRAGMA user_version").fetchone()[0]
    is_empty = database.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0] == 0
    if is_empty and application == 0:
        return 0
    if application != APPLICATION:
        raise JournalError(f"{name}: a database of another program", "name a file of its own for the journal")
    if not 1 <= version <= VERSION:
        raise JournalError(f"{name}: version {version}, this farlink knows 1 to {VERSION}", "update farlink")
    return version


def crc_of(fields: Iterable[object]) -> int:
    """CRC of a transition's columns behind its number: half of a row that was cut off is no row.

    A row without a caller has the CRC that it had before there were callers.
    """
    as_read = [int(field) if isinstance(field, bool) else field for field in fields]
    if as_read[-1] is None:
        as_read.pop()
    return zlib.crc32(repr(as_read).encode("utf-8", "surrogatepass"))

"""A journal read by queries while an operator writes it: what is asked for is read, not all of it."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

from farlink.errors import JournalError
from farlink.operator.journal import schema
from farlink.operator.journal.rows import Connection, History, Transition
from farlink.operator.journal.store import read

MOST_ROWS = 1000
"""Transitions and connections of a page."""

_COLUMNS = ", ".join(schema.COLUMNS)
_BUSY_S = 2.0

Answer = TypeVar("Answer")


@dataclass(frozen=True)
class Filter:
    """Which transitions are meant; None for all.

    Attributes
    ----------
    line, state
        Of this line, to this state.
    connection
        Of this connection.
    since_s, until_s
        At this time or later, and before that one, in s since 1970-01-01 UTC.
    """

    line: str | None = None
    state: str | None = None
    connection: int | None = None
    since_s: float | None = None
    until_s: float | None = None


_CONDITIONS = {
    "line": "modem = ?",
    "state": "state = ?",
    "connection": "connection = ?",
    "since_s": "time_s >= ?",
    "until_s": "time_s < ?",
}


class View:
    """A journal, which stays as it is. Safe to use from several threads.

    Parameters
    ----------
    path
        Its file. One that is damaged, or of an older version, is read as a whole each time, without what is lost of it.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def transitions(
        self, wanted: Filter, *, after: int = 0, before: int | None = None, limit: int = 100, newest_first: bool = False
    ) -> list[Transition]:
        """Transitions in the order of their numbers.

        Parameters
        ----------
        wanted
            Which.
        after, before
            Only numbers above and below these.
        limit
            How many at most, 1 to `MOST_ROWS`.
        newest_first
            Whether the order is the other way round.

        Raises
        ------
        JournalError
            If there is no journal.
        """
        where, values = ["number > ?"], [after]
        if before is not None:
            where.append("number < ?")
            values.append(before)
        for field in fields(wanted):
            value = getattr(wanted, field.name)
            if value is not None:
                where.append(_CONDITIONS[field.name])
                values.append(value)
        order = "DESC" if newest_first else "ASC"
        query = f"WHERE {' AND '.join(where)} ORDER BY number {order} LIMIT ?"
        return self._asked(lambda database: list(_transitions(database, query, (*values, min(limit, MOST_ROWS)))))

    def connections(self, *, before: int | None = None, limit: int = 100) -> list[Connection]:
        """Connections, the newest first.

        Parameters
        ----------
        before
            Only numbers below this.
        limit
            How many at most, 1 to `MOST_ROWS`.

        Raises
        ------
        JournalError
            If there is no journal.
        """
        where = "WHERE number < ? ORDER BY number DESC LIMIT ?"
        values = (2**63 - 1 if before is None else before, min(limit, MOST_ROWS))
        return self._asked(lambda database: _connections(database, where, values))

    def connection(self, number: int | None = None, *, most: int = 500_000) -> tuple[Connection, list[Transition], int]:
        """A connection, its transitions, and how many of them are left out.

        Parameters
        ----------
        number
            Its number; None for the last one.
        most
            How many transitions at most, the first ones.

        Raises
        ------
        JournalError
            If there is no such connection, or no journal.
        """

        def question(database: sqlite3.Connection) -> tuple[Connection, list[Transition], int]:
            chosen = "SELECT max(number) FROM connection" if number is None else "?"
            values = () if number is None else (number,)
            found = _connections(database, f"WHERE number = ({chosen})", values)
            if not found:
                what = "no connection yet" if number is None else f"no connection {number}"
                raise JournalError(f"{self._path}: {what}", "`farlink bundle log` shows what there is")
            own = (found[0].number,)
            count: int = database.execute("SELECT count(*) FROM transition WHERE connection = ?", own).fetchone()[0]
            rows = _transitions(database, "WHERE connection = ? ORDER BY number LIMIT ?", (*own, most))
            return found[0], list(rows), max(0, count - most)

        return self._asked(question)

    def history(self, *, since_s: float, most: int) -> History:
        """Connections that began at a time or later, with their transitions.

        Parameters
        ----------
        since_s
            In s since 1970-01-01 UTC.
        most
            How many transitions there may be.

        Raises
        ------
        JournalError
            If there are more, or there is no journal.
        """

        def question(database: sqlite3.Connection) -> History:
            of_these = "connection IN (SELECT number FROM connection WHERE start_s >= ?)"
            count = database.execute(f"SELECT count(*) FROM transition WHERE {of_these}", (since_s,)).fetchone()[0]
            if count > most:
                raise JournalError(f"{count} transitions, more than the {most} that are taken", "ask for fewer days")
            connections = _connections(database, "WHERE start_s >= ? ORDER BY number", (since_s,))
            rows = _transitions(database, f"WHERE {of_these} ORDER BY number", (since_s,))
            known = {one.number for one in connections}
            return History(tuple(connections), tuple(one for one in rows if one.connection in known))

        return self._asked(question)

    def counts(self, after: int) -> tuple[dict[tuple[str, str, bool], int], int]:
        """How many transitions there are behind a number.

        Parameters
        ----------
        after
            The number.

        Returns
        -------
        dict
            Line, state and whether it was injected -> count.
        int
            The last number.

        Raises
        ------
        JournalError
            If there is no journal.
        """
        query = "SELECT modem, state, is_injected, count(*) FROM transition WHERE number > ? AND number <= ? GROUP BY 1, 2, 3"

        def question(database: sqlite3.Connection) -> tuple[list[tuple[str, str, int, int]], int]:
            last = _given(database, "transition")
            return database.execute(query, (after, last)).fetchall(), last

        rows, last = self._asked(question)
        return {(str(line), str(state), bool(injected)): int(count) for line, state, injected, count in rows}, last

    def last_connection(self) -> int:
        """Number of the last connection that was begun; 0 if there is none yet.

        Raises
        ------
        JournalError
            If there is no journal.
        """
        return self._asked(lambda database: _given(database, "connection"))

    def _asked(self, question: Callable[[sqlite3.Connection], Answer]) -> Answer:
        """The journal's file; if it cannot be read as it is, a copy in memory of its whole rows."""
        check_there(self._path)
        with suppress(sqlite3.Error), live(self._path) as database:
            return question(database)
        history, _ = read(self._path)
        with closing(in_memory(history)) as database:
            return question(database)


def check_there(path: Path) -> None:
    """Refuse a journal that is not there.

    Raises
    ------
    JournalError
        If there is none, or nobody may look.
    """
    try:
        is_there = path.is_file()
    except OSError as error:
        raise JournalError(f"cannot read {path}: {error.strerror}", "be the user of the operator") from error
    if not is_there:
        raise JournalError(f"{path}: there is no journal yet", "start the operator: farlink bundle up FILE")


@contextmanager
def live(path: Path) -> Iterator[sqlite3.Connection]:
    """The file of a journal itself, to ask while an operator writes it.

    Raises
    ------
    sqlite3.Error
        If it is damaged, or of an older version: what is whole can be read into memory.
    JournalError
        If it is no journal.
    """
    # Without a write-ahead log nobody writes; SQLite would make one to read the file, and a reader may not.
    has_log = path.with_name(f"{path.name}-wal").exists()
    place = f"file:{quote(str(path.absolute()))}?mode=ro{'' if has_log else '&immutable=1'}"
    with closing(sqlite3.connect(place, uri=True, isolation_level=None, timeout=_BUSY_S)) as database:
        if schema.version_of(database, str(path)) != schema.VERSION:
            raise sqlite3.NotSupportedError(f"{path} is of an older version")
        yield database


def in_memory(history: History) -> sqlite3.Connection:
    """A database in memory with what a journal holds."""
    database = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
    database.executescript(schema.TABLES)
    starts = [(one.number, one.start_s, one.end_s) for one in history.connections]
    database.executemany("INSERT INTO connection VALUES (?, ?, ?)", starts)
    members = [(one.number, modem, index) for one in history.connections for modem, index in one.indices.items()]
    database.executemany("INSERT OR IGNORE INTO member VALUES (?, ?, ?)", members)
    marks = ", ".join("?" * len(schema.COLUMNS))
    rows = [[getattr(one, name) for name in schema.COLUMNS] for one in history.transitions]
    database.executemany(f"INSERT INTO transition ({_COLUMNS}) VALUES ({marks})", rows)
    return database


def _given(database: sqlite3.Connection, table: str) -> int:
    """The last number that was given in a table."""
    row = database.execute("SELECT seq FROM sqlite_sequence WHERE name = ?", (table,)).fetchone()
    return 0 if row is None else int(row[0])


def _connections(database: sqlite3.Connection, where: str, values: tuple[Any, ...]) -> list[Connection]:
    found = []
    for number, start_s, end_s in database.execute(f"SELECT number, start_s, end_s FROM connection {where}", values).fetchall():
        members = "SELECT modem, position FROM member WHERE connection = ? ORDER BY position"
        found.append(Connection(number, start_s, end_s, dict(database.execute(members, (number,)).fetchall())))
    return found


def transitions_of(database: sqlite3.Connection, where: str, values: tuple[Any, ...]) -> Iterator[Transition | None]:
    """Transitions; None for one that is not whole, as SQLite reads zeros of a page that was cut off."""
    for *row, crc in database.execute(f"SELECT {_COLUMNS}, crc FROM transition {where}", values):
        if crc is not None and crc != schema.crc_of(row[1:]):
            yield None
            continue
        named = dict(zip(schema.COLUMNS, row, strict=True))
        yield Transition(**{**named, "is_injected": bool(named["is_injected"])})


def _transitions(database: sqlite3.Connection, where: str, values: tuple[Any, ...]) -> Iterator[Transition]:
    return (one for one in transitions_of(database, where, values) if one is not None)

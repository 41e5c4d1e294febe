"""A journal's file, read by queries: the operator that writes it is not disturbed, and a damaged file shows what is whole."""

from __future__ import annotations

import sqlite3
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from farlink.errors import FarlinkError
from farlink.operator.journal import History, Transition, read
from farlink.operator.journal.last_number import LastNumber
from farlink.operator.journal.view import check_there, in_memory, live, transitions_of


class _Damaged(Exception):
    """A query cannot be answered from the file as it is."""


@dataclass(frozen=True)
class Found:
    """Transitions that a query gave.

    Attributes
    ----------
    transitions
        In the order of their numbers.
    count
        How many there are in all, of which these may be a page.
    warning
        What the journal has lost; empty if it is whole.
    """

    transitions: tuple[Transition, ...]
    count: int
    warning: str = ""


class JournalFile:
    """The journal of a bundle, for queries. Safe to use from several threads: each query opens the file itself.

    Parameters
    ----------
    path
        Its file, which stays as it is.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._salvaged: tuple[object, History, str] | None = None

    def transitions(self, where: str = "1", values: tuple[Any, ...] = (), *, most: int, offset: int = 0) -> Found:
        """Transitions, the newest `most` of them behind the newest `offset`.

        Parameters
        ----------
        where, values
            A condition of SQL upon the columns of the table ``transition``, and the values of its question marks.
        most, offset
            Of rows.

        Raises
        ------
        JournalError
            If there is no journal.
        OutputError
            If it cannot be read.
        """
        check_there(self.path)
        try:
            with live(self.path) as database:
                if self._is_cut_off(database):
                    raise _Damaged
                return _asked(database, where, values, most, offset)
        except (sqlite3.Error, UnicodeDecodeError, _Damaged):
            history, warning = self._whole()
        with closing(in_memory(history)) as database:
            found = _asked(database, where, values, most, offset)
            return Found(found.transitions, found.count, warning)

    def identity(self) -> object:
        """Which file it is; None if there is none."""
        try:
            status = self.path.stat()
        except OSError:
            return None
        return (status.st_dev, status.st_ino)

    def modems(self) -> list[str]:
        """Names of the lines that have transitions; none if the journal cannot be read."""
        with suppress(FarlinkError, sqlite3.Error, _Damaged, OSError), live(self.path) as database:
            return [str(row[0]) for row in database.execute("SELECT DISTINCT modem FROM transition ORDER BY modem")]
        return []

    def _is_cut_off(self, database: sqlite3.Connection) -> bool:
        """Whether transitions are missing at the end that were durable."""
        last = LastNumber.read(self.path)
        highest = database.execute("SELECT coalesce(max(number), 0) FROM transition").fetchone()[0]
        lost = "SELECT coalesce(max(last_number), 0) FROM gap"
        return last is not None and max(int(highest), int(database.execute(lost).fetchone()[0])) < last

    def _whole(self) -> tuple[History, str]:
        """Whole rows of a damaged file, or a file of an older version: read once, until the file changes."""
        stamp = _stamp(self.path)
        if self._salvaged is None or self._salvaged[0] != stamp:
            history, loss = read(self.path)
            self._salvaged = (stamp, history, "" if loss is None else str(loss))
        return self._salvaged[1], self._salvaged[2]


def _stamp(path: Path) -> object:
    """Tells whether a file has changed. What an operator writes is in its write-ahead log at first."""
    found: list[object] = []
    for one in (path, path.with_name(f"{path.name}-wal")):
        try:
            status = one.stat()
        except OSError:
            found.append(None)
        else:
            found.append((status.st_ino, status.st_size, status.st_mtime_ns))
    return found


def _asked(database: sqlite3.Connection, where: str, values: tuple[Any, ...], most: int, offset: int) -> Found:
    count = int(database.execute(f"SELECT count(*) FROM transition WHERE {where}", values).fetchone()[0])
    found = []
    for one in transitions_of(database, f"WHERE {where} ORDER BY number DESC LIMIT ? OFFSET ?", (*values, most, offset)):
        if one is None:
            raise _Damaged
        found.append(one)
    return Found(tuple(reversed(found)), count)

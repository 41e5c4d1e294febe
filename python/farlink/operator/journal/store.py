"""The journal's file: opened by one writer, read by anyone, and opened even if it is damaged."""

from __future__ import annotations

import os
import sqlite3
import tempfile
import time
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Any

from farlink.errors import JournalError, OutputError
from farlink.operator.journal import alert_rows, left_open, schema
from farlink.operator.journal.age import first_younger
from farlink.operator.journal.last_number import LastNumber
from farlink.operator.journal.lock import Lock
from farlink.operator.journal.rows import OBSERVATIONS, AlertRow, Connection, History, Transition, checked, checked_time
from farlink.operator.journal.salvage import Rows, copied, highest_if_whole, opened_copy, salvaged
from farlink.operator.journal.sign_of_life import Life

_HEADER = b"SQLite format 3\x00"
_COLUMNS = ", ".join(schema.COLUMNS)
_HIDDEN = "***"
_READS = 20


@dataclass(frozen=True)
class Loss:
    """Losses of a damaged journal.

    Attributes
    ----------
    kept
        Transitions that are whole.
    missing
        Numbers of lost transitions, as ranges of first and last.
    is_end_known
        False if nothing says how far the journal went, so that more may be lost.
    set_aside
        The damaged file, which nobody changes.
    """

    kept: int
    missing: tuple[tuple[int, int], ...]
    is_end_known: bool
    set_aside: Path | None

    def __str__(self) -> str:
        lost = sum(last - first + 1 for first, last in self.missing)
        ranges = ", ".join(f"{first}" if first == last else f"{first} to {last}" for first, last in self.missing)
        text = f"the journal was damaged: {self.kept} transitions kept, {lost} lost"
        text += f" (numbers {ranges})" if ranges else ""
        text += "" if self.is_end_known else ", perhaps more at its end"
        return text + (f"; the damaged file is {self.set_aside}" if self.set_aside else "")


class Journal:
    """The journal of a bundle, opened to write. A context manager.

    Parameters
    ----------
    path
        Its file, which is made if there is none. ``NAME.lock`` and ``NAME.last`` stand beside it.
    secrets
        Texts that are replaced in causes and nonsense, as modems echo what they are sent.

    Attributes
    ----------
    loss
        What was lost if the file was damaged; None if it was whole.

    Raises
    ------
    JournalError
        If another process has the journal, or the file is none.
    OutputError
        If it cannot be written.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with Journal(pathlib.Path(tempfile.mkdtemp()) / "bundle.journal") as journal:
    ...     connection = journal.begin(1783166400.0, {"kansas": 1, "iowa": 2})
    ...     journal.record(Transition(connection, "kansas", "connecting", 1783166400.0, 12.5, "boot-1", attempt=1))
    ...     journal.history().connections[0].primary
    1
    'kansas'
    """

    def __init__(self, path: str | Path, *, secrets: Iterable[str] = ()) -> None:
        self.path = Path(path)
        self._secrets = sorted((text for text in secrets if text), key=len, reverse=True)
        self._lock = Lock(self.path)
        try:
            with _refusals(self.path):
                self._last = LastNumber(self.path)
                self.loss = self._open()
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Close the file and give its lock back; a second time does nothing."""
        database = self.__dict__.pop("_database", None)
        if database is not None:
            database.close()
        last = self.__dict__.pop("_last", None)
        if last is not None:
            last.close()
        self._lock.release()

    def begin(self, start_s: float, indices: Mapping[str, int]) -> int:
        """Begin a connection, which is durable when this returns.

        Parameters
        ----------
        start_s
            When, in s since 1970-01-01 UTC.
        indices
            Modem -> its index; that of the primary modem is 1.

        Returns
        -------
        int
            Its number.
        """
        if sorted(indices.values()) != list(range(1, len(indices) + 1)):
            raise JournalError(f"indices {sorted(indices.values())}", "number the modems from 1, each once")
        with self._written(is_durable=True) as database:
            row = database.execute("INSERT INTO connection (start_s) VALUES (?)", (checked_time(start_s),))
            number = int(row.lastrowid or 0)
            members = [(number, modem, index) for modem, index in indices.items()]
            database.executemany("INSERT INTO member VALUES (?, ?, ?)", members)
        return number

    def finish(self, connection: int, end_s: float) -> None:
        """End a connection: its last line is lost or closed."""
        with self._written(is_durable=True) as database:
            database.execute("UPDATE connection SET end_s = ? WHERE number = ?", (checked_time(end_s), connection))

    def record(self, transition: Transition) -> int:
        """Record a transition; it is durable when this returns, but for `OBSERVATIONS`.

        Returns
        -------
        int
            Its number; that of the argument is not used.
        """
        hidden = replace(transition, cause=self._hide(transition.cause), nonsense=self._hide_bytes(transition.nonsense))
        given = checked(hidden)
        is_durable = given.state not in OBSERVATIONS
        with self._written(is_durable=is_durable) as database:
            # A connection that nobody began, begins with its first transition: exports need its start.
            start = "INSERT OR IGNORE INTO connection (number, start_s) VALUES (?, ?)"
            database.execute(start, (given.connection, given.time_s))
            number = _insert(database, replace(given, number=0))
        if is_durable:
            # The transition is in the journal already: to refuse it now would record it twice. The next one writes the number.
            with suppress(OSError):
                self._last.write(number)
        return number

    def index(self, connection: int, indices: Mapping[str, int]) -> None:
        """Number the modems of a connection anew: another is its primary modem now."""
        with self._written(is_durable=True) as database:
            database.execute("DELETE FROM member WHERE connection = ?", (connection,))
            members = [(connection, modem, index) for modem, index in indices.items()]
            database.executemany("INSERT INTO member VALUES (?, ?, ?)", members)

    def keep(self, name: str, content: str) -> None:
        """Keep a fact for the next start, in place of the one of that name; it is durable when this returns."""
        with self._written(is_durable=True) as database:
            database.execute("INSERT OR REPLACE INTO fact VALUES (?, ?)", (name, content))

    def kept(self, name: str) -> str | None:
        """A fact that was kept; None if there is none."""
        with _refusals(self.path):
            row = self._database.execute("SELECT content FROM fact WHERE name = ?", (name,)).fetchone()
        return None if row is None else str(row[0])

    def raise_alert(self, alert: AlertRow) -> int:
        """Record that an alert is raised, which is durable when this returns; its number."""
        with self._written(is_durable=True) as database:
            return alert_rows.insert(database, replace(alert, cause=self._hide(alert.cause), number=0))

    def clear_alert(self, number: int, cleared_s: float) -> None:
        """Record that an alert is cleared, at a time in s since 1970-01-01 UTC."""
        with self._written(is_durable=True) as database:
            alert_rows.clear(database, number, cleared_s)

    def raised_alerts(self) -> list[AlertRow]:
        """Alerts that are raised and not cleared."""
        with _refusals(self.path):
            return [one for one in alert_rows.every(self._database) if one.cleared_s is None]

    def end_left_open(self, life: Life | None) -> int:
        """End the connections that a killed operator has left open; lines that were up in the last one have ended, too.

        Parameters
        ----------
        life
            Its last sign of life; None if nothing tells: then its last transition does.

        Returns
        -------
        int
            How many there were.
        """
        with _refusals(self.path):
            ends = left_open.found(self._database, life)
        for one in ends:
            for transition in one.ended:
                self.record(transition)
            self.finish(one.connection, one.end_s)
        return len(ends)

    def forget(self, keep_s: float, *, boot_id: str, monotonic_s: float, most: int | None = None) -> int:
        """Delete old transitions, and connections that have none left and are over.

        Parameters
        ----------
        keep_s
            Those that are older, in s of running (`first_younger`).
        boot_id, monotonic_s
            Of now.
        most
            Keep no more than so many, the newest.

        Returns
        -------
        int
            How many are deleted.
        """
        with self._written(is_durable=True) as database:
            first = first_younger(database, keep_s, boot_id=boot_id, monotonic_s=monotonic_s)
            if most is not None:
                kept = "SELECT number FROM transition ORDER BY number DESC LIMIT ?"
                first = max(first, _one(database, f"SELECT coalesce(min(number), 0) FROM ({kept})", most))
                first = _one(database, "SELECT coalesce(max(number), 0) + 1 FROM transition") if most == 0 else first
            deleted = database.execute("DELETE FROM transition WHERE number < ?", (first,)).rowcount
            if deleted:
                database.execute("DELETE FROM nonsense WHERE transition_number < ?", (first,))
                database.execute("DELETE FROM gap WHERE last_number < ?", (first,))
                database.execute("INSERT INTO gap VALUES (1, ?, 'retention')", (first - 1,))
                # Alerts have times of day only: those before all that is left.
                alert_rows.forget(database, database.execute("SELECT min(time_s) FROM transition").fetchone()[0])
                empty = "number NOT IN (SELECT connection FROM transition)"
                database.execute(f"DELETE FROM connection WHERE end_s IS NOT NULL AND {empty}")
                database.execute("DELETE FROM member WHERE connection NOT IN (SELECT number FROM connection)")
        return deleted

    def history(self) -> History:
        """All of it."""
        with _refusals(self.path):
            return _history(self._database)

    def _open(self) -> Loss | None:
        rows, set_aside = self._salvage()
        self._database = _connect(self.path)
        self._database.execute("PRAGMA journal_mode = WAL")
        schema.prepare(self._database, str(self.path))
        with self._written(is_durable=True) as database:
            if rows is not None:
                _restore(database, rows)
            kept = _one(database, "SELECT count(*) FROM transition")
            missing = _missing(database, self._last.number) if rows is not None else ()
            database.executemany("INSERT INTO gap VALUES (?, ?, 'damage')", missing)
            highest = max(self._last.number or 0, _one(database, "SELECT coalesce(max(number), 0) FROM transition"))
            if highest:
                # The numbers of lost transitions are not given again.
                database.execute("DELETE FROM sqlite_sequence WHERE name = 'transition'")
                database.execute("INSERT INTO sqlite_sequence VALUES ('transition', ?)", (highest,))
        if rows is None:
            return None
        is_end_known = self._last.number is not None
        self._last.write(highest)
        return Loss(kept, missing, is_end_known, set_aside)

    def _salvage(self) -> tuple[dict[str, Rows] | None, Path | None]:
        """Set a damaged file aside; its rows, or None if it is whole."""
        if not self.path.exists():
            if not self._last.number:
                return None, None
            return {}, None  # the file is gone, and its last number is not
        with self.path.open("rb") as file:
            head = file.read(len(_HEADER))
        if not _HEADER.startswith(head) and self._last.number is None:
            raise JournalError(f"{self.path}: not a journal", "name another file, or move this one away")
        highest = highest_if_whole(self.path)
        if highest is not None and highest >= (self._last.number or 0):
            return None, None
        rows = salvaged(self.path, self._last.number)
        return rows, _set_aside(self.path)

    @contextmanager
    def _written(self, *, is_durable: bool) -> Iterator[sqlite3.Connection]:
        with _refusals(self.path):
            database = self._database
            database.execute(f"PRAGMA synchronous = {'FULL' if is_durable else 'NORMAL'}")
            database.execute("BEGIN IMMEDIATE")
            try:
                yield database
                database.execute("COMMIT")
            except BaseException:
                with suppress(sqlite3.Error):
                    database.execute("ROLLBACK")
                raise

    def _hide(self, text: str) -> str:
        for secret in self._secrets:
            text = text.replace(secret, _HIDDEN)
        return text

    def _hide_bytes(self, said: bytes) -> bytes:
        for secret in self._secrets:
            said = said.replace(secret.encode(), _HIDDEN.encode())
        return said


def read(path: str | Path) -> tuple[History, Loss | None]:
    """Contents of a journal, which an operator may be writing; of a damaged one, what is whole.

    Parameters
    ----------
    path
        Its file, which stays as it is.

    Raises
    ------
    JournalError
        If there is none, or it is not a journal.
    """
    path = Path(path)
    if not path.is_file():
        raise JournalError(f"{path}: no such journal", "name the journal of an operator")
    with _refusals(path):
        with path.open("rb") as file:
            if not _HEADER.startswith(file.read(len(_HEADER))):
                raise JournalError(f"{path}: not a journal", "name the journal of an operator")
        for _ in range(_READS):
            before = _stamps(path)
            last = LastNumber.read(path)
            with tempfile.TemporaryDirectory(prefix="farlink-journal-") as folder:
                copy = copied(path, Path(folder))
                highest = highest_if_whole(copy)
                if highest is not None and highest >= (last or 0):
                    with opened_copy(copy) as database:
                        schema.prepare(database, str(path))
                        return _history(database), None
            if _stamps(path) == before:
                break
            # An operator has written into the file while it was copied: the copy may be neither old nor new.
        database = sqlite3.connect(":memory:", isolation_level=None)
        schema.prepare(database, str(path))
        _restore(database, salvaged(path, last))
        history = _history(database)
        return history, Loss(len(history.transitions), _missing(database, last), last is not None, None)


def _stamps(path: Path) -> list[tuple[int, int]]:
    """Sizes and times of a database and its write-ahead log."""
    found = []
    for suffix in ("", "-wal"):
        with suppress(FileNotFoundError):
            status = path.with_name(path.name + suffix).stat()
            found.append((status.st_size, status.st_mtime_ns))
    return found


def _connect(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(path, isolation_level=None, timeout=5)


def _one(database: sqlite3.Connection, query: str, *values: object) -> int:
    return int(database.execute(query, values).fetchone()[0])


def _insert(database: sqlite3.Connection, transition: Transition) -> int:
    fields = [getattr(transition, name) for name in schema.COLUMNS]
    marks = ", ".join("?" * (len(fields) + 1))
    values = [fields[0] or None, *fields[1:], schema.crc_of(fields[1:])]
    done = database.execute(f"INSERT INTO transition ({_COLUMNS}, crc) VALUES ({marks})", values)
    number = int(done.lastrowid or 0)
    if transition.nonsense:
        row = (number, zlib.crc32(transition.nonsense), transition.nonsense)
        database.execute("INSERT INTO nonsense VALUES (?, ?, ?)", row)
    return number


def _history(database: sqlite3.Connection) -> History:
    indices: dict[int, dict[str, int]] = {}
    for number, modem, index in database.execute(
        "SELECT connection, modem, position FROM member ORDER BY connection, position"
    ):
        indices.setdefault(number, {})[modem] = index
    connections = tuple(
        Connection(number, start_s, end_s, indices.get(number, {}))
        for number, start_s, end_s in database.execute("SELECT number, start_s, end_s FROM connection ORDER BY number")
    )
    said = dict(database.execute("SELECT transition_number, said FROM nonsense"))
    rows = database.execute(f"SELECT {_COLUMNS} FROM transition ORDER BY number")
    return History(connections, tuple(_transition(row, said.get(row[0], b"")) for row in rows), alert_rows.every(database))


def _transition(row: Iterable[Any], nonsense: bytes) -> Transition:
    named = dict(zip(schema.COLUMNS, row, strict=True))
    return Transition(**{**named, "is_injected": bool(named["is_injected"]), "nonsense": nonsense})


def _restore(database: sqlite3.Connection, rows: dict[str, Rows]) -> None:
    """Insert rows of a damaged file into an empty one; those that make no sense are left out."""
    said = {row[0]: row[2] for row in rows.get("nonsense", []) if isinstance(row[2], bytes) and row[1] == zlib.crc32(row[2])}
    starts: dict[int, float] = {}
    for *fields, crc in rows.get("transition", []):
        if crc is not None and crc != schema.crc_of(fields[1:]):
            continue
        nonsense = said.get(fields[0], b"")
        with suppress(JournalError, TypeError, sqlite3.IntegrityError, AttributeError):
            transition = checked(_transition(fields, nonsense))
            _insert(database, transition)
            starts.setdefault(transition.connection, transition.time_s)
    for table, columns in (("connection", 3), ("member", 3), ("gap", 3), ("fact", 2)):
        for row in rows.get(table, []):
            with suppress(sqlite3.IntegrityError):
                marks = ", ".join("?" * columns)
                database.execute(f"INSERT INTO {table} VALUES ({marks})", row[-columns:])
    alert_rows.restore(database, rows.get("alert", []))
    # A connection whose own row is lost begins with its first transition.
    database.executemany("INSERT OR IGNORE INTO connection (number, start_s) VALUES (?, ?)", starts.items())


def _missing(database: sqlite3.Connection, last: int | None) -> tuple[tuple[int, int], ...]:
    """Ranges of numbers that are neither there nor known to be gone."""
    known = [tuple(row) for row in database.execute("SELECT first_number, last_number FROM gap")]
    known += [(number, number) for (number,) in database.execute("SELECT number FROM transition")]
    missing, at = [], 1
    for first, end in sorted(known):
        if first > at:
            missing.append((at, first - 1))
        at = max(at, end + 1)
    if last is not None and last >= at:
        missing.append((at, last))
    return tuple(missing)


def _set_aside(path: Path) -> Path:
    """Rename a damaged file and its log, to a name that no file has."""
    stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    names = (f"{path.name}.damaged-{stamp}" + (f"-{at}" if at else "") for at in range(1 << 20))
    aside = next(path.with_name(name) for name in names if not path.with_name(name).exists())
    path.rename(aside)
    for suffix in ("-wal", "-shm"):
        with suppress(FileNotFoundError):
            path.with_name(path.name + suffix).rename(aside.with_name(aside.name + suffix))
    return aside


@contextmanager
def _refusals(path: Path) -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        raise OutputError(f"journal {path}: {error}", "free some space, or choose another place") from error
    except OSError as error:
        raise OutputError(f"journal {path}: {os.strerror(error.errno or 0)}", "choose a place you may write to") from error

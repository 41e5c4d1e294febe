"""A journal as rows: CSV, Parquet and JSON Lines, each read back whole.

The first keys are those of a log of calls (`farlink.channels.calls.journal`), so `farlink bundle fit` reads the lines of JSON.
A drop that the operator injected stands there as ``ended``: a call that lasted at least so long, and is no drop of the network.
"""

from __future__ import annotations

import base64
import csv
import io
import json
import math
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

from farlink.channels.calls.journal import HEADING, KINDS, Event, row_of
from farlink.errors import JournalError
from farlink.extras import require
from farlink.operator.journal.rows import Connection, History, Transition, checked, checked_time
from farlink.output import whole_file
from farlink.untrusted import parquet_table, printable, read_file, read_text

# Key -> its type. Values that are unknown are left out, or empty.
COLUMNS: dict[str, type] = {
    "time": str,
    "link": str,
    "event": str,
    "cause": str,
    "bars": int,
    "snr_db": float,
    "monotonic_s": float,
    "state": str,
    "attempt": int,
    "bytes_in": int,
    "bytes_out": int,
    "injected": bool,
    "caller": str,
    "boot_id": str,
    "number": int,
    "connection": int,
    "connection_start": str,
    "connection_end": str,
    "index": int,
    "nonsense_base64": str,
}
_REMEDY = "give an export of a journal"


def rows(history: History) -> Iterator[dict[str, Any]]:
    """A row for each transition, with the keys of `COLUMNS` that are known."""
    of_number = {connection.number: connection for connection in history.connections}
    for transition in history.transitions:
        yield _row(transition, of_number[transition.connection])


def write_jsonl(history: History, path: str | Path) -> None:
    """Write JSON Lines, which `farlink bundle fit` reads."""
    with whole_file(path) as temporary:
        temporary.write_text("".join(f"{line}\n" for line in jsonl(history)), encoding="utf-8")


def jsonl(history: History) -> Iterator[str]:
    """Lines of JSON, without their ends; the first is a heading."""
    yield HEADING
    for row in rows(history):
        yield json.dumps(row, ensure_ascii=False)


def read_jsonl(path: str | Path) -> History:
    """Read what `write_jsonl` wrote.

    Raises
    ------
    JournalError
        If the file is something else.
    """
    path = Path(path)
    found = []
    for at, line in enumerate(_text(path).split("\n"), start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise JournalError(f"{path}, line {at}: not JSON", "each line is one JSON object") from error
        if not isinstance(row, dict):
            raise JournalError(f"{path}, line {at}: not a JSON object", "each line is one JSON object")
        if "farlink_journal" not in row:
            found.append((row, f"{path}, line {at}"))
    return history_of(found)


def write_csv(history: History, path: str | Path) -> None:
    """Write CSV with a heading."""
    with whole_file(path) as temporary:
        temporary.write_text(csv_text(history), encoding="utf-8", newline="")


def csv_text(history: History) -> str:
    """The whole as CSV with a heading."""
    text = io.StringIO()
    writer = csv.DictWriter(text, list(COLUMNS), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows(history))
    return text.getvalue()


def read_csv(path: str | Path) -> History:
    """Read what `write_csv` wrote.

    Raises
    ------
    JournalError
        If the file is something else.
    """
    path = Path(path)
    found = []
    try:
        for at, row in enumerate(csv.DictReader(io.StringIO(_text(path), newline=""), strict=True), start=2):
            found.append(({key: parsed(key, text) for key, text in row.items() if text}, f"{path}, line {at}"))
    except csv.Error as error:
        raise JournalError(f"{path}: not CSV: {error}", _REMEDY) from error
    return history_of(found)


def write_parquet(history: History, path: str | Path) -> None:
    """Write a table of Parquet.

    Raises
    ------
    MissingExtraError
        If pyarrow is not installed.
    """
    pa = require("pyarrow", "Parquet")
    parquet = require("pyarrow.parquet", "Parquet")
    types = {str: pa.string(), int: pa.int64(), float: pa.float64(), bool: pa.bool_()}
    schema = pa.schema([(key, types[kind]) for key, kind in COLUMNS.items()])
    with whole_file(path) as temporary:
        parquet.write_table(pa.Table.from_pylist(list(rows(history)), schema=schema), temporary)


def read_parquet(path: str | Path) -> History:
    """Read what `write_parquet` wrote.

    Raises
    ------
    JournalError
        If the file is something else.
    MissingExtraError
        If pyarrow is not installed.
    """
    try:
        data = read_file(Path(path), JournalError)
    except OSError as error:
        raise JournalError(f"{path}: {error.strerror}", _REMEDY) from error
    table = parquet_table(data, str(path), JournalError)
    found = enumerate(table.to_pylist(), start=1)
    return history_of(
        [({key: value for key, value in row.items() if value is not None}, f"{path}, row {at}") for at, row in found]
    )


def _row(transition: Transition, connection: Connection) -> dict[str, Any]:
    kind = "ended" if transition.is_injected and transition.state == "dropped" else transition.state
    kind = kind if kind in KINDS else {"waiting": "alive", "held": "blocked"}[kind]
    event = Event(
        time_s=transition.time_s,
        link=transition.modem,
        kind=kind,
        cause=transition.cause,
        snr_db=math.nan if transition.snr_db is None else transition.snr_db,
        bars=transition.bars,
        monotonic_s=transition.monotonic_s,
    )
    row = {
        **row_of(event),
        "state": transition.state,
        "attempt": transition.attempt,
        "bytes_in": transition.bytes_in,
        "bytes_out": transition.bytes_out,
        "injected": transition.is_injected or None,
        "caller": transition.caller,
        "boot_id": transition.boot_id or None,
        "number": transition.number,
        "connection": connection.number,
        "connection_start": time_of(connection.start_s),
        "connection_end": None if connection.end_s is None else time_of(connection.end_s),
        "index": connection.indices.get(transition.modem),
        "nonsense_base64": base64.b64encode(transition.nonsense).decode() or None,
    }
    return {key: value for key, value in row.items() if value is not None}


def time_of(seconds: float) -> str:
    """A time as rows have it."""
    return str(row_of(Event(seconds, "", ""))["time"])


def history_of(found: Iterable[tuple[dict[str, Any], str]], silent: Iterable[tuple[dict[str, Any], str]] = ()) -> History:
    """The history in rows.

    Parameters
    ----------
    found
        Rows with keys of `COLUMNS`, and the place of each, for messages.
    silent
        Rows of modems without a transition: link, connection and index.

    Raises
    ------
    JournalError
        If a value is missing or cannot be.
    """
    transitions: list[Transition] = []
    connections: dict[int, Connection] = {}
    for row, where in found:
        _check_types(row, where)
        transitions.append(_transition(row, where))
        _join(connections, row, where)
    for row, where in silent:
        _check_types(row, where)
        _join(connections, row, where)
    members = []
    for one in sorted(connections.values(), key=lambda connection: connection.number):
        members.append(replace(one, indices=dict(sorted(one.indices.items(), key=lambda pair: pair[1]))))
    return History(tuple(members), tuple(sorted(transitions, key=lambda transition: transition.number)))


def _check_types(row: dict[str, Any], where: str) -> None:
    for key, kind in COLUMNS.items():
        value = row.get(key)
        is_right = isinstance(value, (float, int) if kind is float else kind) and isinstance(value, bool) == (kind is bool)
        if value is not None and not is_right:
            raise JournalError(f"{where}: {key}: {printable(value, 60)!r} is no {kind.__name__}", _REMEDY)


def _join(connections: dict[int, Connection], row: dict[str, Any], where: str) -> None:
    with _placed(where):
        number, end = row["connection"], row.get("connection_end")
        if number not in connections:
            start_s = checked_time(_seconds(row["connection_start"]))
            end_s = None if end is None else checked_time(_seconds(end))
            connections[number] = Connection(number, start_s, end_s)
        if row.get("index") is not None:
            connections[number].indices[row["link"]] = row["index"]


def _seconds(text: str) -> float:
    """A time as rows have it. That of a machine which knows no date yet (1970) is one, too."""
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise JournalError(f"time {printable(text, 40)!r} has no zone", "write it with Z, as 2026-07-04T12:00:00Z")
    return moment.timestamp()


def _transition(row: dict[str, Any], where: str) -> Transition:
    with _placed(where):
        given = Transition(
            connection=row["connection"],
            modem=row["link"],
            state=row["state"],
            time_s=_seconds(row["time"]),
            monotonic_s=float(row["monotonic_s"]),
            boot_id=row.get("boot_id", ""),
            cause=row.get("cause", ""),
            snr_db=row.get("snr_db"),
            bars=row.get("bars"),
            attempt=row.get("attempt"),
            bytes_in=row.get("bytes_in"),
            bytes_out=row.get("bytes_out"),
            is_injected=row.get("injected", False),
            caller=row.get("caller"),
            nonsense=base64.b64decode(row.get("nonsense_base64", ""), validate=True),
            number=row["number"],
        )
        return checked(given)


@contextmanager
def _placed(where: str) -> Iterator[None]:
    """Name the place of what is wrong with a row."""
    try:
        yield
    except JournalError as error:
        message = error.message if error.message.startswith(where) else f"{where}: {error.message}"
        raise JournalError(message, error.remedy) from error
    except KeyError as error:
        raise JournalError(f"{where}: {error.args[0]} is missing", _REMEDY) from error
    except (TypeError, ValueError, OverflowError) as error:
        raise JournalError(f"{where}: {printable(error)}", _REMEDY) from error


def parsed(key: str | None, text: str | list[str]) -> Any:
    """The value of a column in text; the text itself if it is none of its type."""
    kind = COLUMNS.get(key or "", str)
    if not isinstance(text, str):
        return None
    if kind is bool:
        return {"true": True, "false": False}.get(text.lower(), text)
    try:
        return kind(text)
    except ValueError:
        return text


def _text(path: Path) -> str:
    try:
        return read_text(path, JournalError)
    except (OSError, UnicodeDecodeError) as error:
        raise JournalError(f"{path}: cannot be read as text", _REMEDY) from error

"""Connections that a killed operator has left without an end: when they ended, and which lines were up then."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass

from farlink.operator.journal.rows import OBSERVATIONS, Transition
from farlink.operator.journal.sign_of_life import Life

CAUSE = "the operator was killed"

_OPEN = "SELECT number, start_s FROM connection WHERE end_s IS NULL ORDER BY number"
_MARKS = ", ".join(f"'{name}'" for name in OBSERVATIONS)
# SQLite takes the other columns from the row that has the highest number.
_LAST = "SELECT max(number), time_s, monotonic_s, boot_id FROM transition WHERE connection = ?"
_STATES = f"SELECT modem, state, max(number) FROM transition WHERE connection = ? AND state NOT IN ({_MARKS}) GROUP BY modem"


@dataclass(frozen=True)
class End:
    """The end of a connection, in s since 1970-01-01 UTC, and the lines that were up then."""

    connection: int
    end_s: float
    ended: tuple[Transition, ...] = ()


def found(database: sqlite3.Connection, life: Life | None) -> list[End]:
    """The ends of those that have none.

    Parameters
    ----------
    database
        The journal.
    life
        The last sign of life of who wrote it last.
    """
    ends = []
    newest = database.execute("SELECT max(number) FROM connection").fetchone()[0]
    for number, start_s in database.execute(_OPEN).fetchall():
        last, *at = database.execute(_LAST, (number,)).fetchone()
        if last is None:
            ends.append(End(number, start_s))
            continue
        time_s, monotonic_s, boot_id = at
        is_newest = number == newest
        if is_newest and life is not None and life.boot_id == boot_id and life.monotonic_s > monotonic_s:
            time_s, monotonic_s = max(0.0, life.time_s), life.monotonic_s
        # Of earlier ones the lines have long gone on: what is told late would stand behind what came later.
        states = database.execute(_STATES, (number,)).fetchall() if is_newest else []
        ended = tuple(
            Transition(number, modem, "ended", time_s, monotonic_s, boot_id, cause=CAUSE)
            for modem, state, _ in states
            if state == "connected"
        )
        ends.append(End(number, time_s, ended))
    return ends

"""Telemetry of cellular modems, once a second each, as FjordLink stores it: Parquet with the serving cell and the signal.

A change of the serving cell from one reading to the next is a handover. A reading without a serving cell is a drop, up to the
next one that has a cell: the modem had lost its network, or was at least so busy with finding one that it said nothing. The
times are those of readings, so that what is shorter than a second is not seen.

References
----------
FjordLink, Kiel University (ds-kiel), CC BY 4.0.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from farlink.channels.calls.journal import Event, shortened
from farlink.channels.calls.logs.telemetry import Table, column, times_s
from farlink.errors import JournalError

NAME = "fjordlink-5g"
DESCRIPTION = "FjordLink's readings of 5G modems, Parquet"

_LINK, _TIME, _CELL, _SNR = "identity", "@timestamp", "lte.lCurrentCellid", "lte.lSinr"
_CAUSE = "no serving cell"
# Readings come every second; after this number of seconds without one, the state of the link is unknown.
_SILENT_S = 10.0


def recognises(columns: list[str]) -> bool:
    """A table with the cells of named modems."""
    return {_LINK, _TIME, _CELL} <= set(columns)


def events(table: Table, name: str) -> Iterator[Event]:
    """Its events, of all modems in the order of time."""
    links, cells, snr = (column(table, one, name) for one in (_LINK, _CELL, _SNR))
    times = times_s(column(table, _TIME, name), name)
    found: list[Event] = []
    state: dict[str, tuple[float, str]] = {}
    for row, (link, time_s, given, ratio) in enumerate(zip(links, times, cells, snr, strict=True), start=1):
        where = f"{name}, row {row}"
        if not isinstance(link, str) or not link:
            raise JournalError(f"{where}: {_LINK} is missing", "leave the row out")
        cell = str(given or "").strip()
        last_s, before = state.get(link, (math.nan, ""))
        if time_s < last_s:
            message = f"{where}: the clock of {link} jumps back by {last_s - time_s:.3g} s"
            raise JournalError(message, "put the rows in order, or correct the times after the jump")
        if before and time_s - last_s > _SILENT_S:
            found.append(Event(last_s, link, "ended", source=where))
            before = ""
            found += _begin(time_s, link, cell, where)
        elif link not in state:
            found += _begin(time_s, link, cell, where)
        elif cell and not before:
            found.append(Event(time_s, link, "connected", source=where))
        elif before and not cell:
            found.append(Event(time_s, link, "dropped", _CAUSE, source=where))
        elif cell != before:
            found.append(Event(time_s, link, "handover", f"cell {before} to {cell}", source=where))
        value = _ratio(ratio, where)
        if cell and not math.isnan(value):
            found.append(Event(time_s, link, "snr", snr_db=value, source=where))
        else:
            found.append(Event(time_s, link, "alive", source=where))
        state[link] = (time_s, cell)
    # Each modem has a clock of its own readings; they are a fraction of a second out of order. The sort keeps ties.
    return iter(sorted(found, key=lambda event: event.time_s))


def _begin(time_s: float, link: str, cell: str, where: str) -> list[Event]:
    """A modem whose first reading has a cell was already up."""
    return [Event(time_s, link, "connected", is_exact=False, source=where)] if cell else []


def _ratio(value: Any, where: str) -> float:
    if value in (None, ""):
        return math.nan
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not math.isfinite(number):
        raise JournalError(f"{where}: {_SNR}: {shortened(str(value))!r} is no number", "leave the cell empty")
    return number

"""The table that `iridium_disconnect_analysis` makes of a Slocum glider's terminal logs: each call, and whether it dropped.

Lines ``name, value`` about the deployment come first, then a table whose columns begin with ``log file``. It has the time at
which a call was opened and not when it was lost: ends are not exact, and there are no up times.
"""

from __future__ import annotations

from collections.abc import Iterator

from farlink.channels.calls.clock import Clock
from farlink.channels.calls.journal import Event, shortened
from farlink.channels.calls.logs.csv_events import cells_of
from farlink.errors import JournalError

NAME = "slocum"
DESCRIPTION = "table of calls of a Slocum glider"

# The analysis writes UTC, and does not say so.
ZONE = "UTC"

_COLUMNS = ("log file", "open time", "disconnect")
_TRANSFER = "data transfer drop"
_TRUTH = {"true": True, "false": False}


def recognises(name: str, head: list[str]) -> bool:
    """A file with the columns of that table."""
    del name
    return any(line.lower().startswith("log file,open time,") for line in head)


def events(lines: list[str], name: str, clock: Clock | None = None) -> Iterator[Event]:
    """Its events: each call connected, and then dropped or ended at a time that is not known."""
    clock = clock or Clock(ZONE)
    rows = ((number, cells_of(line, ",", f"{name}, line {number}")) for number, line in enumerate(lines, start=1))
    about: dict[str, str] = {}
    columns: list[str] = []
    for _, cells in rows:
        if cells and cells[0].lower() == _COLUMNS[0]:
            columns = [cell.lower() for cell in cells]
            break
        if len(cells) == 2:
            about[cells[0]] = cells[1]
    missing = [column for column in _COLUMNS if column not in columns]
    if missing:
        raise JournalError(f"{name}: no column {missing[0]!r}", f"the table has the columns {', '.join(_COLUMNS)}")
    link = f"slocum-{about['glider_sn']}" if "glider_sn" in about else name.split(".")[0]
    for number, cells in rows:
        if not cells:
            continue
        where = f"{name}, line {number}"
        if len(cells) != len(columns):
            raise JournalError(f"{where}: {len(cells)} cells in {len(columns)} columns", "check the row")
        row = dict(zip(columns, cells, strict=True))
        time_s = clock.seconds(row["open time"], where)
        yield Event(time_s, link, "connected", source=where)
        if _truth(row, "disconnect", where):
            yield Event(time_s, link, "ended", is_exact=False, source=where)
        else:
            cause = "during a transfer" if _TRANSFER in row and _truth(row, _TRANSFER, where) else "outside a transfer"
            yield Event(time_s, link, "dropped", cause, is_exact=False, source=where)


def _truth(row: dict[str, str], column: str, where: str) -> bool:
    value = row[column].lower()
    if value not in _TRUTH:
        raise JournalError(f"{where}: {column}: {shortened(row[column])!r} is neither True nor False", "check the row")
    return _TRUTH[value]

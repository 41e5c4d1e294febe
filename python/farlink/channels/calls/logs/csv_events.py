"""Events as comma-separated values: time, link, event, and where known cause, snr_db, bars and monotonic_s."""

from __future__ import annotations

import csv
import itertools
from collections.abc import Iterator

from farlink.channels.calls.clock import Clock
from farlink.channels.calls.journal import Event, event_of, shortened
from farlink.errors import JournalError

NAME = "csv"
DESCRIPTION = "columns time, link, event and any of cause, snr_db, bars"

_REQUIRED = ("time", "link", "event")
_KNOWN = (*_REQUIRED, "cause", "snr_db", "bars", "monotonic_s")


def recognises(name: str, head: list[str]) -> bool:
    """A file whose first line other than comments names the columns."""
    del name
    titles = next((line for line in head if not line.startswith("#")), "")
    return set(_REQUIRED) <= {title.strip(' "').lower() for title in titles.split(_separator(titles))}


def events(lines: list[str], name: str, clock: Clock | None = None) -> Iterator[Event]:
    """Its events, a row each; lines that begin with # are comments."""
    rows = ((number, line) for number, line in enumerate(lines, start=1) if line.strip() and not line.startswith("#"))
    number, titles = next(rows, (1, ""))
    separator = _separator(titles)
    columns = [title.lower() for title in cells_of(titles, separator, f"{name}, line {number}")]
    missing = [column for column in _REQUIRED if column not in columns]
    if missing:
        where = f"{name}, line {number}"
        raise JournalError(f"{where}: no column {missing[0]} in {shortened(titles)!r}", f"columns: {', '.join(_KNOWN)}")
    for number, line in rows:
        where = f"{name}, line {number}"
        cells = cells_of(line, separator, where)
        if len(cells) > len(columns):
            raise JournalError(f"{where}: {len(cells)} cells in {len(columns)} columns", "put text with commas in quotes")
        row = dict(itertools.zip_longest(columns, cells, fillvalue=""))
        yield event_of({key: value for key, value in row.items() if key in _KNOWN}, where, clock)


def _separator(titles: str) -> str:
    return ";" if titles.count(";") > titles.count(",") else ","


def cells_of(line: str, separator: str, where: str) -> list[str]:
    """The cells of a line, without blanks around them.

    Raises
    ------
    JournalError
        If it is no line of comma-separated values.
    """
    try:
        return [cell.strip() for cell in next(csv.reader([line], delimiter=separator), [])]
    except csv.Error as error:
        raise JournalError(f"{where}: {error}", "check the quotes in the line") from error

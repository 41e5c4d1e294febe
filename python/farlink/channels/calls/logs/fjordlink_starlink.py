"""Telemetry of a Starlink dish, once a second, as FjordLink stores it: Parquet with the dish's state and its lost pings.

A drop is a reading in which the dish is not connected, or in which every ping of that second was lost. The dish does not say
when it goes over to another satellite: there are no handovers.

References
----------
FjordLink, Kiel University (ds-kiel), CC BY 4.0.
"""

from __future__ import annotations

from collections.abc import Iterator

from farlink.channels.calls.journal import Event, shortened
from farlink.channels.calls.logs.telemetry import Table, column, times_s
from farlink.errors import JournalError

NAME = "fjordlink-starlink"
DESCRIPTION = "FjordLink's readings of a Starlink dish, Parquet"
LINK = "starlink"

_TIME, _STATE, _LOST = "@timestamp", "dish_status.state", "dish_status.pop_ping_drop_rate"
_UP = "CONNECTED"
# Readings come every second, with pauses of 7 s every 15 minutes; after a longer silence nothing is known of the link.
_SILENT_S = 10.0


def recognises(columns: list[str]) -> bool:
    """A table with the state of a dish."""
    return {_TIME, _STATE, _LOST} <= set(columns)


def events(table: Table, name: str) -> Iterator[Event]:
    """Its events."""
    states, lost = (column(table, one, name) for one in (_STATE, _LOST))
    times = times_s(column(table, _TIME, name), name)
    is_up = is_dropped = False
    for row, (time_s, state, share) in enumerate(zip(times, states, lost, strict=True), start=1):
        where = f"{name}, row {row}"
        if not isinstance(share, int | float) or not 0 <= share <= 1:
            raise JournalError(f"{where}: {_LOST}: {shortened(str(share))!r} is no share from 0 to 1", "leave the row out")
        if row > 1 and is_up and time_s - times[row - 2] > _SILENT_S:
            yield Event(times[row - 2], LINK, "ended", source=where)
            is_up = is_dropped = False
        cause = f"state {state}" if state != _UP else "all pings lost" if share == 1 else ""
        if cause and is_up:
            yield Event(time_s, LINK, "dropped", cause, source=where)
            is_up, is_dropped = False, True
        elif not cause and not is_up:
            yield Event(time_s, LINK, "connected", is_exact=is_dropped, source=where)
            is_up = True
    if times:
        # The log ends with its last reading, not with its last event.
        yield Event(times[-1], LINK, "alive", source=f"{name}, row {len(times)}")

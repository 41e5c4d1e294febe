"""The clock of a log: converts its times to s since 1970."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from typing import Any

from farlink.errors import JournalError
from farlink.untrusted import printable

# Before this, a clock was never set; after it, it was set wrongly.
EARLIEST_S = datetime(1990, 1, 1, tzinfo=UTC).timestamp()
LATEST_S = datetime(2200, 1, 1, tzinfo=UTC).timestamp()

_MONTH_FIRST = re.compile(r"(\d{1,2})/(\d{1,2})/(\d{4}) +(\d{1,2}):(\d\d)(?::(\d\d))?")
_OFFSET = re.compile(r"([+-])(\d\d):?(\d\d)")
_REMEDY = "write it as 2026-07-04T12:00:03Z, or in s since 1970"


class Clock:
    """Reads the times of one log, in the order of its lines.

    Parameters
    ----------
    zone
        Where times without a zone were written: a name of the tz database, ``UTC``, or an offset such as ``+02:00``. Without
        it they are refused: an hour would be lost or gained where clocks change.

    Raises
    ------
    JournalError
        If there is no such zone.

    Examples
    --------
    >>> clock = Clock("America/Godthab")
    >>> clock.seconds("7/16/2004 13:51", "line 1") == clock.seconds("2004-07-16T15:51:00Z", "line 2")
    True
    """

    def __init__(self, zone: str | None = None) -> None:
        self._zone = None if zone is None else _zone(zone)
        self._name = zone
        self._last_s = EARLIEST_S

    def seconds(self, value: Any, where: str) -> float:
        """A time in s since 1970, from ISO 8601, from month/day/year and hour:minute, or from such seconds.

        Where clocks are put back, an hour comes twice: a time in it is the earlier one, unless that is before the line before.

        Parameters
        ----------
        value
            The time.
        where
            File and line, for messages.

        Raises
        ------
        JournalError
            If it is no time, has no zone, was left out when clocks were put forward, or no clock that was set shows it.
        """
        text = str(value).strip()
        try:
            seconds = float(text)
        except ValueError:
            seconds = self._placed(_moment(text, where), text, where)
        if not EARLIEST_S <= seconds <= LATEST_S:
            remedy = "lines before the clock was set cannot be placed: leave them out"
            raise JournalError(f"{where}: time: {_shown(text)} is not between 1990 and 2200: the clock jumps", remedy)
        self._last_s = seconds
        return seconds

    def _placed(self, moment: datetime, text: str, where: str) -> float:
        if moment.tzinfo is not None:
            return moment.timestamp()
        if self._zone is None:
            remedy = "say where it was written with --zone, for example --zone UTC or --zone Europe/Berlin"
            raise JournalError(f"{where}: time: {_shown(text)!r} has no zone", remedy)
        first, second = (moment.replace(tzinfo=self._zone, fold=fold).timestamp() for fold in (0, 1))
        if first > second:
            message = f"{where}: time: {_shown(text)!r} was left out in {self._name}, where clocks were put forward"
            raise JournalError(message, "give the zone in which the log was written")
        return second if first < self._last_s <= second else first


def _moment(text: str, where: str) -> datetime:
    found = _MONTH_FIRST.fullmatch(text)
    try:
        if found is not None:
            month, day, year, hour, minute = map(int, found.groups()[:5])
            return datetime(year, month, day, hour, minute, int(found[6] or 0))
        return datetime.fromisoformat(text)
    except ValueError as error:
        remedy = "the month comes first: 7/16/2004 13:51" if found is not None else _REMEDY
        raise JournalError(f"{where}: time: {_shown(text)!r} is no time", remedy) from error


def _zone(name: str) -> tzinfo:
    from zoneinfo import ZoneInfo

    offset = _OFFSET.fullmatch(name)
    if offset is not None and int(offset[2]) < 24 and int(offset[3]) < 60:
        shift = timedelta(hours=int(offset[2]), minutes=int(offset[3]))
        return timezone(shift if offset[1] == "+" else -shift)
    if name in ("UTC", "Z"):
        return UTC
    try:
        return ZoneInfo(name)
    # Python may raise any error of reading a file of that name.
    except (KeyError, ValueError, OSError) as error:
        remedy = "give UTC, an offset such as +02:00, or a name of the tz database such as Europe/Berlin"
        raise JournalError(f"zone {_shown(name)!r} is not known", remedy) from error


def _shown(text: str) -> str:
    return printable(text, 60)

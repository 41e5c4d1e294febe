"""How often may be probed, so that a day's probes stay within their budget. It has no clock."""

from __future__ import annotations

import math

from farlink.operator.interface.settings import DAY_S, InterfaceSettings

# A dead line is given up so much earlier than it must be: timers and the loop take their part.
_SPARE = 0.08
_MOST_SPARE_S = 0.25
# A clock that is set forth and back comes to few days.
_MOST_DAYS = 16


class Pace:
    """Bytes of a day's probes, and the time between two of them.

    Parameters
    ----------
    settings
        Of the line.

    Notes
    -----
    A day to which the clock is set back keeps what was spent on it.
    """

    def __init__(self, settings: InterfaceSettings) -> None:
        self._settings = settings
        self._day = -1
        self._spent: dict[int, int] = {}

    @property
    def bytes_today(self) -> int:
        """Bytes of probes and answers since midnight UTC, or since the start."""
        return self._spent.get(self._day, 0)

    def spend(self, count: int, unix_s: float) -> None:
        """Count bytes."""
        self._turn(unix_s)
        self._spent[self._day] = self.bytes_today + count
        if len(self._spent) > _MOST_DAYS:
            del self._spent[max(self._spent, key=lambda day: abs(day - self._day))]

    def is_spent(self, unix_s: float) -> bool:
        """Whether nothing more may be sent today."""
        return math.isinf(self.interval_s(unix_s))

    def interval_s(self, unix_s: float) -> float:
        """Time between two probes; infinite if the budget of the day is spent."""
        self._turn(unix_s)
        settings = self._settings
        if settings.probe_bytes_per_day is None:
            return settings.interval_s
        left = settings.probe_bytes_per_day - self.bytes_today
        if left < max(1, settings.probe_bytes):
            return math.inf
        return max(settings.interval_s, (DAY_S - unix_s % DAY_S) * settings.probe_bytes / left)

    def noticed_s(self, unix_s: float) -> float:
        """A line that is silent for so long is dead; longer than asked for if the budget has run low."""
        interval_s = self.interval_s(unix_s)
        noticed_s = max(self._settings.noticed_s, 2 * interval_s)
        return noticed_s - min(_SPARE * noticed_s, _MOST_SPARE_S)

    def _turn(self, unix_s: float) -> None:
        self._day = int(unix_s // DAY_S)

"""Probes over the interface of a bearer: a line of kind ``interface`` that lives as long as the call."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from farlink.operator.interface.pace import Pace
from farlink.operator.interface.settings import InterfaceSettings
from farlink.operator.lines.interface_line import InterfaceLine
from farlink.operator.lines.line import Report

_SEEN = (
    *("last_outward_s", "last_inward_s", "round_trip_s", "least_round_trip_s", "median_round_trip_s"),
    *("probe_bytes_today", "probe_interval_s", "noticed_s", "route_failure"),
)


class Probes:
    """Probes that run until `end`.

    Parameters
    ----------
    name
        Of the line.
    settings
        With the interface of the bearer.
    metric
        Of its default route.
    pace
        Of the probes of all calls: a day has one budget.
    wake
        Called when something has changed.
    note
        Gets what is worth an entry in the journal.

    Attributes
    ----------
    is_up
        Whether probes have been answered.
    failure
        Why they are not; once they have been, why they are no longer.
    """

    def __init__(
        self,
        name: str,
        settings: InterfaceSettings,
        metric: int,
        pace: Pace,
        *,
        wake: Callable[[], None],
        note: Callable[[str], None],
    ) -> None:
        self._line = InterfaceLine(name, settings, metric, self._reported, pace=pace)
        self._wake, self._note = wake, note
        self.is_up, self.failure = False, ""
        self._task = asyncio.create_task(self._run())
        self._line.dial(1)

    async def end(self) -> None:
        """End them, and remove their route."""
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    def observed(self) -> dict[str, Any]:
        """Times since answers, round trips, and what probes have cost."""
        seen = self._line.observed()
        return {key: seen[key] for key in _SEEN}

    async def _run(self) -> None:
        try:
            await self._line.run()
        except Exception as error:
            # A fault of this program ends the call, and is told as its cause.
            self.is_up, self.failure = False, f"internal error of probes: {error!r}"
            self._wake()

    def _reported(self, report: Report) -> None:
        match report.event:
            case "carrier":
                self._line.start_link(1)
            case "link-up":
                self.is_up, self.failure = True, ""
            case "port-gone":
                self.is_up, self.failure = False, report.cause
            case "port-back":
                self._line.dial(1)
            case "note":
                self._note(report.cause)
        self._wake()

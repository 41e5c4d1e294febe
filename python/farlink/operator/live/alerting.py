"""Alerts of a running operator: the bundle is looked at, and what is raised or cleared is told, recorded and delivered."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any

from farlink.operator.alerts import Alerts, Change, Raised, View
from farlink.operator.config import Bundle
from farlink.operator.journal import AlertRow
from farlink.operator.live.hooks import Hooks
from farlink.operator.live.recorder import Recorder

Status = Mapping[str, Any]


class Alerting:
    """Alerts of one bundle. A fault in here is told and shown, and stops no line.

    Parameters
    ----------
    bundle
        Whose they are.
    raised
        Alerts that an earlier operator has raised and not cleared, as its journal has them.
    recorder, hooks, tell
        Get what is raised and cleared.
    """

    def __init__(
        self,
        bundle: Bundle,
        raised: list[AlertRow],
        *,
        recorder: Recorder,
        hooks: Hooks,
        tell: Callable[[str], None],
    ) -> None:
        config = bundle.alerts
        self._bundle, self._config = bundle, config
        self._recorder, self._hooks, self._tell = recorder, hooks, tell
        self._alerts = Alerts(
            after_s=config.after_s, clear_s=config.clear_s, again_s=config.again_s, raised=map(_restored, raised)
        )
        self._fault = ""

    def look(self, status: Status) -> None:
        """Look at the bundle: raise and clear what is due."""
        try:
            self._look(status)
        except Exception as error:
            # A fault of this program: alerts are a convenience beside the lines.
            if not self._fault:
                self._tell(f"alerts: internal error: {error!r}")
            self._fault = f"internal error: {error!r}"

    def _look(self, status: Status) -> None:
        for change in self._alerts.observe(time.monotonic(), time.time(), self._view(status)):
            self._changed(change)

    def _view(self, status: Status) -> View:
        bundle = self._bundle
        return View(
            lines=tuple(status["lines"]),
            costs=status["costs"],
            bundle_budget=status["bundle_budget"],
            budgets={line.name: asdict(bundle.budget_of(line)) for line in bundle.lines},
            journal_failure=status["journal"]["failure"],
            hook_failure=self._hooks.last_failure,
            free_bytes=_free_bytes(bundle),
            least_free_bytes=self._config.free_bytes,
        )

    def _changed(self, change: Change) -> None:
        alert, kind = change.alert, change.kind
        self._tell(f"{kind}: {alert.words}" if kind != "again" else f"raised still: {alert.words}")
        if kind == "raised":
            self._recorder.raised(alert)
        elif kind == "cleared":
            self._recorder.cleared(alert)
        event = {"event": kind, "alert": alert.alert, "line": alert.line, "severity": alert.severity, "cause": alert.cause}
        self._hooks.tell({"bundle": self._bundle.name, **event})

    def status(self) -> list[dict[str, Any]]:
        """The alerts that are raised."""
        return self._alerts.status(time.time())

    @property
    def fault(self) -> str:
        """A fault of this program in the alerts; empty if there was none."""
        return self._fault


def _restored(row: AlertRow) -> Raised:
    return Raised(row.alert, row.line, row.severity, row.cause, row.raised_s, number=row.number, told_at=time.monotonic())


def _free_bytes(bundle: Bundle) -> float | None:
    """What this user may still write to the disk of the journal, in bytes."""
    try:
        found = os.statvfs(bundle.journal.parent)
    except OSError:
        return None
    return float(found.f_bavail * found.f_frsize)

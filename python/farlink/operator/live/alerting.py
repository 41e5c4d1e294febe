"""Alerts of a running operator: the bundle is looked at, and what is raised or cleared is told, recorded and delivered."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from farlink.operator.alerts import SEVERITIES, Alerts, Change, Raised, View
from farlink.operator.alerts.message import Message, stamp, text_of, type_of
from farlink.operator.alerts.outbox import Outbox
from farlink.operator.alerts.sender import Sender
from farlink.operator.config import Bundle, Secrets
from farlink.operator.config.kinds.at import profile_of
from farlink.operator.journal import AlertRow
from farlink.operator.lines.line import Pins
from farlink.operator.live.hooks import Hooks
from farlink.operator.live.recorder import Recorder
from farlink.operator.live.standby import StandbyLine

Status = Mapping[str, Any]

# The process that sends is ended when it had nothing to do for so long.
_IDLE_S = 60.0
# Facts: what waits for URLs, and what the stand-by line has told and has to tell.
_WAITING, _STANDBY = "messages that wait", "messages of the stand-by line"
# A message that is being sent at the end may take so long: the next operator would send it again.
_LAST_S = 2.0


class Alerting:
    """Alerts of one bundle. A fault in here is told and shown, and stops no line.

    Parameters
    ----------
    bundle
        Whose they are.
    raised
        Alerts that an earlier operator has raised and not cleared, as its journal has them.
    secrets, pins
        URLs of messages, and which PINs may be tried.
    folder
        That of ``bundle.toml``.
    recorder, hooks, tell
        Get what is raised and cleared.
    """

    def __init__(
        self,
        bundle: Bundle,
        raised: list[AlertRow],
        *,
        secrets: Secrets,
        pins: Pins,
        folder: Path,
        recorder: Recorder,
        hooks: Hooks,
        tell: Callable[[str], None],
    ) -> None:
        config = bundle.alerts
        self._bundle, self._config = bundle, config
        self._recorder, self._hooks, self._tell = recorder, hooks, tell
        self._alerts = Alerts(
            after_s=config.after_s,
            clear_s=config.clear_s,
            again_s=config.again_s,
            raised=map(_restored, raised),
            clean=secrets.hidden,
        )
        self._fault = ""
        self._sender = Sender(secrets.alert_urls)
        self._outbox = Outbox(secrets.alert_urls)
        self._standby = standby_of(bundle, secrets, pins, folder)
        self._tasks: set[asyncio.Task[None]] = set()
        self._up = 0
        self._used_at = time.monotonic()
        self._outbox.load(recorder.kept(_WAITING) or "")
        if self._standby is not None:
            self._standby.load(recorder.kept(_STANDBY) or "")
        self._kept = {_WAITING: self._outbox.dump(), _STANDBY: "" if self._standby is None else self._standby.dump()}
        if secrets.alert_urls and find_spec("apprise") is None:
            tell("warning: alerts are not sent, as Apprise is not installed: pip install 'farlink[alerts]'")

    def look(self, status: Status) -> None:
        """Look at the bundle: raise and clear what is due."""
        try:
            self._look(status)
        except Exception as error:
            # A fault of this program: alerts are a convenience beside the lines.
            is_first, self._fault = not self._fault, f"internal error: {error!r}"
            if is_first:
                self._tell(f"alerts: {self._fault}")
                # For the journal: the next operator, which does not know this alert, clears it.
                self._recorder.raised(Raised("alerts-failing", None, "critical", self._fault, time.time()))

    def _look(self, status: Status) -> None:
        for change in self._alerts.observe(time.monotonic(), time.time(), self._view(status)):
            self._changed(change)
        now, up = time.monotonic(), int(status["up"])
        if up > self._up:
            self._outbox.hurry(now)  # what is to go out may have a way now
        self._up = up
        self._deliver(now)
        if self._standby is not None:
            self._standby.look(self._alerts.raised, self._outbox)
        self._keep()

    def _deliver(self, now: float) -> None:
        for name in self._outbox.routes:
            messages = self._outbox.take(name, now)
            if messages:
                task = asyncio.create_task(self._send(name, messages))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)
        if not self._sender.is_idle:
            self._used_at = now
        elif now - self._used_at >= _IDLE_S and not self._tasks:
            task = asyncio.create_task(self._sender.close())
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
            self._used_at = now

    async def _send(self, name: str, messages: list[Message]) -> None:
        try:
            why = await self._sender.send(name, *text_of(messages), type_of(messages))
        except Exception as error:  # of this program; it is shown, and tried again
            why = f"internal error: {type(error).__name__}"
        sent = self._outbox.done(name, why, time.monotonic())
        if self._standby is not None:
            self._standby.delivered(sent)
        self._deliver(time.monotonic())

    def _keep(self) -> None:
        """Keep waiting messages for the next start; without a journal that can be written, they end with this process."""
        waiting = {_WAITING: self._outbox.dump(), _STANDBY: "" if self._standby is None else self._standby.dump()}
        for name, text in waiting.items():
            if text != self._kept[name] and self._recorder.keep(name, text):
                self._kept[name] = text

    async def close(self) -> None:
        """End what is being sent; what waits is sent by the next operator."""
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=_LAST_S)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._standby is not None:
            await self._standby.close()
        await self._sender.close()
        self._keep()

    def _view(self, status: Status) -> View:
        bundle = self._bundle
        return View(
            lines=tuple(status["lines"]),
            costs=status["costs"],
            bundle_budget=status["bundle_budget"],
            budgets={line.name: asdict(bundle.budget_of(line)) for line in bundle.lines},
            journal_failure=status["journal"]["failure"],
            hook_failure=self._hooks.last_failure,
            delivery_failure=self._outbox.failure(),
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
        if SEVERITIES.index(alert.severity) >= SEVERITIES.index(self._config.severity):
            at_s = time.time() if kind != "raised" else alert.since_unix_s
            key = f"{alert.alert} {alert.line or ''} {alert.since_unix_s:.3f}"
            words = alert.words if kind != "cleared" else f"{alert.title} (since {stamp(alert.since_unix_s)})"
            message = Message(self._bundle.name, kind, key, alert.title, words, alert.severity, at_s)
            self._outbox.put(message)
            if self._standby is not None:
                self._standby.put(message)
        event = {"event": kind, "alert": alert.alert, "line": alert.line, "severity": alert.severity, "cause": alert.cause}
        self._hooks.tell({"bundle": self._bundle.name, **event})

    def status(self) -> list[dict[str, Any]]:
        """The alerts that are raised."""
        return self._alerts.status(time.time())

    def delivery(self) -> dict[str, Any]:
        """How messages go out: a fault of this program, each URL by its name, and the stand-by line."""
        standby = None if self._standby is None else self._standby.status()
        return {"fault": self._fault, "routes": self._outbox.status(), "standby": standby}


def standby_of(bundle: Bundle, secrets: Secrets, pins: Pins, folder: Path) -> StandbyLine | None:
    """The stand-by line of a bundle; None if it has none.

    Raises
    ------
    OperatorError
        If the profile of its modem has mistakes.
    """
    standby = bundle.alerts.standby
    if standby is None:
        return None
    return StandbyLine(bundle, secrets, profile_of(standby.profile, folder), pins, folder=folder)


def _restored(row: AlertRow) -> Raised:
    # The time of day may be wrong, and be set right later: at least the time from now on counts.
    now, for_s = time.monotonic(), max(0.0, time.time() - row.raised_s)
    severity = row.severity if row.severity in SEVERITIES else "critical"  # of a newer version
    since_s, number = row.raised_s, row.number
    return Raised(row.alert, row.line, severity, row.cause, since_s, number=number, first_at=now - for_s, told_at=now)


def _free_bytes(bundle: Bundle) -> float | None:
    """Bytes that this user may still write to the disk of the journal."""
    try:
        found = os.statvfs(bundle.journal.parent)
    except OSError:
        return None
    return float(found.f_bavail * found.f_frsize)

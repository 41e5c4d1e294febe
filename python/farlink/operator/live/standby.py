"""The stand-by line: when nothing else goes out, people are told by a short message, or by a call over which messages go."""

from __future__ import annotations

import asyncio
import json
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import replace
from pathlib import Path

from farlink.errors import FarlinkError
from farlink.operator.alerts import Raised
from farlink.operator.alerts.message import Message, sms_of
from farlink.operator.alerts.outbox import Outbox
from farlink.operator.at import Profile
from farlink.operator.backend import BackEnd, back_end_of
from farlink.operator.config import Bundle, Line, Secrets
from farlink.operator.config.alerts import STANDBY, Standby
from farlink.operator.lines.line import Pins
from farlink.operator.lines.one_call import call
from farlink.operator.lines.sms import send_sms

TRIGGERS = ("bundle-down", "journal")
"""Alerts for which the stand-by line is used."""

_DAY_S = 86_400.0
_FIRST_PAUSE_S = 30.0
# While a call is up, messages are tried again and again for so long.
_CALL_S = 120.0
_LOOK_S = 0.2
# Beyond the modem's own limit for a dial, for the set-up of PPP.
_SET_UP_S = 60.0


class StandbyLine:
    """The stand-by line of a bundle.

    Parameters
    ----------
    bundle, secrets
        Whose it is; ``bundle.alerts.standby`` says how.
    profile
        Of its modem.
    pins
        Whether its PIN may be tried.
    folder
        That of ``bundle.toml``.
    """

    def __init__(self, bundle: Bundle, secrets: Secrets, profile: Profile, pins: Pins, *, folder: Path) -> None:
        assert bundle.alerts.standby is not None
        self._rules: Standby = bundle.alerts.standby
        self._bundle, self._secrets, self._profile, self._pins = bundle, secrets, profile, pins
        self._folder = folder
        # Short messages; a call has none of its own.
        self.outbox = Outbox([STANDBY] if self._rules.way == "sms" else [], pause_s=_FIRST_PAUSE_S)
        # Alerts that went out by a short message: that they are over goes out by one, too, unless another way has told it.
        # The time is that of the clear.
        self._told: dict[str, float | None] = {}
        # Alerts that are over while a message about them is sent: what says so, or None if another way has said it.
        self._over_meanwhile: dict[str, Message | None] = {}
        # Uses of the last 24 h, by the clock that nobody sets, and by that of the day for the next operator.
        self._used_at: deque[tuple[float, float]] = deque()
        self._task: asyncio.Task[None] | None = None
        self._call_at, self._call_failures = 0.0, 0
        self.why = ""

    @property
    def is_busy(self) -> bool:
        """Whether the line is in use."""
        return self._task is not None and not self._task.done()

    def put(self, message: Message) -> None:
        """Take a message, which goes out if the time for it comes."""
        if not self.outbox.routes:
            return
        if message.kind == "cleared" and message.key not in self._told:
            self.outbox.forget(STANDBY, [message.key])
            if self.outbox.is_sending(STANDBY, message.key):
                self._over_meanwhile[message.key] = message
            return
        if message.kind == "cleared":
            self._told[message.key] = time.monotonic()
        self.outbox.put(message)

    def delivered(self, messages: Iterable[Message]) -> None:
        """Other ways have delivered these."""
        for one in messages if self.outbox.routes else ():
            self.outbox.forget(STANDBY, [one.key])
            if one.kind == "cleared":
                self._told.pop(one.key, None)
                if self.outbox.is_sending(STANDBY, one.key):
                    self._over_meanwhile[one.key] = None

    def look(self, raised: Iterable[Raised], others: Outbox) -> None:
        """Use the line if it is time to.

        Parameters
        ----------
        raised
            The alerts that are raised.
        others
            What waits for other ways.
        """
        if self.is_busy:
            return
        now = time.monotonic()
        while self._used_at and now - self._used_at[0][0] >= _DAY_S:
            self._used_at.popleft()
        if len(self._used_at) >= self._rules.most_per_day:
            self.why = f"used {len(self._used_at)} times in 24 h, as often as most_per_day says"
            return
        is_due = any(one.alert in TRIGGERS and now - one.first_at >= self._rules.after_s for one in raised)
        if self._rules.way == "sms":
            if any(self._is_worth_it(one, now, others, is_due=is_due) for one in self.outbox.messages(STANDBY)):
                self._send_what_waits(now)
        elif is_due and now >= self._call_at and any(others.waiting(name) for name in others.routes):
            self._task = asyncio.create_task(self._call(others))

    def _is_worth_it(self, message: Message, now: float, others: Outbox, *, is_due: bool) -> bool:
        """Whether it costs a short message; what is less goes with the next one."""
        if message.kind != "cleared":
            return is_due and message.severity == "critical"
        at = self._told.get(message.key)
        # Messages that other ways can carry cost no call.
        return at is not None and now - at >= (self._rules.after_s if others.routes else 0.0)

    def _send_what_waits(self, now: float) -> None:
        messages = self.outbox.take(STANDBY, now)
        if messages:
            self._task = asyncio.create_task(self._send(messages))

    async def send(self, messages: list[Message]) -> str:
        """Send a short message about these now; empty if the network has it, else why not."""
        rules = self._rules
        return await send_sms(
            STANDBY,
            rules.port,
            self._profile,
            number=rules.number,
            text=sms_of(messages),
            pins=self._pins,
            pin=self._secrets.pins.get(STANDBY),
        )

    async def _send(self, messages: list[Message]) -> None:
        try:
            self.why = await self.send(messages)
        except Exception as error:  # of this program; it is shown, and tried again
            self.why = f"internal error: {error!r}"
        for one in self.outbox.done(STANDBY, self.why, time.monotonic()):
            if one.kind == "cleared":
                self._told.pop(one.key, None)
            else:
                self._told.setdefault(one.key, None)
        if not self.why:
            self._note_use()
        over, self._over_meanwhile = self._over_meanwhile, {}
        for key, message in over.items():
            if message is not None and key in self._told:
                self.put(message)
            else:
                self.outbox.forget(STANDBY, [key])
                self._told.pop(key, None)

    def _note_use(self) -> None:
        self._used_at.append((time.monotonic(), round(time.time(), 3)))

    async def _call(self, others: Outbox) -> None:
        async def deliver() -> None:
            others.hurry(time.monotonic())
            until = time.monotonic() + _CALL_S
            while time.monotonic() < until and any(others.waiting(name) for name in others.routes):
                await asyncio.sleep(_LOOK_S)

        self._note_use()
        try:
            self.why = await self._made(deliver)
        except FarlinkError as error:
            self.why = error.message
        except Exception as error:  # of this program; it is shown, and tried again
            self.why = f"internal error: {error!r}"
        # A message that could not be delivered over a call that was up costs another call: it pauses, too.
        is_done = not self.why and not any(others.waiting(name) for name in others.routes)
        self._call_failures = 0 if is_done else self._call_failures + 1
        pause_s = 0.0 if is_done else min(_FIRST_PAUSE_S * 2.0 ** min(self._call_failures, 20), 3600.0)
        self._call_at = time.monotonic() + pause_s

    async def _made(self, deliver: Callable[[], Awaitable[None]]) -> str:
        rules = self._rules
        line = Line(STANDBY, rules.port, rules.profile, number=rules.number, rate_bps=rules.rate_bps)
        alone = replace(
            self._bundle,
            name=f"{self._bundle.name}-{STANDBY}",
            lines=(line,),
            use=1,
            # Of marks of processes.
            journal=self._bundle.journal.with_name(f"{self._bundle.journal.name}.{STANDBY}"),
        )
        back_end: BackEnd = back_end_of(alone, self._secrets, profiles_folder=self._folder)
        missing = back_end.missing()
        if missing is not None:
            return missing
        back_end.prepare()
        return await call(
            line,
            self._profile,
            back_end,
            pins=self._pins,
            pin=self._secrets.pins.get(STANDBY),
            meanwhile=deliver,
            set_up_limit_s=self._profile.dial_limit_s + _SET_UP_S,
        )

    async def close(self) -> None:
        """End what the line does."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    def dump(self) -> str:
        """Waiting messages, delivered ones and times of use, as text for `load`."""
        used_unix_s = [unix_s for _, unix_s in self._used_at]
        return json.dumps({"waiting": self.outbox.dump(), "told": sorted(self._told), "used_unix_s": used_unix_s})

    def load(self, text: str) -> None:
        """Take what an earlier operator had waiting, has told, and has used the line for; nonsense is left out."""
        try:
            kept = json.loads(text or "{}")
            self.outbox.load(str(kept.get("waiting", "")))
            told = [str(key) for key in kept.get("told", [])]
            used_unix_s = [float(unix_s) for unix_s in kept.get("used_unix_s", [])]
        except (ValueError, TypeError, AttributeError, RecursionError):
            return
        now, unix_s = time.monotonic(), time.time()
        # A clock that was set back shows uses to come: they are of now.
        self._used_at = deque(sorted((now - max(0.0, unix_s - at), at) for at in used_unix_s))
        waiting = self.outbox.messages(STANDBY) if self.outbox.routes else []
        over = {one.key for one in waiting if one.kind == "cleared"}
        self._told = {key: now if key in over else None for key in told}

    def status(self) -> dict[str, object]:
        """Its state, for `farlink bundle status`."""
        return {
            "way": self._rules.way,
            "is_busy": self.is_busy,
            "used_today": len(self._used_at),
            "waiting": sum(self.outbox.waiting(name) for name in self.outbox.routes),
            "why": self.why,
        }

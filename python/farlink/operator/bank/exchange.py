"""The telephone exchange of a bank: dials, rings, calls and their ends. It has no clock; times are arguments."""

from __future__ import annotations

import math
import random
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from farlink.operator.at.profiles import SCALES
from farlink.operator.bank.config import BankConfig, ModemConfig, Scripted
from farlink.operator.bank.drops import Drops
from farlink.operator.bank.modem import Modem, Phase
from farlink.operator.bank.pace import Pace

_RING_EVERY_S = 4.0
_MOST_MESSAGES = 1000


@dataclass(eq=False)
class _Attempt:
    """A dial that has no result yet."""

    caller: Modem
    called: Modem | None
    # When it ends with `result`; while the called modem rings, when that gives up.
    ends_at: float
    result: str
    cause: str
    rings_at: float | None = None
    rings: int = 0


@dataclass(eq=False)
class _Call:
    """A call that is up, and the two directions of its bytes."""

    ends: tuple[Modem, Modem]
    paces: tuple[Pace, Pace]
    drops_at: float
    # From each end, so much has arrived at the other.
    carried_bytes: list[int] = field(default_factory=lambda: [0, 0])

    def pace_from(self, modem: Modem) -> Pace:
        return self.paces[0] if modem is self.ends[0] else self.paces[1]

    def other(self, modem: Modem) -> Modem:
        return self.ends[1] if modem is self.ends[0] else self.ends[0]


def _modem_of(config: ModemConfig) -> Modem:
    return Modem(config.name, config.number, config.profile, config.pin, config.signal, hides_number=config.hides_number)


class Exchange:
    """Modems that call each other.

    Parameters
    ----------
    config
        The bank.
    tell
        Gets each thing that happens, as a text with the modem's name; by default nobody.

    Attributes
    ----------
    messages
        The last 1000 short messages: names of sender and receiver, or the number that no modem has, and the text.
    """

    def __init__(self, config: BankConfig, tell: Callable[[float, str], None] | None = None) -> None:
        self._config = config
        self._listener = tell
        self.modems = {one.name: _modem_of(one) for one in config.modems}
        self._by_number = {modem.number: modem for modem in self.modems.values()}
        # One stream a modem, so that the calls of one do not change those of another.
        self._drops = {
            one.name: Drops(random.Random(f"{config.seed} {one.name}"), mean_up_s=one.mean_up_s, recorded_s=one.recorded_s)
            for one in config.modems
        }
        self._attempts: list[_Attempt] = []
        self._calls: list[_Call] = []
        self._script: deque[Scripted] = deque(config.events)
        self._lost: set[str] = set()
        self.messages: list[tuple[str, str, str]] = []

    def typed(self, modem: Modem, data: bytes, now: float) -> None:
        """Take bytes of a modem's terminal; no more than `room` while a call is up, or the rest is lost."""
        self.advance(now)
        payload = modem.typed(data, now)
        self._obey(modem, now)
        call = self._call_of(modem)
        if call is not None and payload and not (modem.is_deaf or call.other(modem).is_deaf):
            call.pace_from(modem).put(payload, now)

    def room(self, modem: Modem, now: float) -> int:
        """How many bytes of its terminal a modem takes now."""
        call = self._call_of(modem)
        return 4096 if call is None or modem.phase is not Phase.ONLINE else call.pace_from(modem).room(now)

    def closed(self, modem: Modem, now: float) -> None:
        """The terminal of a modem was closed, so that DTR fell: it hangs up."""
        modem.drop_dtr()
        self._obey(modem, now)

    def take_lost(self, modem: Modem) -> bool:
        """Whether the modem has lost its carrier since the last time that this was asked."""
        is_lost = modem.name in self._lost
        self._lost.discard(modem.name)
        return is_lost

    def carried_bytes(self, modem: Modem) -> int | None:
        """How many bytes of this modem have arrived at the other end of its call; None without a call."""
        call = self._call_of(modem)
        return None if call is None else call.carried_bytes[call.ends.index(modem)]

    def poll_timeout(self) -> float | None:
        """When `advance` has to be called."""
        times = [attempt.ends_at for attempt in self._attempts]
        times += [attempt.rings_at for attempt in self._attempts if attempt.rings_at is not None]
        times += [call.drops_at for call in self._calls if math.isfinite(call.drops_at)]
        times += [at for call in self._calls for pace in call.paces if (at := pace.next_at) is not None]
        times += [at for modem in self.modems.values() if (at := modem.poll_timeout) is not None]
        if self._script:
            times.append(self._script[0].at_s)
        return min(times, default=None)

    def advance(self, now: float) -> None:
        """Let everything happen that is due."""
        while self._script and self._script[0].at_s <= now:
            self.do(self._script.popleft(), now)
        for attempt in list(self._attempts):
            self._advance_attempt(attempt, now)
        for call in list(self._calls):
            if now >= call.drops_at:
                self._drop(call, now, "NO CARRIER")
                continue
            for at, (sender, pace) in enumerate(zip(call.ends, call.paces, strict=True)):
                arrived, receiver = pace.take(now), call.other(sender)
                # After +++ a modem listens to its terminal, and what arrives is lost.
                if receiver.phase is Phase.ONLINE and not (sender.is_deaf or receiver.is_deaf):
                    receiver.output += arrived
                    call.carried_bytes[at] += len(arrived)
        for modem in self.modems.values():
            modem.advance(now)

    def do(self, event: Scripted, now: float) -> None:
        """Let an event happen now, whenever it was meant to happen."""
        modem = self.modems[event.modem]
        self._tell(now, f"{modem.name}: {event.action}{f' {event.level}' if event.action == 'signal' else ''}")
        match event.action:
            case "drop":
                self._cut(modem, now, "NO CARRIER")
            case "signal":
                modem.signal = min(event.level, max(SCALES[modem.profile.signal], 1))
                if modem.signal == 0:
                    self._cut(modem, now, "no signal")
            case _:
                modem.is_busy = event.action == "busy"
                modem.is_silent = event.action == "silent"
                modem.is_deaf = event.action == "deaf"

    def _tell(self, now: float, said: str) -> None:
        if self._listener is not None:
            self._listener(now, said)

    def _obey(self, modem: Modem, now: float) -> None:
        """Do what a modem wants after a line, or the end, of its terminal."""
        if modem.hangs_up:
            modem.hangs_up, phase = False, modem.phase
            self._hang_up(modem, now)
            if modem.dials is not None or modem.answers:
                modem.phase = phase  # a line ended one call and began the next
        for number, text in modem.sent_sms:
            self._deliver(modem, number, text, now)
        modem.sent_sms.clear()
        if modem.dials is not None:
            number, modem.dials = modem.dials, None
            self._dial(modem, number, now)
        if modem.answers:
            modem.answers = False
            attempt = self._attempt_to(modem)
            if attempt is None:
                modem.end("no call", result="NO CARRIER")
            else:
                self._answer(attempt, now)

    def _deliver(self, sender: Modem, number: str, text: str, now: float) -> None:
        """A short message is on its way; whether anybody has the number, its sender is not told."""
        receiver = self._called(number)
        self.messages.append((sender.name, receiver.name if receiver else number, text))
        del self.messages[:-_MOST_MESSAGES]
        self._tell(now, f"{sender.name} sends a short message to {receiver.name if receiver else number}: {text}")

    def _called(self, number: str) -> Modem | None:
        # The prefix of international calls, 00, is no part of a number.
        return self._by_number.get(number) or self._by_number.get(number.lstrip("+").removeprefix("00"))

    def _dial(self, caller: Modem, number: str, now: float) -> None:
        called = self._called(number)
        self._tell(now, f"{caller.name} dials {called.name if called else number}")
        set_up_at = now + self._config.set_up_s
        if called is None:
            attempt = _Attempt(caller, None, set_up_at, "NO CARRIER", "no such number")
        elif called is caller or called.is_busy or called.phase is not Phase.COMMAND or self._attempt_to(called) is not None:
            attempt = _Attempt(caller, None, set_up_at, "BUSY", "user busy")
        else:
            limit_at = now + self._config.ring_limit_s
            reachable = called.signal > 0 and not called.is_silent
            attempt = _Attempt(caller, called, limit_at, "NO ANSWER", "no answer", now if reachable else None)
        self._attempts.append(attempt)

    def _advance_attempt(self, attempt: _Attempt, now: float) -> None:
        called = attempt.called
        if called is not None and called.phase not in (Phase.COMMAND, Phase.ANSWERING):
            # It dials itself meanwhile.
            attempt.called, attempt.rings_at, attempt.ends_at = None, None, now
            attempt.result, attempt.cause, called.is_ringing, called = "BUSY", "user busy", False, None
        if now >= attempt.ends_at:
            self._attempts.remove(attempt)
            if called is not None and called.phase is Phase.ANSWERING:
                self._connect(attempt.caller, called, now)
                return
            if called is not None:
                called.is_ringing = False
            self._tell(now, f"{attempt.caller.name} gets {attempt.result}")
            attempt.caller.end(attempt.cause, result=attempt.result)
        elif attempt.rings_at is not None and now >= attempt.rings_at and called is not None:
            attempt.rings_at, attempt.rings = now + _RING_EVERY_S, attempt.rings + 1
            called.is_ringing = True
            called.ring(attempt.caller)
            if called.has_dtr and 0 < called.rings_to_answer <= attempt.rings:
                called.phase = Phase.ANSWERING
                self._answer(attempt, now)

    def _answer(self, attempt: _Attempt, now: float) -> None:
        attempt.ends_at, attempt.rings_at = now + self._config.set_up_s, None

    def _connect(self, caller: Modem, called: Modem, now: float) -> None:
        line = self._config
        paces = [Pace(rate_bps=line.rate_bps, delay_s=line.delay_s, buffer_bytes=line.buffer_bytes) for _ in range(2)]
        # Of the one who dials: with a process at both ends calls would drop twice as often as is asked for.
        drops_at = now + self._drops[caller.name].next_s()
        self._calls.append(_Call((caller, called), (paces[0], paces[1]), drops_at))
        for modem in (caller, called):
            modem.is_ringing, modem.phase = False, Phase.ONLINE
            modem.result("CONNECT")
        self._tell(now, f"{caller.name} and {called.name} are connected")

    def _drop(self, call: _Call, now: float, cause: str) -> None:
        self._calls.remove(call)
        for modem in call.ends:
            self._lose(modem, cause)
        self._tell(now, f"{call.ends[0].name} and {call.ends[1].name} are cut off: {cause}")

    def _lose(self, modem: Modem, cause: str) -> None:
        modem.output.clear()
        modem.end(cause, result="NO CARRIER")
        self._lost.add(modem.name)

    def _hang_up(self, modem: Modem, now: float) -> None:
        for attempt in list(self._attempts):
            if attempt.caller is modem:
                self._attempts.remove(attempt)
                if attempt.called is not None:
                    was_answering = attempt.called.phase is Phase.ANSWERING
                    attempt.called.end("the caller gave up", result="NO CARRIER" if was_answering else None)
            elif attempt.called is modem and modem.phase is not Phase.COMMAND:
                self._attempts.remove(attempt)
                attempt.caller.end("call refused", result="NO CARRIER")
        call = self._call_of(modem)
        if call is not None:
            self._calls.remove(call)
            self._lose(call.other(modem), "the other side hung up")
            self._tell(now, f"{modem.name} hangs up on {call.other(modem).name}")
        is_ringing = modem.is_ringing
        modem.end("normal", result=None)
        modem.is_ringing = is_ringing and self._attempt_to(modem) is not None

    def _cut(self, modem: Modem, now: float, cause: str) -> None:
        call = self._call_of(modem)
        if call is not None:
            self._drop(call, now, cause)
            return
        attempt = next((one for one in self._attempts if modem in (one.caller, one.called)), None)
        if attempt is not None:
            self._attempts.remove(attempt)
            attempt.caller.end(cause, result="NO CARRIER")
            if attempt.called is not None:
                attempt.called.end(cause, result="NO CARRIER" if attempt.called.phase is Phase.ANSWERING else None)

    def _call_of(self, modem: Modem) -> _Call | None:
        return next((call for call in self._calls if modem in call.ends), None)

    def _attempt_to(self, modem: Modem) -> _Attempt | None:
        return next((attempt for attempt in self._attempts if attempt.called is modem), None)

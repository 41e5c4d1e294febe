"""The dialogue with one modem: bytes and times in, bytes and events out. It has no clock and no serial port.

Call `Dialogue.feed` with what the modem sent, and with no bytes at `Dialogue.poll_timeout`; write what `Dialogue.poll_output`
gives.
"""

from __future__ import annotations

import re
from collections import deque
from dataclasses import dataclass, field
from enum import Enum
from typing import Literal

from farlink.errors import ArgumentError
from farlink.operator.at import events as ev
from farlink.operator.at.answers import (
    REGISTRATIONS,
    caller_of,
    cause_of,
    is_registered,
    pin_of,
    registration_of,
    signal_of,
)
from farlink.operator.at.lines import Lines, Tail
from farlink.operator.at.profiles import SCALES, Profile
from farlink.operator.at.results import Final, final_of

_NUMBER = re.compile(r"\+?[0-9*#][0-9*#,]{0,31}")
_PIN = re.compile(r"[0-9]{4,8}")
# A modem that has just been opened may not know the speed yet, or be amid a command: its first lines are said again.
_TRIES = 3
# Iridium hangs up within a second or two.
_HANG_UP_LIMIT_S = 10.0
# V.250: no data for a second before and after "+++".
_GUARD_S = 1.0
# DTR is low for a second.
_DTR_S = 1.5
# Modems ring every 3 to 6 s.
_RING_LAPSE_S = 10.0
# +CLIP comes right behind RING, or not at all.
_CALLER_LIMIT_S = 2.0
_ANSWER_LIMIT_S = 90.0
_NO_CARRIER = b"\r\nNO CARRIER\r\n"
# Of a short message: satellites may have to be waited for.
_SMS_LIMIT_S = 90.0
_CTRL_Z, _ESC = b"\x1a", b"\x1b"
_MOST_ANSWER_LINES = 64
_MOST_QUEUE = 16


class State(Enum):
    """Where a dialogue is."""

    CLOSED = "closed"
    STARTING = "starting"
    READY = "ready"
    DIALLING = "dialling"
    ANSWERING = "answering"
    ONLINE = "online"
    HANGING_UP = "hanging up"
    FAILED = "failed"


_Purpose = Literal["init", "pin?", "pin", "clip", "creg", "csq", "dial", "answer", "escape", "hang up", "cause", "ask", "sms"]


@dataclass
class _Command:
    text: str
    purpose: _Purpose
    limit_s: float
    pause_s: float = 0.0
    tries: int = 1
    # The text that is written, if it is not the line.
    raw: bytes | None = None
    # The text that is written once the modem asks for it with ">".
    prompted: bytes = b""
    lines: list[str] = field(default_factory=list)

    @property
    def written(self) -> bytes:
        return self.text.encode("ascii") + b"\r" if self.raw is None else self.raw


class Dialogue:
    r"""What is said to one modem.

    Parameters
    ----------
    profile
        Of the modem.
    pin
        Of its SIM. `PinNeeded` asks whether it may be tried; it is not tried again after anything but OK.
    is_pin_spent
        Whether the SIM has refused this PIN before. Three wrong ones lock it.
    asks_callers
        Whether the modem is to say who calls, if its profile knows how. A modem that refuses is ready all the same.

    Raises
    ------
    ArgumentError
        If the PIN is none.

    Examples
    --------
    >>> from farlink.operator.at.profiles import load
    >>> dialogue = Dialogue(load("hayes"))
    >>> dialogue.start(now=0.0)
    >>> dialogue.poll_output()
    b'ATZ\r'
    >>> dialogue.feed(b"ATZ\r\r\nOK\r\n", now=0.1), dialogue.poll_output()
    ([], b'ATE1Q0V1X4&C1&D2\r')
    >>> dialogue.feed(b"\r\nOK\r\n", now=0.2)
    [Ready()]
    >>> dialogue.dial("5550123", now=1.0)
    [Dialling(number='5550123')]
    >>> dialogue.feed(b"\r\nCONNECT 9600\r\n~data", now=20.0)
    [Connected(speed_bps=9600, is_incoming=False), Data(content=b'~data')]
    """

    def __init__(
        self, profile: Profile, *, pin: str | None = None, is_pin_spent: bool = False, asks_callers: bool = False
    ) -> None:
        if pin is not None and not _PIN.fullmatch(pin):
            raise ArgumentError("the PIN of a SIM has 4 to 8 digits; the given one has not", "correct it in the secrets file")
        self._profile = profile
        self._pin = pin
        self._is_pin_spent = is_pin_spent
        self._is_pin_awaited = False
        self._state = State.CLOSED
        self._queue: deque[_Command] = deque()
        self._current: _Command | None = None
        self._deadline: float | None = None
        self._send_at: float | None = None
        self._ring_at: float | None = None
        self._drop_at: float | None = None
        self._output = bytearray()
        self._lines = Lines()
        self._tail = Tail(() if pin is None else (pin.encode("ascii"),))
        self._echoes: deque[str] = deque(maxlen=4)
        self._last_data = b""
        self._swallows_lf = False
        self._is_registered = False
        self._ends_online = False
        self._asks_callers = asks_callers and profile.names_callers
        self._is_clip_asked = self._names_callers = False
        self._caller_at: float | None = None

    @property
    def names_callers(self) -> bool:
        """Whether the modem says who calls."""
        return self._names_callers

    @property
    def state(self) -> State:
        """Where the dialogue is."""
        return self._state

    @property
    def is_idle(self) -> bool:
        """Whether nothing is asked and nothing waits to be asked."""
        return self._current is None and not self._queue

    @property
    def tail(self) -> bytes:
        """The last 4 KB that the modem sent outside calls, without the PIN."""
        return self._tail.content

    def start(self, now: float) -> None:
        """Begin, or begin anew: the modem gets the lines of its profile. Ends in `Ready` or `Failed`."""
        self._reset()
        self._state = State.STARTING
        profile = self._profile
        for line in profile.init:
            self._queue.append(_Command(line, "init", profile.command_limit_s, tries=_TRIES))
        if profile.has_sim:
            self._queue.append(_Command("AT+CPIN?", "pin?", profile.command_limit_s, tries=_TRIES))
        self._next(now)

    def enter_pin(self, now: float) -> None:
        """Try the PIN, as `PinNeeded` asks. Whoever calls this has first noted, for good, that the PIN is tried."""
        if not self._is_pin_awaited:
            raise ArgumentError("the SIM does not wait for its PIN", "wait for PinNeeded")
        self._is_pin_awaited = False
        self._is_pin_spent = True  # until it is accepted
        self._queue.append(_Command(f'AT+CPIN="{self._pin}"', "pin", 4 * self._profile.command_limit_s))
        self._next(now)

    def ask_signal(self, now: float) -> None:
        """Ask for registration, then for the signal. Without registration the signal is None and is not asked for."""
        self._expect(State.READY)
        if any(one.purpose in ("creg", "csq") for one in self._waiting()):
            return
        profile = self._profile
        if profile.registers:
            self._queue.append(_Command("AT+CREG?", "creg", profile.command_limit_s))
        if SCALES[profile.signal] and not profile.registers:
            self._queue.append(_Command("AT+CSQ", "csq", profile.signal_limit_s))
        self._next(now)

    def ask(self, command: str, now: float, limit_s: float | None = None) -> None:
        """Ask a line of one's own; `Answered` tells the result."""
        self._expect(State.READY)
        if not re.fullmatch(r"[Aa][Tt][ -~]{0,200}", command):
            raise ArgumentError(f"{command!r} is no AT command", "give a line that begins with AT")
        self._room()
        self._queue.append(_Command(command, "ask", self._profile.command_limit_s if limit_s is None else limit_s))
        self._next(now)

    def send_sms(self, pdu: str, length: int, now: float) -> None:
        """Send a short message. Ends in `SmsSent`.

        Parameters
        ----------
        pdu, length
            Its SMS-SUBMIT in hexadecimal, and the length of that in octets (3GPP TS 27.005, section 3.5.1).
        """
        self._expect(State.READY)
        if not re.fullmatch(r"[0-9A-F]{2,360}", pdu):
            raise ArgumentError(f"{pdu[:20]!r} is no short message", "give it in hexadecimal")
        self._room()
        self._queue.append(_Command("AT+CMGF=0", "sms", self._profile.command_limit_s))
        self._queue.append(_Command(f"AT+CMGS={length}", "sms", _SMS_LIMIT_S, prompted=pdu.encode("ascii") + _CTRL_Z))
        self._next(now)

    def dial(self, number: str, now: float) -> list[ev.Event]:
        """Dial a number. Ends in `Connected` or `DialFailed`."""
        self._expect(State.READY)
        if not _NUMBER.fullmatch(number):
            raise ArgumentError(f"{number!r} is no number to dial", "give digits, for example 00881600005123")
        self._room()
        self._state = State.DIALLING
        line = self._profile.dial.replace("{number}", number)
        self._queue.append(_Command(line, "dial", self._profile.dial_limit_s))
        self._next(now)
        return [ev.Dialling(number)]

    def answer(self, now: float) -> None:
        """Take a call. Ends in `Connected` or `DialFailed`."""
        self._expect(State.READY)
        self._room()
        # A call that is being taken rings no more, however long its set-up takes.
        self._stop_ringing()
        self._state = State.ANSWERING
        self._queue.append(_Command("ATA", "answer", _ANSWER_LIMIT_S))
        self._next(now)

    def hang_up(self, now: float) -> list[ev.Event]:
        """End a call, a dial or an answer. Ends in `HungUp`."""
        if self._state not in (State.ONLINE, State.DIALLING, State.ANSWERING):
            return []
        return self._end_call(now, is_online=self._state is State.ONLINE)

    def carrier(self, is_up: bool, now: float) -> list[ev.Event]:
        """Tell of DCD: a call whose carrier is gone has dropped."""
        return self._dropped("DCD", now) if not is_up and self._state is State.ONLINE else []

    def poll_output(self) -> bytes:
        """Bytes to write to the modem."""
        written = bytes(self._output)
        self._output.clear()
        return written

    def poll_timeout(self) -> float | None:
        """When `feed` has to be called at the latest; None if it may wait for bytes."""
        times = (self._deadline, self._send_at, self._ring_at, self._caller_at, self._drop_at)
        return min((time for time in times if time is not None), default=None)

    def feed(self, data: bytes, now: float) -> list[ev.Event]:
        """Take what the modem sent, if anything, and what has become due; returns what that means."""
        found = self._due(now)
        at = 0
        while at < len(data):
            if self._state is State.ONLINE:
                found += self._take_data(data[at:], now)
                break
            byte = data[at]
            at += 1
            if self._current is None or self._current.purpose != "pin":
                # The echo of a PIN may be damaged, so that it cannot be recognised and hidden.
                self._tail.add(bytes((byte,)))
            line = self._lines.take(byte)
            self._answer_prompt()
            if line is not None:
                found += self._take_line(line, now)
                self._swallows_lf = byte == 0x0D
        return found

    def _answer_prompt(self) -> None:
        command = self._current
        if command is not None and command.prompted and self._lines.pending.strip() == b">":
            self._output += command.prompted
            command.prompted = b""
            self._lines.clear()

    def _take_data(self, data: bytes, now: float) -> list[ev.Event]:
        if self._swallows_lf and data[:1] == b"\n":
            data = data[1:]
        self._swallows_lf = False
        # Data may have these words in them. Only with silence behind them are they the modem's.
        self._last_data = (self._last_data + data)[-len(_NO_CARRIER) :]
        self._drop_at = now + _GUARD_S if self._last_data == _NO_CARRIER else None
        return [ev.Data(data)] if data else []

    def _take_line(self, line: str, now: float) -> list[ev.Event]:
        command = self._current
        if line in self._echoes:
            return []
        takes_numbers = self._profile.results == "numbers" or (command is not None and command.purpose == "init")
        final = final_of(line, takes_numbers=takes_numbers)
        if final is not None:
            return self._take_final(final, now)
        told = self._told(line, now)
        if told is not None:
            return told
        if command is not None and command.purpose not in ("dial", "answer", "hang up", "escape"):
            if len(command.lines) < _MOST_ANSWER_LINES:
                command.lines.append(line)
            return []
        return [ev.Unknown(self._clean(line)[:200])]

    def _told(self, line: str, now: float) -> list[ev.Event] | None:
        """Events of a line that modems also send unasked."""
        state = registration_of(line)
        if state is not None:
            self._is_registered = is_registered(state)
            return [ev.Registration(state, REGISTRATIONS[state], self._is_registered)]
        caller = caller_of(line)
        if caller is not None:
            if self._caller_at is None:
                return []
            self._caller_at, self._ring_at = None, now + _RING_LAPSE_S
            return [ev.Ringing(*caller)]
        is_signal, level = signal_of(line, SCALES[self._profile.signal])
        return [ev.Signal(level)] if is_signal else None

    def _take_final(self, final: Final, now: float) -> list[ev.Event]:
        command = self._current
        if final.words == "RING" and self._state is State.ANSWERING:
            return []
        if final.words == "RING":
            self._ring_at = now + _RING_LAPSE_S
            if self._asks_callers and self._state is State.STARTING:
                return []  # the modem does not say yet who calls; it will with the next RING
            if self._names_callers:
                # Each RING has its own: someone else may call within the lapse.
                self._caller_at = now + _CALLER_LIMIT_S
                return []
            return [ev.Ringing()]
        if final.words == "CONNECT":
            return self._connected(final, now)
        if command is None:
            return []  # late: its command has been given up
        if command.purpose in ("dial", "answer"):
            return self._dial_failed(final.words, now)
        if final.words not in ("OK", "ERROR"):
            return []  # the end of a call that is over already
        self._current, self._deadline = None, None
        found = self._finished(command, final)
        self._next(now)
        return found

    def _connected(self, final: Final, now: float) -> list[ev.Event]:
        is_wanted = self._state in (State.DIALLING, State.ANSWERING)
        is_answered_alone = self._profile.answer == "auto" and self._state is State.READY
        if not is_wanted and not is_answered_alone:
            # A call that nobody wants any more; said again and again, it does not keep the dialogue from hanging up.
            is_new = self._state is State.READY or (self._state is State.HANGING_UP and not self._ends_online)
            return self._end_call(now, is_online=True) if is_new else []
        is_incoming = self._state is not State.DIALLING
        self._forget()
        self._stop_ringing()
        self._state, self._last_data = State.ONLINE, b""
        return [ev.Connected(final.speed_bps, is_incoming)]

    def _dial_failed(self, result: str, now: float) -> list[ev.Event]:
        self._forget()
        self._stop_ringing()
        self._state = State.READY
        self._ask_cause()
        self._next(now)
        return [ev.DialFailed(result)]

    def _dropped(self, how: str, now: float) -> list[ev.Event]:
        self._forget()
        self._state = State.READY
        self._ask_cause()
        self._next(now)
        return [ev.Dropped(how)]

    def _ask_cause(self) -> None:
        if self._profile.asks_cause:
            self._queue.append(_Command("AT+CEER", "cause", self._profile.command_limit_s))

    def _end_call(self, now: float, *, is_online: bool) -> list[ev.Event]:
        self._forget()
        self._ends_online = is_online
        self._state = State.HANGING_UP
        found: list[ev.Event] = []
        # A character amid a dial ends it.
        pause_s, before = 0.0, b"" if is_online else b"\r"
        if self._profile.hang_up == "dtr":
            found.append(ev.DropDtr())
            pause_s = _DTR_S
        elif is_online:
            self._queue.append(_Command("", "escape", 2 * _GUARD_S, pause_s=_GUARD_S, raw=b"+++"))
            pause_s = _GUARD_S
        self._queue.append(_Command("ATH0", "hang up", _HANG_UP_LIMIT_S, pause_s=pause_s, raw=before + b"ATH0\r"))
        self._next(now)
        return found

    def _finished(self, command: _Command, final: Final) -> list[ev.Event]:
        """Take a command's result; the next command is sent after it."""
        is_ok = final.words == "OK"
        match command.purpose:
            case "init":
                if not is_ok:
                    return self._failed(f"{command.text} was answered {final.text}")
                return self._started()
            case "pin?":
                return self._pin_asked(command, is_ok)
            case "pin":
                self._is_pin_spent = not is_ok
                if not is_ok:
                    said = "the SIM has refused its PIN, which is not tried again"
                    return [ev.PinTried("refused"), *self._failed(said)]
                return [ev.PinTried("accepted"), *self._started()]
            case "clip":
                self._names_callers = is_ok
                return self._started()
            case "creg":
                return self._after_creg(is_ok)
            case "csq":
                return [] if is_ok else [ev.Signal(None)]
            case "hang up":
                self._state = State.READY
                return [ev.HungUp(is_confirmed=is_ok)]
            case "cause":
                texts = [cause_of(line) for line in command.lines]
                return [ev.Cause(self._clean("; ".join(texts))[:200])] if is_ok and texts else []
            case "ask":
                lines = tuple(self._clean(line) for line in command.lines)
                return [ev.Answered(command.text, final.text, lines)]
            case "sms":
                return self._sms_step(is_ok=is_ok, result=final.text)
        return []

    def _sms_step(self, *, is_ok: bool, result: str) -> list[ev.Event]:
        """The mode is set, or the message has gone, or neither can be."""
        is_last = not any(one.purpose == "sms" for one in self._queue)
        if is_ok and not is_last:
            return []
        self._queue = deque(one for one in self._queue if one.purpose != "sms")
        return [ev.SmsSent(is_ok, self._clean(result))]

    def _started(self) -> list[ev.Event]:
        """Ready, once the last line of the start has been answered."""
        if any(one.purpose in ("init", "pin?", "pin") for one in self._queue):
            return []
        if self._asks_callers and not self._is_clip_asked:
            # Behind the PIN: a locked SIM refuses it.
            self._is_clip_asked = True
            self._queue.append(_Command("AT+CLIP=1", "clip", self._profile.command_limit_s, tries=_TRIES))
            return []
        self._state = State.READY
        return [ev.Ready()]

    def _pin_asked(self, command: _Command, is_ok: bool) -> list[ev.Event]:
        wants = next((pin for line in command.lines if (pin := pin_of(line)) is not None), "")
        if is_ok and wants == "READY":
            return self._started()
        if not is_ok or wants != "SIM PIN":
            said = f"the SIM asks for {wants}" if wants else "the SIM does not say whether it needs a PIN"
            return self._failed(said)
        if self._pin is None:
            return self._failed("the SIM asks for a PIN, and there is none in the secrets file")
        if self._is_pin_spent:
            said = "the SIM has refused its PIN before, and it is not tried again"
            return self._failed(f"{said} without `farlink bundle redial FILE LINE --try-pin`")
        self._is_pin_awaited = True
        return [ev.PinNeeded()]

    def _after_creg(self, is_ok: bool) -> list[ev.Event]:
        if not SCALES[self._profile.signal]:
            return []
        if not (is_ok and self._is_registered):
            return [ev.Signal(None)]
        self._queue.appendleft(_Command("AT+CSQ", "csq", self._profile.signal_limit_s))
        return []

    def _failed(self, reason: str) -> list[ev.Event]:
        self._forget()
        self._state = State.FAILED
        return [ev.Failed(self._clean(reason)[:300], self.tail)]

    def _due(self, now: float) -> list[ev.Event]:
        found: list[ev.Event] = []
        if self._drop_at is not None and now >= self._drop_at:
            found += self._dropped("NO CARRIER", now)
        if self._caller_at is not None and now >= self._caller_at:
            self._caller_at = None
            found.append(ev.Ringing())
        if self._ring_at is not None and now >= self._ring_at:
            self._stop_ringing()
            found.append(ev.RingingEnded())
        if self._deadline is not None and now >= self._deadline:
            found += self._timed_out(now)
        if self._send_at is not None and now >= self._send_at:
            self._send(now)
        return found

    def _timed_out(self, now: float) -> list[ev.Event]:
        command = self._current
        assert command is not None
        self._current, self._deadline = None, None
        found: list[ev.Event] = []
        if command.purpose in ("dial", "answer"):
            return [ev.DialFailed("time limit"), *self._end_call(now, is_online=False)]
        if command.tries > 1:
            command.tries -= 1
            command.lines.clear()
            self._queue.appendleft(command)
            if self._profile.hang_up == "escape":
                # A call that an operator has left behind: its modem takes the lines for data, and DTR does not end it.
                self._queue.appendleft(_Command("", "escape", 2 * _GUARD_S, pause_s=_GUARD_S, raw=b"+++"))
        elif command.purpose == "pin":
            said = "the SIM has not answered to its PIN, which is not tried again"
            found = [ev.PinTried("unanswered"), *self._failed(said)]
        elif command.purpose in ("init", "pin?"):
            found = self._failed(f"{command.text} was not answered within {command.limit_s:g} s, {_TRIES} times")
        elif command.purpose == "clip":
            found = self._started()
        elif command.purpose in ("creg", "csq"):
            found = [ev.Signal(None)]
        elif command.purpose == "hang up":
            self._state = State.READY
            found = [ev.HungUp(is_confirmed=False)]
        elif command.purpose == "sms":
            # A modem that still waits for the text takes all for it.
            self._output += _ESC
            found = self._sms_step(is_ok=False, result="time limit")
        elif command.purpose == "ask":
            found = [ev.Answered(command.text, "time limit", tuple(self._clean(line) for line in command.lines))]
        self._next(now)
        return found

    def _next(self, now: float) -> None:
        """Send the next command, now or after its pause, if none is being answered."""
        if self._current is not None or self._send_at is not None or not self._queue:
            return
        if self._state in (State.ONLINE, State.FAILED, State.CLOSED):
            return
        pause_s = self._queue[0].pause_s
        if pause_s > 0:
            self._send_at = now + pause_s
        else:
            self._send(now)

    def _send(self, now: float) -> None:
        self._send_at = None
        command = self._queue.popleft()
        self._current, self._deadline = command, now + command.limit_s
        self._output += command.written
        if command.text:
            self._echoes.append(command.text)

    def _waiting(self) -> list[_Command]:
        return [*self._queue, *([] if self._current is None else [self._current])]

    def _forget(self) -> None:
        """Forget what is asked and what waits to be asked."""
        self._queue.clear()
        self._current = self._deadline = self._send_at = self._drop_at = None
        self._is_pin_awaited = False

    def _reset(self) -> None:
        self._forget()
        self._output.clear()
        self._lines.clear()
        self._stop_ringing()
        self._is_registered = self._swallows_lf = self._is_clip_asked = self._names_callers = False

    def _stop_ringing(self) -> None:
        self._ring_at = self._caller_at = None

    def _room(self) -> None:
        if len(self._queue) >= _MOST_QUEUE:
            raise ArgumentError(f"{len(self._queue)} commands wait for the modem already", "wait for their answers")

    def _expect(self, state: State) -> None:
        if self._state is not state:
            raise ArgumentError(f"the modem is {self._state.value}, not {state.value}", "wait for its events")

    def _clean(self, text: str) -> str:
        return text if self._pin is None else text.replace(self._pin, "*" * len(self._pin))

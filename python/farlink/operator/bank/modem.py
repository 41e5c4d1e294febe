"""One modem of a bank: what it answers to AT commands. It has no clock and no terminal; `Exchange` carries its calls."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import Enum

from farlink.operator.at import pdu
from farlink.operator.at.profiles import SCALES, Profile
from farlink.operator.at.results import shown

# A short message has 350 characters.
MOST_LINE_BYTES = 400
_GUARD_S = 1.0
_BASIC = re.compile(r"([&\\%]?[A-Z])(\d*)")
_REGISTER = re.compile(r"S(\d{1,3})(?:=(\d{1,3})|\?)")
_EXTENDED = re.compile(r"\+[A-Z]+[^;]*")
_MOST_COMMANDS = 64
_CTRL_Z, _ESC = 0x1A, 0x1B
# Of 3GPP TS 27.005, section 3.2.5.
_INVALID_PDU, _NO_NETWORK = 304, 331


class Phase(Enum):
    """Where a modem is."""

    COMMAND = "command"
    DIALLING = "dialling"
    ANSWERING = "answering"
    ONLINE = "online"
    # A call is up, and after +++ the modem listens to commands.
    ESCAPED = "escaped"


@dataclass(eq=False)
class Modem:
    """One modem.

    Attributes
    ----------
    name, number
        What people and other modems call it.
    profile
        Whose modem it is.
    pin
        Of its SIM, which is locked until it gets it; empty if it asks for none.
    signal
        On the scale of the profile; 0 is none: no dial, no registration.
    is_busy
        Whoever calls it hears BUSY.
    is_silent
        It does not answer, neither AT nor calls; a call that is up goes on.
    is_deaf
        Its calls stay up and carry nothing, either way.
    hides_number
        Whoever it calls is not told its number.
    has_dtr
        Whether somebody has its terminal open; without it the modem takes no call by itself.
    """

    name: str
    number: str
    profile: Profile
    pin: str = ""
    signal: int = -1
    is_busy: bool = False
    is_silent: bool = False
    is_deaf: bool = False
    hides_number: bool = False
    has_dtr: bool = True
    phase: Phase = Phase.COMMAND
    cause: str = "0"
    is_ringing: bool = False
    # Orders to the exchange: the number to dial, take the call, end it.
    dials: str | None = None
    answers: bool = False
    hangs_up: bool = False
    output: bytearray = field(default_factory=bytearray)
    pin_tries_left: int = 3
    # Short messages that it has sent: number and text. The exchange takes them.
    sent_sms: list[tuple[str, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        if self.signal < 0:
            self.signal = max(SCALES[self.profile.signal], 1)
        self._is_locked = bool(self.pin)
        self._line = bytearray()
        self._last_at = -_GUARD_S
        self._pluses = 0
        self._escape_at: float | None = None
        # Length of the short message whose text is awaited.
        self._sms_octets: int | None = None
        self._sms_number = 0
        self._defaults()

    def _defaults(self) -> None:
        self._echoes, self._is_verbose, self._is_quiet, self._x_level = True, True, False, 4
        self.rings_to_answer, self._names_callers = 0, False

    @property
    def poll_timeout(self) -> float | None:
        """When `advance` is to be called."""
        return self._escape_at

    def advance(self, now: float) -> None:
        """After `+++` and a second of silence, listen to commands."""
        if self._escape_at is not None and now >= self._escape_at:
            self._escape_at, self._pluses = None, 0
            if self.phase is Phase.ONLINE:
                self.phase = Phase.ESCAPED
                self.result("OK")

    def typed(self, data: bytes, now: float) -> bytes:
        """Take bytes of its terminal; returns those that go into the call."""
        self.advance(now)
        if self.phase is Phase.ONLINE:
            self._watch_for_escape(data, now)
            return data
        for at, byte in enumerate(data):
            if byte != 0x0A and self.phase in (Phase.DIALLING, Phase.ANSWERING):
                # A character amid a dial ends it; what is behind it is a command again.
                self.hangs_up, self.dials = True, None
                self.phase = Phase.COMMAND
                self.result("NO CARRIER")
                if byte == 0x0D:
                    continue
            self._take(byte)
            if self.phase is Phase.ONLINE:
                return data[at + 1 :]
        return b""

    def drop_dtr(self) -> None:
        """Hang up, and forget what is typed of a line."""
        self.hangs_up, self.dials, self.answers = True, None, False
        self._line.clear()
        self._sms_octets = None

    def result(self, words: str) -> None:
        """Send a result, in the form and at the level that was asked for."""
        if self._is_quiet or self.is_silent:
            return
        text, code = shown(words, x_level=self._x_level, speed_bps=self.profile.speed_bps)
        self.output += f"\r\n{text}\r\n".encode() if self._is_verbose else f"{code}\r".encode()

    def ring(self, caller: Modem) -> None:
        """Send RING, and who calls if that was asked for."""
        self.result("RING")
        if self._names_callers:
            space = "" if self.profile.signal == "bars" else " "
            number, kind = ("", 128) if caller.hides_number else (caller.number, 129)
            self.say(f'+CLIP:{space}"{number}",{kind}')

    def say(self, line: str) -> None:
        """Send a line that is no result."""
        if not self.is_silent:
            self.output += f"\r\n{line}\r\n".encode()

    def end(self, cause: str, *, result: str | None) -> None:
        """The call, or the dial, is over."""
        self.phase, self.is_ringing, self.cause = Phase.COMMAND, False, cause
        self._escape_at, self._pluses = None, 0
        if result is not None:
            self.result(result)

    def _watch_for_escape(self, data: bytes, now: float) -> None:
        is_after_silence = self._pluses > 0 or now - self._last_at >= _GUARD_S
        self._pluses = self._pluses + len(data) if is_after_silence and data == b"+" * len(data) else 0
        self._escape_at = now + _GUARD_S if self._pluses == 3 else None
        self._last_at = now

    def _take(self, byte: int) -> None:
        if self._echoes and not self.is_silent:
            self.output.append(byte)
        if self._sms_octets is not None and byte in (_CTRL_Z, _ESC):
            self._end_sms(self._sms_octets, is_sent=byte == _CTRL_Z)
        elif byte == 0x0D and self._sms_octets is None:
            line = self._line.decode("latin-1").strip()
            is_long = len(self._line) > MOST_LINE_BYTES
            self._line.clear()
            if self.is_silent or not line:
                return
            if is_long or line[:2].upper() != "AT":
                self.result("ERROR")
            else:
                self._obey(line[2:].upper().replace(" ", ""))
        elif byte in b"\b\x7f":
            del self._line[-1:]
        elif byte != 0x0A and len(self._line) <= MOST_LINE_BYTES:
            self._line.append(byte)

    def _obey(self, commands: str) -> None:
        """Do what a line says, command by command; a call leaves the result to the exchange."""
        for _ in range(_MOST_COMMANDS):
            if not commands:
                break
            if commands[0] == "D":
                self._dial(commands[1:])
                return
            if commands[0] == "+":
                found = _EXTENDED.match(commands)
                is_known = found is not None and self._extended(found[0])
            elif (found := _REGISTER.match(commands)) is not None:
                is_known = self._register(int(found[1]), found[2])
            else:
                found = _BASIC.match(commands)
                is_known = found is not None and self._basic(found[1], int(found[2][:3] or 0))
                if found is not None and found[1] in ("A", "O") and is_known:
                    return
            if found is None or not is_known:
                self.result("ERROR")
                return
            if self._sms_octets is not None:
                return
            commands = commands[found.end() :].removeprefix(";")
        self.result("OK")

    def _dial(self, number: str) -> None:
        if self.phase is Phase.ESCAPED or self._is_locked:
            self.result("ERROR")
            return
        digits = re.sub(r"[^0-9+*#]", "", number.lstrip("TP"))
        if not digits:
            self.result("ERROR")
        elif self.signal <= 0:
            self.cause = "no signal"
            self.result("NO DIALTONE")
        else:
            self.phase, self.dials = Phase.DIALLING, digits

    def _basic(self, letter: str, value: int) -> bool:
        match letter:
            case "Z" | "&F":
                self.hangs_up = self.hangs_up or self.phase is Phase.ESCAPED
                self._defaults()
            case "E":
                self._echoes = value == 1
            case "V":
                self._is_verbose = value == 1
            case "Q":
                self._is_quiet = value == 1
            case "X":
                self._x_level = min(value, 4)
            case "H":
                self.hangs_up = True
            case "I":
                self.say(self.profile.title)
            case "A":
                if self.is_ringing:
                    self.phase, self.answers = Phase.ANSWERING, True
                else:
                    self.result("NO CARRIER")
            case "O":
                if self.phase is not Phase.ESCAPED:
                    return False
                self.phase = Phase.ONLINE
                self.result("CONNECT")
            case "&C" | "&D" | "&K" | "&W" | "&S" | "L" | "M" | "\\N" | "\\Q" | "%C":
                pass
            case _:
                return False
        return True

    def _register(self, number: int, value: str | None) -> bool:
        if value is None:
            self.say(f"{self.rings_to_answer if number == 0 else 0:03}")
        elif number == 0:
            self.rings_to_answer = int(value)
        return True

    def _extended(self, command: str) -> bool:
        profile = self.profile
        match command:
            case "+CSQ" | "+CSQF" if SCALES[profile.signal]:
                self.say(self._csq(command))
            case "+CREG?" if profile.registers:
                state = 1 if self.signal > 0 else 2
                self.say(f"+CREG:000,{state:03}" if profile.signal == "bars" else f"+CREG: 0,{state}")
            case "+CPIN?" if profile.has_sim:
                wants = "SIM PUK" if self.pin_tries_left == 0 else "SIM PIN" if self._is_locked else "READY"
                self.say(f"+CPIN: {wants}")
            case "+CEER" if profile.asks_cause:
                self.say(f"+CEER: {self.cause}")
            case "+CGSN" | "+GSN":
                self.say(f"{int(re.sub('[^0-9]', '', self.number) or 0) % 10**15:015}")
            case "+CMGF=0" if profile.sends_sms:
                pass
            case "+CLIP=0" | "+CLIP=1" if profile.names_callers:
                self._names_callers = command.endswith("1")
            case _ if command.startswith("+CPIN=") and profile.has_sim:
                return self._try_pin(command.removeprefix("+CPIN=").strip('"'))
            case _ if command.startswith("+CMGS=") and profile.sends_sms:
                # The result comes behind the text, so that it is the last command of its line.
                octets = command.removeprefix("+CMGS=")
                return octets.isascii() and octets.isdigit() and len(octets) <= 3 and self._begin_sms(int(octets))
            case _:
                return command.split("=")[0] in ("+CBST", "+CR", "+CREG", "+CMEE", "+CGDCONT") and "=" in command
        return True

    def _begin_sms(self, octets: int) -> bool:
        if self._is_locked:
            return False
        self._sms_octets = octets
        if not self.is_silent:
            self.output += b"\r\n> "
        return True

    def _end_sms(self, octets: int, *, is_sent: bool) -> None:
        """The text of a short message is there, or given up (3GPP TS 27.005, section 3.5.1)."""
        typed, self._sms_octets = self._line.decode("latin-1").strip(), None
        self._line.clear()
        if not is_sent:
            self.result("OK")
            return
        try:
            message = pdu.read_submitted(typed, octets)
        except (ValueError, IndexError):
            self.say(f"+CMS ERROR: {_INVALID_PDU}")
            return
        if self.signal <= 0:
            self.say(f"+CMS ERROR: {_NO_NETWORK}")
            return
        self.sent_sms.append(message)
        self._sms_number += 1
        self.say(f"+CMGS: {self._sms_number}")
        self.result("OK")

    def _try_pin(self, pin: str) -> bool:
        if not self._is_locked or self.pin_tries_left == 0:
            return False
        self._is_locked = pin != self.pin
        self.pin_tries_left = 3 if not self._is_locked else self.pin_tries_left - 1
        return not self._is_locked

    def _csq(self, command: str) -> str:
        level = self.signal if self.signal > 0 else 99
        match self.profile.csq_form:
            case "short":
                return f"{command}:{self.signal}"
            case "three-digits":
                return f"{command}:{level:03},099"
        return f"{command}: {level},99"

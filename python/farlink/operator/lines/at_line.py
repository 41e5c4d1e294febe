"""A line with a modem on a tty: the dialogue in AT commands, then a link on the call, then the port is opened anew.

Closing the port lowers DTR, so the modem hangs up whatever state it is in. A lost carrier also ends the tty for whoever has it
open. So every call ends the same way, and the modem gets the lines of its profile before each.
"""

from __future__ import annotations

import asyncio
import errno
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from farlink.errors import ArgumentError
from farlink.operator.at import Dialogue, Profile, State
from farlink.operator.at import events as ev
from farlink.operator.at.profiles import SCALES
from farlink.operator.backend.link import BackEnd, Carried, Down, Link, Probe, Said, Up
from farlink.operator.config.bundle import Line as LineConfig
from farlink.operator.lines.callers import is_listed, shown
from farlink.operator.lines.line import Pins, Report
from farlink.operator.lines.port import Port

SIGNAL_EVERY_S = 4.0
"""Zaghloul, section 5.1: the signal is asked for so often."""

_LOOK_S = 0.5
# Ports come and go while a device is enumerated.
_GONE_S = 1.0
# Opening takes no longer.
_HANGS_S = 10.0
# DTR is low so long. A pty has none: there, whoever reads its other side is to see the end.
_DTR_S, _PTY_S = 1.0, 0.15
_RETRY_S = 30.0
_CARRIER_EVERY_S = 1.0


class AtLine:
    """A line of kind ``at``.

    Parameters
    ----------
    config
        Of the line.
    profile
        Of its modem.
    back_end
        Carries PPP.
    report
        Gets what is observed. It may give orders at once.
    pins, pin
        Which PINs may be tried, and that of this line; None if there is none.
    """

    def __init__(
        self,
        config: LineConfig,
        profile: Profile,
        back_end: BackEnd,
        report: Callable[[Report], None],
        *,
        pins: Pins,
        pin: str | None = None,
    ) -> None:
        self.name = config.name
        self._config, self._profile, self._back_end, self._tell = config, profile, back_end, report
        self._pins, self._pin = pins, pin
        self._wake = asyncio.Event()
        self._dialogue = Dialogue(profile)
        self._order: tuple[str, int] | None = None
        self._call: int | None = None
        self._link: Link | None = None
        self._said: list[Said] = []
        # How many links are over.
        self._links = 0
        self._is_link_up = self._hangs_up = self._ends_bundle = self._is_over = False
        self._is_port_there = True
        self._is_back = False
        self._is_open = self._is_failed = self._is_ringing = self._asks_cause = False
        self._bytes: tuple[int | None, int | None] = (None, None)
        self._signal_at: float | None = None
        self._asked_at = 0.0
        self._why = ""
        self._retry_at: float | None = None
        self._start_at = 0.0

    # Orders.

    def dial(self, call: int) -> None:
        """Dial."""
        self._take("dial", call)

    def answer(self, call: int) -> None:
        """Take the call that rings."""
        self._take("answer", call)

    def start_link(self, call: int) -> None:
        """Let PPP begin."""
        self._start_at = time.monotonic() + self._back_end.delay_s(self.name)
        self._take("start-link", call)

    def hang_up(self, *, ends_bundle: bool = False) -> None:
        """End whatever there is."""
        self._order, self._hangs_up, self._ends_bundle = None, not self._is_quiet, ends_bundle
        self._wake.set()

    def try_again(self) -> None:
        """Start a modem that has failed anew, without waiting."""
        self._retry_at = 0.0
        self._wake.set()

    def _take(self, order: str, call: int) -> None:
        self._order = (order, call)
        self._wake.set()

    @property
    def is_idle(self) -> bool:
        """Whether nothing of a call is left."""
        return self._is_quiet and self._order is None and not self._hangs_up

    @property
    def _is_quiet(self) -> bool:
        return self._link is None and self._dialogue.state not in (
            State.DIALLING,
            State.ANSWERING,
            State.ONLINE,
            State.HANGING_UP,
        )

    def observed(self) -> dict[str, Any]:
        """State of port, modem and call."""
        modem = self._dialogue.state.value if self._is_open else "port closed"
        return {
            "port": self._config.port,
            "is_port_there": self._is_port_there,
            "modem": modem,
            "modem_failure": self._why,
            "bytes_in": self._bytes[0],
            "bytes_out": self._bytes[1],
            "most_signal": SCALES[self._profile.signal] or None,
        }

    # The life of the port.

    async def run(self) -> None:
        """Move the line until this is cancelled."""
        while True:
            port = await self._opened()
            try:
                await self._session(port)
            finally:
                await self._end_link()
                self._is_open = False
                await port.close()
                self._dialogue = Dialogue(self._profile)
                self._hangs_up = self._ends_bundle = False
            await asyncio.sleep(_DTR_S if port.has_pins else _PTY_S)

    async def _opened(self) -> Port:
        """The open port, once there is one."""
        begin = time.monotonic()
        while True:
            # A port that hangs is not opened a second time: each try takes a thread for as long.
            told = asyncio.get_running_loop().call_later(_HANGS_S, self._port_gone, "its driver hangs")
            try:
                port = await Port.open(self._config.port, self._profile.speed_bps, self._wake.set)
            except OSError as error:
                if time.monotonic() - begin >= _GONE_S:
                    self._port_gone("in use by another process" if error.errno == errno.EBUSY else error.strerror or str(error))
                await asyncio.sleep(_LOOK_S)
                continue
            finally:
                told.cancel()
            # It is told once the modem has told its signal: below the least one nothing is dialled.
            self._is_back = self._is_back or not self._is_port_there
            self._is_port_there = True
            return port

    def _port_gone(self, why: str) -> None:
        if self._is_port_there:
            self._is_port_there = False
            self._report("port-gone", cause=why.lower())

    async def _session(self, port: Port) -> None:
        """From the first line of the profile to the end of a call, or of the port."""
        may_try = self._pin is not None and self._pins.may_try(self.name)
        dialogue = self._dialogue = Dialogue(
            self._profile, pin=self._pin, is_pin_spent=not may_try, asks_callers=self._config.role == "answer"
        )
        self._is_open, self._is_over, self._is_link_up, self._call = True, False, False, None
        self._signal_at = self._retry_at = None
        self._is_ringing, self._said = False, []
        dialogue.start(time.monotonic())
        carrier_at = time.monotonic()
        while not self._is_over:
            port.write(dialogue.poll_output())
            await self._wait(dialogue)
            now = time.monotonic()
            if self._link is None and not port.is_lost:
                for event in dialogue.feed(port.take(), now):
                    self._heard(event, port, now)
            for said in self._taken():
                self._linked(said)
            if port.is_lost and self._link is None:
                self._cut_off()
                return
            await self._obey(port, now)
            if self._link is not None and now >= carrier_at:
                # A black hole costs all packets until echoes tell; a lost carrier is known at once.
                carrier_at = now + _CARRIER_EVERY_S
                if port.is_hung_up or (port.has_pins and await port.carrier() is False):
                    self._over("no carrier")

    async def _wait(self, dialogue: Dialogue) -> None:
        times = [dialogue.poll_timeout(), self._retry_at]
        if dialogue.state is State.READY:
            # Amid a dial no signal is asked for: a time that is over would keep the line awake.
            times.append(self._signal_at)
        if self._order is not None and self._order[0] == "start-link":
            times.append(self._start_at)
        if self._link is not None:
            times = [time.monotonic() + _CARRIER_EVERY_S]
        due = min((at for at in times if at is not None), default=None)
        # `asyncio.wait_for` of Python 3.11 loses a cancellation that comes together with what it waits for.
        with suppress(TimeoutError):
            async with asyncio.timeout(None if due is None else max(0.0, due - time.monotonic())):
                await self._wake.wait()
        self._wake.clear()

    # The modem.

    def _heard(self, event: ev.Event, port: Port, now: float) -> None:
        match event:
            case ev.Ready():
                self._is_failed, self._why, self._signal_at = False, "", now
                if self._asks_cause and self._profile.asks_cause:
                    self._dialogue.ask("AT+CEER", now)
                self._asks_cause = False
                if not SCALES[self._profile.signal]:
                    self._tell_back()
            case ev.Signal(level):
                took_s = now - self._asked_at
                self._report("signal", level=level, took_s=took_s)
                self._tell_back()
            case ev.Ringing(number, name):
                # Each RING is told: the first one may have come when the dialler could not take the call yet.
                self._rings(number, name, is_first=not self._is_ringing)
                self._is_ringing = True
            case ev.RingingEnded():
                self._is_ringing = False
                self._report("ring-ended")
            case ev.DialFailed(result):
                self._is_ringing = False
                call, self._call = self._call, None
                self._report("dial-failed", call=call, cause=result)
            case ev.Connected():
                self._is_ringing = self._is_link_up = False
                port.pause()
                self._bytes = (None, None)
                self._report("carrier", call=self._call)
            case ev.Dropped(how):
                self._over(how)
            case ev.DropDtr():
                self._is_over = True  # the port is closed
            case ev.HungUp(is_confirmed):
                self._hangs_up, self._call = False, None
                # A modem that has missed the escape sequence takes all for data, and its call goes on: DTR ends it.
                self._is_over = self._is_over or not is_confirmed
            case ev.PinNeeded():
                # Before it is sent: a power cut between the two must not lead to a second wrong one.
                if self._pins.note_tried(self.name):
                    self._dialogue.enter_pin(now)
                else:
                    self._fail("that the PIN is tried cannot be noted in the journal, so it is not tried", b"", now)
            case ev.PinTried(outcome):
                self._pins.note_outcome(self.name, outcome)
            case ev.Failed(reason, tail):
                self._fail(reason, tail, now)
            case ev.Cause(text) if text:
                self._note_cause(text)
            case ev.Answered("AT+CEER", _, lines) if lines:
                self._note_cause("; ".join(lines))

    def _note_cause(self, said: str) -> None:
        self._report("note", cause=f"the modem says of the last call: {said}")

    def _rings(self, number: str, name: str, *, is_first: bool) -> None:
        """Someone calls: who is not listed, if there is a list, rings in vain, which is noted once."""
        who = shown(number, name)
        if not self._config.callers or is_listed(self._config.callers, number, name):
            self._report("ring", number=who)
            return
        if not is_first:
            return
        is_told = self._dialogue.names_callers
        why = "is none of the line's callers" if who else "does not say who it is" if is_told else "is not named by the modem"
        self._report("note", cause=f"a call is not answered: the caller {why}", number=who)

    def _tell_back(self) -> None:
        """Tell, once, that a port is there again."""
        if self._is_back:
            self._is_back = False
            self._report("port-back")

    def _fail(self, reason: str, said: bytes, now: float) -> None:
        self._tell_back()
        # Of a modem that fails again and again one report is enough, unless somebody waits for it.
        if not self._is_failed or self._order is not None:
            self._report("modem-failed", call=self._order[1] if self._order else None, cause=reason, said=said)
        self._is_failed, self._why, self._order = True, reason, None
        self._retry_at = now + _RETRY_S

    async def _obey(self, port: Port, now: float) -> None:
        """Do what was ordered, as soon as the modem can."""
        dialogue = self._dialogue
        if self._is_over:
            return  # orders are for the next session
        if self._hangs_up:
            await self._hang_up(port, now)
            return
        if self._retry_at is not None and now >= self._retry_at:
            self._is_over = True
            return
        if self._order is not None and self._order[0] == "start-link":
            if dialogue.state is State.ONLINE and now < self._start_at:
                return
            # Of a call that the modem has taken by itself this is the first that is known of its number.
            (_, self._call), self._order = self._order, None
            if dialogue.state is State.ONLINE:
                await self._start_link(port, self._call)
            return
        if self._order is not None and dialogue.state is State.FAILED:
            self._is_over = True
            return
        if dialogue.state is not State.READY:
            return
        if self._order is not None:
            (order, self._call), self._order = self._order, None
            if order == "dial":
                dialogue.dial(self._config.number, now)
            else:
                dialogue.answer(now)
        elif self._signal_at is not None and now >= self._signal_at and SCALES[self._profile.signal]:
            self._signal_at, self._asked_at = now + SIGNAL_EVERY_S, now
            dialogue.ask_signal(now)
        if self._signal_at is not None and not SCALES[self._profile.signal]:
            self._signal_at = None

    async def _hang_up(self, port: Port, now: float) -> None:
        was_link = self._link is not None
        if was_link and port.has_pins and self._profile.hang_up == "dtr":
            # The carrier goes, and pppd need not ask a dead far end for the end of the link.
            await port.lower_dtr()
        await self._end_link()
        dialogue = self._dialogue
        if dialogue.state is State.HANGING_UP:
            return
        if self._is_quiet:
            self._hangs_up = False
        elif self._profile.hang_up == "escape" and not port.is_lost:
            if was_link or dialogue.state is State.ONLINE:
                port.resume()
            with suppress(ArgumentError):
                dialogue.hang_up(now)
        else:
            self._is_over = True

    # The link.

    async def _start_link(self, port: Port, call: int) -> None:
        try:
            # The call of a modem that answers by itself has its number from the order.
            self._call = call
            of = self._links
            self._link = await self._back_end.start(self.name, port.fileno, lambda said: self._link_said(of, said))
        except OSError as error:
            self._report("dial-failed", call=call, cause=f"{self._back_end.name}: {error.strerror}")
            self._is_over = True

    def _link_said(self, of: int, said: Said) -> None:
        if of == self._links:  # a process that would not end may tell of its end during the next call
            self._said.append(said)
            self._wake.set()

    def _taken(self) -> list[Said]:
        taken, self._said = self._said, []
        return taken

    def _linked(self, said: Said) -> None:
        match said:
            case Up():
                if not self._is_link_up:
                    self._is_link_up = True
                    self._report("link-up", call=self._call)
            case Probe(is_answered):
                self._report("probe-answered" if is_answered else "probe-lost", call=self._call)
            case Carried(bytes_in, bytes_out):
                self._bytes = (bytes_in, bytes_out)
            case Down(cause):
                self._over(cause)

    def _over(self, cause: str) -> None:
        """The call is over, and nobody ordered it: what is left of it is hung up."""
        if not self._is_over and not self._hangs_up:
            self._hangs_up = self._asks_cause = True
            self._report("dropped" if self._is_link_up else "dial-failed", call=self._call, cause=cause)

    def _cut_off(self) -> None:
        """The port is lost, and no link was on it."""
        if self._dialogue.state in (State.DIALLING, State.ANSWERING, State.ONLINE):
            self._over("the port hung up")

    async def _end_link(self) -> None:
        link, self._link = self._link, None
        if link is not None:
            await link.hang_up(ends_bundle=self._ends_bundle)
            self._links += 1
            for said in self._taken():
                if isinstance(said, Carried):
                    self._linked(said)

    def _report(self, event: str, **details: Any) -> None:
        bytes_in, bytes_out = self._bytes
        self._tell(Report(self.name, event, bytes_in=bytes_in, bytes_out=bytes_out, **details))

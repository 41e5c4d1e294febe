"""A line over a modem of ModemManager: found by a name that stays, unlocked, enabled, connected, and watched while it is up."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any

from farlink.operator.config.modem_manager import IP_TYPES, MOST_SIGNAL, ModemManagerSettings
from farlink.operator.interface.pace import Pace
from farlink.operator.interface.settings import InterfaceSettings
from farlink.operator.lines.line import Pins, Report
from farlink.operator.lines.modem_manager import addresses
from farlink.operator.lines.modem_manager.bearer import BEARER, Bearer
from farlink.operator.lines.modem_manager.bus import BusError
from farlink.operator.lines.modem_manager.modem import (
    LOCATION,
    MODEM,
    SIGNAL,
    SIMPLE,
    Modem,
    cell_of,
    network_words,
    observed,
    power_words,
)
from farlink.operator.lines.modem_manager.probes import Probes
from farlink.operator.lines.modem_manager.unlock import PIN_S, Unlock
from farlink.operator.lines.modem_manager.watch import Gone, Watch
from farlink.operator.lines.modem_manager.words import State

SIGNAL_EVERY_S = 4.0
"""So often the signal is told, and bytes are read."""

ENABLE_S = 60.0
DISCONNECT_S = 30.0
"""How long ModemManager may take. Its own limits lie below, unless a modem does not answer."""

LOST_S = 900.0
"""A ``Connect`` that is not answered for so long is lost: ModemManager gives each up after some minutes."""

LINK_S = 10.0
"""So long a bearer may take to say that it is connected, after ``Connect`` has said so."""

# A modem that restarts is back under another path after some seconds; one that comes and goes at once is not told as gone.
_GONE_S = 1.0
# So many different causes of one absence are recorded.
_MOST_ABSENCES = 20
_BUS_EVERY_S = 2.0
_LOOK_S = 5.0
_RETRY_S = 30.0
_AFTER_STATE_S = 1.0
_NETWORK_EVERY_S = 60.0
_LAST_S = 5.0
_SIGNAL_RATE_S = 5


class ModemManagerLine:
    """A line of kind ``modemmanager``.

    Parameters
    ----------
    name
        Of the line.
    settings
        What is used.
    report
        Gets what is observed. It may give orders at once.
    pins, pin
        Which PINs may be tried, and that of this line; None if there is none.
    password
        For the network's authentication; empty if it wants none.
    """

    def __init__(
        self,
        name: str,
        settings: ModemManagerSettings,
        report: Callable[[Report], None],
        *,
        pins: Pins,
        pin: str | None = None,
        password: str = "",
    ) -> None:
        self.name = name
        self._settings, self._tell = settings, report
        self._unlocking, self._password = Unlock(name, pins, pin), password
        self._secrets = [secret for secret in (password, pin) if secret]
        self._wake = asyncio.Event()
        self._watch: Watch | None = None
        self._order: tuple[str, int] | None = None
        self._ordered_at = 0.0
        self._is_busy = self._hangs_up = self._is_link_up = False
        # Whether the modem may have a connection of this line.
        self._is_used = False
        # Whether a modem is used, and why not; when it went.
        self._is_port_there, self._is_back, self._is_open = True, False, False
        self._gone_at: float | None = None
        self._absences: set[str] = set()
        self._why, self._is_failed, self._retry_at = "", False, 0.0
        self._pin_sent_at: float | None = None
        # An answer to `Connect` that is still to come.
        self._connecting: asyncio.Task[list[Any]] | None = None
        self._connecting_at = 0.0
        self._poll: asyncio.Task[None] | None = None
        self._call: int | None = None
        self._bearer = ""
        self._own: dict[str, Any] = {}
        self._configured: addresses.Set | None = None
        self._probes: Probes | None = None
        self._pace = Pace(settings.probes or InterfaceSettings(""))
        self._bytes: tuple[int | None, int | None] = (None, None)
        self._tick_at = self._network_at = self._cell_at = 0.0
        self._cell, self._network = "", ""

    # Orders.

    def dial(self, call: int) -> None:
        """Connect."""
        self._take("dial", call)

    def answer(self, call: int) -> None:
        """Refuse: nobody calls a line of this kind."""
        self._report("dial-failed", call=call, cause="a line of kind modemmanager takes no calls")

    def start_link(self, call: int) -> None:
        """Use the bearer."""
        self._take("start-link", call)

    def hang_up(self, *, ends_bundle: bool = False) -> None:  # noqa: ARG002
        """End whatever there is."""
        self._order, self._hangs_up = None, self._is_busy
        self._wake.set()

    def try_again(self) -> None:
        """Start a modem that has failed anew, without waiting."""
        self._retry_at = 0.0
        self._wake.set()

    def _take(self, order: str, call: int) -> None:
        self._order, self._ordered_at = (order, call), time.monotonic()
        self._wake.set()

    @property
    def is_idle(self) -> bool:
        """Whether nothing of a call is left."""
        return not self._is_busy and self._order is None

    def observed(self) -> dict[str, Any]:
        """What is known of modem, network and bearer."""
        watch = self._watch
        modem = watch.modem if watch is not None and watch.path else None
        seen, bearer = observed({} if watch is None else watch.interfaces), Bearer.of(self._own)
        state = "not there" if modem is None else modem.state.name.lower()
        words = [f"modem {state}", network_words(seen, self._cell) if modem else "", power_words(seen), bearer.words()]
        return {
            "port": self._settings.modem,
            "is_port_there": self._is_port_there,
            "modem": state,
            "modem_failure": self._why if self._is_failed else "",
            "failure": "" if self._is_failed else self._why,
            "bytes_in": self._bytes[0],
            "bytes_out": self._bytes[1],
            "most_signal": MOST_SIGNAL,
            **seen,
            "cell": self._cell or None,
            **bearer.observed(),
            **({} if self._probes is None else self._probes.observed()),
            "details": "; ".join(one for one in (*words, self._why) if one),
        }

    # The modem comes and goes.

    async def run(self) -> None:
        """Move the line until this is cancelled."""
        while True:
            watch = Watch(self._wake)
            try:
                await watch.open()
            except BusError as error:
                self._absent(str(error))
                await self._wait(_BUS_EVERY_S if not self._is_port_there else _GONE_S / 4)
                continue
            self._watch = watch
            try:
                while True:
                    await watch.find(self._settings.modem, self._absent)
                    with suppress(Gone):
                        await self._use(watch)
            except Gone as gone:
                self._absent(str(gone))
            finally:
                await self._leave(watch)
            await asyncio.sleep(_GONE_S / 4)

    def _absent(self, why: str) -> float:
        """Note that there is no modem; it is told once that has lasted. Says when that is."""
        now = time.monotonic()
        self._gone_at = now if self._gone_at is None else self._gone_at
        self._is_open = False
        lasted_s = now - self._gone_at
        if lasted_s < _GONE_S:
            return _GONE_S - lasted_s
        is_new = why not in self._absences and len(self._absences) < _MOST_ABSENCES
        self._why, self._absences = why, self._absences | {why} if is_new else self._absences
        if self._is_port_there:
            self._is_port_there, self._is_failed = False, False
            self._report("port-gone", cause=why)
        elif is_new:
            self._report("note", cause=why)
        return _LOOK_S

    async def _leave(self, watch: Watch) -> None:
        """Leave nothing of a call behind, as far as ModemManager can still be told."""
        if self._is_used and watch.path and not watch.bus.is_lost:
            with suppress(BusError):
                await watch.bus.call(watch.path, f"{SIMPLE}.Disconnect", "o", ["/"], limit_s=_LAST_S)
        await watch.close()
        self._watch, self._is_used = None, False

    async def _drop_tasks(self) -> None:
        tasks = [task for task in (self._connecting, self._poll) if task is not None]
        self._connecting = self._poll = None
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _wait(self, for_s: float | None) -> None:
        # `asyncio.wait_for` of Python 3.11 loses a cancellation that comes together with what it waits for.
        with suppress(TimeoutError):
            async with asyncio.timeout(None if for_s is None else max(0.0, for_s)):
                await self._wake.wait()
        self._wake.clear()

    # A modem that is there.

    async def _use(self, watch: Watch) -> None:
        """Use the modem until it is gone.

        Raises
        ------
        Gone
            When it is.
        """
        self._is_back = self._is_back or not self._is_port_there
        self._gone_at, self._pin_sent_at, self._is_used = None, None, False
        self._tick_at = self._cell_at = self._retry_at = 0.0
        self._cell = ""
        try:
            while True:
                watch.check()
                await self._step(watch, watch.modem, time.monotonic())
                await self._wait(self._due_s())
        finally:
            self._is_open = False
            await self._drop_tasks()

    def _due_s(self) -> float:
        now = time.monotonic()
        times = [self._tick_at if self._is_open else now + _LOOK_S]
        if self._is_failed:
            times.append(self._retry_at)
        if self._order is not None:
            times.append(self._ordered_at + self._settings.dial_limit_s)
        return max(0.0, min(one for one in times) - now)

    async def _step(self, watch: Watch, modem: Modem, now: float) -> None:
        """Do what is next: prepare the modem, then what was ordered."""
        if modem.state is not State.LOCKED:
            self._pin_sent_at = None
        match modem.state:
            case State.FAILED:
                self._fail(f"the modem has failed: {modem.failure}")
            case State.LOCKED:
                await self._unlock(watch, modem, now)
            case State.UNKNOWN | State.INITIALIZING | State.DISABLING | State.ENABLING:
                self._is_open = False
                self._refuse_late(f"the modem is {modem.state.name.lower()}", now)
            case State.DISABLED:
                await self._enable(watch, now)
            case _:
                await self._ready(watch, modem, now)

    def _is_resting(self, now: float) -> bool:
        """Whether a modem that has failed is left alone for a while: nobody waits for it."""
        return self._is_failed and now < self._retry_at and self._order is None

    def _refuse_late(self, why: str, now: float) -> None:
        """Give an order up that has waited for too long."""
        if self._order is not None and now - self._ordered_at >= self._settings.dial_limit_s:
            (_, call), self._order = self._order, None
            self._report("dial-failed", call=call, cause=f"{why} for {self._settings.dial_limit_s:g} s")

    async def _enable(self, watch: Watch, now: float) -> None:
        self._is_open = False
        if self._is_resting(now):
            return
        try:
            await watch.answer(watch.bus.call(watch.path, f"{MODEM}.Enable", "b", [True], limit_s=ENABLE_S))
        except BusError as error:
            self._fail(f"the modem cannot be enabled: {error}")
        else:
            # The state may be told after the answer.
            until = time.monotonic() + _LAST_S
            while watch.modem.state is State.DISABLED and time.monotonic() < until:
                await self._wait(until - time.monotonic())
                watch.check()
            if watch.modem.state is State.DISABLED:
                self._fail("the modem stays disabled, although ModemManager has enabled it")

    async def _unlock(self, watch: Watch, modem: Modem, now: float) -> None:
        """Unlock the SIM. A modem whose SIM was unlocked begins anew."""
        self._is_open = False
        if self._pin_sent_at is not None:
            if now - self._pin_sent_at >= PIN_S:
                self._fail("the PIN was accepted, and the modem is still locked")
            self._refuse_late("the modem begins anew, as its SIM was unlocked,", now)
            return
        if self._is_resting(now):
            return
        if why := await self._unlocking.unlock(watch, modem):
            self._fail(why)
        else:
            self._pin_sent_at = time.monotonic()

    def _fail(self, reason: str) -> None:
        reason = self._hidden(reason)
        self._is_open = False
        self._tell_back()
        # Of a modem that fails again and again one report is enough, unless somebody waits for it.
        if not self._is_failed or reason != self._why or self._order is not None:
            self._report("modem-failed", call=self._order[1] if self._order else None, cause=reason)
        self._is_failed, self._why, self._order = True, reason, None
        self._retry_at = time.monotonic() + _RETRY_S

    def _tell_back(self) -> None:
        """Tell, once, that a modem is there again."""
        if self._is_back or not self._is_port_there:
            self._is_back, self._is_port_there, self._absences = False, True, set()
            self._report("port-back")

    async def _ready(self, watch: Watch, modem: Modem, now: float) -> None:
        if not self._is_open:
            await self._opened(watch, modem)
            return
        if self._connecting is not None and self._connecting.done():
            if stray := self._stray():
                await self._disconnect(watch, stray)
            self._connecting = None
        if self._order is not None:
            (order, call), self._order = self._order, None
            if order == "dial":
                await self._dial(watch, call)
                return
        self._tick(watch, modem, now)

    async def _opened(self, watch: Watch, modem: Modem) -> None:
        """A modem is enabled: what an earlier operator has left is ended, and its signal is asked for."""
        if modem.state in (State.CONNECTING, State.CONNECTED):
            self._report("note", cause="ended a connection that was left behind")
            await self._disconnect(watch, "/")
        if SIGNAL in watch.interfaces:
            with suppress(BusError):
                await watch.answer(watch.bus.call(watch.path, f"{SIGNAL}.Setup", "u", [_SIGNAL_RATE_S], limit_s=_LAST_S))
        self._is_open, self._is_failed, self._why = True, False, ""

    def _tick(self, watch: Watch, modem: Modem, now: float) -> None:
        """Tell signal and network, and read what signals do not tell."""
        if now < self._tick_at:
            return
        self._tick_at = now + SIGNAL_EVERY_S
        self._report("signal", level=modem.signal)
        self._tell_back()
        if self._poll is None or self._poll.done():
            # One at a time: a ModemManager that does not answer is not asked for more.
            self._poll = asyncio.create_task(self._polled(watch))
        words = network_words(observed(watch.interfaces), self._cell)
        if words != self._network and now >= self._network_at:
            self._network, self._network_at = words, now + _NETWORK_EVERY_S
            self._report("note", cause=words)

    async def _polled(self, watch: Watch) -> None:
        with suppress(BusError):
            if self._bearer:
                await watch.read(self._bearer, BEARER)
            if LOCATION in watch.interfaces and time.monotonic() >= self._cell_at:
                self._cell_at = time.monotonic() + _NETWORK_EVERY_S
                answer = await watch.bus.call(watch.path, f"{LOCATION}.GetLocation", limit_s=_LAST_S)
                self._cell = cell_of(answer[0] if answer else None)
        self._wake.set()

    # A call.

    async def _dial(self, watch: Watch, call: int) -> None:
        self._is_busy, self._hangs_up, self._is_link_up, self._call = True, False, False, call
        self._bytes = (None, None)
        try:
            bearer = await self._connect(watch)
            if bearer:
                await self._carry(watch, bearer)
        except Gone as gone:
            self._over(str(gone))
            raise
        finally:
            self._is_busy = self._hangs_up = False
            self._bearer, self._own = "", {}

    async def _connect(self, watch: Watch) -> str:
        """The path of a bearer; empty if there is none, which is reported."""
        if self._connecting is not None:
            # How a modem takes two at once is not defined.
            if time.monotonic() < self._connecting_at + LOST_S:
                self._over("ModemManager has not answered the last Connect yet")
                return ""
            self._connecting.cancel()
        if watch.modem.state in (State.CONNECTING, State.CONNECTED):
            await self._disconnect(watch, "/")
        until = time.monotonic() + self._settings.dial_limit_s
        connecting = asyncio.create_task(
            watch.bus.call(watch.path, f"{SIMPLE}.Connect", "a{sv}", [self._wanted()], limit_s=None)
        )
        connecting.add_done_callback(lambda _: self._wake.set())
        self._connecting, self._connecting_at, self._is_used = connecting, time.monotonic(), True
        while not connecting.done():
            await self._wait(until - time.monotonic())
            if connecting.done():
                break
            watch.check()
            if self._hangs_up or time.monotonic() >= until:
                self._over(f"ModemManager has not answered Connect for {self._settings.dial_limit_s:g} s")
                await self._abort(watch, connecting)
                return ""
        try:
            answer = connecting.result()
        except BusError as error:
            self._connecting, self._is_used = None, False
            watch.check()
            self._over(str(error))
            return ""
        bearer = self._stray()
        self._connecting = None
        if not bearer:
            self._over(f"ModemManager has answered Connect with {str(answer)[:40]!r}, which is no bearer")
        return bearer

    def _wanted(self) -> dict[str, tuple[str, Any]]:
        """What `Connect` is told."""
        settings = self._settings
        wanted: dict[str, tuple[str, Any]] = {"apn": ("s", settings.apn), "allow-roaming": ("b", settings.roaming)}
        if settings.ip_type:
            wanted["ip-type"] = ("u", IP_TYPES[settings.ip_type])
        if settings.user:
            wanted.update({"user": ("s", settings.user), "password": ("s", self._password)})
        return wanted

    async def _abort(self, watch: Watch, connecting: asyncio.Task[list[Any]]) -> None:
        """End a `Connect` that is not answered: one that ends all connections ends it, too."""
        await self._disconnect(watch, "/")
        with suppress(TimeoutError):
            async with asyncio.timeout(_LAST_S):
                await asyncio.wait([connecting])
        if connecting.done():
            if stray := self._stray():
                await self._disconnect(watch, stray)
            self._connecting = None

    def _stray(self) -> str:
        """The bearer of a `Connect` that was answered."""
        task = self._connecting
        if task is None or not task.done() or task.cancelled() or task.exception() is not None:
            return ""
        (path,) = task.result()[:1] or [""]
        return path if isinstance(path, str) and len(path) > 1 else ""

    async def _disconnect(self, watch: Watch, bearer: str) -> None:
        try:
            await watch.answer(watch.bus.call(watch.path, f"{SIMPLE}.Disconnect", "o", [bearer], limit_s=DISCONNECT_S))
        except BusError as error:
            self._report("note", cause=f"the end of a connection was refused: {error}")
        else:
            self._is_used = self._connecting is not None and not self._connecting.done()

    async def _carry(self, watch: Watch, bearer: str) -> None:
        """The call, from `Connect` to its end."""
        self._bearer, self._own = bearer, watch.follow(bearer, BEARER)
        try:
            try:
                await watch.answer(watch.read(bearer, BEARER))
            except BusError as error:
                self._over(f"the bearer cannot be read: {error}")
            else:
                self._report("carrier", call=self._call)
                await self._until_link(watch)
                await self._until_end(watch)
            await self._end_probes()
            await self._disconnect(watch, bearer)
        finally:
            watch.leave(bearer)
            await self._end_probes()
            configured, self._configured = self._configured, None
            if configured is not None:
                await configured.clear()

    async def _until_link(self, watch: Watch) -> None:
        """Wait for the order to use the bearer, until it says that it is connected, and until probes are answered."""
        until = time.monotonic() + LINK_S
        while not self._hangs_up:
            now, bearer = time.monotonic(), Bearer.of(self._own)
            is_due = self._order is not None and self._order[0] == "start-link"
            if is_due and bearer.is_connected:
                self._order = None
                if not await self._is_usable(watch, bearer):
                    return
                self._is_link_up = True
                self._report("link-up", call=self._call)
                # The journal has the network of each call.
                self._network, self._network_at, self._tick_at = "", 0.0, 0.0
                break
            if now >= until and not bearer.is_connected:
                self._over("Connect was answered, and the bearer says that it is not connected")
                break
            self._tick(watch, watch.modem, now)
            await self._wait(min(self._tick_at, until if not bearer.is_connected else self._tick_at) - now)
            watch.check()

    async def _is_usable(self, watch: Watch, bearer: Bearer) -> bool:
        """Whether addresses are set, as far as that is wanted, and packets get through, as far as that is probed."""
        if "ppp" in (bearer.ipv4.method, bearer.ipv6.method):
            self._over("the modem wants PPP on a tty: give it a line of kind at")
            return False
        if self._settings.configure:
            self._configured = addresses.Set(bearer)
            try:
                await self._configured.set()
            except addresses.AddressError as error:
                self._over(f"the address cannot be set: {error}")
                return False
        return self._settings.probes is None or await self._is_proven(watch, bearer, self._settings.probes)

    async def _is_proven(self, watch: Watch, bearer: Bearer, wanted: InterfaceSettings) -> bool:
        """Whether probes over the bearer's interface are answered; they go on then."""
        if not bearer.interface:
            self._over("the bearer does not name its interface, so it cannot be probed")
            return False
        settings = replace(wanted, interface=bearer.interface, gateway=bearer.ipv4.gateway)
        probes = self._probes = Probes(
            *(self.name, settings, wanted.metric or 0, self._pace),
            wake=self._wake.set,
            note=lambda text: self._report("note", cause=text),
        )
        until = time.monotonic() + self._settings.proven_s
        while not (self._hangs_up or probes.is_up):
            now, bearer = time.monotonic(), Bearer.of(self._own)
            if bearer.is_connected is False:
                self._over(bearer.error or "the network has ended the connection")
            elif now >= until:
                self._over(f"nothing gets through: {probes.failure or 'no answer to probes'}")
            else:
                self._tick(watch, watch.modem, now)
                await self._wait(min(self._tick_at, until) - now)
                watch.check()
        return not self._hangs_up

    async def _end_probes(self) -> None:
        probes, self._probes = self._probes, None
        if probes is not None:
            await probes.end()

    async def _until_end(self, watch: Watch) -> None:
        low_since: float | None = None
        while self._is_link_up and not self._hangs_up:
            now, bearer, modem = time.monotonic(), Bearer.of(self._own), watch.modem
            self._bytes = (bearer.bytes_in, bearer.bytes_out)
            # The bearer, which says more, may follow the modem.
            low_since = None if modem.state >= State.DISCONNECTING else low_since or now
            if bearer.is_connected is False:
                self._over(bearer.error or "the network has ended the connection")
                return
            if self._own.get("DisconnectRequest") is True:
                self._over("the network asks for the end of the connection")
                return
            if self._probes is not None and not self._probes.is_up:
                self._over(self._probes.failure)
                return
            if low_since is not None and now - low_since >= _AFTER_STATE_S:
                self._over(f"the modem is {modem.state.name.lower()}")
                return
            self._tick(watch, modem, now)
            due = self._tick_at if low_since is None else low_since + _AFTER_STATE_S
            await self._wait(due - now)
            watch.check()

    def _over(self, cause: str) -> None:
        """The call is over, and nobody ordered it."""
        if not self._hangs_up:
            self._hangs_up = True
            self._order = None
            self._report("dropped" if self._is_link_up else "dial-failed", call=self._call, cause=cause)

    def _hidden(self, text: str) -> str:
        """A text without the secrets that the other side may have put into it."""
        for secret in self._secrets:
            text = text.replace(secret, "****")
        return text

    def _report(self, event: str, **details: Any) -> None:
        bytes_in, bytes_out = self._bytes
        if "cause" in details:
            details["cause"] = self._hidden(details["cause"])
        self._tell(Report(self.name, event, bytes_in=bytes_in, bytes_out=bytes_out, **details))

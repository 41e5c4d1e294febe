"""A line over an interface that is there already: up while its probes are answered, gone while they or its address are not."""

from __future__ import annotations

import asyncio
import ipaddress
import time
from collections.abc import Callable
from contextlib import suppress
from enum import Enum
from typing import Any

from farlink.operator.interface.default_route import changes, wanted
from farlink.operator.interface.evidence import Evidence
from farlink.operator.interface.netlink import Counters
from farlink.operator.interface.pace import Pace
from farlink.operator.interface.prober import Prober
from farlink.operator.interface.settings import InterfaceSettings
from farlink.operator.interface.shown import details
from farlink.operator.interface.watch import Watch
from farlink.operator.lines.line import Report

# DHCP takes an address away and gives another one in between.
_GRACE_S = 0.5
# Counters are asked for so often while a line is up: they say whether anything arrives.
_COUNT_S = 1.0
# Carrier, address and answers are looked at so often, whatever is due.
_LOOK_S = 60.0
_RETRY_S = 5.0
_REOPEN_S = 60.0
_ROUTE_RETRY_S = 30.0
# An answer that is not there after twice the time of a dead line will not come.
_LINK_FACTOR = 2.0
# Something has arrived within so many intervals: the inward way lives. What got through, an end learns one interval later.
_STILL = 1.3
# A loop that comes so late, of the time of a dead line, was stopped: nothing was sent meanwhile.
_STALL = 1 / 3
# Notes of one line; each makes the time until the next one longer.
_NOTE_S, _LONGEST_NOTE_S = 60.0, 3600.0


class _Phase(Enum):
    IDLE = "idle"
    DIALLING = "waits for carrier and address"
    CARRIER = "carrier"
    LINKING = "waits for answers"
    UP = "up"


class InterfaceLine:
    """A line of kind ``interface``.

    Parameters
    ----------
    name
        Of the line.
    settings
        Of the line.
    metric
        Of its default route.
    report
        Gets what is observed. It may give orders at once.
    pace
        Has counted what earlier probes of the day have cost; None begins a new one.
    watch, prober
        Make what follows the interfaces, and what probes.
    """

    def __init__(
        self,
        name: str,
        settings: InterfaceSettings,
        metric: int,
        report: Callable[[Report], None],
        *,
        pace: Pace | None = None,
        watch: Callable[[Callable[[], None], bool], Watch] = Watch,
        prober: Callable[[InterfaceSettings, Evidence, Pace, Callable[[], None]], Prober] = Prober,
    ) -> None:
        self.name = name
        self._settings, self._metric, self._tell = settings, metric, report
        self._wake = asyncio.Event()
        self._watch = watch(self._wake.set, settings.route)
        self._evidence, self._pace = Evidence(), pace or Pace(settings)
        self._prober = prober(settings, self._evidence, self._pace, self._wake.set)
        self._phase, self._call, self._began_s = _Phase.IDLE, 0, 0.0
        self._is_gone = False
        self._why = ""
        self._index: int | None = None
        self._opened_s = float("-inf")
        self._addresses: tuple[str, ...] = ()
        self._addressless_s: float | None = None
        self._counted_s = self._arrived_s = float("-inf")
        self._counters: Counters | None = None
        self._first: Counters | None = None
        self._noted, self._note_after_s, self._note_gap_s = "", 0.0, _NOTE_S
        self._route_failure, self._route_after_s = "", 0.0

    # Orders.

    def dial(self, call: int) -> None:
        """Wait for carrier and address."""
        self._enter(_Phase.DIALLING, call)

    def answer(self, call: int) -> None:
        """The same: nobody calls on such a line."""
        self.dial(call)

    def start_link(self, call: int) -> None:
        """Wait for answers."""
        self._enter(_Phase.LINKING, call)

    def hang_up(self, *, ends_bundle: bool = False) -> None:  # noqa: ARG002
        """Use the line no more. The interface stays as it is."""
        self._enter(_Phase.IDLE, 0)

    def try_again(self) -> None:
        """Ask now."""
        self._route_after_s = 0.0
        self._wake.set()

    @property
    def is_idle(self) -> bool:
        """Whether the line is not in use."""
        return self._phase is _Phase.IDLE

    def observed(self) -> dict[str, Any]:
        """Carrier, addresses, when something last got through each way, round trips, and what probes cost today."""
        now_s, unix_s, evidence = time.monotonic(), time.time(), self._evidence
        link = self._watch.table.link(self._settings.interface)
        bytes_in, bytes_out = self._carried()
        interval_s = self._pace.interval_s(unix_s)
        is_spent = interval_s == float("inf")

        def age(at_s: float | None) -> float | None:
            return None if at_s is None else round(max(0.0, now_s - at_s), 3)

        seen = {
            "port": self._settings.interface,
            "is_port_there": link is not None,
            "carrier": link is not None and link.is_up and link.has_carrier,
            "addresses": list(self._addresses),
            "failure": self._why,
            "last_outward_s": age(evidence.outward_s),
            "last_inward_s": age(evidence.inward_s),
            "last_frame_s": None if self._arrived_s == float("-inf") else age(self._arrived_s),
            "round_trip_s": evidence.round_trip_s,
            "least_round_trip_s": evidence.least_round_trip_s,
            "median_round_trip_s": evidence.median_round_trip_s,
            "probe_bytes_today": self._pace.bytes_today,
            "probe_interval_s": None if is_spent else interval_s,
            "noticed_s": None if is_spent else max(self._settings.noticed_s, 2 * interval_s),
            "route_failure": self._route_failure,
            "bytes_in": bytes_in,
            "bytes_out": bytes_out,
            "most_signal": None,
        }
        return {**seen, "details": details(seen)}

    # The life of the line.

    async def run(self) -> None:
        """Move the line until this is cancelled."""
        try:
            while True:
                try:
                    self._watch.open()
                    break
                except OSError as error:
                    self._lose(f"netlink: {(error.strerror or str(error)).lower()}")
                    await asyncio.sleep(_RETRY_S)
            while True:
                now_s = time.monotonic()
                self._look(now_s)
                await self._keep_routes(now_s)
                await self._wait()
        finally:
            self._phase = _Phase.IDLE
            self._prober.close()
            self._index = None
            with suppress(OSError, TimeoutError):
                await self._take_routes_away()
            self._watch.close()

    async def _wait(self) -> None:
        due_s = self._due_s()
        with suppress(TimeoutError):
            async with asyncio.timeout(max(0.0, due_s - time.monotonic())):
                await self._wake.wait()
        self._wake.clear()
        late_s = time.monotonic() - due_s
        if late_s > _STALL * self._settings.noticed_s:
            self._evidence.shift(late_s)
            self._began_s += late_s

    def _due_s(self) -> float:
        now_s = time.monotonic()
        if self._addressless_s is not None and not self._is_gone:
            return self._addressless_s + _GRACE_S
        times = [now_s + _LOOK_S, self._prober.next_s(is_asking=self._is_asking, is_up=self._phase is _Phase.UP)]
        if self._phase in (_Phase.LINKING, _Phase.UP):
            times.append(self._counted_s + _COUNT_S)
        if self._phase is _Phase.LINKING:
            times.append(self._began_s + self._patience_s)
        if self._phase is _Phase.UP and not self._pace.is_spent(time.time()):
            times.append(self._evidence.until_s(self._pace.noticed_s(time.time())))
        if self._route_failure:
            times.append(self._route_after_s)
        return max(now_s, min(times))

    @property
    def _patience_s(self) -> float:
        return _LINK_FACTOR * self._pace.noticed_s(time.time())

    @property
    def _is_asking(self) -> bool:
        """Whether probes are worth their bytes: a spare line that is not known to be dead costs nothing."""
        return self._index is not None and (self._is_gone or self._phase in (_Phase.LINKING, _Phase.UP))

    def _look(self, now_s: float) -> None:
        obstacle = self._obstacle(now_s)
        if obstacle is None:
            return
        if obstacle:
            self._lose(obstacle)
            return
        self._follow(now_s)
        self._count(now_s)
        self._prober.tick(now_s, is_asking=self._is_asking, is_up=self._phase is _Phase.UP)
        noticed_s = self._pace.noticed_s(time.time())
        is_fresh = self._evidence.is_fresh(now_s, noticed_s)
        # Without probes nothing is known, and a line is not given up for that.
        is_blind = self._pace.is_spent(time.time())
        if self._is_gone:
            self._seek(now_s, is_found=is_fresh or is_blind)
        elif self._phase is _Phase.DIALLING:
            self._enter(_Phase.CARRIER, self._call)
            self._report("carrier", call=self._call)
        elif self._phase is _Phase.LINKING and (is_fresh or is_blind):
            self._come_up()
        elif self._is_silent(now_s, is_fresh=is_fresh):
            self._lose(self._silence(now_s))

    def _is_silent(self, now_s: float, *, is_fresh: bool) -> bool:
        if self._phase is _Phase.LINKING:
            return now_s >= self._began_s + self._patience_s
        return self._phase is _Phase.UP and not is_fresh

    def _obstacle(self, now_s: float) -> str | None:
        """Why nothing can get through; empty if nothing is known against it, None if it is too early to tell."""
        name, table = self._settings.interface, self._watch.table
        link = table.link(name)
        if not table.is_known:
            return None
        if link is None or not link.is_up or not link.has_carrier:
            self._addresses, self._addressless_s = (), None
            if link is None:
                return f"there is no interface {name}"
            return f"{name} has no carrier" if link.is_up else f"{name} is switched off: ip link set {name} up"
        addresses = table.addresses(link.index)
        if addresses:
            self._addressless_s = None
            if self._addresses and addresses != self._addresses and self._phase is _Phase.UP:
                self._note(f"{name} has {', '.join(addresses)} instead of {', '.join(self._addresses)}")
            self._addresses = addresses
            return ""
        if self._addressless_s is None:
            self._addressless_s = now_s
        if self._is_gone or now_s >= self._addressless_s + _GRACE_S:
            self._addresses = ()
            return f"{name} has no address"
        return None

    def _open(self, now_s: float) -> None:
        self._opened_s = now_s
        self._prober.open({ipaddress.ip_interface(one).version for one in self._addresses})

    def _follow(self, now_s: float) -> None:
        """Sockets are bound to an interface by its index: one that was unplugged has another one afterwards."""
        link = self._watch.table.link(self._settings.interface)
        if link is not None and link.index != self._index:
            self._index = link.index
            self._counters = self._first = None
            self._evidence.forget()
            self._open(now_s)

    def _count(self, now_s: float) -> None:
        link = self._watch.table.link(self._settings.interface)
        if link is not None and link.counters is not None:
            if self._counters is not None and link.counters.packets_in > self._counters.packets_in:
                self._arrived_s = now_s
            self._counters = link.counters
        if link is not None and self._phase in (_Phase.LINKING, _Phase.UP) and now_s >= self._counted_s + _COUNT_S:
            self._counted_s = now_s
            self._watch.look(link.index)

    def _seek(self, now_s: float, *, is_found: bool) -> None:
        """The line is gone although carrier and address are there: it is back when both ways are proven."""
        if is_found:
            self._is_gone, self._why = False, ""
            self._note_gap_s, self._note_after_s = _NOTE_S, float("-inf")
            self._report("port-back")
            return
        if now_s >= self._opened_s + _REOPEN_S:
            self._open(now_s)  # a name may have another address by now
        why = self._prober.failure or f"no answer from {self._prober.asked}"
        if why != self._why:
            self._why = why
            self._note(why)

    def _come_up(self) -> None:
        self._enter(_Phase.UP, self._call)
        self._first = self._counters
        self._counted_s = float("-inf")
        self._report("link-up", call=self._call)

    def _lose(self, cause: str) -> None:
        """The line is dead, or stays so. Only the first cause is reported: an interface without address fills no journal."""
        is_known = self._is_gone
        self._is_gone, self._route_failure = True, ""
        if not is_known:
            self._why, self._noted = cause, cause
            self._note_after_s = time.monotonic() + self._note_gap_s
            self._report("port-gone", call=self._call or None, cause=cause)
            self._enter(_Phase.IDLE, 0)
        elif cause != self._why:
            self._why = cause
            self._note(cause)
        if self._addresses == () and self._index is not None:
            self._prober.close()
            self._evidence.forget()
            self._index = None

    def _silence(self, now_s: float) -> str:
        """Which way is dead, as far as that can be known."""
        evidence = self._evidence
        if self._prober.failure:
            return self._prober.failure
        age_s = evidence.age_s(now_s)
        for_s = f"{age_s:.1f} s" if age_s < float("inf") else f"{now_s - self._began_s:.1f} s"
        if evidence.inward_s is not None and now_s - evidence.inward_s < _STILL * self._pace.interval_s(time.time()):
            return f"outward way dead: {self._prober.asked} says that nothing has arrived for {for_s}"
        # Bytes that arrived before the line broke are counted up to a second later.
        if self._arrived_s > (self._began_s if evidence.inward_s is None else evidence.inward_s) + 2 * _COUNT_S:
            return f"no answer from {self._prober.asked} for {for_s}, although frames arrive"
        return f"no answer from {self._prober.asked} for {for_s}, and nothing else arrives"

    def _note(self, text: str) -> None:
        """For the journal, unless much is noted: a flapping wire must not fill it. Status has the last cause in any case."""
        now_s = time.monotonic()
        if text != self._noted and now_s >= self._note_after_s:
            self._noted, self._note_after_s = text, now_s + self._note_gap_s
            self._note_gap_s = min(2 * self._note_gap_s, _LONGEST_NOTE_S)
            self._report("note", cause=text)

    def _enter(self, phase: _Phase, call: int) -> None:
        self._phase, self._call, self._began_s = phase, call, time.monotonic()
        self._wake.set()

    # Routes.

    async def _keep_routes(self, now_s: float) -> None:
        link = self._watch.table.link(self._settings.interface)
        if not self._settings.route or now_s < self._route_after_s or link is None:
            return
        there = self._watch.table.routes(link.index)
        is_up = self._phase is _Phase.UP
        # The kernel takes no route where there is no address.
        routes = wanted(self._settings, self._metric, link.index, there, is_up=is_up) if self._addresses else set()
        self._route_failure = ""
        for route, is_new in changes(routes, there):
            try:
                await self._watch.change_route(route, is_new=is_new)
            except (OSError, TimeoutError) as error:
                words = _refusal(error, route.metric)
                self._route_failure = f"the default route over {self._settings.interface} cannot be changed: {words}"
                self._route_after_s = now_s + _ROUTE_RETRY_S
                self._note(self._route_failure)
                return

    async def _take_routes_away(self) -> None:
        link = self._watch.table.link(self._settings.interface)
        if self._settings.route and link is not None:
            for route, is_new in changes(set(), self._watch.table.routes(link.index)):
                await self._watch.change_route(route, is_new=is_new)

    # Reports.

    def _carried(self) -> tuple[int | None, int | None]:
        """Bytes that the interface has carried since the line came up."""
        if self._first is None or self._counters is None:
            return None, None
        now, first = self._counters, self._first
        return max(0, now.bytes_in - first.bytes_in), max(0, now.bytes_out - first.bytes_out)

    def _report(self, event: str, *, call: int | None = None, cause: str = "") -> None:
        bytes_in, bytes_out = self._carried()
        self._tell(Report(self.name, event, call=call, cause=cause, bytes_in=bytes_in, bytes_out=bytes_out))


def _refusal(error: OSError, metric: int) -> str:
    """Why a route of this metric cannot be changed, and what helps."""
    if isinstance(error, FileExistsError):
        return f"another route has metric {metric}; give the line another metric"
    remedy = "; give the operator CAP_NET_ADMIN" if isinstance(error, PermissionError) else ""
    return (error.strerror or "no answer").lower() + remedy

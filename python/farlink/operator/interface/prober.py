"""Probes of a line: to one target after the other, more of them as soon as an answer is late, and answers to far operators."""

from __future__ import annotations

import asyncio
import ipaddress
import os
import time
from collections import deque
from collections.abc import Callable, Collection
from contextlib import suppress

from farlink.operator.interface.answering import Answerer
from farlink.operator.interface.evidence import Evidence
from farlink.operator.interface.pace import Pace
from farlink.operator.interface.settings import InterfaceSettings, host_and_port, udp_bytes
from farlink.operator.interface.sockets import Datagrams, udp_socket
from farlink.operator.interface.targets import Host, Peer, Target

# An answer is late after two round trips, and not sooner than this.
_LATE_S = 0.2
_LATE_ROUND_TRIPS = 2.0
# While an answer is late, so many probes go in the time in which a dead line is noticed: a lost packet is no dead line.
_SUSPECT_PROBES = 15
_LEAST_GAP_S = 0.1
# A probe that the interface did not take is tried again.
_REFUSED_S = 0.25
# A name that nobody knows, or a socket that is refused, is tried again.
_RETRY_S = 15.0


class Prober:
    """Sends probes over an interface, and answers those of far operators.

    Parameters
    ----------
    settings
        Of the line.
    evidence, pace
        Get what is proven, and what it costs.
    wake
        Is called when something has come.

    Attributes
    ----------
    failure
        Why nobody can be asked, in words; empty if somebody can.
    """

    def __init__(self, settings: InterfaceSettings, evidence: Evidence, pace: Pace, wake: Callable[[], None]) -> None:
        self._settings, self._evidence, self._pace, self._wake = settings, evidence, pace, wake
        self._targets: list[Target] = [Peer(settings.peer, evidence)] if settings.peer else []
        self._targets += [Host(name, evidence) for name in settings.probe]
        self._opened: list[Target] = []
        self._answerer = Answerer(evidence, os.urandom(32))
        self._listener: Datagrams | None = None
        self._opening: asyncio.Task[None] | None = None
        self._at = 0
        self._sent_s = float("-inf")
        # Of probes since the last proof.
        self._open_s: deque[float] = deque(maxlen=1000)
        self.failure = ""

    def open(self, versions: Collection[int]) -> None:
        """Open sockets, now or as soon as that can be; names are looked up again.

        Parameters
        ----------
        versions
            Those of IP of which the interface has addresses.
        """
        self.close()
        self._opening = asyncio.create_task(self._open(versions))

    def close(self) -> None:
        """Send and hear nothing more."""
        if self._opening is not None:
            self._opening.cancel()
            self._opening = None
        for target in self._targets:
            target.close()
        self._opened = []
        if self._listener is not None:
            self._listener.close()
            self._listener = None
        self._open_s.clear()
        self._sent_s, self.failure = float("-inf"), ""

    def next_s(self, *, is_asking: bool, is_up: bool) -> float:
        """When `tick` is to be called next; infinite if something has to come first."""
        due_s = self._answerer.next_s if self._listener is not None else float("inf")
        if is_asking and self._opened:
            due_s = min(due_s, self._due_s(is_up=is_up))
        return due_s

    def tick(self, now_s: float, *, is_asking: bool, is_up: bool) -> None:
        """Send what is due.

        Parameters
        ----------
        now_s
            The monotonic clock.
        is_asking
            Whether targets are asked.
        is_up
            Whether the line is up, and an answer that is late makes it suspect.
        """
        if self._listener is not None and now_s >= self._answerer.next_s:
            for data, sender in self._answerer.due(now_s):
                self._reply(data, sender)
        if is_asking and self._opened and now_s >= self._due_s(is_up=is_up):
            self._ask(now_s)

    @property
    def asked(self) -> str:
        """Whom this line asks, or by whom it is asked, in words."""
        return ", ".join(target.name for target in self._targets) or "the far operator"

    def _due_s(self, *, is_up: bool) -> float:
        """When the next target is to be asked: soon, once an answer of a line that is up is late."""
        interval_s = self._pace.interval_s(time.time())
        due_s = self._sent_s + interval_s
        self._forget_answered()
        if not is_up or not self._open_s or interval_s == float("inf"):
            return due_s
        late_s = max(_LATE_S, _LATE_ROUND_TRIPS * (self._evidence.median_round_trip_s or 0.0))
        gap_s = max(_LEAST_GAP_S, self._settings.noticed_s / _SUSPECT_PROBES)
        return min(due_s, max(self._open_s[0] + late_s, self._sent_s + gap_s))

    def _forget_answered(self) -> None:
        proven_s = self._evidence.outward_s
        while self._open_s and proven_s is not None and self._open_s[0] <= proven_s:
            self._open_s.popleft()

    def _ask(self, now_s: float) -> None:
        self._forget_answered()
        if self._open_s:
            self._at += 1  # the last one has not answered
        target = self._opened[self._at % len(self._opened)]
        self._sent_s = now_s
        self._open_s.append(now_s)
        try:
            target.send(now_s, self._pace.interval_s(time.time()))
            self.failure = ""
        except OSError as error:
            self.failure = f"{target.name}: {(error.strerror or str(error)).lower()}"
            # Nothing was sent: DHCP gives an address first, and a route a moment later.
            self._sent_s = now_s + min(0.0, _REFUSED_S - self._pace.interval_s(time.time()))
            self._open_s.pop()

    def _spend(self, count: int) -> None:
        self._pace.spend(count, time.time())

    async def _open(self, versions: Collection[int]) -> None:
        """Open all sockets. One that cannot be opened keeps the others from nothing, and is tried again."""
        waiting: list[Target | None] = [*self._targets, *([None] if self._settings.probe_listen else [])]
        while waiting:
            left = []
            for target in waiting:
                try:
                    if target is None:
                        self._listen()
                    else:
                        await target.open(self._settings.interface, versions, self._spend, self._wake)
                        self._opened.append(target)
                except OSError as error:
                    self.failure = self._refusal(target, error)
                    left.append(target)
            self._wake()
            waiting = left
            if waiting:
                await asyncio.sleep(_RETRY_S)

    def _refusal(self, target: Target | None, error: OSError) -> str:
        name = self._settings.probe_listen if target is None else target.name
        words = (error.strerror or str(error)).lower()
        if isinstance(error, PermissionError):
            return f"{name}: this user may not probe over {self._settings.interface} ({words}); give it CAP_NET_RAW"
        return f"{name}: {words}"

    def _listen(self) -> None:
        host, port = host_and_port(self._settings.probe_listen)
        address = ipaddress.ip_address(host)
        # Nothing comes over another interface to the loopback address.
        interface = "" if address.is_loopback else self._settings.interface
        opened = udp_socket((host, port), interface, version=address.version)
        self._listener = Datagrams(opened, self._came)

    def _came(self, data: bytes, sender: tuple[str, int]) -> None:
        self._spend(udp_bytes(sender[0]))
        if self._pace.is_spent(time.time()):
            return
        answer = self._answerer.feed(data, sender, time.monotonic())
        if answer is not None:
            self._reply(answer, sender)
            self._wake()

    def _reply(self, data: bytes, to: tuple[str, int]) -> None:
        if self._listener is not None:
            with suppress(OSError):
                self._listener.send(data, to)
                self._spend(udp_bytes(to[0]))

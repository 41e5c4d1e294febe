"""Ports and links in memory, wired to the modems of a bank: the operator's lines cannot tell them from a tty and its pppd."""

from __future__ import annotations

import asyncio
import errno
import random
from collections.abc import Callable
from typing import Any

from farlink.operator.backend.link import Carried, Down, Probe, Up
from farlink.operator.bank.config import BankConfig, Scripted
from farlink.operator.bank.exchange import Exchange
from farlink.operator.bank.modem import Modem, Phase
from tests.operator.virtual_time import Clocks

SET_UP_S, PROBE_S, PROBES = 4.0, 30.0, 4
"""Of a link: until it is up, between two probes, and lost ones until it is given up."""


class Field:
    """A bank whose answers are corrupted now and then, and whose ports come and go."""

    def __init__(self, config: BankConfig, clocks: Clocks, rng: random.Random, corrupted: float) -> None:
        self.clocks, self._rng, self._corrupted = clocks, rng, corrupted
        self.exchange = Exchange(config)
        self.missing: set[str] = set()
        self.ports: dict[str, Port] = {}
        self._timer: asyncio.TimerHandle | None = None
        self.answers = self.corrupted_answers = 0

    def modem(self, path: str) -> Modem:
        """The modem of a port, or of a line: both end with its name."""
        return self.exchange.modems[path.rpartition("/")[2]]

    def do(self, modem: str, action: str, level: int = 0) -> None:
        """Do something to a modem."""
        now = self.clocks.monotonic_s
        self.exchange.do(Scripted(now, modem, action, level), now)
        self.settle()

    def unplug(self, name: str) -> None:
        """Take a modem away from its port."""
        self.missing.add(name)
        if name in self.ports:
            self.ports[name].lose()

    def plug(self, name: str) -> None:
        """Bring it back."""
        self.missing.discard(name)

    def settle(self) -> None:
        """Let modems say what they have to, and wait for what is next."""
        self.exchange.advance(self.clocks.monotonic_s)
        for name, modem in self.exchange.modems.items():
            port = self.ports.get(name)
            if self.exchange.take_lost(modem) and port is not None and not port.has_pins:
                port.lose()
            if modem.output:
                said = bytes(modem.output)
                modem.output.clear()
                if port is not None:
                    port.came(self._said(said))
        if self._timer is not None:
            self._timer.cancel()
        due = self.exchange.poll_timeout()
        self._timer = None if due is None else asyncio.get_running_loop().call_at(due, self.settle)

    def _said(self, said: bytes) -> bytes:
        """What arrives of an answer: of some, not what was sent."""
        self.answers += 1
        if self._rng.random() >= self._corrupted:
            return said
        self.corrupted_answers += 1
        at = self._rng.randrange(len(said))
        how = self._rng.randrange(5)
        if how == 0:
            return said[:at]
        if how == 1:
            return said[at:]
        if how == 2:
            return said[:at] + self._rng.randbytes(self._rng.randrange(1, 40)) + said[at:]
        if how == 3:
            return said + said
        return said[:at] + bytes((said[at] ^ (1 << self._rng.randrange(8)),)) + said[at + 1 :]


class Port:
    """In the place of `farlink.operator.lines.port.Port`. Every other modem has DTR and DCD."""

    field: Field

    def __init__(self, modem: Modem, wake: Callable[[], None]) -> None:
        self._modem, self._wake = modem, wake
        self._unread = bytearray()
        self.is_lost = self._is_paused = False
        self.has_pins = int(modem.number) % 2 == 0

    @classmethod
    async def open(cls, path: str, speed_bps: int, wake: Callable[[], None]) -> Port:  # noqa: ARG003
        field, modem = cls.field, cls.field.modem(path)
        if modem.name in field.missing:
            raise FileNotFoundError(errno.ENOENT, "No such file or directory")
        if modem.name in field.ports:
            raise OSError(errno.EBUSY, "Device or resource busy")
        modem.has_dtr = True
        port = field.ports[modem.name] = cls(modem, wake)
        return port

    @property
    def fileno(self) -> int:
        return -1 if self.is_lost else int(self._modem.number)

    def write(self, data: bytes) -> None:
        if data and not self.is_lost:
            self.field.exchange.typed(self._modem, data, self.field.clocks.monotonic_s)
            self.field.settle()

    def take(self) -> bytes:
        taken = bytes(self._unread)
        self._unread.clear()
        return taken

    def came(self, data: bytes) -> None:
        if not self._is_paused and not self.is_lost:
            self._unread += data
            self._wake()

    def pause(self) -> None:
        self._is_paused = True

    def resume(self) -> None:
        self._is_paused = False

    @property
    def is_hung_up(self) -> bool:
        return self.is_lost

    async def carrier(self) -> bool | None:
        return self._modem.phase in (Phase.ONLINE, Phase.ESCAPED) if self.has_pins else None

    async def lower_dtr(self) -> None:
        self.field.exchange.closed(self._modem, self.field.clocks.monotonic_s)
        self.field.settle()

    def lose(self) -> None:
        self.is_lost = True
        self._wake()

    async def close(self) -> None:
        self.is_lost = True
        del self.field.ports[self._modem.name]
        self._modem.has_dtr = False
        await self.lower_dtr()


class Wires:
    """In the place of pppd: a link is up while the call is, and tells whether its probes are answered."""

    name = "wires"

    def __init__(self, field: Field) -> None:
        self._field = field

    def missing(self) -> None:
        return None

    def prepare(self) -> list[str]:
        return []

    def delay_s(self, line: str) -> float:  # noqa: ARG002
        return 0.0

    async def start(self, line: str, tty: int, tell: Callable[[Any], None]) -> _Wire:  # noqa: ARG002
        return _Wire(self._field, self._field.modem(line), tell)

    def is_bundle_lost(self) -> bool:
        return False

    async def tear_down(self) -> None:
        return None


class _Wire:
    def __init__(self, field: Field, modem: Modem, tell: Callable[[Any], None]) -> None:
        self._task = asyncio.create_task(self._carry(field, modem, tell))

    async def _carry(self, field: Field, modem: Modem, tell: Callable[[Any], None]) -> None:
        await asyncio.sleep(SET_UP_S)
        call = field.exchange._call_of(modem)
        if call is None:
            return  # that the carrier is lost is told by the port
        tell(Up())
        lost = sent = 0
        while lost < PROBES:
            await asyncio.sleep(PROBE_S)
            sent += 100
            is_deaf = modem.is_deaf or call.other(modem).is_deaf
            lost = lost + 1 if is_deaf else 0
            tell(Probe(not is_deaf))
            tell(Carried(sent, sent))
        tell(Down("the far end answers no probes any more"))

    async def hang_up(self, *, ends_bundle: bool = False) -> None:  # noqa: ARG002
        self._task.cancel()

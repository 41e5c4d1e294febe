"""Dialogues and the modems of a bank, wired to each other in virtual time."""

from __future__ import annotations

import math
from typing import Any

from farlink.operator.at import events as ev
from farlink.operator.at.dialogue import Dialogue, State
from farlink.operator.bank.config import config_of
from farlink.operator.bank.exchange import Exchange


class World:
    """A bank of `table`, and a dialogue at each of its modems."""

    def __init__(self, table: dict[str, Any], *, pin: str | None = None, asks_callers: bool = False) -> None:
        config = config_of(table, where="test")
        self.exchange = Exchange(config)
        self.now = 0.0
        self.dialogues = {one.name: Dialogue(one.profile, pin=pin, asks_callers=asks_callers) for one in config.modems}
        self.events: list[tuple[float, str, ev.Event]] = []
        # Data for the call, as pppd would write them.
        self.data: dict[str, bytes] = {}

    def start(self) -> None:
        """Start all dialogues, and run until they have ended their start."""
        for dialogue in self.dialogues.values():
            dialogue.start(self.now)
        self.run(10.0)
        assert all(dialogue.state is State.READY for dialogue in self.dialogues.values()), self.events

    def note(self, name: str, found: list[ev.Event]) -> None:
        """Keep events, and drop DTR where a dialogue asks for it."""
        self.events += [(self.now, name, event) for event in found]
        if any(isinstance(event, ev.PinNeeded) for event in found):
            self.dialogues[name].enter_pin(self.now)
        if any(isinstance(event, ev.DropDtr) for event in found):
            self.exchange.closed(self.exchange.modems[name], self.now)

    def seen(self, name: str, kind: type) -> list[Any]:
        """Events of a kind."""
        return [event for _, one, event in self.events if one == name and isinstance(event, kind)]

    def received(self, name: str) -> bytes:
        """Data of the calls of a modem."""
        return b"".join(event.content for event in self.seen(name, ev.Data))

    def run(self, for_s: float) -> None:
        """Let virtual time pass."""
        end = self.now + for_s
        while True:
            while self._exchanged():
                pass
            times = [self.exchange.poll_timeout(), *(dialogue.poll_timeout() for dialogue in self.dialogues.values())]
            if any(self.data.values()):
                times.append(self.now + 0.1)
            due = min((time for time in times if time is not None), default=math.inf)
            if due > end:
                self.now = end
                return
            self.now = max(self.now, due)
            self.exchange.advance(self.now)
            for name, dialogue in self.dialogues.items():
                self.note(name, dialogue.feed(b"", self.now))

    def _exchanged(self) -> bool:
        """Carry bytes both ways; whether there were any."""
        moved = False
        for name, dialogue in self.dialogues.items():
            modem = self.exchange.modems[name]
            if self.exchange.take_lost(modem):
                self.note(name, dialogue.carrier(False, self.now))
            written = dialogue.poll_output()
            if dialogue.state is State.ONLINE and not written:
                room = self.exchange.room(modem, self.now)
                waiting = self.data.get(name, b"")
                written, self.data[name] = waiting[:room], waiting[room:]
            if written:
                self.exchange.typed(modem, written, self.now)
            said = bytes(modem.output)
            modem.output.clear()
            self.note(name, dialogue.feed(said, self.now) if said else [])
            moved = moved or bool(written or said)
        return moved

"""Messages that wait to be sent: a queue for each way out, with growing pauses after failures. It has no clock.

Call `take` when a route is free, and `done` with what came of it.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field

from farlink.operator.alerts.message import MOST_TOGETHER, Message

MOST_WAITING = 200
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 5.0, 600.0
# So often sending has to fail in a row, before that is an alert of its own.
_FAILING = 2


@dataclass
class _Route:
    waiting: deque[Message] = field(default_factory=deque)
    sending: list[Message] = field(default_factory=list)
    try_at: float = 0.0
    failures: int = 0
    why: str = ""
    sent: int = 0
    left_out: int = 0


class Outbox:
    """Messages and the routes by which each of them goes.

    Parameters
    ----------
    routes
        Their names.
    pause_s
        After the first failure; it doubles with each further one, up to 10 min.

    Examples
    --------
    >>> outbox = Outbox(["office"])
    >>> outbox.put(Message("camp", "raised", "1", "bundle is down", "", "critical", 0.0))
    >>> [one.title for one in outbox.take("office", now=0.0)]
    ['bundle is down']
    >>> outbox.done("office", "no connection", now=1.0)
    []
    >>> outbox.take("office", now=2.0), len(outbox.take("office", now=6.0))
    ([], 1)
    """

    def __init__(self, routes: Iterable[str], *, pause_s: float = _FIRST_PAUSE_S) -> None:
        self._routes = {name: _Route() for name in routes}
        self._pause_s = pause_s

    @property
    def routes(self) -> list[str]:
        """Their names."""
        return list(self._routes)

    def put(self, message: Message) -> None:
        """Take a message for each route; where too many wait, the oldest is left out."""
        for route in self._routes.values():
            if len(route.waiting) >= MOST_WAITING:
                route.waiting.popleft()
                route.left_out += 1
            route.waiting.append(message)

    def take(self, name: str, now: float) -> list[Message]:
        """Messages to send by a route now; none while it is busy or pauses. `done` reports their outcome."""
        route = self._routes[name]
        if route.sending or now < route.try_at:
            return []
        while route.waiting and len(route.sending) < MOST_TOGETHER:
            route.sending.append(route.waiting.popleft())
        return list(route.sending)

    def done(self, name: str, why: str, now: float) -> list[Message]:
        """Take the outcome of sending: empty if it was sent, else why it was not. Returns what was sent."""
        route = self._routes[name]
        sent, route.sending, route.why = route.sending, [], why
        if not why:
            route.failures, route.try_at = 0, now
            route.sent += len(sent)
            return sent
        route.waiting.extendleft(reversed(sent))
        while len(route.waiting) > MOST_WAITING:
            route.waiting.popleft()
            route.left_out += 1
        route.try_at = now + min(self._pause_s * 2.0 ** min(route.failures, 30), _LONGEST_PAUSE_S)
        route.failures += 1
        return []

    def forget(self, name: str, keys: Iterable[str]) -> set[str]:
        """Take alerts out of a route's queue; those that were in it."""
        route, gone = self._routes[name], set(keys)
        found = {one.key for one in route.waiting if one.key in gone}
        route.waiting = deque(one for one in route.waiting if one.key not in gone)
        return found

    def messages(self, name: str) -> list[Message]:
        """Messages that wait for a route and are not being sent."""
        return list(self._routes[name].waiting)

    def is_sending(self, name: str, key: str) -> bool:
        """Whether a message about an alert is on its way."""
        return any(one.key == key for one in self._routes[name].sending)

    def hurry(self, now: float) -> None:
        """Something is up again: routes that pause try now."""
        for route in self._routes.values():
            route.try_at = min(route.try_at, now)

    def next_at(self) -> float | None:
        """When `take` gives something next; None if nothing waits or all are busy."""
        return min((one.try_at for one in self._routes.values() if one.waiting and not one.sending), default=None)

    def waiting(self, name: str) -> int:
        """How many messages wait for a route, those that are being sent among them."""
        route = self._routes[name]
        return len(route.waiting) + len(route.sending)

    def failure(self) -> str:
        """Which routes have failed again and again, and why; empty if none has."""
        found = [f"{name}: {one.why}" for name, one in self._routes.items() if one.failures >= _FAILING]
        return "; ".join(found)

    def dump(self) -> str:
        """Waiting messages, as text for `load`."""
        found = {name: [asdict(message) for message in (*one.sending, *one.waiting)] for name, one in self._routes.items()}
        return json.dumps({name: messages for name, messages in found.items() if messages})

    def load(self, text: str) -> None:
        """Take what an earlier process had waiting; nonsense, and routes that are gone, are left out."""
        try:
            for name, messages in json.loads(text or "{}").items():
                if name in self._routes:
                    self._routes[name].waiting.extend(Message(**one) for one in messages[-MOST_WAITING:])
        except (ValueError, TypeError, AttributeError, RecursionError):
            return

    def status(self) -> list[dict[str, object]]:
        """Each route, for `farlink bundle status`."""
        return [
            {
                "route": name,
                "waiting": self.waiting(name),
                "sent": one.sent,
                "left_out": one.left_out,
                "failures": one.failures,
                "why": one.why,
            }
            for name, one in self._routes.items()
        ]

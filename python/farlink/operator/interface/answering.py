"""The end that answers far operators, without a socket: it amplifies nothing, and keeps nothing of those it does not know.

An answer is as long as what it answers. A message of its own accord goes only to an address that has shown a token, which only
who receives there can have; so nobody gets bytes that somebody else has asked for in its name.
"""

from __future__ import annotations

import hmac
from collections import OrderedDict
from dataclasses import dataclass, field

from farlink.operator.interface.evidence import Evidence
from farlink.operator.interface.peer_message import LONGEST_INTERVAL_S, PeerMessage, parsed
from farlink.operator.interface.sent import Sent

Sender = tuple[str, int]

_MOST_SESSIONS = 64
# Messages of its own accord to an end that has fallen silent: it is to know that its probes do not arrive.
_MOST_UNASKED = 20
_LATE = 1.5
_SHORTEST_INTERVAL_S = 0.1
MOST_ANSWERS_PER_S = 200.0


@dataclass
class _Session:
    sent: Sent = field(default_factory=Sent)
    interval_s: float = LONGEST_INTERVAL_S
    got: int = 0
    got_s: float = 0.0
    told: int = 0
    unasked: int = 0
    sent_s: float = 0.0


class Answerer:
    """Answers, and what the far ends say of them.

    Parameters
    ----------
    evidence
        Gets the proofs of all far ends together.
    secret
        At random; tokens are made with it.

    Attributes
    ----------
    refused
        Messages that were none, or too many.
    """

    def __init__(self, evidence: Evidence, secret: bytes) -> None:
        self._evidence, self._secret = evidence, secret
        self._sessions: OrderedDict[tuple[Sender, int], _Session] = OrderedDict()
        self._allowance, self._allowance_s = MOST_ANSWERS_PER_S, 0.0
        self.refused = 0

    def feed(self, data: bytes, sender: Sender, now_s: float) -> bytes | None:
        """The answer to what came from an address; None if there is none."""
        message = parsed(data)
        if message is None or message.is_answer or not self._may_answer(now_s):
            self.refused += 1
            return None
        token = self._token(sender, message.session)
        if not hmac.compare_digest(token, message.token):
            return PeerMessage(True, message.interval_s, message.session, token, 1, message.sequence, 0.0).packed()
        session = self._session(sender, message)
        if message.sequence > session.got or session.got - message.sequence > 1 << 16:
            session.got, session.got_s = message.sequence, now_s
        session.interval_s = min(max(message.interval_s, _SHORTEST_INTERVAL_S), LONGEST_INTERVAL_S)
        session.unasked = 0
        self._learn(session, message, now_s)
        return self._message(sender, session, message.session, now_s)

    def due(self, now_s: float) -> list[tuple[bytes, Sender]]:
        """Messages to far ends whose probes have stopped to arrive."""
        found = []
        for (sender, number), session in self._sessions.items():
            if now_s >= self._due_s(session):
                session.unasked += 1
                found.append((self._message(sender, session, number, now_s), sender))
        return found

    @property
    def next_s(self) -> float:
        """When the next such message is due; infinite if none is."""
        return min((self._due_s(session) for session in self._sessions.values()), default=float("inf"))

    def _due_s(self, session: _Session) -> float:
        if session.unasked >= _MOST_UNASKED:
            return float("inf")
        return max(session.got_s + _LATE * session.interval_s, session.sent_s + session.interval_s)

    def _learn(self, session: _Session, message: PeerMessage, now_s: float) -> None:
        sent_s = session.sent.at(message.got)
        round_trip_s = 0.0
        if sent_s is not None:
            round_trip_s = max(0.0, now_s - sent_s - message.held_s)
            if message.got > session.told:
                session.told = message.got
                self._evidence.answered(sent_s, now_s, message.held_s)
        self._evidence.received(now_s - round_trip_s)

    def _message(self, sender: Sender, session: _Session, number: int, now_s: float) -> bytes:
        session.sent_s = now_s
        token, held_s = self._token(sender, number), max(0.0, now_s - session.got_s)
        return PeerMessage(True, session.interval_s, number, token, session.sent.add(now_s), session.got, held_s).packed()

    def _session(self, sender: Sender, message: PeerMessage) -> _Session:
        key = (sender, message.session)
        session = self._sessions.setdefault(key, _Session())
        self._sessions.move_to_end(key)
        if len(self._sessions) > _MOST_SESSIONS:
            self._sessions.popitem(last=False)
        return session

    def _token(self, sender: Sender, session: int) -> bytes:
        return hmac.digest(self._secret, f"{sender[0]} {sender[1]} {session}".encode(), "sha256")[:8]

    def _may_answer(self, now_s: float) -> bool:
        passed_s, self._allowance_s = now_s - self._allowance_s, now_s
        self._allowance = min(MOST_ANSWERS_PER_S, self._allowance + MOST_ANSWERS_PER_S * max(0.0, passed_s))
        if self._allowance < 1:
            return False
        self._allowance -= 1
        return True

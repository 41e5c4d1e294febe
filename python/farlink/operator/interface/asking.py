"""The end that asks a far operator, without a socket."""

from __future__ import annotations

from farlink.operator.interface.evidence import Evidence
from farlink.operator.interface.peer_message import PeerMessage, parsed
from farlink.operator.interface.sent import Sent


class Asker:
    """Probes, and what the far end says of them.

    Parameters
    ----------
    evidence
        Gets the proofs.
    session
        64 bits at random.
    """

    def __init__(self, evidence: Evidence, session: int) -> None:
        self._evidence, self._session = evidence, session
        self._sent = Sent()
        self._token = bytes(8)
        self._got, self._got_s = 0, 0.0
        # The last of the own probes that the far end has told of.
        self._told = 0

    def probe(self, now_s: float, interval_s: float) -> bytes:
        """The next probe, which is sent now."""
        held_s = max(0.0, now_s - self._got_s) if self._got else 0.0
        return PeerMessage(False, interval_s, self._session, self._token, self._sent.add(now_s), self._got, held_s).packed()

    def feed(self, data: bytes, now_s: float) -> bool:
        """Take what came from the far end's address; whether it was a message of it."""
        message = parsed(data)
        if message is None or not message.is_answer or message.session != self._session:
            return False
        if message.token != self._token:
            # The far end was started anew, or has not known this end yet: it counts from the beginning.
            self._token, self._got = message.token, 0
        if message.sequence <= self._got:
            return True  # late, or twice
        self._got, self._got_s = message.sequence, now_s
        sent_s = self._sent.at(message.got)
        # It was under way for no longer than a round trip; what broke since does not show in it.
        round_trip_s = 0.0 if sent_s is None else max(0.0, now_s - sent_s - message.held_s)
        self._evidence.received(now_s - round_trip_s)
        if sent_s is not None and message.got > self._told:
            self._told = message.got
            self._evidence.answered(sent_s, now_s, message.held_s)
        return True

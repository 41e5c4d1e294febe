"""The probe of two operators: each says what it has got of the other, so that both ways are judged apart.

Requests and answers are equally long, so whoever forges an address gets nobody more bytes than it has sent.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

_FORM = struct.Struct("!4sBxHQ8sIII4x")
_MAGIC = b"FLp1"

BYTES = _FORM.size
"""Of each message, without the headers of UDP and IP."""

LONGEST_INTERVAL_S = 60.0


@dataclass(frozen=True)
class PeerMessage:
    """A message.

    Attributes
    ----------
    is_answer
        Whether the end that listens has sent it.
    interval_s
        Time between two messages of the end that asks.
    session
        Drawn at random by the end that asks; what has another one is not for it.
    token
        By which the end that listens knows again whom it has answered: only who gets packets at its address has it.
    sequence
        Of this message, from 1.
    got
        The last message of the other end that arrived; 0 if none did.
    held_s
        How long ago that was.
    """

    is_answer: bool
    interval_s: float
    session: int
    token: bytes
    sequence: int
    got: int
    held_s: float

    def packed(self) -> bytes:
        """Its bytes."""
        interval_ms = round(1000 * min(self.interval_s, LONGEST_INTERVAL_S))
        held_ms = min(round(1000 * self.held_s), 0xFFFFFFFF)
        numbers = (self.sequence & 0xFFFFFFFF, self.got & 0xFFFFFFFF, held_ms)
        return _FORM.pack(_MAGIC, self.is_answer, interval_ms, self.session, self.token, *numbers)


def parsed(data: bytes) -> PeerMessage | None:
    """A message; None if these bytes are none."""
    if len(data) != BYTES or not data.startswith(_MAGIC):
        return None
    _, is_answer, interval_ms, session, token, sequence, got, held_ms = _FORM.unpack(data)
    if is_answer > 1 or sequence == 0:
        return None
    return PeerMessage(bool(is_answer), interval_ms / 1000, session, token, sequence, got, held_ms / 1000)

"""One direction of a call: bytes leave at the line's rate and arrive after its delay, out of a bounded buffer."""

from __future__ import annotations

from collections import deque

# Bytes become due in pieces of this length or shorter: a packet of PPP takes more.
_PIECE_S = 0.01


class Pace:
    """Bytes under way.

    Parameters
    ----------
    rate_bps
        Of the line, in bit/s.
    delay_s
        From when the last bit of a piece is sent to its arrival.
    buffer_bytes
        Most bytes that wait to be sent.

    Examples
    --------
    >>> pace = Pace(rate_bps=800, delay_s=1.0, buffer_bytes=64)
    >>> pace.put(b"x" * 100, now=0.0), pace.next_at
    (64, 1.01)
    >>> pace.take(now=1.11), pace.room(now=0.32)
    (b'xxxxxxxxxxx', 32)
    """

    def __init__(self, *, rate_bps: float, delay_s: float, buffer_bytes: int) -> None:
        self._rate_bps = rate_bps
        self._delay_s = delay_s
        self._buffer_bytes = buffer_bytes
        self._free_at = 0.0
        self._under_way: deque[tuple[float, bytes]] = deque()
        self._piece_bytes = max(1, int(rate_bps * _PIECE_S / 8))

    def room(self, now: float) -> int:
        """How many bytes the buffer takes at this time."""
        waiting = max(0.0, self._free_at - now) * self._rate_bps / 8
        return max(0, int(self._buffer_bytes - waiting + 1e-6))

    def put(self, data: bytes, now: float) -> int:
        """Take bytes, as many as there is room for; returns how many."""
        taken = min(len(data), self.room(now))
        at = max(self._free_at, now)
        for begin in range(0, taken, self._piece_bytes):
            piece = data[begin : min(begin + self._piece_bytes, taken)]
            at += len(piece) * 8 / self._rate_bps
            self._under_way.append((at + self._delay_s, piece))
        self._free_at = at
        return taken

    @property
    def next_at(self) -> float | None:
        """When the next bytes arrive."""
        return self._under_way[0][0] if self._under_way else None

    def take(self, now: float) -> bytes:
        """Bytes that have arrived."""
        arrived = bytearray()
        while self._under_way and self._under_way[0][0] <= now + 1e-9:
            arrived += self._under_way.popleft()[1]
        return bytes(arrived)

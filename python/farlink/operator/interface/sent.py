"""When probes were sent, by their sequence numbers."""

from __future__ import annotations

from collections import OrderedDict

_MOST = 256


class Sent:
    """The last probes of one target.

    Examples
    --------
    >>> sent = Sent()
    >>> sent.add(10.0), sent.add(11.0), sent.at(1), sent.at(7)
    (1, 2, 10.0, None)
    """

    def __init__(self, most_sequence: int = 0xFFFFFFFF) -> None:
        self._most_sequence = most_sequence
        self._sequence = 0
        self._times: OrderedDict[int, float] = OrderedDict()

    def add(self, now_s: float) -> int:
        """The number of the next probe, which is sent now."""
        self._sequence = self._sequence % self._most_sequence + 1
        self._times[self._sequence] = now_s
        if len(self._times) > _MOST:
            self._times.popitem(last=False)
        return self._sequence

    def at(self, sequence: int) -> float | None:
        """When a probe was sent; None if it was not, or that is long ago."""
        return self._times.get(sequence)

    def take(self, sequence: int) -> float | None:
        """The same, once: an answer that comes twice is one."""
        return self._times.pop(sequence, None)

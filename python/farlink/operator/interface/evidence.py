"""What is known of both ways of a line: when something last got through, and how long it took. It has no clock."""

from __future__ import annotations

import statistics
from collections import deque

_ROUND_TRIPS = 100


class Evidence:
    """Proofs of both ways.

    A way is proven by a probe that is known to have arrived, from the moment when it was sent: what got through before the
    line broke tells nothing of later.

    Attributes
    ----------
    outward_s, inward_s
        When the last proof of the way was sent (outward) or was sent for or arrived (inward); None if there is none.
    """

    def __init__(self) -> None:
        self.outward_s: float | None = None
        self.inward_s: float | None = None
        self._round_trips: deque[float] = deque(maxlen=_ROUND_TRIPS)

    def answered(self, sent_s: float, now_s: float, held_s: float = 0.0) -> None:
        """A probe was answered.

        Parameters
        ----------
        sent_s, now_s
            When it was sent, and when the answer came.
        held_s
            How long the far end had it before it answered.
        """
        self.arrived(sent_s)
        self.received(sent_s)
        self._round_trips.append(max(0.0, now_s - sent_s - held_s))

    def arrived(self, sent_s: float) -> None:
        """The far end says that it has got what was sent then."""
        self.outward_s = sent_s if self.outward_s is None else max(self.outward_s, sent_s)

    def received(self, at_s: float) -> None:
        """Something of the far end arrived that was not sent before that."""
        self.inward_s = at_s if self.inward_s is None else max(self.inward_s, at_s)

    def forget(self) -> None:
        """Nothing is proven any more. Round trips are kept."""
        self.outward_s = self.inward_s = None

    def shift(self, by_s: float) -> None:
        """Moves what is proven by a time without looks and without traffic, which does not count as silence of the line."""
        self.outward_s = None if self.outward_s is None else self.outward_s + by_s
        self.inward_s = None if self.inward_s is None else self.inward_s + by_s

    def is_fresh(self, now_s: float, within_s: float) -> bool:
        """Whether both ways were proven within so long."""
        return now_s < self.until_s(within_s)

    def until_s(self, within_s: float) -> float:
        """When the older of both proofs is so old; long ago if one is missing."""
        if self.outward_s is None or self.inward_s is None:
            return float("-inf")
        return min(self.outward_s, self.inward_s) + within_s

    def age_s(self, now_s: float) -> float:
        """How old the older of both proofs is; infinite if one is missing."""
        if self.outward_s is None or self.inward_s is None:
            return float("inf")
        return now_s - min(self.outward_s, self.inward_s)

    @property
    def round_trip_s(self) -> float | None:
        """The last round trip."""
        return self._round_trips[-1] if self._round_trips else None

    @property
    def least_round_trip_s(self) -> float | None:
        """The shortest of the last hundred."""
        return min(self._round_trips, default=None)

    @property
    def median_round_trip_s(self) -> float | None:
        """The median of the last hundred."""
        return statistics.median(self._round_trips) if self._round_trips else None

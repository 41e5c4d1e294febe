"""Links with long TCP connections, as input of a model of goodput."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Path:
    """The path of a connection other than the link's rate and its losses.

    Attributes
    ----------
    round_trip_s
        Round trip without the time that a segment takes to be sent, in s.
    buffer_bdp
        Room in the queue in front of the link, over what the link carries in a round trip.
    segments_per_ack
        Segments that an acknowledgement answers.
    """

    round_trip_s: float = 0.5
    buffer_bdp: float = 1.0
    segments_per_ack: int = 1

    def rtt_s(self, rate_segments_per_s: Floats, wait_segments: Floats | float = 0.0) -> Floats:
        """Round trip with the time that a segment takes to be sent: Celandroni's T; and with that it waits for others."""
        return self.round_trip_s + (1 + wait_segments) / rate_segments_per_s

    def buffer_segments(self, rate_segments_per_s: Floats, wait_segments: Floats | float = 0.0) -> Floats:
        """Room in the queue, a whole number of segments and at least one."""
        carried = rate_segments_per_s * self.rtt_s(rate_segments_per_s, wait_segments)
        return np.asarray(np.maximum(1.0, np.round(self.buffer_bdp * carried)))


@dataclass(frozen=True)
class Precision:
    """How exactly goodput is simulated.

    Attributes
    ----------
    ci
        The fluid engine goes on until the half-width of the interval is at most this share of the goodput.
    level
        Confidence level of the intervals of all engines, between 0 and 1.

    References
    ----------
    Celandroni, section III: "a confidence interval of ±1% at 99% level".
    """

    ci: float = 0.01
    level: float = 0.99


DEFAULT_PRECISION = Precision()


@dataclass(frozen=True)
class Offered:
    """Links on which connections run, one for each element.

    Attributes
    ----------
    rate_segments_per_s
        Rate of each link; one dimension.
    loss
        Probability that a segment is lost, below 1; likewise.
    flows
        Connections on each link.
    path
        The rest of the path.
    precision
        How exactly their goodput is simulated.
    wait_segments
        Segments that one waits for before it is decoded, where a code spans several; 0 elsewhere.
    """

    rate_segments_per_s: Floats
    loss: Floats
    flows: int
    path: Path
    precision: Precision = DEFAULT_PRECISION
    wait_segments: Floats | float = 0.0

    @property
    def rtt_s(self) -> Floats:
        """See `Path.rtt_s`."""
        return self.path.rtt_s(self.rate_segments_per_s, self.wait_segments)

    @property
    def buffer_segments(self) -> Floats:
        """See `Path.buffer_segments`."""
        return self.path.buffer_segments(self.rate_segments_per_s, self.wait_segments)

    @property
    def waits(self) -> bool:
        """Whether any segment waits for others."""
        return bool(np.any(self.wait_segments))

    def some(self, which: NDArray[np.bool_]) -> Offered:
        """Paths of the links."""
        wait = self.wait_segments[which] if isinstance(self.wait_segments, np.ndarray) else self.wait_segments
        rate, loss = self.rate_segments_per_s[which], self.loss[which]
        return replace(self, rate_segments_per_s=rate, loss=loss, wait_segments=wait)


# Share of the rate that all connections deliver, and the half-width of its interval.
Found = tuple[Floats, Floats]

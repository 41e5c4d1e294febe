"""Links with long TCP connections, as input of a model of goodput."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

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

    def rtt_s(self, rate_segments_per_s: Floats) -> Floats:
        """Round trip with the time that a segment takes to be sent: Celandroni's T."""
        return self.round_trip_s + 1 / rate_segments_per_s

    def buffer_segments(self, rate_segments_per_s: Floats) -> Floats:
        """Room in the queue, a whole number of segments and at least one."""
        return np.asarray(np.maximum(1.0, np.round(self.buffer_bdp * rate_segments_per_s * self.rtt_s(rate_segments_per_s))))


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
    """

    rate_segments_per_s: Floats
    loss: Floats
    flows: int
    path: Path
    precision: Precision = DEFAULT_PRECISION


# Share of the rate that all connections deliver, and the half-width of its interval.
Found = tuple[Floats, Floats]

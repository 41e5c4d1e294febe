"""A connection in captured packets, whatever its protocol: its sides, their segments and the data that one of them sent."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from farlink.capture import ip

Address = tuple[bytes, int]


class Segment(Protocol):
    """Fields that segments of all protocols have."""

    @property
    def time_s(self) -> float:
        """When it was captured, in s."""
        ...

    @property
    def data_bytes(self) -> int:
        """Bytes of data in it."""
        ...


S = TypeVar("S", bound=Segment)


@dataclass(frozen=True)
class Direction:
    """Data that one side of a connection sent, by offsets in its byte stream.

    Attributes
    ----------
    time_s, first, last
        Of each segment with data: when it was captured, in s, and the offsets of its first byte and behind its last.
    is_again
        Whether some of it had been captured before: a repetition, or at the receiver's side a segment that was overtaken.
    acknowledged_time_s, acknowledged
        When the other side acknowledged, and up to which offset.
    is_lost, is_arrived
        What acknowledgements tell of each segment: whether it was lost on the way, and whether it arrived; neither where they
        leave it open. None if the protocol's acknowledgements do not tell segments apart, as TCP's.
    """

    time_s: NDArray[np.float64]
    first: NDArray[np.float64]
    last: NDArray[np.float64]
    is_again: NDArray[np.bool_]
    acknowledged_time_s: NDArray[np.float64]
    acknowledged: NDArray[np.float64]
    is_lost: NDArray[np.bool_] | None = None
    is_arrived: NDArray[np.bool_] | None = None

    @property
    def stream_bytes(self) -> int:
        """Bytes of the stream that were captured, each counted once."""
        return int(self.last.max()) if self.last.size else 0


@dataclass
class CapturedConnection(ABC, Generic[S]):
    """One connection.

    Attributes
    ----------
    stream
        Its number, from 0 in the order of first packets.
    ends
        Addresses and ports of its sides, first the one whose packet was captured first.
    segments
        The segments that each of them sent.
    """

    stream: int
    ends: tuple[Address, Address]
    segments: tuple[list[S], list[S]] = field(default_factory=lambda: ([], []))

    @property
    @abstractmethod
    def forward(self) -> Direction:
        """The direction with more data."""

    @property
    def sender(self) -> int:
        """Which side sent more data: 0 or 1."""
        first, second = (sum(one.data_bytes for one in side) for side in self.segments)
        return int(second > first)

    @property
    def data_bytes(self) -> int:
        """Data that both sides sent, repetitions included."""
        return sum(one.data_bytes for side in self.segments for one in side)

    @property
    def span_s(self) -> tuple[float, float]:
        """Times of its first and last packet, in s."""
        times = [one.time_s for side in self.segments for one in side]
        return min(times), max(times)

    @property
    def name(self) -> str:
        """Sender and receiver in words."""
        return f"{ip.address(*self.ends[self.sender])} → {ip.address(*self.ends[1 - self.sender])}"

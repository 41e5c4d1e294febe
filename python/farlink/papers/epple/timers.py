"""Retransmission timers to choose from: the paper says "conservative" and "aggressive", not how."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Timer:
    """A timer by its settings.

    Attributes
    ----------
    words
        What it is called here.
    keys
        Keys of ``rto``, without ``initial_s``.
    """

    words: str
    keys: Mapping[str, Any] = field(hash=False)

    def rto(self, round_trip_s: float) -> dict[str, Any]:
        """Table ``rto`` for a link whose round trip is so long."""
        if "initial_s" in self.keys:
            return dict(self.keys)
        # A clock of 1 us, and a minimum of as much: what is left is the algorithm.
        return {"initial_s": _FIRST * round_trip_s, "minimum_s": 1e-6, "granularity_s": 1e-6, **self.keys}

    @property
    def longest_round_trips(self) -> float:
        """Longest timeout in round trips, of one that is a multiple of them."""
        return float(self.keys.get("factor", 2.0) * self.keys.get("backoff_limit", _USUAL_BACKOFF))


# Before there is a sample. RFC 2988's 3 s would be a thirtieth of the run.
_FIRST = 6.0
# Back-off of the engine unless it is given.
_USUAL_BACKOFF = 64


def beta(factor: float, backoff: int | None = 1) -> Timer:
    """RFC 793's timer: the smoothed round trip times BETA, of which the RFC says "e.g., 1.3 to 2.0"."""
    words = f"RFC 793 with BETA = {factor:g}{_backoff_words(backoff)}"
    return Timer(words, {"algorithm": "rfc793", "factor": factor} | _backoff(backoff))


def by_name(algorithm: str, words: str, backoff: int | None = 1) -> Timer:
    """One of the engine's algorithms with its own constants."""
    return Timer(words + _backoff_words(backoff), {"algorithm": algorithm} | _backoff(backoff))


def _backoff(backoff: int | None) -> dict[str, int]:
    return {} if backoff is None else {"backoff_limit": backoff}


def _backoff_words(backoff: int | None) -> str:
    return {None: ", back-off to 64 times", 1: ""}.get(backoff, f", back-off to {backoff} times")


AGGRESSIVE = by_name("jacobson-karels", "Jacobson and Karels")
"""Just above the round trip on a path without jitter."""

TCP_TIMERS = (
    AGGRESSIVE,
    *(beta(factor) for factor in (1.3, 2.0, 3.0, 4.0, 4.75, 5.5)),
    beta(4.75, None),
    by_name("conservative", "twice RFC 6298"),
    Timer("RFC 6298 with its minimum of 1 s", {"algorithm": "rfc6298", "initial_s": 3.0, "minimum_s": 1.0, "backoff_limit": 1}),
)
"""For go-back-N: the third column of table 1."""

SR_TIMERS = (
    AGGRESSIVE,
    *(beta(factor) for factor in (1.1, 1.2, 1.3, 1.4, 1.5, 2.0, 4.75)),
    beta(1.3, None),
    by_name("conservative", "twice RFC 6298"),
)
"""For selective repeat: the fourth column."""

FADING_TIMERS = (beta(4.75), beta(2.0, None), beta(4.75, None))
"""For go-back-N over fading: with back-off, a fade that outlasts the timer is felt long after it."""

TCP_TIMER = beta(4.75)
SR_TIMER = beta(1.3)
"""Timers that come nearest over independent errors; everything else is simulated with them."""

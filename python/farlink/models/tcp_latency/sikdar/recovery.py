r"""What a loss costs Tahoe, Reno and SACK: rounds, segments, and the window that is left.

A round of segments loses some; of the acknowledged segments before the first loss each lets a fresh segment go. Whatever
arrives behind the first loss, in that round or fresh, is answered by a duplicate acknowledgement. From three on the sender
retransmits at once; otherwise, or if it cannot repair all, the timer runs out. With :math:`F` segments in flight, :math:`L`
of them lost, and :math:`h = \max(2, \lfloor F / 2 \rfloor)`:

- Tahoe retransmits and starts slowly, from one segment to :math:`h`.
- Reno repairs one loss in a round. Meanwhile every duplicate acknowledgement lets a segment go beyond the flight:
  :math:`h - L` fresh ones. A second loss needs three duplicate acknowledgements of these, so windows of ten; a third
  finds none, for the window is down to :math:`h / 2`. Then it waits for the timer.
- SACK sends while less than :math:`h` is in the pipe, in which what is lost still counts: with :math:`2 L \le F` it repairs all
  in one or two rounds, with more lost it waits for the timer.

The rules are ours, from the algorithms of RFC 2001 and of K. Fall and S. Floyd, "Simulation-based comparisons of Tahoe, Reno
and SACK TCP" (1996); Sikdar et al. are cited by their results only. They give the known limits: four segments for one loss,
ten for two in Reno, and half the window for SACK.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from farlink.arguments import checked_arguments, refused

Variant = Literal["tahoe", "reno", "sack"]
LossPattern = Literal["correlated", "independent"]
Whole = NDArray[np.int64]

# Duplicate acknowledgements that start a retransmission.
_DUPLICATES = 3


@dataclass(frozen=True)
class Recovery:
    """Outcomes of rounds with a loss, one element each.

    Attributes
    ----------
    rounds
        Rounds after the one with the loss, until the window of the next round is `next_window`.
    has_timeout
        Whether a sequence of timeouts is waited for besides.
    delivered
        Segments that have arrived by then, of those that had not before the round with the loss.
    is_slow_start
        Whether the next round is one of slow start.
    next_window
        Window of the next round, in congestion avoidance; otherwise the one up to which slow start goes.
    first_round
        Number of the next round in slow start: the second after a timeout, whose retransmission was the first.
    """

    rounds: Whole
    has_timeout: NDArray[np.bool_]
    delivered: Whole
    is_slow_start: NDArray[np.bool_]
    next_window: Whole
    first_round: Whole


@checked_arguments
def recover(variant: Variant, *, sent: Whole, before: Whole, lost: Whole, fresh: Whole) -> Recovery:
    """Outcome of rounds with a loss.

    Parameters
    ----------
    variant
        Version of TCP.
    sent
        Segments of the round.
    before
        Of these, the segments before the first that is lost.
    lost
        Of these, the segments that are lost, at least 1.
    fresh
        Segments that go out as the first are acknowledged, at most `before`.

    Returns
    -------
    Recovery
        Arrays of the shape of the parameters.

    Raises
    ------
    ValueError
        If there is no such version.

    Examples
    --------
    The last segment of eight is lost, the last two, the last five:

    >>> sent, before, lost = np.full(3, 8), np.array([7, 6, 3]), np.array([1, 2, 5])
    >>> recover("reno", sent=sent, before=before, lost=lost, fresh=before).has_timeout
    array([False,  True,  True])
    >>> recover("sack", sent=sent, before=before, lost=lost, fresh=before).has_timeout
    array([False, False,  True])
    """
    if variant not in _REPAIRS:
        raise refused("variant", 'be "tahoe", "reno" or "sack"', variant)
    flight = sent - before + fresh
    half = np.maximum(2, flight // 2)
    repair = _REPAIRS[variant](flight, lost, half)
    waits = (~repair.is_complete).astype(np.int64)
    return Recovery(
        # The duplicate acknowledgements take a round, and so does the retransmission after the timeouts.
        rounds=np.where(repair.halvings > 0, 1 + repair.rounds, 0) + waits,
        has_timeout=~repair.is_complete,
        delivered=sent - lost + fresh + repair.segments + waits,
        is_slow_start=~repair.is_complete | (variant == "tahoe"),
        next_window=np.maximum(2, half >> (repair.halvings + waits - 1)),
        first_round=1 + waits,
    )


@dataclass(frozen=True)
class _Repair:
    """Retransmissions by duplicate acknowledgements: of the lost segments and fresh ones, before any timeout."""

    halvings: Whole
    rounds: Whole
    segments: Whole
    is_complete: NDArray[np.bool_]


def _tahoe(flight: Whole, lost: Whole, half: Whole) -> _Repair:
    # Slow start begins with the retransmission; what it repairs is counted there.
    is_seen = flight - lost >= _DUPLICATES
    none = np.zeros_like(half)
    return _Repair(is_seen.astype(np.int64), none, none, is_seen)


def _reno(flight: Whole, lost: Whole, half: Whole) -> _Repair:
    fresh = np.maximum(0, half - lost)
    second = (lost > 1) & (fresh >= _DUPLICATES)
    halvings = np.where(flight - lost >= _DUPLICATES, 1 + second, 0)
    segments = np.where(halvings > 0, halvings + fresh, 0)
    return _Repair(halvings, halvings, segments, halvings >= lost)


def _sack(flight: Whole, lost: Whole, half: Whole) -> _Repair:
    is_seen = flight - lost >= _DUPLICATES
    is_complete = is_seen & (2 * lost <= flight)
    # The first retransmission, and what the pipe has room for, lost segments before fresh ones; then a window of the same.
    first = 1 + np.maximum(0, half - lost)
    second = np.where(lost > first, np.maximum(half, lost - first), 0)
    rounds = np.where(is_complete, 1 + (second > 0), 1)
    segments = np.where(is_complete, first + second, 1)
    return _Repair(is_seen.astype(np.int64), rounds, np.where(is_seen, segments, 0), is_complete)


_REPAIRS: dict[str, Callable[[Whole, Whole, Whole], _Repair]] = {"tahoe": _tahoe, "reno": _reno, "sack": _sack}

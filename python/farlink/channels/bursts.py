"""Bursts of losses, and the good runs between them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from farlink.arguments import checked_arguments
from farlink.channels.trace import Trace


@dataclass(frozen=True)
class Runs:
    """Lengths of consecutive losses and consecutive receptions, in frames, in order."""

    lost: NDArray[np.int64]
    received: NDArray[np.int64]


@checked_arguments
def run_lengths(lost: ArrayLike) -> Runs:
    """Lengths of the runs in a loss pattern.

    Parameters
    ----------
    lost
        0 or 1 for each frame.

    Examples
    --------
    >>> runs = run_lengths([0, 1, 1, 0, 0, 0, 1])
    >>> runs.lost, runs.received
    (array([2, 1]), array([1, 3]))
    """
    pattern = np.asarray(lost).astype(bool)
    if pattern.size == 0:
        return Runs(np.zeros(0, np.int64), np.zeros(0, np.int64))
    edges = np.flatnonzero(np.concatenate(([True], pattern[1:] != pattern[:-1], [True])))
    lengths, is_lost = np.diff(edges), pattern[edges[:-1]]
    return Runs(lengths[is_lost], lengths[~is_lost])


def segments(trace: Trace) -> list[NDArray[np.uint8]]:
    """The loss patterns of the recordings that a ``packet-loss`` trace joins; one for a single recording."""
    starts = trace.arrays.get("segment_start")
    if starts is None:
        return [trace["lost"]]
    return np.split(trace["lost"], starts[1:].astype(np.int64))


def trace_runs(trace: Trace, *, intermediate_only: bool = False) -> Runs:
    """Runs of a ``packet-loss`` trace, none of which crosses the border of two recordings.

    Parameters
    ----------
    trace
        The trace.
    intermediate_only
        Leave out recordings whose reception is not strictly between 5 % and 95 %.
    """
    parts = [part for part in segments(trace) if not intermediate_only or is_intermediate(part)]
    runs = [run_lengths(part) for part in parts]
    none = np.zeros(0, np.int64)
    return Runs(np.concatenate([none, *(run.lost for run in runs)]), np.concatenate([none, *(run.received for run in runs)]))


def is_intermediate(lost: NDArray[np.uint8]) -> bool:
    """Whether the share of received frames lies strictly between 5 % and 95 %."""
    received = lost.size - int(lost.sum())
    # In whole numbers: 15 frames of 300 are exactly 5 %, which a float comparison would miss.
    return lost.size < 20 * received < 19 * lost.size

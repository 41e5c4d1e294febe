"""Blockages of the line of sight in a received power: found, or marked by hand."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from farlink.arguments import check_range, checked_arguments
from farlink.errors import TraceError

# Samples that stand for a window when its median is taken, and steps of the running median in a window.
_PER_WINDOW = 400
_STEPS = 20


@checked_arguments
def find(
    power: ArrayLike,
    sample_rate_hz: float,
    *,
    below_db: float = -13.0,
    min_length_s: float = 0.05,
    window_s: float = 20.0,
    edge_s: float = 0.0,
) -> NDArray[np.bool_]:
    """Samples with a presumably blocked line of sight: for long far below the level around them.

    Parameters
    ----------
    power
        Received power, uniformly sampled, at least 0.
    sample_rate_hz
        Sampling rate, in Hz.
    below_db
        A blockage lies so far below the running median, in dB; below 0.
    min_length_s
        Shortest blockage, in s: fades by turbulence are shorter.
    window_s
        Window of the running median, in s; longer than twice the longest blockage.
    edge_s
        Widens each blockage on both sides by so much, in s, over its falling and rising edge.

    Returns
    -------
    ndarray
        True where blocked, as long as `power`.

    Raises
    ------
    TraceError
        If a parameter is out of range.

    Notes
    -----
    The median is taken again without what was found, so that blockages do not lower what they are measured by. A turbulence
    fade that is longer than `min_length_s` and deeper than `below_db` is taken as a blockage: compare the two in a picture.

    Examples
    --------
    >>> power = np.ones(1000)
    >>> power[300:400] = 1e-3
    >>> power[700:702] = 1e-3
    >>> found = find(power, 1000.0)
    >>> int(found.sum()), found[300:400].all()
    (100, np.True_)
    """
    values = np.asarray(power, dtype=np.float64)
    for name, value, is_right in (
        ("sample_rate_hz", sample_rate_hz, sample_rate_hz > 0),
        ("below_db", below_db, below_db < 0),
        ("min_length_s", min_length_s, min_length_s >= 0),
        ("window_s", window_s, window_s > 0),
        ("edge_s", edge_s, edge_s >= 0),
    ):
        if not is_right or not np.isfinite(value):
            remedy = "below_db is below 0, lengths are at least 0, the window is above 0 s, the sampling rate above 0 Hz"
            raise TraceError(f"{name} is {value:g}", remedy)
    factor = 10 ** (below_db / 10)
    shortest = max(1, int(np.ceil(min_length_s * sample_rate_hz - 1e-9)))
    found = np.zeros(values.size, dtype=bool)
    for _ in range(2):
        usual = _running_median(np.where(found, np.nan, values), window_s * sample_rate_hz)
        found = _long_runs(values < factor * usual, shortest)
    return _widened(found, round(edge_s * sample_rate_hz))


@checked_arguments
def mark(size: int, sample_rate_hz: float, intervals_s: Sequence[tuple[float, float]]) -> NDArray[np.bool_]:
    """Samples within intervals of time that were given by hand.

    Parameters
    ----------
    size
        Number of samples.
    sample_rate_hz
        Sampling rate, in Hz.
    intervals_s
        Beginning and end of each, in s.

    Raises
    ------
    TraceError
        If an interval is empty or lies outside the record.

    Examples
    --------
    >>> mark(5, 1.0, [(1.0, 3.0)])
    array([False,  True,  True, False, False])
    """
    check_range(size >= 0, "size", "be at least 0", size)
    check_range(0 < sample_rate_hz < np.inf, "sample_rate_hz", "be above 0 and finite", sample_rate_hz)
    found = np.zeros(size, dtype=bool)
    for start_s, end_s in intervals_s:
        if not 0 <= start_s < end_s or start_s >= size / sample_rate_hz:
            raise TraceError(
                f"blockage from {start_s:g} s to {end_s:g} s",
                f"it lies within the record, from 0 s to {size / sample_rate_hz:g} s",
            )
        found[round(start_s * sample_rate_hz) : round(end_s * sample_rate_hz)] = True
    return found


def _running_median(values: NDArray[np.float64], window: float) -> NDArray[np.float64]:
    """Median of a window around each sample, in steps of a twentieth of it; the overall median where a window is empty."""
    if values.size <= window:
        return np.full(values.size, _median(values))
    stride = max(1, int(window / _PER_WINDOW))
    half = window / 2
    centres = np.linspace(0, values.size - 1, max(2, int(np.ceil(values.size / window * _STEPS)) + 1))
    medians = np.array([_median(values[max(0, int(centre - half)) : int(centre + half) + 1 : stride]) for centre in centres])
    medians[np.isnan(medians)] = _median(values[::stride])
    return np.asarray(np.interp(np.arange(values.size), centres, medians), dtype=np.float64)


def _median(values: NDArray[np.float64]) -> float:
    known = values[~np.isnan(values)]
    return float(np.median(known)) if known.size else float("nan")


def _long_runs(below: NDArray[np.bool_], shortest: int) -> NDArray[np.bool_]:
    edges = np.flatnonzero(np.diff(np.concatenate(([False], below, [False])).astype(np.int8)))
    starts, ends = edges[::2], edges[1::2]
    kept = ends - starts >= shortest
    change = np.zeros(below.size + 1, dtype=np.int8)
    change[starts[kept]] = 1
    change[ends[kept]] -= 1
    return np.cumsum(change[:-1]) > 0


def _widened(found: NDArray[np.bool_], samples: int) -> NDArray[np.bool_]:
    if samples == 0 or not found.any():
        return found
    edges = np.flatnonzero(np.diff(np.concatenate(([False], found, [False])).astype(np.int8)))
    change = np.zeros(found.size + 1, dtype=np.int64)
    np.add.at(change, np.maximum(edges[::2] - samples, 0), 1)
    np.add.at(change, np.minimum(edges[1::2] + samples, found.size), -1)
    return np.cumsum(change[:-1]) > 0

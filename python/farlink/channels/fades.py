"""Fading of a received power: how deep, how often and how long, and the bit error rate that follows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from farlink.arguments import check_range, checked_arguments
from farlink.channels.receiver import Receiver
from farlink.errors import TraceError

Series = NDArray[np.float64]

# Blocks of the record that intervals compare, and Student's t for 95 % with one degree of freedom less.
_BLOCKS = 20
_T_95 = 2.093024


@dataclass(frozen=True)
class Fades:
    """Fades below one threshold: runs of samples below it.

    Attributes
    ----------
    threshold_db
        Threshold relative to the mean power, in dB.
    fades
        How many there are.
    rate_per_s
        How many begin in a second, and `rate_ci95_per_s`, the half-width of its 95 % interval; NaN without fades.
    time_below
        Share of the time below the threshold: rate times mean length.
    mean_s
        Mean length, in s, and `mean_ci95_s`; NaN without fades, as are the median, the percentiles and the longest.
    median_s, p90_s, p99_s, max_s
        Median, percentiles and maximum of the length, in s.
    """

    threshold_db: float
    fades: int
    rate_per_s: float
    rate_ci95_per_s: float
    time_below: float
    mean_s: float
    mean_ci95_s: float
    median_s: float
    p90_s: float
    p99_s: float
    max_s: float


@dataclass(frozen=True)
class Bands:
    """A series in buckets of time, to draw a million samples.

    Attributes
    ----------
    edges_s
        Borders of the buckets, in s; one more than buckets.
    low, mean, high
        Least, mean and greatest value in each; NaN in a bucket without values.
    """

    edges_s: Series
    low: Series
    mean: Series
    high: Series


@checked_arguments
def fade_statistics(
    power: ArrayLike, sample_rate_hz: float, thresholds_db: Sequence[float], *, blocked: ArrayLike | None = None
) -> list[Fades]:
    """Rate and length of the fades below each threshold.

    Parameters
    ----------
    power
        Received power, uniformly sampled, at least 0, in any linear unit.
    sample_rate_hz
        Sampling rate, in Hz.
    thresholds_db
        Thresholds relative to the mean power, in dB.
    blocked
        1 where the line of sight was blocked: left out of mean, time and fades, so that a blockage parts a fade in two.

    Returns
    -------
    list of Fades
        In the order of `thresholds_db`.

    Raises
    ------
    TraceError
        If nothing is left to look at, or the mean power is 0.

    Notes
    -----
    A fade that the record cuts off at its beginning or end counts with the length that is seen. The intervals treat the
    fades of 20 consecutive blocks of the record as independent (jackknife); they are too narrow if the fading drifts more
    slowly than that.

    Examples
    --------
    >>> (found,) = fade_statistics([1.0, 1.0, 0.1, 0.1, 1.0, 0.1, 1.0, 1.0], 1000, [-3])
    >>> found.fades, found.rate_per_s, round(found.mean_s, 6), found.time_below
    (2, 250.0, 0.0015, 0.375)
    """
    check_range(1e-12 <= sample_rate_hz <= 1e15, "sample_rate_hz", "be from 1e-12 to 1e15", sample_rate_hz)
    values, clear = _checked(power, blocked)
    mean = _mean(values, clear)
    seconds = float(np.count_nonzero(clear)) / sample_rate_hz
    block_of = np.minimum(np.cumsum(clear) * _BLOCKS // (np.count_nonzero(clear) + 1), _BLOCKS - 1)
    return [
        _fades_below(float(threshold), values < mean * 10 ** (threshold / 10), clear, block_of, sample_rate_hz, seconds)
        for threshold in thresholds_db
    ]


@checked_arguments
def scintillation_index(power: ArrayLike, *, blocked: ArrayLike | None = None) -> float:
    r"""Variance of the power over its squared mean, :math:`\sigma_I^2`.

    Examples
    --------
    >>> scintillation_index([1.0, 3.0])
    0.25
    """
    values, clear = _checked(power, blocked)
    mean = _mean(values, clear)
    return float(np.var(values[clear] / mean))


def mean_power(power: ArrayLike, *, blocked: ArrayLike | None = None) -> float:
    """Mean power where nothing is blocked, in the unit of `power`.

    Raises
    ------
    TraceError
        If it is 0, or nothing is left.
    """
    return _mean(*_checked(power, blocked))


def autocorrelation(
    power: ArrayLike, sample_rate_hz: float, max_lag_s: float, *, blocked: ArrayLike | None = None
) -> tuple[Series, Series]:
    """Normalised autocovariance of the power, at lags from 0.

    Parameters
    ----------
    power
        Received power, uniformly sampled.
    sample_rate_hz
        Sampling rate, in Hz.
    max_lag_s
        Largest lag, in s; at most half the record is looked at.
    blocked
        1 where the line of sight was blocked: pairs of samples with one of them are left out.

    Returns
    -------
    tuple
        Lags in s, and the mean product of pairs at that lag over the variance; 1 at lag 0. A constant power has 1 throughout.
    """
    values, clear = _checked(power, blocked)
    lags = max(1, min(values.size // 2, round(max_lag_s * sample_rate_hz))) if values.size > 1 else 0
    deviation = np.where(clear, values / _mean(values, clear) - 1, 0.0)
    size = 1 << int(np.ceil(np.log2(values.size + lags + 1)))
    products, pairs = (
        np.fft.irfft(np.abs(np.fft.rfft(series, size)) ** 2, size)[: lags + 1]
        for series in (deviation, clear.astype(np.float64))
    )
    covariance = products / np.maximum(np.rint(pairs), 1.0)
    is_constant = float(np.max(np.abs(deviation))) < 1e-12
    found = np.ones(lags + 1) if is_constant else covariance / covariance[0]
    return np.arange(lags + 1) / sample_rate_hz, np.asarray(found, dtype=np.float64)


@checked_arguments
def correlation_time_s(lags_s: Series, correlation: Series, level: float = float(np.exp(-1))) -> float:
    """Lag at which an autocorrelation first falls below a level, interpolated; NaN if it does not.

    Examples
    --------
    >>> correlation_time_s(np.array([0.0, 1.0, 2.0]), np.array([1.0, 0.6, 0.2]), 0.4)
    1.5
    """
    below = np.flatnonzero(correlation < level)
    if below.size == 0 or below[0] == 0:
        return float("nan")
    after = int(below[0])
    share = (correlation[after - 1] - level) / (correlation[after - 1] - correlation[after])
    return float(lags_s[after - 1] + share * (lags_s[after] - lags_s[after - 1]))


def histogram(
    power: ArrayLike, *, bin_db: float = 0.25, lowest_db: float = -40.0, blocked: ArrayLike | None = None
) -> tuple[Series, Series]:
    """Probability density of the power in dB relative to its mean.

    Parameters
    ----------
    power
        Received power, at least 0.
    bin_db
        Width of a bin, in dB.
    lowest_db
        Lower ends of the bins; smaller values count in the total, but in no bin.
    blocked
        1 where the line of sight was blocked; such samples are left out.

    Returns
    -------
    tuple
        Borders of the bins in dB, and the density in each, in 1/dB.
    """
    values, clear = _checked(power, blocked)
    level_db = _db_above_mean(values, clear)
    top = max(bin_db, float(np.ceil(level_db.max() / bin_db)) * bin_db + bin_db)
    edges = lowest_db + np.float64(bin_db) * np.arange(round((top - lowest_db) / bin_db) + 1)
    counts, _ = np.histogram(level_db[np.isfinite(level_db)], edges)
    return edges, counts / (level_db.size * bin_db)


def cumulative(power: ArrayLike, *, blocked: ArrayLike | None = None, points: int = 2000) -> tuple[Series, Series]:
    """Cumulative distribution of the power in dB relative to its mean, at a limited number of points.

    Returns
    -------
    tuple
        Levels in dB, ascending, and the share of samples at or below each. The rarest fades are all there; samples of no power
        lie below every level.
    """
    values, clear = _checked(power, blocked)
    level_db = np.sort(_db_above_mean(values, clear))
    size = level_db.size
    if size <= points:
        place = np.arange(size)
    else:  # dense where samples are rare
        ranks = np.concatenate((np.geomspace(1, size, points // 2), np.linspace(1, size, points // 2)))
        place = np.unique(ranks.astype(np.int64)) - 1
    place = place[np.isfinite(level_db[place])]
    return level_db[place], np.asarray((place + 1) / size, dtype=np.float64)


def short_term_ber(power_w: ArrayLike, receiver: Receiver) -> Series:
    """Bit error rate at each sample of a received power, in W (Epple, eq. (1))."""
    return np.asarray(receiver.ber(np.asarray(power_w, dtype=np.float64)), dtype=np.float64)


def long_term_ber(power_w: ArrayLike, receiver: Receiver, *, blocked: ArrayLike | None = None) -> float:
    """Bit error rate over the whole record: the mean of `short_term_ber` over the samples that are not blocked."""
    values, clear = _checked(power_w, blocked)
    return float(np.mean(short_term_ber(values[clear], receiver)))


@checked_arguments
def bands(values: ArrayLike, sample_rate_hz: float, buckets: int = 1500) -> Bands:
    """Least, mean and greatest value of a series in buckets of equal time.

    Parameters
    ----------
    values
        The series; NaN is left out.
    sample_rate_hz
        Sampling rate, in Hz.
    buckets
        How many at most.

    Examples
    --------
    >>> found = bands([1.0, 2.0, 5.0, 6.0], 1.0, buckets=2)
    >>> found.low, found.mean, found.high
    (array([1., 5.]), array([1.5, 5.5]), array([2., 6.]))
    """
    series = np.asarray(values, dtype=np.float64)
    edges = np.unique(np.linspace(0, series.size, min(buckets, series.size) + 1).astype(np.int64))
    known = ~np.isnan(series)
    counts = np.add.reduceat(known, edges[:-1], dtype=np.int64)
    none = counts == 0
    low = np.minimum.reduceat(np.where(known, series, np.inf), edges[:-1])
    high = np.maximum.reduceat(np.where(known, series, -np.inf), edges[:-1])
    mean = np.add.reduceat(np.where(known, series, 0.0), edges[:-1]) / np.maximum(counts, 1)
    for found in (low, mean, high):
        found[none] = np.nan
    return Bands(edges / sample_rate_hz, low, mean, high)


def _fades_below(
    threshold_db: float,
    below: NDArray[np.bool_],
    clear: NDArray[np.bool_],
    block_of: NDArray[np.int64],
    rate_hz: float,
    seconds: float,
) -> Fades:
    edges = np.flatnonzero(np.diff(np.concatenate(([False], below & clear, [False])).astype(np.int8)))
    starts, lengths = edges[::2], (edges[1::2] - edges[::2]) / rate_hz
    nan = float("nan")
    if starts.size == 0:
        return Fades(threshold_db, 0, 0.0, nan, 0.0, nan, nan, nan, nan, nan, nan)
    blocks = block_of[starts]
    counts = np.bincount(blocks, minlength=_BLOCKS)
    sums = np.bincount(blocks, weights=lengths, minlength=_BLOCKS)
    rate_ci95 = _T_95 * float(np.std(counts * _BLOCKS / seconds, ddof=1)) / np.sqrt(_BLOCKS)
    median, p90, p99 = np.percentile(lengths, [50, 90, 99])
    return Fades(
        threshold_db=threshold_db,
        fades=int(starts.size),
        rate_per_s=starts.size / seconds,
        rate_ci95_per_s=float(rate_ci95),
        time_below=float(np.count_nonzero(below & clear)) / rate_hz / seconds,
        mean_s=float(lengths.mean()),
        mean_ci95_s=_jackknife(sums.astype(np.float64), counts.astype(np.float64)),
        median_s=float(median),
        p90_s=float(p90),
        p99_s=float(p99),
        max_s=float(lengths.max()),
    )


def _jackknife(sums: Series, counts: Series) -> float:
    """Half-width of the 95 % interval of a ratio of sums over blocks; NaN if one block holds everything."""
    rest = counts.sum() - counts
    if np.any(rest == 0):
        return float("nan")
    without = (sums.sum() - sums) / rest
    return float(_T_95 * np.sqrt((_BLOCKS - 1) / _BLOCKS * np.sum((without - without.mean()) ** 2)))


def _checked(power: ArrayLike, blocked: ArrayLike | None) -> tuple[Series, NDArray[np.bool_]]:
    values = np.asarray(power, dtype=np.float64)
    bad = np.flatnonzero(~((values >= 0) & np.isfinite(values)))
    if bad.size:
        raise TraceError(f"the power is {values[bad[0]]:g} at sample {bad[0]}", "power is a number of at least 0")
    clear = np.ones(values.size, dtype=bool) if blocked is None else ~np.asarray(blocked).astype(bool)
    if clear.size != values.size:
        raise TraceError(f"{clear.size} values of blocked for {values.size} samples", "give one value for each sample")
    if not clear.any():
        raise TraceError("no sample is left" if values.size else "the trace is empty", "not all of it may be blocked")
    return values, clear


def _mean(values: Series, clear: NDArray[np.bool_]) -> float:
    mean = float(values[clear].mean())
    if mean <= 0:
        raise TraceError("the power is 0 throughout", "check the column and its unit")
    return mean


def _db_above_mean(values: Series, clear: NDArray[np.bool_]) -> Series:
    with np.errstate(divide="ignore"):
        level_db: Series = 10 * np.log10(values[clear] / _mean(values, clear))
    return level_db

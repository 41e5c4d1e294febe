"""Bursts of wrong bits. Their length depends on the number of right bits that ends a burst, so that number is always stated."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from farlink.arguments import checked_arguments
from farlink.channels.trace import Trace
from farlink.errors import TraceError, core_errors

if TYPE_CHECKING:
    from farlink._core import BurstStatistics

_Z_95 = 1.959964


@dataclass(frozen=True)
class BitBursts:
    """Bursts of a bit-error trace.

    Attributes
    ----------
    gap_bits
        Length of the run of correct bits that ends a burst.
    bursts
        How many there are.
    length_mean_bits
        Mean length, from the first wrong bit to the last, in bits; NaN without bursts.
    length_ci95_bits
        Half-width of its 95 % interval; NaN for fewer than two bursts.
    errors_mean
        Mean number of wrong bits in a burst.
    single
        Share of the bursts that are one wrong bit alone.
    longest_bits
        Length of the longest.
    distance_mean_bits
        Mean number of right bits between two bursts; NaN for fewer than two.
    ber
        Share of wrong bits in the trace.
    """

    gap_bits: int
    bursts: int
    length_mean_bits: float
    length_ci95_bits: float
    errors_mean: float
    single: float
    longest_bits: int
    distance_mean_bits: float
    ber: float


@checked_arguments
def burst_statistics(trace: Trace, gap_bits: int) -> BitBursts:
    """Statistics of the bursts of wrong bits.

    Parameters
    ----------
    trace
        A trace of kind ``"bit-errors"``.
    gap_bits
        Length of the run of correct bits that ends a burst; at least 1.

    Raises
    ------
    TraceError
        If it is another kind of trace, or `gap_bits` is below 1.

    Notes
    -----
    The interval takes the lengths of bursts as independent of each other.

    Examples
    --------
    >>> trace = Trace("bit-errors", {"position": [10, 12, 13, 40], "bits": 100})
    >>> found = burst_statistics(trace, gap_bits=3)
    >>> found.bursts, found.length_mean_bits, found.errors_mean
    (2, 2.5, 2.0)
    >>> burst_statistics(trace, gap_bits=1).bursts
    3
    """
    if trace.kind != "bit-errors":
        raise TraceError(f"a {trace.kind} trace has no wrong bits", "give a trace of kind bit-errors")
    if gap_bits < 1:
        raise TraceError(f"gap of {gap_bits} bits", "at least one right bit ends a burst")
    from farlink import _core

    with core_errors():
        found = _core.burst_statistics(trace["position"], int(trace["bits"]), gap_bits)
    return bursts_of(found)


def bursts_of(found: BurstStatistics) -> BitBursts:
    """Counts of the core as `BitBursts`."""
    count, gap_bits = found["bursts"], found["gap_bits"]
    if not count:
        nan = float("nan")
        return BitBursts(gap_bits, 0, nan, nan, nan, nan, 0, nan, 0.0)
    alone = found["wrong_bits_bursts"][found["wrong_bits_per_burst"] == 1]
    between = found["reach_bits"] - found["mean_span_bits"] * count
    return BitBursts(
        gap_bits=gap_bits,
        bursts=count,
        length_mean_bits=found["mean_span_bits"],
        length_ci95_bits=_Z_95 * found["mean_span_error_bits"] if count > 1 else float("nan"),
        errors_mean=found["mean_wrong_bits"],
        single=int(alone.sum()) / count,
        longest_bits=found["longest_span_bits"],
        distance_mean_bits=between / (count - 1) if count > 1 else float("nan"),
        ber=found["bit_error_rate"],
    )

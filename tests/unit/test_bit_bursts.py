"""Statistics of bursts of wrong bits, by their definition."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from farlink.channels.bit_bursts import burst_statistics
from farlink.channels.trace import Trace
from farlink.errors import TraceError

BITS = 400


def trace(positions) -> Trace:
    return Trace("bit-errors", {"position": sorted(positions), "bits": BITS})


def bursts_by_definition(positions, gap_bits):
    """Walk along the bits: a run of `gap_bits` right ones ends a burst."""
    bursts, current, right = [], [], 0
    for bit in range(BITS):
        if bit in positions:
            current.append(bit)
            right = 0
        else:
            right += 1
            if current and right == gap_bits:
                bursts.append(current)
                current = []
    return bursts + ([current] if current else [])


@given(st.sets(st.integers(0, BITS - 1), max_size=60), st.integers(1, 40))
def test_bursts_follow_the_definition(positions, gap_bits):
    expected = bursts_by_definition(positions, gap_bits)

    found = burst_statistics(trace(positions), gap_bits)

    assert found.bursts == len(expected)
    assert found.ber == len(positions) / BITS
    if expected:
        assert found.length_mean_bits == pytest.approx(np.mean([burst[-1] - burst[0] + 1 for burst in expected]))
        assert found.errors_mean == pytest.approx(np.mean([len(burst) for burst in expected]))
        assert found.longest_bits == max(burst[-1] - burst[0] + 1 for burst in expected)
        if len(expected) > 1:
            right = [after[0] - before[-1] - 1 for before, after in pairwise(expected)]
            assert found.distance_mean_bits == pytest.approx(np.mean(right))
        assert found.single == pytest.approx(np.mean([len(burst) == 1 for burst in expected]))


def test_a_wider_gap_joins_bursts():
    positions = [10, 14, 30, 31]

    assert [burst_statistics(trace(positions), gap).bursts for gap in (3, 4, 15, 16)] == [3, 2, 2, 1]


def test_one_burst_has_no_interval_and_zero_bursts_have_no_mean():
    assert math.isnan(burst_statistics(trace([1, 2]), 3).length_ci95_bits)
    assert math.isnan(burst_statistics(trace([]), 3).length_mean_bits)
    assert burst_statistics(trace([]), 3).bursts == 0


def test_traces_without_bit_bursts_are_refused():
    with pytest.raises(TraceError, match="packet-loss"):
        burst_statistics(Trace("packet-loss", {"lost": [0, 1]}), 3)
    with pytest.raises(TraceError, match="gap of 0"):
        burst_statistics(trace([1]), 0)

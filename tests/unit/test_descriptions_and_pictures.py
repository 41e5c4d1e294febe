"""Descriptions and pictures: their lines, marks and spans against the underlying data."""

from __future__ import annotations

import numpy as np

from farlink.channels.describe import describe
from farlink.channels.trace import Trace
from farlink.report.example import window_span_s
from farlink.series import Series


def test_bursts_of_all_and_of_intermediate_recordings_are_separate():
    # The first recording lost nothing; half of the second is lost, in bursts of five.
    lost = np.concatenate([np.zeros(40), np.tile([1] * 5 + [0] * 5, 4)]).astype(np.uint8)
    trace = Trace("packet-loss", {"lost": lost, "segment_start": np.array([0, 40], np.uint64)}, {"title": "two links"})

    told = dict(describe(trace))

    assert told["Loss bursts"] == told["  Loss bursts"] == "4"
    # Good runs of 40, 5, 5, 5 and 5 frames, the first of them in the recording that lost nothing.
    assert told["Good run, mean"] == "12 frames"
    assert told["  Good run, mean"] == "5 frames"


def observed(moments: list[float]) -> Series:
    names = ["cwnd", *["retransmitted_sequence"] * len(moments)]
    times = np.array([0.0, *moments])
    return Series(0, 0, {}, ["bulk"] * len(names), names, times, np.ones(len(names)))


def test_the_drawn_window_ends_after_the_given_recovery():
    assert window_span_s([observed([2.0, 4.0, 6.0])], losses=3) is None
    assert window_span_s([observed([2.0, 4.0, 6.0, 8.0])], losses=3) == (0.0, 8.0)
    # Losses less than a second apart are one recovery.
    assert window_span_s([observed([2.0, 2.5, 3.0, 4.5, 6.0])], losses=3) is None

"""Slow start over a link that its window fills: bounds, limits, refusals."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from farlink.models.tcp_latency import cardwell, slow_link

PATH = {"rtt_s": 6.0, "segment_s": 0.625}


@given(st.integers(1, 500), st.integers(1, 3), st.integers(1, 80), st.floats(0.001, 1.0))
def test_a_transfer_takes_its_time_on_the_link_and_a_round_trip_at_least(segments, per_ack, window, segment_s):
    law = {"rtt_s": 1.0, "segment_s": segment_s, "segments_per_ack": per_ack, "window_segments": window}
    number = np.arange(1, segments + 1)

    times = slow_link.transfer_time_s(number, **law)
    assert np.all(times >= number * segment_s + 1 - segment_s - 1e-9)
    assert np.all(np.diff(times) >= segment_s - 1e-9)
    assert np.all(np.diff(times) <= segment_s + 1 + (per_ack - 1) * segment_s + 1e-9)
    trips = slow_link.mean_rtt_s(number, **law)
    assert np.all(trips >= 1 - 1e-9)
    assert np.all(trips <= max(1.0, window * segment_s) + window * segment_s + 1e-9)


def test_a_fast_link_leaves_whole_rounds():
    # Windows of one, two, four ...: segments 1, 2 and 3, 4 to 7.
    times = slow_link.transfer_time_s([1, 2, 3, 4, 7, 8], rtt_s=1.0, segment_s=1e-12, segments_per_ack=1)

    assert times == pytest.approx([1, 2, 2, 3, 3, 4])


def test_a_window_of_one_waits_for_every_acknowledgement():
    for per_ack in (1, 2):
        law = {"segments_per_ack": per_ack, "window_segments": 1, **PATH}
        assert float(slow_link.transfer_time_s(10, **law)) == pytest.approx(60)
        assert float(slow_link.mean_rtt_s(10, **law)) == pytest.approx(6)


def test_round_trips_of_long_transfers_follow_littles_law():
    trip = slow_link.mean_rtt_s(10**6, segments_per_ack=[1, 2], window_segments=33, **PATH)

    assert trip == pytest.approx([33 * 0.625, 33 * 0.625 - 0.625 / 2], rel=1e-4)


def test_without_losses_both_models_agree():
    number = np.array([1, 10, 1000])
    plain = slow_link.transfer_time_s(number, window_segments=33, **PATH)

    lossy = slow_link.lossy_transfer_time_s(number, loss_rate=0.0, timeout_s=60.0, window_segments=33, **PATH)
    assert lossy == pytest.approx(plain)
    free = slow_link.lossy_transfer_time_s(number, loss_rate=0.0, timeout_s=60.0, **PATH)
    assert free == pytest.approx(slow_link.transfer_time_s(number, **PATH))


def test_over_a_fast_link_losses_cost_as_in_cardwell():
    number, loss = np.array([100, 1000, 10_000]), 0.02
    path = {"rtt_s": 0.5, "timeout_s": 2.0, "segments_per_ack": 1, "window_segments": 40}

    ours = slow_link.lossy_transfer_time_s(number, loss_rate=loss, segment_s=1e-9, **path)
    theirs = cardwell.transfer_time_s(number, loss_rate=loss, delayed_ack_s=0.0, **path)
    # The model counts whole rounds of slow start, not parts: the difference is less than a round.
    assert np.all(np.abs(ours - theirs) < 0.5)


def test_transfer_time_grows_with_loss_and_length():
    losses = np.array([0.0, 1e-4, 1e-3, 0.01, 0.1])[:, None]
    times = slow_link.lossy_transfer_time_s([10, 100, 1000], loss_rate=losses, timeout_s=60.0, window_segments=33, **PATH)

    assert np.all(np.diff(times, axis=0) > 0)
    assert np.all(np.diff(times, axis=1) > 0)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"segments": 0}, "segments must be a whole number of at least 1"),
        ({"segments": 1.5}, "segments must be a whole number"),
        ({"rtt_s": 0.5}, "rtt_s must be at least segment_s, 0.625, not 0.5"),
        ({"segment_s": 0.0}, "segment_s must be positive"),
        ({"segments_per_ack": 1.5}, "segments_per_ack must be a whole number"),
        ({"window_segments": 1, "initial_window_segments": 2}, "window_segments must be at least initial_window_segments"),
        ({"initial_window_segments": 0.5}, "initial_window_segments must be at least 1"),
    ],
)
def test_values_out_of_range_are_refused(changes, words):
    given = {"segments": 10, **PATH, **changes}
    segments = given.pop("segments")

    with pytest.raises(ValueError, match=words):
        slow_link.transfer_time_s(segments, **given)
    with pytest.raises(ValueError, match=words):
        slow_link.mean_rtt_s(segments, **given)
    with pytest.raises(ValueError, match=words):
        slow_link.lossy_transfer_time_s(segments, loss_rate=0.01, timeout_s=60.0, **given)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"loss_rate": 1.0}, "loss_rate must be from 0 to below 1"),
        ({"timeout_s": 0.0}, "timeout_s must be positive"),
        ({"delayed_ack_s": -1.0}, "delayed_ack_s must be at least 0"),
    ],
)
def test_values_out_of_range_with_losses_are_refused(changes, words):
    with pytest.raises(ValueError, match=words):
        slow_link.lossy_transfer_time_s(10, **{"loss_rate": 0.01, "timeout_s": 60.0, **PATH, **changes})

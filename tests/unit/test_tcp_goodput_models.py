"""Closed forms of TCP's goodput: limits, ranges, and comparison with each other."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from farlink.models.tcp_goodput import celandroni, erasure_tradeoff, mathis, selection, selective, short_buffer, timeout
from farlink.models.tcp_latency import padhye
from farlink.models.tcp_latency.timeout import sequence_mean_s

LINK = {"rtt_s": 0.5, "timeout_s": 2.0}
SHORT = {"rtt_s": 0.2, "timeout_s": 1.0}
LOSSES = np.geomspace(1e-8, 0.5, 40)


def test_relation_1_is_the_approximate_model_with_another_weight_of_timeouts():
    share = celandroni.relation_1(LOSSES, rate_segments_per_s=100.0, **LINK)

    lighter = padhye.send_rate_approximate(LOSSES, rtt_s=0.5, timeout_s=2.0 / math.sqrt(1.5), segments_per_ack=1)
    assert share * 100 == pytest.approx(lighter, rel=1e-12)


def test_all_models_agree_when_losses_are_rare():
    loss = 1e-7
    rate = float(mathis.throughput(loss, rtt_s=0.5, segments_per_ack=2))

    share = celandroni.relation_1(loss, rate_segments_per_s=1.0, segments_per_ack=2, **LINK)
    assert float(share) == pytest.approx(rate, rel=1e-3)
    assert float(padhye.throughput(loss, segments_per_ack=2, **LINK)) == pytest.approx(rate, rel=5e-3)


@given(st.floats(1e-9, 1.0), st.floats(1.0, 4.0), st.floats(1.0, 4.0))
def test_relation_1_falls_with_loss_and_with_rarer_acknowledgements(loss, more, per_ack):
    def share(loss: float, per_ack: float = 1.0) -> float:
        return float(celandroni.relation_1(loss, rate_segments_per_s=455.0, segments_per_ack=per_ack, **LINK))

    assert share(min(1.0, more * loss)) <= share(loss)
    assert share(loss, per_ack) <= share(loss)


def test_without_loss_goodput_is_unbounded():
    assert float(mathis.throughput(0.0, rtt_s=0.5)) == math.inf
    assert float(celandroni.relation_1(0.0, rate_segments_per_s=455.0, **LINK)) == math.inf


def test_timeout_is_a_second_or_four_round_trips():
    assert timeout.timeout_s([0.01, 0.25, 0.3]).tolist() == [1.0, 1.0, pytest.approx(1.2)]


def test_selection_changes_at_the_threshold():
    assert selection.select([0.499, 0.5], [0.9, 0.6]).tolist() == [0.499, 0.6]
    assert selection.select([0.3], [0.31], threshold=0.2).tolist() == [0.31]
    with pytest.raises(ValueError, match="fluid"):
        selection.select([0.6], [math.nan])


def test_erasure_code_losses_follow_the_binomial_distribution():
    loss = float(erasure_tradeoff.packet_loss(0.1, data_units=4, parity_units=1))

    assert loss == pytest.approx(1 - 0.9**5 - 5 * 0.1 * 0.9**4, rel=1e-12)
    assert float(erasure_tradeoff.packet_loss(0.1, data_units=4, parity_units=0)) == pytest.approx(1 - 0.9**4, rel=1e-12)


@given(st.floats(1e-5, 0.2), st.integers(1, 40), st.floats(100.0, 1e5))
def test_best_parity_is_where_rate_and_window_limits_meet(loss, data_units, rate):
    limits = {"data_units": data_units, "rate_units_per_s": rate, "rtt_s": 0.5}

    best = int(erasure_tradeoff.best_parity_units(loss, most_units=128, **limits))

    rates = erasure_tradeoff.throughput(loss, parity_units=np.arange(128 - data_units + 1), **limits)
    assert rates[best] == rates.max()
    # If losses did not limit the rate with less parity, more parity only costs rate.
    assert np.all(np.diff(rates[best:]) <= 0)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: celandroni.relation_1(1.5, rate_segments_per_s=1, **LINK), "loss_rate must be from 0 to 1, not 1.5"),
        (lambda: celandroni.relation_1(0.5, rate_segments_per_s=0, **LINK), "rate_segments_per_s must be positive"),
        (lambda: mathis.throughput(0.5, rtt_s=-1), "rtt_s must be positive"),
        (lambda: mathis.throughput(0.5, rtt_s=1, segments_per_ack=0.5), "segments_per_ack must be at least 1"),
        (lambda: timeout.timeout_s(0.0), "rtt_s must be positive"),
        (lambda: erasure_tradeoff.packet_loss(0.1, data_units=0, parity_units=1), "data_units must be a whole number"),
        (lambda: selection.select(-0.1, 0.5), "relation must be at least 0"),
    ],
)
def test_values_out_of_range_are_refused(call, words):
    with pytest.raises(ValueError, match=words):
        call()


class TestShortBuffer:
    def test_it_is_the_mean_of_a_sawtooth(self):
        """A window that grows by a segment a round, drawn in steps: over a path of 1000 segments with room for 300 more."""
        windows = np.arange(650, 1300)
        rounds = np.maximum(windows, 1000) / 1000

        assert short_buffer.utilisation(0.3) == pytest.approx(windows.sum() / 1000 / rounds.sum(), rel=1e-3)

    def test_a_round_trip_of_room_keeps_the_link_busy(self):
        assert short_buffer.utilisation([0, 1, 5, np.inf]).tolist() == [0.75, 1, 1, 1]

    def test_a_room_below_zero_is_refused(self):
        with pytest.raises(ValueError, match="buffer_bdp"):
            short_buffer.utilisation(-0.1)


class TestSelective:
    def test_without_timeouts_it_is_what_arrives_of_padhyes_periods(self):
        loss = np.array([1e-4, 1e-2])
        expected = (1 - loss) * padhye.throughput_without_timeouts(loss, rtt_s=0.2, segments_per_ack=1)

        found = selective.throughput(loss, timeouts_per_lost_repair=0, **SHORT)

        np.testing.assert_allclose(found, expected)

    def test_each_lost_repair_costs_a_sequence_of_timeouts(self):
        loss = 0.02
        period_s = 0.2 * padhye.period_rounds(loss, segments_per_ack=1)
        with_waits = selective.throughput(loss, **SHORT)
        without = selective.throughput(loss, timeouts_per_lost_repair=0, **SHORT)

        assert without / with_waits == pytest.approx(1 + loss * sequence_mean_s(loss, timeout_s=1.0) / period_s)

    def test_without_loss_the_window_limits(self):
        assert selective.throughput(0.0, window_segments=30, **SHORT) == pytest.approx(150)

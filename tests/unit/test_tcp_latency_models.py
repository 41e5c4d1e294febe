"""Closed forms of TCP's latency: shapes, limits, growth, refusals."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from farlink.models.tcp_latency import cardwell, padhye, setup, sikdar, slow_start, timeout

LOSS = st.floats(1e-6, 0.4)
WINDOW = st.floats(1, 1000)
RTT = st.floats(0.01, 30)
LINK = {"rtt_s": 0.5, "timeout_s": 2.0}
ROW, COLUMN = np.array([1e-3, 1e-2]), np.array([[10.0], [20.0], [40.0]])


def test_results_have_the_broadcast_shape():
    rates = (padhye.send_rate, padhye.throughput, padhye.send_rate_approximate)
    for rate in rates:
        assert rate(ROW, window_segments=COLUMN, **LINK).shape == (3, 2)
    assert padhye.throughput_without_timeouts(ROW, rtt_s=0.5, window_segments=COLUMN).shape == (3, 2)
    assert padhye.timeout_share(ROW, window_segments=COLUMN).shape == (3, 2)
    assert padhye.timeout_share(ROW, window_segments=COLUMN, approximate=True).shape == (3, 2)
    assert cardwell.transfer_time_s(COLUMN, loss_rate=ROW, **LINK).shape == (3, 2)
    assert setup.setup_time_s(ROW, rtt_s=COLUMN, timeout_s=3.0).shape == (3, 2)
    assert timeout.sequence_mean_s(ROW, timeout_s=COLUMN).shape == (3, 2)
    assert slow_start.rounds_for_segments(COLUMN, initial_window_segments=np.array([1, 2])).shape == (3, 2)
    for method in ("recursion", "equation"):
        assert sikdar.transfer_time_s(COLUMN, loss_rate=ROW, window_segments=8, method=method, **LINK).shape == (3, 2)
    assert sikdar.transfer_time_s(7, loss_rate=0.01, window_segments=8, **LINK).shape == ()


def test_every_element_is_computed_independently():
    segments, losses, windows = np.array([5, 50, 500, 50]), np.array([0.01, 0.1, 0.01, 0.01]), np.array([8, 8, 16, 8])
    for method in ("recursion", "equation"):
        together = sikdar.transfer_time_s(segments, loss_rate=losses, window_segments=windows, method=method, **LINK)
        for index in range(4):
            alone = sikdar.transfer_time_s(
                segments[index], loss_rate=losses[index], window_segments=windows[index], method=method, **LINK
            )
            assert float(alone) == together[index]


@given(LOSS, LOSS, RTT, WINDOW)
def test_more_losses_slow_padhye_down(one, other, rtt_s, window):
    less, more = sorted((one, other))
    times = {"rtt_s": rtt_s, "timeout_s": 4 * rtt_s, "window_segments": window}
    for rate in (padhye.send_rate_approximate, padhye.throughput):
        # The cases of the window limit meet for two segments per acknowledgement.
        assert float(rate(more, **times)) <= float(rate(less, **times)) * (1 + 1e-9)


@given(LOSS, RTT, WINDOW, st.floats(1, 4))
def test_throughput_is_below_the_send_rate_under_the_window_limit(loss, rtt_s, window, per_ack):
    setting = {"rtt_s": rtt_s, "segments_per_ack": per_ack, "window_segments": window}
    sent = float(padhye.send_rate(loss, timeout_s=4 * rtt_s, **setting))
    assert float(padhye.throughput(loss, timeout_s=4 * rtt_s, **setting)) <= sent
    assert sent <= window / rtt_s * (1 + 1e-9)
    assert float(padhye.throughput_without_timeouts(loss, **setting)) <= window / rtt_s * (1 + 1e-9)


def test_the_timer_follows_mean_and_deviation():
    steady = timeout.timers_s(np.full(200, 20.0))
    assert steady[0] == 60.0
    assert steady[-1] == pytest.approx(20.0, rel=1e-6)
    # For independent samples: the mean and four mean deviations. That of an exponential distribution is 2 / e of its mean; the
    # smoothed mean, itself random, adds to it.
    samples = np.random.default_rng(1).exponential(20.0, 200_000)
    assert timeout.timers_s(samples).mean() == pytest.approx(20 * (1 + 4 * 2 / math.e), rel=0.03)
    assert timeout.timers_s(samples, deviations=0.0).mean() == pytest.approx(20.0, rel=0.02)


def test_without_loss_the_window_limits_the_rate():
    assert float(padhye.send_rate(0.0, window_segments=20, **LINK)) == 40
    assert float(padhye.throughput(0.0, window_segments=20, **LINK)) == 40
    assert float(padhye.send_rate(1e-12, window_segments=20, **LINK)) == pytest.approx(40)
    for rate in (padhye.send_rate, padhye.throughput, padhye.send_rate_approximate):
        assert np.isinf(rate(0.0, **LINK))
    assert np.isinf(padhye.throughput_without_timeouts(0.0, rtt_s=0.5))


def test_rare_losses_give_the_square_root_law():
    for per_ack in (1, 2):
        rate = padhye.throughput_without_timeouts(1e-10, rtt_s=0.5, segments_per_ack=per_ack)
        assert float(rate) == pytest.approx(math.sqrt(3 / (2 * per_ack * 1e-10)) / 0.5, rel=1e-3)


def test_the_share_of_timeouts_is_three_over_the_window():
    assert padhye.timeout_share(1e-12, window_segments=[1, 3, 6, 300]) == pytest.approx([1, 1, 0.5, 0.01])
    assert padhye.timeout_share(1e-12, window_segments=[1, 3, 6, 300], approximate=True) == pytest.approx([1, 1, 0.5, 0.01])
    # In a round of w with a loss the first k arrive; of the k segments of the next round fewer than three arrive before a loss.
    loss, window = 0.07, 9
    lost_after = (1 - loss) ** np.arange(window) * loss / (1 - (1 - loss) ** window)
    few = np.array([1.0 if k < 3 else 1 - (1 - loss) ** 3 for k in range(window)])
    assert float(padhye.timeout_share(loss, window_segments=window)) == pytest.approx(np.sum(lost_after * few))


@settings(max_examples=30)
@given(st.floats(0, 0.49), st.floats(0, 0.49))
def test_set_up_is_the_mean_over_the_failures(loss, back):
    count = np.arange(400)[:, None]
    weights = setup.handshake_probability(count, return_failures=count.T, loss_rate=loss, return_loss_rate=back)
    times = setup.handshake_s(count, return_failures=count.T, rtt_s=0.5, timeout_s=3.0)
    # The tail of the sum: (2 p)^400.
    mean = float(setup.setup_time_s(loss, rtt_s=0.5, timeout_s=3.0, return_loss_rate=back))
    assert mean == pytest.approx(float(np.sum(weights * times)), rel=2e-3)


@given(st.floats(0, 1e4), st.floats(1, 4), st.floats(1, 10))
def test_slow_start_time_and_segments_are_inverses(segments, per_ack, first):
    law = {"segments_per_ack": per_ack, "initial_window_segments": first}
    rounds = slow_start.rounds_for_segments(segments, **law)
    assert float(slow_start.segments_in_rounds(rounds, **law)) == pytest.approx(segments, rel=1e-9, abs=1e-9)
    if rounds >= 1:
        window = slow_start.window_in_round(rounds, **law)
        assert float(slow_start.window_after_segments(segments, **law)) == pytest.approx(float(window), rel=1e-9)


def test_slow_start_of_cardwell_meets_the_window_limit_without_a_step():
    # 20 segments are the window after 58.
    at, above = cardwell.slow_start_s([58.0, 58.000001], rtt_s=1.0, window_segments=20)
    assert above - at == pytest.approx(0, abs=1e-6)


@given(st.integers(1, 300), LOSS)
def test_slow_start_ends_with_a_loss_or_with_the_transfer(segments, loss):
    number = float(cardwell.slow_start_segments(segments, loss_rate=loss))
    assert 1 - 1e-9 <= number <= min(segments, 1 / loss) * (1 + 1e-9)


@given(st.integers(0, 5000))
def test_rounds_of_slow_start_hold_the_segments(segments):
    for kind in ("whole", "closed", "printed"):
        rounds = int(sikdar.rounds_for_segments(segments, packet_sum=kind))
        assert float(sikdar.segments_in_rounds(rounds, packet_sum=kind)) >= segments - 1e-6 or segments == 0
        if rounds > 1:
            assert float(sikdar.segments_in_rounds(rounds - 1, packet_sum=kind)) < segments


@given(st.integers(0, 500), st.integers(1, 60), st.integers(1, 60), st.integers(1, 3))
def test_linear_rounds_match_counting(segments, first, limit, per_ack):
    left, window, rounds = segments, min(first, limit), 0
    while left > 0:
        left -= window
        rounds += 1
        window = min(limit, window + (rounds % per_ack == 0))

    counted = sikdar.linear_rounds(segments, first_window_segments=first, window_segments=limit, segments_per_ack=per_ack)
    assert int(counted) == rounds


@given(st.integers(1, 2000), st.integers(1, 60))
def test_lossless_rounds_match_counting(segments, limit):
    left, rounds = segments, 0
    while left > 0:
        rounds += 1
        left -= min(limit, int(sikdar.window_in_round(rounds, is_whole=True)))

    assert int(sikdar.lossless_rounds(segments, window_segments=limit)) == rounds


def test_the_printed_lossless_time_misses_a_round_behind_slow_start():
    number, limit = np.arange(1, 3000), 40
    printed = sikdar.lossless_rounds(number, window_segments=limit, packet_sum="printed")
    closed = sikdar.lossless_rounds(number, window_segments=limit, packet_sum="closed")

    # 164.6 segments in the eleven rounds of slow start, and the 40 of the limit.
    short = (closed - printed)[number > 205]
    assert set(short) == {0, 1}
    assert short.mean() > 0.9


@pytest.mark.parametrize(
    ("variant", "window", "lost", "times_out"),
    [
        ("reno", 3, 1, True),
        ("reno", 4, 1, False),
        ("reno", 9, 2, True),
        ("reno", 10, 2, False),
        ("reno", 100, 3, True),
        ("sack", 10, 5, False),
        ("sack", 10, 6, True),
        ("sack", 4, 2, True),
        ("tahoe", 10, 7, False),
        ("tahoe", 10, 8, True),
    ],
)
def test_which_losses_need_a_timeout(variant, window, lost, times_out):
    before = np.array([window - lost])
    recovery = sikdar.recover(variant, sent=np.array([window]), before=before, lost=np.array([lost]), fresh=before)

    assert bool(recovery.has_timeout[0]) is times_out
    # After a timeout the transfer continues with slow start from its second round.
    assert bool(recovery.is_slow_start[0]) is (times_out or variant == "tahoe")
    assert int(recovery.first_round[0]) == (2 if times_out else 1)


@given(st.sampled_from(["tahoe", "reno", "sack"]), st.integers(1, 60), st.data())
def test_a_recovery_makes_progress_and_halves_the_window_at_most_three_times(variant, sent, data):
    before = data.draw(st.integers(0, sent - 1))
    lost, fresh = data.draw(st.integers(1, sent - before)), data.draw(st.integers(0, before))
    recovery = sikdar.recover(
        variant, sent=np.array([sent]), before=np.array([before]), lost=np.array([lost]), fresh=np.array([fresh])
    )
    delivered, window = int(recovery.delivered[0]), int(recovery.next_window[0])

    assert delivered >= 1
    # At most the round, the segments it released, and a window sent in the recovery.
    assert delivered <= sent + fresh + 2 * max(2, sent)
    # RFC 5681 halves the data in flight, which is less than the round if its first segments released nothing.
    flight = sent - before + fresh
    assert max(2, flight // 16) <= window <= max(2, flight // 2)
    if not recovery.has_timeout[0] and variant != "tahoe":
        assert delivered >= sent + fresh


@given(st.integers(2, 60), LOSS)
def test_multiple_losses_follow_the_binomial_distribution(segments, loss):
    ways = np.array([math.comb(segments, k) * loss**k * (1 - loss) ** (segments - k) for k in range(segments + 1)])
    count = np.arange(segments + 1)
    mean = np.sum((count * ways)[2:]) / np.sum(ways[2:])

    assert float(sikdar.losses_if_several(segments, loss_rate=loss)) == pytest.approx(mean, rel=1e-4)


@settings(max_examples=20)
@given(st.integers(1, 200), st.sampled_from(["tahoe", "reno", "sack"]), st.sampled_from(["correlated", "independent"]))
def test_transfer_time_grows_with_loss_and_length(segments, variant, losses):
    setting = {"window_segments": 12, "variant": variant, "losses": losses, **LINK}
    rates = np.array([0.0, 0.001, 0.01, 0.05, 0.2])
    times = sikdar.transfer_time_s(segments, loss_rate=rates, **setting)
    assert np.all(np.diff(times) > 0)
    without = 0.1 + sikdar.lossless_s(segments, rtt_s=0.5, window_segments=12)
    assert times[0] == pytest.approx(float(without))
    lengths = sikdar.transfer_time_s(np.arange(1, 201), loss_rate=0.01, **setting)
    # A segment more opens a window earlier in rare cases: duplicate acknowledgements for a loss near the end.
    assert np.all(np.diff(lengths) > -0.1)


def test_printed_weights_underestimate_losses():
    setting = {"loss_rate": 0.01, "window_segments": 40, "method": "equation", **LINK}
    ours, printed = (sikdar.transfer_time_s([10, 100], as_printed=as_printed, **setting) for as_printed in (False, True))
    assert np.all(printed < ours)
    several = {"loss_count": 3, "loss_rate": 0.01, "window_segments": 40, **LINK}
    between = sikdar.between_losses_s(100, loss_rate=0.01, window_segments=40, **LINK)
    # Three losses in 199 segments: the second at 100, then 100 up to the third, and as many behind it in the mean of two.
    longer, shorter = (sikdar.multiple_losses_s(199, as_printed=as_printed, **several) for as_printed in (False, True))
    assert 0 < float(longer - shorter) < float(between)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: padhye.send_rate(1.0, **LINK), "loss_rate must be from 0 to below 1, not 1.0"),
        (lambda: padhye.send_rate([0.1, -0.1], **LINK), "loss_rate must be from 0 to below 1"),
        (lambda: padhye.send_rate(0.1, rtt_s=0.0, timeout_s=2.0), "rtt_s must be positive"),
        (lambda: padhye.send_rate(0.1, rtt_s=0.5, timeout_s=np.nan), "timeout_s must be positive"),
        (lambda: padhye.throughput(0.1, window_segments=0.5, **LINK), "window_segments must be at least 1"),
        (lambda: padhye.period_rounds(0.0), "loss_rate must be positive"),
        (lambda: padhye.mean_window(0.1, segments_per_ack=0), "segments_per_ack must be at least 1"),
        (lambda: setup.setup_time_s(0.5, rtt_s=0.5, timeout_s=3.0), "loss_rate must be below 1/2"),
        (
            lambda: setup.setup_time_s(0.1, rtt_s=0.5, timeout_s=3.0, return_loss_rate=0.6),
            "return_loss_rate must be below 1/2",
        ),
        (lambda: setup.handshake_s(0.5, return_failures=0, rtt_s=1, timeout_s=1), "failures must be a whole number"),
        (lambda: timeout.sequence_mean_s(1.0, timeout_s=1.0), "loss_rate must be from 0 to below 1"),
        (lambda: timeout.sequence_s(-1, timeout_s=1.0), "timeouts must be a whole number of at least 0"),
        (lambda: timeout.retransmission_timeout_s(1.0, deviation_s=-1), "deviation_s must be at least 0"),
        (lambda: timeout.timers_s([]), "samples_s must be a series of at least one round trip"),
        (lambda: timeout.timers_s([1.0], gain=0.0), "gain and deviation_gain must be above 0 and at most 1"),
        (lambda: timeout.timers_s([1.0, -1.0]), "samples_s must be positive"),
        (lambda: slow_start.window_in_round(0), "rounds must be at least 1"),
        (lambda: slow_start.rounds_for_segments(5, initial_window_segments=0.5), "initial_window_segments must be at least 1"),
        (
            lambda: cardwell.slow_start_s(5, rtt_s=1.0, window_segments=2, initial_window_segments=3),
            "window_segments must be at least initial_window_segments",
        ),
        (lambda: cardwell.transfer_time_s(0, loss_rate=0.1, **LINK), "segments must be at least 1"),
        (lambda: sikdar.transfer_time_s(1.5, loss_rate=0.1, window_segments=4, **LINK), "segments must be a whole number"),
        (
            lambda: sikdar.transfer_time_s(20_001, loss_rate=0.1, window_segments=4, **LINK),
            "the recursion takes at most 20000 segments and windows of 200, not 20001 and 4",
        ),
        (
            lambda: sikdar.transfer_time_s(20, loss_rate=0.1, window_segments=201, **LINK),
            "the recursion takes at most 20000 segments and windows of 200, not 20 and 201",
        ),
        (
            lambda: sikdar.transfer_time_s(20, loss_rate=0.1, window_segments=4, variant="vegas", **LINK),
            'variant must be "tahoe", "reno" or "sack"',
        ),
        (
            lambda: sikdar.transfer_time_s(20, loss_rate=0.1, window_segments=4, losses="some", **LINK),
            'losses must be "correlated" or "independent"',
        ),
        (
            lambda: sikdar.transfer_time_s(20, loss_rate=0.1, window_segments=4, method="guess", **LINK),
            'method must be "recursion" or "equation"',
        ),
        (lambda: sikdar.segments_in_rounds(5, packet_sum="all"), 'packet_sum must be "whole", "closed" or "printed"'),
        (lambda: sikdar.segments_in_rounds(121), "rounds must be at most 120 for whole windows"),
        (
            lambda: sikdar.multiple_losses_s(5, loss_count=6, loss_rate=0.1, window_segments=4, **LINK),
            "loss_count must be at most segments",
        ),
    ],
)
def test_values_out_of_range_are_refused(call, words):
    with pytest.raises(ValueError, match=words.replace("(", r"\(")):
        call()

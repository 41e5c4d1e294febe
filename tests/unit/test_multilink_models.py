"""Closed forms of bundles: drops, queues, fading and go-back-N, beside simulation by random numbers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from farlink.models.multilink import call_drops, drop_losses, fading, loaded_bundle
from farlink.models.multilink.faded_link import over_fading
from farlink.models.multilink.fading import FrameErrors
from farlink.models.multilink.go_back_n import (
    GoBackN,
    failures_mean,
    outlasts,
    residual_loss,
    rtt_deviation_s,
    rtt_mean_s,
)
from farlink.models.tcp_latency import padhye
from farlink.models.tcp_latency.sikdar import window_in_round

IRIDIUM = {"loss_rate": 5e-4, "rtt_s": 19.0, "timeout_s": 60.0, "window_segments": 33.1}
FADED = {"frame_bytes": 60, "rate_bps": 2400, "link_rtt_s": 1.0, "margin_db": 10.0, "doppler_hz": 0.1}
BUFFERS = {"rate_bps": 2400, "modem_buffer_bytes": 4500, "serial_buffer_bytes": 1500, "segment_bytes": 1500}


def test_results_have_the_broadcast_shape():
    drops, loss = np.array([0.0, 1e-3, 2e-3]), np.array([[1e-4], [1e-3]])
    assert call_drops.throughput(drops, **{**IRIDIUM, "loss_rate": loss}).shape == (2, 3)
    assert call_drops.periods_between_drops(drops[1:], **{**IRIDIUM, "loss_rate": loss}).shape == (2, 2)
    assert drop_losses.segments_lost(drops, **{**BUFFERS, "rate_bps": np.array([[2400], [4800]])}).shape == (2, 3)
    assert loaded_bundle.rtt_mean_s([1, 2, 3], modem_time_s=[[5.0], [6.5]]).shape == (2, 3)
    errors = fading.rayleigh_frames([[5.0], [10.0]], doppler_hz=[0.1, 1.0, 10.0], frame_s=0.2)
    assert errors.after_good.shape == errors.after_bad.shape == fading.error_rate(errors).shape == (2, 3)
    for attempts in (None, 4):
        arq = GoBackN(25, 6, 0.2, errors, attempts=attempts)
        for quantity in (failures_mean, rtt_mean_s, rtt_deviation_s, residual_loss):
            assert quantity(arq).shape == (2, 3)
        assert outlasts(arq, limit_s=10.0).shape == (2, 3)


def test_without_drops_there_are_no_timeouts():
    undisturbed = padhye.throughput_without_timeouts(5e-4, rtt_s=19.0, window_segments=33.1)
    assert float(call_drops.throughput(0.0, **IRIDIUM)) == float(undisturbed)


@given(st.floats(0, 1), st.floats(0, 0.2), st.floats(1, 100), st.floats(1, 200))
def test_drops_slow_down_up_to_their_bound(share, loss, timeout_s, window):
    setting = {"loss_rate": loss, "rtt_s": 0.6, "timeout_s": timeout_s, "window_segments": window}
    bound = float(call_drops.highest_drop_rate_hz(loss, timeout_s=timeout_s))
    none, some, most = call_drops.throughput([0.0, share * bound, bound], **setting)

    # At the bound only one retransmission is sent after each drop.
    assert most == pytest.approx(bound / (1 - loss))
    assert min(none, most) * (1 - 1e-9) <= some <= max(none, most) * (1 + 1e-9)
    with pytest.raises(ValueError, match=r"drop_rate_hz must be at most .* the timeouts would take longer"):
        call_drops.throughput(1.001 * bound, **setting)


def test_drops_beyond_the_bound_are_refused_with_it():
    with pytest.raises(ValueError, match=r"drop_rate_hz must be at most 0\.01665 with this .*, not 0\.02:"):
        call_drops.throughput([0.001, 0.02], **IRIDIUM)
    with pytest.raises(ValueError, match="drop_rate_hz must be at most"):
        call_drops.periods_between_drops(0.02, **IRIDIUM)
    setting = {key: value for key, value in IRIDIUM.items() if key != "window_segments"}
    with pytest.raises(ValueError, match="drop_rate_hz must be at most"):
        call_drops.transfer_time_s(1e6, segment_bytes=1448, drop_rate_hz=0.02, window_bytes=48e3, **setting)


def test_periods_of_a_bundle_fill_the_time_between_drops():
    drops = 1e-4
    periods = call_drops.periods_between_drops(drops, **IRIDIUM)
    size = padhye.period_segments(5e-4, window_segments=33.1)
    # Equation (32), of which (36) is the quotient.
    sent = periods * size + 1 / (1 - 5e-4)
    assert float(sent * drops) == pytest.approx(float(call_drops.throughput(drops, **IRIDIUM)))


def rounds_with_drops(drop_rate_hz: float, loss: float, rtt_s: float, timeout_s: float, limit: int, length_s: float) -> float:
    """Segments per second of rounds of a constant round trip; after a drop a sequence of timeouts, and slow start."""
    rng = np.random.default_rng(1)
    slow = window_in_round(np.arange(1, 30), is_whole=True)
    # In the model a period includes its timeouts.
    running_s = 1 / drop_rate_hz - timeout_s
    time, sent, window, number, threshold, drop = 0.0, 0, limit / 2, 0, 0.0, rng.exponential(running_s)
    while time < length_s:
        current = min(slow[number - 1] if number else window, limit)
        time += rtt_s
        if time > drop:
            time += timeout_s * (2 ** int(rng.geometric(1 - loss)) - 1)
            drop = time + rng.exponential(running_s)
            threshold, number = max(2, current / 2), 1
            continue
        sent += int(current)
        if rng.random() > (1 - loss) ** int(current):
            window, number = max(1, current / 2), 0
        elif number and slow[number] < threshold:
            number += 1
        elif number:
            window, number = threshold, 0
        else:
            window = min(limit, window + 0.5)
    return sent / time


@pytest.mark.parametrize(
    ("drop_rate_hz", "rtt_s", "limit", "length_s", "periods", "too_high"),
    [
        (1 / 30_000, 19.0, 33, 2e7, 22, 1.02),
        (4 / 3000, 0.61, 40, 1e6, 18, 1.04),
        (4 / 600, 0.61, 40, 5e5, 2.4, 1.17),
        (1 / 3000, 19.0, 33, 1e7, 2.2, 1.13),
        (4 / 3000, 19.0, 33, 5e6, 0.51, 1.70),
        (8 / 3000, 19.0, 33, 5e6, 0.23, 3.1),
    ],
)
def test_the_model_needs_many_periods_between_drops(drop_rate_hz, rtt_s, limit, length_s, periods, too_high):
    setting = {"loss_rate": 5e-4, "rtt_s": rtt_s, "timeout_s": 60.0, "window_segments": limit}

    assert float(call_drops.periods_between_drops(drop_rate_hz, **setting)) == pytest.approx(periods, rel=0.05)
    simulated = rounds_with_drops(drop_rate_hz, 5e-4, rtt_s, 60.0, limit, length_s)
    assert float(call_drops.throughput(drop_rate_hz, **setting)) / simulated == pytest.approx(too_high, rel=0.03)


@given(st.floats(1, 500))
def test_the_latest_detection_is_the_limit_of_sack(window):
    latest = float(drop_losses.latest_detection_s(window, **BUFFERS))
    if latest > 1e-6:
        just, late = (drop_losses.segments_lost(latest * factor, **BUFFERS) for factor in (1 - 1e-9, 1 + 1e-9))
        assert not drop_losses.sack_times_out(just, window_segments=window)
        assert drop_losses.sack_times_out(late, window_segments=window)
    else:
        assert drop_losses.sack_times_out(drop_losses.segments_lost(1e-3, **BUFFERS), window_segments=window)


@pytest.mark.parametrize(("margin_db", "doppler"), [(10, 0.25), (10, 2.5), (3, 0.5), (-3, 1.0)])
def test_frame_errors_are_those_of_two_correlated_gaussian_fields(margin_db, doppler):
    frame_s, count = 0.2, 400_000
    angles = np.linspace(0, np.pi, 20_001)
    correlation = np.mean(np.cos(2 * np.pi * doppler * frame_s * np.sin((angles[1:] + angles[:-1]) / 2)))
    rng = np.random.default_rng(1)
    one = rng.normal(size=(2, count))
    other = correlation * one + np.sqrt(1 - correlation**2) * rng.normal(size=(2, count))
    is_bad, then_bad = (np.sum(field**2, axis=0) / 2 < 10 ** (-margin_db / 10) for field in (one, other))

    errors = fading.rayleigh_frames(margin_db, doppler_hz=doppler, frame_s=frame_s)
    for ours, state in ((errors.after_good, ~is_bad), (errors.after_bad, is_bad)):
        measured = then_bad[state].mean()
        assert float(ours) == pytest.approx(measured, abs=4 * np.sqrt(measured * (1 - measured) / state.sum()))
    assert float(fading.error_rate(errors)) == pytest.approx(1 - np.exp(-(10 ** (-margin_db / 10))))


def test_slow_fading_crosses_the_threshold_as_often_as_rice_says():
    inverse = 0.1
    crossings_hz = np.sqrt(2 * np.pi * inverse) * np.exp(-inverse)  # with a Doppler frequency of 1 Hz
    for frame_s in (1e-3, 1e-5, 1e-7):
        errors = fading.rayleigh_frames(10.0, doppler_hz=1.0, frame_s=frame_s)
        good = 1 - fading.error_rate(errors)
        assert float(errors.after_good * good / frame_s) == pytest.approx(crossings_hz, rel=1e-4)


def test_fast_fading_is_independent_and_slow_fading_persists():
    fast = fading.rayleigh_frames(10.0, doppler_hz=[1e3, 1e6], frame_s=1.0)
    assert fast.after_good == pytest.approx(1 - np.exp(-0.1), abs=1e-4)
    assert fast.after_bad == pytest.approx(1 - np.exp(-0.1), abs=2e-4)
    still = fading.rayleigh_frames(10.0, doppler_hz=0.0, frame_s=1.0)
    assert (float(still.after_good), float(still.after_bad)) == (0.0, 1.0)


@given(st.floats(-5, 30), st.floats(1e-4, 100), st.integers(1, 100))
def test_the_two_state_chain_has_the_stationary_share(margin_db, doppler, frames):
    errors = fading.rayleigh_frames(margin_db, doppler_hz=doppler, frame_s=0.1)
    share = float(fading.error_rate(errors))
    assert share == pytest.approx(-np.expm1(-(10 ** (-margin_db / 10))), rel=1e-6)
    again = float(fading.bad_again(errors, frames=frames))
    chain = np.array([[1 - errors.after_good, errors.after_good], [1 - errors.after_bad, errors.after_bad]], dtype=float)
    assert again == pytest.approx(np.linalg.matrix_power(chain, frames)[1, 1], rel=1e-6, abs=1e-12)


def go_back_n(arq: GoBackN, segments: int, seed: int = 1) -> tuple[np.ndarray, float]:
    """Times of segments that arrive, and the share of the others, frame by frame over a two-state channel."""
    rng = np.random.default_rng(seed)
    enter, stay = float(arq.errors.after_good), float(arq.errors.after_bad)
    draws, at, is_bad, pause = rng.random(1 << 20), 0, False, 1
    times, lost = [], 0
    for _ in range(segments):
        slots, is_lost = 0, False
        for _ in range(arq.frames):
            failures = 0
            while True:
                for _ in range(pause):
                    is_bad = draws[at % len(draws)] < (stay if is_bad else enter)
                    at += 1
                pause = 1
                if not is_bad:
                    slots += 1
                    break
                failures, slots, pause = failures + 1, slots + arq.window_frames, arq.window_frames
                if failures == arq.attempts:
                    is_lost = True
                    break
            if at > len(draws):
                draws, at = rng.random(1 << 20), 0
        lost += is_lost
        if not is_lost:
            times.append(arq.base_s + slots * arq.frame_s)
    return np.array(times), lost / segments


@pytest.mark.parametrize(
    ("frames", "window", "enter", "stay", "attempts"),
    [(25, 6, 0.01, 0.9, None), (10, 4, 0.05, 0.5, 3), (25, 6, 0.01, 0.9, 4), (5, 3, 0.1, 0.1, None), (8, 1, 0.2, 0.6, 5)],
)
def test_go_back_n_is_that_of_random_frame_errors(frames, window, enter, stay, attempts):
    arq = GoBackN(frames, window, 0.2, FrameErrors(enter, stay), base_s=0.5, attempts=attempts)
    times, lost = go_back_n(arq, 12_000)

    mean, deviation = float(rtt_mean_s(arq)), float(rtt_deviation_s(arq))
    # Segments of two frames and more are independent except through the channel state at their end.
    assert mean == pytest.approx(times.mean(), abs=4 * deviation / np.sqrt(len(times)))
    # The standard error of a standard deviation, from the fourth moment.
    error = np.sqrt(np.var((times - times.mean()) ** 2) / len(times)) / (2 * times.std())
    assert deviation == pytest.approx(times.std(), abs=4 * error)
    loss = float(residual_loss(arq))
    # Frames given up cluster.
    assert loss == pytest.approx(lost, abs=6 * np.sqrt(max(loss, 1e-12) / 12_000))
    for failures in (0, 1, 3):
        limit = 0.5 + 0.2 * (frames + window * failures)
        late = float(outlasts(arq, limit_s=limit))
        share = np.mean(times > limit + 1e-9)
        assert late == pytest.approx(share, abs=4.5 * np.sqrt(late / len(times)))
    assert float(outlasts(arq, limit_s=0.3)) == 1.0


@settings(max_examples=40)
@given(st.floats(0.001, 0.5), st.floats(0.001, 0.9), st.integers(1, 40), st.integers(1, 10))
def test_many_attempts_approach_no_limit(enter, stay, frames, window):
    errors = FrameErrors(enter, stay)
    never, late = (GoBackN(frames, window, 0.2, errors, attempts=attempts) for attempts in (None, 600))
    assert float(rtt_mean_s(late)) == pytest.approx(float(rtt_mean_s(never)))
    assert float(rtt_deviation_s(late)) == pytest.approx(float(rtt_deviation_s(never)))
    assert float(residual_loss(late)) < 1e-9
    assert float(residual_loss(never)) == 0.0
    limit_s = float(rtt_mean_s(never) + 2 * rtt_deviation_s(never))
    assert float(outlasts(late, limit_s=limit_s)) == pytest.approx(float(outlasts(never, limit_s=limit_s)), abs=1e-9)
    # Chebyshev's inequality, one-sided: the timer of the mean and so many deviations.
    assert float(outlasts(never, limit_s=limit_s)) <= 1 / (1 + 2**2) + 1e-9


def test_round_trips_shrink_with_signal_and_speed_and_grow_with_the_rate_of_the_fading_link():
    def arq(margin_db, speed_mps=1.0, rate_bps=2400.0, attempts=None):
        return over_fading(
            1500,
            frame_bytes=60,
            rate_bps=rate_bps,
            link_rtt_s=1.0,
            margin_db=margin_db,
            doppler_hz=fading.doppler_hz(speed_mps, carrier_hz=1.626e9),
            attempts=attempts,
        )

    assert (float(arq(10.0).frames), float(arq(10.0).window_frames), float(arq(10.0).frame_s)) == (25, 6, 0.2)
    margins = np.array([5.0, 10.0, 20.0, 30.0])
    for quantity in (rtt_mean_s, rtt_deviation_s):
        assert np.all(np.diff(quantity(arq(margins))) < 0)
    assert float(rtt_mean_s(arq(60.0))) == pytest.approx(1.0 + 25 * 0.2, rel=1e-3)
    assert np.all(np.diff(residual_loss(arq(margins, attempts=4))) < 0)
    # Slower movement gives longer fades: retransmissions fail again, but fewer segments meet a fade.
    speeds = np.array([0.0005, 0.002, 0.005, 0.01])
    assert np.all(np.diff(rtt_deviation_s(arq(10.0, speed_mps=speeds))) < 0)
    assert np.all(np.diff(rtt_mean_s(arq(10.0, speed_mps=speeds))) > 0)
    # Losses are highest when fades last as long as the attempts.
    given_up = residual_loss(arq(10.0, speed_mps=np.array([0.0005, 0.005, 0.1]), attempts=4))
    assert given_up[1] > given_up[0] > given_up[2]
    # A timer of the mean and four deviations expires most often with long fades.
    slow, fast = arq(10.0, speed_mps=0.002), arq(10.0, speed_mps=1.0)
    late = [float(outlasts(link, limit_s=rtt_mean_s(link) + 4 * rtt_deviation_s(link))) for link in (slow, fast)]
    assert late[0] > 0.005 > 0.002 > late[1] > 0
    # A fast link has more frames in a fade.
    rates = np.array([2400.0, 9600.0, 64e3])
    errors = arq(10.0, speed_mps=0.5, rate_bps=rates).errors
    assert np.all(np.diff(errors.after_bad) > 0)
    assert np.all(np.diff(errors.after_good) < 0)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: call_drops.bundle_drop_rate_hz(-1, links=8), "drop_rate_hz must be at least 0"),
        (lambda: call_drops.bundle_drop_rate_hz(1, links=0), "links must be a whole number of at least 1"),
        (lambda: call_drops.periods_between_drops(0.0, **IRIDIUM), "drop_rate_hz must be positive"),
        (lambda: call_drops.throughput(1e-3, **{**IRIDIUM, "loss_rate": 1.0}), "loss_rate must be from 0 to below 1"),
        (lambda: drop_losses.segments_lost(-1, **BUFFERS), "detection_s must be at least 0"),
        (lambda: drop_losses.sack_times_out(3, window_segments=0), "window_segments must be at least 1"),
        (lambda: loaded_bundle.modem_time_s(0, rate_bps=2400), "packet_bytes must be positive"),
        (lambda: loaded_bundle.rtt_mean_s(2.5, modem_time_s=6.5), "queue_packets must be a whole number"),
        (lambda: loaded_bundle.rtt_deviation_s(3, modem_deviation_s=-1), "modem_deviation_s must be at least 0"),
        (lambda: fading.rayleigh_frames(np.inf, doppler_hz=1, frame_s=1), "margin_db must be finite"),
        (lambda: fading.rayleigh_frames(10, doppler_hz=-1, frame_s=1), "doppler_hz must be at least 0"),
        (lambda: fading.error_rate(FrameErrors(0.0, 1.0)), "a state is never left"),
        (lambda: fading.error_rate(FrameErrors(1.1, 0.5)), "after_good must be from 0 to 1"),
        (lambda: fading.bad_again(FrameErrors(0.1, 0.5), frames=0), "frames must be a whole number of at least 1"),
        (lambda: GoBackN(0, 6, 0.2, FrameErrors(0.1, 0.5)), "frames must be a whole number of at least 1"),
        (lambda: GoBackN(5, 6, 0.2, FrameErrors(0.1, 1.0)), "no repetition would ever arrive"),
        (lambda: GoBackN(5, 6, 0.2, FrameErrors(0.1, 0.5), attempts=0), "attempts must be a whole number of at least 1"),
        (lambda: GoBackN(5, 6, 0.0, FrameErrors(0.1, 0.5)), "frame_s must be positive"),
        (lambda: GoBackN(5, 6, 0.2, FrameErrors(0.1, 0.5), base_s=-1), "base_s must be at least 0"),
        (lambda: over_fading(1500, **{**FADED, "doppler_hz": 0.0}), "doppler_hz must be positive"),
        (lambda: over_fading(1500, **{**FADED, "frame_bytes": 0}), "frame_bytes must be positive"),
        (
            lambda: outlasts(GoBackN(5, 1, 0.001, FrameErrors(0.1, 0.5)), limit_s=60),
            "limit_s must leave room for at most 5000 failures of a segment",
        ),
    ],
)
def test_values_out_of_range_are_refused(call, words):
    with pytest.raises(ValueError, match=words):
        call()


def test_distance_of_two_frames_is_one_minus_their_absolute_correlation():
    special = pytest.importorskip("scipy.special")
    # Where J_0 is negative and where it is positive, on either side of where the series takes over.
    phase = np.concatenate((np.linspace(0.0, 60.0, 400), np.geomspace(60.0, 1e5, 200)))
    correlation = special.j0(phase)

    assert (correlation < -0.1).any()
    assert fading._one_less_correlation(phase) == pytest.approx(1 - np.abs(correlation), abs=2e-5)

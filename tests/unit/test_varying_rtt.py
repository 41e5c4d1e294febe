"""TCP's timer over round trips that vary: beside drawn failures, and beside the packet engine."""

from __future__ import annotations

import numpy as np
import pytest

from farlink.engines import packet
from farlink.errors import ArgumentError
from farlink.models.multilink import call_drops, go_back_n, varying_rtt
from farlink.models.multilink.fading import FrameErrors
from farlink.models.multilink.go_back_n import GoBackN
from farlink.models.multilink.windowed_bundle import Repetition, WindowedBundle, rtt_s
from farlink.models.tcp_latency.timeout import timers_s
from farlink.papers.zaghloul.round_trips import tcptrace_samples
from farlink.scenario import from_data

ARQS = [GoBackN(25, 6, 0.2, FrameErrors(a, c), base_s=0.5) for a, c in ((0.01, 0.3), (0.1, 0.5), (0.002, 0.9))]
# Lines, window, failures of frames, frames that a failure costs -> packets that a line takes.
BUNDLES = [
    (1, 3, 0.03, 0.1, 6),
    (1, 8, 0.03, 0.1, 6),
    (4, 12, 0.03, 0.1, 6),
    (8, 33, 0.03, 0.1, 6),
    (4, 16, 0.1, 0.3, 10),
    (4, 12, 0.01, 0.5, 8),
    (2, 12, 0.02, 0.4, 6),
]


def drawn_rtts(arq, count, seed=1):
    """Round trips by the chain of `go_back_n`, drawn frame by frame."""
    rng = np.random.default_rng(seed)
    first, again = (float(one) for one in arq.failure_rates())
    failed = rng.random((count, arq.frames)) < first
    failures = np.where(failed, rng.geometric(1 - again, (count, arq.frames)), 0).sum(axis=1)
    return arq.base_s + arq.frames * arq.frame_s + arq.window_frames * arq.frame_s * failures


@pytest.mark.parametrize("arq", ARQS)
def test_mean_deviation_and_timer_over_arq_are_those_of_drawn_round_trips(arq):
    rtts = drawn_rtts(arq, 200_000)

    assert varying_rtt.arq_deviation_s(arq) == pytest.approx(np.mean(np.abs(rtts - rtts.mean())), rel=0.02)
    # Failures of 0.2 % that come nine in a row: seldom, and the timer forgets them in between.
    rare = arq.errors.after_good < 0.005
    timers = timers_s(rtts[:40_000])[200:]
    assert varying_rtt.arq_timeout_s(arq) == pytest.approx(timers.mean(), rel=0.15 if rare else 0.03)


def test_mean_deviation_of_many_settings_is_that_of_each():
    every = GoBackN(25, 6, 0.2, FrameErrors([one.errors.after_good for one in ARQS], [one.errors.after_bad for one in ARQS]))
    alone = [float(varying_rtt.arq_deviation_s(GoBackN(25, 6, 0.2, one.errors))) for one in ARQS]

    assert varying_rtt.arq_deviation_s(every) == pytest.approx(alone, rel=1e-12)


def samples_of(lines, window, loss, again, window_frames):
    arq = {"frame_bytes": 25, "window_frames": window_frames, "loss": loss, "loss_again": again}
    tcp = {
        "kind": "tcp", "variant": "sack", "segment_bytes": 1448, "timestamps": True, "delayed_ack": False,
        "max_window_segments": window, "rto": {"minimum_s": 1, "initial_s": 200, "maximum_s": 2000},
    }  # fmt: skip
    data = {
        "title": "round trips",
        "duration_s": 40_000,
        "runs": 1,
        "link": {"rate_bps": 2400, "delay_s": 0.5, "bundle": {"lines": lines, "line_packets": 3, "arq": arq}},
        "transport": {"tcp": tcp},
        "flow": {"data": {"transport": "tcp", "traffic": {"kind": "bulk"}}},
    }
    trace = packet.trace(from_data(data), run=0, quantities=("sent_sequence", "retransmitted_sequence", "acknowledged"))
    samples = tcptrace_samples(trace)
    return samples[len(samples) // 10 :]


@pytest.mark.parametrize("setting", BUNDLES)
def test_round_trips_of_a_loaded_bundle_are_those_of_the_packet_engine(setting):
    lines, window, loss, again, window_frames = setting
    samples = samples_of(*setting)
    bundle = WindowedBundle(lines, 2400, 1500, window, delay_s=0.5, arq=Repetition(25, window_frames, loss, again))

    assert rtt_s(bundle) == pytest.approx(samples.mean(), rel=0.02)
    # Repetitions half of which fail again are far from normal, and packets wait for them in the order of their numbers.
    assert varying_rtt.rtt_deviation_s(bundle) == pytest.approx(samples.std(), rel=0.2 if again == 0.5 else 0.08)
    assert varying_rtt.timeout_s(bundle) == pytest.approx(timers_s(samples)[100:].mean(), rel=0.04)


def test_without_repetition_the_timer_is_the_round_trip_and_36_that_of_the_thesis():
    bundle = WindowedBundle(8, 2400, 1500, 33, delay_s=0.5)
    drops = {"drop_rate_hz": 8 / 3000, "loss_rate": 5e-4}

    assert varying_rtt.timeout_s(bundle) == pytest.approx(rtt_s(bundle))
    assert varying_rtt.timeout_s(bundle, minimum_s=60) == 60
    assert varying_rtt.throughput(bundle, minimum_s=60, **drops) == pytest.approx(
        call_drops.throughput(rtt_s=rtt_s(bundle), timeout_s=60, window_segments=33, **drops)
    )


def test_variance_costs_throughput_by_the_timer_alone():
    def rates(loss):
        bundle = WindowedBundle(8, 2400, 1500, 33, delay_s=0.5, arq=Repetition(25, 6, loss, 0.5))
        mean = {"rtt_s": rtt_s(bundle), "timeout_s": rtt_s(bundle), "window_segments": 33}
        drops = {"drop_rate_hz": 8 / 900, "loss_rate": 5e-4}
        return float(varying_rtt.throughput(bundle, **drops)), float(call_drops.throughput(**drops, **mean))

    assert rates(0.0)[0] == pytest.approx(rates(0.0)[1])
    costs = [1 - with_variance / without for with_variance, without in map(rates, (0.003, 0.01, 0.03))]
    assert 0 < costs[0] < costs[1] < costs[2]


def test_a_mix_of_speeds_is_that_of_drawn_round_trips():
    shares = [0.5, 0.3, 0.2]
    drawn = [drawn_rtts(arq, int(400_000 * share), seed) for seed, (arq, share) in enumerate(zip(ARQS, shares, strict=True))]
    every = GoBackN(
        25, 6, 0.2, FrameErrors([one.errors.after_good for one in ARQS], [one.errors.after_bad for one in ARQS]), base_s=0.5
    )

    mixed = varying_rtt.mixed_rtt_s(every, shares=shares)

    pooled = np.concatenate(drawn)
    assert mixed.mean_s == pytest.approx(pooled.mean(), rel=0.01)
    assert mixed.deviation_s == pytest.approx(pooled.std(), rel=0.02)
    within = sum(share * one.var() for share, one in zip(shares, drawn, strict=True)) ** 0.5
    assert mixed.within_s == pytest.approx(within, rel=0.02)
    alone = varying_rtt.mixed_rtt_s(every, shares=[0, 1, 0])
    assert alone.deviation_s == pytest.approx(alone.within_s)
    assert alone.mean_s == pytest.approx(go_back_n.rtt_mean_s(ARQS[1]))


@pytest.mark.parametrize(
    ("shares", "message"),
    [([0.5, 0.6, 0.1], "add up to 1"), ([0.5, 0.5], "as many as the settings"), ([1.5, -0.5, 0.0], "shares")],
)
def test_shares_that_cannot_be_are_refused(shares, message):
    every = GoBackN(25, 6, 0.2, FrameErrors([0.01, 0.02, 0.03], 0.5))

    with pytest.raises(ArgumentError, match=message):
        varying_rtt.mixed_rtt_s(every, shares=shares)


def test_a_single_setting_has_no_shares():
    with pytest.raises(ArgumentError, match="none"):
        varying_rtt.mixed_rtt_s(ARQS[0], shares=[1.0])

"""Padhye, Cardwell and Sikdar against simulations of the rounds that they describe."""

from __future__ import annotations

import numpy as np
import pytest

from farlink.models.tcp_latency import cardwell, padhye, sikdar, timeout
from farlink.models.tcp_latency.sikdar.recursion import times_s

LINK = {"rtt_s": 0.5, "timeout_s": 2.0}


def padhye_rounds(loss: float, largest: float, periods: int, *, per_ack: int = 2, seed: int = 1) -> tuple[float, float]:
    """Segments sent and received per second over a number of periods between losses, after section II of Padhye et al."""
    rng = np.random.default_rng(seed)
    sent = arrived = 0
    time, start = 0.0, 1.0
    for _ in range(periods):
        first_lost, before, window = int(rng.geometric(loss)), 0, start
        while before + max(1, int(min(window, largest))) < first_lost:
            before += max(1, int(min(window, largest)))
            time += LINK["rtt_s"]
            window += 1 / per_ack
        # The round with the loss, whose remaining segments are lost too; then a round of the acknowledged number.
        acknowledged = first_lost - before - 1
        sent += before + max(1, int(min(window, largest))) + acknowledged
        time += 2 * LINK["rtt_s"]
        duplicates = min(acknowledged, int(rng.geometric(loss)) - 1)
        arrived += first_lost - 1 + duplicates
        if duplicates < 3:
            count = int(rng.geometric(1 - loss))
            time += float(timeout.sequence_s(count, timeout_s=LINK["timeout_s"]))
            sent, arrived = sent + count, arrived + 1
        start = max(1.0, min(window, largest) / 2)
    return sent / time, arrived / time


@pytest.mark.published("Padhye et al., eq. (32)")
@pytest.mark.parametrize(
    ("loss", "largest", "sent_off", "arrived_off"),
    # Error of the model in per cent, since it uses means of random windows. Two standard errors are 1 to 2 %.
    [
        (1e-3, np.inf, -5, -5),
        (1e-3, 20, 1, 1),
        (5e-3, np.inf, -1, -1),
        (0.01, np.inf, 2, 2),
        (0.01, 20, 2.5, 2.5),
        (0.03, np.inf, 10, 11),
        (0.1, np.inf, 17.5, 21.5),
    ],
)
def test_padhye_is_near_a_simulation_of_its_rounds(loss, largest, sent_off, arrived_off):
    sent, arrived = padhye_rounds(loss, largest, 6000)

    rate = float(padhye.send_rate(loss, window_segments=largest, **LINK))
    assert 100 * (rate / sent - 1) == pytest.approx(sent_off, abs=2.5)
    throughput = float(padhye.throughput(loss, window_segments=largest, **LINK))
    assert 100 * (throughput / arrived - 1) == pytest.approx(arrived_off, abs=2.5)


@pytest.mark.published("Padhye et al., eq. (33)")
@pytest.mark.parametrize(("loss", "within"), [(1e-5, 0.02), (1e-3, 0.02), (0.01, 0.04), (0.03, 0.04)])
def test_the_approximation_is_near_the_full_model(loss, within):
    full, approximate = padhye.send_rate(loss, **LINK), padhye.send_rate_approximate(loss, **LINK)

    assert float(approximate / full) == pytest.approx(1, abs=within)


@pytest.mark.published("Cardwell et al., eqs. (15) and (22)")
def test_cardwell_is_slow_start_for_short_transfers_and_padhye_for_long_ones():
    short = cardwell.transfer_time_s([1, 4, 16], loss_rate=0.0, delayed_ack_s=0.0, **LINK)
    assert short == pytest.approx(cardwell.slow_start_s([1, 4, 16], rtt_s=LINK["rtt_s"]))
    # Rounds of 1, 1.5, 2.25 ... segments.
    assert float(cardwell.slow_start_s(1 + 1.5 + 2.25, rtt_s=LINK["rtt_s"])) == pytest.approx(3 * LINK["rtt_s"])

    for loss, largest in ((1e-3, 30.0), (0.01, np.inf), (0.1, 8.0)):
        long = cardwell.transfer_time_s(1e8, loss_rate=loss, window_segments=largest, **LINK)
        rate = padhye.throughput(loss, window_segments=largest, **LINK)
        assert float(1e8 / long / rate) == pytest.approx(1, rel=1e-3)
    # A lossless transfer longer than slow start continues with the largest window.
    more = cardwell.transfer_time_s([1000, 1020], loss_rate=0.0, window_segments=20, **LINK)
    assert float(more[1] - more[0]) == pytest.approx(LINK["rtt_s"])


@pytest.mark.published("Cardwell et al., eq. (5)")
def test_the_printed_slow_start_counts_a_segment_too_many_without_loss():
    assert float(cardwell.slow_start_segments(10, loss_rate=0.0, as_printed=True)) == 11
    rng = np.random.default_rng(1)
    until = np.minimum(rng.geometric(0.02, 200_000), 60)
    assert float(cardwell.slow_start_segments(60, loss_rate=0.02)) == pytest.approx(until.mean(), rel=0.005)


def sikdar_rounds(segments: int, loss: float, limit: int, variant: str, losses: str, rng: np.random.Generator) -> float:
    """Time of a transfer, round by round."""
    slow = [int(window) for window in sikdar.window_in_round(np.arange(1, 40), is_whole=True)]
    left, time, number, threshold, window, steps = segments, 0.0, 1, limit, 0, 0
    while left > 0:
        if number and slow[number - 1] >= threshold:
            number, window, steps = 0, threshold, 0
        sent = min(slow[number - 1] if number else window, left)
        time += LINK["rtt_s"]
        hit = rng.random(sent) < loss
        if not hit.any():
            left -= sent
            if number:
                number += 1
            else:
                steps += 1
                window, steps = (min(limit, window + 1), 0) if steps == 2 else (window, steps)
            continue
        before = int(np.argmax(hit))
        lost = sent - before if losses == "correlated" else int(hit.sum())
        one = {"sent": sent, "before": before, "lost": lost, "fresh": min(before, left - sent)}
        recovery = sikdar.recover(variant, **{key: np.array([value]) for key, value in one.items()})
        time += LINK["rtt_s"] * int(recovery.rounds[0])
        left -= int(recovery.delivered[0])
        if recovery.has_timeout[0]:
            time += float(timeout.sequence_s(int(rng.geometric(1 - loss)), timeout_s=LINK["timeout_s"]))
        threshold = window = min(limit, int(recovery.next_window[0]))
        number, steps = (int(recovery.first_round[0]) if recovery.is_slow_start[0] else 0), 0
    return time


@pytest.mark.published("Zaghloul, eq. (18), after Sikdar et al.")
@pytest.mark.parametrize(
    ("segments", "loss", "limit", "variant", "losses"),
    [
        (50, 0.03, 20, "reno", "correlated"),
        (120, 0.05, 12, "sack", "independent"),
        (60, 0.02, 30, "tahoe", "correlated"),
        (30, 0.2, 8, "reno", "independent"),
        (20, 0.1, 1, "reno", "correlated"),
    ],
)
def test_the_recursion_matches_the_mean_over_simulated_rounds(segments, loss, limit, variant, losses):
    rng = np.random.default_rng(1)
    times = np.array([sikdar_rounds(segments, loss, limit, variant, losses, rng) for _ in range(1500)])

    setting = {"loss_rate": loss, "window_segments": limit, "variant": variant, "losses": losses, "delayed_ack_s": 0.0}
    exact = sikdar.transfer_time_s(segments, **setting, **LINK)
    assert float(exact) == pytest.approx(times.mean(), abs=3.5 * times.std() / np.sqrt(len(times)))


@pytest.mark.published("Zaghloul, eqs. (21) and (22), after Sikdar et al.")
@pytest.mark.parametrize("variant", ["tahoe", "reno", "sack"])
@pytest.mark.parametrize("losses", ["correlated", "independent"])
def test_no_loss_and_a_single_loss_are_the_limits_of_the_recursion_for_rare_losses(variant, losses):
    rare, wait = 1e-9, 4.0
    exact = times_s(300, loss_rate=rare, rtt_s=1.0, wait_s=wait, limit=40, variant=variant, losses=losses, segments_per_ack=2)
    number = np.arange(1, 301)
    none = sikdar.lossless_rounds(number, window_segments=40)
    assert exact[1:] == pytest.approx(none, rel=1e-4)

    chosen = np.array([1, 2, 3, 7, 20, 50, 122, 123, 300])
    times = {"rtt_s": 1.0, "timeout_s": wait, "window_segments": 40, "variant": variant, "losses": losses}
    single = sikdar.single_loss_s(chosen, loss_rate=0.0, **times)
    slope = (exact[chosen] - (1 - chosen * rare) * none[chosen - 1]) / (chosen * rare)
    assert slope == pytest.approx(single, rel=1e-4)


@pytest.mark.published("Zaghloul, eq. (18), after Sikdar et al.")
@pytest.mark.parametrize("variant", ["tahoe", "reno", "sack"])
@pytest.mark.parametrize(
    ("losses", "loss", "within"),
    [("correlated", 0.001, 0.05), ("correlated", 0.01, 0.13), ("correlated", 0.1, 0.12), ("independent", 0.01, 0.16)],
)
def test_the_equation_is_near_the_recursion(variant, losses, loss, within):
    number = np.array([2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000])
    setting = {"loss_rate": loss, "window_segments": 40, "variant": variant, "losses": losses, **LINK}

    ratio = sikdar.transfer_time_s(number, method="equation", **setting) / sikdar.transfer_time_s(number, **setting)

    assert ratio == pytest.approx(1, abs=within)


@pytest.mark.published("Zaghloul, section 4.2.2: independent losses are more optimistic")
def test_losses_of_whole_rounds_cost_more_than_independent_ones():
    number = np.array([20, 100, 1000])
    for variant in ("tahoe", "reno", "sack"):
        setting = {"loss_rate": 0.02, "window_segments": 40, "variant": variant, **LINK}
        independent = sikdar.transfer_time_s(number, losses="independent", **setting)
        correlated = sikdar.transfer_time_s(number, losses="correlated", **setting)
        assert np.all(independent < correlated)


@pytest.mark.published("Sikdar et al. (2003), abstract")
def test_sack_is_best_with_independent_losses_and_tahoe_with_correlated_ones():
    times = {
        losses: [
            float(sikdar.transfer_time_s(2000, loss_rate=0.01, window_segments=40, variant=variant, losses=losses, **LINK))
            for variant in ("tahoe", "reno", "sack")
        ]
        for losses in ("independent", "correlated")
    }
    tahoe, reno, sack = times["independent"]
    assert sack < reno < tahoe
    tahoe, reno, sack = times["correlated"]
    assert tahoe < sack < reno

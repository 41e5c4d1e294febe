"""Closed forms of retransmission, of bounds and of codes in packets, beside simulation by random numbers."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from farlink.models import aerotp, arq, bounds, packet_fec
from farlink.models.packet_fec import Trailer

LOSS = st.floats(0.001, 0.95)
PACKETS = st.integers(1, 5000)
COPIES = st.integers(1, 8)
LINK = {"rate_bps": 5e6, "delay_s": 10.0, "header_bytes": 40}
FULL = {"packet_bytes": 1500, "header_bytes": 40}


def rounds_of(loss, packets, copies=1, runs=4000, seed=1):
    """Rounds of each packet, a row per run."""
    rng = np.random.default_rng(seed)
    return rng.geometric(1 - loss**copies, size=(runs, packets))


def test_the_worst_of_680_packets_needs_20_3_rounds():
    loss = arq.packet_loss(1e-4, packet_bytes=1500)

    assert float(loss) == pytest.approx(0.6988, abs=1e-4)
    assert float(aerotp.rounds_of_the_worst(loss, packets=680)) == pytest.approx(20.3, abs=0.05)


@pytest.mark.parametrize(
    ("loss", "packets", "copies"), [(0.7, 680, 1), (0.7, 680, 3), (0.1, 50, 1), (0.96, 20, 1), (0.5, 1, 2)]
)
def test_rounds_are_those_of_random_losses(loss, packets, copies):
    worst = rounds_of(loss, packets, copies).max(axis=1)

    error = 4 * worst.std() / math.sqrt(len(worst))
    assert float(aerotp.rounds_of_the_worst(loss, packets=packets, copies=copies)) == pytest.approx(worst.mean(), abs=error)
    for probability in (0.1, 0.5, 0.95):
        rounds = aerotp.rounds_quantile(probability, loss_rate=loss, packets=packets, copies=copies)
        within = aerotp.completed_within(rounds, loss_rate=loss, packets=packets, copies=copies)
        assert float(within) == pytest.approx((worst <= float(rounds)).mean(), abs=0.04)


def test_delays_are_those_of_random_losses():
    rounds = rounds_of(0.6, 300)
    in_order = np.maximum.accumulate(rounds, axis=1)

    arrival = aerotp.arrival_delay_s(0.6, delay_s=10, rtt_s=20)
    ordered = aerotp.in_order_delay_s(0.6, packets=300, delay_s=10, rtt_s=20)
    assert float(arrival) == pytest.approx(10 + 20 * (rounds.mean() - 1), rel=0.01)
    assert float(ordered) == pytest.approx(10 + 20 * (in_order.mean() - 1), rel=0.01)


@given(LOSS, PACKETS, COPIES)
def test_mean_rounds_match_the_distribution(loss, packets, copies):
    rounds = np.arange(200_000 if loss > 0.9 else 20_000)
    missing = 1 - aerotp.completed_within(rounds, loss_rate=loss, packets=packets, copies=copies)

    assert float(aerotp.rounds_of_the_worst(loss, packets=packets, copies=copies)) == pytest.approx(missing.sum(), rel=1e-6)


@given(st.floats(0, 0.999999), LOSS, PACKETS, COPIES)
def test_a_quantile_is_the_first_round_that_suffices(probability, loss, packets, copies):
    rounds = float(aerotp.rounds_quantile(probability, loss_rate=loss, packets=packets, copies=copies))

    within = aerotp.completed_within([rounds - 1, rounds], loss_rate=loss, packets=packets, copies=copies)
    assert within[1] >= probability - 1e-9
    assert within[0] < probability + 1e-9 or rounds == 1


@given(LOSS, st.integers(2, 5000), COPIES)
def test_more_packets_and_fewer_copies_need_more_rounds(loss, packets, copies):
    few, more, copied = (
        float(aerotp.rounds_of_the_worst(loss, packets=n, copies=m))
        for n, m in ((packets - 1, copies), (packets, copies), (packets, copies + 1))
    )
    in_order = float(aerotp.in_order_delay_s(loss, packets=packets, delay_s=0, rtt_s=1, copies=copies))
    arrival = float(aerotp.arrival_delay_s(loss, delay_s=0, rtt_s=1, copies=copies))

    assert few < more + 1e-12
    assert copied < more + 1e-12
    assert arrival - 1e-9 <= in_order <= more - 1 + 1e-9


def test_the_integral_equals_the_sum():
    """At high loss the model replaces the sum by an integral; both agree there."""
    below, above = (float(aerotp.rounds_of_the_worst(math.exp(-decay), packets=680)) for decay in (0.0499999, 0.0500001))

    assert below == pytest.approx(above, rel=1e-5)
    assert below > above


def test_loss_rates_zero_and_one():
    assert float(aerotp.rounds_of_the_worst(0.0, packets=680)) == 1
    assert float(aerotp.rounds_of_the_worst(1.0, packets=680)) == math.inf
    assert float(aerotp.in_order_delay_s(0.0, packets=680, delay_s=10, rtt_s=20)) == 10
    assert float(aerotp.arrival_delay_s(0.0, delay_s=10, rtt_s=20)) == 10
    assert aerotp.completed_within([0, 1], loss_rate=0.0, packets=5).tolist() == [0, 1]
    assert float(bounds.least_bytes(1e6, loss_rate=1.0)) == math.inf


def test_models_broadcast_their_arguments():
    lengths = aerotp.selective_repeat_completion_s(1e6, ber=[[1e-5], [1e-4]], payload_bytes=[100, 500, 1460], **LINK)

    assert lengths.shape == (2, 3)
    assert bounds.packets_arrive([[10], [20]], needed=[1, 2, 3], loss_rate=0.5).shape == (2, 3)
    assert packet_fec.residual_loss([1e-5, 1e-4], Trailer.of(8, **FULL)).shape == (2,)
    assert packet_fec.erasure_loss([0.1, 0.2], source=32, repair=8).shape == (2,)


@given(st.floats(1e-7, 3e-4), st.integers(1, 1460), st.integers(1, 4))
def test_selective_repeat_respects_the_bounds_of_rate_and_delay(ber, payload, copies):
    time_s = float(aerotp.selective_repeat_completion_s(1e6, ber=ber, payload_bytes=payload, copies=copies, **LINK))
    loss = float(arq.packet_loss(ber, packet_bytes=payload + 40))

    assert time_s >= float(bounds.completion_bound_s(1e6, loss_rate=loss, payload_bytes=payload, **LINK)) - 1e-9


def test_the_fastest_packet_length_is_below_that_of_the_highest_goodput():
    quick = aerotp.quickest_payload_bytes(1e6, ber=1e-4, **LINK)
    near = aerotp.quickest_payload_bytes(1e6, ber=1e-4, **(LINK | {"delay_s": 0.0}))

    times = aerotp.selective_repeat_completion_s(1e6, ber=1e-4, payload_bytes=[quick - 5, quick, quick + 5], **LINK)
    assert np.argmin(times) == 1
    # Without delay only the bytes count, which is Epple's equation (11).
    assert near == pytest.approx(float(arq.best_payload_bytes(1e-4, header_bytes=40)), rel=0.05)
    assert quick < near


@given(st.integers(0, 300), LOSS, st.floats(0.01, 0.999))
def test_least_sent_is_the_smallest_sufficient_number(needed, loss, probability):
    sent = bounds.least_sent(needed, loss_rate=loss, probability=probability)

    assert float(bounds.packets_arrive(sent, needed=needed, loss_rate=loss)) >= probability
    if sent > needed:
        assert float(bounds.packets_arrive(sent - 1, needed=needed, loss_rate=loss)) < probability


def test_arrivals_match_simulated_random_losses():
    arrived = np.random.default_rng(1).binomial(400, 0.3, size=200_000)

    for needed in (100, 120, 140):
        assert float(bounds.packets_arrive(400, needed=needed, loss_rate=0.7)) == pytest.approx(
            (arrived >= needed).mean(), abs=0.005
        )
    # A tail far below what sampling finds keeps its digits: 0.5 ** 1000.
    assert float(bounds.packets_arrive(1000, needed=1000, loss_rate=0.5)) == pytest.approx(0.5**1000, rel=1e-9)


def test_one_round_needs_least_sent_and_more_rounds_need_less():
    sent = [bounds.least_mean_sent(rounds, packets=40, loss_rate=0.5, probability=0.99) for rounds in (1, 2, 3, 4)]

    # Sending the last packet with a probability below 1 saves a little against the whole number.
    assert sent[0] == pytest.approx(bounds.least_sent(40, loss_rate=0.5, probability=0.99), rel=0.01)
    assert all(more > less for more, less in itertools.pairwise(sent))
    # No scheme is below the capacity, except by the hundredth of the runs that may fail.
    assert sent[-1] >= 0.99 * 40 / 0.5


def test_no_two_round_scheme_beats_the_bound():
    """Simulate schemes that send a packets, then the missing ones with a margin, for several margins."""
    rng = np.random.default_rng(1)
    runs, packets, loss = 20_000, 40, 0.5
    for first in (70, 80, 90):
        for margin in (1.0, 1.5, 2.0):
            missing = np.maximum(0, packets - rng.binomial(first, 1 - loss, runs))
            second = np.ceil(missing / (1 - loss) + margin * 2 * np.sqrt(missing)).astype(int)
            done = rng.binomial(second, 1 - loss) >= missing
            least = bounds.least_mean_sent(2, packets=packets, loss_rate=loss, probability=float(done.mean()) - 0.005)
            assert first + second.mean() >= least - 0.5


def test_a_quarter_more_than_the_least_completes_a_file_in_one_round():
    loss = float(arq.packet_loss(1e-4, packet_bytes=1500))

    assert bounds.least_rounds(1.25, packets=680, loss_rate=loss, probability=0.999) == 1
    assert float(bounds.packets_arrive(round(1.25 * 680 / (1 - loss)), needed=680, loss_rate=loss)) > 1 - 1e-9


def test_bulk_and_file_bounds_are_consistent():
    """A file that takes the time T by one bound is the amount delivered in T by the other."""
    link = {"loss_rate": 0.3, "payload_bytes": 1460, **LINK}
    time_s = bounds.completion_bound_s(1e8, **link)

    assert float(bounds.bulk_bound_bytes(time_s, **link)) == pytest.approx(1e8)
    assert float(bounds.bulk_bound_bytes(5.0, **link)) == 0


@pytest.mark.parametrize(("words", "printed"), [(4, 0.1), (8, 0.007), (16, 4e-7)])
def test_residual_error_rates_at_ber_1e_4(words, printed):
    trailer = Trailer.of(words, **FULL)

    assert trailer.blocks == 6
    assert float(packet_fec.payload_loss(1e-4, trailer)) == pytest.approx(printed, rel=0.12)


@pytest.mark.parametrize("words", [0, 3, 4, 8, 12])
def test_residual_error_rates_match_simulated_bits(words):
    trailer = Trailer.of(words, **FULL)
    rng = np.random.default_rng(1)
    ber, runs = 3e-4, 40_000

    wrong = [rng.binomial(length, 1 - (1 - ber) ** 8, runs) for length in trailer.lengths]
    lost = np.any(np.array(wrong) > trailer.mends, axis=0)
    assert float(packet_fec.payload_loss(ber, trailer)) == pytest.approx(
        lost.mean(), abs=4 * lost.std() / math.sqrt(runs) + 1e-6
    )


@given(st.integers(0, 256), st.integers(600, 1500), st.integers(20, 60))
def test_a_trailer_fits_the_packet(words, packet, header):
    room = packet - header - 4 - 4 * words
    if room < 1:
        with pytest.raises(ValueError, match="no room"):
            Trailer.of(words, packet_bytes=packet, header_bytes=header)
        return
    trailer = Trailer.of(words, packet_bytes=packet, header_bytes=header)

    assert trailer.payload_bytes == room
    assert sum(trailer.lengths) == trailer.payload_bytes + 4 + trailer.blocks * trailer.parity_bytes
    assert sum(trailer.lengths) <= packet - header
    assert max(trailer.lengths) <= 255
    assert 0 <= 4 * words - trailer.blocks * trailer.parity_bytes < trailer.blocks


@given(st.floats(1e-6, 3e-4), st.floats(1e-9, 0.5))
def test_least_words_is_the_smallest_sufficient_number(ber, residual):
    words = packet_fec.least_words(ber, residual=residual, **FULL)

    assert packet_fec.payload_loss(ber, Trailer.of(words, **FULL)) <= residual
    if words > 0:
        assert packet_fec.payload_loss(ber, Trailer.of(words - 1, **FULL)) > residual


def test_header_errors_remain_whatever_the_code_corrects():
    losses = [float(packet_fec.residual_loss(1e-4, Trailer.of(words, **FULL))) for words in (16, 64, 256)]

    header = float(packet_fec.header_loss(1e-4, Trailer.of(64, **FULL)))
    assert losses == pytest.approx([header] * 3, rel=1e-4)
    assert header == pytest.approx(1 - (1 - 1e-4) ** 320)


def test_erasure_code_losses_match_simulated_groups():
    rng = np.random.default_rng(1)
    loss, source, repair = 0.2, 32, 8
    lost = rng.random((50_000, source + repair)) < loss
    remains = np.where(lost.sum(axis=1) > repair, lost[:, :source].sum(axis=1), 0) / source

    assert float(packet_fec.erasure_loss(loss, source=source, repair=repair)) == pytest.approx(remains.mean(), rel=0.03)
    assert float(packet_fec.erasure_loss(loss, source=source, repair=0)) == pytest.approx(loss)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: aerotp.rounds_of_the_worst(1.1, packets=2), "loss_rate must be from 0 to 1"),
        (lambda: aerotp.rounds_of_the_worst(0.5, packets=0), "packets must be at least 1"),
        (lambda: aerotp.rounds_of_the_worst(0.5, packets=2, copies=0.5), "copies must be at least 1"),
        (lambda: aerotp.rounds_quantile(1.0, loss_rate=0.5, packets=2), "no number of rounds is certain"),
        (lambda: aerotp.quickest_payload_bytes(1e6, ber=1e-4, most_bytes=0, **LINK), "most_bytes"),
        (lambda: bounds.payload_share(0, header_bytes=40), "payload_bytes must be positive"),
        (lambda: bounds.completion_bound_s(1e6, loss_rate=0.5, payload_bytes=1, **(LINK | {"rate_bps": 0})), "rate_bps"),
        (lambda: bounds.least_sent(10, loss_rate=1.0, probability=0.5), "no number of packets is certain"),
        (lambda: bounds.least_mean_sent(0, packets=10, loss_rate=0.5, probability=0.5), "rounds must be at least 1"),
        (lambda: bounds.least_mean_sent(1, packets=5000, loss_rate=0.5, probability=0.5), "from 1 to 2000"),
        (lambda: bounds.least_rounds(0.5, packets=40, loss_rate=0.5), "budget must be at least 1, not 0.5"),
        (lambda: bounds.least_rounds(1.001, packets=10, loss_rate=0.5, most_rounds=2), "more than 2 rounds"),
        (lambda: Trailer.of(257, **FULL), "from 0 to 256"),
        (lambda: packet_fec.payload_loss(-0.1, Trailer.of(4, **FULL)), "from 0 to 1"),
        (lambda: packet_fec.least_words(0.3, residual=1e-9, **FULL), "leave more than"),
        (lambda: packet_fec.erasure_loss(0.5, source=0, repair=1), "source must be at least 1"),
    ],
)
def test_models_refuse_impossible_values(call, words):
    with pytest.raises(ValueError, match=words):
        call()


def test_the_shortest_packet_has_one_byte_of_payload():
    assert Trailer.of(8, packet_bytes=57, header_bytes=20).payload_bytes == 1
    with pytest.raises(ValueError, match="8 words of parity leave no room for payload in 56 bytes"):
        Trailer.of(8, packet_bytes=56, header_bytes=20)

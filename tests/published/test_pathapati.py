"""Pathapati et al., with few short runs: the paper's statements on AeroTP, UDP and TCP, and extensions."""

from __future__ import annotations

import math

import pytest

from farlink import papers
from farlink.models import arq, packet_fec
from farlink.models.aerotp import arrival_delay_s, in_order_delay_s, rounds_of_the_worst
from farlink.papers.check import Verdict, claim
from farlink.papers.estimate import ratio
from farlink.papers.item import Workbench
from farlink.papers.pathapati import erasure
from farlink.papers.pathapati.acknowledgements import BACK, acknowledgement_curves
from farlink.papers.pathapati.bulk import file_shares, shares
from farlink.papers.pathapati.comparison import (
    NAMES,
    QUASI,
    RELIABLE,
    TCP,
    UDP,
)
from farlink.papers.pathapati.fec import STRENGTHS, name_of
from farlink.papers.pathapati.gateways import RELIABLE as SPLIT
from farlink.papers.pathapati.gateways import gateway_curves
from farlink.papers.pathapati.measures import (
    DELAY,
    DELIVERED,
    GOODPUT,
    IN_ORDER_DELAY,
    OVERHEAD,
    measured,
    value,
)
from farlink.papers.pathapati.path import (
    CBR_BPS,
    FILE_BYTES,
    PACKET_BYTES,
    RATE_BPS,
    WORST_BER,
    message_bytes,
    quasi_reliable,
    reliable,
    scenario,
    tcp,
    trailer,
    udp,
)
from farlink.papers.pathapati.round_trips import LOSS, transfers
from farlink.papers.pathapati.waiting import delays_from_application

PAPER = papers.load("pathapati")
RUNS = 8


def needs(key):
    """Skip an item that cannot be computed, with its reason."""
    return pytest.mark.skipif(bool(PAPER.item(key).not_yet), reason=f"{key}: {PAPER.item(key).not_yet}")


@pytest.fixture(scope="module")
def bench() -> Workbench:
    return Workbench(runs=RUNS)


@pytest.fixture(scope="module")
def strengths(bench):
    """All strengths, without errors and at the highest bit error rate."""
    transports = {name_of(words): quasi_reliable(words) for words in STRENGTHS}
    result = bench.run("strengths", scenario("strengths", transports, bers=(0.0, WORST_BER)))
    return measured(result, transports, GOODPUT, DELAY, DELIVERED, OVERHEAD)


@pytest.fixture(scope="module")
def compared(bench):
    transports = {
        RELIABLE: reliable(),
        QUASI: quasi_reliable(96),
        UDP: udp(),
        TCP: tcp(),
    }
    result = bench.run("compared", scenario("compared", transports, bers=(0.0, 3.5e-5, WORST_BER)))
    return measured(result, transports, GOODPUT, DELAY, IN_ORDER_DELAY, DELIVERED, OVERHEAD)


def over_error_free(curves, name, measure):
    return ratio(value(curves, name, measure, WORST_BER), value(curves, name, measure, 0.0))


@pytest.mark.published("Pathapati, section IV: 4.416 Mb/s, 1500 B")
def test_messages_fill_packets_at_the_printed_rate():
    assert message_bytes(udp()) * 8 * 375 == CBR_BPS
    assert trailer().payload_bytes + 48 == PACKET_BYTES
    for words in STRENGTHS:
        cut = trailer(words)
        assert cut.payload_bytes + cut.check_bytes + cut.header_bytes + 4 * words == PACKET_BYTES


@pytest.mark.published("Pathapati, figure 8: overhead is not affected by the error rate")
@pytest.mark.parametrize("words", STRENGTHS)
def test_packet_lengths_follow_the_arithmetic(strengths, words):
    payload = trailer(words).payload_bytes
    expected = FILE_BYTES * (PACKET_BYTES - payload) / payload / 1e6

    for ber in (0.0, WORST_BER):
        assert value(strengths, name_of(words), OVERHEAD, ber).mean == pytest.approx(expected, rel=0.02)


@pytest.mark.published("Pathapati, figure 11: 96 words correct all errors; figure 7: weaker codes do not")
@pytest.mark.parametrize("words", STRENGTHS)
def test_losses_are_header_errors_and_uncorrected_payloads(strengths, words):
    delivered = value(strengths, name_of(words), DELIVERED, WORST_BER)

    # Ours corrects all payloads from 12 words up; headers are not protected.
    expected = 1 - float(packet_fec.residual_loss(WORST_BER, trailer(words)))
    assert abs(delivered.mean - expected) < 2 * delivered.half_width + 0.002
    assert value(strengths, name_of(words), DELIVERED, 0.0).mean == 1


@needs("erasure-codes")
@pytest.mark.published("Pathapati, section II.B: open-loop error recovery mechanisms such as FEC and erasure coding")
def test_a_code_across_packets_recovers_packets_with_bad_headers():
    curves = erasure.erasure_curves(Workbench(runs=RUNS), bers=(WORST_BER,))

    for repair in erasure.REPAIRS:
        delivered = value(curves, erasure.name_of(repair), DELIVERED, WORST_BER)
        assert abs(delivered.mean - erasure.expected(repair)) < 2 * delivered.half_width + 0.002
    assert value(curves, erasure.name_of(8), DELIVERED, WORST_BER).mean > 0.999


@pytest.mark.published("Pathapati, figure 11: 96 words")
def test_twelve_parity_words_correct_all_payloads():
    packets = 20 * FILE_BYTES / trailer(16).payload_bytes

    words = packet_fec.least_words(WORST_BER, residual=0.5 / packets, packet_bytes=PACKET_BYTES, header_bytes=48)
    assert words == 12


@pytest.mark.published("Pathapati, figure 6: latency is not affected by packet errors; link saturation adds queueing")
def test_only_saturation_adds_delay(strengths):
    for words in STRENGTHS:
        assert over_error_free(strengths, name_of(words), DELAY).mean == pytest.approx(1, abs=0.005)
        load = CBR_BPS / RATE_BPS * PACKET_BYTES / trailer(words).payload_bytes
        delay = value(strengths, name_of(words), DELAY, 0.0).mean
        # The last packet waits for the whole backlog of the link; the average packet for half of that.
        waits = max(0.0, 8 * FILE_BYTES / CBR_BPS * (load - 1)) / 2
        assert delay == pytest.approx(10 + waits, abs=0.02)
    assert value(strengths, name_of(256), DELAY, 0.0).mean > 11.5


@pytest.mark.published("Pathapati, section IV.G: AeroTP's delay increases less than 1 order of magnitude")
def test_arrivals_are_late_by_less_than_ten_times_and_deliveries_by_more(compared):
    arrival, in_order = (value(compared, RELIABLE, measure, WORST_BER) for measure in (DELAY, IN_ORDER_DELAY))

    packets = math.ceil(FILE_BYTES / message_bytes(reliable()))
    assert arrival.mean == pytest.approx(float(arrival_delay_s(LOSS, delay_s=10, rtt_s=20)), rel=0.05)
    ideal = float(in_order_delay_s(LOSS, packets=packets, delay_s=10, rtt_s=20))
    assert abs(in_order.mean - ideal) < 2 * in_order.half_width + 0.02 * ideal
    assert claim(over_error_free(compared, RELIABLE, DELAY), at_most=10) is Verdict.AGREES
    assert claim(over_error_free(compared, RELIABLE, IN_ORDER_DELAY), at_most=10) is Verdict.DIFFERS


@pytest.mark.published("Pathapati, section IV.G: TCP's end-to-end delay increases by 3 orders of magnitude")
def test_tcp_waits_for_hours(bench, compared):
    delays = dict(delays_from_application(bench, "compared", TCP))

    assert 10**2.5 < delays[WORST_BER].mean / 10 < 10**3.5
    assert value(compared, RELIABLE, GOODPUT, WORST_BER).mean > 100 * value(compared, TCP, GOODPUT, WORST_BER).mean


@pytest.mark.published("Pathapati, figure 15: TCP delivers all up to a BER of 0.000035, AeroTP nearly all at 1e-4")
def test_delivered_share_of_each_protocol(compared):
    assert value(compared, TCP, DELIVERED, 3.5e-5).mean > 0.98
    assert value(compared, TCP, DELIVERED, WORST_BER).mean < 0.5
    assert value(compared, RELIABLE, DELIVERED, WORST_BER).mean == 1
    assert value(compared, UDP, DELIVERED, WORST_BER).mean == pytest.approx(1 - 0.699, abs=0.02)
    assert value(compared, QUASI, DELIVERED, WORST_BER).mean > 0.95
    assert set(NAMES) == {RELIABLE, QUASI, UDP, TCP}


@pytest.mark.published("Pathapati, figure 16: much lower overhead than TCP")
def test_overhead_is_not_much_lower_than_that_of_tcp(compared):
    each = [
        ratio(*(value(compared, name, measure, WORST_BER) for measure in (OVERHEAD, DELIVERED))) for name in (RELIABLE, TCP)
    ]

    assert claim(ratio(*each), at_least=0.7, at_most=1.2) is Verdict.AGREES


@pytest.mark.published("Pathapati, section IV.E: the number of aggregated ACKs has a negligible effect")
def test_aggregation_of_acknowledgements_is_negligible():
    curves = acknowledgement_curves(Workbench(runs=60), bers=(WORST_BER,))

    assert ratio(*(value(curves, name, GOODPUT, WORST_BER) for name in ("macks-64", "macks-1"))).mean == pytest.approx(
        1, abs=0.1
    )
    assert ratio(*(value(curves, name, BACK, WORST_BER) for name in ("macks-64", "macks-1"))).high < 0.5


def test_round_trips_are_those_of_the_worst_packet():
    found = transfers(Workbench(runs=40), {f"copies-{copies}": reliable(copies=copies) for copies in (1, 4)})
    packets = math.ceil(FILE_BYTES / message_bytes(reliable()))

    assert float(arq.packet_loss(WORST_BER, packet_bytes=PACKET_BYTES)) == LOSS
    for copies, least in ((1, 18), (4, 4.5)):
        bound = float(rounds_of_the_worst(LOSS, packets=packets, copies=copies))
        rounds = found[f"copies-{copies}"].rounds
        assert abs(rounds.mean - bound) < 2 * rounds.half_width + 0.5
        assert rounds.mean > least
    assert found["copies-4"].rounds.high < 8


@needs("few-round-trips")
def test_few_rounds_with_adaptive_length_and_with_repair_symbols():
    found = transfers(Workbench(runs=20), {"adaptive": reliable(adaptive_length={}), "coded": reliable(coded={})})

    assert found["adaptive"].rounds.mean <= 8
    assert found["coded"].rounds.mean <= 4
    assert found["coded"].relative_bytes(FILE_BYTES, LOSS).mean <= 1.25


@pytest.mark.parametrize("delay_s", [0.05, 0.5])
def test_bulk_transfer_near_the_bound_of_any_scheme(delay_s):
    for loss, share in shares(Workbench(runs=1), delay_s, (0.0, 0.1, 0.3), duration_s=400):
        assert share.mean >= 0.97, f"loss {loss}"
        # Losses are random: a lucky run is little above the mean of the bound.
        assert share.mean <= 1.005, f"loss {loss}"


def test_a_long_file_ends_near_the_bound_of_any_scheme():
    ((_, share),) = file_shares(Workbench(runs=1), 0.05, (0.1,))

    assert 0.97 <= share.mean <= 1.005


@needs("gateways")
@pytest.mark.published("Pathapati, section II.B: smooth interoperability with TCP at the gateways")
def test_tcp_over_gateways_is_as_good_as_aerotp_end_to_end():
    direct, split = gateway_curves(Workbench(runs=4), bers=(WORST_BER,))

    both = [value(curves, SPLIT, GOODPUT, WORST_BER).mean for curves in (split, direct)]
    assert both[0] == pytest.approx(both[1], rel=0.02)
    assert both[0] != both[1]
    assert value(split, SPLIT, DELIVERED, WORST_BER).mean == 1

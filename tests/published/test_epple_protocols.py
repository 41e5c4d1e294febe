"""The protocols of Epple's abstract over the four channels, in short runs on synthetic traces."""

from __future__ import annotations

import math

import pytest

from farlink import engines, papers
from farlink.papers.check import Verdict, claim
from farlink.papers.epple.fading import STAND_IN
from farlink.papers.epple.intervals import interval, paired
from farlink.papers.epple.printed import PLACES
from farlink.papers.epple.protocols import PAYLOAD_BYTES, parity_bytes, protocols, queue_packets, round_trip_packets
from farlink.papers.epple.setting import PAPER_SETTING, Setting
from farlink.papers.item import Item, Outcome, Workbench
from farlink.scenario import from_data

PAPER = papers.load("epple")
# A tenth of the rate: the same channels for a tenth of the packets.
SLOWER = Setting(rate_bps=62.2e6)


@pytest.fixture(scope="module")
def outcome() -> Outcome:
    item = PAPER.item("protocols")
    bench = Workbench(quick=True, runs=2)
    (found,) = bench.outcomes([Item(item.key, item.title, 1, lambda bench: item.compute(bench, SLOWER))])
    return found


def goodput(outcome: Outcome, protocol: str, place: str) -> float:
    (drawing,) = outcome.drawings
    head, *rows = drawing.table
    (row,) = (row for row in rows if row[0] == protocol)
    return float(row[head.index(place)].split()[0])


@pytest.mark.published("Epple, abstract: UDP, TCP, ARQ and SCPS-TP; section 4: the four channels")
def test_every_protocol_has_a_goodput_at_every_place(outcome):
    (drawing,) = outcome.drawings
    head, *rows = drawing.table

    assert head == ("protocol", *PLACES)
    assert [row[0] for row in rows] == [one.words for one in protocols(SLOWER, "KIODO").values()]
    for row in rows:
        for place in PLACES:
            assert 0 < goodput(outcome, row[0], place) < PAYLOAD_BYTES / (PAYLOAD_BYTES + 8)
    unreliable = [one.words for one in protocols(SLOWER, "KIODO").values() if not one.is_reliable]
    assert {row[0] for row in rows if "lost" in row[-1]} <= set(unreliable)


def test_what_a_link_leaves_bounds_each_protocol(outcome):
    for place in PLACES:
        ours = {row[0]: goodput(outcome, row[0], place) for row in outcome.drawings[0].table[1:]}
        assert ours["UDP"] == max(ours.values())
        assert ours["selective repeat"] >= ours["TCP of RFC 793 (go-back-N)"] - 1e-3
        assert ours["SCPS-TP, every packet twice"] < 0.51 * ours["SCPS-TP, no congestion control"]
        assert ours["UDP, every packet twice"] < 0.51 * ours["UDP"]
        assert ours["hybrid ARQ, type I"] < 1000 / (1000 + 20 + 80) + 1e-4
        assert ours["hybrid ARQ, type II"] >= ours["hybrid ARQ, type I"]


@pytest.mark.published("Epple, section 3.2: stop-and-wait is very inefficient; 3.1: sending every packet n times is")
def test_claims_that_need_no_long_run_hold(outcome):
    verdicts = {check.cell: check.verdict for check in outcome.checks}

    for cell, verdict in verdicts.items():
        if "sent twice over that" in cell or "UDP with a code in every packet over that without" in cell:
            assert verdict is Verdict.AGREES, cell
    assert verdicts[f"KIODO ({STAND_IN}): goodput of stop-and-wait over that of selective repeat"] is Verdict.AGREES
    assert len(verdicts) == len(outcome.checks) == 12 * len(PLACES)
    assert all(STAND_IN in check.note for check in outcome.checks)


def test_parity_is_that_of_the_engine():
    """The stream of UDP is as fast as the link carries it with its parity: not faster, and not slower by more than a bit."""
    every = protocols(PAPER_SETTING, "Testbed")
    scenario = {
        "duration_s": 0.05,
        "seed": 1,
        "link": {"rate_bps": PAPER_SETTING.rate_bps, "delay_s": 1e-6, "queue_packets": 3},
        "transport": {"code": every["udp-code"].table},
        "flow": {"f": {"transport": "code", "traffic": every["udp-code"].traffic}},
    }
    rows = engines.run(from_data({**scenario, "runs": 1}), threads=1).rows
    packet = 1000 + 8 + parity_bytes(1008)
    assert rows["loss_fraction"][0] == 0
    assert rows["goodput_fraction"][0] == pytest.approx(1000 / packet, rel=1e-3)
    assert rows["sent_bytes"][0] / rows["goodput_bps"][0] / 0.05 * 8 == pytest.approx(packet / 1000, rel=1e-3)


@pytest.mark.parametrize("place", PLACES)
def test_windows_and_queues_hold_a_round_trip(place):
    packets = PAPER_SETTING.rtt_s(place) * PAPER_SETTING.rate_bps / 8 / 1020

    assert packets + 1 <= round_trip_packets(PAPER_SETTING, place) <= math.ceil(packets) + 3
    assert queue_packets(PAPER_SETTING, place) == max(100, round_trip_packets(PAPER_SETTING, place))
    for one in protocols(PAPER_SETTING, place).values():
        assert one.table.get("window_frames", 10**9) > packets


def test_a_second_copy_arrives_where_the_first_is_lost(outcome):
    for place in PLACES:
        (gain,) = (
            check for check in outcome.checks if place in check.cell and "less that with every packet sent once" in check.cell
        )
        assert gain.value.mean < 0


def test_a_quotient_by_nothing_is_unknown_and_undecided():
    """A protocol may get nothing through: the others' goodput over it is no number."""
    share = paired([0.5, 0.6], [0.0, 0.3])

    assert math.isnan(share.mean)
    assert claim(share, at_least=0.0) is Verdict.UNDECIDED
    assert interval([0.5, 0.6]).mean == pytest.approx(0.55)

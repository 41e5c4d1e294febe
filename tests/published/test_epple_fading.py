"""Epple's rows with fading, in short runs on synthetic traces: possible meanings of the printed numbers, dependence of ours."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from farlink import _core, papers
from farlink.papers.check import Verdict
from farlink.papers.epple.fading import STAND_IN, Fading, ber_for_loss, clear, mean_loss, over_fading, short_term_ber, trace
from farlink.papers.epple.findings import _away_from_one
from farlink.papers.epple.printed import PLACES, rows
from farlink.papers.epple.scenarios import transport
from farlink.papers.epple.setting import PAPER_SETTING, Setting
from farlink.papers.epple.table_1_fading import fadings, printed_loss
from farlink.papers.epple.timers import AGGRESSIVE, SR_TIMER, TCP_TIMER
from farlink.papers.estimate import Estimate
from farlink.papers.item import Workbench

PAPER = papers.load("epple")
BENCH = Workbench(quick=True)


@pytest.mark.published("Epple, section 2.3: a Long-Term BER of 1e-6; table 1, back channel")
@pytest.mark.parametrize("row", rows(*PLACES), ids=str)
def test_no_channel_of_mean_ber_1e_6_loses_as_much_as_printed(row):
    """A packet is lost with at most the sum of its bits' error probabilities."""
    most = 8 * (row.payload_bytes + 20) * 1e-6

    assert most < 0.0122
    assert printed_loss(row.scenario, row.payload_bytes) > 2 * most
    assert printed_loss(row.scenario, row.payload_bytes, "sr") > 2 * most


@given(st.lists(st.floats(0, 0.5), min_size=1, max_size=50), st.integers(1, 2000))
def test_fading_never_loses_more_than_its_mean_allows(bers, packet_bytes):
    series = np.array(bers)
    loss = mean_loss(series, packet_bytes)

    assert loss <= 8 * packet_bytes * series.mean() + 1e-12
    # Jensen's inequality: a varying error rate delivers more packets than a constant one of the same mean.
    assert loss <= mean_loss(np.array([series.mean()]), packet_bytes) + 1e-12


@pytest.mark.parametrize("place", PLACES)
def test_traces_are_scaled_to_the_long_term_rate_with_blockages_cut(place):
    power = trace(Fading(place, duration_s=10).texts(BENCH, PAPER_SETTING, 1)[0])

    ber = short_term_ber(power, 1e-6)
    assert power.meta["synthetic"] is True
    assert ber[clear(power)].mean() == pytest.approx(1e-6, rel=1e-6)
    if not clear(power).all():
        assert ber[~clear(power)].mean() > 0.1


def test_a_loss_gives_its_long_term_rate():
    power = trace(Fading("FASOLT", duration_s=5).texts(BENCH, PAPER_SETTING, 1)[0])
    ber = ber_for_loss(power, 1020, 0.2)

    assert mean_loss(short_term_ber(power, ber), 1020) == pytest.approx(0.2, rel=1e-3)


def goodputs(
    setting: Setting = PAPER_SETTING, seed: int = 1, place: str = "Testbed", payload: int = 1000
) -> dict[str, list[float]]:
    bench = Workbench(quick=True, seed=seed)
    tables = {
        "tcp": transport(setting, place, payload, "tcp", TCP_TIMER),
        "sr": transport(setting, place, payload, "sr", SR_TIMER),
    }
    found = over_fading(bench, setting, Fading(place, duration_s=1), tables, use="test", count=2)
    return {name: one.goodput for name, one in found.items()}


@pytest.fixture(scope="module")
def usual() -> dict[str, list[float]]:
    return goodputs()


def test_cells_over_fading_follow_ber_distance_length_and_seed(usual):
    farther = Setting(distances_m={place: 10 * distance for place, distance in PAPER_SETTING.distances_m.items()})
    others = [
        goodputs(Setting(ber=1e-4)),
        goodputs(farther),
        goodputs(payload=1500),
        goodputs(seed=2),
    ]

    for other in others:
        assert other["tcp"] != usual["tcp"]
        assert other["sr"] != usual["sr"]
    assert max(others[0]["tcp"]) < min(usual["tcp"])
    assert goodputs() == usual


@pytest.mark.published("Epple, conclusion: AWGN gives the upper bound; not for ideal selective repeat at equal long-term BER")
def test_ideal_selective_repeat_exceeds_its_equation_over_fading():
    setting = Setting(ber=1e-5)
    tables = {"ideal": transport(setting, "Testbed", 1500, "sr", SR_TIMER, blocks=None)}

    (found,) = over_fading(
        BENCH, setting, Fading("Testbed", duration_s=2), tables, use="test", count=3, is_return_clear=True
    ).values()
    equation = setting.goodput("Testbed", 1500, "sr", counted="packet")
    assert min(found.goodput) > 1.02 * equation


@pytest.mark.published("Epple, section 2.3: the rising edge of KIODO's pass, tracking problems at around 30, 60 and 90 seconds")
def test_kiodo_has_its_whole_pass():
    light = fadings(Workbench())["KIODO"]
    power = trace(light.texts(Workbench(), PAPER_SETTING, 1)[0])
    blocked = np.flatnonzero(np.diff(clear(power).astype(int)) < 0) / 1e4
    _, range_m = _core.circular_pass(np.array([0.0, light.duration_s]), 610e3, 90.0, 5.0, True)

    assert blocked == pytest.approx([30, 60, 90], abs=1.1)
    assert 1 - range_m[1] / range_m[0] == pytest.approx(0.29, abs=0.005)
    assert light.delay(PAPER_SETTING)["direction"] == "rising"
    # In a hurry, and in all other tests, two seconds.
    assert fadings(BENCH)["KIODO"].duration_s == 2
    assert {fadings(Workbench())[place].duration_s for place in PLACES[:3]} == {8}


def test_losses_of_tracking_cost_goodput_over_the_whole_pass():
    """At a tenth of the rate; `make papers` has all of it."""
    setting = Setting(rate_bps=62.2e6)
    tables = {
        "tcp": transport(setting, "KIODO", 1000, "tcp", TCP_TIMER),
        "sr": transport(setting, "KIODO", 1000, "sr", SR_TIMER),
    }
    whole, unblocked = (
        over_fading(BENCH, setting, Fading("KIODO", duration_s=100, changes=changes), tables, use="test", count=1)
        for changes in ({}, {"tracking_loss_every_s": 0})
    )

    for name in tables:
        # Three losses of a tenth of a second, and the wait after each.
        assert 0.001 < 1 - whole[name].goodput[0] / unblocked[name].goodput[0] < 0.02


@pytest.mark.published("Epple, section 4.1.1: ATENAA, where the motion of the aircraft simulator causes small jitter")
def test_a_vehicle_that_drives_changes_little_and_timestamps_cost_their_header():
    found = {}
    for is_moving in (False, True):
        light = Fading("ATENAA", duration_s=3, is_moving=is_moving, changes={"clear_mean_s": 0})
        tables = {
            str(stamped): transport(PAPER_SETTING, "ATENAA", 1000, "tcp", AGGRESSIVE, timestamps=stamped)
            for stamped in (False, True)
        }
        found[is_moving] = over_fading(BENCH, PAPER_SETTING, light, tables, use="test", count=2)
        ratio = sum(found[is_moving]["True"].goodput) / sum(found[is_moving]["False"].goodput)
        assert ratio == pytest.approx(1020 / 1030, rel=1e-3)
    assert found[True]["False"].goodput != found[False]["False"].goodput
    assert found[True]["False"].goodput == pytest.approx(found[False]["False"].goodput, rel=1e-3)
    # The middle of the stretch is as far away as the standing vehicle.
    drive = trace(Fading("ATENAA", duration_s=100, is_moving=True).drives(BENCH, PAPER_SETTING, 1)[0])
    assert drive["delay_s"].mean() == pytest.approx(PAPER_SETTING.delay_s("ATENAA"), rel=1e-3)
    assert np.ptp(drive["delay_s"]) == pytest.approx(50 * 20 / 3.6 / 299_792_458, rel=1e-3)


@pytest.mark.published("Epple, section 4.1.1: timestamps help an aggressive timer on the reversed pass only")
def test_timestamps_help_an_aggressive_timer_on_the_reversed_pass():
    def gain(direction: str, timer) -> float:
        light = Fading("KIODO", direction, 6, {"tracking_loss_every_s": 0})
        tables = {
            str(stamped): transport(PAPER_SETTING, "KIODO", 1500, "tcp", timer, timestamps=stamped) for stamped in (False, True)
        }
        found = over_fading(BENCH, PAPER_SETTING, light, tables, use="test", count=2)
        return sum(found["True"].goodput) / sum(found["False"].goodput)

    assert gain("falling", AGGRESSIVE) > 1.2
    assert gain("rising", AGGRESSIVE) < 1.0
    assert gain("falling", TCP_TIMER) < 1.0


def test_a_ratio_differs_from_one_on_either_side():
    assert _away_from_one(Estimate(1.3, 0.1)) is Verdict.AGREES
    assert _away_from_one(Estimate(0.8, 0.05)) is Verdict.AGREES
    assert _away_from_one(Estimate(1.0, 0.05)) is Verdict.DIFFERS
    assert _away_from_one(Estimate(1.1, 0.05)) is Verdict.UNDECIDED


@pytest.mark.parametrize("key", ["figure-1", "table-1-fading", "awgn-bound"])
def test_synthetic_results_are_labelled(key):
    (outcome,) = Workbench(quick=True, runs=2).outcomes([PAPER.item(key)])

    assert "synthetic" in outcome.item.title
    for check in outcome.checks:
        assert STAND_IN in check.cell
        assert STAND_IN in check.note
    for drawing in outcome.drawings:
        assert STAND_IN in drawing.caption

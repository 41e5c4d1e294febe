"""Brodbekier et al. with few runs, which are enough to confirm the paper's statements."""

from __future__ import annotations

import pytest

from farlink import papers
from farlink.papers.brodbekier.figure_5 import figure_5_curves
from farlink.papers.brodbekier.figure_6 import figure_6_curves
from farlink.papers.brodbekier.sscop_formats import sscop, sscop_formats
from farlink.papers.brodbekier.table_1 import ROWS, misfit
from farlink.papers.check import Verdict, claim
from farlink.papers.estimate import Estimate, ratio
from farlink.papers.item import Outcome, Workbench

PAPER = papers.load("brodbekier")


@pytest.fixture(scope="module")
def figure_2() -> Outcome:
    return computed("figure-2")


def computed(key: str) -> Outcome:
    (outcome,) = Workbench(quick=True).outcomes([PAPER.item(key)])
    return outcome


def checks_of(outcome: Outcome, words: str) -> list:
    found = [check for check in outcome.checks if words in check.cell]
    assert found
    return found


@pytest.mark.published("Brodbekier, figure 2: throughput reducing to half when BER is around 1e-7")
def test_throughput_is_half_around_1e_7(figure_2):
    checks = checks_of(figure_2, "the throughput is half")

    assert len(checks) == 4
    for check in checks:
        assert check.verdict is Verdict.AGREES, check
        assert 0.5e-7 < check.value.mean < 2e-7


@pytest.mark.published("Brodbekier, figure 2: errors affect the performance for BER values above 1e-8")
def test_throughput_falls_above_1e_8(figure_2):
    for check in checks_of(figure_2, "a tenth") + checks_of(figure_2, "share of the error-free"):
        assert check.verdict is Verdict.AGREES, check


@pytest.mark.published("Brodbekier, figure 2: except for TCP Tahoe which performs lightly worse")
def test_tahoe_is_slightly_worse(figure_2):
    for check in checks_of(figure_2, "Tahoe over the mean"):
        assert 0.8 < check.value.mean < 1
        assert check.value.high < 1, check


@pytest.mark.published("Brodbekier, section III: without rate control, STP is very similar to the TCP standard mechanism")
def test_stp_without_rate_control_is_similar_to_tcp(figure_2):
    for check in checks_of(figure_2, "STP without rate control"):
        assert 1 / 1.5 < check.value.mean < 1.5, check


@pytest.mark.published("Brodbekier, section V: a packet loss rate of 0.45 at BER 1e-4")
def test_packet_loss_of_0_45_is_a_misprint():
    checks = computed("equation-1").checks

    assert [check.engine for check in checks] == ["model", "packet"]
    for check in checks:
        assert check.value.mean == pytest.approx(0.5507, abs=0.003)
        assert check.verdict is Verdict.MISPRINT


@pytest.mark.published("Brodbekier, figures 3 and 6: bursts help plain packets and hurt packets that mend one bit")
def test_bursts_help_uncoded_packets_and_hurt_corrected_ones():
    lines = figure_6_curves(Workbench(quick=True), bers=(1e-6,))
    at = {key: points[0][1] for key, points in lines.items()}

    assert 0.7e-6 < lines["sack", "bursts"][0][0] < 1.4e-6
    # At 1e-6 TCP has lost most of the link and windowed STP a quarter of it, so bursts can change less.
    bounds = {"tahoe": (1.2, 1.5, 0.8), "sack": (1.2, 1.5, 0.8), "stp-window": (1.1, 1.2, 0.95)}
    for version, (helped, mending_helps, hurt) in bounds.items():
        mended = f"{version}-mended"
        assert claim(ratio(at[version, "bursts"], at[version, "independent"]), at_least=helped) is Verdict.AGREES
        assert claim(ratio(at[mended, "independent"], at[version, "independent"]), at_least=mending_helps) is Verdict.AGREES
        assert claim(ratio(at[mended, "bursts"], at[mended, "independent"]), at_most=hurt) is Verdict.AGREES


@pytest.mark.published("Brodbekier, figure 5: STP largely outperforms the other protocols; 14 % at BER 1e-4 is not reached")
def test_rate_based_stp_delivers_all_intact_packets():
    lines = figure_5_curves(Workbench(quick=True), bers=(1e-6, 1e-4))
    at = {key: [point for _, point in points] for key, points in lines.items()}

    for errors in ("independent", "bursts"):
        for version in ("tahoe", "sack"):
            assert claim(ratio(at["stp", errors][0], at[version, errors][0]), at_least=2) is Verdict.AGREES
    # The rate times the packets that survive, at the bit error rate that was measured; POLLs take half a percent.
    ber = lines["stp", "independent"][1][0]
    assert at["stp", "independent"][1].mean == pytest.approx(0.96 * (1 - ber) ** 8000, rel=0.03)
    # Table II's window comes near the printed number.
    assert 0.1 < at["stp-window", "independent"][1].mean < 0.2


def test_the_best_fitting_definition_is_chosen_over_the_whole_table():
    good = {row: Estimate(float(row.printed)) for row in ROWS}
    one_off = good | {ROWS[-1]: Estimate(8.0)}
    unknown = good | {ROWS[0]: Estimate(float("nan"))}

    assert misfit(good) == 0
    assert 0 < misfit(one_off) < misfit(unknown)


def test_recorded_scenarios_can_be_run_again(figure_2):
    import tomllib

    from farlink import engines, scenario

    (kept,) = figure_2.scenarios.values()
    again = scenario.from_data(tomllib.loads(kept.to_toml()))

    assert again.points() == kept.points()
    assert engines.run(again, set={"duration_s": 10}, runs=1).finished_runs == len(kept.points())


def test_packets_of_sscop_s_lengths_change_little():
    checks = sscop_formats(Workbench(quick=True))

    assert [check.verdict for check in checks] == [Verdict.AGREES] * 3
    table = sscop()
    assert table["segment_bytes"] + table["header_bytes"] == 1000
    assert table["header_bytes"] < table["poll_bytes"] < table["stat_bytes"]

"""Packet lengths that follow the short-term bit error rate, in short runs over synthetic fading."""

from __future__ import annotations

import math

import pytest

from farlink import papers
from farlink.papers.epple import adaptive
from farlink.papers.epple.adaptive import HEADER_BYTES, LENGTHS_BYTES, RULES, SHORTEST_BYTES, Gains, gains, transport
from farlink.papers.epple.adaptive_search import TRAINING_TRACES, Training, bent_rules, best, gain_over_best_fixed, grid
from farlink.papers.epple.fading import Fading
from farlink.papers.epple.measured_ber import rules
from farlink.papers.epple.setting import PAPER_SETTING
from farlink.papers.item import Workbench
from farlink.scenario import from_data

PAPER = papers.load("epple")


@pytest.fixture(scope="module")
def found() -> Gains:
    return gains(Workbench(quick=True, runs=2), PAPER_SETTING, "Testbed", "sr", 1e-5)


def test_a_genie_with_equation_11_beats_every_fixed_length(found):
    """Over a short link with selective repeat, equation (11) gives the best length, as claimed."""
    for goodput in found.fixed.values():
        assert math.fsum(found.adaptive["genie, equation (11)"]) > math.fsum(goodput)
    assert found.of("genie, equation (11)").mean > 0


def test_gains_are_paired_ratios_to_the_best_fixed_length():
    one = Gains(350, [0.5, 0.4], {"rule": [0.55, 0.44]}, {350: [0.5, 0.4]})

    assert one.of("rule").mean == pytest.approx(0.1)
    assert one.of("rule").half_width == pytest.approx(0, abs=1e-12)


def test_the_best_fixed_length_has_the_highest_mean(found):
    assert set(found.fixed) == set(LENGTHS_BYTES)
    assert math.fsum(found.best) == max(math.fsum(goodput) for goodput in found.fixed.values())
    assert found.fixed[found.best_bytes] == found.best


@pytest.mark.parametrize("protocol", ["tcp", "sr"])
@pytest.mark.parametrize("rule", RULES)
def test_every_rule_is_a_transport_that_the_engine_takes(protocol, rule):
    table = transport(PAPER_SETTING, "FASOLT", protocol, 8000, RULES[rule])

    assert table["adaptive_length"]["min_bytes"] >= SHORTEST_BYTES
    # The window holds the round trips of the shortest frames, for a timer that waits for the longest.
    assert table["window_frames"] * 8 * (SHORTEST_BYTES + HEADER_BYTES) / PAPER_SETTING.rate_bps > table["rto"]["initial_s"]
    from_data(
        {
            "duration_s": 1,
            "link": {"rate_bps": PAPER_SETTING.rate_bps, "delay_s": PAPER_SETTING.delay_s("FASOLT")},
            "transport": {"one": table},
            "flow": {"bulk": {"transport": "one", "traffic": {"kind": "bulk"}}},
        }
    )


def test_training_never_sees_the_traces_of_the_evaluation():
    bench = Workbench()
    reported = Fading("FASOLT", duration_s=1).texts(bench, PAPER_SETTING, adaptive.TRACES)
    trained = Training("FASOLT", duration_s=1).texts(bench, PAPER_SETTING, TRAINING_TRACES)

    assert len(trained) == TRAINING_TRACES
    assert not set(reported) & set(trained)


def test_the_search_finds_the_setting_of_highest_goodput():
    points = grid({"rule": "two-lengths"}, memory_s=(1e-3,), min_bytes=(350.0,)) | {
        "genie": {"estimate": "genie", "rule": "optimal"}
    }
    table = gain_over_best_fixed(Workbench(runs=1), points, places=("Testbed",), bers=(1e-5,))

    assert best(table) == "genie"
    assert table["genie"]["all"] == pytest.approx(table["genie"]["Testbed"])


def test_bent_rules_pivot_at_one_length():
    for keys in bent_rules({"rule": "power"}).values():
        if keys["exponent"] == 0.5:
            turn = HEADER_BYTES * keys["scale"] ** 2
            assert min(abs(turn / length - 1) for length in (250, 400, 1000)) < 0.01


def test_short_runs_give_checks_and_a_figure():
    item = PAPER.item("adaptive-length")
    checks, (drawing,) = item.compute(Workbench(quick=True, runs=2))

    assert len(checks) == 4 * 2 * len(RULES)
    assert all("synthetic stand-in" in check.cell for check in checks)
    assert drawing.draw().axes


def test_a_late_measurement_gains_less_than_the_genie_and_more_than_acknowledgements():
    """Over a short link, where fades last longer than the way back: the genie, the measurement, the acknowledgements."""
    found = gains(Workbench(quick=True, runs=4), PAPER_SETTING, "ATENAA", "sr", 1e-5, kinds=rules(PAPER_SETTING, "ATENAA"))

    told, measured, acknowledged = (
        math.fsum(found.adaptive[name]) for name in ("genie", "measured, equation (11)", "acknowledgements, power")
    )
    assert told > measured > acknowledged > math.fsum(found.best)


def test_a_measurement_arrives_after_the_way_back():
    keys = rules(PAPER_SETTING, "KIODO")["measured, power"]

    assert keys["measurement_delay_s"] == pytest.approx(2500e3 / 3e8)
    assert keys["estimate"] == "measured"


def test_measured_lengths_give_checks_and_a_figure():
    checks, (drawing,) = PAPER.item("measured-ber").compute(Workbench(quick=True, runs=2))

    assert len(checks) == 4 * len(rules(PAPER_SETTING, "KIODO"))
    assert drawing.draw().axes

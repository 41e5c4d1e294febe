"""Verdicts, and the papers of the registry."""

from __future__ import annotations

import math
import subprocess
import sys

import pytest
from tests.conftest import program_of_docs

from farlink import papers
from farlink.papers.check import Check, Verdict, claim, claimed, number
from farlink.papers.estimate import Estimate, crossing, ratio
from farlink.papers.item import Drawing, Interrupted, Item, Outcome, Paper, Workbench

CHECK_KEYS = ["paper", "item", "cell", "printed", "engine", "value", "ci95", "verdict", "note"]


@pytest.mark.parametrize(
    ("mean", "half_width", "verdict"),
    [
        (2.70, 0.01, Verdict.AGREES),
        (2.75, 0.0, Verdict.AGREES),
        (2.76, 0.0, Verdict.DIFFERS),
        (2.80, 0.049, Verdict.DIFFERS),
        (2.80, 0.05, Verdict.UNDECIDED),
        (2.76, 0.025, Verdict.AGREES),
        (2.76, 0.026, Verdict.UNDECIDED),
        (2.80, 0.06, Verdict.UNDECIDED),
        (2.70, 3.0, Verdict.UNDECIDED),
        (2.70, math.nan, Verdict.UNDECIDED),
        (math.nan, 0.0, Verdict.UNDECIDED),
    ],
)
def test_the_tolerance_follows_from_the_printed_digits(mean, half_width, verdict):
    assert number(Estimate(mean, half_width), "2.7") is verdict


def test_relative_tolerance_widens_the_band():
    assert number(Estimate(5.9, 0.1), "5.4") is Verdict.DIFFERS
    assert number(Estimate(5.9, 0.1), "5.4", relative=0.1) is Verdict.AGREES
    # Tolerance 0.59: ten per cent and half a tenth.
    assert number(Estimate(6.2, 0.29), "5.4", relative=0.1) is Verdict.AGREES
    assert number(Estimate(6.2, 0.30), "5.4", relative=0.1) is Verdict.UNDECIDED


@pytest.mark.parametrize(
    ("mean", "half_width", "verdict"),
    [
        (0.5, 0.1, Verdict.AGREES),
        (0.5, 0.2, Verdict.UNDECIDED),
        (0.75, 0.1, Verdict.UNDECIDED),
        (0.85, 0.1, Verdict.DIFFERS),
        (0.2, 0.1, Verdict.DIFFERS),
        (0.5, math.nan, Verdict.UNDECIDED),
    ],
)
def test_a_claim_holds_only_if_it_holds_over_the_whole_interval(mean, half_width, verdict):
    assert claim(Estimate(mean, half_width), at_least=0.35, at_most=0.65) is verdict


def test_a_cause_is_named_only_for_a_difference():
    wrong, right = (claimed("i", "c", "p", Estimate(x), at_least=1, rule="rule", cause="cause") for x in (0.5, 1.5))

    assert wrong.note == "rule; cause"
    assert right.note == "rule"


def test_a_check_as_json_has_the_keys_of_the_contract():
    check = Check("table-1", "K = 4", 2.7, "monte-carlo", Estimate(2.8, math.nan), Verdict.DIFFERS, "why")

    content = check.to_dict("brodbekier")

    assert list(content) == CHECK_KEYS
    assert content["verdict"] == "differs"
    assert content["ci95"] is None


def test_a_setting_fitted_to_the_compared_numbers_is_not_agreement():
    made = [
        Check("i", "c", 1.0, "packet", Estimate(1.0, 0.1), verdict, "within 10 %").fitted("the timer was chosen on it")
        for verdict in Verdict
    ]

    assert [check.verdict for check in made] == [Verdict.FITTED, *list(Verdict)[1:]]
    assert {check.note for check in made} == {"within 10 %; fitted: the timer was chosen on it"}


def test_a_closed_form_has_no_interval_and_equal_runs_have_one_of_no_width():
    made = [Check("i", "c", 1.0, engine, Estimate(1.0), Verdict.AGREES, "").to_dict("k") for engine in ("model", "packet")]

    assert [content["ci95"] for content in made] == [None, 0.0]
    assert Check("i", "c", 1.0, "model", Estimate(1.0, 0.2), Verdict.AGREES, "").to_dict("k")["ci95"] == 0.2


def test_a_ratio_to_zero_is_unknown():
    assert math.isnan(ratio(Estimate(1.0), Estimate(0.0)).mean)


def test_a_curve_that_does_not_fall_so_far_has_no_crossing():
    assert math.isnan(crossing([(1e-8, Estimate(1.0)), (1e-7, Estimate(0.8))], 0.5).mean)


@pytest.mark.parametrize("key", papers.PAPERS)
def test_papers_of_the_registry_are_complete(key):
    paper = papers.load(key)

    keys = [item.key for item in paper.items]
    assert paper.key == key
    assert len(set(keys)) == len(keys)
    assert papers.ready_items(paper)
    for item in paper.items:
        assert (item.compute is None) == bool(item.not_yet), f"{item.key} is either computed, or it says why not"


def test_an_item_that_cannot_be_computed_yet_is_refused_by_name():
    left = Item("figure-2", "", 0, None, "it needs what there is not")
    paper = Paper("k", "", "", (Item("figure-1", "", 1, lambda _bench: ([], [])), left))

    assert [item.key for item in papers.chosen_items(paper, [])] == ["figure-1"]
    with pytest.raises(papers.PaperError, match="figure-2 cannot be computed yet: it needs what there is not"):
        papers.chosen_items(paper, ["figure-2"])


def test_every_item_of_brodbekier_is_computed():
    keys = [item.key for item in papers.ready_items(papers.load("brodbekier"))]

    assert keys == ["table-1", "equation-1", *(f"figure-{n}" for n in range(2, 7))]


def test_items_before_an_interrupt_are_kept():
    def stopped(_bench):
        raise KeyboardInterrupt

    first, second = Item("first", "", 1, lambda _bench: ([], [])), Item("second", "", 1, stopped)

    outcomes = Workbench().outcomes([first, second])
    assert next(outcomes).item is first
    with pytest.raises(Interrupted):
        next(outcomes)


def test_repetitions_are_as_many_as_asked_for():
    scenario = {
        "duration_s": 1,
        "runs": 3,
        "link": {"rate_bps": 1e6, "delay_s": 0.01},
        "transport": {"udp": {"kind": "udp"}},
        "flow": {"f": {"transport": "udp", "traffic": {"kind": "cbr", "rate_bps": 1e5, "payload_bytes": 100}}},
    }

    assert [Workbench(**keys).repetitions(6) for keys in ({}, {"quick": True}, {"runs": 9})] == [6, 4, 9]
    assert Workbench().run("three", scenario).finished_runs == 3
    assert Workbench(runs=9).run("one", scenario, runs=1).finished_runs == 1


def test_papers_are_listed_and_their_formulas_computed_without_extras():
    code = """
import sys
sys.modules["pydantic"] = sys.modules["scipy"] = None
from farlink import papers
from farlink.papers.item import Workbench
(outcome,) = Workbench().outcomes([papers.load("celandroni").item("table-1")])
print(len(outcome.checks))
"""

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout == "10\n"


def test_the_numbers_of_a_figure_stand_on_the_page_in_the_report_and_on_the_terminal(capsys):
    from matplotlib.figure import Figure

    from farlink.cli.papers import _print_outcome
    from farlink.report.papers import render_paper

    pages = program_of_docs("papers")
    table = (("protocol", "near", "far"), ("UDP <1>", "0.98 ± 0.01", "0.5"))
    item = Item("i", "An item", 1, lambda _bench: ([], []))
    outcome = Outcome(item, [], [Drawing("d", "What", "Why.", Figure, table)])

    lines = list(pages.section(Paper("k", "Title", "", (item,)), outcome))
    at = lines.index("| protocol | near | far |")
    assert lines[at : at + 3] == ["| protocol | near | far |", "|---|--:|--:|", "| UDP <1> | 0.98 ± 0.01 | 0.5 |"]
    html = render_paper(Paper("k", "Title", "", (item,)), [outcome], command="c")
    assert '<td>UDP &lt;1&gt;</td><td class="n">0.98 ± 0.01</td>' in html
    _print_outcome(outcome)
    assert "UDP <1>" in capsys.readouterr().out

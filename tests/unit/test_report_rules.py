"""Rules of reports and grid figures: every flow, the best value, single runs, many lines, many decades."""

from __future__ import annotations

import re

import pytest

import farlink
from farlink.plot.against_grid import against_grid, panels_of
from farlink.plot.goodput import goodput
from farlink.plot.style import MARKERS, MOST_SERIES
from farlink.report import render_report
from farlink.report.page import best_of

OTHER = 'flow.other={transport="reno", traffic={kind="bulk"}}'


def entries(means: list[list[float]]) -> list[dict[str, object]]:
    """A summary of lines against a bit error rate."""
    made = []
    for line, row in enumerate(means):
        for step, mean in enumerate(row):
            value = {"mean": mean, "ci95": 0.1 * mean}
            known = {"goodput_bps": value, "goodput_fraction": {"mean": mean / 1e6, "ci95": 0.0}}
            place = {"ber": 10.0 ** (step - 9), "transport": f"transport{line}", "flow": "all", "engine": "packet"}
            made.append({**place, **known})
    return made


def test_every_flow_is_drawn_in_detail_and_named(small):
    page = render_report(farlink.run(small, set=["grid={}", "duration_s=5", OTHER]))

    detail = page[page.index("<h2>One run in detail</h2>") :]
    assert re.findall(r"<h3>Flow (\w+)</h3>", detail) == ["bulk", "other"]
    for flow in ("bulk", "other"):
        assert f"<h3>Congestion window of {flow}</h3>" in detail
        assert f"<h3>Time and sequence of {flow}: " in detail
        assert f"<h3>Round-trip time and bytes in flight of {flow}</h3>" in detail


def test_flows_beyond_the_drawing_limit_are_named(small, monkeypatch):
    monkeypatch.setattr("farlink.report.page._MOST_FLOWS", 1)
    page = render_report(farlink.run(small, set=["grid={}", "duration_s=2", "runs=1", OTHER]))

    assert re.findall(r"<h3>Flow (\w+)</h3>", page) == ["bulk"]
    assert "Not drawn, to keep the page small: other." in page


@pytest.mark.parametrize(
    ("runs", "says", "says_not"), [(1, "no interval", "95 % interval"), (3, "95 % interval", "no interval")]
)
def test_intervals_are_claimed_only_of_several_runs(runs, says, says_not, small):
    page = render_report(farlink.run(small, set=["duration_s=5", f"runs={runs}"]))

    assert says in page
    assert says_not not in page


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ([(100, 1), (200, 1), (120, 2)], {1}),
        ([(100, 1), (100.5, 1), (100.2, 1), (50, 1)], set()),
        ([(100, 1), (99.5, 1), *[(10.0 * i, 1) for i in range(7)]], {0, 1}),
        ([(100, None), (200, None)], set()),
        ([(100, 1), (None, None)], set()),
        ([(100, 1), (101.7, 1.5)], set()),
        ([(100, 1), (101.7, 1)], {1}),
    ],
)
def test_bold_marks_the_best_only_where_differences_are_significant(row, expected):
    assert best_of(row) == expected


def test_tables_and_figures_scroll_on_a_narrow_page(small):
    page = render_report(farlink.run(small, set=["duration_s=5"]))

    assert page.count("<table") == len(re.findall(r'<div class="scroll"><table', page)) > 0
    assert page.count("<svg ") == len(re.findall(r'<div class="scroll"><svg [^>]*style="min-width: \d+px"', page)) > 0


@pytest.mark.parametrize("count", [1, 6, 7, 18, 40])
def test_no_axes_have_more_lines_than_can_be_distinguished(count):
    figure = against_grid(entries([[1e6 / (1 + line), 5e5 / (1 + line)] for line in range(count)]), ["ber", "transport"])

    assert sum(len(ax.containers) for ax in figure.axes) == count
    for ax in figure.axes:
        looks = [(bars.lines[0].get_color(), bars.lines[0].get_marker()) for bars in ax.containers]
        assert 1 <= len(looks) <= MOST_SERIES
        assert len({colour for colour, _ in looks}) == len({marker for _, marker in looks}) == len(looks)
    assert len(MARKERS) >= MOST_SERIES


def test_panels_show_every_line_once():
    names = [str(i) for i in range(25)]

    assert [name for panel in panels_of(names) for name in panel] == names
    assert {len(panel) for panel in panels_of(names)} == {5}


@pytest.mark.parametrize(("least", "scale"), [(1e5, "linear"), (300.0, "log"), (0.0, "linear")])
def test_a_range_of_decades_gets_a_logarithmic_axis(least, scale):
    figure = goodput(entries([[1e6, 9e5, 5e5, least]]), ["ber"])

    assert figure.axes[0].get_yscale() == scale


def test_zero_goodput_is_a_hollow_triangle_at_the_foot_of_a_logarithmic_axis():
    figure = goodput(entries([[1e6, 1e5, 1e4, 1e3, 0.0]]), ["ber"])

    ax = figure.axes[0]
    (mark,) = [line for line in ax.lines if line.get_marker() == "v" and line.get_markerfacecolor() == "white"]
    assert mark.get_ydata()[0] == pytest.approx(ax.get_ylim()[0])

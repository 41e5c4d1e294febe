"""Figures and the report: what they must show, whatever the scenario."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from html.parser import HTMLParser

import numpy as np
import pytest

import farlink
from farlink.plot.against_grid import is_log_spaced
from farlink.plot.style import thin, to_svg
from farlink.report import render_report

SHAPES = {
    "two keys": [],
    "no grid": ["grid={}"],
    "one number": ["grid={}", 'grid."link.channel.ber"=[1e-7, 1e-6]'],
    "names only": ["grid={}", 'grid."flow.bulk.transport"=["reno", "sack"]'],
    "three keys": ["grid.link.delay_s=[0.01, 0.05]"],
    "single run": ["runs=1"],
    "two flows": ['flow.other={transport="reno", traffic={kind="bulk"}}'],
    "no losses": ["grid={}", 'link.channel={kind="none"}'],
}


@pytest.mark.parametrize("shape", SHAPES)
def test_report_of_every_shape_of_grid(shape, small):
    result = farlink.run(small, set=[*SHAPES[shape], "duration_s=5", "title=A < B & C"])

    page = render_report(result, command="farlink run <small>")

    assert "A &lt; B &amp; C" in page
    assert "farlink run &lt;small&gt;" in page
    assert page == render_report(result, command="farlink run <small>")
    assert unique_ids(page)
    assert f"seed {result.seed}" in page


@pytest.mark.parametrize(("kind", "has_window"), [("tcp", True), ("udp", False)])
def test_report_has_one_run_in_detail_where_there_is_a_window_to_show(kind, has_window, small):
    cbr = 'flow.bulk.traffic={kind="cbr", rate_bps=1e5, payload_bytes=1000}'
    result = farlink.run(small, set=["grid={}", f'transport.one={{kind="{kind}"}}', "flow.bulk.transport=one", cbr, "runs=1"])

    page = render_report(result)

    assert ("<h2>One run in detail</h2>" in page) == has_window


def test_axes_say_quantity_and_unit(small):
    figure = farlink.run(small).plot()

    ax = figure.axes[0]
    assert ax.get_xscale() == "log"
    assert ax.get_xlabel() == "bit error rate"
    assert ax.get_ylabel() == "goodput (kb/s)"
    assert [text.get_text() for text in figure.axes[0].get_legend().get_texts()] == ["reno", "sack"]


def test_unknown_quantity_is_refused(small):
    with pytest.raises(ValueError, match="no quantity 'speed'"):
        farlink.run(small, runs=1).plot("speed")


@pytest.mark.parametrize("kind", ["window", "sequence", "round-trip"])
def test_figure_of_one_run(kind, small):
    figure = farlink.trace_run(small, point=5).plot(kind)

    assert "time (s)" in [ax.get_xlabel() for ax in figure.axes]
    assert ET.fromstring(to_svg(figure, "x")).tag.endswith("svg")


def test_thinning_keeps_the_peaks():
    time = np.linspace(0, 1, 100_000)
    value = np.zeros(100_000)
    value[54_321] = 7.0

    thinned_time, thinned = thin(time, value, buckets=100)

    assert len(thinned) <= 400
    assert thinned.max() == 7.0
    assert (np.diff(thinned_time) > 0).all()


@pytest.mark.parametrize(
    ("values", "expected"), [([1e-9, 1e-8, 1e-7], True), ([1, 2, 3], False), ([0, 1, 100], False), ([1, 50, 100], False)]
)
def test_log_axis(values, expected):
    assert is_log_spaced(values) is expected


def unique_ids(page: str) -> bool:
    found: list[str] = []

    class Ids(HTMLParser):
        def handle_starttag(self, _tag, attrs):
            found.extend(value for name, value in attrs if name == "id")

    Ids().feed(page)
    return len(found) == len(set(found)) > 0


def test_title_and_legend_do_not_cover_each_other(small):
    figure = farlink.run(small, set=["duration_s=5"]).plot()

    figure.canvas.draw()
    (title,), legend = figure.texts or [figure._suptitle], figure.axes[0].get_legend()
    assert title.get_text() == "Small"
    assert not title.get_window_extent().overlaps(legend.get_window_extent())
    assert not legend.get_window_extent().overlaps(figure.axes[0].get_window_extent())

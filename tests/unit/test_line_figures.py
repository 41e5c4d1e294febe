"""Curves on linear axes and bars: shown and omitted values."""

from __future__ import annotations

import math

import pytest

pytest.importorskip("matplotlib")

from farlink.plot.bars import Bar, bars
from farlink.plot.curves import Line
from farlink.plot.lines import lines
from farlink.plot.style import COLOURS

KIND = Line("kind", [(0.0, 1.0, 0.1), (5e-5, 2.0, math.nan), (1e-4, 4.0, 0.2)])
NOTHING = Line("nothing at first", [(0.0, 0.0, 0.0), (5e-5, math.nan, math.nan), (1e-4, 3.0, 0.0)])


def drawn_points(figure):
    return [list(line.get_xdata()) for container in figure.axes[0].containers for line in container[:1]]


def test_points_at_zero_are_drawn_on_an_even_axis():
    figure = lines([KIND, NOTHING], x_label="x", y_label="y")

    assert drawn_points(figure) == [[0.0, 5e-5, 1e-4], [0.0, 1e-4]]
    assert figure.axes[0].get_ylim()[0] == 0


def test_a_logarithmic_axis_omits_values_that_are_not_positive():
    figure = lines([KIND, NOTHING], x_label="x", y_label="y", is_y_log=True)

    assert figure.axes[0].get_yscale() == "log"
    assert drawn_points(figure) == [[0.0, 5e-5, 1e-4], [1e-4]]


def test_named_ticks_start_at_zero():
    figure = lines([Line("a", [(0.0, 1.0, 0.0), (256.0, 2.0, 0.0)])], x_label="x", y_label="y", x_ticks=(0, 4, 256))

    ax = figure.axes[0]
    assert [label.get_text() for label in ax.get_xticklabels()] == ["0", "4", "256"]
    assert ax.get_xlim()[0] > -4


def test_ordered_kinds_go_from_dark_to_light():
    figure = lines([KIND, KIND, KIND], x_label="x", y_label="y", is_ordered=True)

    luminances = []
    for container in figure.axes[0].containers:
        red, green, blue, _ = container[0].get_color()
        luminances.append(0.2126 * red + 0.7152 * green + 0.0722 * blue)
    assert luminances == sorted(luminances)
    assert lines([KIND], x_label="x", y_label="y").axes[0].containers[0][0].get_color() == COLOURS[0]


def test_marked_heights_have_labels():
    figure = lines([KIND], x_label="x", y_label="y", marked=[(1.0, "any scheme")])

    assert [text.get_text() for text in figure.axes[0].texts] == ["any scheme"]


def test_bars_show_error_bars_where_intervals_exist():
    figure = bars([Bar("one", 3.0, 0.1, 2.5), Bar("other", 1.0, math.nan)], x_label="rounds", bound_words="bound")

    ax = figure.axes[0]
    assert [label.get_text() for label in ax.get_yticklabels()] == ["one", "other"]
    marks = [line for line in ax.get_lines() if line.get_label() == "bound"]
    assert [list(mark.get_xdata()) for mark in marks] == [[2.5]]
    assert ax.get_xlim()[0] == 0

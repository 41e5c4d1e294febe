"""Errors of predictions: which model is trusted, and the picture."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import numpy as np
import pytest

from farlink.papers.estimate import Estimate
from farlink.papers.zaghloul.tables_4 import quotient_of_errors
from farlink.papers.zaghloul.transfers import MODELS, Path
from farlink.papers.zaghloul.trust import Compared, compare, share_within, worst_in
from farlink.plot.error_map import classes, error_maps
from farlink.plot.style import to_svg

LIMITED = Path("independent", 2, 40)


def compared(**ratio: list[list[float]]) -> Compared:
    """Two losses, three lengths, intervals of 1 %."""
    arrays = {model: np.array(rows) for model, rows in ratio.items()}
    return Compared(LIMITED, (1, 10, 100), (0.01, 0.1), arrays, np.full((2, 3), 0.01))


def test_a_block_is_judged_by_its_worst_point_with_interval_in_either_direction():
    one = compared(first=[[1.0, 1.05, 0.5], [1.0, 1.0, 1.0]], second=[[1.2, 1.2, 1.2], [1.2, 1.2, 1.2]])

    assert worst_in(one, (1, 10), (0.01, 0.1)) == pytest.approx({"first": 1.05 * 1.01, "second": 1.2 * 1.01})
    everywhere = worst_in(one, (1, 100), (0.01, 0.1))
    assert list(everywhere) == ["second", "first"]
    assert everywhere["first"] == pytest.approx(2 * 1.01)
    assert worst_in(one, (100, 100), (0.1, 0.1))["first"] == pytest.approx(1.01)
    assert share_within(one, "first", 1.1) == pytest.approx(5 / 6)


def test_models_are_evaluated_only_within_their_scope():
    times = {(10, 0.01): Estimate(3.0, 0.03)}

    made = {
        path: set(compare(path, [10], [0.01], times).ratio)
        for path in (LIMITED, Path("correlated", 2, None), Path("correlated", 1, 40))
    }
    assert made[LIMITED] == set(MODELS)
    assert made[Path("correlated", 2, None)] == set(MODELS) - {"sikdar-recursion"}
    assert made[Path("correlated", 1, 40)] == {"padhye", "padhye-approximate", "cardwell", "whole-rounds"}


def test_the_interval_of_a_ratio_covers_every_truth_in_its_interval():
    truth = Estimate(10.0, 0.5)

    outside = quotient_of_errors(8.0, 6.0, truth)
    assert (outside.low, outside.high) == pytest.approx((1.5 / 3.5, 2.5 / 4.5))
    right = quotient_of_errors(10.2, 6.0, truth)
    assert (right.low, right.high) == pytest.approx((0.0, 0.7 / 3.5))
    assert np.isnan(quotient_of_errors(8.0, 9.6, truth).mean)
    assert np.isnan(quotient_of_errors(8.0, 6.0, Estimate(10.0, np.nan)).mean)


def test_classes_are_symmetric_about_the_truth():
    ratios = np.array([1.05, 1.2, 1.9, 2.1])

    assert list(classes(ratios)) == [3, 4, 5, 6]
    assert list(classes(1 / ratios)) == [3, 2, 1, 0]


def test_the_picture_has_a_panel_per_model_and_setting_and_says_every_known_number():
    ratios = {
        "Padhye": {"limited": [[0.5, 1.004]], "free": [[3.0, np.nan]]},
        "Sikdar": {"limited": [[1.0, 1.1]], "free": [[np.nan, np.nan]]},
    }
    figure = error_maps(ratios, x_values=["1 kB", "10 kB"], y_values=["1 %"], x_label="size", y_label="loss")

    assert len(figure.axes) == 4
    said = [text.get_text() for ax in figure.axes for text in ax.texts]
    assert said == ["\N{MINUS SIGN}50", "0", "+200", "0", "+10", "not made for this"]
    assert ET.fromstring(to_svg(figure, "x")).tag.endswith("svg")

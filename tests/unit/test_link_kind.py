"""The kind of a link by its round trips: features by hand, and errors on links that nothing was fitted to."""

from __future__ import annotations

import numpy as np
import pytest
from tests.conftest import program_of_docs

from farlink.errors import ArgumentError
from farlink.models.multilink.link_kind import WEIGHTS, Features, features, wireless_probability

pytest.importorskip("scipy.optimize")


@pytest.fixture(scope="module")
def link_kinds():
    return program_of_docs("link_kinds")


def arq(rng, *, step_s=0.2, failures=0.3, count=500):
    return 0.5 + step_s * (rng.geometric(1 - failures, count) - 1) + rng.uniform(0, 5e-4, count)


def queue(rng, *, load=0.7, count=500):
    wait, waits = 0.0, []
    for service in rng.exponential(load * 0.1, count):
        waits.append(wait)
        wait = max(0.0, wait + service - 0.1)
    return 0.5 + np.array(waits) + rng.uniform(0, 5e-4, count)


def test_features_are_what_they_are_named_after():
    rng = np.random.default_rng(3)
    repeated, waiting = features(arq(rng)), features(queue(rng))

    assert repeated.at_floor == pytest.approx(0.7, abs=0.06)
    assert repeated.on_steps > 0.99
    assert abs(repeated.correlation) < 0.15
    assert waiting.on_steps < 0.6
    assert waiting.correlation > 0.5
    values = arq(rng)
    assert features(values).spread == pytest.approx(np.log10(values.std() / np.quantile(values, 0.005)), abs=1e-6)


def test_plain_repetitions_and_plain_queues_are_told_apart():
    rng = np.random.default_rng(8)

    repeated = [
        wireless_probability(arq(rng, step_s=rng.uniform(0.02, 0.6), failures=rng.uniform(0.03, 0.4))) for _ in range(100)
    ]
    waiting = [wireless_probability(queue(rng, load=rng.uniform(0.6, 0.95))) for _ in range(100)]

    assert np.mean(np.array(repeated) > 0.5) >= 0.95
    assert np.mean(np.array(waiting) > 0.5) <= 0.05


def test_errors_on_other_links_are_those_of_the_page(link_kinds):
    """The page says at most 6.4 % and 6.1 %: more than 12 of 60 wrong has a probability below 1 in 1000 by these."""
    seeds = range(5000, 5060)
    found = {kind: np.array([(1.0, *one) for one in link_kinds.series(kind, seeds)]) for kind in ("wireless", "wired")}
    called = {kind: values @ np.array(WEIGHTS) > 0 for kind, values in found.items()}

    assert np.count_nonzero(~called["wireless"]) <= 12
    assert np.count_nonzero(called["wired"]) <= 12
    assert len(called["wired"]) > 50


def test_round_trips_that_are_all_alike_are_not_called_wireless():
    assert features([0.5] * 200) == Features(0.0, 1.0, 0.0, -9.0, 0.0)
    assert 0 <= wireless_probability([0.5] * 200) <= 1


@pytest.mark.parametrize(
    ("rtts", "message"),
    [
        ([0.5] * 99, "at least 100 round trips"),
        ([[0.5] * 100] * 2, "at least 100 round trips"),
        ([0.5] * 100 + [0.0], "rtts_s must be positive"),
        ([0.5] * 100 + [float("nan")], "rtts_s"),
        (["x"] * 100, "rtts_s must be a number"),
    ],
)
def test_series_that_cannot_be_are_refused(rtts, message):
    with pytest.raises(ArgumentError, match=message):
        features(rtts)


@pytest.mark.parametrize("resolution_s", [0.0, -1.0, 11.0])
def test_resolutions_that_cannot_be_are_refused(resolution_s):
    with pytest.raises(ArgumentError, match="resolution_s"):
        features([0.5] * 100, resolution_s=resolution_s)

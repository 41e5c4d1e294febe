"""`farlink.run` of some points and some runs, `Result.concat`, rows in few bytes, and the points of large grids."""

from __future__ import annotations

import json
import pickle
import random

import numpy as np
import pytest

import farlink
from farlink import _core
from farlink.errors import ArgumentError, ScenarioError
from farlink.joined import stacked
from farlink.packed import pack, unpack

SCENARIO = {
    "duration_s": 3,
    "runs": 6,
    "link": {"rate_bps": 1e6, "delay_s": 0.05, "channel": {"kind": "loss", "loss": 0.01}},
    "transport": {"tcp": {"kind": "tcp"}, "udp": {"kind": "udp"}},
    "flow": {"bulk": {"transport": "tcp", "traffic": {"kind": "bulk"}}},
    "grid": {"link.channel.loss": [0.0001, 0.001, 0.002], "link.delay_s": [0.05, 0.1]},
}
MIXED = {**SCENARIO, "engines": ["model", "fluid", "packet"]}


@pytest.fixture(scope="module")
def whole():
    return farlink.run(SCENARIO)


@pytest.mark.parametrize("seed", range(3))
def test_pieces_of_any_shape_concatenate_to_the_whole(whole, seed):
    draw = random.Random(seed)
    cells = [(point, run) for point in range(6) for run in range(6)]
    pieces = []
    while cells:
        # Some of the points that lack the same next run.
        _, run = draw.choice(cells)
        runs = draw.randint(1, 6 - run)
        wanted = [p for p in range(6) if {(p, r) for r in range(run, run + runs)} <= {*cells}]
        chosen = draw.sample(wanted, draw.randint(1, len(wanted))) if wanted else []
        if chosen:
            pieces.append(farlink.run(SCENARIO, points=chosen, first_run=run, runs=runs, threads=1))
            cells = [cell for cell in cells if not (cell[0] in chosen and run <= cell[1] < run + runs)]
    draw.shuffle(pieces)

    joined = farlink.Result.concat(pieces)

    assert joined.to_dict() == whole.to_dict()
    assert joined.numbers is None or list(joined.numbers) == list(range(6))


def test_engines_in_a_mix_have_their_only_run_in_the_piece_that_begins_with_it():
    whole = farlink.run(MIXED)
    late = farlink.run(MIXED, points=[4, 5], first_run=2, runs=4)
    pieces = [late, farlink.run(MIXED, points=[0, 1, 2, 3]), farlink.run(MIXED, points=[5, 4], first_run=0, runs=2)]

    joined = farlink.Result.concat(pieces)

    assert {*late.rows["engine"]} == {"packet"}
    assert (joined.rows, joined.summary()) == (whole.rows, whole.summary())


def test_grids_that_differ_are_joined_in_the_order_of_the_pieces(whole):
    last = farlink.run(SCENARIO, set={"grid.link.channel.loss": [0.002]})
    first = farlink.run(SCENARIO, set={"grid.link.channel.loss": [0.0001, 0.001]})

    joined = farlink.Result.concat([first, last])

    assert joined.rows == whole.rows
    assert joined.scenario.points() == whole.points
    assert farlink.Result.concat([last, first]).points == last.points + first.points


def test_what_does_not_belong_together_is_refused(whole):
    concat = farlink.Result.concat
    piece = farlink.run(SCENARIO, points=[1], first_run=0, runs=1)
    with pytest.raises(ArgumentError, match="run 0 of point 1 occurs twice"):
        concat([whole, piece])
    with pytest.raises(ArgumentError, match=r"entry 1 is of another scenario than entry 0: they differ in link$"):
        concat([whole, farlink.run(SCENARIO, set={"link.rate_bps": 2e6})])
    with pytest.raises(ArgumentError, match="they differ in seed"):
        concat([whole, farlink.run(SCENARIO, seed=2)])
    with pytest.raises(ArgumentError, match=r"one varies link\.channel\.loss, link\.delay_s, another link\.delay_s"):
        concat([whole, farlink.run(SCENARIO, set={"link.channel.loss": 0.01})])
    with pytest.raises(ArgumentError, match=f"entry 1 is of build {'0' * 12}, entry 0 of {whole.build[:12]}"):
        concat([whole, pickle.loads(pickle.dumps(piece).replace(piece.build.encode(), b"0" * 64))])
    with pytest.raises(ArgumentError, match="entry 0 has no rows"):
        concat([farlink.run(SCENARIO, points=[0], runs=1, rows=False)])
    for nothing in ([], [3]):
        with pytest.raises(ArgumentError, match="results: "):
            concat(nothing)


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"points": [6]}, "points: there is no point 6"),
        ({"points": []}, "points: no point is chosen"),
        ({"points": [1, 1]}, "points: 1 occurs twice"),
        ({"points": [0.5]}, "points: 0.5 is not a whole number"),
        ({"points": 3}, "points: 3 is no list of numbers"),
        ({"first_run": 4}, "first_run: how many runs from 4 on is not given"),
        ({"first_run": -1, "runs": 1}, "first_run: -1 is not a whole number"),
        ({"first_run": 0, "runs": 0}, "runs: 0 runs are nothing to do"),
        ({"first_run": 2**60, "runs": 1}, "first_run: 1152921504606846976 is not a whole number"),
        ({"engine": "fluid", "first_run": 3, "runs": 1}, "first_run: the engine fluid has one run per point, and no run 3"),
        ({"engine": "live", "points": [0]}, "points, first_run: the engine live has no pieces"),
    ],
)
def test_pieces_that_cannot_be_are_refused(asked, message):
    with pytest.raises(farlink.FarlinkError) as refusal:
        farlink.run(SCENARIO, **asked)

    assert str(refusal.value).startswith(message)
    assert refusal.value.remedy


def test_results_are_pickled_in_few_bytes_and_to_the_bit(whole):
    sent = pickle.dumps(whole)
    back = pickle.loads(sent)

    assert back.to_dict() == whole.to_dict()
    assert (back.build, back.numbers, back.points) == (whole.build, whole.numbers, whole.points)
    many = stacked([whole.columns] * 20)
    assert len(pickle.dumps(pack(many))) < 0.6 * len(pickle.dumps(many))
    odd = {"x": np.array([0.0, -0.0]), "nan": np.array([np.nan, -np.nan]), "n": np.array([3], dtype=np.uint64), "t": []}
    unpacked = unpack(pickle.loads(pickle.dumps(pack(odd))))
    assert all(np.asarray(unpacked[name]).tobytes() == np.asarray(odd[name]).tobytes() for name in odd)


def test_rows_as_arrow_say_where_they_come_from(whole):
    table = whole.to_arrow()

    assert table.num_rows == len(whole.rows["run"])
    assert table.schema.metadata[b"build"].decode() == whole.build == farlink.build_name()
    assert json.loads(whole.to_json())["build"] == whole.build


def test_points_of_a_grid_of_millions_are_made_one_by_one():
    large = {
        **SCENARIO,
        "grid": {"link.channel.loss": [1e-6 * i for i in range(1, 2001)], "link.rate_bps": [1e6 + i for i in range(2000)]},
    }
    points = _core.Points(json.dumps(large))

    assert len(points) == 4_000_000
    assert json.loads(points.settings(2001)) == {"link.channel.loss": 2e-6, "link.rate_bps": 1000001.0}
    assert json.loads(points.given(3_999_999))["link"]["rate_bps"] == 1001999.0
    assert farlink.run(large, points=[2001], runs=1).points == [{"link.channel.loss": 2e-6, "link.rate_bps": 1000001.0}]
    with pytest.raises(_core.ScenarioError, match="there is no point 4000000"):
        points.settings(4_000_000)
    with pytest.raises(ScenarioError, match="2000 x 2000 points are more than 100000"):
        farlink.run(large)
    with pytest.raises(_core.ScenarioError, match="points are more than 10000000"):
        _core.Points(json.dumps({**large, "grid": {**large["grid"], "seed": list(range(3))}}))


def test_the_normalised_scenario_of_a_point_has_no_trace_of_the_others():
    points = _core.Points(json.dumps(SCENARIO))
    alone = _core.Points(
        json.dumps({**{k: v for k, v in SCENARIO.items() if k != "grid"}, "link": {**SCENARIO["link"], "delay_s": 0.1}})
    )

    assert points.normalised(5, ["runs"]) != points.normalised(4, ["runs"])
    assert "grid" not in json.loads(points.normalised(5, []))
    assert json.loads(points.normalised(5, ["link"])) == json.loads(alone.normalised(0, ["link"]))

"""Studies in pieces: the rows of the whole study, the stopping rule, cancellation."""

from __future__ import annotations

import random
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import pytest

import farlink
from farlink.errors import ArgumentError, ScenarioError

SCENARIO = {
    "duration_s": 5,
    "runs": 6,
    "link": {"rate_bps": 1e6, "delay_s": 0.05, "channel": {"kind": "loss", "loss": 0.01}},
    "transport": {"tcp": {"kind": "tcp"}},
    "flow": {"bulk": {"transport": "tcp", "count": 2, "traffic": {"kind": "bulk"}}},
    "grid": {"link.channel.loss": [0.0, 0.001, 0.02]},
}
FLUID = {**SCENARIO, "engines": ["fluid"], "runs": 1}
PRECISE = {
    **{key: value for key, value in SCENARIO.items() if key != "runs"},
    "precision": {"quantity": "goodput_bps", "ci": 0.02, "min_runs": 3, "max_runs": 30},
}


def by_the_piece(study, seed=1):
    """All runs of the study, in pieces of random size and order."""
    draw = random.Random(seed)
    pieces = []
    for point in range(len(study.points)):
        of_point = []
        while wanted := study.next_runs(point, of_point):
            cuts = sorted({wanted.start, wanted.stop, draw.choice(wanted), draw.choice(wanted)})
            of_point += [study.run(point, first_run=a, runs=b - a) for a, b in pairwise(cuts)]
        pieces += of_point
    draw.shuffle(pieces)
    return pieces


@pytest.mark.parametrize("scenario", [SCENARIO, PRECISE, FLUID], ids=["runs", "precision", "fluid"])
def test_pieces_together_equal_the_whole_study(scenario):
    whole = farlink.run(scenario)
    study = farlink.Study(scenario, threads=1)

    together = study.together(by_the_piece(study))

    assert together.to_dict() == whole.to_dict()
    assert not together.interrupted
    if "precision" in scenario:
        runs = [entry["runs"] for entry in whole.summary()]
        assert len({*runs}) > 1, "the rule decides"


def test_pieces_in_threads_do_not_interfere():
    study = farlink.Study(SCENARIO, threads=1)
    with ThreadPoolExecutor(4) as pool:
        tasks = [(point, run) for point in range(3) for run in range(6)]
        pieces = list(pool.map(lambda task: study.run(task[0], first_run=task[1]), tasks))

    assert study.together(pieces).to_dict() == farlink.run(SCENARIO).to_dict()
    assert [piece.finished_runs for piece in pieces] == [1] * 18


def test_a_piece_is_a_result_of_its_own():
    piece = farlink.Study(SCENARIO).run(2, first_run=3, runs=2)

    assert piece.finished_runs == 2
    assert piece.rows["run"] == [3, 3, 3, 4, 4, 4]
    assert {*piece.rows["link.channel.loss"]} == {0.02}
    assert piece.summary()[-1]["runs"] == 2


def test_overrides_work_as_in_run():
    study = farlink.Study(SCENARIO, set={"link.rate_bps": 2e6}, runs=1, seed=7)
    whole = farlink.run(SCENARIO, set={"link.rate_bps": 2e6}, runs=1, seed=7)

    assert study.together([study.run(point) for point in range(3)]).to_dict() == whole.to_dict()
    assert repr(study).endswith("3 points, engine packet)")


def test_any_thread_cancels_a_piece_and_a_study():
    long = {**SCENARIO, "runs": 50_000, "duration_s": 50}
    study = farlink.Study(long)
    for work in (lambda cancel: study.run(2, runs=50_000, cancel=cancel), lambda cancel: farlink.run(long, cancel=cancel)):
        cancel = farlink.Cancel()
        assert not cancel.is_set()
        assert repr(cancel) == "Cancel(not set)"
        timer = threading.Timer(0.5, cancel.set)
        timer.start()
        begin = time.perf_counter()
        result = work(cancel)
        timer.join()

        assert cancel.is_set()
        assert result.interrupted
        assert result.finished_runs < 150_000
        assert time.perf_counter() - begin < 30


def test_a_cancelled_piece_is_reported_in_the_whole():
    study = farlink.Study(SCENARIO)
    cancel = farlink.Cancel()
    cancel.set()
    stopped = study.run(0, runs=6, cancel=cancel)

    assert stopped.interrupted
    assert study.together([study.run(1), stopped]).interrupted


def test_cancel_from_a_worker_without_a_signal_handler():
    """Cancellation also works outside the main thread, where Python runs no signal handlers."""
    study = farlink.Study({**SCENARIO, "duration_s": 50})
    cancel = farlink.Cancel()
    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(study.run, 2, runs=50_000, cancel=cancel)
        time.sleep(0.2)
        cancel.set()
        assert future.result(timeout=30).interrupted


@pytest.mark.parametrize("value", [-1, 1.5, "0", None, True, 2**64])
@pytest.mark.parametrize("name", ["point", "first_run", "runs"])
def test_invalid_numbers_are_refused(name, value):
    with pytest.raises(ArgumentError, match=rf"^{name}: .* is not a whole number of at least 0"):
        farlink.Study(SCENARIO).run(**{name: value})


def test_nonexistent_points_and_runs_are_refused():
    study = farlink.Study(SCENARIO)
    with pytest.raises(ArgumentError) as refused:
        study.run(3)
    assert (refused.value.message, refused.value.remedy) == ("point: there is no point 3", "the study has points 0 to 2")
    with pytest.raises(ArgumentError, match="there is no point 99"):
        study.next_runs(99)
    with pytest.raises(ScenarioError, match="the fluid engine has no runs 1 to 1"):
        farlink.Study(FLUID).run(0, first_run=1)


def test_pieces_that_do_not_fit_are_refused():
    study, other = farlink.Study(SCENARIO), farlink.Study(SCENARIO, seed=2)
    first, second = study.run(0), study.run(0, first_run=1)
    with pytest.raises(ArgumentError, match="run 0 of point 0 occurs twice"):
        study.together([first, second, first])
    with pytest.raises(ArgumentError, match="entry 1 is of another scenario"):
        study.together([first, other.run(0)])
    with pytest.raises(ArgumentError, match="there is no piece"):
        study.together([])
    with pytest.raises(ArgumentError, match="entry 0 is no Result"):
        study.together(["x"])
    with pytest.raises(ArgumentError, match="run 0 of point 0 is missing") as refused:
        study.next_runs(0, [second])
    assert refused.value.remedy == "whether runs are enough is asked of all runs from 0 on"
    fluid = farlink.Study(FLUID)
    with pytest.raises(ArgumentError, match="run 0 of point 1 occurs twice"):
        fluid.together([fluid.run(1), fluid.run(0), fluid.run(1)])


def test_several_engines_are_several_studies():
    both = {**FLUID, "engines": ["packet", "fluid"]}
    with pytest.raises(ArgumentError) as refused:
        farlink.Study(both)
    assert refused.value.remedy == "one study for each: engine='packet' or engine='fluid'"
    assert farlink.Study(both, engine="fluid").engine == "fluid"


def test_a_bad_scenario_is_refused_at_once():
    with pytest.raises(ScenarioError, match="durations_s"):
        farlink.Study({**SCENARIO, "durations_s": 1})


def test_limits_hold_for_a_piece():
    study = farlink.Study({**SCENARIO, "duration_s": 1e4, "runs": 1_000_000})

    with pytest.raises(ScenarioError, match="more than limits"):
        study.run(0, runs=1_000_000)
    assert len(study.next_runs(0)) == 1_000_000

"""The boundary between Python and Rust: errors with their parts, progress, Ctrl-C, columns."""

import copy
import json
import os
import signal
import threading
from array import array

import pytest

from farlink import _core

SCENARIO = {
    "duration_s": 5,
    "runs": 2,
    "link": {"rate_bps": 1e6, "delay_s": 0.05, "channel": {"kind": "loss", "loss": 0.01}},
    "transport": {"sack": {"kind": "tcp", "variant": "sack"}},
    "flow": {"bulk": {"transport": "sack", "traffic": {"kind": "bulk"}}},
}


def scenario(**changes: object) -> str:
    return json.dumps({**copy.deepcopy(SCENARIO), **changes})


def test_a_refusal_has_path_message_and_remedy():
    with pytest.raises(_core.ScenarioError) as refusal:
        _core.expand(scenario(durations_s=1))

    error = refusal.value
    assert isinstance(error, ValueError)
    assert error.path == "durations_s"
    assert str(error) == error.message == "durations_s: this key is not known"
    assert error.remedy.startswith('did you mean "duration_s"?')


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '{"duration_s": NaN}'])
def test_text_that_is_not_a_scenario_is_refused(text):
    with pytest.raises(_core.ScenarioError):
        _core.expand(text)


def test_expand_gives_points_in_file_order():
    grid = {"link.rate_bps": [1e6, 2e6], "link.channel.loss": [0, 0.1]}
    expanded = json.loads(_core.expand(scenario(grid=grid)))

    assert [list(point.values()) for point in expanded["points"]] == [[1e6, 0], [1e6, 0.1], [2e6, 0], [2e6, 0.1]]
    assert expanded["scenario"]["seed"] == 1
    assert expanded["scenario"]["grid"] == grid
    assert expanded["approximations"] == []


def test_the_normalised_scenario_means_the_same():
    normalised = json.loads(_core.expand(scenario()))["scenario"]

    assert json.loads(_core.expand(json.dumps(normalised)))["scenario"] == normalised


def test_all_columns_have_the_same_length():
    output = _core.run(scenario(), 1)

    rows = output["rows"]
    assert not output["interrupted"]
    assert {len(column) for column in rows.values()} == {len(rows["flow"])}
    assert {name for name, *_ in _core.quantities()} <= set(rows)
    assert isinstance(rows["goodput_bps"], array)
    assert rows["goodput_bps"].typecode == "d"


def test_progress_grows_to_the_total():
    seen = []
    _core.run(scenario(), None, lambda done, total: seen.append((done, total)))

    assert seen
    assert seen[-1] == (2, 2)
    assert seen == sorted(seen)


def test_exceptions_of_the_callback_propagate():
    def fail(_done: int, _total: int) -> None:
        raise KeyError("from the callback")

    with pytest.raises(KeyError, match="from the callback"):
        _core.run(scenario(runs=100_000), 1, fail)


def test_ctrl_c_returns_the_finished_runs():
    timer = threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    output = _core.run(scenario(runs=1_000_000), 1)
    timer.join()

    assert output["interrupted"]
    assert 0 < len(set(output["rows"]["run"])) < 1_000_000

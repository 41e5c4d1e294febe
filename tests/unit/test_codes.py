"""Codes at the boundary to Rust: error rates, positions of wrong bits, bursts, events, refusals, Ctrl-C."""

import json
import os
import signal
import threading

import numpy as np
import pytest

from farlink import _core

CODING = json.dumps({"decision": "hard", "code": {"kind": "convolutional", "generators": "7,5"}, "effort": {"events": 200}})


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("FARLINK_CACHE", str(tmp_path))
    return tmp_path


def test_an_error_rate_lies_in_its_interval_and_repeats():
    rate = _core.error_rate(CODING, 4.0, events=300)

    value, low, high = rate["bit_error_rate"]
    assert 0 < low < value < high < 0.1
    assert value == pytest.approx(rate["wrong_bits"] / rate["bits"])
    assert rate["reached"]
    assert rate == _core.error_rate(CODING, 4.0, events=300, threads=1)


def test_a_trace_has_ascending_positions_and_its_bursts_add_up():
    trace = _core.error_trace(CODING, 4.0, 300_000)
    position = trace["position"]

    assert position.dtype == np.uint64
    assert (np.diff(position.astype(np.int64)) > 0).all()
    assert position[-1] < trace["bits"] == 300_000
    bursts = _core.burst_statistics(position, trace["bits"], 2)
    assert bursts["wrong_bits"] == position.size == (bursts["wrong_bits_per_burst"] * bursts["wrong_bits_bursts"]).sum()
    assert bursts["span_bursts"].sum() == bursts["bursts"]


def test_error_events_are_cached(cache):
    first = _core.error_events(CODING, 4.0)

    assert len(list((cache / "codes").iterdir())) == 1
    again = _core.error_events(CODING, 4.0)
    assert np.array_equal(first["position"], again["position"])
    assert first["start"][-1] == first["position"].size
    assert first["notes"] == []
    assert 0 < first["bit_error_rate"] < 0.1


def test_progress_is_reported():
    seen = []
    _core.error_trace(CODING, 4.0, 3_000_000, progress=lambda done, total: seen.append((done, total)))

    assert seen[-1] == (3_000_000, 3_000_000)


def test_ctrl_c_gives_the_trace_so_far():
    timer = threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    trace = _core.error_trace(CODING, 8.0, 1 << 50)
    timer.join()

    assert trace["interrupted"]
    assert trace["bits"] < 1 << 50


@pytest.mark.parametrize(
    ("call", "path"),
    [
        (lambda: _core.error_rate('{"code": {"kind": "convolutional", "generators": "6,5"}}', 4.0), "code.generators"),
        (lambda: _core.error_rate('{"code": {"kind": "turbo"}}', 4.0), "code.kind"),
        (lambda: _core.error_rate("{", 4.0), ""),
        (lambda: _core.error_trace(CODING, 400.0, 10), "ebn0_db"),
        (lambda: _core.error_rate(CODING, 4.0, confidence=2.0), "effort"),
        (lambda: _core.burst_statistics(np.array([3, 3], np.uint64), 10, 1), "position"),
        (lambda: _core.burst_statistics(np.array([30], np.uint64), 10, 1), "position"),
    ],
)
def test_invalid_arguments_are_refused(call, path):
    with pytest.raises(_core.ScenarioError) as refusal:
        call()

    assert refusal.value.path == path
    assert refusal.value.remedy

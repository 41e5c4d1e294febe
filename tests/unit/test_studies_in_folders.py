"""Studies in a folder: the same bytes however computed, resumed after any end, and bad input named."""

from __future__ import annotations

import json
import math
import os
import random
import signal
import subprocess
import sys
import time
from concurrent.futures import CancelledError, Executor, Future

import numpy as np
import pytest
from tests import small_study

import farlink
from farlink import study as studies
from farlink.channels.trace import Trace
from farlink.channels.trace_file import write
from farlink.errors import ScenarioError, StudyError
from farlink.study import drive
from farlink.study.coordinate import Shard
from farlink.study.drive import work
from farlink.study.execute import run_unit
from farlink.study.local import LocalWorkers
from farlink.study.opened import OpenedStudy
from farlink.study.sample import drawn
from farlink.study.store import Store
from farlink.study.unit_file import DamagedUnit

SCENARIO = {
    "duration_s": 3,
    "runs": 6,
    "link": {"rate_bps": 1e6, "delay_s": 0.05, "channel": {"kind": "loss", "loss": 0.01}},
    "transport": {"tcp": {"kind": "tcp"}},
    "flow": {"bulk": {"transport": "tcp", "traffic": {"kind": "bulk"}}},
    "grid": {"link.channel.loss": [0.0001, 0.001, 0.002]},
}
PRECISE = {
    **{key: value for key, value in SCENARIO.items() if key != "runs"},
    "precision": {"quantity": "goodput_bps", "ci": 0.02, "min_runs": 3, "max_runs": 30},
    "engines": ["model", "fluid", "packet"],
}


class Here(Executor):
    """Does units at once in this process; some crash first, as their numbers say."""

    def __init__(self, crashes=None):
        self.units = []
        self.crashes = crashes or {}

    def submit(self, function, /, *arguments, **_named):
        folder, job = arguments
        future = Future()
        number = (job["engine"], json.loads(job["scenario"])["link"]["channel"].get("loss"), job["first_run"])
        self.units.append(job["key"])
        if self.crashes.get(number, 0) > 0:
            self.crashes[number] -= 1
            future.set_exception(RuntimeError("killed"))
        else:
            future.set_result(function(folder, job))
        return future


@pytest.fixture
def here(monkeypatch):
    """Units are done in this process, of two runs each."""
    executor = Here()

    class Given:
        def __enter__(self):
            return executor, 1

        def __exit__(self, *_):
            return None

    monkeypatch.setattr(drive, "_executor", lambda _scheduler, _workers: Given())
    monkeypatch.setattr("farlink.study.opened._runs_per_unit", lambda _plan, _store: 2)
    return executor


def begun(scenario, folder, **options):
    return OpenedStudy.begun(farlink.engines.prepare(scenario, **options), folder)


def bytes_of(result, folder):
    result.to_parquet(folder / "rows.parquet")
    return (folder / "rows.parquet").read_bytes()


@pytest.mark.parametrize("scenario", [SCENARIO, PRECISE], ids=["runs", "precision and engines"])
@pytest.mark.usefixtures("here")
def test_a_study_in_a_folder_has_the_bytes_of_a_run(scenario, tmp_path):
    whole = farlink.run(scenario)
    study = begun(scenario, tmp_path / "out")

    outcome = work(study)

    result = studies.open(tmp_path / "out").result()
    assert bytes_of(result, tmp_path) == bytes_of(whole, tmp_path)
    assert result.to_dict() == whole.to_dict()
    assert outcome.executed > 8
    assert work(begun(scenario, tmp_path / "out")).executed == 0
    status = study.status()
    assert (status.done, status.units, status.workers, status.failures) == (outcome.executed, outcome.executed, 1, [])
    assert status.is_finished == (scenario is SCENARIO)


@pytest.mark.parametrize("seed", range(2))
def test_whatever_is_missing_is_computed_and_no_more(here, tmp_path, seed):
    draw = random.Random(seed)
    study = begun(PRECISE, tmp_path / "out")
    work(study)
    expected = bytes_of(study.result(), tmp_path)
    files = sorted((tmp_path / "out" / "units").rglob("*.parquet"))
    lost = draw.sample(files, draw.randint(1, len(files)))
    for file in lost:
        kind = draw.choice(["gone", "cut", "foreign", "empty", "other"])
        content = file.read_bytes()
        file.unlink()
        if kind == "cut":
            file.write_bytes(content[: draw.randrange(len(content))])
        elif kind == "foreign":
            file.write_bytes(draw.randbytes(500))
        elif kind == "empty":
            file.touch()
        elif kind == "other":
            file.write_bytes(
                next(one for one in files if one.exists() and one != file).read_bytes() if len(lost) < len(files) else b""
            )
    here.units.clear()
    partial = OpenedStudy.at(tmp_path / "out")
    said = []

    outcome = work(partial, tell=said.append)

    assert {file.stem for file in lost} == {*here.units}
    assert outcome.executed == len(lost) == len(here.units)
    assert all("is computed anew" in text for text in said)
    assert bytes_of(partial.result(), tmp_path) == expected


@pytest.mark.usefixtures("here")
def test_shards_do_all_of_it_once(tmp_path):
    for scenario, name in ((SCENARIO, "runs"), (PRECISE, "precision")):
        study = begun(scenario, tmp_path / name)
        done = [work(study, shard=Shard(index, 3)).executed for index in (2, 0, 1)]

        assert min(done) > 0
        assert sum(done) == sum(1 for _ in study.store.executed()) == len(study.store.finished())
        assert bytes_of(study.result(), tmp_path) == bytes_of(farlink.run(scenario), tmp_path)


def test_a_unit_that_ends_its_worker_three_times_is_set_aside_and_the_rest_goes_on(here, tmp_path):
    here.crashes = {("packet", 0.001, 2): 3, ("packet", 0.002, 0): 2}
    study = begun(SCENARIO, tmp_path / "out")
    said = []

    outcome = work(study, tell=said.append)

    assert (outcome.executed, outcome.set_aside) == (8, 1)
    assert said == ["set aside: packet, point 1 (link.channel.loss = 0.001), runs 2 to 3: killed, 3 times"]
    (failure,) = study.status().failures
    assert (failure["point"], failure["runs"], failure["error"]) == (1, "runs 2 to 3", "killed, 3 times")
    result = study.result()
    assert result.interrupted
    assert [entry["runs"] for entry in result.summary() if entry["flow"] == "all"] == [6, 2, 6]
    # Given again, it is tried again.
    assert work(study).executed == 1
    assert study.status().failures == []
    assert not study.result().interrupted


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (ModuleNotFoundError("No module named 'farlink'", name="farlink"), "a worker has no farlink"),
        (RuntimeError("deserialisation: No module named 'farlink.study'"), "a worker has no farlink"),
        (CancelledError(), "the units under way were cancelled"),
    ],
)
def test_an_executor_that_can_do_nothing_ends_the_study(here, tmp_path, monkeypatch, error, message):
    def fail(_function, *_arguments):
        future = Future()
        future.set_exception(error)
        return future

    monkeypatch.setattr(here, "submit", fail)
    study = begun(SCENARIO, tmp_path / "out")
    with pytest.raises(StudyError, match=message):
        work(study)
    assert study.status().failures == []


@pytest.mark.usefixtures("here")
def test_unlike_rows_under_one_key_are_an_error_that_names_it(tmp_path):
    study = begun(SCENARIO, tmp_path / "out")
    work(study)
    unit = next(study.plan.planned())
    content = study.store.read(unit.key)
    other = dict(content.rows) | {"goodput_bps": content.rows["goodput_bps"] + 1}

    with pytest.raises(StudyError, match=f"unit {unit.key} was computed twice with unlike rows"):
        study.store.write(unit.key, type(content)(other, None, [], [], content.build))
    assert study.store.read(unit.key).digest == content.digest


def test_keys_depend_on_what_rows_depend_on_and_on_nothing_else(tmp_path):
    def keys(scenario, **options):
        study = begun(scenario, tmp_path / f"out-{random.getrandbits(64):x}", **options)
        return [unit.key for unit in study.plan.planned()]

    usual = keys(SCENARIO)
    assert len({*usual}) == len(usual)
    assert keys({**SCENARIO, "title": "another"}) == usual
    assert keys({**SCENARIO, "limits": {"cpu_s": 1e6}}) == usual
    # The same with a default written out, and with one point less.
    assert keys({**SCENARIO, "flow": {"bulk": {**SCENARIO["flow"]["bulk"], "count": 1}}}) == usual
    fewer = keys(SCENARIO, set={"grid.link.channel.loss": [0.001, 0.002]})
    assert {*fewer} < {*usual}
    assert not {*keys(SCENARIO, seed=2)} & {*usual}
    assert not {*keys(SCENARIO, set={"link.rate_bps": 2e6})} & {*usual}


def test_a_trace_file_counts_by_its_content(here, tmp_path):
    trace = tmp_path / "losses.npz"
    lost = np.array([0, 0, 1, 0, 0, 0, 0, 1, 0, 0] * 20, dtype=bool)
    write(Trace("packet-loss", {"lost": lost, "segment_start": np.array([0])}, {}), trace)
    channel = {"kind": "packet-trace", "file": str(trace)}
    scenario = {**SCENARIO, "link": {**SCENARIO["link"], "channel": channel}, "grid": {"link.delay_s": [0.05, 0.1]}}
    study = begun(scenario, tmp_path / "out")
    assert work(study).executed == 6
    assert bytes_of(study.result(), tmp_path) == bytes_of(farlink.run(scenario), tmp_path)

    write(Trace("packet-loss", {"lost": ~lost, "segment_start": np.array([0])}, {}), trace)
    with pytest.raises(StudyError, match=r"losses.npz has changed since the study in .* began"):
        begun(scenario, tmp_path / "out")
    for file in (tmp_path / "out" / "units").rglob("*.parquet"):
        file.unlink()
    with pytest.raises(StudyError, match=r"losses.npz has changed since the study began"):
        work(study)
    job = study.plan.job(next(study.plan.planned()))
    trace.unlink()
    answer = run_unit(str(tmp_path / "out"), job)
    assert answer["error"] == "file"
    assert f"cannot read {trace}" in answer["message"]
    assert here.units


@pytest.mark.usefixtures("here")
def test_folders_of_something_else_are_refused_and_stay(tmp_path):
    begun(SCENARIO, tmp_path / "out")
    description = (tmp_path / "out" / "study.json").read_text()
    with pytest.raises(StudyError, match=r"is of another study: link.rate_bps is 1000000.0 there and 2000000.0 here"):
        begun(SCENARIO, tmp_path / "out", set={"link.rate_bps": 2e6})
    with pytest.raises(StudyError, match="is of a study with the engines packet, not model"):
        begun(SCENARIO, tmp_path / "out", engine="model")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("all of it")
    with pytest.raises(StudyError, match="is not empty, and not the folder of a study"):
        begun(SCENARIO, tmp_path / "mine")
    with pytest.raises(StudyError, match="is not the folder of a study"):
        studies.open(tmp_path / "mine")
    with pytest.raises(StudyError, match="engines: live cannot be divided into units"):
        begun(SCENARIO, tmp_path / "live", engine="live")
    with pytest.raises(ScenarioError, match=r"grid.*-1"):
        begun({**SCENARIO, "grid": {"link.delay_s": [0.1, -1]}}, tmp_path / "refused")
    assert not (tmp_path / "refused").exists()
    assert (tmp_path / "out" / "study.json").read_text() == description
    for text in ("", "{", "[]", '{"format": 2}', '{"format": 1}', '{"format": 1, "scenario": 3}'):
        (tmp_path / "out" / "study.json").write_text(text)
        with pytest.raises(StudyError):
            studies.open(tmp_path / "out")
    other = json.loads(description) | {"build": "0" * 64}
    (tmp_path / "out" / "study.json").write_text(json.dumps(other))
    with pytest.raises(StudyError, match=f"is of build {'0' * 12}, and this is build"):
        begun(SCENARIO, tmp_path / "out")


def test_a_changed_study_takes_over_what_still_holds(here, tmp_path):
    first = begun(SCENARIO, tmp_path / "out")
    work(first)
    here.units.clear()
    more = {**SCENARIO, "runs": 8, "grid": {"link.channel.loss": [0.001, 0.002, 0.003]}}

    second = OpenedStudy.begun(farlink.engines.prepare(more), tmp_path / "out2", earlier=first.store)
    outcome = work(second, earlier=first.store)

    # Three units at each of two points are there; one more at each, and four at the new one.
    assert (outcome.there, outcome.executed) == (6, 6)
    assert bytes_of(second.result(), tmp_path) == bytes_of(farlink.run(more), tmp_path)


@pytest.mark.usefixtures("here")
def test_two_coordinators_exclude_each_other_except_as_shards(tmp_path):
    from farlink.study.drive import _alone

    study = begun(SCENARIO, tmp_path / "out")
    with _alone(study, None, print), pytest.raises(StudyError, match=rf"is being worked on by process {os.getpid()} on "):
        work(study)
    with _alone(study, Shard(0, 2), print):
        assert work(study, shard=Shard(1, 2)).executed > 0
        for again in (None, Shard(0, 2)):
            with pytest.raises(StudyError, match="is being worked on by"):
                work(study, shard=again)


@pytest.mark.parametrize("text", ["4/4", "0/0", "1", "a/b", "-1/2", "1/", "1/2/3"])
def test_shards_that_cannot_be_are_refused(text):
    with pytest.raises(StudyError, match=f"--shard {text}: ") as refusal:
        Shard.parse(text)
    assert refusal.value.remedy


def test_a_worker_of_another_build_does_nothing(tmp_path):
    study = begun(SCENARIO, tmp_path / "out")
    job = study.plan.job(next(study.plan.planned())) | {"build": "0" * 64}

    answer = run_unit(str(tmp_path / "out"), job)

    assert answer["error"] == "build"
    assert "the study is of build 000000000000" in answer["message"]
    assert Store(tmp_path / "out").finished() == set()


def test_a_full_disk_stops_the_study_and_leaves_no_part_of_a_file(here, tmp_path, monkeypatch):
    study = begun(SCENARIO, tmp_path / "out")
    fsync, calls = os.fsync, []

    def full(handle):
        calls.append(handle)
        if len(calls) > 6:
            raise OSError(28, "No space left on device")
        fsync(handle)

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StudyError, match=r"cannot write to .*: No space left on device"):
        work(study)
    monkeypatch.undo()
    assert all(study.store.read(key) for key in study.store.finished())
    assert not [file for file in (tmp_path / "out" / "units").rglob(".*") if file.is_file()]
    assert here.units


def test_rows_that_do_not_fit_the_disk_are_refused(tmp_path, monkeypatch):
    study = begun({**SCENARIO, "runs": 30}, tmp_path / "out")
    monkeypatch.setattr("farlink.study.coordinate._SIZED", 1)
    monkeypatch.setattr("shutil.disk_usage", lambda _folder: type("Usage", (), {"free": 10})())
    object.__setattr__(study.plan, "runs_per_unit", 2)
    with pytest.raises(StudyError, match=r"44 units of \d+ bytes do not fit the disk"):
        work(study, workers=1)


def test_files_of_units_are_believed_only_whole(here, tmp_path):
    study = begun(PRECISE, tmp_path / "out")
    work(study)
    assert here.units
    draw = random.Random(7)
    keys = sorted(study.store.finished())
    for key in keys[:3] + keys[-3:]:
        path = study.store.unit_path(key)
        whole = path.read_bytes()
        for _ in range(20):
            damaged = bytearray(whole)
            for _ in range(draw.randint(1, 3)):
                damaged[draw.randrange(len(damaged))] ^= draw.randint(1, 255)
            path.write_bytes(bytes(damaged))
            if damaged != whole:
                with pytest.raises(DamagedUnit):
                    study.store.read(key)
                with pytest.raises(DamagedUnit):
                    study.store.check(key)
        other = next(one for one in keys if one != key)
        path.write_bytes(study.store.unit_path(other).read_bytes())
        for look in (study.store.read, study.store.check):
            with pytest.raises(DamagedUnit, match=f"it is of the unit {other[:12]}"):
                look(key)
        path.write_bytes(whole)
        study.store.check(key)


COORDINATOR = """
import sys
from pathlib import Path
from farlink.cli import main
sys.argv = ["farlink", "sweep", "study.toml", "-o", "out", "--workers", "2"]
main()
"""


def test_a_killed_coordinator_and_a_killed_worker_lose_units_under_way_only(tmp_path):
    (tmp_path / "study.toml").write_text(small_study.text(runs=60))
    study = small_study.begun_in_pairs(tmp_path / "study.toml", tmp_path / "out")
    total = 60
    coordinator = subprocess.Popen([sys.executable, "-c", COORDINATOR], cwd=tmp_path, stderr=subprocess.PIPE)
    try:
        until = time.monotonic() + 300
        while len(study.store.finished()) < 5 and time.monotonic() < until:
            time.sleep(0.02)
        workers = [int(path.stem.rpartition("-")[2]) for path in (tmp_path / "out" / "workers").glob("*.log")]
        os.kill(workers[0], signal.SIGKILL)
        while len(study.store.finished()) < 12 and time.monotonic() < until:
            time.sleep(0.02)
    finally:
        coordinator.kill()
        coordinator.communicate()

    done = subprocess.run([sys.executable, "-c", COORDINATOR], cwd=tmp_path, capture_output=True, text=True, timeout=300)

    assert done.returncode == 0, done.stderr
    executed = sum(1 for _ in study.store.executed())
    assert len(study.store.finished()) == total
    # Two workers have one unit each under way: when one is killed, and when the coordinator is.
    assert total <= executed <= total + 4
    assert bytes_of(studies.open(tmp_path / "out").result(), tmp_path) == bytes_of(
        farlink.run(tmp_path / "study.toml"), tmp_path
    )


def test_a_worker_that_dies_fails_its_own_unit_only(tmp_path):
    study = begun(SCENARIO, tmp_path / "out")
    job = study.plan.job(next(study.plan.planned()))
    with LocalWorkers(1) as workers:
        assert workers.submit(run_unit, str(tmp_path / "out"), job).result()["bytes"] > 0
        (process,) = workers._processes
        process.kill()
        process.wait()
        assert workers.submit(run_unit, str(tmp_path / "out"), job).result()["bytes"] > 0


def test_samples_are_drawn_within_their_ranges_and_as_the_seed_says():
    data = {
        "runs": 1,
        "sample": {
            "kind": "sobol",
            "points": 16,
            "seed": 3,
            "range": {
                "link.channel.ber": {"from": 1e-8, "to": 1e-4, "scale": "log"},
                "link": {"delay_s": {"from": 0.1, "to": 0.2}},
            },
        },
    }
    scenario = farlink.Scenario(data)

    first, again = drawn(data, scenario), drawn(data, scenario)

    (zipped,) = first.data["grid_zip"]
    assert first.data == again.data
    assert "sample" not in first.data
    assert [len(values) for values in zipped.values()] == [16, 16]
    assert all(1e-8 <= ber <= 1e-4 for ber in zipped["link.channel.ber"])
    # One point in each sixteenth of a logarithmic range.
    places = sorted(int(4 * (math.log10(ber) + 8)) for ber in zipped["link.channel.ber"])
    assert places == list(range(16))
    assert all(0.1 <= delay <= 0.2 for delay in zipped["link.delay_s"])
    assert drawn({**data, "sample": {**data["sample"], "seed": 4}}, scenario).data != first.data


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (3, "sample: 3 is no table"),
        ({"kinds": 1}, "sample.kinds is not known"),
        ({"kind": "grid"}, "sample.kind: 'grid' is not known"),
        ({"points": 0}, "sample.points: 0 is not a whole number"),
        ({"kind": "sobol", "points": 12}, "sample.points: 12 is no power of 2"),
        ({"points": 4}, "sample.range: nothing varies"),
        ({"points": 4, "range": {"link.delay_s": [1, 2]}}, 'sample.range."link.delay_s": [1, 2] is no range'),
        ({"points": 4, "range": {"a.b": {"from": 2, "to": 1}}}, 'sample.range."a.b": 2 to 1 is no range'),
        (
            {"points": 4, "range": {"a": {"from": 0, "to": 1, "scale": "log"}}},
            'sample.range."a": no logarithmic scale begins at 0',
        ),
        (
            {"points": 4, "range": {"a": {"from": 0, "to": 1, "scale": "cubic"}}},
            "sample.range.\"a\": the scale 'cubic' is not known",
        ),
    ],
)
def test_samples_that_cannot_be_are_refused(table, message):
    data = {"sample": table}
    with pytest.raises(ScenarioError) as refusal:
        drawn(data, farlink.Scenario(data))
    assert str(refusal.value).startswith(message)

"""`farlink sweep` and `farlink scenarios` as typed."""

from __future__ import annotations

import json
import time

import pytest
from tests import small_study
from tests.conftest import ROOT, assert_refused

STUDY = f'title = "a small study"{small_study.text(runs=6)}'
SAMPLE = (
    STUDY.replace('grid."link.channel.loss" = [0.001, 0.01]', "")
    + """
[sample]
points = 4
range."link.channel.loss" = { from = 1e-4, to = 1e-2, scale = "log" }
"""
)


@pytest.fixture
def study(tmp_path):
    (tmp_path / "study.toml").write_text(STUDY)
    return tmp_path


def test_a_study_is_run_shown_resumed_and_written(farlink, study):
    first = farlink("sweep", "study.toml", "-o", "out", "--workers", "1")
    again = farlink("sweep", "run", "study.toml", "-o", "out")
    status = farlink("sweep", "status", "out")
    result = farlink("sweep", "result", "out", "--parquet", "a.parquet", "--json", "-")
    farlink("run", "study.toml", "--parquet", "b.parquet")

    assert (first.returncode, first.stdout) == (0, "")
    assert first.stderr.splitlines() == ["2 units executed, 0 were there, 0 set aside", "the result: farlink sweep result out"]
    assert again.stderr.splitlines()[0] == "0 units executed, 2 were there, 0 set aside"
    assert status.stdout.splitlines()[0] == "Done       2 of 2 units"
    assert len(json.loads(result.stdout)["rows"]) == 24
    assert (study / "a.parquet").read_bytes() == (study / "b.parquet").read_bytes()


@pytest.mark.usefixtures("study")
def test_a_part_that_ends_says_what_other_parts_have_yet_to_do(farlink):
    first = farlink("sweep", "study.toml", "-o", "out", "--workers", "1", "--shard", "1/2")
    second = farlink("sweep", "study.toml", "-o", "out", "--workers", "1", "--shard", "0/2")

    assert first.stderr.splitlines() == [
        "1 units executed, 0 were there, 0 set aside",
        "1 of 2 units are missing, of other parts: farlink sweep status out",
    ]
    assert second.stderr.splitlines()[-1] == "the result: farlink sweep result out"


def test_bad_input_is_named_and_nothing_is_overwritten(farlink, study):
    farlink("sweep", "study.toml", "-o", "out", "--workers", "1")
    (study / "mine").mkdir()
    (study / "mine" / "notes.txt").write_text("mine")
    large = STUDY.replace("[0.001, 0.01]", str([1e-6 * i for i in range(3000)]))
    (study / "large.toml").write_text(large + f'grid."link.delay_s" = {[0.001 * i for i in range(4000)]}\n')
    changed = ["--set", "link.rate_bps=2e6"]
    both = ["--executor", "tcp://h:1", "--workers", "2"]
    for arguments, said in (
        (["study.toml", "-o", "out", *changed], ["link.rate_bps is 1000000.0 there and 2000000.0 here", "--as DIR2"]),
        (["study.toml", "-o", "mine"], ["mine is not empty"]),
        (["study.toml", "-o", "out", "--shard", "4/4"], ["--shard 4/4: there is no such part", "0/4 to 3/4"]),
        (["study.toml", "-o", "out", "--shard", "0/0"], ["--shard 0/0: there is no such part", "0/1"]),
        (["study.toml", "-o", "/proc/out"], ["/proc"]),
        (["large.toml", "-o", "large"], ["3000 x 4000 points are more than 10000000"]),
        (["none.toml", "-o", "out2"], ["cannot read scenario none.toml", "farlink scenarios copy"]),
        (["study.toml", "-o", "out2", "--executor", "somewhere"], ["--executor somewhere: not the address", "tcp://host:8786"]),
        (["study.toml", "-o", "out2", *both], ["--workers and --executor exclude each other"]),
        (["status", "mine"], ["mine is not the folder of a study"]),
        (["result", "none"], ["none is not the folder of a study"]),
    ):
        assert_refused(farlink("sweep", *arguments), said)
    assert [path.name for path in (study / "mine").iterdir()] == ["notes.txt"]


@pytest.mark.usefixtures("study")
def test_a_changed_study_goes_on_elsewhere_with_what_still_holds(farlink):
    farlink("sweep", "study.toml", "-o", "out", "--workers", "1")
    more = ["--set", "grid.link.channel.loss=[0.001, 0.003]"]

    done = farlink("sweep", "study.toml", "-o", "out", "--as", "out2", "--workers", "1", *more)

    assert done.stderr.splitlines()[0] == "1 units executed, 1 were there, 0 set aside"
    assert farlink("sweep", "status", "out").stdout.splitlines()[0] == "Done       2 of 2 units"


@pytest.mark.usefixtures("study")
def test_a_scheduler_that_is_not_there_is_named_within_ten_seconds(farlink):
    pytest.importorskip("distributed")
    begin = time.monotonic()
    done = farlink("sweep", "study.toml", "-o", "out", "--executor", "tcp://127.0.0.1:1")

    assert_refused(done, ["there is no scheduler at tcp://127.0.0.1:1", "dask scheduler"])
    assert time.monotonic() - begin < 60


def test_points_are_drawn(farlink, study):
    pytest.importorskip("scipy")
    (study / "sample.toml").write_text(SAMPLE)

    done = farlink("sweep", "sample.toml", "-o", "out", "--runs", "1", "--workers", "1")

    assert done.stderr.splitlines()[0] == "4 units executed, 0 were there, 0 set aside"
    assert json.loads((study / "out" / "study.json").read_text())["drawn"]["points"] == 4
    assert farlink("sweep", "sample.toml", "-o", "out", "--runs", "1").stderr.startswith("0 units executed, 4 were there")


def test_the_job_of_slurm_is_an_array_of_shards(farlink, study):
    done = farlink("sweep", "script", "study.toml", "-o", "/shared/my out", "--jobs", "100", "--hours", "2")

    assert done.returncode == 0
    assert "#SBATCH --array=0-99\n" in done.stdout
    assert "#SBATCH --time=120\n" in done.stdout
    shard = '--shard "$SLURM_ARRAY_TASK_ID/$SLURM_ARRAY_TASK_COUNT"'
    assert done.stdout.endswith(f"exec farlink sweep study.toml -o '/shared/my out' --workers 1 {shard}\n")
    assert study.exists()


def test_scenarios_come_with_farlink_and_run_where_they_are_copied(farlink, tmp_path):
    listed = farlink("scenarios").stdout
    copied = farlink("scenarios", "copy", "geo-tcp", "rain-geo", "--to", "mine")

    names = {path.stem for path in (ROOT / "scenarios").glob("*.toml")}
    assert {line.split()[0] for line in listed.splitlines()} == names
    assert copied.stderr.splitlines() == ["scenario: mine/geo-tcp.toml", "scenario: mine/rain-geo.toml"]
    ran = farlink("run", "mine/rain-geo.toml", "--set", "duration_s=1", "--runs", "1")
    assert ran.returncode == 0, ran.stderr
    assert farlink("scenarios", "copy", "geo-tcp", "--to", "mine").returncode == 0, "the same file may be there"
    (tmp_path / "mine" / "geo-tcp.toml").write_text("changed")
    assert_refused(farlink("scenarios", "copy", "geo-tcp", "--to", "mine"), ["mine/geo-tcp.toml is there already"])
    assert (tmp_path / "mine" / "geo-tcp.toml").read_text() == "changed"
    assert_refused(farlink("scenarios", "copy", "geo-tpc"), ["there is no scenario 'geo-tpc'", "did you mean 'geo-tcp'?"])

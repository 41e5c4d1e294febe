"""A study as an array of SLURM's own: what `farlink sweep script --slurm` prints, by `sbatch`, with a task that is killed."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import pytest

import farlink
from farlink import study as studies
from tests.peers import slurm
from tests.small_study import begun_in_pairs

pytestmark = [
    pytest.mark.peer("slurm"),
    pytest.mark.skipif(bool(slurm.missing()), reason=slurm.missing()),
    pytest.mark.skipif(not os.environ.get("FARLINK_PEERS"), reason="SLURM's daemons are started by make peers"),
]

STUDY = """
duration_s = 120
runs = 40
link = { rate_bps = 1e7, delay_s = 0.05, channel = { kind = "loss", loss = 0.001 } }
transport.tcp.kind = "tcp"
flow.bulk = { transport = "tcp", traffic = { kind = "bulk" } }
grid."link.channel.loss" = [0.0003, 0.001, 0.003]
"""
TASKS = 4
UNITS = 60


def waited_for(condition, seconds=600.0):
    """Look again and again."""
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until, "it takes too long"
        time.sleep(0.3)


@pytest.fixture
def folder(tmp_path):
    """A study of sixty short units, and a folder beside it for a `farlink` of this Python."""
    (tmp_path / "study.toml").write_text(STUDY)
    begun_in_pairs(tmp_path / "study.toml", tmp_path / "out")
    (tmp_path / "bin").mkdir()
    command = tmp_path / "bin" / "farlink"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m farlink.cli "$@"\n')
    command.chmod(0o755)
    (tmp_path / "slurm").mkdir()
    return tmp_path


def test_an_array_of_slurm_has_the_rows_of_one_process_also_when_a_task_is_killed(folder):
    command = [str(folder / "bin" / "farlink"), "sweep", "script", "study.toml", "-o", "out", "--slurm", "--jobs", str(TASKS)]
    script = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True).stdout
    (folder / "job.sh").write_text(script)
    assert f"#SBATCH --array=0-{TASKS - 1}\n" in script
    store = studies.open(folder / "out").store

    with slurm.cluster(folder / "slurm", str(folder / "bin")) as cluster:
        first = cluster.submit(folder / "job.sh")
        waited_for(lambda: len(list(store.executed())) >= 8)
        cluster.command("scancel", "--signal=KILL", "--full", f"{first}_1")
        waited_for(lambda: not cluster.waits())
        at_kill = len(store.finished())
        second = cluster.submit(folder / "job.sh")
        waited_for(lambda: not cluster.waits())

    said = {path.name: path.read_text() for path in sorted(folder.glob("slurm-*.out"))}
    assert [*said] == sorted(f"slurm-{job}_{task}.out" for job in (first, second) for task in range(TASKS))
    assert "units executed" not in said[f"slurm-{first}_1.out"]
    assert at_kill < UNITS
    # The tasks that were left alone have nothing to do the second time.
    for task in (0, 2, 3):
        assert "15 units executed, 0 were there" in said[f"slurm-{first}_{task}.out"]
        assert "0 units executed, 15 were there" in said[f"slurm-{second}_{task}.out"]
    executed = [one["key"] for one in store.executed()]
    assert {*executed} == store.finished()
    # The task that was killed had one unit under way.
    assert UNITS == len({*executed}) <= len(executed) <= UNITS + 1
    studies.open(folder / "out").result().to_parquet(folder / "array.parquet")
    farlink.run(folder / "study.toml").to_parquet(folder / "whole.parquet")
    assert (folder / "array.parquet").read_bytes() == (folder / "whole.parquet").read_bytes()

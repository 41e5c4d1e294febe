"""Studies in folders that fill up, cannot be written, have no locks, and whose workers die: with real disks and processes."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from contextlib import suppress

import pytest
from tests import small_study
from tests.conftest import assert_refused
from tests.small_study import begun_in_pairs

import farlink
from farlink.errors import StudyError
from farlink.study import locks
from farlink.study.drive import work
from farlink.study.opened import OpenedStudy

UNITS = 20


@pytest.fixture
def study_file(tmp_path):
    (tmp_path / "study.toml").write_text(small_study.text(runs=20))
    return tmp_path / "study.toml"


@pytest.fixture
def disk(tmp_path):
    """Mounts a small disk, or gives it another size or right; it is empty at first."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = []

    def mount(options):
        command = ["mount", "-t", "tmpfs", "-o", f"{'remount,' if mounted else ''}{options}", "tmpfs", folder]
        if os.geteuid() != 0 or subprocess.run(command, check=False, capture_output=True).returncode:
            pytest.skip("a small disk wants root, and mount")
        mounted.append(options)
        return folder

    yield mount
    if mounted:
        subprocess.run(["umount", "--lazy", folder], check=True)


def assert_whole(study, study_file):
    """Its rows are those of one process, to the byte."""
    here = study_file.parent
    study.result().to_parquet(here / "a.parquet")
    farlink.run(study_file).to_parquet(here / "b.parquet")
    assert (here / "a.parquet").read_bytes() == (here / "b.parquet").read_bytes()


def test_a_disk_that_fills_half_way_stops_the_study_which_goes_on_when_there_is_room(disk, study_file):
    folder = disk("size=4m") / "out"
    study = begun_in_pairs(study_file, folder)

    def fill(done, _all):
        """Another program takes what is left."""
        if done >= UNITS // 2 and not (folder.parent / "other").exists():
            with (folder.parent / "other").open("wb", buffering=0) as file, suppress(OSError):
                while file.write(bytes(1 << 12)):
                    pass
            assert os.statvfs(folder).f_bfree == 0

    with pytest.raises(StudyError, match="No space left on device") as refusal:
        work(study, workers=1, progress=fill)

    assert "the same command again" in refusal.value.remedy
    done = study.store.finished()
    assert UNITS // 2 <= len(done) < UNITS
    for key in done:
        study.store.check(key)
    assert not [path for path in (folder / "units").rglob(".*") if path.is_file()]
    (folder.parent / "other").unlink()
    assert work(study, workers=1).executed == UNITS - len(done)
    assert_whole(study, study_file)


def test_a_study_that_does_not_fit_the_disk_says_so_after_its_first_units(disk, study_file):
    folder = disk("size=300k") / "out"
    study = begun_in_pairs(study_file, folder)

    with pytest.raises(StudyError, match=r"1\d units of \d+ bytes do not fit the disk") as refusal:
        work(study, workers=1)

    assert "GB are needed" in refusal.value.remedy
    disk("size=4m")
    assert work(study, workers=1).set_aside == 0
    assert_whole(study, study_file)


def test_a_folder_that_cannot_be_written_is_named_and_its_result_can_still_be_read(disk, study_file, farlink):
    folder = disk("size=4m") / "out"
    work(begun_in_pairs(study_file, folder), workers=1)
    content = sorted(path.name for path in folder.rglob("*"))
    disk("ro")

    for output in ("disk/out", "disk/new"):
        assert_refused(farlink("sweep", "study.toml", "-o", output), ["Read-only file system", "choose a"])
    assert farlink("sweep", "status", "disk/out").stdout.startswith(f"Done       {UNITS} of {UNITS} units")
    assert farlink("sweep", "result", "disk/out", "--parquet", "c.parquet").returncode == 0
    assert sorted(path.name for path in folder.rglob("*")) == content


def test_a_file_system_without_locks_is_named_and_two_at_once_do_no_harm(tmp_path, study_file, monkeypatch):
    def refuse(*_arguments):
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(locks.fcntl, "flock", refuse)
    study, said = begun_in_pairs(study_file, tmp_path / "out"), []
    second = []

    def also(done, _all):
        """A second coordinator, in the middle of the first one's work."""
        if done >= UNITS // 2 and not second:
            second.append(work(OpenedStudy.at(tmp_path / "out"), workers=1))

    first = work(study, workers=1, tell=said.append, progress=also)

    assert said == [
        f"{tmp_path / 'out'} is on a file system without locks: see to it that nobody else works on it, except by --shard"
    ]
    assert (first.set_aside, second[0].set_aside) == (0, 0)
    assert first.executed + first.there == second[0].executed + second[0].there == UNITS
    assert_whole(study, study_file)


# A worker of farlink's own, whom the system ends as soon as it begins the unit of run 4 at the first point.
WORKER = """
import json, os, signal, sys
from farlink.study import worker
run_unit = worker.run_unit
def run(folder, job):
    if job["first_run"] == 4 and json.loads(job["scenario"])["link"]["channel"]["loss"] == 0.001:
        os.kill(os.getpid(), signal.SIGKILL)
    return run_unit(folder, job)
worker.run_unit = run
worker.main(sys.argv[-1])
"""


def test_a_unit_that_kills_its_worker_is_set_aside_after_three_workers_and_the_rest_goes_on(tmp_path, study_file, monkeypatch):
    study, said = begun_in_pairs(study_file, tmp_path / "out"), []
    (tmp_path / "worker.py").write_text(WORKER)
    deadly = tmp_path / "python"
    deadly.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{tmp_path}/worker.py" "$@"\n')
    deadly.chmod(0o755)
    with monkeypatch.context() as patch:
        patch.setattr(sys, "executable", str(deadly))
        outcome = work(study, workers=1, tell=said.append)

    assert (outcome.executed, outcome.set_aside) == (UNITS - 1, 1)
    assert said == [
        "set aside: packet, point 0 (link.channel.loss = 0.001), runs 4 to 5: its worker ended by signal 9, 3 times"
    ]
    # Three workers died, and a fourth did the rest: those that died before their first unit have no log.
    assert 1 <= len(list((tmp_path / "out" / "workers").glob("*.log"))) <= 4
    assert work(study, workers=1).executed == 1
    assert_whole(study, study_file)

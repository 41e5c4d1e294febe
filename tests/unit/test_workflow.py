"""The hosted CI workflow calls existing make targets."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

yaml = pytest.importorskip("yaml")

ROOT = Path(__file__).resolve().parents[2]
JOBS = yaml.safe_load((ROOT / ".github" / "workflows" / "checks.yml").read_text(encoding="utf-8"))["jobs"]


@pytest.mark.parametrize("job", JOBS)
def test_ci_jobs_call_targets_of_the_makefile(job):
    commands = [step["run"] for step in JOBS[job]["steps"] if "run" in step]
    called = {target for command in commands for target in re.findall(r"\bmake ([\w-]+)", command)}
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))

    assert called
    assert called <= targets


def test_the_ci_compiler_is_at_least_the_required_version():
    asked = re.search(r'rust-version = "1\.(\d+)"', (ROOT / "Cargo.toml").read_text(encoding="utf-8"))

    for job in JOBS.values():
        given = re.fullmatch(r"rust:1\.(\d+)(?:\.\d+)?-bookworm", job["container"])
        assert int(given[1]) >= int(asked[1])


def test_ci_and_contributors_run_the_same_targets():
    run = (ROOT / ".ci" / "run").read_text(encoding="utf-8")

    assert "make test" in run
    assert {"run": "make test"} in JOBS["test"]["steps"]

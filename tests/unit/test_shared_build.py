"""The wheel of the tests and the tests of Rust share their crates: with other features cargo would compile them twice."""

from __future__ import annotations

import re
import shutil
import subprocess

import pytest
from tests.conftest import ROOT

# They are compiled for the wheel only: nothing else of the workspace has Python in it.
OF_PYTHON = {"farlink-py", "pyo3", "pyo3-ffi"}


def crates(*arguments: str) -> set[str]:
    """Each crate with its version and features, as a build with these arguments has it."""
    command = ["cargo", "tree", "--quiet", "--locked", "--prefix", "none", "--no-dedupe", "--format", "{p} [{f}]", *arguments]
    return set(subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.splitlines())


def test_the_wheel_adds_no_crate_to_those_of_the_tests_of_rust():
    if shutil.which("cargo") is None:
        pytest.skip("cargo is missing")
    features = re.search(r"^FEATURES_dev = (.+)$", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)[1].split()

    of_tests = crates("--workspace", "--edges", "normal,build,dev")
    of_wheel = crates("--package", "farlink-py", "--edges", "normal", *features)

    assert {crate for crate in of_wheel - of_tests if crate.split()[0] not in OF_PYTHON} == set(), (
        "add to the feature `tests` of farlink-py what the tests of Rust need of these"
    )

"""Hostile files: every command ends with its result or an error of two lines, within bounds of memory and time."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.conftest import ROOT
from tests.hostile.attack import PARTS

pytestmark = pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="memory is measured as Linux tells it")


@pytest.mark.slow
# The longest of them takes a minute.
@pytest.mark.parametrize(
    "part", [pytest.param(part, marks=pytest.mark.nightly) if part == "measured" else part for part in PARTS]
)
def test_hostile_files_do_no_harm(part, tmp_path):
    pytest.importorskip("matplotlib")
    for module in ("pyarrow", "h5py", "scipy"):
        pytest.importorskip(module)
    command = [sys.executable, "-m", "tests.hostile.attack", part]
    paths = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    done = subprocess.run(command, cwd=tmp_path, env={**os.environ, "PYTHONPATH": paths}, capture_output=True, check=False)

    said = [json.loads(line) for line in done.stdout.splitlines()]
    harm = {one["name"]: one["wrong"] for one in said if one["wrong"]}
    # A killed process prints no further cases.
    assert done.returncode == 0, f"after {said[-1]['name'] if said else 'nothing'}: {done.stderr.decode()[-2000:]}"
    assert len(said) >= 20
    assert not harm

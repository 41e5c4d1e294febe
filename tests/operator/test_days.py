"""A day of both operators, in seconds; `make soak` has thirty."""

from __future__ import annotations

import json
import os
import subprocess
import sys

from tests.conftest import ROOT


def test_a_day_of_troubles_leaves_nothing_stuck():
    """Never stuck, no secret shown, no transition missing, budgets kept: those are checks of the program itself."""
    command = [sys.executable, "-m", "tests.operator.days", "--days", "1"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, env={**os.environ, "SEED": "1"})

    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(done.stdout)
    assert {"dead_port", "modem", "full_disk", "clock_jump", "sleep", "zone"} <= set(found["troubles"])
    assert found["corrupted"] > 50
    assert found["full_disk_seen"] > 0
    # A call may drop when its link is up at one end only.
    assert abs(found["near"]["connected"] - found["far"]["connected"]) <= 3
    assert found["near"]["connected"] > 30
    assert found["near"]["dropped"] > 20

"""`import farlink` is quick: slow packages are imported on first use."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SLOW = ("matplotlib", "pandas", "polars", "pyarrow", "scipy", "h5py", "itur", "nicegui", "fastapi")


@pytest.mark.parametrize("statement", ["import farlink", "import farlink.cli", "import farlink; farlink.run, farlink.Result"])
def test_slow_packages_are_not_imported(statement):
    code = f"import sys; {statement}; print(*(name for name in {SLOW!r} if name in sys.modules))"

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.split() == []


def test_a_run_that_prints_its_table_imports_no_numpy():
    words = ["farlink", "run", "scenarios/geo-tcp.toml", "--set", "duration_s=5", "--runs", "2"]
    code = f"""if True:
        import sys
        from farlink.cli import main

        sys.argv = {words!r}
        try:
            main()
        finally:
            print("numpy" in sys.modules)
    """
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)

    assert "1e-7   sack" in done.stdout
    assert done.stdout.split()[-1] == "False"


def test_import_takes_less_than_0_3_seconds():
    code = "import time; start = time.process_time(); import farlink; farlink.run; print(time.process_time() - start)"

    times = [float(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout) for _ in range(3)]

    assert min(times) < 0.3


def test_every_public_name_can_be_imported():
    import farlink

    start = time.perf_counter()
    for name in farlink.__all__:
        assert getattr(farlink, name) is not None
    assert time.perf_counter() - start < 30
    with pytest.raises(AttributeError, match="no attribute 'rum'"):
        _ = farlink.rum

"""Fixtures of all tests: a scenario that takes milliseconds, and the command as a user types it."""

from __future__ import annotations

import importlib
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import HealthCheck, settings

from tests.warm import Programs

# No deadlines: on a loaded machine a case of a millisecond takes half a second. `make bench` measures speed.
settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("untimed")

ROOT = Path(__file__).resolve().parent.parent

SMALL = """
title = "Small"
duration_s = 20
runs = 3
seed = 7

[link]
rate_bps = 1e6
delay_s = 0.05
queue_packets = 50

[link.channel]
kind = "ber"
ber = 1e-6

[transport.reno]
kind = "tcp"
variant = "reno"

[transport.sack]
kind = "tcp"
variant = "sack"

[flow.bulk]
transport = "sack"
traffic = { kind = "bulk" }

[grid]
"link.channel.ber" = [1e-7, 1e-6, 1e-5]
"flow.bulk.transport" = ["reno", "sack"]
"""

Command = Callable[..., "subprocess.CompletedProcess[str]"]


def program_of_docs(name: str) -> ModuleType:
    """Import a program of ``docs/``, which may import others from there."""
    sys.path.insert(0, str(ROOT / "docs"))
    try:
        return importlib.import_module(name)
    finally:
        sys.path.remove(str(ROOT / "docs"))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip tests that are too long for `make test`, unless they are asked for; begin with the files of slow tests.

    After these come the files of most tests. A slow test that begins last would leave the other processes without work.
    """
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    count = Counter(item.path for item in items)
    items.sort(key=lambda item: (item.path not in slow, -count[item.path]))
    if os.environ.get("FARLINK_NIGHTLY") != "1":
        for item in items:
            if item.get_closest_marker("nightly"):
                item.add_marker(pytest.mark.skip(reason="too long for make test: FARLINK_NIGHTLY=1 includes it"))


def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> object:
    """Give a process the tests of a file together, but pages one by one, since each of them is seconds long."""
    if config.getoption("dist") != "loadfile":
        return None
    from xdist.scheduler import LoadFileScheduling

    class Scheduling(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return nodeid if "test_pages_that_run.py" in nodeid else str(super()._split_scope(nodeid))

    return Scheduling(config, log)


def pytest_make_parametrize_id(val: object) -> str | None:
    """Name a parameter of bytes by its size: its contents may include the time (gzip), but all workers need the same name."""
    return f"{len(val)}-bytes" if isinstance(val, bytes) else None


@pytest.fixture(autouse=True, scope="session")
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Use a cache folder of the tests' own, so that they neither read nor write the user's; one for all workers."""
    base = tmp_path_factory.getbasetemp()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FARLINK_CACHE", str((base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "cache"))
        yield


@pytest.fixture(autouse=True, scope="session")
def _hears_interrupts() -> Iterator[None]:
    """Handle Ctrl-C, here and in children, even if the tests run in the background of a shell, which ignores it."""
    former = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, former)


@pytest.fixture
def started(tmp_path: Path) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Start `farlink` with arguments in the test's folder; kill processes that still run when the test ends."""
    processes: list[subprocess.Popen[str]] = []

    def start(*arguments: str | Path) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "farlink.cli", *map(str, arguments)]
        process = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        processes.append(process)
        return process

    yield start
    for process in processes:
        process.kill()
        process.communicate()


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """A scenario file of two TCP versions at three bit error rates."""
    path = tmp_path / "small.toml"
    path.write_text(SMALL)
    return path


@pytest.fixture(scope="session")
def programs(_own_cache: None, _hears_interrupts: None) -> Iterator[Programs]:
    """Python programs, each a process that starts with its imports."""
    with Programs() as programs:
        yield programs


@pytest.fixture
def farlink(tmp_path: Path, programs: Programs) -> Command:
    """Run `farlink ARGUMENTS` in an empty directory."""

    def run(*arguments: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
        command = ["-m", "farlink.cli", *map(str, arguments)]
        done = programs.run(command, cwd=tmp_path, env={**os.environ, **environment}, timeout=120)
        return subprocess.CompletedProcess(command, done.returncode, done.stdout.decode(), done.stderr.decode())

    return run


def assert_refused(done: subprocess.CompletedProcess[str], said: list[str]) -> None:
    """Fail unless a command refused its input: status 2, no data, one error line and one hint, with these words."""
    assert done.returncode == 2, done
    assert done.stdout == ""
    lines = done.stderr.splitlines()
    assert len(lines) == 2, done.stderr
    assert lines[0].startswith("error: ")
    assert lines[1].startswith("hint: ")
    for words in said:
        assert words in done.stderr

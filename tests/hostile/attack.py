"""Runs commands over hostile files in this process, within bounds, and prints the outcome of each as a line of JSON.

``python -m tests.hostile.attack [PART...]``: in an empty folder, on Linux.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import traceback
from collections.abc import Callable, Iterator
from functools import cache
from importlib import import_module
from pathlib import Path

from tests.hostile import archives, measured

# Limits of a command beyond its start: address space, resident memory, and time. A trace may have 512 MB of numbers, and a text
# 512 MB; a file refused at this limit has been read once.
MOST_ADDRESSES = 8 << 30
MOST_BYTES = 1_600_000_000
MOST_S = 15.0

Case = tuple[str, str, bytes, list[str]]

_SCENARIO = """
duration_s = 1
[link]
rate_bps = 1e6
delay_s = 0.05
queue_packets = 50
[transport.tcp]
kind = "tcp"
[flow.bulk]
transport = "tcp"
traffic = { kind = "bulk" }
"""
_MODEM = '[modem]\ntitle = "none"\n'


def _shown(files: Iterator[tuple[str, bytes]]) -> Iterator[Case]:
    for name, content in files:
        yield name, "a.npz", content, ["trace", "show", "a.npz", "-o", "a.png"]


def _of(files: Iterator[tuple[str, str, bytes]], *before: str, after: tuple[str, ...] = ()) -> Iterator[Case]:
    for name, file, content in files:
        yield name, file, content, [*before, file, *after]


def _played() -> Iterator[Case]:
    """The same archives, named by a scenario and read by other commands."""
    for name, content in (*archives.of_rate(), *archives.of_arrays(), *archives.of_meta()):
        if "100,000" not in name:
            override = 'link.rate_bps={kind="rate-trace", file="a.npz"}'
            yield f"run: {name}", "a.npz", content, ["run", "s.toml", "--set", override]
    for name, content in archives.of_kinds():
        yield f"fades: {name}", "a.npz", content, ["trace", "fades", "a.npz"]
        yield f"calibrate: {name}", "a.npz", content, ["trace", "calibrate", "a.npz", "-o", "b.npz", "--ber", "1e-6"]
        adapt = ["trace", "adapt", "a.npz", "--table", "t.json", "--modem", "m.toml"]
        yield f"adapt: {name}", "a.npz", content, adapt
    for name, content in (*archives.of_rate(), *archives.of_meta()):
        yield f"import: {name}", "a.npz", content, ["trace", "import", "a.npz", "-o", "b.npz"]


def _shown_measured() -> Iterator[Case]:
    yield from _of(measured.texts(), "trace", "show", after=("-o", "a.png"))
    yield from _of(measured.archives(), "trace", "import", after=("-o", "b.npz"))
    yield from _of(measured.tables(), "trace", "show", after=("-o", "a.png"))
    yield from _of(measured.numbers(), "trace", "import", after=("-o", "b.npz"))
    yield from _of(measured.captures(), "trace", "show", after=("-o", "a.png"))


def _logged() -> Iterator[Case]:
    yield from _of(measured.logs(), "bundle", "fit", after=("--replicates", "20"))
    for name, file, content in measured.tables():
        yield f"log: {name}", file, content, ["bundle", "fit", file, "--replicates", "20"]
    yield from _of(measured.scenarios(), "run")
    for name, file, content in measured.kept_tables():
        yield name, file, content, ["trace", "adapt", "c.csv", "--table", file, "--modem", "m.toml"]


PARTS: dict[str, Callable[[], Iterator[Case]]] = {
    "archives": lambda: _shown(archives.of_rate()),
    "arrays": lambda: _shown(archives.of_arrays()),
    "meta": lambda: _shown(archives.of_meta()),
    "kinds": lambda: _shown(archives.of_kinds()),
    "played": _played,
    "measured": _shown_measured,
    "logged": _logged,
}


def main(parts: list[str]) -> None:
    """Run the cases of the named parts, or of all."""
    # The tree of commands is built once, not for each case.
    typer = import_module("typer.main")
    typer.get_command = cache(typer.get_command)
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (MOST_ADDRESSES, hard))
    Path("s.toml").write_text(_SCENARIO)
    Path("m.toml").write_text(_MODEM)
    Path("c.csv").write_text("time_s,cn0_dbhz\n0,60\n1,61\n")
    for part in parts or PARTS:
        for name, file, content, arguments in PARTS[part]():
            path = Path(file)
            path.write_bytes(content)
            del content
            said = {"part": part, "name": name, "wrong": attack(arguments)}
            print(json.dumps(said), file=sys.__stdout__, flush=True)
            path.unlink(missing_ok=True)


def attack(arguments: list[str]) -> str:
    """Run a command; return what is wrong with its outcome, or nothing."""
    from typer.testing import CliRunner

    from farlink.cli import app

    before = _reset_peak()
    start = _cpu_s()
    done = CliRunner().invoke(app, arguments)
    took_s, took_bytes = _cpu_s() - start, _peak() - before
    found = []
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        last = traceback.extract_tb(done.exception.__traceback__)[-1]
        place = f"{Path(last.filename).name}:{last.lineno}"
        found.append(f"{type(done.exception).__name__} at {place}: {str(done.exception)[:100]}")
    elif done.exit_code not in (0, 2):
        found.append(f"exit status {done.exit_code}")
    elif done.exit_code == 2:
        lines = done.stderr.splitlines()
        is_told = [line.split(":")[0] for line in lines] == ["error", "hint"]
        is_plain = all(line.isprintable() and len(line) < 3000 for line in lines)
        if not is_told or not is_plain or "fewer threads" in done.stderr:
            found.append(f"says {done.stderr[-200:]!r}")
    if "\x1b" in done.stdout or "Warning" in done.stderr:
        found.append(f"prints {(done.stdout + done.stderr)[-200:]!r}")
    if took_s > MOST_S:
        found.append(f"took {took_s:.0f} s")
    if took_bytes > MOST_BYTES:
        found.append(f"took {took_bytes / 1e6:.0f} MB")
    return "; ".join(found)


def _cpu_s() -> float:
    """CPU time of this process and its finished children, so that other work on the machine does not count."""
    own, others = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    return own.ru_utime + own.ru_stime + others.ru_utime + others.ru_stime


def _reset_peak() -> int:
    Path("/proc/self/clear_refs").write_text("5")
    return _status("VmRSS")


def _peak() -> int:
    return _status("VmHWM")


def _status(name: str) -> int:
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(name))
    return int(line.split()[1]) * 1024


if __name__ == "__main__":
    os.environ.setdefault("MPLBACKEND", "Agg")
    main(sys.argv[1:])

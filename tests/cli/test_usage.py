"""Errors before a command starts its work: wrong arguments, outputs of the wrong kind, missing libraries, Ctrl-C."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from tests.conftest import Command, assert_refused

WRONG = {
    "no argument": (["run"], ["farlink run needs SCENARIO"]),
    "no option": (["trace", "adapt", "x"], ["farlink trace adapt needs --table"]),
    "not a whole number": (["run", "x", "--runs", "abc"], ["--runs abc: not a whole number", "farlink run --help"]),
    "not a number": (["trace", "synthesize", "--duration-s=abc"], ["--duration-s abc: not a number"]),
    "out of range": (["code", "show", "--code", "171,133", "--terms", "99"], ["--terms 99: not at most 60"]),
    "unknown command": (["rnu"], ["farlink has no command rnu", "did you mean 'run'?"]),
    "unknown command of a group": (["trace", "zzz"], ["farlink trace has no command zzz", "calibrate"]),
    "unknown option": (["run", "x", "--seeed", "3"], ["farlink run has no option --seeed", "did you mean --seed?"]),
    "unknown option of all": (["--nope"], ["farlink has no option --nope"]),
    "more arguments": (["run", "a", "b", "c"], ["farlink run does not know what to do with: b c"]),
    "no value": (["code", "ber", "--code"], ["--code is given without its value", "farlink code ber --help"]),
    "value of a flag": (["papers", "--quick=3"], ["--quick", "farlink papers --help"]),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_usage_error_has_two_lines(case: str, farlink: Command) -> None:
    arguments, said = WRONG[case]

    assert_refused(farlink(*arguments), said)


def test_a_group_without_a_command_shows_its_help(farlink: Command) -> None:
    done = farlink("trace")

    assert done.returncode == 2
    assert "calibrate" in done.stdout + done.stderr
    assert "error:" not in done.stderr


OUTPUTS = {
    "json": (["run", "small.toml", "--json", "a.csv"], ["--json a.csv: no JSON file has the suffix '.csv'"]),
    "compressed": (["run", "small.toml", "--csv", "a.csv.gz"], ["no CSV file has the suffix '.gz'", "use .csv or .txt"]),
    "report": (["papers", "brodbekier", "--report", "a.png"], ["no report has the suffix '.png'"]),
    "figures in a file": (["papers", "brodbekier", "--figures", "small.toml"], ["small.toml is a file"]),
    "fades": (["trace", "fades", "x.npz", "--json", "a.csv"], ["no JSON file has the suffix '.csv'"]),
    "show": (["trace", "show", "x.npz", "-o", "a.csv"], ["no picture has the suffix '.csv'"]),
    "show, unnamed": (["trace", "show", "x.npz", "-o", "a"], ["no picture has the suffix 'nothing'"]),
    "adapt, folder": (
        ["trace", "adapt", "x.npz", "--table", "t.json", "--modem", "m.toml", "-o", "no/a"],
        ["directory no does not exist"],
    ),
    "fit": (["bundle", "fit", "x.jsonl", "-o", "a.json"], ["no TOML file has the suffix '.json'"]),
    "fit twice": (["bundle", "fit", "x.jsonl", "-o", "a.toml", "--replay", "a.toml"], ["--replay a.toml would overwrite -o"]),
    "points": (["tune", "x.toml", "--points", "a.json"], ["no CSV file has the suffix '.json'"]),
    "table over its study": (["tune", "x.toml", "-o", "x.toml"], ["-o x.toml would overwrite the study"]),
    "ber": (["code", "ber", "--code", "7,5", "--ebn0-db", "1", "--csv", "a.json"], ["no CSV file has the suffix '.json'"]),
}


@pytest.mark.parametrize("case", OUTPUTS)
@pytest.mark.usefixtures("small")
def test_an_output_of_another_format_is_refused_before_any_work(case: str, farlink: Command, tmp_path: Path) -> None:
    arguments, said = OUTPUTS[case]

    assert_refused(farlink(*arguments), said)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["small.toml"]


@pytest.mark.parametrize("name", ["a", "a-1.5", "a.JSON"])
def test_an_output_name_without_a_suffix_is_accepted(name: str, farlink: Command, small: Path, tmp_path: Path) -> None:
    done = farlink("run", small, "--runs", "1", "--json", name)

    assert done.returncode == 0, done.stderr
    assert (tmp_path / name).read_text().startswith("{")


WITHOUT = """
import sys
class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == {module!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Missing())
sys.argv = ["farlink", *{arguments!r}]
from farlink.cli import main
main()
"""


@pytest.mark.parametrize(
    ("module", "arguments", "said"),
    [
        ("pyarrow", ["run", "small.toml", "--parquet", "a.parquet"], "pip install 'farlink[parquet]'"),
        ("pyarrow", ["run", "small.toml", "--series", "a.parquet"], "pip install 'farlink[parquet]'"),
        ("pyarrow", ["trace", "synthesize", "kiodo", "-o", "a.parquet"], "pip install 'farlink[parquet]'"),
        ("matplotlib", ["run", "small.toml", "--report", "a.html"], "pip install 'farlink[plot]'"),
        ("matplotlib", ["trace", "show", "x.npz", "-o", "a.png"], "pip install 'farlink[plot]'"),
    ],
)
@pytest.mark.usefixtures("small")
def test_a_missing_library_is_noticed_before_the_run(module: str, arguments: list[str], said: str, tmp_path: Path) -> None:
    code = WITHOUT.format(module=module, arguments=arguments)

    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)

    assert_refused(done, [module, said])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["small.toml"]


INTERRUPTED = """
import signal, sys
class Interrupt:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            signal.raise_signal(signal.SIGINT)
sys.argv = ["farlink", *{arguments!r}]
signal.signal(signal.SIGINT, signal.default_int_handler)
from farlink.cli import main
sys.meta_path.insert(0, Interrupt())
main()
"""


@pytest.mark.parametrize(
    "module",
    [
        "typer",
        "farlink.cli.trace",
        "farlink._core",
        "numpy",
        "numpy.linalg",
        "farlink.channels.cache",
        "matplotlib.figure",
    ],
)
@pytest.mark.parametrize("command", ["show", pytest.param("calibrate", marks=pytest.mark.nightly)])
def test_an_interrupt_while_something_is_imported_leaves_no_traceback(module: str, command: str, tmp_path: Path) -> None:
    if (command, module) == ("calibrate", "matplotlib.figure"):
        pytest.skip("draws nothing")
    from farlink.channels.trace import Trace
    from farlink.channels.trace_file import write

    power = [1e-6 * (1 + i % 7) for i in range(500_000)]
    write(Trace("power", {"power_w": power}, {"duration_s": 500.0}), tmp_path / "x.npz")
    output, more = ("a.png", []) if command == "show" else ("a.npz", ["--ber", "1e-6"])
    code = INTERRUPTED.format(module=module, arguments=["trace", command, "x.npz", "-o", output, *more])

    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)

    assert done.returncode in (130, -2), done
    assert done.stderr in ("", "interrupted\n")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["x.npz"]


INTERRUPTED_FILE = """
import os, signal
from pathlib import Path
from farlink.cli.interrupts import listen
from farlink.output import whole_file
signal.signal(signal.SIGINT, signal.SIG_DFL)
listen()
real = os.open
def interrupted(*args, **kwargs):
    handle = real(*args, **kwargs)
    os.open = real
    signal.raise_signal(signal.SIGINT)
    return handle
os.open = interrupted
try:
    with whole_file("out.csv") as temporary:
        while True:
            pass
except KeyboardInterrupt:
    print(sorted(path.name for path in Path(".").iterdir()))
"""


def test_an_interrupt_while_a_temporary_file_is_made_leaves_none(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED_FILE], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
    )

    assert (done.returncode, done.stdout) == (0, "[]\n"), done

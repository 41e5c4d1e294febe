"""Programs that start with their imports do what the interpreter's own do."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

TELLS = """
import os, sys
print(sys.argv[1:], os.getcwd(), os.environ["SAID"], sys.stdin.read(), __name__)
print("message", file=sys.stderr)
import farlink
print(hasattr(farlink, "left_behind"))
farlink.left_behind = True
sys.exit(3)
"""


def started(arguments, folder, **options):
    done = subprocess.run([sys.executable, *arguments], cwd=folder, capture_output=True, check=False, **options)
    return done.returncode, done.stdout, done.stderr


def warm(programs, arguments, folder, **options):
    done = programs.run(arguments, cwd=folder, **options)
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ["run", "small.toml", "--set", "duration_s=5"],
        ["run", "small.toml", "--json", "-"],
        ["run", "none.toml"],
        ["run", "small.toml", "--set", "link.delay_s=-1"],
        ["run", "--help"],
        ["--version"],
        ["trace"],
        ["no-such-command"],
    ],
    ids=" ".join,
)
@pytest.mark.usefixtures("small")
def test_a_command_does_what_one_that_is_started_does(arguments, programs, tmp_path):
    command = ["-m", "farlink.cli", *arguments]

    assert warm(programs, command, tmp_path) == started(command, tmp_path)


def test_each_program_has_its_own_folder_environment_input_and_state(programs, tmp_path):
    (tmp_path / "tells.py").write_text(TELLS)
    environment = {**os.environ, "SAID": "a word"}
    expected = started(["-c", TELLS, "one", "two"], tmp_path, env=environment, input=b"given")

    assert expected[0] == 3
    for command in (["-c", TELLS], ["-c", TELLS], ["tells.py"]):
        assert warm(programs, [*command, "one", "two"], tmp_path, env=environment, given=b"given") == expected


ENDS = {
    "a message": "import sys; print('a'); sys.exit('no')",
    "a negative status": "import sys; sys.exit(-1)",
    "a thread": "import threading, time; threading.Thread(target=lambda: (time.sleep(0.1), print('late'))).start(); print('a')",
    "what is left for the end": "import atexit; atexit.register(print, 'bye'); print('a')",
    "a closed stream": "import sys; print('a'); sys.stdout.close()",
    "a full disk": "import sys; sys.stdout = open('/dev/full', 'w'); print('a')",
    "a signal": "import os; os.kill(os.getpid(), 15)",
}


@pytest.mark.parametrize("code", ENDS.values(), ids=ENDS)
def test_a_program_ends_as_one_that_is_started_does(code, programs, tmp_path):
    assert warm(programs, ["-c", code], tmp_path) == started(["-c", code], tmp_path)


def test_messages_may_stand_among_the_output(programs, tmp_path):
    done = programs.run(
        ["-c", "import os; os.write(1, b'a'); os.write(2, b'b'); os.write(1, b'c')"], cwd=tmp_path, is_merged=True
    )

    assert done.stdout == b"abc"


def test_signals_and_time_end_a_program_and_not_the_next_one(programs, tmp_path):
    assert warm(programs, ["-c", "import os; os.kill(os.getpid(), 9)"], tmp_path) == (-9, b"", b"")
    with pytest.raises(subprocess.TimeoutExpired):
        programs.run(["-c", "import time; time.sleep(60)"], cwd=tmp_path, timeout=0.5)
    interrupted = programs.run(["-c", "import signal; signal.raise_signal(signal.SIGINT)"], cwd=tmp_path)
    assert b"KeyboardInterrupt" in interrupted.stderr
    assert warm(programs, ["-c", "print(1)"], tmp_path) == (0, b"1\n", b"")

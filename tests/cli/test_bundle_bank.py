"""`farlink bundle bank`, as a user types it, and its ports, as a program opens them."""

from __future__ import annotations

import fcntl
import os
import re
import select
import shlex
import signal
import struct
import subprocess
import sys
import termios
import time
import tomllib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from subprocess import Popen

import pytest
from tests.conftest import ROOT, assert_refused

from farlink.cli.bundle_bank import EXAMPLES
from farlink.operator.at.profiles import profile_of

# Far above what anything here takes; it ends a test that hangs.
PATIENCE_S = 60.0
Started = Callable[..., "Popen[str]"]

BANK = """
profile = "hayes"
rate_bps = 80000
delay_s = 0.1
set_up_s = 0.1
ring_limit_s = 1

[[modem]]
name = "a"
number = "100"

[[modem]]
name = "b"
number = "200"
"""


class Terminal:
    """A port that is open."""

    def __init__(self, path: Path) -> None:
        self.file = os.open(path, os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK)

    def write(self, data: bytes) -> None:
        while data:
            select.select([], [self.file], [], PATIENCE_S)
            data = data[os.write(self.file, data) :]

    def read(self, *ends: bytes, most: int = 1 << 20) -> bytes:
        """Everything until one of `ends`, or `most` bytes; an empty end waits for a hang-up."""
        found, until = b"", time.monotonic() + PATIENCE_S
        while len(found) < most and not any(end and end in found for end in ends):
            assert time.monotonic() < until, found
            if not select.select([self.file], [], [], 1.0)[0]:
                continue
            try:
                data = os.read(self.file, min(4096, most - len(found)))
            except OSError:
                data = b""
            if not data:
                assert b"" in ends, f"hung up after {found!r}"
                return found
            found += data
        return found

    def ask(self, line: str, *ends: bytes) -> bytes:
        self.write(line.encode() + b"\r")
        return self.read(*(ends or (b"OK\r\n",)))


@contextmanager
def terminals(folder: Path, *names: str) -> Iterator[list[Terminal]]:
    opened = [Terminal(folder / name) for name in names]
    try:
        yield opened
    finally:
        for terminal in opened:
            os.close(terminal.file)


@pytest.fixture
def bank(started: Started, tmp_path: Path) -> Callable[..., Popen[str]]:
    """Start a bank whose names are in ``ports``, and wait for them."""

    def start(events: str = "", *arguments: str) -> Popen[str]:
        (tmp_path / "bank.toml").write_text(BANK + events)
        process = started("bundle", "bank", "bank.toml", "--dir", "ports", *arguments)
        assert process.stdout is not None
        assert process.stdout.readline().split() == ["a", "100", "ports/a"], process.communicate()
        assert process.stdout.readline().split() == ["b", "200", "ports/b"]
        return process

    return start


def connect(a: Terminal, b: Terminal) -> None:
    a.ask("ATZ")
    b.ask("ATZ")
    a.write(b"ATDT200\r")
    b.read(b"RING\r\n")
    b.ask("ATA", b"CONNECT 115200\r\n")
    a.read(b"CONNECT 115200\r\n")


def test_two_ports_call_each_other_and_carry_data_until_one_hangs_up(bank, tmp_path):
    process = bank()
    data = os.urandom(20_000)
    with terminals(tmp_path / "ports", "a", "b") as (a, b):
        connect(a, b)
        begin = time.monotonic()
        a.write(data)
        assert b.read(most=len(data)) == data
        # At 80 kbit/s they take 2 s; never less.
        assert time.monotonic() - begin > 1.9
        b.write(b"and back")
        assert a.read(most=8) == b"and back"

        termios.tcflush(a.file, termios.TCIOFLUSH)
        os.close(a.file)
        # To have closed a port is to have dropped DTR.
        b.read(b"")
        a.file = os.open(tmp_path / "ports" / "a", os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK)
    with terminals(tmp_path / "ports", "a", "b") as (a, b):
        connect(a, b)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0, said
    assert "a and b are connected" in said
    assert not (tmp_path / "ports").exists()


def test_a_drop_closes_both_ports_and_their_names_are_those_of_new_ones(bank, tmp_path):
    bank("mean_up_s = 1.0\n")  # of the last modem, b
    with terminals(tmp_path / "ports", "a", "b") as (a, b):
        before = (tmp_path / "ports" / "a").readlink()
        a.ask("ATZ")
        b.ask("ATZ")
        b.write(b"ATDT100\r")
        a.read(b"RING\r\n")
        a.ask("ATA", b"CONNECT 115200\r\n")
        b.read(b"")
        a.read(b"")
        assert (tmp_path / "ports" / "a").is_symlink()
        assert str(before).startswith("/dev/pts/")
    with terminals(tmp_path / "ports", "a", "b") as (a, b):
        assert b"OK" in b.ask("AT")
        connect(a, b)


def test_a_port_that_a_killed_pppd_left_to_ppp_speaks_at_again(bank, tmp_path):
    """As N_PPP, which few kernels have, N_NULL takes no text; each stays with a pty whose master is open."""
    bank()
    set_discipline, n_null = 0x5423, 27
    with terminals(tmp_path / "ports", "a") as (a,):
        a.ask("ATZ")
        try:
            fcntl.ioctl(a.file, set_discipline, struct.pack("i", n_null))
        except OSError as error:
            pytest.skip(f"this kernel has no line discipline {n_null}: {error.strerror}")
    time.sleep(0.5)
    with terminals(tmp_path / "ports", "a", "b") as (a, b):
        connect(a, b)


def test_a_busy_modem_is_busy(bank, tmp_path):
    bank('[[event]]\nat_s = 0\nmodem = "b"\ndo = "busy"\n')
    with terminals(tmp_path / "ports", "a") as (a,):
        a.ask("ATZ")
        assert a.ask("ATDT200", b"BUSY\r\n", b"NO ").endswith(b"BUSY\r\n")


def test_a_deaf_modem_keeps_its_carrier(bank, tmp_path):
    bank('[[event]]\nat_s = 0\nmodem = "b"\ndo = "deaf"\n')
    with terminals(tmp_path / "ports", "a", "b") as (a, b):
        connect(a, b)
        a.write(b"x" * 1000)
        # At 80 kbit/s and 0.1 s it would have come ten times.
        assert not select.select([b.file], [], [], 2.0)[0]
        a.write(b"+++")  # no silence before it: data
        assert not select.select([a.file], [], [], 0.5)[0]


def test_a_second_bank_in_a_folder_is_refused(bank, farlink, tmp_path):
    bank()

    assert_refused(farlink("bundle", "bank", "--dir", "ports"), ["another bank of modems uses ports"])
    assert (tmp_path / "ports" / "a").is_symlink()


def test_the_names_of_a_killed_bank_are_taken_over(bank, tmp_path):
    process = bank()
    process.kill()
    process.wait()
    assert (tmp_path / "ports" / "a").is_symlink()

    bank("", "--duration-s", "0.3").communicate(timeout=PATIENCE_S)
    assert not (tmp_path / "ports" / "a").is_symlink()


def test_the_calls_of_a_log_are_played(farlink):
    assert farlink("bundle", "generate", "-o", "log.jsonl", "--duration-s", "20000").returncode == 0
    done = farlink("bundle", "bank", "--log", "log.jsonl", "--modems", "3", "--duration-s", "0.2")

    assert done.returncode == 0, done.stderr
    assert [line.split()[0] for line in done.stdout.splitlines()] == ["modem-1", "modem-2", "modem-3"]


def test_the_examples_of_the_help_run(farlink, tmp_path):
    (tmp_path / "bank.toml").write_text(BANK)
    assert farlink("bundle", "generate", "-o", "journal.jsonl", "--duration-s", "20000").returncode == 0
    examples = [shlex.split(line)[1:] for line in EXAMPLES.splitlines() if line.startswith("farlink ")]
    assert len(examples) == 4

    for example in examples:
        shortened = [*example, "--duration-s", "0.2"]
        done = farlink(*shortened)
        assert done.returncode == 0, (example, done.stderr)
        assert len(done.stdout.splitlines()) >= 2


def test_the_guide_is_true(started, tmp_path):
    page = (ROOT / "docs" / "guides" / "modem-bank.md").read_text(encoding="utf-8")
    for name, text in re.findall(r"^```\w+ (\S+)\n(.*?)^```$", page, flags=re.MULTILINE | re.DOTALL):
        (tmp_path / name).write_text(text)
    commands = re.findall(r"^```console\n\$ farlink (.*?)\n(.*?)^```$", page, flags=re.MULTILINE | re.DOTALL)
    printed = re.findall(r"^```text\n(.*?)^```$", page, flags=re.MULTILINE | re.DOTALL)
    assert len(commands) == 2
    profile_of(tomllib.loads((tmp_path / "mine.toml").read_text()), "mine", where="mine.toml")

    for number, (command, output) in enumerate(commands):
        process = started(*shlex.split(command))
        assert "".join(process.stdout.readline() for _ in output.splitlines()) == output
        if number == 0:
            program = [sys.executable, "call.py"]
            done = subprocess.run(program, cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE_S)
            assert done.stdout == printed[0], done.stderr
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE_S) == 0


WRONG = {
    "unknown key": ("modms = 3", ["modms: there is no such key", "did you mean 'modems'?"]),
    "two mistakes": ("rate_bps = 1\ndelay_s = -1", ["rate_bps: 1 is not a number", "delay_s: -1 is not a number"]),
    "profile": ('profile = "hays"', ["there is no profile 'hays'", "did you mean 'hayes'?"]),
    "same number": ('[[modem]]\nname = "a"\nnumber = "1"\n[[modem]]\nname = "b"\nnumber = "1"', ["that of another modem"]),
    "same name": ('[[modem]]\nname = "a"\n[[modem]]\nname = "a"', ["modem[1].name: 'a' is that of another modem"]),
    "path for a name": ('[[modem]]\nname = "../a"', ["modem[0].name: '../a' is not a name"]),
    "number with letters": ('[[modem]]\nname = "a"\nnumber = "1x"', ["modem[0].number: '1x' is not a text of 1 to 20 digits"]),
    "event": ('[[event]]\nat_s = 1\nmodem = "modem-3"\ndo = "dorp"', ["do: 'dorp' is not one of", "did you mean 'drop'?"]),
    "event of nobody": ('[[event]]\nat_s = 1\nmodem = "modem-3"\ndo = "drop"', ["there is no modem 'modem-3'"]),
    "signal": ('profile = "hayes"\n[[modem]]\nname = "a"\nsignal = 9', ["signal: 9 is above the scale of hayes"]),
    "both": ('log = "x.jsonl"\nmean_up_s = 3', ["log and mean_up_s both say how calls drop"]),
    "long and fast": ("rate_bps = 1e8\ndelay_s = 60", ["7.5e+08 bytes would be under way"]),
    "not TOML": ("modems =", ["is not valid TOML"]),
}


@pytest.mark.parametrize("case", WRONG)
def test_mistakes_are_named(case, farlink, tmp_path):
    text, said = WRONG[case]
    (tmp_path / "bad.toml").write_text(text)

    assert_refused(farlink("bundle", "bank", "bad.toml"), said)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--modems", "0"], ["modems: 0 is not a whole number from 1 to 64"]),
        (["--duration-s", "nan"], ["--duration-s nan"]),
        (["--link", "x"], ["link is given without log"]),
        (["missing.toml"], ["cannot read a bank of modems"]),
        (["--dir", "/dev/null"], ["cannot use the folder /dev/null"]),
    ],
)
def test_wrong_options_are_refused(arguments, said, farlink):
    assert_refused(farlink("bundle", "bank", *arguments), said)


def test_help_names_every_profile(farlink):
    from farlink.operator.at.profiles import names

    shown = re.sub(r"[\s│]+", " ", farlink("bundle", "bank", "--help", COLUMNS="200").stdout)
    assert all(name in shown for name in names())

"""Operators at both ends of a bank of modems, as processes, with the stand-in for pppd."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from farlink.errors import OperatorError
from farlink.operator.backend import StandIn, orphans
from farlink.operator.config import load
from farlink.operator.journal import History, Transition, read
from farlink.operator.live import ask
from tests.warm import Programs, Started

Process = subprocess.Popen[bytes] | Started

# Far above what anything here takes; it ends a test that hangs.
PATIENCE_S = 60.0
CANARY = "canary-9c1f"

BANK = """
profile = "{profile}"
rate_bps = 100000
delay_s = 0.02
set_up_s = 0.1
ring_limit_s = {ring_limit_s}
"""
TOP = """
name = "{name}"
back_end = "stand-in"
user = "camp"
secrets = "secrets.toml"
{more}
[ppp]
echo_interval_s = 1
echo_failures = 10
lcp_restart_s = 1
[limits]
dropped_s = 0.7
failed_s = 1
longest_failed_s = 1
attempts = 5
flaps = 1000
fail_back_s = 0
"""
FARLINK = [sys.executable, "-m", "farlink.cli"]


class Running:
    """An operator. Its standard error goes to a file, or to a file descriptor. With `programs` it starts with its imports."""

    def __init__(
        self, config: Path, prefix: Sequence[str] = (), stderr: int | None = None, programs: Programs | None = None
    ) -> None:
        self.config = config
        self.bundle, _ = load(config, needs_ports=False)
        self._log = config.with_suffix(".log").open("ab")
        environment = {**os.environ, "FARLINK_TEST_CANARY": "none"}
        told = self._log.fileno() if stderr is None else stderr
        command = ["bundle", "up", str(config)]
        self.process = start([*prefix, *FARLINK, *command], programs, stdout=self._log.fileno(), stderr=told, env=environment)

    @property
    def log(self) -> str:
        """What it has told."""
        return self.config.with_suffix(".log").read_text(errors="replace")

    @property
    def history(self) -> History:
        """What it has recorded."""
        history, loss = read(self.bundle.journal)
        assert loss is None, loss
        return history

    def ask(self, **request: Any) -> dict[str, Any]:
        """Send a command."""
        return ask(self.bundle.journal, request, bundle=self.bundle.name)

    def lines(self) -> dict[str, dict[str, Any]]:
        """The state of each line; none before it listens."""
        try:
            return {one["line"]: one for one in self.ask(do="status")["lines"]}
        except OperatorError:
            assert self.process.poll() is None, self.log
            return {}

    def state(self, line: str) -> str:
        """The state of a line."""
        return str(self.lines().get(line, {}).get("state"))

    def ups(self) -> int:
        """How many lines are up."""
        return sum(one["state"] == "connected" for one in self.lines().values())

    def of(self, line: str, *states: str) -> list[Transition]:
        """Transitions of a line."""
        return [one for one in self.history.transitions if one.modem == line and (not states or one.state in states)]

    def children(self) -> list[int]:
        """Its links' processes."""
        return list(orphans.find(set(StandIn(self.bundle)._marks.values())))

    def told(self) -> list[tuple[str, str]]:
        """Changes of state that it has told, which it does when they are recorded."""
        return re.findall(
            r"^[\d.]+ s: ([\w-]+): (waiting|connecting|connected|dropped|failed|blocked|held) \((?!starting-link)",
            self.log,
            re.MULTILINE,
        )

    def end(self, number: int = signal.SIGTERM) -> int:
        """End it by a signal; its exit status."""
        self.process.send_signal(number)
        status = self.process.wait(PATIENCE_S)
        self._log.close()
        return status


class World:
    """A bank with a modem for each line of both ends: those of `near` dial those of `far`."""

    def __init__(self, folder: Path, prefix: Sequence[str] = (), programs: Programs | None = None) -> None:
        self.folder, self.prefix, self._programs = folder, prefix, programs
        self._running: list[Running] = []
        self._bank: Process | None = None

    def bank(self, pairs: int, *, modem: dict[int, str] | None = None, profile: str = "hayes", ring_limit_s: float = 5) -> None:
        """Start the bank: modem `near-1` and its like have the numbers 101 on, `far-1` and its like 201 on."""
        rows = [BANK.format(profile=profile, ring_limit_s=ring_limit_s)]
        for at in range(1, pairs + 1):
            more = (modem or {}).get(at, "")
            rows.append(f'[[modem]]\nname = "near-{at}"\nnumber = "{100 + at}"\n{more}\n')
            rows.append(f'[[modem]]\nname = "far-{at}"\nnumber = "{200 + at}"\n')
        (self.folder / "bank.toml").write_text("".join(rows))
        command = [*self.prefix, *FARLINK, "bundle", "bank", self.folder / "bank.toml", "--dir", self.folder / "modems"]
        names, told = os.pipe()
        with (self.folder / "bank.log").open("w") as log:
            self._bank = start(command, self._programs, stdout=told, stderr=log.fileno())
        os.close(told)
        self._names = os.fdopen(names)
        for _ in range(2 * pairs):
            assert self._names.readline(), (self.folder / "bank.log").read_text()

    def unplug(self) -> None:
        """End the bank: no port is there any more. Names that a killed one left would soon be those of somebody else's ptys."""
        if self._bank is not None:
            self._bank.terminate()
            self._bank.wait(PATIENCE_S)
            self._bank = None
            self._names.close()

    def configure(
        self, name: str, pairs: int, *, number: Callable[[int], str] | None = None, more: str = "", profile: str = "hayes"
    ) -> Path:
        """Write the bundle of an end."""
        rows = [TOP.format(name=name, more=more)]
        if name == "far":
            # It listens again before the near end dials: a first ring that comes too soon is repeated after 4 s only.
            rows[0] = rows[0].replace("dropped_s = 0.7", "dropped_s = 0.1")
        for at in range(1, pairs + 1):
            rows.append(f'[[line]]\nname = "{name}-{at}"\nport = "{self.folder}/modems/{name}-{at}"\nprofile = "{profile}"\n')
            rows.append("rate_bps = 100000\n")
            dialled = f"{200 + at}" if number is None else number(at)
            rows.append(f'number = "{dialled}"\n' if name == "near" else 'role = "answer"\n')
        config = self.folder / f"{name}.toml"
        config.write_text("".join(rows))
        secrets = self.folder / "secrets.toml"
        secrets.write_text(f'password = "{CANARY}"\n')
        secrets.chmod(0o600)
        return config

    def start(self, config: Path, stderr: int | None = None) -> Running:
        """Start an operator."""
        self._running.append(Running(config, self.prefix, stderr, self._programs))
        return self._running[-1]

    def close(self) -> None:
        """End everything."""
        for one in self._running:
            if one.process.poll() is None:
                one.process.kill()
                one.process.wait()
        self.unplug()


def start(
    command: Sequence[str | Path],
    programs: Programs | None,
    *,
    stdout: int,
    stderr: int,
    env: dict[str, str] | None = None,
) -> Process:
    """Start a program; one of farlink's without a prefix with its imports, if `programs` are given."""
    words = [str(word) for word in command]
    if programs is not None and words[0] == sys.executable:
        return programs.start(words[1:], stdout=stdout, stderr=stderr, env=env)
    return subprocess.Popen(words, stdout=stdout, stderr=stderr, env=env)


@contextlib.contextmanager
def world_in(folder: Path, prefix: Sequence[str] = (), programs: Programs | None = None) -> Iterator[World]:
    """A world, which is ended afterwards. A prefix goes before its commands: `setpriv ...`."""
    world = World(folder, prefix, programs)
    try:
        yield world
    finally:
        world.close()


def until(condition: Callable[[], Any], what: Callable[[], object] = lambda: "", within_s: float = PATIENCE_S) -> Any:
    """Wait until a condition holds; what it gave."""
    end = time.monotonic() + within_s
    while not (found := condition()):
        assert time.monotonic() < end, what()
        time.sleep(0.05)
    return found

"""Operators and the modem bank as processes of their own: what the dashboard starts does not depend on it."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from farlink.errors import OperatorError, OutputError
from farlink.untrusted import printable

_TOLD_BYTES = 4000
_TOLD_LINES = 12
_END_S = 10.0
# Not what lies in the folder of a bundle, as Python would import it.
_COMMAND = (sys.executable, "-P", "-m", "farlink.cli", "bundle")


@dataclass(frozen=True)
class Told:
    """State of a process.

    Attributes
    ----------
    is_running
        Whether it runs.
    status
        With which it ended; None while it runs.
    lines
        The last lines that it has told.
    log
        The file of these.
    """

    is_running: bool
    status: int | None
    lines: tuple[str, ...]
    log: Path


class Programs:
    """Processes that were started here: an operator for each bundle, and one bank."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: dict[str, tuple[subprocess.Popen[bytes], Path]] = {}

    def up(self, config: Path) -> None:
        """Start the operator of a bundle. It goes on when the dashboard ends; `farlink bundle down` ends it.

        Raises
        ------
        OutputError
            If it cannot be started.
        OperatorError
            If one that was started here runs.
        """
        self._start(f"up {config}", [*_COMMAND, "up", str(config)], config.with_name(f"{config.name}.log"), config.parent)

    def told(self, config: Path) -> Told | None:
        """State of an operator that was started here."""
        return self._told(f"up {config}")

    def bank(self, folder: Path, modems: int, *, mean_up_s: float | None = None, rate_bps: float | None = None) -> None:
        """Start a bank of modems. It ends with the dashboard.

        Parameters
        ----------
        folder
            Where the names of its ports are made; ``bank.log`` is beside it.
        modems
            How many.
        mean_up_s, rate_bps
            Mean time to a drop, in s, and bit rate of a call; None for what the bank has by itself.

        Raises
        ------
        OutputError, OperatorError
            As `up` does.
        """
        command = [*_COMMAND, "bank", "--modems", str(modems), "--dir", str(folder)]
        command += [] if mean_up_s is None else ["--mean-up-s", f"{mean_up_s:g}"]
        command += [] if rate_bps is None else ["--rate-bps", f"{rate_bps:g}"]
        self._start("bank", command, folder.with_name(f"{folder.name}.log"), folder.parent)

    def bank_told(self) -> Told | None:
        """State of the bank."""
        return self._told("bank")

    def end_bank(self) -> None:
        """End the bank: its ports vanish.

        Raises
        ------
        OperatorError
            If none runs that was started here.
        """
        with self._lock:
            process = self._running.get("bank", (None, None))[0]
        if process is None or process.poll() is not None:
            raise OperatorError("no bank of modems runs that was started here", "start one")
        _end(process)

    def close(self) -> None:
        """End the bank, if it runs; operators go on."""
        with self._lock:
            process = self._running.get("bank", (None, None))[0]
        if process is not None and process.poll() is None:
            _end(process)

    def _start(self, name: str, command: Sequence[str], log: Path, folder: Path) -> None:
        with self._lock:
            before = self._running.get(name)
            if before is not None and before[0].poll() is None:
                raise OperatorError(f"it runs already (process {before[0].pid})", "stop it first")
            try:
                with os.fdopen(os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as told:
                    # A session of its own: neither Ctrl-C nor the end of a terminal that is meant for the dashboard reaches it.
                    process = subprocess.Popen(
                        command, cwd=folder, stdin=subprocess.DEVNULL, stdout=told, stderr=told, start_new_session=True
                    )
            except OSError as error:
                raise OutputError(
                    f"cannot start it: {error.strerror} ({error.filename})", "give the right to write there"
                ) from error
            self._running[name] = (process, log)

    def _told(self, name: str) -> Told | None:
        with self._lock:
            process, log = self._running.get(name, (None, Path()))
        if process is None:
            return None
        status = process.poll()
        return Told(status is None, status, last_lines(log), log)


def last_lines(log: Path) -> tuple[str, ...]:
    """The last lines of a file, each as one that does nothing to a reader."""
    try:
        with log.open("rb") as file:
            file.seek(0, os.SEEK_END)
            file.seek(max(0, file.tell() - _TOLD_BYTES))
            text = file.read().decode("utf-8", "replace")
    except OSError:
        return ()
    return tuple(printable(line, 300) for line in text.splitlines()[-_TOLD_LINES:])


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(_END_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()

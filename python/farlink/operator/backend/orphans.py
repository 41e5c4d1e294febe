"""Processes that a killed operator left behind: found by their arguments, ended at the next start."""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress
from pathlib import Path

_END_S = 3.0


def find(marks: set[str]) -> dict[int, str]:
    """Processes that have one of some marks among their arguments: number -> mark. This process is none of them.

    A mark is an argument, or several in a row with NUL between them.
    """
    found = {}
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit() or int(folder.name) == os.getpid():
            continue
        with suppress(OSError):
            arguments = os.fsdecode(b"\0" + (folder / "cmdline").read_bytes() + b"\0")
            mark = next((one for one in marks if f"\0{one}\0" in arguments), None)
            if mark is not None and _is_alive(folder):
                found[int(folder.name)] = mark
    return found


def end(marks: set[str]) -> list[str]:
    """End them: SIGTERM, then SIGKILL; the marks of those that there were."""
    found = find(marks)
    for number in (signal.SIGTERM, signal.SIGKILL):
        for process in find(marks):
            with suppress(ProcessLookupError, PermissionError):
                os.kill(process, number)
        until = time.monotonic() + _END_S
        while find(marks) and time.monotonic() < until:
            time.sleep(0.02)
        if not find(marks):
            break
    return sorted(set(found.values()))


def _is_alive(folder: Path) -> bool:
    """Whether it is no zombie."""
    return folder.joinpath("stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()[0] != "Z"

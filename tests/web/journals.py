"""Journals that are made: calls whose up times are known, and the rows of an operator that was killed."""

from __future__ import annotations

import random
import time
from pathlib import Path

from farlink.operator.journal import Journal, Transition

LINES = ("kansas", "iowa")
BUNDLE = """
name = "{name}"
back_end = "stand-in"
[[line]]
name = "kansas"
port = "/dev/ttyS10"
profile = "hayes"
number = "100"
[[line]]
name = "iowa"
port = "/dev/ttyS11"
profile = "hayes"
number = "101"
"""


def write_calls(path: Path, calls: int = 40, mean_s: float = 1500.0, seed: int = 1) -> None:
    """A journal of two lines whose calls drop by chance; every seventh is ended by hand, every eleventh dropped as a test."""
    drawn = random.Random(seed)
    at = dict.fromkeys(LINES, 0.0)
    rows = []
    for number in range(calls):
        line = LINES[number % 2]
        lasts_s = drawn.expovariate(1 / mean_s)
        end = ("ended", "by hand") if number % 7 == 6 else ("dropped", "NO CARRIER")
        rows += [(at[line], line, "connecting", "start", False), (at[line] + 8, line, "connected", "up", False)]
        rows.append((at[line] + 8 + lasts_s, line, *end, number % 11 == 10 and end[0] == "dropped"))
        at[line] += 8 + lasts_s + 5
    begin_s = time.time() - max(at.values()) - 60
    with Journal(path) as journal:
        connection = journal.begin(begin_s, {line: index for index, line in enumerate(LINES, start=1)})
        for at_s, line, state, cause, is_injected in sorted(rows):
            has_bytes = state in ("dropped", "ended")
            journal.record(
                Transition(
                    connection, line, state, begin_s + at_s, 1000 + at_s, "boot", cause, bars=4, is_injected=is_injected,
                    attempt=1 if state == "connecting" else None,
                    bytes_in=30_000 if has_bytes else None, bytes_out=10_000 if has_bytes else None,
                )
            )  # fmt: skip


def write_bundle(folder: Path, name: str = "old") -> Path:
    """A bundle of these lines, whose journal is that of its name."""
    path = folder / f"{name}.toml"
    path.write_text(BUNDLE.format(name=name))
    return path

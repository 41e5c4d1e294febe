"""Results of all cells compared with peers, kept with date and commit, so that a long run continues where it stopped.

A line of `results.jsonl` is one test of `make peers`. A cell is measured again once the code that it measures has changed:
farlink's Rust (`_core.__build__`) and the peers' side (`tests/peers`, `benches/ns3`).
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import subprocess
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FILE = Path(__file__).with_name("results.jsonl")

PEER_CODE = ("tests/peers/*.py", "tests/peers/ns2/*", "tests/peers/*.json", "benches/ns3/*")
NOT_MEASURING = ("results.py", "report.py", "conftest.py", "agreement.py")


@dataclass(frozen=True)
class Result:
    """One cell: what was compared, how it ended, and with which code."""

    cell: str
    """Name of the test and of its cell, as pytest writes it."""
    peer: str
    outcome: str
    """`passed`, `failed` or `skipped`."""
    date: str
    """Day of the measurement, UTC."""
    commit: str
    """Abbreviated; with a plus where files were changed since."""
    code: str
    """Fingerprint of the code measured."""
    seconds: float
    farlink: str | None = None
    """farlink's figure, with the half-width of its 95 % interval."""
    theirs: str | None = None
    difference: float | None = None
    """farlink's mean over the peer's, less one."""


def read(file: Path = FILE) -> list[Result]:
    """All results kept, the newest of a cell last.

    Raises
    ------
    ValueError
        If a line is not a result: it names the line.
    """
    results = []
    for number, line in enumerate(file.read_text(encoding="utf-8").splitlines() if file.exists() else [], 1):
        try:
            results.append(Result(**json.loads(line)))
        except (ValueError, TypeError) as error:
            raise ValueError(f"{file}, line {number} is not a result: {error}") from None
    return results


def newest(results: Iterable[Result]) -> dict[str, Result]:
    """The newest result of each cell, in order of the cells' first appearance."""
    return {result.cell: result for result in results}


def keep(result: Result, file: Path = FILE) -> None:
    """Put the result of a cell in place of its older one."""
    with file.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        kept = newest(read(file))
        kept[result.cell] = result
        whole = file.with_suffix(".new")
        lines = (json.dumps(asdict(one), ensure_ascii=False) for one in kept.values())
        whole.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        whole.replace(file)


def is_done(cell: str, kept: dict[str, Result]) -> bool:
    """Whether the cell has passed with the current code."""
    result = kept.get(cell)
    return result is not None and result.outcome == "passed" and result.code == code()


@cache
def code() -> str:
    """Fingerprint of the measured code on both sides: 16 digits of a SHA-256."""
    from farlink import _core

    digest = hashlib.sha256(_core.__build__.encode())
    for path in sorted(_peer_files()):
        digest.update(path.relative_to(ROOT).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]


def _peer_files() -> Iterator[Path]:
    for pattern in PEER_CODE:
        yield from (path for path in ROOT.glob(pattern) if path.is_file() and path.name not in NOT_MEASURING)


@cache
def commit() -> str:
    """The commit of the tree, with a plus where tracked files other than the results differ from it."""

    def git(*arguments: str) -> str:
        return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False).stdout.strip()

    changed = [line for line in git("status", "--porcelain", "--untracked-files=no").splitlines() if FILE.name not in line]
    return (git("rev-parse", "--short", "HEAD") or "unknown") + ("+" if changed else "")

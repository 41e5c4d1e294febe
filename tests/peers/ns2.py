"""ns-2 as a peer: runs `ns2/dumbbell.tcl` for many seeds and gives goodput with its 95 % interval.

Its goodputs of every seed are kept in `ns2_runs.json`: they are taken for the runs that follow where its run of the first seed,
made anew, gives what is kept. FARLINK_PEERS=all makes all runs anew, and so does another script or setting. FARLINK_PEERS=keep
does so too and keeps them.

From a shell, one scenario:  python -m tests.peers.ns2 variant Newreno ber 1e-7 duration_s 5000
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tests.peers.estimate import Estimate, until_narrow

SCRIPT = Path(__file__).with_name("ns2") / "dumbbell.tcl"
KEPT = Path(__file__).with_name("ns2_runs.json")

Setting = str | int | float | Mapping[str, object]


class PeerError(RuntimeError):
    """ns-2 ended without a result."""


@dataclass(frozen=True)
class Ns2Run:
    """Report of one run of the script, all of it between warm-up and end."""

    delivered_segments: float
    timeouts: int
    sent_segments: int
    per_flow_segments: tuple[float, ...]


def executable() -> str | None:
    """Path of Debian's `ns`, or None where ns-2 is not installed."""
    return shutil.which("ns")


def arguments(settings: Mapping[str, Setting]) -> list[str]:
    """The script's command line; a mapping (bound variables of ns-2) becomes one list argument."""
    words: list[str] = []
    for key, value in settings.items():
        if isinstance(value, Mapping):
            value = " ".join(f"{name} {setting}" for name, setting in value.items())
        words += [key, str(value)]
    return words


def run_once(settings: Mapping[str, Setting], seed: int) -> Ns2Run:
    """One run.

    Raises
    ------
    PeerError
        If ns-2 fails or prints no result; the message carries its output.
    """
    command = [executable() or "ns", str(SCRIPT), *arguments({**settings, "seed": seed})]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    words = done.stdout.split()
    if done.returncode != 0 or not words or words[0] != "result":
        raise PeerError(f"{' '.join(command)}: exit {done.returncode}\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return Ns2Run(float(words[1]), int(words[2]), int(words[3]), tuple(map(float, words[4:])))


def goodput_fraction(settings: Mapping[str, Setting], run: Ns2Run) -> float:
    """Delivered bits on the wire (headers and all) as a fraction of what the link carries in the measured time.

    Counting whole packets makes the figure independent of how a packet divides into header and payload.
    """
    measured_s = float(settings["duration_s"]) - float(settings.get("warmup_s", 0))  # type: ignore[arg-type]
    bits = run.delivered_segments * 8 * float(settings.get("wire_bytes", 1000))  # type: ignore[arg-type]
    return bits / (float(settings["rate_bps"]) * measured_s)  # type: ignore[arg-type]


def goodput(settings: Mapping[str, Setting], *, relative: float = 0.02, batch: int = 10, max_runs: int = 400) -> Estimate:
    """Goodput over seeds 1, 2, ..., as a fraction of the link rate, until the interval is narrow enough."""
    asked = os.environ.get("FARLINK_PEERS")
    known = [] if asked in ("all", "again", "keep") else kept().get(_key(settings), [])
    made: list[float] = []
    with ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:

        def run_seeds(seeds: Sequence[int]) -> list[float]:
            if seeds[0] == 1 and known and goodput_fraction(settings, run_once(settings, 1)) != known[0]:
                known.clear()  # of another ns-2
            runs = pool.map(lambda seed: run_once(settings, seed), seeds[max(0, len(known) + 1 - seeds[0]) :])
            found = [*known[seeds[0] - 1 : seeds[-1]], *(goodput_fraction(settings, run) for run in runs)]
            made.extend(found)
            return found

        estimate = until_narrow(run_seeds, relative=relative, batch=batch, max_runs=max_runs)
    if asked == "keep":
        _keep(settings, made)
    return estimate


@cache
def kept() -> dict[str, list[float]]:
    """Goodputs of ns-2's runs of seeds 1, 2, ..., by what `_key` makes of the settings."""
    runs: dict[str, list[float]] = json.loads(KEPT.read_text())["runs"] if KEPT.exists() else {}
    return runs


def _key(settings: Mapping[str, Setting]) -> str:
    """The settings of a run and the digest of the script."""
    script = hashlib.sha256(SCRIPT.read_bytes()).hexdigest()[:16]
    return " ".join([*arguments(settings), "script", script])


def _keep(settings: Mapping[str, Setting], made: Sequence[float]) -> None:
    """Keep the runs of these settings; one process at a time."""
    runs = dict(sorted({**kept(), _key(settings): list(made)}.items()))
    lines = ",\n".join(f"  {json.dumps(key)}: {json.dumps(values)}" for key, values in runs.items())
    KEPT.write_text(f'{{\n "ns-2": "2.35",\n "runs": {{\n{lines}\n }}\n}}\n')
    kept.cache_clear()


if __name__ == "__main__":
    given = dict(zip(sys.argv[1::2], sys.argv[2::2], strict=True))
    print(goodput({"rate_bps": 1e6, "duration_s": 1000, **given}))

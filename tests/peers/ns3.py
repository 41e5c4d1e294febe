"""ns-3 as a second peer: builds the programs of `benches/ns3` against the installed libraries and runs them for many seeds."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.peers.estimate import Estimate, until_narrow
from tests.peers.ns2 import Setting

SOURCE = Path(__file__).resolve().parents[2] / "benches" / "ns3" / "dumbbell.cc"
LIBRARIES = ("applications", "internet", "traffic-control", "point-to-point", "network", "core")


def is_installed() -> bool:
    """Whether a compiler and ns-3's headers are here."""
    return shutil.which("g++") is not None and Path("/usr/include/ns3").is_dir()


def build(folder: Path, source: Path = SOURCE) -> Path:
    """Compile a program into `folder` and return its path."""
    program = folder / f"ns3-{source.stem}"
    libraries = [f"-lns3-{name}" for name in LIBRARIES]
    subprocess.run(["g++", "-O2", "-std=c++17", "-o", program, source, *libraries], check=True)
    return program


def goodput(
    program: Path, settings: Mapping[str, Setting], *, relative: float = 0.02, batch: int = 10, max_runs: int = 400
) -> Estimate:
    """Goodput of one flow over runs 1, 2, ..., packets on the wire per link capacity, until the interval is narrow enough."""
    number = {key: float(settings[key]) for key in ("rate_bps", "wire_bytes", "duration_s", "warmup_s")}  # type: ignore[arg-type]
    packets_per_s = number["rate_bps"] / (8 * number["wire_bytes"])
    measured_s = number["duration_s"] - number["warmup_s"]

    def run_once(run: int) -> float:
        command = [str(program), *(f"--{key}={value}" for key, value in settings.items()), f"--run={run}"]
        words = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
        return float(words[1]) / (packets_per_s * measured_s)

    with ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:

        def run_seeds(seeds: Sequence[int]) -> list[float]:
            return list(pool.map(run_once, seeds))

        return until_narrow(run_seeds, relative=relative, batch=batch, max_runs=max_runs)

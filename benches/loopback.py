"""One stream over loopback: AeroTP sealed beside quinn (QUIC) and the kernel's TCP, with packets of 1500 and of 9000 bytes.

Usage:  sudo python benches/loopback.py [--repeats 10] [--megabytes 500] [--only STACK ...]

A network namespace of its own has a loopback interface whose packets have that length. Each repetition runs all stacks, one
process each, in alternating order. Prints rates, CPU time for each byte and ratios to quinn of the same repetition, each with
its 95 % interval. CPU time is that of both ends together, the kernel's work for them included. Ctrl-C prints what is finished.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

import numpy as np
from scipy.stats import t as student

SOURCES = Path(__file__).parent / "loopback"
# As the namespaces of docs/kernel_paths.py, so that each removes what the other had to leave behind.
PREFIX = "farlink-"
PACKET_BYTES = (1500, 9000)
PEER = "quinn"
STACKS = {
    "aerotp-set": "AeroTP, set rate",
    "aerotp": "AeroTP, learnt rate",
    PEER: "quinn",
    "tcp": "kernel's TCP",
}
# Stacks that would be done too soon to be timed send so many times as much.
MORE = {"tcp": 4}
LONGEST_S = 120


@dataclass(frozen=True)
class Run:
    """What one stream took."""

    bytes: int
    wall_s: float
    cpu_s: float

    @property
    def gbps(self) -> float:
        """Rate, Gb/s."""
        return self.bytes * 8e-9 / self.wall_s

    @property
    def ns(self) -> float:
        """CPU time for a byte."""
        return self.cpu_s * 1e9 / self.bytes


# Of each length of packets, the runs of each finished repetition.
Runs = dict[int, list[dict[str, Run]]]


def quit_for(what: str, remedy: str, status: int = 2) -> NoReturn:
    """End with an error and what to do about it."""
    print(f"error: {what}\nhint: {remedy}", file=sys.stderr)
    raise SystemExit(status)


def check_machine() -> None:
    """End here if this machine makes no namespaces."""
    if sys.platform != "linux":
        quit_for("network namespaces are Linux's", "run it on Linux")
    if os.geteuid() != 0:
        quit_for("network namespaces need root", "run it with sudo")
    if shutil.which("ip") is None:
        quit_for("ip is missing", "sudo apt-get install iproute2")


def ip(*words: str) -> str:
    """Output of a command of ip that succeeds."""
    return subprocess.run(["ip", *words], capture_output=True, text=True, check=True).stdout


def remove_leftovers() -> None:
    """Remove the namespaces of programs that were killed before they could."""
    for line in ip("netns", "list").splitlines():
        name = line.split()[0]
        owner = name.removeprefix(PREFIX).split("-")[0]
        if name.startswith(PREFIX) and owner.isdecimal() and not Path(f"/proc/{owner}").exists():
            ip("netns", "del", name)


@contextmanager
def namespace() -> Iterator[str]:
    """A network namespace, until the end of `with`."""
    name = f"{PREFIX}{os.getpid()}-loopback"
    try:
        ip("netns", "add", name)
        ip("-n", name, "link", "set", "lo", "up")
        yield name
    finally:
        subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)


def build() -> Path:
    """The program with all stacks."""
    print("Building benches/loopback (minutes the first time)", file=sys.stderr)
    if subprocess.run(["cargo", "build", "--release", "--quiet"], cwd=SOURCES, check=False).returncode != 0:
        quit_for("benches/loopback did not compile", "cargo's messages above tell why")
    return Path(os.environ.get("CARGO_TARGET_DIR", SOURCES / "target")).resolve() / "release" / "loopback"


def run(inside: str, program: Path, stack: str, packet_bytes: int, megabytes: int) -> Run:
    """Send a stream through one stack.

    Raises
    ------
    RuntimeError
        If not all of it arrived.
    """
    command = ["ip", "netns", "exec", inside, str(program), stack, f"{packet_bytes}", f"{megabytes}"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=LONGEST_S)
    except subprocess.CalledProcessError as error:
        raise RuntimeError(f"{stack} failed: {error.stderr.strip()}") from None
    except subprocess.TimeoutExpired:
        raise RuntimeError(f"{stack} was not done after {LONGEST_S} s") from None
    measured = Run(**json.loads(done.stdout))
    if measured.bytes != megabytes * 1_000_000:
        raise RuntimeError(f"{stack} delivered {measured.bytes:,} of {megabytes * 1_000_000:,} bytes")
    return measured


def measure(runs: Runs, program: Path, stacks: Sequence[str], repeats: int, megabytes: int) -> None:
    """Add finished repetitions to `runs`."""
    with namespace() as inside:
        for repetition in range(repeats):
            order = stacks if repetition % 2 == 0 else stacks[::-1]
            for packet_bytes in PACKET_BYTES:
                print(f"{packet_bytes} bytes, repetition {repetition + 1} of {repeats}", file=sys.stderr, flush=True)
                ip("-n", inside, "link", "set", "lo", "mtu", f"{packet_bytes}")
                one = {stack: run(inside, program, stack, packet_bytes, megabytes * MORE.get(stack, 1)) for stack in order}
                runs.setdefault(packet_bytes, []).append(one)


def half_width(values: np.ndarray) -> float:
    """Half of the 95 % interval of a mean."""
    count = len(values)
    return float(student.ppf(0.975, count - 1) * values.std(ddof=1) / np.sqrt(count)) if count > 1 else float("nan")


def mean(values: Sequence[float]) -> str:
    """A mean with its interval."""
    return f"{np.mean(values):.2f} ± {half_width(np.array(values)):.2f}"


def ratio(ours: Sequence[float], peers: Sequence[float]) -> str:
    """The geometric mean of the ratios of pairs, with its interval."""
    logarithms = np.log(np.array(ours) / np.array(peers))
    middle, half = logarithms.mean(), half_width(logarithms)
    return f"{np.exp(middle):.2f} ({np.exp(middle - half):.2f} to {np.exp(middle + half):.2f})"


def print_table(runs: Runs) -> None:
    """Print what was measured of each stack."""
    heads = ("packets", "stack", "repetitions", "Gb/s", "CPU ns a byte", f"Gb/s / {PEER}'s", f"CPU / {PEER}'s")
    rows: list[tuple[str, ...]] = [heads]
    for packet_bytes, repetitions in runs.items():
        for stack in (stack for stack in STACKS if stack in repetitions[0]):
            ours = [one[stack] for one in repetitions]
            row = [
                f"{packet_bytes}",
                STACKS[stack],
                f"{len(ours)}",
                mean([it.gbps for it in ours]),
                mean([it.ns for it in ours]),
            ]
            peers = [one[PEER] for one in repetitions if PEER in one and stack != PEER]
            if peers:
                row.append(ratio([it.gbps for it in ours], [it.gbps for it in peers]))
                row.append(ratio([it.ns for it in ours], [it.ns for it in peers]))
            rows.append((*row, *[""] * (len(heads) - len(row))))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for words in rows:
        print("  ".join(word.ljust(width) for word, width in zip(words, widths, strict=True)).rstrip())


def machine() -> str:
    """Processor and kernel."""
    found = re.search(r"^model name\s*:\s*(.*)$", Path("/proc/cpuinfo").read_text(encoding="utf-8"), re.MULTILINE)
    return f"{found[1] if found else platform.machine()}, {os.cpu_count()} cores, Linux {platform.release()}"


def main() -> None:
    """Run all in turn; print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=10, help="how often each runs (default 10)")
    parser.add_argument("--megabytes", type=int, default=500, help="what each run sends, TCP four times as much (default 500)")
    parser.add_argument("--only", nargs="+", choices=STACKS, default=list(STACKS), help="stacks to run (default all)")
    asked = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    check_machine()
    runs: Runs = {}
    started = f"load {os.getloadavg()[0]:.1f} at the start"
    status = 0
    try:
        program = build()
        remove_leftovers()
        measure(runs, program, [stack for stack in STACKS if stack in asked.only], asked.repeats, asked.megabytes)
    except KeyboardInterrupt:
        print("\nInterrupted; finished repetitions:", file=sys.stderr)
        status = 130
    except subprocess.CalledProcessError as error:
        quit_for(f"this machine makes no namespaces: {error.stderr.strip()}", "run it outside of a container")
    except RuntimeError as error:
        print(f"error: {error}\nhint: finished repetitions follow; --only leaves stacks out", file=sys.stderr)
        status = 1
    if runs:
        print_table(runs)
        date = datetime.datetime.now(tz=datetime.UTC).date()
        print(f"{machine()}; {started}, {os.getloadavg()[0]:.1f} at the end; {date}")
    raise SystemExit(status)


if __name__ == "__main__":
    main()

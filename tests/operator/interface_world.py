"""Troubles of lines over interfaces: each ends a line that is up, and how soon the operator notices is in its journal.

``python -m tests.operator.interface_world --times 200`` prints the distribution for each trouble.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from pathlib import Path

from tests.conftest import ROOT
from tests.operator.live_world import Running, until
from tests.operator.wires import Wire, missing, wires

CONFIG = """
name = "ship"
[limits]
dropped_s = 0.2
failed_s = 1
longest_failed_s = 1
attempts = 1000
flaps = 1000
fail_back_s = 0
"""
LINE = '[[line]]\nname = "{name}"\nkind = "interface"\ninterface = "{name}"\nprobe = ["{target}"]\n{more}\n'

NOTICED_S = 3.0
"""The default: a dead line is noticed within so long."""

TROUBLES: dict[str, tuple[Callable[[Wire], None], Callable[[Wire], None], str]] = {
    "unplugged": (Wire.unplug, Wire.plug, "has no carrier"),
    "black hole": (Wire.drop, Wire.carry, "no answer from"),
    "black hole, outward": (lambda wire: wire.drop(inward=False), Wire.carry, "no answer from"),
    "black hole, inward": (lambda wire: wire.drop(outward=False), Wire.carry, "no answer from"),
    "address gone": (Wire.take_address, Wire.give_address, "has no address"),
    "interface deleted": (Wire.delete, Wire.make, ""),
}
"""Trouble -> what makes it, what ends it, and what the operator says of it."""


def configure(folder: Path, made: list[Wire], more: str = "") -> Path:
    """Write a bundle with a line over each wire."""
    config = folder / "ship.toml"
    config.write_text(CONFIG + "".join(LINE.format(name=wire.name, target=wire.target, more=more) for wire in made))
    return config


def trouble(operator: Running, wire: Wire, name: str, wait_s: float = 0.0) -> tuple[float, float]:
    """Let a line that is up have a trouble, and end it: how soon that was noticed, and how soon the line was up again, in s.

    Parameters
    ----------
    operator, wire, name
        Whose line, and what befalls it.
    wait_s
        How long the line is up before: another one each time, or the trouble comes at the same time between two probes.
    """
    make, end, words = TROUBLES[name]
    until(lambda: operator.state(wire.name) == "connected", lambda: operator.log[-2000:])
    time.sleep(wait_s)
    before = len(operator.of(wire.name))
    began_s = time.monotonic()
    make(wire)
    until(lambda: operator.state(wire.name) != "connected", lambda: operator.log[-2000:])
    dropped = next(one for one in operator.of(wire.name)[before:] if one.state == "dropped")
    assert words in dropped.cause, dropped
    ended_s = time.monotonic()
    end(wire)
    until(lambda: operator.state(wire.name) == "connected", lambda: operator.log[-2000:])
    up = operator.of(wire.name, "connected")[-1]
    assert time.monotonic() - began_s >= up.monotonic_s - began_s >= dropped.monotonic_s - began_s >= 0
    return dropped.monotonic_s - began_s, up.monotonic_s - ended_s


def quantiles(values: list[float]) -> dict[str, float]:
    """What a table says of times."""
    found = sorted(values)
    at = lambda share: found[min(len(found) - 1, int(share * len(found)))]  # noqa: E731
    return {"least": found[0], "median": statistics.median(found), "p95": at(0.95), "most": found[-1]}


def main() -> None:
    """Make troubles, and print a line of JSON for each kind of them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=200, help="of each trouble")
    parser.add_argument("--out", type=Path, help="append the lines to this file")
    given = parser.parse_args()
    if (why := missing()) is not None:
        sys.exit(f"no wires: {why}")
    with wires() as made, tempfile.TemporaryDirectory() as folder:
        of = {name: made.add(f"wire{at}") for at, name in enumerate(TROUBLES)}
        operator = Running(configure(Path(folder), list(of.values())), made.prefix_near())
        try:
            with ThreadPoolExecutor(len(of)) as pool:
                found = dict(zip(of, pool.map(lambda name: repeated(operator, of[name], name, given.times), of), strict=True))
        finally:
            operator.end()
        load = round(os.getloadavg()[1], 1)
    git = ["git", "rev-parse", "--short=12", "HEAD"]
    commit = subprocess.run(git, capture_output=True, text=True, check=True, cwd=ROOT).stdout.strip()
    for name, seen in found.items():
        row = {"trouble": name, "times": len(seen), "load": load, "commit": commit, "date": date.today().isoformat()}
        row |= {f"noticed_{key}_s": round(value, 3) for key, value in quantiles([one for one, _ in seen]).items()}
        row |= {f"back_{key}_s": round(value, 3) for key, value in quantiles([one for _, one in seen]).items()}
        row["in_time"] = sum(one <= NOTICED_S for one, _ in seen)
        print(json.dumps(row), flush=True)
        if given.out is not None:
            with given.out.open("a") as file:
                file.write(json.dumps(row) + "\n")


def repeated(operator: Running, wire: Wire, name: str, times: int) -> list[tuple[float, float]]:
    """The same trouble again and again, each time after another while."""
    rng = random.Random(name)
    return [trouble(operator, wire, name, rng.uniform(0.0, 1.0)) for _ in range(times)]


if __name__ == "__main__":
    main()

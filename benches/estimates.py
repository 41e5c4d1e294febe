"""Accuracy of the cost estimate of a study: estimated over used CPU time and memory, for random scenarios.

    cargo run -q -p farlink-sim --example scenarios -- 1 500 5 | .venv/bin/python benches/estimates.py

Each line of standard input is a scenario as JSON. It is run once on one thread; CPU time is that of the process, memory its
peak growth (Linux). Runs too short or too small to be measured are left out.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

from farlink import _core

SHORTEST_S = 0.002
SMALLEST_BYTES = 10e6
LONGEST_S = 60.0


def main() -> None:
    """Print quantiles of the ratios, and the scenarios at both ends."""
    ratios: dict[str, list[tuple[float, float, str]]] = {"CPU time": [], "memory": []}
    interrupted = 0
    for line in sys.stdin:
        text = json.dumps({**json.loads(line), "runs": 1})
        expected_s, expected_bytes = _core.estimate(text, 1)
        used = _used(text)
        if used is None:
            interrupted += 1
            continue
        used_s, used_bytes = used
        if max(used_s, expected_s) > SHORTEST_S:
            ratios["CPU time"].append((expected_s / max(used_s, 1e-4), used_s, line))
        if max(used_bytes, expected_bytes) > SMALLEST_BYTES:
            ratios["memory"].append((expected_bytes / max(used_bytes, 1e5), used_bytes, line))
    for name, found in ratios.items():
        print(f"{name}: {len(found)} scenarios")
        if not found:
            continue
        found.sort(key=lambda one: one[0])
        for quantile in (0.0, 0.05, 0.25, 0.5, 0.75, 0.95, 1.0):
            at = min(int(quantile * len(found)), len(found) - 1)
            print(f"  {100 * quantile:3.0f} %: estimate / used = {found[at][0]:.2f} (used {found[at][1]:.3g})")
        for ratio, _, line in (found[0], found[-1]):
            Path(f"out/estimate-{name.split()[0]}-{'low' if ratio < 1 else 'high'}.json").write_text(line, encoding="utf-8")
    print(f"{interrupted} took more than {LONGEST_S:.0f} s and were stopped")


def _used(text: str) -> tuple[float, float] | None:
    """CPU time in s and growth in bytes of a run; none if it takes too long."""
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    before = _status("VmRSS")
    begin, cpu = time.monotonic(), time.process_time()

    def progress(_done: int, _all: int) -> None:
        if time.monotonic() - begin > LONGEST_S:
            raise TimeoutError

    try:
        _core.run(text, 1, progress)
    except TimeoutError:
        return None
    return time.process_time() - cpu, _status("VmHWM") - before


def _status(name: str) -> float:
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return 1024.0 * float(next(line for line in lines if line.startswith(name)).split()[1])


if __name__ == "__main__":
    Path("out").mkdir(exist_ok=True)
    main()

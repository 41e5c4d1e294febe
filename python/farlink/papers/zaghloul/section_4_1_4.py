"""Section 4.1.4: timers of delayed acknowledgements that are drawn at random, and how long they hold a lone segment's back.

A transfer of two segments with an initial window of one: the second segment waits for the acknowledgement of the first, which
waits for the timer. Beside the same transfer with acknowledgements at once, the time is longer by that delay.
"""

from __future__ import annotations

from farlink.models.tcp_latency.slow_start import DELAYED_ACK_S
from farlink.papers.check import Check, number
from farlink.papers.estimate import Estimate
from farlink.papers.item import Drawing, Workbench
from farlink.papers.zaghloul.transfers import Path, simulated

TIMERS = {"bsd": ("UNIX", (0.0, 0.2), "100"), "windows": ("Windows NT4 and Win95", (0.1, 0.2), "150")}
"""Timers by name in `slow_start.DELAYED_ACK_S`: system, range in s, and expected delay in ms as printed in section 4.2.1."""

# The mean of U(0, 0.2) is then known to 0.9 ms with 95 %.
_RUNS = 16_000
_RELATIVE = 0.02


def section_4_1_4(bench: Workbench) -> tuple[list[Check], list[Drawing]]:
    """Mean delay by timer, of the engine and of the closed forms."""
    at_once = _time_s(bench, "at-once", Path("independent", 1), (), 1).mean
    rule = f"agrees within the printed digits and {_RELATIVE:.0%}; the sampling error decides"
    checks, item = [], "section-4.1.4"
    for key, (system, drawn, printed) in TIMERS.items():
        time = _time_s(bench, key, Path("independent", 2), drawn, bench.repetitions(_RUNS))
        least_ms, most_ms = (1e3 * bound for bound in drawn)
        cell = f"{system}, timer uniform from {least_ms:g} to {most_ms:g} ms: delay of a lone segment's acknowledgement"
        delay = Estimate(1e3 * (time.mean - at_once), 1e3 * time.half_width)
        verdict = number(delay, printed, relative=_RELATIVE)
        checks.append(Check(item, f"{cell}, ms", float(printed), "packet", delay, verdict, rule))
        closed = Estimate(1e3 * DELAYED_ACK_S[key])
        verdict, digits = number(closed, printed), "agrees within the printed digits"
        checks.append(Check(item, f"{cell} in the closed forms, ms", float(printed), "model", closed, verdict, digits))
    return checks, []


def _time_s(bench: Workbench, name: str, path: Path, drawn: tuple[float, ...], runs: int) -> Estimate:
    changes = {"delayed_ack_timeout_s": list(drawn)} if drawn else {}
    scenario = path.scenario([2], [0.0], runs=runs, changes=changes)
    return simulated(path, bench.run(f"section-4.1.4-{name}", scenario))[2, 0.0]

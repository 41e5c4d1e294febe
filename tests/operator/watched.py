"""A bundle that is watched, without an operator: what one would say is given."""

from __future__ import annotations

import itertools
import json
import os
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from farlink.operator.config.bundle import Budget, Bundle, BundleBudget, Line
from farlink.operator.journal import Journal, Transition
from farlink.operator.live.control import UnreachableError
from farlink.operator.watch.source import Source

START_S = 1_795_000_000.0
LINES = ("kansas", "iowa")


def promtool() -> str | None:
    """Where promtool is: in the PATH, or beside the tests' Python, where `.ci/promtool` puts it."""
    return shutil.which("promtool", path=os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")]))


class Told(Source):
    """A bundle whose operator says what it is given; without that it is away."""

    said: dict[str, Any] | None = None
    asked: list[dict[str, Any]]

    def ask(self, request: Mapping[str, Any]) -> dict[str, Any]:
        self.asked = [*getattr(self, "asked", []), dict(request)]
        if self.said is None:
            raise UnreachableError("no operator of bundle camp is running", "start it")
        return self._without_secrets(json.loads(json.dumps(self.said)))


def bundle_in(folder: Path, name: str = "camp") -> Bundle:
    lines = tuple(Line(line, f"/dev/{line}", "hayes", number="123") for line in LINES)
    return Bundle(
        name,
        lines,
        2,
        journal=folder / f"{name}.journal",
        budget=Budget(airtime_s_per_day=1000, money_per_month=50),
        bundle_budget=BundleBudget(airtime_s_per_day=1500),
    )


def status_of(bundle: str = "camp", **more: Any) -> dict[str, Any]:
    lines = [
        {
            **{"line": line, "role": "dial", "state": "connected", "reason": "up", "cause": "", "for_s": 12.5, "until_s": None},
            **{"ends": "a drop", "ends_in_s": None, "attempt": 1, "call": 1, "number": "", "is_primary": line == "kansas"},
            **{"is_trial": False, "is_up": True, "expected_up_s": 3000.0, "connected_s": 12.5, "drops": 1.5},
            **{"airtime_s_today": 950.0, "airtime_s_month": 950.0, "money_today": 1.0, "money_month": 60.0},
            **{"signal": 18, "most_signal": 31, "has_port": True, "bytes_in": 1000, "bytes_out": 2000, "round_trip_s": 0.6},
        }
        for line in LINES
    ]
    return {
        **{"bundle": bundle, "back_end": "stand-in", "running_s": 100.0, "primary": "kansas", "up": 2, "use": 2},
        **{"connection": 1, "injected_per_s": None, "injected_lines": [], "lines": lines},
        "costs": {"airtime_s_today": 1900.0, "airtime_s_month": 1900.0, "money_today": 2.0, "money_month": 120.0},
        "bundle_budget": {"airtime_s_per_day": 1500},
        "journal": {"path": "camp.journal", "failure": "", "waiting": 0, "left_out": 0},
        "hooks": {"failures": 3, "left_out": 0},
        **more,
    }


class Recorded:
    """A journal that is being written: each transition comes a given time after the one before."""

    def __init__(self, journal: Journal, connection: int, boot: str = "boot-1") -> None:
        self.journal, self.connection, self.boot = journal, connection, boot
        self.at_s = 0.0
        self._numbers = itertools.count(1)

    def add(self, after_s: float, line: str, state: str, **more: Any) -> Transition:
        self.at_s += after_s
        one = Transition(self.connection, line, state, START_S + self.at_s, 50.0 + self.at_s, self.boot, **more)
        self.journal.record(one)
        return one

"""How far a study is."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

from farlink.study.plan import Plan
from farlink.study.store import Store

# The rate is that of so long before now.
_RECENT_S = 600.0


@dataclass(frozen=True)
class Status:
    """How far a study is.

    Attributes
    ----------
    done, units
        Units that have a file, and those that are known; a rule of precision asks for more as it goes.
    is_open
        Whether a rule of precision may ask for more units than `units`.
    per_s
        Units per second over the last ten minutes in which any was done; 0 if none was.
    left_s
        Time that the rest takes at that rate, in s; None if it is not known.
    last_s
        Seconds since a unit was done; None if none was.
    workers
        Workers that have executed units.
    failures
        Units that were set aside, and why.
    """

    done: int
    units: int
    is_open: bool
    per_s: float
    left_s: float | None
    last_s: float | None
    workers: int
    failures: list[dict[str, Any]]

    @property
    def is_finished(self) -> bool:
        """Whether all known units are done, and no rule can ask for more."""
        return self.done == self.units and not self.is_open


def status_of(store: Store, plan: Plan, now: float | None = None) -> Status:
    """How far the study in a folder is.

    Parameters
    ----------
    store, plan
        The study.
    now
        Time in s since 1970; by default that of the clock.
    """
    now = time.time() if now is None else now
    finished = store.finished()
    planned, done = 0, 0
    for unit in plan.planned():
        planned += 1
        done += unit.key in finished
    if plan.has_rule:
        # Units that rules have asked for are in no list; all files of this folder are of this study.
        done = len(finished)
        planned = max(planned, done)
    times, workers = [], set()
    for line in store.executed():
        times.append(line["at"])
        workers.add(line["worker"])
    last = max(times, default=None)
    recent = [at for at in times if last is not None and at > last - _RECENT_S]
    span = max(recent) - min(recent) if len(recent) > 1 else 0.0
    per_s = (len(recent) - 1) / span if span > 0 else 0.0
    left = planned - done
    return Status(
        done=done,
        units=planned,
        is_open=plan.has_rule,
        per_s=per_s,
        left_s=left / per_s if per_s > 0 and not plan.has_rule else None,
        last_s=None if last is None else max(0.0, now - last),
        workers=len(workers),
        failures=store.failures(),
    )

"""The causes of alerts, a row each: how bad it is, what raises it, what clears it, and what people are told."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

SEVERITIES = ("info", "warning", "critical")
"""From the least to the worst."""

# States of modems, of every kind of lines, that say nothing of whether they work.
_UNKNOWN_MODEMS = ("starting", "closed", "port closed", "not there", "unknown", "initializing", "locked", "failed")

LOW_SHARE = 0.8
"""So much of a budget is used up when people are warned."""

Row = Mapping[str, Any]
_SIM = re.compile(r"\bSIM\b")
# A line that waits for these is not dead: it is not wanted now, or a person or a budget keeps it down.
_RESTING = ("spare", "listening", "by-hand", "not-started", "stopped", "primary", "lost-primary")
# The keys of a budget, and what of a line or of all lines they limit.
_USED = {
    "airtime_s_per_day": ("airtime_s_today", "airtime of the day"),
    "airtime_s_per_month": ("airtime_s_month", "airtime of the month"),
    "money_per_day": ("money_today", "money of the day"),
    "money_per_month": ("money_month", "money of the month"),
}


@dataclass(frozen=True)
class View:
    """State of a bundle at one time.

    Attributes
    ----------
    lines
        Its lines, as in `Operator.status`.
    costs, bundle_budget
        What all calls have cost, and what they may.
    budgets
        Line -> what its calls may cost; None for no limit.
    journal_failure, hook_failure, delivery_failure
        Why the journal cannot be written, the hook fails, messages do not get out; empty if all is well.
    free_bytes, least_free_bytes
        What the disk of the journal has left, None if nobody knows; below the latter it is low.
    """

    lines: tuple[Row, ...]
    costs: Row
    bundle_budget: Row
    budgets: Mapping[str, Row]
    journal_failure: str = ""
    hook_failure: str = ""
    delivery_failure: str = ""
    free_bytes: float | None = None
    least_free_bytes: float = 0.0


@dataclass(frozen=True)
class Cause:
    """One cause of alerts.

    Attributes
    ----------
    name
        In status, journal and hooks.
    severity
        One of `SEVERITIES`.
    title
        For people; ``{line}`` is the line's name.
    raised_by
        Why it is raised, in words; empty if it is not. Of a cause of lines it gets a line, else an empty row.
    cleared_by
        Whether it is over.
    is_of_line
        Whether each line has an alert of its own.
    is_damped
        Whether it is raised only once it has lasted for `after_s`.
    hidden_by
        Causes of the same line that say more: while one of them is raised, this one is not.
    """

    name: str
    severity: str
    title: str
    raised_by: Callable[[View, Row], str]
    cleared_by: Callable[[View, Row], bool]
    is_of_line: bool = True
    is_damped: bool = False
    hidden_by: tuple[str, ...] = ()


def _is_up(line: Row) -> bool:
    return line["state"] in ("connected", "silent")


def _is_resting(line: Row) -> bool:
    reason = line["reason"]
    return line["state"] == "held" or (line["state"] == "waiting" and (reason in _RESTING or "budget-" in reason))


def _dead(_: View, line: Row) -> str:
    # A line that is damped has an alert of its own, and is dialled afterwards.
    return "" if _is_up(line) or _is_resting(line) or line["reason"] == "flapping" else str(line["cause"] or line["reason"])


def _is_back(_: View, line: Row) -> bool:
    return line["state"] == "connected" or _is_resting(line)


def _down(view: View, _: Row) -> str:
    if any(map(_is_up, view.lines)) or all(line["state"] == "held" for line in view.lines):
        return ""
    return "; ".join(f"{line['line']}: {line['cause'] or line['reason']}" for line in view.lines)


def _modem_failure(line: Row) -> str:
    return str(line.get("modem_failure") or "")


def _spent(view: View, line: Row) -> str:
    reason = str(line["reason"])
    if line["state"] != "waiting" or not reason.startswith("budget-"):
        return ""
    return _low(view, line) or reason


def _all_spent(view: View, _: Row) -> str:
    reasons = [str(line["reason"]) for line in view.lines if str(line["reason"]).startswith("bundle-budget-")]
    return (_all_low(view, {}) or reasons[0]) if reasons else ""


def _low(view: View, line: Row) -> str:
    return "; ".join(used for used, share in _uses(view.budgets.get(line["line"], {}), line) if share >= LOW_SHARE)


def _all_low(view: View, _: Row) -> str:
    return "; ".join(used for used, share in _uses(view.bundle_budget, view.costs) if share >= LOW_SHARE)


def _uses(limits: Row, used: Row) -> list[tuple[str, float]]:
    """Each limit with its use in words, and the share that is used up."""
    found = []
    for key, (of, words) in _USED.items():
        limit, spent = limits.get(key), used.get(of)
        if limit and spent is not None:
            found.append((f"{spent / limit:.0%} of the {words}", spent / limit))
    return found


def _free(view: View, _: Row) -> str:
    if view.free_bytes is None or view.free_bytes >= view.least_free_bytes:
        return ""
    return f"{view.free_bytes / 1e6:.0f} MB are free, less than {view.least_free_bytes / 1e6:.0f} MB"


def _not(raised_by: Callable[[View, Row], str]) -> Callable[[View, Row], bool]:
    """Over when that which raises it is."""
    return lambda view, line: not raised_by(view, line)


def _cause(name: str, severity: str, title: str, raised_by: Callable[[View, Row], str], **more: Any) -> Cause:
    return Cause(name, severity, title, raised_by, **{"cleared_by": _not(raised_by), **more})


def _of_all(name: str, severity: str, title: str, raised_by: Callable[[View, Row], str], **more: Any) -> Cause:
    return _cause(name, severity, title, raised_by, is_of_line=False, **more)


def _sim(_: View, line: Row) -> str:
    failure = _modem_failure(line)
    return failure if _SIM.search(failure) else ""


def _modem(_: View, line: Row) -> str:
    failure = _modem_failure(line)
    return "" if _SIM.search(failure) else failure


def _modem_is_well(_: View, line: Row) -> bool:
    # A modem that begins anew, as all do when the operator does, has not failed yet.
    return not _modem_failure(line) and str(line.get("modem", "")) not in _UNKNOWN_MODEMS


def _no_port(_: View, line: Row) -> str:
    return "" if line["reason"] != "port-gone" else str(line["cause"] or "port-gone")


def _blocked(_: View, line: Row) -> str:
    return str(line["cause"] or line["reason"]) if line["state"] == "blocked" else ""


def _flapping(_: View, line: Row) -> str:
    return str(line["cause"] or "too many drops") if line["reason"] == "flapping" else ""


CAUSES: dict[str, Cause] = {
    one.name: one
    for one in (
        # Alerts that say more come before those that they hide.
        _cause("sim-locked", "critical", "{line}: SIM cannot be used", _sim, cleared_by=_modem_is_well),
        _cause("modem-failed", "warning", "{line}: modem has failed", _modem, cleared_by=_modem_is_well),
        # A modem that is reset is away for some seconds.
        _cause("port-gone", "warning", "{line}: port is gone", _no_port, is_damped=True),
        _cause("blocked", "warning", "{line} is blocked", _blocked, cleared_by=_is_back),
        _cause(
            *("line-down", "warning", "{line} is down", _dead),
            cleared_by=_is_back,
            is_damped=True,
            hidden_by=("sim-locked", "modem-failed", "port-gone", "blocked"),
        ),
        _cause(
            *("flapping", "warning", "{line} drops too often", _flapping),
            cleared_by=lambda _, line: line["reason"] != "flapping" and (_is_up(line) or line["state"] == "held"),
        ),
        _cause("budget-spent", "warning", "{line}: budget is used up", _spent),
        _cause("budget-low", "warning", "{line}: budget is nearly used up", _low, hidden_by=("budget-spent",)),
        _of_all("bundle-budget-spent", "critical", "budget of all lines is used up", _all_spent),
        _of_all(
            *("bundle-budget-low", "warning", "budget of all lines is nearly used up", _all_low),
            hidden_by=("bundle-budget-spent",),
        ),
        _of_all("bundle-down", "critical", "bundle is down", _down, is_damped=True),
        _of_all("journal", "critical", "journal cannot be written", lambda view, _: view.journal_failure),
        _of_all("disk-low", "warning", "disk of the journal is nearly full", _free, hidden_by=("journal",)),
        _of_all("hook-failing", "warning", "hook fails", lambda view, _: view.hook_failure),
        _of_all(
            *("delivery-failing", "warning", "alerts are not delivered", lambda view, _: view.delivery_failure),
            hidden_by=("bundle-down",),
        ),
    )
}
"""Name -> cause."""

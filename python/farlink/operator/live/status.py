"""The state of an operator as a table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from farlink.operator.live.recorder import words_of
from farlink.untrusted import printable

if TYPE_CHECKING:
    from rich.console import RenderableType

_COLOURS = {
    "connected": "green",
    "connecting": "yellow",
    "silent": "yellow",
    "failed": "red",
    "blocked": "red",
    "held": "magenta",
}
HEAD = ("line", "state", "for", "why", "until", "signal", "attempt", "drops", "mean up", "airtime today")


def rows(status: Mapping[str, Any]) -> list[tuple[str, ...]]:
    """A row for each line, with the columns of `HEAD`."""
    found: list[tuple[str, ...]] = []
    for one in status["lines"]:
        name = one["line"] + (" *" if one["is_primary"] else "")
        signal = "-" if one["signal"] is None else f"{one['signal']:g}"
        why = printable(words_of(one), 60)  # a modem's words may have anything in them
        until = one["ends"] if one["ends_in_s"] is None else f"{duration(one['ends_in_s'])}: {one['ends']}"
        found.append(
            (
                *(name, one["state"], duration(one["for_s"]), why, until[:50], signal),
                *(f"{one['attempt']}", f"{one['drops']:g}", duration(one["expected_up_s"]), duration(one["airtime_s_today"])),
            )
        )
    return found


def duration(seconds: float | None) -> str:
    """A time that people read.

    Examples
    --------
    >>> [duration(one) for one in (None, 3.2, 125, 7300, 200_000)]
    ['-', '3 s', '2 min 05 s', '2 h 01 min', '2 d 07 h']
    """
    if seconds is None:
        return "-"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02} s"
    if whole < 86400:
        return f"{whole // 3600} h {whole % 3600 // 60:02} min"
    return f"{whole // 86400} d {whole % 86400 // 3600:02} h"


def title(status: Mapping[str, Any]) -> str:
    """Lines above the table."""
    text = f"Bundle {status['bundle']}: {status['up']} of {status['use']} lines up, running {duration(status['running_s'])}"
    if status["injected_per_s"] is not None:
        lines = len(status["injected_lines"])
        text += f"; drops are injected, one in {duration(1 / status['injected_per_s'])} of each of {lines} lines"
    if status["journal"]["failure"]:
        text += f"; the journal cannot be written: {status['journal']['failure']}"
    return text


def costs(status: Mapping[str, Any]) -> str:
    """Costs of all lines beside their limits; empty where nothing is limited for all of them.

    Examples
    --------
    >>> costs({"costs": {"airtime_s_today": 125.0}, "bundle_budget": {"airtime_s_per_day": 7300.0, "money_per_day": None}})
    'All lines: 2 min 05 s of 2 h 01 min airtime today'
    """
    used, limits = status["costs"], status["bundle_budget"]
    found = []
    for key, limit in limits.items():
        if limit is not None:
            what, period = key.split("_")[0], "today" if key.endswith("day") else "month"
            spent = used[f"airtime_s_{period}" if what == "airtime" else f"money_{period}"]
            amounts = f"{duration(spent)} of {duration(limit)}" if what == "airtime" else f"{spent:.2f} of {limit:.2f}"
            found.append(f"{amounts} {what} {'today' if period == 'today' else 'this month'}")
    return f"All lines: {', '.join(found)}" if found else ""


def details(status: Mapping[str, Any]) -> list[str]:
    """Remarks on lines that do not fit into the table."""
    return [f"{one['line']}: {printable(one['details'], 400)}" for one in status["lines"] if one.get("details")]


def alerts(status: Mapping[str, Any]) -> list[str]:
    """The alerts that are raised, a line each, the worst first.

    Examples
    --------
    >>> raised = {"severity": "critical", "words": "bundle is down: kansas: BUSY", "for_s": 125.0}
    >>> alerts({"alerts": [raised]})
    ['critical, for 2 min 05 s: bundle is down: kansas: BUSY']
    """
    raised = sorted(status.get("alerts", ()), key=lambda one: one["severity"] != "critical")
    found = [f"{one['severity']}, for {duration(one['for_s'])}: {printable(one['words'], 120)}" for one in raised]
    failing = [one for one in status.get("delivery", {}).get("routes", ()) if one["failures"]]
    return found + [f"{one['waiting']} messages wait for {one['route']}: {one['why']}" for one in failing]


def shown(status: Mapping[str, Any]) -> str:
    """The state as text."""
    from farlink.text_table import table

    below = [text for text in ("* primary line", costs(status), *alerts(status), *details(status)) if text]
    return "\n".join([title(status), table(HEAD, rows(status)), *below, ""])


def _below(status: Mapping[str, Any]) -> str:
    words = "* primary line. Ctrl-C ends this view, not the operator."
    return "\n".join(text for text in (costs(status), *alerts(status), *details(status), words) if text)


def live(status: Mapping[str, Any]) -> RenderableType:
    """The state as a table of Rich."""
    from rich.table import Table
    from rich.text import Text

    made = Table(title=Text(title(status)), caption=Text(_below(status)))
    for name in HEAD:
        made.add_column(name, no_wrap=name in ("line", "state", "for", "signal"))
    for row in rows(status):
        made.add_row(*(Text(cell, style=_COLOURS.get(cell, "") if at == 1 else "") for at, cell in enumerate(row)))
    return made

"""The state of an operator as a table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from farlink.operator.live.recorder import words_of

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
        why = words_of(one)
        until = one["ends"] if one["ends_in_s"] is None else f"{duration(one['ends_in_s'])}: {one['ends']}"
        found.append(
            (
                *(name, one["state"], duration(one["for_s"]), why[:60], until[:50], signal),
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
    """What stands over the table."""
    text = f"Bundle {status['bundle']}: {status['up']} of {status['use']} lines up, running {duration(status['running_s'])}"
    if status["injected_per_s"] is not None:
        lines = len(status["injected_lines"])
        text += f"; drops are injected, one in {duration(1 / status['injected_per_s'])} of each of {lines} lines"
    if status["journal"]["failure"]:
        text += f"; the journal cannot be written: {status['journal']['failure']}"
    return text


def shown(status: Mapping[str, Any]) -> str:
    """The state as text."""
    from farlink.text_table import table

    return f"{title(status)}\n{table(HEAD, rows(status))}\n* primary line\n"


def live(status: Mapping[str, Any]) -> RenderableType:
    """The state as a table of Rich."""
    from rich.table import Table
    from rich.text import Text

    made = Table(title=Text(title(status)), caption="* primary line. Ctrl-C ends this view, not the operator.")
    for name in HEAD:
        made.add_column(name, no_wrap=name in ("line", "state", "for", "signal"))
    for row in rows(status):
        made.add_row(*(Text(cell, style=_COLOURS.get(cell, "") if at == 1 else "") for at, cell in enumerate(row)))
    return made

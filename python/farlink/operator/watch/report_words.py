"""The report of a connection in words: facts and tables, from which its pages are made."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from farlink.channels.calls.words import duration

LINES_HEAD = (
    "line",
    "index",
    "up",
    "share",
    "attempts",
    "failed",
    "drops",
    "injected",
    "mean up",
    "signal",
    "in",
    "out",
)
CAUSES_HEAD = ("cause", "count")
SHARES_HEAD = ("lines up", "share of the time")


def heading(report: Mapping[str, Any]) -> str:
    """A title."""
    return f"Connection {report['connection']} of bundle {report['bundle']}"


def facts(report: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Summary of the whole, as names and values."""
    end = report["end"] or ("it lasts" if not report["is_over"] else "unknown")
    left_out = report["transitions_left_out"]
    return [
        ("start", report["start"]),
        ("end", end),
        ("length", duration(report["length_s"])),
        *([("left out", f"the last {left_out} transitions: the rest tells nothing of the time after it")] if left_out else []),
        ("primary line", report["primary"] or "none"),
        ("all lines up", percent(report["share_all_up"])),
        ("at least one up", percent(report["share_any_up"])),
        ("drops", f"{report['drops']}" + (f" and {report['injected_drops']} injected" if report["injected_drops"] else "")),
        ("mean up time", mean_up(report["mean_up"])),
        ("received", size(report["bytes_in"], report["throughput_in_bps"])),
        ("sent", size(report["bytes_out"], report["throughput_out_bps"])),
    ]


def line_rows(report: Mapping[str, Any]) -> list[tuple[str, ...]]:
    """A row for each line, with the columns of `LINES_HEAD`."""
    return [_line_row(one) for one in report["lines"]]


def _line_row(one: Mapping[str, Any]) -> tuple[str, ...]:
    signal = one["signal"]
    return (
        one["line"],
        "-" if one["index"] is None else str(one["index"]),
        duration(one["up_s"]),
        percent(one["share_up"]),
        *(str(one[key]) for key in ("attempts", "failures", "drops", "injected_drops")),
        mean_up(one["mean_up"]),
        "-" if signal is None else f"{signal['mean']:g} ({signal['least']:g} to {signal['most']:g})",
        size(one["bytes_in"], one["throughput_in_bps"]),
        size(one["bytes_out"], one["throughput_out_bps"]),
    )


def cause_rows(report: Mapping[str, Any]) -> list[tuple[str, ...]]:
    """Why calls dropped and attempts failed, with the columns of `CAUSES_HEAD`."""
    return [(one["cause"], str(one["count"])) for one in report["causes"]]


def share_rows(report: Mapping[str, Any]) -> list[tuple[str, ...]]:
    """How long how many lines were up, with the columns of `SHARES_HEAD`."""
    return [(str(count), percent(share)) for count, share in enumerate(report["share_by_lines_up"])]


def percent(share: float | None) -> str:
    """A share.

    Examples
    --------
    >>> percent(0.87123), percent(None)
    ('87.12 %', '-')
    """
    return "-" if share is None else f"{100 * share:.2f} %"


def mean_up(found: Mapping[str, Any]) -> str:
    """A mean up time with its interval, or what is known of it.

    Examples
    --------
    >>> mean_up({"mean_s": 3000.0, "low_s": 1369.0, "high_s": 11011.0, "drops": 4, "reason": ""})
    '50 min (22.8 min to 3.06 h)'
    >>> mean_up({"mean_s": None, "low_s": 1202.0, "high_s": None, "drops": 0, "reason": "needs 2 drops, there are 0"})
    'above 20 min'
    """
    mean_s, low_s, high_s = found["mean_s"], found["low_s"], found["high_s"]
    if mean_s is None:
        return "-" if low_s is None else f"above {duration(low_s)}"
    return duration(mean_s) + (f" ({duration(low_s)} to {duration(high_s)})" if high_s is not None else "")


def size(count: int | None, rate_bps: float | None) -> str:
    """An amount and its rate over the whole connection.

    Examples
    --------
    >>> size(300_000, 2400.0), size(None, None)
    ('300.0 kB, 2.4 kbit/s', 'unknown')
    """
    if count is None:
        return "unknown"
    amount = f"{count} B" if count < 1000 else f"{count / 1e3:.1f} kB" if count < 1e6 else f"{count / 1e6:.1f} MB"
    if rate_bps is None:
        return amount
    return f"{amount}, {rate_bps:.0f} bit/s" if rate_bps < 1000 else f"{amount}, {rate_bps / 1e3:.3g} kbit/s"


def markdown(report: Mapping[str, Any]) -> str:
    """The whole report as Markdown."""
    parts = [f"# {heading(report)}", "", *(f"- {name}: {value}" for name, value in facts(report)), ""]
    for title, head, rows in (
        ("Lines", LINES_HEAD, line_rows(report)),
        ("How many lines were up", SHARES_HEAD, share_rows(report)),
        ("Causes of drops and of failed attempts", CAUSES_HEAD, cause_rows(report)),
    ):
        if rows:
            parts += [f"## {title}", "", _row(head), _row(["---"] * len(head)), *map(_row, rows), ""]
    return "\n".join(parts)


def _row(cells: tuple[str, ...] | list[str]) -> str:
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"

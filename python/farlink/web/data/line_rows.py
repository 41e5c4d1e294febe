"""State of each line for the dashboard, in words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from farlink import units
from farlink.channels.calls.fits import mean_at_least_s
from farlink.operator.journal.flat import time_of
from farlink.operator.live.status import HEAD, duration, rows
from farlink.untrusted import printable
from farlink.web.data.bundles import View
from farlink.web.data.calls import Calls, Span, drops, mean_up, throughput_bps, up_times

# Of the dialler, and what the rows show already.
_OF_EVERY_LINE = {
    *("line", "role", "state", "reason", "cause", "ends", "ends_in_s", "for_s", "is_up", "is_primary", "is_trial", "has_port"),
    *("call", "drops", "expected_up_s", "airtime_s_today", "signal", "most_signal", "bytes_in", "bytes_out"),
}
# The year 9999.
_LAST_S = 253_402_300_799.0


@dataclass(frozen=True)
class LineRow:
    """A line, each part in words.

    Attributes
    ----------
    name, state
        Of the line; the state is ``unknown`` while the operator is away.
    is_primary
        Whether it is the primary line.
    since, why, until
        How long it is in this state, why, and what ends that.
    signal, attempt, airtime
        As the operator tells them.
    drops, mean_up
        Of the calls that the journal has of the last 30 days.
    throughput
        Of the call now, or of past calls.
    """

    name: str
    state: str
    is_primary: bool
    since: str
    why: str
    until: str
    signal: str
    attempt: str
    airtime: str
    drops: str
    mean_up: str
    throughput: str


def line_rows(view: View, calls: Calls | None) -> list[LineRow]:
    """A row for each line of a bundle.

    Parameters
    ----------
    view
        What is known of the bundle.
    calls
        What its journal says; None if it cannot be read.
    """
    if view.status is None:
        return [_of_away(name, calls) for name in view.lines]
    return [_row(one, row, view, calls) for one, row in zip(view.status["lines"], rows(view.status), strict=True)]


def _of_away(name: str, calls: Calls | None) -> LineRow:
    return LineRow(name, "unknown", False, "-", "the operator is away", "-", "-", "-", "-", *_of_calls(calls, name), "-")


def _row(one: Mapping[str, Any], row: tuple[str, ...], view: View, calls: Calls | None) -> LineRow:
    said = dict(zip(HEAD, row, strict=True))
    name = str(one["line"])
    most = one.get("most_signal")
    signal = said["signal"] if most is None or said["signal"] == "-" else f"{said['signal']} of {most}"
    return LineRow(
        name=name,
        state=str(one["state"]),
        is_primary=bool(one.get("is_primary")),
        since=said["for"],
        why=said["why"] or "-",
        until=said["until"] or "-",
        signal=signal,
        attempt=said["attempt"],
        airtime=said["airtime today"],
        drops=_of_calls(calls, name)[0],
        mean_up=_of_calls(calls, name)[1],
        throughput=_throughput(view, calls, name),
    )


def _of_calls(calls: Calls | None, name: str) -> tuple[str, str]:
    if calls is None:
        return "-", "-"
    return f"{drops(calls.of(name))}", mean_words(calls.of(name))


def mean_words(spans: list[Span]) -> str:
    """The mean up time of calls with its interval, or what is known of it.

    Examples
    --------
    >>> mean_words([])
    'no call yet'
    """
    sample = up_times(spans)
    if not sample.times_s.size:
        return "no call yet"
    found = mean_up(spans)
    if not found.is_fitted:
        least = duration(mean_at_least_s(sample.exposure_s)) if not sample.events else ""
        return f"above {least} (95 %)" if least else f"{duration(sample.exposure_s / sample.events)} (1 drop: no interval)"
    low_s, high_s = found.mean_ci_s
    return f"{duration(found.mean_s)} ({duration(low_s)} to {duration(high_s)})"


def _throughput(view: View, calls: Calls | None, name: str) -> str:
    if name in view.rates_bps:
        return f"{rate_words(view.rates_bps[name])} now"
    mean_bps = None if calls is None else throughput_bps(calls.of(name))
    return "not counted" if mean_bps is None else f"{rate_words(mean_bps)} on average"


def rate_words(rate_bps: float) -> str:
    """A bit rate that people read.

    Examples
    --------
    >>> rate_words(2400.0), rate_words(0.0)
    ('2.4 kb/s', '0 b/s')
    """
    return units.show(float(f"{rate_bps:.3g}"), "rate_bps")


def alert_words(one: Mapping[str, Any]) -> str:
    """An alert that is raised, as a sentence that stays the same while it is: a change would be read out."""
    said, line = printable(one.get("words") or one.get("alert") or "an alert", 300), printable(one.get("line") or "", 40)
    where = f"{line}: " if line and line not in said else ""
    since_s = one.get("since_unix_s")
    since = f", since {clock(since_s)} UTC" if isinstance(since_s, int | float) and 0 <= since_s <= _LAST_S else ""
    cause = printable(one.get("cause") or "", 200)
    return f"{where}{said}{since}" + (f" ({cause})" if cause and cause not in said else "")


def observed_words(one: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Values of a line beside those that every line has, with their names.

    Examples
    --------
    >>> observed_words({"line": "lte", "carrier": True, "addresses": ["10.0.0.2"], "round_trip_s": 0.0314, "failure": ""})
    [('carrier', 'yes'), ('addresses', '10.0.0.2'), ('round trip', '0.0314 s')]
    """
    found = []
    for key, value in one.items():
        text = _value_words(key, value)
        if key not in _OF_EVERY_LINE and text:
            found.append((printable(key.removesuffix("_s").replace("_", " "), 40), text))
    return found


def _value_words(key: str, value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        return (
            f"{value:.3g} s" if key.endswith("_s") and value < 60 else duration(value) if key.endswith("_s") else f"{value:g}"
        )
    if isinstance(value, list):
        return printable(", ".join(map(str, value)), 200)
    return printable(value, 200) if isinstance(value, str) else ""


def capital(text: str) -> str:
    """A text with a capital first letter."""
    return text[:1].upper() + text[1:]


def clock(time_s: float) -> str:
    """A time of day, UTC, to the second.

    Examples
    --------
    >>> clock(1783166403.4)
    '2026-07-04 12:00:03'
    """
    return time_of(time_s)[:19].replace("T", " ")

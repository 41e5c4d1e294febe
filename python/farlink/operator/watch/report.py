"""A report of a connection, for offline work (Zaghloul, section 7.5): what its lines did, and what that came to."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from farlink.channels.calls import fits, samples
from farlink.errors import FarlinkError
from farlink.operator.journal.flat import time_of
from farlink.operator.journal.rows import OBSERVATIONS, Connection, Transition

_ENDS = ("dropped", "ended")
_MOST_CAUSES = 20


@dataclass
class Up:
    """A time in which a line was up, in s from the begin of the connection.

    Attributes
    ----------
    begin_s, end_s
        From, until.
    outcome
        ``dropped``, ``injected``, ``ended`` on purpose, or ``open``.
    """

    begin_s: float
    end_s: float
    outcome: str


@dataclass
class _Line:
    name: str
    index: int | None
    ups: list[Up] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    causes: Counter[str] = field(default_factory=Counter)
    bars: list[int] = field(default_factory=list)
    bytes_in: int | None = None
    bytes_out: int | None = None

    @property
    def up_s(self) -> float:
        return math.fsum(one.end_s - one.begin_s for one in self.ups)


def report_of(
    connection: Connection,
    transitions: Sequence[Transition],
    *,
    bundle: str,
    lasts_s: float | None = None,
    left_out: int = 0,
) -> dict[str, Any]:
    """The report of a connection, ready for JSON.

    Parameters
    ----------
    connection
        The connection.
    transitions
        Those of it, in the order of their numbers.
    bundle
        Name of the bundle.
    lasts_s
        How long it has lasted since the last of them; None unless it still does.
    left_out
        How many transitions there are behind these: the report ends before the connection does.

    Returns
    -------
    dict
        Times in s; shares of the connection's time from 0 to 1; what is unknown is None.

    Notes
    -----
    Lengths are those of the clock that is never set. A drop that the operator injected ends a call as if on purpose: it says
    that the line was up for at least so long. A connection that nobody saw end, lasts until its last transition.

    References
    ----------
    Zaghloul, section 7.5, and 7.6 for the shares: of eight modems all up 87 % of the time, at least one 97 %.
    """
    lines, length_s = _lines_of(connection, transitions, lasts_s or 0.0)
    shares = _shares(lines, length_s)
    bytes_in, bytes_out = _sum(one.bytes_in for one in lines), _sum(one.bytes_out for one in lines)
    return {
        "bundle": bundle,
        "connection": connection.number,
        "start": time_of(connection.start_s),
        "end": None if connection.end_s is None else time_of(connection.end_s),
        "is_over": lasts_s is None,
        "length_s": round(length_s, 3),
        "transitions_left_out": left_out,
        "primary": connection.primary,
        "share_all_up": round(shares[-1], 6) if shares else None,
        "share_any_up": round(1 - shares[0], 6) if shares else None,
        "share_by_lines_up": [round(share, 6) for share in shares],
        "mean_lines_up": _share(math.fsum(one.up_s for one in lines), length_s),
        "drops": sum(one.counts["dropped"] for one in lines),
        "injected_drops": sum(one.counts["injected"] for one in lines),
        "bytes_in": bytes_in,
        "bytes_out": bytes_out,
        "throughput_in_bps": _rate(bytes_in, length_s),
        "throughput_out_bps": _rate(bytes_out, length_s),
        "mean_up": _mean_up([up for one in lines for up in one.ups]),
        "causes": _causes(sum((one.causes for one in lines), Counter())),
        "lines": [_line_report(one, length_s) for one in lines],
    }


def _lines_of(connection: Connection, transitions: Sequence[Transition], lasts_s: float) -> tuple[list[_Line], float]:
    """Its lines in the order of their indices, and its length in s."""
    lines = {name: _Line(name, index) for name, index in connection.indices.items()}
    up_since: dict[str, float] = {}
    clock, last_end_s, now_s = _Clock(), 0.0, 0.0
    for one in transitions:
        now_s = clock.elapsed_s(one)
        if connection.end_s is not None and one.time_s > connection.end_s and not up_since and last_end_s:
            break  # what lines do until the next connection begins
        line = lines.setdefault(one.modem, _Line(one.modem, None))
        if one.bars is not None:
            line.bars.append(one.bars)
        if one.state == "connected":
            up_since.setdefault(one.modem, now_s)
        elif one.modem in up_since and one.state not in OBSERVATIONS:
            outcome = "injected" if one.is_injected else one.state if one.state in _ENDS else "ended"
            line.ups.append(Up(up_since.pop(one.modem), now_s, outcome))
            last_end_s = now_s
        _count(line, one)
    now_s += lasts_s
    for name, begin_s in up_since.items():
        lines[name].ups.append(Up(begin_s, now_s, "open"))
        last_end_s = now_s
    length_s = last_end_s if connection.end_s is not None and last_end_s else now_s
    return sorted(lines.values(), key=lambda one: (one.index is None, one.index or 0, one.name)), length_s


def _count(line: _Line, one: Transition) -> None:
    state = "injected" if one.is_injected else one.state
    line.counts[state] += 1
    if state in ("dropped", "failed", "blocked") and one.cause:
        line.causes[one.cause] += 1
    if one.state in _ENDS:
        for name in ("bytes_in", "bytes_out"):
            count = getattr(one, name)
            if count is not None:
                setattr(line, name, (getattr(line, name) or 0) + count)


class _Clock:
    """Time since the first transition, by the clock that is never set; across a start of the machine by the time of day."""

    def __init__(self) -> None:
        self._last: Transition | None = None
        self._elapsed_s = 0.0

    def elapsed_s(self, one: Transition) -> float:
        last, self._last = self._last, one
        if last is not None:
            is_same = last.boot_id == one.boot_id
            step_s = one.monotonic_s - last.monotonic_s if is_same else one.time_s - last.time_s
            self._elapsed_s += max(0.0, step_s)
        return self._elapsed_s


def _shares(lines: Sequence[_Line], length_s: float) -> list[float]:
    """Share of the time in which 0, 1, ... lines are up (figure 7.14)."""
    steps: Counter[float] = Counter()
    for up in (up for line in lines for up in line.ups):
        steps[min(up.begin_s, length_s)] += 1
        steps[min(up.end_s, length_s)] -= 1
    times_s: dict[int, float] = dict.fromkeys(range(len(lines) + 1), 0.0)
    count = 0
    for begin_s, end_s in pairwise([0.0, *sorted(steps), length_s]):
        count += steps.pop(begin_s, 0)
        times_s[count] += end_s - begin_s
    return [time_s / length_s for time_s in times_s.values()] if length_s > 0 else []


def _line_report(line: _Line, length_s: float) -> dict[str, Any]:
    return {
        "line": line.name,
        "index": line.index,
        "up_s": round(line.up_s, 3),
        "share_up": _share(line.up_s, length_s),
        "attempts": line.counts["connecting"],
        "connects": line.counts["connected"],
        "failures": line.counts["failed"],
        "blocks": line.counts["blocked"],
        "drops": line.counts["dropped"],
        "injected_drops": line.counts["injected"],
        "bytes_in": line.bytes_in,
        "bytes_out": line.bytes_out,
        "throughput_in_bps": _rate(line.bytes_in, length_s),
        "throughput_out_bps": _rate(line.bytes_out, length_s),
        "mean_up": _mean_up(line.ups),
        "signal": _signal(line.bars),
        "causes": _causes(line.causes),
        "ups": [{"begin_s": round(up.begin_s, 3), "end_s": round(up.end_s, 3), "outcome": up.outcome} for up in line.ups],
    }


def _mean_up(ups: Sequence[Up]) -> dict[str, Any]:
    """Mean up time of an exponential with its 95 % interval, and why there is none."""
    if not ups:
        return {"mean_s": None, "low_s": None, "high_s": None, "drops": 0, "reason": "no call came up"}
    sample = samples.sample("up", [one.end_s - one.begin_s for one in ups], [one.outcome == "dropped" for one in ups])
    try:
        found = fits.fit(sample)
    except FarlinkError as error:
        mean_s = sample.exposure_s / sample.events if sample.events else None
        return {"mean_s": mean_s, "low_s": None, "high_s": None, "drops": sample.events, "reason": error.message}
    if found.is_fitted:
        low_s, high_s = found.mean_ci_s
        return {"mean_s": found.mean_s, "low_s": low_s, "high_s": high_s, "drops": sample.events, "reason": found.reason}
    least_s = fits.mean_at_least_s(sample.exposure_s) if not sample.events else None
    return {"mean_s": None, "low_s": least_s, "high_s": None, "drops": sample.events, "reason": found.reason}


def _signal(bars: Sequence[int]) -> dict[str, float] | None:
    if not bars:
        return None
    return {"least": min(bars), "mean": round(math.fsum(bars) / len(bars), 2), "most": max(bars), "readings": len(bars)}


def _causes(causes: Counter[str]) -> list[dict[str, Any]]:
    return [{"cause": cause, "count": count} for cause, count in causes.most_common(_MOST_CAUSES)]


def _sum(values: Iterable[int | None]) -> int | None:
    known = [one for one in values if one is not None]
    return sum(known) if known else None


def _share(part_s: float, whole_s: float) -> float | None:
    return round(part_s / whole_s, 6) if whole_s > 0 else None


def _rate(count: int | None, length_s: float) -> float | None:
    return None if count is None or length_s <= 0 else round(8 * count / length_s, 3)

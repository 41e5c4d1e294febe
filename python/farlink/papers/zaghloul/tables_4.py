"""Tables 4.2 and 4.3: which of Sikdar's and Padhye's models is nearer to a simulation, for short and for long transfers.

The tables are those of another thesis (Li, Calgary 2004), whose settings are not printed. So not their numbers are checked, but
which model is nearer, with the packet engine in the place of ns.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from farlink.papers.check import Check, claimed
from farlink.papers.estimate import Estimate
from farlink.papers.item import Drawing, Workbench
from farlink.papers.zaghloul.transfers import MODELS, RTT_S, TIMEOUT_S, WINDOW_SEGMENTS, Path, Point, simulated
from farlink.plot.curves import Line
from farlink.plot.lines import lines

LOSSES = (0.01, 0.03, 0.05, 0.08, 0.1)
INDEPENDENT = Path("independent", 2, WINDOW_SEGMENTS)
CORRELATED = Path("correlated", 2, WINDOW_SEGMENTS)


@dataclass(frozen=True)
class Table:
    """One of the tables.

    Attributes
    ----------
    key
        Its key.
    words
        What its transfers are.
    segments
        Length of what we take for its transfers; not printed.
    sikdar, padhye
        Printed errors, by loss.
    runs
        Runs of a point.
    causes
        By loss, what is known where we differ.
    """

    key: str
    words: str
    segments: int
    sikdar: tuple[float, ...]
    padhye: tuple[float, ...]
    runs: int
    causes: Mapping[float, str]


SHORT = Table(
    key="table-4.2",
    words="short",
    segments=10,
    sikdar=(0.15, 0.41, 0.25, 0.51, 1.06),
    padhye=(1.05, 1.35, 0.77, 0.52, 0.42),
    runs=6000,
    causes={
        0.1: "ten segments are sent in slow start and after a timeout or two, and Padhye's model has no slow start; from fifty "
        "segments on Padhye is nearer at this loss"
    },
)
LONG = Table(
    key="table-4.3",
    words="long",
    segments=1000,
    sikdar=(0.78, 1.82, 0.38, 4.75, 16.12),
    padhye=(0.96, 1.22, 0.35, 2.08, 10.57),
    runs=2500,
    causes={},
)


def table_4_2(bench: Workbench) -> tuple[list[Check], list[Drawing]]:
    """Short transfers: Sikdar is nearer up to 8 %, Padhye at 10 %."""
    checks, drawings = _table(bench, SHORT)
    rounds = _largest(_advantages(bench, SHORT, CORRELATED)[:-1])
    rule = "agrees below 1, the largest of the four; here behind a loss the rest of its round is lost, as both models assume"
    cell = f"{_length(SHORT)}, correlated losses from 1 to 8 %: error of Sikdar over error of Padhye"
    return [*checks, claimed(SHORT.key, cell, "Sikdar is nearer", rounds, rule=rule, at_most=1.0)], drawings


def table_4_3(bench: Workbench) -> tuple[list[Check], list[Drawing]]:
    """Long transfers: Padhye is nearer from 3 %."""
    checks, drawings = _table(bench, LONG)
    rounds = _least(_advantages(bench, LONG, CORRELATED)[1:])
    rule = "agrees above 1, the least of the four; here behind a loss the rest of its round is lost, as both models assume"
    cause = (
        "Reno halves again, and times out, for the losses of a round that Padhye lets pass for one; the order that is printed "
        "is that of independent losses"
    )
    cell = f"{_length(LONG)}, correlated losses from 3 to 10 %: error of Sikdar over error of Padhye"
    check = claimed(LONG.key, cell, "Padhye is nearer", rounds, rule=rule, at_least=1.0, cause=cause)
    return [*checks, check], drawings


def _table(bench: Workbench, table: Table) -> tuple[list[Check], list[Drawing]]:
    """Order of the two at every loss, with independent losses."""
    checks = []
    for loss, sikdar, padhye, ours in zip(
        LOSSES, table.sikdar, table.padhye, _advantages(bench, table, INDEPENDENT), strict=True
    ):
        nearer = "Sikdar" if sikdar < padhye else "Padhye"
        bounds = {"at_most": 1.0} if sikdar < padhye else {"at_least": 1.0}
        side = "below" if sikdar < padhye else "above"
        checks.append(
            claimed(
                table.key,
                f"{_length(table)}, p = {100 * loss:g} %: error of Sikdar over error of Padhye",
                f"{nearer} is nearer: {sikdar:g} and {padhye:g}",
                ours,
                rule=f"{nearer} is nearer {side} 1; independent losses",
                cause=table.causes.get(loss, ""),
                **bounds,
            )
        )
    return checks, [_drawing(table, _times(bench, table, INDEPENDENT))]


def _times(bench: Workbench, table: Table, path: Path) -> dict[Point, Estimate]:
    # Where correlated losses decide, they do so by far.
    runs = table.runs if path.losses == "independent" else table.runs // 4
    scenario = path.scenario([table.segments], LOSSES, runs=runs)
    return simulated(path, bench.run(f"{table.key}-{path.losses}", scenario))


def _advantages(bench: Workbench, table: Table, path: Path) -> list[Estimate]:
    """Error of Sikdar's prediction over that of Padhye's, at every loss."""
    times = _times(bench, table, path)
    predicted = {key: _predicted(key, table, path) for key in ("sikdar", "padhye")}
    return [
        quotient_of_errors(predicted["sikdar"][i], predicted["padhye"][i], times[table.segments, loss])
        for i, loss in enumerate(LOSSES)
    ]


def quotient_of_errors(first: float, second: float, truth: Estimate) -> Estimate:
    """Error of one prediction over that of another, wherever in its interval the truth lies; NaN where the other may be right.

    Examples
    --------
    >>> quotient = quotient_of_errors(9.0, 6.0, Estimate(10.0, 0.1))
    >>> round(quotient.low, 3), round(quotient.high, 3)
    (0.231, 0.268)
    >>> quotient_of_errors(9.0, 10.05, Estimate(10.0, 0.1)).mean
    nan
    """
    if not math.isfinite(truth.half_width) or truth.low <= second <= truth.high:
        return Estimate(math.nan, math.nan)
    # Between the ends the quotient has no other extreme than 0, where the first is right.
    ends = [abs(first - at) / abs(second - at) for at in (truth.low, truth.high)]
    low = 0.0 if truth.low <= first <= truth.high else min(ends)
    return Estimate((low + max(ends)) / 2, (max(ends) - low) / 2)


def _predicted(key: str, table: Table, path: Path) -> list[float]:
    losses = np.asarray(LOSSES)
    return [float(time) for time in MODELS[key].time_s(path, np.full(losses.shape, table.segments), losses)]


def _largest(values: list[Estimate]) -> Estimate:
    return max(values, key=lambda one: one.high)


def _least(values: list[Estimate]) -> Estimate:
    return min(values, key=lambda one: one.low)


def _length(table: Table) -> str:
    return f"{table.words}, {table.segments} segments"


def _drawing(table: Table, times: Mapping[Point, Estimate]) -> Drawing:
    drawn = []
    for look, (key, printed) in enumerate((("sikdar", table.sikdar), ("padhye", table.padhye))):
        name = MODELS[key].name.split(",")[0]
        errors = []
        for loss, time in zip(LOSSES, _predicted(key, table, INDEPENDENT), strict=True):
            truth = times[table.segments, loss]
            errors.append((100 * loss, abs(time / truth.mean - 1), time / truth.mean**2 * truth.half_width))
        drawn.append(Line(f"{name}, farlink", errors, look=look))
        drawn.append(
            Line(
                f"{name}, printed",
                [(100 * loss, value, 0.0) for loss, value in zip(LOSSES, printed, strict=True)],
                look=look,
                is_second=True,
            )
        )

    return Drawing(
        table.key.replace(".", "-"),
        f"Errors of two models for {table.words} transfers",
        f"{table.segments} segments, independent losses, RTT {RTT_S:g} s, timeout {TIMEOUT_S:g} s, a window of "
        f"{WINDOW_SEGMENTS} segments, beside the packet engine; printed: beside ns, with settings that are not.",
        lambda: lines(drawn, x_label="packet loss (%)", y_label="relative error", is_y_log=True),
    )

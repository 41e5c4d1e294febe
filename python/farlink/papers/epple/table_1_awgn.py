"""Table 1, the rows AWGN Testbed and AWGN KIODO: simulated goodput and load of the back channel.

The paper names no timer. Several are tried, all with the same transport otherwise, and of each column the one is compared that
comes nearest to its three numbers; `timers` has them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from farlink.papers.check import Check, Verdict, number
from farlink.papers.curves import estimate
from farlink.papers.epple.printed import Row, rows
from farlink.papers.epple.scenarios import TRANSPORT, scenario, transport
from farlink.papers.epple.setting import HEADER_BYTES, PAPER_SETTING, PROTOCOLS, REPORT_BYTES, Setting
from farlink.papers.epple.timers import SR_TIMER, SR_TIMERS, TCP_TIMER, TCP_TIMERS, Timer
from farlink.papers.estimate import Estimate
from farlink.papers.item import Drawing, Workbench
from farlink.plot.printed import Measured, beside_printed
from farlink.result import Result

TIMERS = {"tcp": TCP_TIMERS, "sr": SR_TIMERS}
# The aim: within so much of the printed goodput.
TOLERANCE = {"tcp": 0.1, "sr": 0.05}
_BACK_TOLERANCE = 0.05
# Deviations that are no more apart than this tell nothing.
_AS_GOOD = 0.005
_PLACES = ("Testbed", "KIODO")


@dataclass(frozen=True)
class Effort:
    """How long a column is simulated: to find its timer, and to compare it."""

    search_s: float
    search_runs: int
    final_s: float
    final_runs: int


# A loss costs go-back-N some 80 ms over 2500 km: a minute has less than a thousand of them.
_EFFORT = {
    ("Testbed", "tcp"): Effort(0.1, 2, 0.5, 4),
    ("Testbed", "sr"): Effort(0.1, 2, 0.5, 4),
    ("KIODO", "tcp"): Effort(12, 4, 30, 10),
    ("KIODO", "sr"): Effort(3, 2, 10, 8),
}


@dataclass(frozen=True)
class Column:
    """A column of table 1 at one place: goodput and back channel by printed payload length.

    Attributes
    ----------
    timer
        With which timer.
    goodput, back
        Means with their intervals.
    """

    timer: Timer
    goodput: Mapping[int, Estimate]
    back: Mapping[int, Estimate]

    def misfit(self, printed: Sequence[Row], protocol: str) -> float:
        """Root of the mean squared deviation from what is printed, as a share of it."""
        compared = [row for row in printed if row.payload_bytes in _COMPARED[row.scenario, protocol]]
        off = [self.goodput[row.payload_bytes].mean / float(row.goodput(protocol)) - 1 for row in compared]
        return math.sqrt(sum(one**2 for one in off) / len(off))


_ALL = (500, 1000, 1500)
# Of AWGN Testbed, TCP, two of the numbers stand in the column beside it too, in the other order: they say nothing of a timer.
_COMPARED = {
    ("AWGN Testbed", "tcp"): (500,),
    ("AWGN Testbed", "sr"): _ALL,
    ("AWGN KIODO", "tcp"): _ALL,
    ("AWGN KIODO", "sr"): _ALL,
}


def table_1_awgn(bench: Workbench, setting: Setting = PAPER_SETTING) -> tuple[list[Check], list[Drawing]]:
    """Both rows, simulated, with the timers that come nearest."""
    checks: list[Check] = []
    for place in _PLACES:
        printed = rows(f"AWGN {place}")
        for protocol in PROTOCOLS:
            column, misfits = nearest(bench, setting, place, protocol)
            checks += goodput_checks(setting, printed, protocol, column, misfits)
            checks += _back(setting, printed, protocol, column)
    return checks, [_drawing(checks)]


def nearest(bench: Workbench, setting: Setting, place: str, protocol: str) -> tuple[Column, dict[str, float]]:
    """The column with the timer that comes nearest to what is printed, and how far off each timer is."""
    effort, printed = _EFFORT[place, protocol], rows(f"AWGN {place}")
    # The frames that go-back-N sends in vain need not be simulated to find a timer.
    keys: dict[str, Any] = {"window_round_trips": 1.2} if protocol == "tcp" else {}
    tried = columns(
        bench,
        setting,
        place,
        protocol,
        TIMERS[protocol],
        duration_s=effort.search_s,
        runs=effort.search_runs,
        use="timers",
        **keys,
    )
    misfits = {column.timer.words: column.misfit(printed, protocol) for column in tried}
    least = min(misfits.values())
    as_good = [column.timer for column in tried if misfits[column.timer.words] <= least + _AS_GOOD]
    # Over short links nearly every timer fits: that of the long ones, then.
    usual = {"tcp": TCP_TIMER, "sr": SR_TIMER}[protocol]
    best = usual if usual in as_good else min(as_good, key=lambda timer: misfits[timer.words])
    (column,) = columns(
        bench, setting, place, protocol, [best], duration_s=bench.share(effort.final_s), runs=effort.final_runs, use="nearest"
    )
    return column, misfits


def columns(
    bench: Workbench,
    setting: Setting,
    place: str,
    protocol: str,
    timers: Sequence[Timer],
    *,
    duration_s: float,
    runs: int,
    use: str,
    channel: Mapping[str, Any] | None = None,
    **keys: Any,
) -> list[Column]:
    """A column of the table with each of several timers.

    Parameters
    ----------
    bench
        Where to run.
    setting, place, protocol
        Which column.
    timers
        To try.
    duration_s, runs
        How long each cell is simulated.
    use
        What for, in a word.
    channel
        Errors of both directions; independent ones unless given.
    **keys
        Of `transport`.
    """
    names = {
        (index, printed): f"{PROTOCOLS[protocol].replace(' ', '-').lower()}-{payload}-{index}"
        for index in range(len(timers))
        for printed, payload in setting.payloads_bytes.items()
    }
    tables = {
        name: transport(setting, place, setting.payloads_bytes[printed], protocol, timers[index], **keys)
        for (index, printed), name in names.items()
    }
    kind = "independent errors" if channel is None else "fading"
    title = f"{place}, {PROTOCOLS[protocol]}, {kind}, {use}"
    data = scenario(title, setting, place, tables, duration_s=duration_s, runs=runs, channel=channel)
    result = bench.run(f"{place}-{protocol}-{use}".lower().replace(" ", "-"), data)
    found = {entry[TRANSPORT]: entry for entry in result.summary()}
    arrivals = _arrivals(result, setting, protocol, tables)
    return [
        Column(
            timer,
            {printed: estimate(found[names[index, printed]]["goodput_fraction"]) for printed in setting.payloads_bytes},
            {printed: arrivals[names[index, printed]] for printed in setting.payloads_bytes},
        )
        for index, timer in enumerate(timers)
    ]


def _arrivals(result: Result, setting: Setting, protocol: str, tables: Mapping[str, Mapping[str, Any]]) -> dict[str, Estimate]:
    """Back channel if each packet that arrives is answered by one of constant length, as a header with room for blocks is."""
    from farlink.papers.epple.intervals import interval

    rows = result.rows
    shares: dict[str, list[float]] = {name: [] for name in tables}
    for name, flow, sent_bytes, loss, time_s in zip(
        *(rows[key] for key in (TRANSPORT, "flow", "sent_bytes", "loss_fraction", "duration_s")), strict=True
    ):
        if flow == "all":
            continue
        packet_bytes = tables[name]["segment_bytes"] + HEADER_BYTES[protocol] + (10 if tables[name].get("timestamps") else 0)
        packets = sent_bytes / packet_bytes * (1 - loss)
        shares[name].append(packets * 8 * REPORT_BYTES[protocol] / time_s / setting.rate_bps)
    return {name: interval(values) for name, values in shares.items()}


def goodput_checks(
    setting: Setting, printed: Sequence[Row], protocol: str, column: Column, misfits: Mapping[str, float]
) -> Iterator[Check]:
    """A column beside the printed one; `misfits` says how far off each timer is, by its words."""
    others = ", ".join(f"{words} {misfit:.1%}" for words, misfit in misfits.items() if words != column.timer.words)
    for row in printed:
        text, ours = row.goodput(protocol), column.goodput[row.payload_bytes]
        verdict = number(ours, text, relative=TOLERANCE[protocol])
        note = (
            f"within {TOLERANCE[protocol]:.0%}; {row.scenario}, {PROTOCOLS[protocol]}: the timer that comes nearest is "
            f"{column.timer.words} (mean deviation in a short search: {misfits[column.timer.words]:.1%}; others: {others})"
        )
        if protocol == "tcp":
            note += f"; {_waits(setting, printed)}"
        if len(_COMPARED[row.scenario, protocol]) < len(printed):
            note += _COPIED
        yield Check(
            "table-1-awgn",
            f"{row.scenario}, {PROTOCOLS[protocol]}, {setting.payloads_bytes[row.payload_bytes]} bytes: goodput",
            float(text),
            "packet",
            ours,
            verdict,
            note,
        ).fitted("the timer was chosen on this column")


_COPIED = (
    "; the printed numbers at 1000 and 1500 bytes are those of selective repeat in the other order, so only the one at 500 "
    "bytes chose the timer"
)


def _waits(setting: Setting, printed: Sequence[Row]) -> str:
    """Cost of a loss by the printed goodput, in round trips."""
    waits = []
    for row in printed:
        payload = setting.payloads_bytes[row.payload_bytes]
        packet_s = setting.packet_s(payload, "tcp")
        packets = 1 / setting.loss(payload, "tcp", counted="packet") - 1
        cycle_s = 8 * payload * packets / (float(row.tcp) * setting.rate_bps)
        place = row.scenario.removeprefix("AWGN ")
        waits.append(f"{(cycle_s - packets * packet_s) / setting.round_trip_s(place, payload, 'tcp'):.1f}")
    return f"a loss costs {', '.join(waits)} round trips by the printed numbers, which no multiple of the round trip meets all"


def _back(setting: Setting, printed: Sequence[Row], protocol: str, column: Column) -> list[Check]:
    return [
        Check(
            "table-1-awgn",
            f"{row.scenario}, {PROTOCOLS[protocol]}, {setting.payloads_bytes[row.payload_bytes]} bytes: back channel",
            float(row.back(protocol)),
            "packet",
            column.back[row.payload_bytes],
            number(column.back[row.payload_bytes], row.back(protocol), relative=_BACK_TOLERANCE),
            f"{PROTOCOLS[protocol]}: within {_BACK_TOLERANCE:.0%}; an acknowledgement of {REPORT_BYTES[protocol]} bytes "
            "for each packet that arrives, kept or not, counted at the receiver",
        ).fitted("the length of an acknowledgement was chosen on these columns")
        for row in printed
    ]


def _drawing(checks: Sequence[Check]) -> Drawing:

    return Drawing(
        "table-1-awgn",
        "Table 1, simulated goodput over independent errors: printed and ours",
        "Ours with the timer of each column that comes nearest; 95 % intervals.",
        lambda: beside_printed(
            [
                Measured(check.cell.removesuffix(": goodput"), float(check.printed), (check.value.mean, check.value.half_width))
                for check in checks
                if check.cell.endswith("goodput")
            ],
            x_label="goodput (share of the link)",
        ),
    )


__all__ = ["Column", "Verdict", "columns", "nearest", "table_1_awgn"]

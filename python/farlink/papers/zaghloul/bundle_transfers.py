"""Tables 6.1 and 6.2 packet by packet: the engine beside eq. (36), what it printed, and what was measured."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from farlink.models.ranges import Floats
from farlink.papers.check import Check, Verdict, rounding
from farlink.papers.item import Drawing, Workbench
from farlink.papers.zaghloul.packets import LINE_BPS, READINGS, mean_of, of_runs, scenario
from farlink.papers.zaghloul.setting import GREENLAND, MEGABYTE, MINUTE_S
from farlink.papers.zaghloul.tables import TABLE_6_1, TABLE_6_2

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_RUNS = 40
# Fewer runs say nothing about the 2.5 % at either end.
_LEAST_RUNS = 20
# A segment with headers of IP and TCP.
_PACKET_BYTES = 1500


@dataclass(frozen=True)
class _Transfer:
    table: str
    links: int
    megabytes: float
    predicted: str
    measured: str

    @property
    def words(self) -> str:
        return f"{self.links} links, {self.megabytes} MB"


_TRANSFERS = (
    *(_Transfer("table-6.1", 8, size, predicted, measured) for size, predicted, measured in TABLE_6_1),
    *(_Transfer("table-6.2", links, size, predicted, measured) for links, size, _, predicted, measured in TABLE_6_2),
)


def transfers(bench: Workbench) -> tuple[list[Check], list[Drawing]]:
    """Each transfer of both tables, with TCP and lines as they may have been."""
    checks, found = [], {}
    for transfer in _TRANSFERS:
        for reading, settings in READINGS.items():
            title = f"{transfer.words}, {reading}"
            traffic = {"kind": "file", "bytes": round(transfer.megabytes * MEGABYTE)}
            result = bench.run(title, scenario(title, links=transfer.links, traffic=traffic, runs=_RUNS, **settings))
            times = np.array(of_runs(result, "duration_s")) / MINUTE_S
            found[transfer, reading] = times
            checks.append(_check(transfer, reading, times))
    return checks, [_drawing(found)]


def _check(transfer: _Transfer, reading: str, times: Floats) -> Check:
    low, high = np.quantile(times, [0.025, 0.975])
    near = rounding(transfer.measured)
    measured = float(transfer.measured)
    verdict = Verdict.AGREES if low - near <= measured <= high + near else Verdict.DIFFERS
    if len(times) < _LEAST_RUNS:
        verdict = Verdict.UNDECIDED
    check = Check(
        "transfers",
        f"{transfer.table}, {transfer.words}, predicted {transfer.predicted}; {reading}: minutes ({low:.1f} to {high:.1f})",
        measured,
        "packet",
        mean_of(times.tolist()),
        verdict,
        "printed: measured, once. In brackets: between them lie 95 % of the runs; the measured time should, too, rounded as it "
        f"is. What parts the columns: item drops{_too_fast(transfer)}",
    )
    return check.fitted("the band is the spread of our single runs, wide enough for several readings of what is not printed")


def _too_fast(transfer: _Transfer) -> str:
    """That the measured transfer is faster than its lines, if it is."""
    longest_s = (float(transfer.measured) + rounding(transfer.measured)) * MINUTE_S
    rate, lines = 8 * transfer.megabytes * MEGABYTE / longest_s, transfer.links * LINE_BPS
    if rate * _PACKET_BYTES / GREENLAND.segment_bytes <= lines:
        return ""
    return (
        f"; {transfer.megabytes} MB in {transfer.measured} minutes over {transfer.links} links are at least {rate / 1e3:.2f} "
        f"kb/s, with headers {rate * _PACKET_BYTES / GREENLAND.segment_bytes / 1e3:.2f}: more than the lines' "
        f"{lines / 1e3:g} kb/s"
    )


def _drawing(found: dict[tuple[_Transfer, str], Floats]) -> Drawing:
    def draw() -> Figure:
        from farlink.plot.style import COLOURS, MARKERS, MUTED, legend_above, name_places, new_figure

        figure, (axes,) = new_figure(height_in=4.6)
        axes.axhline(1, color=MUTED, linewidth=1)
        places = np.arange(len(_TRANSFERS))
        predicted = [float(one.predicted) / float(one.measured) for one in _TRANSFERS]
        axes.plot(places - 0.3, predicted, "D", color=MUTED, markersize=5, label="eq. (36), as printed")
        for column, (reading, colour, marker) in enumerate(zip(READINGS, COLOURS, MARKERS, strict=False)):
            means, ends = [], []
            for one in _TRANSFERS:
                ratio = found[one, reading] / float(one.measured)
                means.append(ratio.mean())
                ends.append(np.quantile(ratio, [0.025, 0.975]))
            x = places - 0.1 + 0.2 * column
            axes.vlines(x, *np.transpose(ends), color=colour, linewidth=1.4)
            axes.plot(x, means, marker, color=colour, markersize=5, label=reading)
        name_places(axes, [f"{one.megabytes} MB\n{one.links} links" for one in _TRANSFERS])
        axes.set_ylim(0.7, 2.2)
        axes.set_ylabel("transfer time over the measured one")
        legend_above(figure, axes)
        return figure

    return Drawing(
        "transfers",
        "Transfer times of tables 6.1 and 6.2, simulated packet by packet, over the measured ones",
        f"The first four are table 6.1, the others table 6.2. Means of {_RUNS} runs; bars hold 95 % of the runs. Diamonds: the "
        "thesis's predictions. Each measured time is that of one transfer.",
        draw,
    )

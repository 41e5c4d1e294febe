"""Time series of one run: windows, round-trip times and sequence numbers."""

from __future__ import annotations

import csv
import html
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from farlink import units
from farlink.errors import ArgumentError
from farlink.extras import require
from farlink.output import whole_file
from farlink.scenario import Point

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from numpy import float64, uint32
    from numpy.typing import NDArray

    Numbered = tuple[NDArray[uint32], dict[str, int]]


QUANTITIES = ("cwnd", "ssthresh", "rtt", "in_flight", "sent_sequence", "retransmitted_sequence", "acknowledged")
"""Everything that can be observed."""


@dataclass(frozen=True)
class Series:
    """One run, observed.

    Attributes
    ----------
    point, run
        Which run of the scenario: number of the grid point, and of the run at it.
    values
        Values of the grid at that point.
    flow, quantity
        For each observation, its flow and what was observed: ``cwnd``, ``ssthresh``, ``in_flight`` (bytes), ``rtt`` (s),
        ``sent_sequence``, ``retransmitted_sequence``, ``acknowledged`` (bytes).
    time_s, value
        For each observation, its time and value.
    pcapng
        The run's packets as a capture file, if requested.
    """

    point: int
    run: int
    values: Point
    flow: list[str]
    quantity: list[str]
    time_s: NDArray[float64]
    value: NDArray[float64]
    pcapng: bytes | None = None

    def __repr__(self) -> str:
        """Observations of each flow: their number, first and last time, and the last value."""
        from farlink.shown import short_table

        title, head, rows = self._about()
        return short_table(title, head, rows, "select() has all")

    def _repr_html_(self) -> str:
        title, head, rows = self._about()
        lines = [head, *rows[:60]]
        cells = ("".join(f"<td>{html.escape(cell)}</td>" for cell in row) for row in lines)
        return f"<table><caption>{html.escape(title)}</caption>{''.join(f'<tr>{row}</tr>' for row in cells)}</table>"

    def _about(self) -> tuple[str, list[str], list[list[str]]]:
        """A title, and a row for each flow and quantity."""
        rows = []
        for flow, quantity in dict.fromkeys(zip(self.flow, self.quantity, strict=True)):
            time_s, value = self.select(quantity, flow)
            span = f"{time_s[0]:.6g} to {time_s[-1]:.6g}"
            rows.append(
                [flow, quantity, f"{len(time_s)}", span, f"{value.min():.6g}", f"{value.max():.6g}", f"{value[-1]:.6g}"]
            )
        size = f"{len(self.flow)} values"
        if self.pcapng is not None:
            size += f", {len(self.pcapng)} bytes of packets"
        return f"Series of {self.name}: {size}", ["flow", "quantity", "values", "time, s", "least", "most", "last"], rows

    @property
    def name(self) -> str:
        """Description of the traced run: the grid values of its point, and its number."""
        names = units.labels(list(self.values))
        parts = [f"{names[path]} {units.show(value, path)}" for path, value in self.values.items()]
        return ", ".join([*parts, f"run {self.run}"])

    def flows(self) -> list[str]:
        """Names of the flows observed."""
        return list(dict.fromkeys(self.flow))

    def select(self, quantity: str, flow: str | None = None) -> tuple[NDArray[float64], NDArray[float64]]:
        """Times and values of one quantity of one flow (default: the first)."""
        if flow is None:
            flow = next(iter(self.flow), "")
        elif not isinstance(flow, str) or flow not in self.flow:
            raise ArgumentError(f"there is no flow {flow!r}", f"observed are {', '.join(self.flows()) or 'none'}")
        (quantities, known), (flows, known_flows) = self._numbered
        if quantity not in known or flow not in known_flows:
            return self.time_s[:0], self.value[:0]
        mask = (quantities == known[quantity]) & (flows == known_flows[flow])
        return self.time_s[mask], self.value[mask]

    @cached_property
    def _numbered(self) -> tuple[Numbered, Numbered]:
        """A number in place of each name: a million names as an array of text would take 80 MB."""
        return _numbered(self.quantity), _numbered(self.flow)

    def plot(self, kind: str = "window", flow: str | None = None) -> Figure:
        """A figure of the run.

        Parameters
        ----------
        kind
            ``"window"`` (cwnd and ssthresh), ``"sequence"`` (sent, sent again, acknowledged) or ``"round-trip"`` (RTT and
            bytes in flight).
        flow
            Which flow; the first by default.
        """
        from farlink.plot import FIGURES

        if not isinstance(kind, str) or kind not in FIGURES:
            raise ArgumentError(f"there is no figure {kind!r}", f"there are {', '.join(FIGURES)}")
        return FIGURES[kind](self, flow)


def _numbered(names: list[str]) -> Numbered:
    """The names by number, and the number of each."""
    import numpy as np

    numbers = {name: number for number, name in enumerate(dict.fromkeys(names))}
    return np.fromiter(map(numbers.__getitem__, names), dtype=np.uint32, count=len(names)), numbers


def write_series(series: Iterable[Series], path: str | Path) -> None:
    """Write the series of several runs as one long table, CSV or Parquet by the file's name.

    Columns: the grid paths, run, flow, quantity, time_s, value.
    """
    runs = list(series)
    if Path(path).suffix.lower() == ".parquet":
        pyarrow = require("pyarrow", "Parquet")
        parquet = require("pyarrow.parquet", "Parquet")
        with whole_file(path) as temporary:
            parquet.write_table(pyarrow.concat_tables([pyarrow.table(_columns(run)) for run in runs]), temporary)
        return
    with whole_file(path) as temporary, temporary.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        for i, run in enumerate(runs):
            columns = _columns(run)
            if i == 0:
                writer.writerow(columns)
            writer.writerows(zip(*columns.values(), strict=True))


def _columns(series: Series) -> dict[str, list[Any]]:
    length = len(series.flow)
    grid = {path: [str(value) if isinstance(value, dict) else value] * length for path, value in series.values.items()}
    return {
        **grid,
        "run": [series.run] * length,
        "flow": series.flow,
        "quantity": series.quantity,
        "time_s": series.time_s.tolist(),
        "value": series.value.tolist(),
    }

"""Write `docs/validation/arq.md` and its picture: `make papers`. Takes some minutes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import page

import farlink
from farlink.papers.epple.dropped import DROPPED, Dropped
from farlink.papers.epple.saturated import (
    BER,
    CELLS,
    DISTANCES_M,
    HEADER_BYTES,
    RATE_BPS,
    Cell,
    equation,
    packets_for,
    scenario,
)
from farlink.papers.estimate import Estimate
from farlink.plot.style import COLOURS, MARKERS, legend_above, new_figure
from farlink.scenario import from_data

if TYPE_CHECKING:
    from matplotlib.figure import Figure

HALF_WIDTH = 0.0025
# Where one loss costs thousands of packets, an interval of this width takes a hundred million packets.
HALF_WIDTH_FAR = 0.005
HALF_WIDTH_DROPPED = 0.005
HALF_WIDTH_DROPPED_FAR = 0.02
RUNS = 20
SHOWN_BYTES = 1000
NAMES = {"stop-and-wait": "stop-and-wait", "go-back-n": "go-back-N", "selective-repeat": "selective repeat"}

Measured = dict[Cell, Estimate]


def main() -> None:
    """Compute both tables and write the page."""
    page.start(__doc__)
    measured: Measured = {}
    with page.steps("equations (8) to (10)", len(CELLS)) as told:
        for cell in CELLS:
            packets = packets_for(cell, HALF_WIDTH_FAR if is_far(cell) else HALF_WIDTH)
            measured[cell] = goodput(scenario(cell, packets=packets, runs=RUNS))
            told()
    shown = [cell for cell in CELLS if cell.payload_bytes == SHOWN_BYTES]
    todo = [(dropped, cell) for dropped in DROPPED for cell in shown if cell.protocol in dropped.protocols]
    costs = {}
    with page.steps("without an assumption", len(todo)) as told:
        for dropped, cell in todo:
            packets = packets_for(cell, HALF_WIDTH_DROPPED_FAR if is_far(cell) else HALF_WIDTH_DROPPED)
            data = scenario(cell, packets=packets, runs=RUNS, changes=dropped.changes(cell), fast_return=dropped.fast_return)
            costs[dropped, cell] = goodput(data)
            told()
    page.write("arq.md", {"arq-equations": picture(measured)}, **page_values(measured, costs))


def is_far(cell: Cell) -> bool:
    """Whether a loss costs go-back-N so much that estimates take long."""
    return cell.protocol == "go-back-n" and cell.capacity > 500


def goodput(data: dict[str, Any]) -> Estimate:
    """Goodput as a fraction of the link rate, over all runs."""
    result = farlink.run(from_data(data))
    (found,) = [entry for entry in result.summary() if entry["flow"] == "all"]
    return Estimate(found["goodput_fraction"]["mean"], found["goodput_fraction"]["ci95"])


def page_values(measured: Measured, costs: dict[tuple[Dropped, Cell], Estimate]) -> page.Values:
    """Values of the page."""
    largest = max(abs(estimate.mean / equation(cell) - 1) for cell, estimate in measured.items())
    largest_whole = max(abs(estimate.mean / equation(cell, whole_packets=True) - 1) for cell, estimate in measured.items())
    within = sum(abs(estimate.mean / equation(cell) - 1) <= 0.01 for cell, estimate in measured.items())
    return {
        "rate": f"{RATE_BPS / 1e6:g}",
        "ber": f"{BER:g}",
        "within": within,
        "cells": len(measured),
        "largest": f"{100 * largest:.2f}",
        "largest_whole": f"{100 * largest_whole:.2f}",
        "shown": SHOWN_BYTES,
        "equations": table_of_equations(measured),
        "costs": table_of_costs(measured, costs),
    }


def table_of_equations(measured: Measured) -> str:
    """A row per cell."""
    rows = []
    for cell, estimate in measured.items():
        theory, payload_only = equation(cell), equation(cell, with_header_bits=False)
        row = [NAMES[cell.protocol], f"{cell.payload_bytes}", f"{cell.place}, {DISTANCES_M[cell.place] / 1000:g} km"]
        row += [f"{cell.capacity:.1f}", f"{theory:.4f}", f"{estimate.mean:.4f} ± {estimate.half_width:.4f}"]
        rows.append([*row, percent(estimate.mean / theory - 1), percent(payload_only / estimate.mean - 1)])
    head = ["protocol", "bytes", "distance", "C_RTT", "equation", "engine", "difference", "payload bits only"]
    return page.table(head, rows, "lrlr")


def table_of_costs(measured: Measured, costs: dict[tuple[Dropped, Cell], Estimate]) -> str:
    """A row per assumption and protocol."""
    rows = []
    for protocol in HEADER_BYTES:
        cells = [Cell(protocol, SHOWN_BYTES, place) for place in DISTANCES_M]
        values = [shown(measured[cell], equation(cell)) for cell in cells]
        rows.append(["*nothing: all assumptions hold*", NAMES[protocol], *values])
        values = [percent(equation(cell, with_header_bits=False) / equation(cell) - 1) for cell in cells]
        rows.append(["header bits do not count (equation)", NAMES[protocol], *values])
        for dropped in DROPPED:
            if protocol not in dropped.protocols:
                continue
            values = [shown(costs[dropped, cell], equation(cell)) for cell in cells]
            if dropped.return_ber > 0:
                changes = [equation(cell, return_ber=dropped.return_ber) / equation(cell) - 1 for cell in cells]
                values = [f"{value} ({percent(change)})" for value, change in zip(values, changes, strict=True)]
            rows.append([dropped.words, NAMES[protocol], *values])
    return page.table(["instead", "protocol", *DISTANCES_M], rows, "llr")


def shown(estimate: Estimate, theory: float) -> str:
    """Change against the equation with its interval."""
    return f"{percent(estimate.mean / theory - 1)} ± {100 * estimate.half_width / theory:.1f}"


def percent(change: float) -> str:
    """A change with its sign."""
    digits = 2 if abs(change) < 0.0995 else 1
    return f"{100 * change:+.{digits}f} %"


def picture(measured: Measured) -> Figure:
    """Goodput against distance."""
    figure, (axes,) = new_figure()
    distances_km = [distance / 1000 for distance in DISTANCES_M.values()]
    for protocol, colour, marker in zip(HEADER_BYTES, COLOURS, MARKERS, strict=False):
        cells = [Cell(protocol, SHOWN_BYTES, place) for place in DISTANCES_M]
        axes.plot(distances_km, [equation(cell) for cell in cells], color=colour, linewidth=1)
        means = [measured[cell].mean for cell in cells]
        axes.plot(distances_km, means, marker, color=colour, label=NAMES[protocol])
    axes.set(xscale="log", yscale="log", xlabel="distance (km)", ylabel="goodput (fraction of the link rate)")
    legend_above(figure, axes)
    return figure


if __name__ == "__main__":
    main()

"""Write `docs/validation/arq.md` and its picture: `make papers`. Takes some minutes."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import farlink
from farlink.cli.progress import progress_bar
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
from farlink.plot.style import COLOURS, MARKERS, legend_above, new_figure, picture_svg
from farlink.scenario import from_data

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "validation" / "arq.md"
PICTURE = ROOT / "docs" / "pictures" / "arq-equations.svg"

HALF_WIDTH = 0.0025
# Where one loss costs thousands of packets, an interval of so much takes a hundred million of them.
HALF_WIDTH_FAR = 0.005
HALF_WIDTH_DROPPED = 0.005
HALF_WIDTH_DROPPED_FAR = 0.02
RUNS = 20
SHOWN_BYTES = 1000
NAMES = {"stop-and-wait": "stop-and-wait", "go-back-n": "go-back-N", "selective-repeat": "selective repeat"}

Measured = dict[Cell, Estimate]

PAGE_TEXT = """\
<!-- Written by docs/arq.py (`make papers`). -->
# ARQ beside its equations

Goodput of the packet engine's ARQ as a fraction of the link rate, beside equations (8) to (10) of Epple: {rate} Mbit/s,
independent bit errors at BER {ber}, a saturated channel. {within} of {cells} cells are within 1 % of the equation; the largest
difference is {largest} %. Against equation (10) with whole packets (below) it is {largest_whole} %.

The equations assume, and the scenarios set:

| the equations | the scenario |
|---|---|
| a packet is lost if any of its bits is wrong, (5) | channel `ber`: header bits are bits like all others |
| it is repeated a round trip and one packet time after it was sent | `rto`: `fixed`, a nanosecond longer |
| a window that just holds a round trip | `window_frames` = 1 + C_RTT, rounded up |
| a receiver that keeps everything | `buffer_frames` of eight windows (selective repeat) |
| acknowledgements take no time and are never lost | a way back of 10 Tbit/s without errors |
| the channel is saturated | bulk traffic, paced a millionth below the link's rate; start-up is not measured |

The header has 20 bytes (stop-and-wait, go-back-N) or 60 (selective repeat), c = 3e8 m/s, as in the paper's table 1.
± is the half-width of the 95 % interval.

![Goodput against distance](../pictures/arq-equations.svg)

Lines: the equations. Points: the engine, packets of {shown} bytes.

## Under the equations' own assumptions

{equations}

The packet loss counts payload and header here, as equation (5) is written. The table of the paper is computed with the payload
alone; the last column says by how much that equation lies above the engine.

What is left has two causes. A loss in go-back-N costs whole packets, C_RTT rounded up, as a packet is not broken off when a
timer expires: that is felt where a round trip holds less than a packet or two. And far away, where one loss costs a thousand
packets, the interval is what so many simulated packets allow.

## What each assumption costs

Change of the goodput against the equation, packets of {shown} bytes, one assumption dropped at a time. Where equation (6) has
something to say, that a lost acknowledgement costs as much as a lost packet, its figure stands in brackets.

{costs}

- The timeouts have a clock of 1 us and a minimum of as much: what is left is the algorithm, on a path without jitter. Real ones
  have a larger minimum (RFC 6298: 1 s), which is sixty round trips and more here.
- Far away, go-back-N loses nearly everything with a computed timeout. After a loss all of the window is sent again, so that, by
  Karn's rule, hardly any packet gives a round-trip sample, and back-off stays. Timestamps give samples of repeated packets.
- A timeout that is too short by less than a microsecond sends every packet twice. Selective repeat hardly feels that here: the
  acknowledgement comes before the transmitter is free for the repetition.
- A window that is half as large leaves the channel idle, but for go-back-N far away, where what is not sent need not be sent
  again. One that is twice as large changes nothing, as the timer comes before it is used.
- A receiver that keeps one window only, the usual definition of selective repeat, stops the sender while a packet is repeated.
  Equation (8) has unlimited memory.
- With four blocks the receiver drops what it cannot report; over 2500 km the paper's simulation has 0.2857 where theory says
  0.9359. With unlimited blocks the theory is reached, on a way back whose time does not count.
- A single acknowledgement that is lost costs what equation (6) says, but for go-back-N: the receiver has the packets that
  followed, and they need not arrive again. A cumulative one is made up for by the next, but that comes a packet later, after a
  timer as tight as this. A longer timeout wins that back far away; nearby, it costs more than it saves.
- Negative acknowledgements spare nothing beside a timeout that is as short as can be; they are for those who do not know the
  round trip.
"""


def main() -> None:
    """Compute both tables and write the page."""
    with progress_bar("equations (8) to (10)") as tell:
        measured: Measured = {}
        for index, cell in enumerate(CELLS):
            packets = packets_for(cell, HALF_WIDTH_FAR if is_far(cell) else HALF_WIDTH)
            measured[cell] = goodput(scenario(cell, packets=packets, runs=RUNS))
            tell(index + 1, len(CELLS))
    shown = [cell for cell in CELLS if cell.payload_bytes == SHOWN_BYTES]
    todo = [(dropped, cell) for dropped in DROPPED for cell in shown if cell.protocol in dropped.protocols]
    costs = {}
    with progress_bar("without an assumption") as tell:
        for index, (dropped, cell) in enumerate(todo):
            packets = packets_for(cell, HALF_WIDTH_DROPPED_FAR if is_far(cell) else HALF_WIDTH_DROPPED)
            data = scenario(cell, packets=packets, runs=RUNS, changes=dropped.changes(cell), fast_return=dropped.fast_return)
            costs[dropped, cell] = goodput(data)
            tell(index + 1, len(todo))
    PAGE.write_text(page(measured, costs), encoding="utf-8")
    PICTURE.write_text(picture_svg(picture(measured), "arq-equations"), encoding="utf-8")
    print(PAGE.relative_to(ROOT), PICTURE.relative_to(ROOT), sep="\n")


def is_far(cell: Cell) -> bool:
    """Whether a loss costs go-back-N so much that estimates take long."""
    return cell.protocol == "go-back-n" and cell.capacity > 500


def goodput(data: dict[str, Any]) -> Estimate:
    """Goodput as a fraction of the link rate, over all runs."""
    result = farlink.run(from_data(data))
    (found,) = [entry for entry in result.summary() if entry["flow"] == "all"]
    return Estimate(found["goodput_fraction"]["mean"], found["goodput_fraction"]["ci95"])


def page(measured: Measured, costs: dict[tuple[Dropped, Cell], Estimate]) -> str:
    """The whole page."""
    largest = max(abs(estimate.mean / equation(cell) - 1) for cell, estimate in measured.items())
    largest_whole = max(abs(estimate.mean / equation(cell, whole_packets=True) - 1) for cell, estimate in measured.items())
    within = sum(abs(estimate.mean / equation(cell) - 1) <= 0.01 for cell, estimate in measured.items())
    return PAGE_TEXT.format(
        rate=f"{RATE_BPS / 1e6:g}",
        ber=f"{BER:g}",
        within=within,
        cells=len(measured),
        largest=f"{100 * largest:.2f}",
        largest_whole=f"{100 * largest_whole:.2f}",
        shown=SHOWN_BYTES,
        equations="\n".join(table_of_equations(measured)),
        costs="\n".join(table_of_costs(measured, costs)),
    )


def table_of_equations(measured: Measured) -> list[str]:
    """A row per cell."""
    lines = ["| protocol | bytes | distance | C_RTT | equation | engine | difference | payload bits only |"]
    lines.append("|---|--:|---|--:|--:|--:|--:|--:|")
    for cell, estimate in measured.items():
        theory, payload_only = equation(cell), equation(cell, with_header_bits=False)
        lines.append(
            f"| {NAMES[cell.protocol]} | {cell.payload_bytes} | {cell.place}, {DISTANCES_M[cell.place] / 1000:g} km "
            f"| {cell.capacity:.1f} | {theory:.4f} | {estimate.mean:.4f} ± {estimate.half_width:.4f} "
            f"| {percent(estimate.mean / theory - 1)} | {percent(payload_only / estimate.mean - 1)} |"
        )
    return lines


def table_of_costs(measured: Measured, costs: dict[tuple[Dropped, Cell], Estimate]) -> list[str]:
    """A row per assumption and protocol."""
    lines = ["| instead | protocol | " + " | ".join(DISTANCES_M) + " |", "|---|---|" + "--:|" * len(DISTANCES_M)]
    for protocol in HEADER_BYTES:
        cells = [Cell(protocol, SHOWN_BYTES, place) for place in DISTANCES_M]
        values = [shown(measured[cell], equation(cell)) for cell in cells]
        lines.append(f"| *nothing: all assumptions hold* | {NAMES[protocol]} | " + " | ".join(values) + " |")
        payload_only = [percent(equation(cell, with_header_bits=False) / equation(cell) - 1) for cell in cells]
        lines.append(f"| header bits do not count (equation) | {NAMES[protocol]} | " + " | ".join(payload_only) + " |")
        for dropped in DROPPED:
            if protocol not in dropped.protocols:
                continue
            values = []
            for cell in cells:
                value = shown(costs[dropped, cell], equation(cell))
                if dropped.return_ber > 0:
                    value += f" ({percent(equation(cell, return_ber=dropped.return_ber) / equation(cell) - 1)})"
                values.append(value)
            lines.append(f"| {dropped.words} | {NAMES[protocol]} | " + " | ".join(values) + " |")
    return lines


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
    sys.exit(main())

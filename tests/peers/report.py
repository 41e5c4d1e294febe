"""Write the tables of `docs/validation/peers.md`: every cell on both sides.

Usage:  python -m tests.peers.report        (about two minutes on two cores)
"""

from __future__ import annotations

import sys
from pathlib import Path

from tests.peers import ns2
from tests.peers.agreement import EXCUSED, agree
from tests.peers.cells import GEO_CELLS, SHARED_CELLS, GeoCell, SharedCell
from tests.peers.estimate import Estimate

PAGE = Path(__file__).resolve().parents[2] / "docs" / "validation" / "peers.md"
RELATIVE = 0.01

# Totals that Table I of `celandroni` prints for its own ns-2 runs.
PRINTED_SHARED = {1e-4: 0.994, 1e-3: 0.836, 1e-2: 0.234, 1e-1: 0.0452}


def figure(value: Estimate | None) -> str:
    return f"{value.mean:.4g} ± {value.half_width:.1g}" if value else "–"


def verdict(cell: GeoCell | SharedCell, ours: Estimate | None, theirs: Estimate) -> str:
    """Difference in percent; a star where the cell is excused."""
    if ours is None:
        return "–"
    mark = "" if agree(ours, theirs) else " **differs**"
    return f"{100 * (ours.mean / theirs.mean - 1):+.1f} %{mark}{' *' if cell.name in EXCUSED else ''}"


def both(cell: GeoCell | SharedCell) -> tuple[Estimate | None, Estimate]:
    """farlink's estimate (None before farlink is built) and ns-2's, with the peer's settings as excused."""
    try:
        from tests.peers import farlink_side

        ours = farlink_side.goodput(farlink_side.scenario(cell), relative=RELATIVE)
    except ModuleNotFoundError as error:
        if error.name != "farlink":
            raise
        ours = None
    excuse = EXCUSED.get(cell.name)
    theirs = ns2.goodput(excuse.apply(cell.ns2()) if excuse else cell.ns2(), relative=RELATIVE)
    print(f"{cell.name}: farlink {ours}, ns-2 {theirs}", file=sys.stderr)
    return ours, theirs


def geo_table() -> str:
    lines = ["| version | BER | delayed ACK | farlink | ns-2 | difference |", "|---|--:|---|--:|--:|--:|"]
    for cell in GEO_CELLS:
        ours, theirs = both(cell)
        lines.append(
            f"| {cell.variant} | {cell.ber:.0e} | {'on' if cell.delayed_ack else 'off'} | {figure(ours)} "
            f"| {figure(theirs)} | {verdict(cell, ours, theirs)} |"
        )
    return "\n".join(lines)


def shared_table() -> str:
    lines = ["| loss | farlink | ns-2 | difference | printed (ns-2 of its time) |", "|--:|--:|--:|--:|--:|"]
    for cell in SHARED_CELLS:
        ours, theirs = both(cell)
        lines.append(
            f"| {cell.loss:.0e} | {figure(ours)} | {figure(theirs)} | {verdict(cell, ours, theirs)} "
            f"| {PRINTED_SHARED[cell.loss]} |"
        )
    return "\n".join(lines)


def excused_table() -> str:
    if not EXCUSED:
        return "No cell is excused."
    lines = ["| cell | why | peer's setting that closes the gap |", "|---|---|---|"]
    lines += [f"| {name} | {excuse.reason} | `{dict(excuse.closing)}` |" for name, excuse in EXCUSED.items()]
    return "\n".join(lines)


def main() -> None:
    """Replace the page's tables."""
    text = PAGE.read_text()
    for name, table in (("geo", geo_table), ("shared", shared_table), ("excused", excused_table)):
        begin, end = f"<!-- table {name} -->\n", "<!-- end -->"
        before, _, rest = text.partition(begin)
        text = f"{before}{begin}{table()}\n{rest[rest.index(end) :]}"
    PAGE.write_text(text)


if __name__ == "__main__":
    main()

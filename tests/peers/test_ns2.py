"""farlink's goodput beside ns-2's: four TCP versions over a GEO link, with bit errors or a deep queue, and five Reno flows."""

from __future__ import annotations

import pytest

from tests.peers import ns2
from tests.peers.agreement import EXCUSED, EXCUSED_SHARE, agree, surely_agree
from tests.peers.cells import DEEP_CELLS, GEO_CELLS, NS2_CELLS, SHARED_CELLS, Cell, GeoCell
from tests.peers.conftest import ALL_CELLS, Compared

pytest.importorskip("farlink", reason="farlink is not installed: `make test` builds and installs it")
farlink_side = pytest.importorskip("tests.peers.farlink_side")

pytestmark = [
    pytest.mark.peer("ns-2"),
    pytest.mark.skipif(ns2.executable() is None, reason="ns-2 is not installed: apt-get install ns2"),
]


def _half_of(cells: tuple[GeoCell, ...]) -> tuple[GeoCell, ...]:
    """Each version with each bit error rate once, delayed ACKs on and off in turn as on a chess board."""
    variants = list(dict.fromkeys(cell.variant for cell in cells))
    bers = list(dict.fromkeys(cell.ber for cell in cells))
    return tuple(cell for cell in cells if (variants.index(cell.variant) + bers.index(cell.ber)) % 2 == cell.delayed_ack)


CELLS: tuple[Cell, ...] = (*(GEO_CELLS if ALL_CELLS else _half_of(GEO_CELLS)), *DEEP_CELLS, *SHARED_CELLS)


@pytest.mark.parametrize("cell", CELLS, ids=lambda cell: cell.name)
def test_goodput_agrees_with_ns2(cell: Cell, relative_half_width: float, compared: Compared) -> None:
    scenario = farlink_side.scenario(cell)
    excuse = EXCUSED.get(cell.name)
    settings = excuse.apply(cell.ns2()) if excuse else cell.ns2()

    ours = farlink_side.goodput(scenario, relative=relative_half_width)
    theirs = ns2.goodput(settings, relative=relative_half_width)
    compared(ours, theirs)

    assert ours.relative <= 0.02, f"farlink's interval is too wide: {ours}"
    assert theirs.relative <= 0.02, f"ns-2's interval is too wide: {theirs}"
    assert agree(ours, theirs), f"farlink {ours}, ns-2 {theirs}: {100 * (ours.mean / theirs.mean - 1):+.1f} %"


@pytest.mark.skipif(not ALL_CELLS, reason="FARLINK_PEERS=all checks that every excuse is still needed")
@pytest.mark.parametrize("name", EXCUSED)
def test_excused_cell_differs_with_the_defaults_of_ns2(name: str, relative_half_width: float, compared: Compared) -> None:
    cell = next(cell for cell in NS2_CELLS if cell.name == name)

    ours = farlink_side.goodput(farlink_side.scenario(cell), relative=relative_half_width)
    theirs = ns2.goodput(cell.ns2(), relative=relative_half_width)
    compared(ours, theirs)

    # At the edge of the tolerance a cell may agree in one run and not in the next: it needs an excuse, too.
    assert not surely_agree(ours, theirs), f"the excuse is stale: farlink {ours}, ns-2 {theirs}"


def test_few_cells_are_excused() -> None:
    cells = {cell.name for cell in NS2_CELLS}

    assert EXCUSED.keys() <= cells
    assert len(EXCUSED) <= EXCUSED_SHARE * len(cells)

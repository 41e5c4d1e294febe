"""farlink's Reno, CUBIC, Hybla and BBR beside ns-3's on a long path, from no loss to one packet in a hundred."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.peers import modern, ns3
from tests.peers.agreement import EXCUSED_SHARE, agree
from tests.peers.conftest import ALL_CELLS, Compared
from tests.peers.estimate import Estimate
from tests.peers.modern import EXCUSED, MODERN_CELLS, QUICK_CELLS, SHIPPED_DIFFERS, TOLERANCE, ModernCell

pytest.importorskip("farlink", reason="farlink is not installed: `make test` builds and installs it")
farlink_side = pytest.importorskip("tests.peers.farlink_side")

pytestmark = pytest.mark.peer("ns-3")

RELATIVE = 0.02
RECORDED = modern.recorded()

needs_ns3 = [
    pytest.mark.slow,
    pytest.mark.skipif(not ALL_CELLS, reason="ns-3 takes minutes: FARLINK_PEERS=all includes it"),
    pytest.mark.skipif(not ns3.is_installed(), reason="ns-3 is not installed: apt-get install g++ libns3-dev"),
]


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return ns3.build(tmp_path_factory.mktemp("ns3"))


def check(cell: ModernCell, theirs: Estimate, compared: Compared) -> None:
    ours = modern.farlink_goodput(cell, relative=RELATIVE)
    compared(ours, theirs)

    assert ours.relative <= RELATIVE, f"farlink's interval is too wide: {ours}"
    assert theirs.relative <= RELATIVE, f"ns-3's interval is too wide: {theirs}"
    assert agree(ours, theirs, TOLERANCE), f"farlink {ours}, ns-3 {theirs}: {100 * (ours.mean / theirs.mean - 1):+.1f} %"


@pytest.mark.parametrize(
    "cell", [cell for cell in MODERN_CELLS if cell.name in RECORDED] if ALL_CELLS else QUICK_CELLS, ids=lambda cell: cell.name
)
def test_goodput_agrees_with_what_ns3_gave(cell: ModernCell, compared: Compared) -> None:
    record = RECORDED[cell.name]

    assert record.settings == modern.ns3_settings(cell), "the record is stale: `python -m tests.peers.report record` writes it"
    check(cell, record.estimate, compared)


@pytest.mark.parametrize("cell", [pytest.param(cell, marks=needs_ns3) for cell in MODERN_CELLS], ids=lambda cell: cell.name)
def test_goodput_agrees_with_ns3(program: Path, cell: ModernCell, compared: Compared) -> None:
    theirs = modern.ns3_goodput(program, cell, relative=RELATIVE)

    if cell.name in RECORDED:
        recorded = RECORDED[cell.name].estimate
        assert agree(recorded, theirs, tolerance=0.01), f"recorded {recorded}, now {theirs}"
    check(cell, theirs, compared)


def test_few_cells_are_excused() -> None:
    cells = {cell.name for cell in MODERN_CELLS}

    assert EXCUSED.keys() <= cells
    assert len(EXCUSED) <= EXCUSED_SHARE * len(cells)


@pytest.mark.parametrize("name", [pytest.param(name, marks=needs_ns3) for name in EXCUSED])
def test_excused_cell_differs_with_the_usual_settings(program: Path, name: str) -> None:
    cell = next(cell for cell in MODERN_CELLS if cell.name == name)

    ours = modern.farlink_goodput(cell, relative=RELATIVE)
    theirs = ns3.goodput(program, cell.ns3(), relative=RELATIVE)

    assert not agree(ours, theirs, TOLERANCE), f"the excuse is stale: farlink {ours}, ns-3 {theirs}"


@pytest.mark.parametrize("name", [pytest.param(name, marks=needs_ns3) for name in SHIPPED_DIFFERS])
def test_correction_is_needed(program: Path, name: str) -> None:
    """Without the correction ns-3 gives another result."""
    cell = next(cell for cell in MODERN_CELLS if cell.name == name)

    shipped = ns3.goodput(program, cell.ns3(corrected=False), relative=RELATIVE, max_runs=10)

    corrected = RECORDED[name].estimate
    assert not agree(shipped, corrected, TOLERANCE), f"as shipped {shipped}, corrected {corrected}"

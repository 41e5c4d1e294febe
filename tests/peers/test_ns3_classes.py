"""farlink's classes of service beside ns-3's PrioQueueDisc and the deficit round robin inside its FqCoDelQueueDisc."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.peers import classes, ns3
from tests.peers.classes import CELLS, DELAY_TOLERANCE, SHARE_TOLERANCE, ClassCell, Served
from tests.peers.conftest import ALL_CELLS

pytest.importorskip("farlink", reason="farlink is not installed: `make test` builds and installs it")

pytestmark = pytest.mark.peer("ns-3")

RECORDED = classes.recorded()

needs_ns3 = [
    pytest.mark.skipif(not ALL_CELLS, reason="it compiles a program of ns-3: FARLINK_PEERS=all includes it"),
    pytest.mark.skipif(not ns3.is_installed(), reason="ns-3 is not installed: apt-get install g++ libns3-dev"),
]


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return classes.build(tmp_path_factory.mktemp("ns3"))


def check(cell: ClassCell, theirs: tuple[Served, ...]) -> None:
    ours = classes.farlink_served(cell)

    assert cell.shares(ours) == pytest.approx(cell.shares(theirs), rel=SHARE_TOLERANCE)
    assert sum(cell.shares(ours)) == pytest.approx(1, abs=1e-3), "the link rests although something waits"
    if cell.discipline == "prio":
        for index, (our, their) in enumerate(zip(ours, theirs, strict=True)):
            # In both simulators a class with a full queue waits for that queue; the packet in the device comes on top of fifty.
            device_s = cell.in_device_s(index, theirs) if cell.is_served(index, theirs) else 0.0
            assert our.delay_mean_s == pytest.approx(their.delay_mean_s - device_s, rel=DELAY_TOLERANCE), f"class {index}"


@pytest.mark.parametrize("cell", CELLS, ids=lambda cell: cell.name)
def test_classes_get_what_ns3_gave_them(cell: ClassCell) -> None:
    record = RECORDED[cell.name]

    assert record.settings == cell.ns3(), "the record is stale: `python -m tests.peers.report classes-record` writes it"
    check(cell, record.served)


def test_strict_and_fair_service_differ() -> None:
    """Strict and fair service must differ, or the comparisons of both could not fail."""
    cells = {cell.name: cell for cell in CELLS}
    strict, fair = (RECORDED[name].served for name in ("strict-three", "fair-sizes"))

    assert cells["strict-three"].shares(strict)[1] > 1.3 * cells["strict-three"].shares(strict)[2]
    assert cells["fair-sizes"].shares(fair) == pytest.approx([1 / 3] * 3, rel=SHARE_TOLERANCE)


def test_sparse_flows_go_first_in_ns3_only() -> None:
    """FqCoDel serves new flows first (RFC 8290, section 4.2); plain deficit round robin does not."""
    cell = next(cell for cell in CELLS if cell.name == "fair-one-modest")
    theirs, ours = RECORDED[cell.name].served[0], classes.farlink_served(cell)[0]

    assert theirs.delay_mean_s - cell.in_device_s(0, RECORDED[cell.name].served) < ours.delay_mean_s
    assert ours.delay_mean_s - theirs.delay_mean_s < max(one.transmission_s for one in cell.classes)


@pytest.mark.parametrize("cell", [pytest.param(cell, marks=needs_ns3) for cell in CELLS], ids=lambda cell: cell.name)
def test_classes_get_what_ns3_gives_them(program: Path, cell: ClassCell) -> None:
    theirs = classes.ns3_served(program, cell)

    for recorded, now in zip(RECORDED[cell.name].served, theirs, strict=True):
        assert (recorded.packets, recorded.delay_mean_s) == pytest.approx((now.packets, now.delay_mean_s), rel=1e-6)
    check(cell, theirs)

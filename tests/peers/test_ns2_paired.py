"""farlink compared with ns-2 when both lose the same packets, in bursts."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.peers import ns2
from tests.peers.conftest import ALL_CELLS
from tests.peers.estimate import estimate
from tests.peers.paired import PairedCell, ours, theirs

pytest.importorskip("farlink", reason="farlink is not installed: `make test` builds and installs it")

pytestmark = [
    pytest.mark.peer("ns-2"),
    pytest.mark.skipif(ns2.executable() is None, reason="ns-2 is not installed: apt-get install ns2"),
]

PAIRS = 40 if ALL_CELLS else 12


@pytest.mark.parametrize("variant", ["reno", "newreno", "sack"])
def test_goodput_over_the_same_losses_is_that_of_ns2(variant: str, tmp_path: Path) -> None:
    cell = PairedCell(variant)
    ratios = []
    for seed in range(PAIRS):
        losses = cell.losses(seed)
        ratios.append(ours(cell, losses, tmp_path) / theirs(cell, losses, tmp_path))

    found = estimate(ratios)
    print(f"{variant}: {found}")
    assert found.half_width < 0.02, f"{variant}: {found} cannot tell"
    assert abs(found.mean - 1) <= 0.02, f"{variant}: farlink over ns-2 {found}"

"""farlink's SACK beside ns-3's over the GEO link: a second opinion, at the bit error rates where their designs differ least."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.peers import ns3
from tests.peers.cells import GEO_WARMUP_S, GeoCell
from tests.peers.conftest import ALL_CELLS, Compared

pytest.importorskip("farlink", reason="farlink is not installed: `make test` builds and installs it")
farlink_side = pytest.importorskip("tests.peers.farlink_side")

pytestmark = [
    pytest.mark.peer("ns-3"),
    pytest.mark.slow,
    pytest.mark.skipif(not ALL_CELLS, reason="ns-3 takes minutes: FARLINK_PEERS=all includes it"),
    pytest.mark.skipif(not ns3.is_installed(), reason="ns-3 is not installed: apt-get install g++ libns3-dev"),
]

# ns-3 halves the bytes in flight less the three segments that were selectively acknowledged, RFC 5681 halves all of them. With
# windows of W segments that costs about 3 / (2 W) of the goodput where the window, not the link, is the limit.
TOLERANCE = {1e-8: 0.03, 1e-7: 0.07}


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return ns3.build(tmp_path_factory.mktemp("ns3"))


@pytest.mark.parametrize("delayed_ack", [True, False], ids=["delayed", "every"])
@pytest.mark.parametrize("ber", TOLERANCE)
def test_goodput_is_close_to_ns3(program: Path, ber: float, delayed_ack: bool, compared: Compared) -> None:
    cell = GeoCell("sack", ber, delayed_ack)
    settings = {
        "rate_bps": 1e6,
        "delay_s": 0.25,
        "wire_bytes": 1000,
        "window": 70,
        "ber": ber,
        "sack": 1,
        "delayed_ack": int(delayed_ack),
        "min_rto_s": 1,
        "warmup_s": GEO_WARMUP_S,
        "duration_s": 2000,
    }

    ours = farlink_side.goodput(farlink_side.scenario(cell))
    theirs = ns3.goodput(program, settings)
    compared(ours, theirs)

    assert ours.mean == pytest.approx(theirs.mean, rel=TOLERANCE[ber]), f"farlink {ours}, ns-3 {theirs}"

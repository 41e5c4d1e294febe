"""farlink's TCP and UDP against ns-3's over the path of `pathapati`, and a check of the recorded figures of ns-3."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.peers import ns3, telemetry
from tests.peers.agreement import agree
from tests.peers.conftest import ALL_CELLS, Compared
from tests.peers.estimate import Estimate
from tests.peers.telemetry import (
    ALL,
    CLOSE_RUNS,
    COMPARED,
    REPEATS_DIFFER,
    STOCK_BERS,
    STOCK_SEGMENTS,
    TOLERANCE,
    TelemetryCell,
)

pytest.importorskip("farlink", reason="farlink is not installed: `make test` builds and installs it")

from farlink.papers.pathapati import peers

pytestmark = pytest.mark.peer("ns-3")

needs_ns3 = [
    pytest.mark.slow,
    pytest.mark.skipif(not ALL_CELLS, reason="FARLINK_PEERS=all includes it"),
    pytest.mark.skipif(not ns3.is_installed(), reason="ns-3 is not installed: apt-get install g++ libns3-dev"),
]

REMEASURED = (
    *(cell for cell in ALL if cell.ber in (0, 1e-5, 1e-4) and cell.file_bytes == 1e6),
    TelemetryCell("cubic", 1e-4, 10_000_000),
)


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return telemetry.build(tmp_path_factory.mktemp("ns3"))


def recorded(cell: TelemetryCell, figure: str) -> Estimate:
    peer = peers.ns3(cell.transport, cell.ber, cell.file_bytes)
    return Estimate(peer.figures[figure].mean, peer.figures[figure].half_width, peer.runs)


def figures_compared(cell: TelemetryCell) -> tuple[str, ...]:
    if cell.transport == "udp":
        return ("delivered_bytes",)
    return ("completion_s",) if cell == REPEATS_DIFFER else ("completion_s", "retransmitted_bytes")


@pytest.mark.parametrize("cell", ALL, ids=lambda cell: cell.name)
def test_record_is_of_these_settings(cell: TelemetryCell) -> None:
    peer = peers.ns3(cell.transport, cell.ber, cell.file_bytes)

    assert peer.settings == cell.ns3(), "the record is stale: `python -m tests.peers.report telemetry-record` writes it"
    assert peer.runs == cell.runs


@pytest.mark.parametrize("cell", COMPARED, ids=lambda cell: cell.name)
def test_farlink_agrees_with_what_ns3_gave(cell: TelemetryCell, compared: Compared) -> None:
    ours = telemetry.farlink_figures(cell, CLOSE_RUNS)
    first = figures_compared(cell)[0]
    compared(ours[first], recorded(cell, first))

    for name in figures_compared(cell):
        theirs = recorded(cell, name)
        assert agree(ours[name], theirs, TOLERANCE), f"{name}: farlink {ours[name]}, ns-3 {theirs}"


def test_repeated_bytes_differ_where_they_are_left_out() -> None:
    ours = telemetry.farlink_figures(REPEATS_DIFFER, CLOSE_RUNS)["retransmitted_bytes"]

    assert not agree(ours, recorded(REPEATS_DIFFER, "retransmitted_bytes"), TOLERANCE)


def test_uncorrected_ns3_differs() -> None:
    """Shows that the comparison can fail."""
    cell = TelemetryCell("cubic", 1e-5)

    ours = telemetry.farlink_figures(cell, CLOSE_RUNS)

    assert not agree(ours["completion_s"], recorded(cell, "completion_s"), TOLERANCE)


def test_tcp_delivers_all_and_udp_what_the_channel_leaves() -> None:
    for cell in ALL:
        delivered = recorded(cell, "delivered_bytes")
        if cell.transport != "udp":
            assert (delivered.mean, delivered.half_width) == (cell.file_bytes, 0)
        else:
            full = (1 - cell.ber) ** (8 * 1502)
            # The last datagram is shorter; it is one of 680, or of 6794.
            assert abs(delivered.mean / cell.file_bytes - full) <= 1.5 * delivered.half_width / cell.file_bytes + 0.001


def test_progress_ends_with_the_whole_run() -> None:
    for peer in peers.ns3_cells():
        amounts = [then.delivered_bytes for then in peer.by]

        assert amounts == sorted(amounts)
        # By then even the slowest run had ended.
        if peer.figures["completion_s"].mean * peer.runs < peer.by[-1].at_s:
            assert peer.by[-1].delivered_bytes == pytest.approx(peer.figures["delivered_bytes"].mean, rel=1e-6)
            assert peer.by[-1].forward_bytes == pytest.approx(peer.figures["forward_bytes"].mean, rel=1e-6)


def test_what_was_not_measured_is_refused() -> None:
    with pytest.raises(LookupError, match="no transport 'reno' of ns-3; there is newreno, cubic"):
        peers.ns3("reno", 1e-5)
    with pytest.raises(LookupError, match="udp was not measured at 2e-05 with 1e\\+06 bytes, only at 0 with"):
        peers.ns3("udp", 2e-5)


def test_stock_timers_and_retries_end_the_connection() -> None:
    worst = {entry.segment_bytes: entry for entry in peers.ns3_stock() if entry.ber == 1e-4}

    assert worst[1448].given_up == worst[1448].runs
    assert max(worst[1448].delivered_bytes) < 1e6
    assert worst[536].given_up > worst[536].runs / 2
    assert {reason for entry in worst.values() for reason in entry.reasons} == {"closed in error", "complete"}


@pytest.mark.parametrize("cell", [pytest.param(cell, marks=needs_ns3) for cell in REMEASURED], ids=lambda cell: cell.name)
def test_ns3_gives_what_is_on_record(program: Path, cell: TelemetryCell) -> None:
    """The same runs: not within an interval, but to all digits that are kept."""
    measured = telemetry.measure(program, cell)

    peer = peers.ns3(cell.transport, cell.ber, cell.file_bytes)
    assert measured["figures"] == {name: [figure.mean, figure.half_width] for name, figure in peer.figures.items()}
    assert measured["by"]["delivered_bytes"] == [then.delivered_bytes for then in peer.by]


@pytest.mark.parametrize("ber", [pytest.param(ber, marks=needs_ns3) for ber in STOCK_BERS])
@pytest.mark.parametrize("segment_bytes", STOCK_SEGMENTS)
def test_ns3_gives_up_as_is_on_record(program: Path, segment_bytes: int, ber: float) -> None:
    measured = telemetry.measure_stock(program, segment_bytes, ber)

    (entry,) = (entry for entry in peers.ns3_stock() if (entry.segment_bytes, entry.ber) == (segment_bytes, ber))
    assert measured["given_up_at_s"] == list(entry.given_up_at_s)
    assert measured["delivered_bytes"] == list(entry.delivered_bytes)

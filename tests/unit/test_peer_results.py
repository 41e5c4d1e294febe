"""Results of peer cells: the newest of each is kept, and only cells that passed with the same code are skipped."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("farlink", reason="farlink is not installed: `make test` builds and installs it")

from tests.peers import results
from tests.peers.results import Result


def result(cell: str = "test_ns2.py::test_a[b]", **changes: object) -> Result:
    usual = Result(cell=cell, peer="ns-2", outcome="passed", date="2026-11-23", commit="abc", code=results.code(), seconds=1.5)
    return replace(usual, **changes)  # type: ignore[arg-type]


def test_a_newer_result_replaces_the_older(tmp_path: Path) -> None:
    file = tmp_path / "results.jsonl"
    results.keep(result(outcome="failed"), file)
    results.keep(result("other"), file)
    results.keep(result(difference=-0.012, farlink="1 ± 0.1 (12 runs)"), file)

    assert [(one.cell, one.outcome, one.difference) for one in results.read(file)] == [
        ("test_ns2.py::test_a[b]", "passed", -0.012),
        ("other", "passed", None),
    ]


@pytest.mark.parametrize(
    ("changes", "done"),
    [({}, True), ({"outcome": "failed"}, False), ({"outcome": "skipped"}, False), ({"code": "older"}, False)],
)
def test_only_cells_that_passed_with_the_same_code_are_skipped(changes: dict[str, str], done: bool) -> None:
    one = result(**changes)

    assert results.is_done(one.cell, {one.cell: one}) is done
    assert not results.is_done("another", {one.cell: one})


def test_the_peer_programs_are_part_of_the_fingerprint() -> None:
    names = {path.relative_to(results.ROOT).as_posix() for path in results._peer_files()}

    assert {"tests/peers/ns2/dumbbell.tcl", "benches/ns3/corrections.h", "tests/peers/cells.py"} <= names
    assert "tests/peers/report.py" not in names
    assert "tests/peers/results.jsonl" not in names


def test_a_broken_line_is_named(tmp_path: Path) -> None:
    file = tmp_path / "results.jsonl"
    results.keep(result(), file)
    file.write_text(file.read_text() + '{"cell": "cut o')

    with pytest.raises(ValueError, match=r"results\.jsonl, line 2 is not a result"):
        results.read(file)


def test_the_committed_results_can_be_read() -> None:
    for one in results.read():
        assert one.outcome in ("passed", "failed", "skipped")
        assert one.peer in ("ns-2", "ns-3", "libfec")

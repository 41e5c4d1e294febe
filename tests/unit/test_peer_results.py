"""Results of peer cells: the newest of each is kept, and only cells that passed with the same code are skipped."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("farlink", reason="farlink is not installed: `make test` builds and installs it")

from tests.peers import ns2, results
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
        assert one.peer in ("ns-2", "ns-3", "libfec", "slurm")


SETTINGS = {"rate_bps": 1e6, "duration_s": 100}


def _goodput(monkeypatch: pytest.MonkeyPatch, gives: float, known: list[float]) -> tuple[ns2.Estimate, list[int]]:
    """Goodput where a run with each seed gives that seed of segments and `gives` more, and the seeds that were run."""
    ran: list[int] = []

    def run_once(_: object, seed: int) -> ns2.Ns2Run:
        ran.append(seed)
        return ns2.Ns2Run(gives + seed, 0, 0, ())

    monkeypatch.setattr(ns2, "run_once", run_once)
    monkeypatch.setattr(ns2, "kept", lambda: {ns2._key(SETTINGS): known})
    return ns2.goodput(SETTINGS, relative=0.05, batch=4, max_runs=8), sorted(ran)


def test_kept_runs_of_ns2_stand_for_new_ones_if_the_first_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FARLINK_PEERS", raising=False)
    fresh, all_ran = _goodput(monkeypatch, 10.0, [])
    # A segment is 8,000 bits of the 10^8 that the link carries.
    known = [(10.0 + seed) * 8000 / 1e8 for seed in range(1, 6)]

    assert all_ran == list(range(1, 9))
    assert _goodput(monkeypatch, 10.0, known) == (fresh, [1, 6, 7, 8])
    other, ran = _goodput(monkeypatch, 11.0, known)
    assert (other, sorted(set(ran))) == (_goodput(monkeypatch, 11.0, [])[0], all_ran)
    monkeypatch.setenv("FARLINK_PEERS", "all")
    assert _goodput(monkeypatch, 10.0, known) == (fresh, all_ran)

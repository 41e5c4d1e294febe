"""Thoroughness of the peer tests: FARLINK_PEERS=all runs every cell at half the interval, and keeps each result.

Cells that passed with the same code are left out, so that an interrupted run goes on where it stopped;
FARLINK_PEERS=again runs them all.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from tests.peers import results
from tests.peers.estimate import Estimate

Compared = Callable[[Estimate, Estimate], None]

ALL_CELLS = os.environ.get("FARLINK_PEERS") in ("all", "again")


@pytest.fixture(scope="session")
def relative_half_width() -> float:
    """Half-width, as a fraction of the mean, at which both sides stop adding runs."""
    return 0.01 if ALL_CELLS else 0.02


@pytest.fixture
def compared(record_property: Callable[[str, object], None]) -> Compared:
    """Keeps both sides' figures beside the outcome of the test."""

    def keep(ours: Estimate, theirs: Estimate) -> None:
        record_property("farlink", str(ours))
        record_property("theirs", str(theirs))
        record_property("difference", round(ours.mean / theirs.mean - 1, 5) if theirs.mean else None)

    return keep


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out cells that have passed with this code, and begin with those that were measured longest ago, or never."""
    if os.environ.get("FARLINK_PEERS") != "all":
        return
    kept = results.newest(results.read())
    done = [item for item in items if _peer(item) and results.is_done(_cell(item), kept)]
    if done:
        config.hook.pytest_deselected(items=done)
        items[:] = [item for item in items if item not in set(done)]
        print(f"{len(done)} cells passed before with this code; FARLINK_PEERS=again runs them anew")
    items.sort(key=lambda item: kept[_cell(item)].date if _cell(item) in kept else "")


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    """Keep the result of a cell as soon as there is one."""
    outcome: Any = yield
    report: pytest.TestReport = outcome.get_result()
    peer = _peer(item)
    if not ALL_CELLS or peer is None or (report.when != "call" and report.outcome == "passed") or report.when == "teardown":
        return
    figures = dict(item.user_properties)
    results.keep(
        results.Result(
            cell=_cell(item),
            peer=peer,
            outcome=report.outcome,
            date=datetime.now(UTC).date().isoformat(),
            commit=results.commit(),
            code=results.code(),
            seconds=round(call.duration, 1),
            farlink=figures.get("farlink"),
            theirs=figures.get("theirs"),
            difference=figures.get("difference"),
        )
    )


def _peer(item: pytest.Item) -> str | None:
    """The peer that the test names."""
    mark = item.get_closest_marker("peer")
    return str(mark.args[0]) if mark else None


def _cell(item: pytest.Item) -> str:
    """The test's name without its folder."""
    return item.nodeid.removeprefix("tests/peers/")

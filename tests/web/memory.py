"""Ten pages of the dashboard, open for a time beside bundles whose calls drop now and then: what the dashboard has in memory.

    .venv/bin/python -m tests.web.memory --minutes 60

Prints a row each half a minute, and at the end the growth by a straight line through the rows behind the first quarter. One of
the pages is opened anew each half a minute, as a user goes from page to page. Exits with 1 if that line rises by more than
`MOST_KB_PER_HOUR`.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from tests.operator.live_world import until, world_in
from tests.web.journals import write_bundle, write_calls
from tests.web.web_world import Dashboard, Watched, browser

MOST_KB_PER_HOUR = 5000.0
PAGES = (
    "/",
    "/",
    "/",
    "/line?bundle=near&line=near-1",
    "/line?bundle=near&line=near-2",
    "/timeline?span=1h",
    "/timeline?span=1h",
)
PAGES += ("/fit?bundle=old", "/journal?bundle=near", "/bank")
_EVERY_S = 30.0


def measured(minutes: float) -> tuple[list[tuple[float, int]], list[str]]:
    """Rows of time in s and memory in kB, and what went wrong in the pages."""
    rows: list[tuple[float, int]] = []
    with tempfile.TemporaryDirectory() as name, world_in(Path(name)) as world, browser() as chromium:
        world.bank(3, modem={2: "mean_up_s = 600", 3: "mean_up_s = 1200"})
        near, far = world.start(world.configure("near", 3)), world.start(world.configure("far", 3))
        until(lambda: near.ups() and far.ups())
        # Of a bundle that has had calls: what a fit imports is there from the beginning.
        write_calls(Path(name) / "old.journal")
        dashboard = Dashboard(Path(name), "near.toml", "far.toml", write_bundle(Path(name)))
        try:
            pages = [Watched(chromium, dashboard.url) for _ in PAGES]
            for page, path in zip(pages, PAGES, strict=True):
                page.open(path)
            begin = time.monotonic()
            while (passed_s := time.monotonic() - begin) < 60 * minutes:
                rows.append((passed_s, dashboard.memory_kb))
                print(
                    f"{passed_s:7.0f} s  {rows[-1][1]:8} kB  {sum(page.page.locator('h1').count() for page in pages)} pages",
                    flush=True,
                )
                at = len(rows) % len(pages)
                pages[at].open(PAGES[at])
                # The browser's events are only heard while it is asked.
                pages[0].page.wait_for_timeout(1000 * _EVERY_S)
            faults = [fault for page in pages for fault in page.faults]
            assert "Traceback" not in dashboard.log, dashboard.log
        finally:
            dashboard.end()
    return rows, faults


def growth_kb_per_hour(rows: list[tuple[float, int]]) -> float:
    """Slope of a straight line through the rows behind the first quarter."""
    later = rows[len(rows) // 4 :]
    times_s, kb = zip(*later, strict=True)
    return float(np.polyfit(times_s, kb, 1)[0] * 3600)


def main() -> None:
    """Measure, and tell."""
    given = argparse.ArgumentParser()
    given.add_argument("--minutes", type=float, default=60.0)
    rows, faults = measured(given.parse_args().minutes)
    growth = growth_kb_per_hour(rows)
    said = f"{len(PAGES)} pages, {rows[-1][0] / 60:.0f} min: {rows[0][1]} kB, then {rows[-1][1]} kB; {growth:+.0f} kB per hour"
    print(f"{said}; faults: {faults}")
    sys.exit(growth > MOST_KB_PER_HOUR or bool(faults))


if __name__ == "__main__":
    main()

"""Delay from the application's message to its delivery, as the sender can infer it."""

from __future__ import annotations

import pytest

from farlink.papers.item import Workbench
from farlink.papers.pathapati.measures import DELAY, measured, value
from farlink.papers.pathapati.path import scenario, tcp
from farlink.papers.pathapati.waiting import delays_from_application

# A window that holds the whole file from the start: nothing waits in the source's buffer.
WIDE = tcp(initial_window_segments=1000, handshake=False)


@pytest.fixture(scope="module")
def waits() -> dict[str, tuple[float, float]]:
    """Delay from the application and from first transmission, s."""
    bench = Workbench(runs=2)
    transports = {"wide": WIDE, "narrow": WIDE | {"max_window_segments": 10, "initial_window_segments": 10}}
    curves = measured(bench.run("waiting", scenario("waiting", transports, bers=(0.0,))), transports, DELAY)
    return {
        name: (dict(delays_from_application(bench, "waiting", name))[0.0].mean, value(curves, name, DELAY, 0.0).mean)
        for name in transports
    }


def test_without_waiting_the_delay_is_that_of_the_path(waits):
    from_application, from_transmission = waits["wide"]

    # With delayed acknowledgements the sender learns of the first of two segments a little later.
    assert from_application == pytest.approx(from_transmission, abs=0.01)


def test_waiting_for_the_window_counts_as_delay(waits):
    from_application, from_transmission = waits["narrow"]

    # 69 windows of ten segments, a round trip each: half of them on average.
    assert from_transmission == pytest.approx(10, abs=0.05)
    assert from_application == pytest.approx(10 + 34 * 20, rel=0.02)

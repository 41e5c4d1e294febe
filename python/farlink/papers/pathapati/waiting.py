"""How long data waits from the application to its delivery, the sender's buffer included."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from farlink import engines
from farlink.papers.epple.intervals import interval
from farlink.papers.estimate import Curve
from farlink.papers.item import Workbench
from farlink.papers.pathapati.path import BER, CBR_BPS, DELAY_S, FILE_BYTES, MESSAGE_BYTES, TRANSPORT

Floats = NDArray[np.float64]


def delays_from_application(bench: Workbench, name: str, transport: str) -> Curve:
    """Mean delay from the application's message to its delivery, against the bit error rate.

    When data is delivered follows from when the sender hears of it, less the way back; what is delivered after the time
    limit does not count.

    Parameters
    ----------
    bench
        Where scenario `name` was run.
    name
        A scenario of `path.scenario`.
    transport
        Of which transport.
    """
    scenario = bench.scenarios[name]
    runs = int(scenario.data["runs"])
    curve = []
    for number, point in enumerate(scenario.points()):
        if point[TRANSPORT] == transport:
            means = []
            for run in range(runs):
                series = engines.trace_run(scenario, point=number, run=run, quantities=["acknowledged"])
                means.append(_mean_delay_s(*series.select("acknowledged")))
            curve.append((float(point[BER]), interval(means)))
    return curve


def _mean_delay_s(heard_s: Floats, acknowledged: Floats) -> float:
    """Mean over the bytes delivered of delivery less writing; data is written at the constant rate, a message at a time."""
    ends = np.minimum(acknowledged, FILE_BYTES)
    starts = np.concatenate([[0.0], ends[:-1]])
    length = ends - starts
    # A byte is written with its message; the mean over a piece is taken at its middle.
    written_s = np.floor((starts + ends) / 2 / MESSAGE_BYTES) * 8 * MESSAGE_BYTES / CBR_BPS
    return float(np.sum(length * (heard_s - DELAY_S - written_s)) / np.sum(length))

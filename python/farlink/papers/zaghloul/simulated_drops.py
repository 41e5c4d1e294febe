"""Drops of the packet engine's channel ``call-drops``, as a log would have them.

A link that is listened to: one frame every few seconds is sent and acknowledged over a line that drops. Where acknowledgements
stop, the call was lost; where they go on, it is up again. The times are known to about half the interval between frames, as a
link manager knows them that polls its modems.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from farlink import engines
from farlink.channels.calls.links import Call, Link
from farlink.models.ranges import Floats
from farlink.papers.item import Workbench
from farlink.scenario import from_data

# Section 5.3: 394 drops were observed.
DROPS = 394
# From a drop until the link is up again: all eight modems up 87 % of the time (section 7.6) with a drop of each in 50 minutes.
REDIAL_S = 53.0
_FRAME_EVERY_S, _RTT_S = 4.0, 1.2
# Acknowledgements that are later than this were not on their way: the link was down.
_SILENT_S = 20.0


def scenario(interval_s: float, duration_s: float, seed: int) -> dict[str, Any]:
    """A line of 2.4 kb/s that drops at intervals of that mean, from drop to drop, and frames that are acknowledged over it."""
    calls = {
        "kind": "call-drops",
        "up": {"distribution": "exponential", "mean_s": interval_s - REDIAL_S},
        "redial": {"distribution": "constant", "value_s": REDIAL_S},
    }
    return {
        "title": f"A line that drops every {interval_s / 60:g} min",
        "duration_s": duration_s,
        "runs": 1,
        "seed": seed,
        "link": {"rate_bps": 2400, "delay_s": 0.5, "channel": calls, "return": {"channel": calls}},
        "transport": {"probe": {"kind": "arq", "segment_bytes": 1, "rto": {"algorithm": "fixed", "initial_s": 3}}},
        "flow": {
            "probe": {
                "transport": "probe",
                "traffic": {"kind": "cbr", "rate_bps": 8 / _FRAME_EVERY_S, "payload_bytes": 1},
            }
        },
    }


def drop_times_s(bench: Workbench, interval_s: float, *, series: int = 0, drops: int = DROPS) -> Floats:
    """Times of the first so many drops and one of one long run, in s; `series` tells independent runs apart."""
    # Four standard deviations more than on average.
    duration_s = interval_s * (drops + 4 * np.sqrt(drops) + 10)
    settings = scenario(interval_s, float(duration_s), 1000 * bench.seed + series)
    if f"drops-{interval_s / 60:g}-min" not in bench.scenarios:
        bench.scenarios[f"drops-{interval_s / 60:g}-min"] = from_data(settings)
    return _heard(interval_s, float(duration_s), 1000 * bench.seed + series)[: drops + 1]


def link_of(times_s: Floats) -> Link:
    """Drops as a log has them: up from the end of a redial to the next drop."""
    starts = np.concatenate(([0.0], times_s[:-1] + REDIAL_S))
    calls = [Call(start, end, "dropped") for start, end in zip(starts.tolist(), times_s.tolist(), strict=True)]
    return Link("simulated", calls, first_s=0.0, last_s=float(times_s[-1]))


@lru_cache(maxsize=512)
def _heard(interval_s: float, duration_s: float, seed: int) -> Floats:
    run = engines.trace_run(scenario(interval_s, duration_s, seed), quantities=["acknowledged"])
    time_s, _ = run.select("acknowledged")
    is_last = np.flatnonzero(np.diff(time_s) > _SILENT_S)
    # The next frame was lost: the drop came in between.
    return np.asarray(time_s[is_last] - _RTT_S + _FRAME_EVERY_S / 2)

"""Delay series of LeoReplayer: line i is the one-way delay in milliseconds during the i-th 10 ms.

References
----------
SpaceNetLab, LeoCC, SIGCOMM 2025: format of ``delay_*.txt``. The ``bw_*.txt`` beside it are Mahimahi traces.
"""

from __future__ import annotations

import re

import numpy as np

from farlink.channels.importers.recording import Recording
from farlink.channels.trace import Trace

NAME = "leoreplayer-delay"
KINDS = ("delay",)
DESCRIPTION = "LeoReplayer delay: one-way delay in ms on each line, one line per 10 ms"

_STEPS_PER_S = 100
_NUMBER = re.compile(rb"\s*\d+(\.\d+)?[ \t\r]*(\n|$)")


def recognises(recording: Recording) -> bool:
    """Whether its name begins with ``delay`` and its first line is a number."""
    return recording.name.lower().startswith("delay") and _NUMBER.match(recording.data[:100]) is not None


def trace(recording: Recording) -> Trace:
    """The delay trace in a recording.

    Raises
    ------
    TraceError
        If a line is not a number of at least 0; names the line.
    """
    delays_ms = recording.numbers("a delay in milliseconds", "each line is one number, of at least 0")
    meta = {
        "title": recording.name,
        "source": f"LeoReplayer delay series {recording.name}",
        "duration_s": delays_ms.size / _STEPS_PER_S,
    }
    return Trace("delay", {"time_s": np.arange(delays_ms.size) / _STEPS_PER_S, "delay_s": delays_ms / 1000}, meta)

"""Packet-delivery traces of the Mahimahi network emulator.

Each line is the millisecond at which one packet of 1500 bytes may cross the link; a repeated line is one more packet. The
trace repeats from the time of its last line.

References
----------
Winstein, Sivaraman, Balakrishnan, "Stochastic Forecasts Achieve High Throughput and Low Delay over Cellular Networks",
NSDI 2013; the manual page of ``mm-link``.
"""

from __future__ import annotations

import re

import numpy as np

from farlink.channels.importers.recording import Recording
from farlink.channels.trace import Trace
from farlink.errors import TraceError

NAME = "mahimahi"
KINDS = ("delivery",)
DESCRIPTION = "Mahimahi delivery trace: a millisecond per line, 1500 bytes each"

_BYTES_PER_OPPORTUNITY = 1500
_NUMBERS = re.compile(rb"\s*\d+[ \t\r]*(\n|$)")


def recognises(recording: Recording) -> bool:
    """Whether it begins with a line that is one whole number."""
    return _NUMBERS.match(recording.data[:100]) is not None


def trace(recording: Recording) -> Trace:
    """The delivery trace in a recording.

    Raises
    ------
    TraceError
        If a line is not a whole number of milliseconds, time goes back or the last time is 0; names the line.
    """
    times_ms = recording.numbers("a time in milliseconds", "each line is one whole number, of at least 0")
    fractions = np.flatnonzero(times_ms != np.floor(times_ms))
    if fractions.size:
        raise TraceError(
            f"{recording.where}, line {fractions[0] + 1}: {times_ms[fractions[0]]:g} is not a whole number of milliseconds",
            "round the times to milliseconds",
        )
    back = np.flatnonzero(np.diff(times_ms) < 0)
    if back.size:
        line = int(back[0]) + 2
        raise TraceError(
            f"{recording.where}, line {line}: {times_ms[line - 1]:g} ms comes after {times_ms[line - 2]:g} ms",
            "sort the lines; if these are delays, add --format leoreplayer-delay",
        )
    if times_ms[-1] == 0:
        raise TraceError(f"{recording.where}: every time is 0", "the last line is the length of the trace, above 0 ms")
    meta = {
        "title": recording.name,
        "source": f"Mahimahi delivery trace {recording.name}",
        "duration_s": float(times_ms[-1]) / 1000,
    }
    arrays = {"opportunity_s": times_ms / 1000, "bytes_per_opportunity": np.array(_BYTES_PER_OPPORTUNITY)}
    return Trace("delivery", arrays, meta)

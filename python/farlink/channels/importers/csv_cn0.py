"""C/N0 over time as text: a column such as ``cn0_dbhz`` and one of times; see `csv_text`.

The value of a row holds until the time of the next, the last as long as the median row. ``-inf`` is no signal.
"""

from __future__ import annotations

import re

import numpy as np

from farlink.channels.importers import csv_text
from farlink.channels.importers.gaps import filled
from farlink.channels.importers.recording import Recording
from farlink.channels.trace import Trace
from farlink.errors import TraceError

NAME = "csv-cn0"
KINDS = ("cn0",)
DESCRIPTION = "C/N0 in dBHz as text: a header such as time_s,cn0_dbhz"

_NAME = re.compile(r"c(?:/|_|_over_)?n_?0", re.IGNORECASE)


def is_cn0(name: str) -> bool:
    """Whether a column's name speaks of C/N0.

    Examples
    --------
    >>> [is_cn0(name) for name in ("cn0_dbhz", "C/N0 [dBHz]", "power_dbm")]
    [True, True, False]
    """
    return _NAME.search(name) is not None


def recognises(recording: Recording) -> bool:
    """Whether its header speaks of C/N0."""
    return any(is_cn0(name) for name in csv_text.names_in(recording.data[:2000], is_cn0))


def trace(recording: Recording) -> Trace:
    """The C/N0 trace in a recording.

    Raises
    ------
    TraceError
        If a column is missing, a cell is not a number or not a C/N0, time goes back, or values are missing and nothing is
        said of them; names the line or the time.
    """
    hints, where = recording.hints, recording.where
    if hints.unit is not None and hints.unit.lower().replace("-", "") != "dbhz":
        raise TraceError(f"{hints.unit!r} is no unit of C/N0 here", "give C/N0 in dBHz, and leave --unit out")
    name, time_s, values = csv_text.series(recording, is_cn0)
    series = filled(time_s, values, hints.gaps or "refuse", lost=-np.inf, where=where)
    meta = {"title": recording.name, "source": f"{recording.name}, {name}", "duration_s": series.duration_s}
    if series.note:
        meta |= {"notes": series.note, "gaps_s": series.gaps_s.tolist()}
    try:
        return Trace("cn0", {"time_s": series.time_s, "cn0_dbhz": series.values}, meta)
    except TraceError as error:
        raise TraceError(f"{where}: {error.message}", error.remedy) from error

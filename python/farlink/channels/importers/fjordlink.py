"""Telemetry of a Starlink dish, once a second, as FjordLink stores it: Parquet with the latency of pings to the gateway.

Notes
-----
The dish reports the round trip of its pings; half of it is taken as the one-way delay. Both the latency and the share of lost
pings look like short running averages: good for slow drift, not for the delay of a packet or for bursts below 1-2 s.

References
----------
FjordLink, Kiel University (ds-kiel), CC BY 4.0.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from farlink.channels import parquet
from farlink.channels.importers.recording import Recording
from farlink.channels.trace import Trace
from farlink.errors import TraceError

NAME = "fjordlink-starlink"
KINDS = ("delay",)
DESCRIPTION = "FjordLink Starlink telemetry (Parquet): half the ping latency, and the share of lost pings"

_TIME = "@timestamp"
_LATENCY_MS = "dish_status.pop_ping_latency_ms"
_DROP_RATE = "dish_status.pop_ping_drop_rate"


def recognises(recording: Recording) -> bool:
    """Whether it is a Parquet file."""
    return recording.data[:4] == b"PAR1"


def trace(recording: Recording) -> Trace:
    """The delay trace in a recording.

    Raises
    ------
    TraceError
        If a column is missing, a value is not a number, or time goes back; names the row.
    """
    table = parquet.table_of(recording.data, recording.where)
    missing = [name for name in (_TIME, _LATENCY_MS, _DROP_RATE) if name not in table.column_names]
    if missing:
        raise TraceError(f"{recording.where}: no column {missing[0]}", "this reads the dish's telemetry, not the modems'")
    if table.num_rows == 0:
        raise TraceError(f"{recording.where}: no rows", "fetch or record it again")
    try:
        stamps = [datetime.fromisoformat(text).timestamp() for text in table[_TIME].to_pylist()]
    except (TypeError, ValueError, OverflowError) as error:
        raise TraceError(f"{recording.where}: {_TIME} holds no ISO times", "check the file") from error
    time_s = np.array(stamps) - stamps[0]
    latency_ms, drop_rate = (_numbers(table, name, recording.where) for name in (_LATENCY_MS, _DROP_RATE))
    if np.any(np.diff(time_s) <= 0):
        row = int(np.flatnonzero(np.diff(time_s) <= 0)[0]) + 2
        raise TraceError(f"{recording.where}, row {row}: time does not go on", "sort the rows by time")
    for name, values, highest in ((_LATENCY_MS, latency_ms, np.inf), (_DROP_RATE, drop_rate, 1.0)):
        bad = np.flatnonzero(~((values >= 0) & (values <= highest) & np.isfinite(values)))
        if bad.size:
            raise TraceError(f"{recording.where}, row {bad[0] + 1}: {name} is {values[bad[0]]}", "remove that row")
    step_s = float(np.median(np.diff(time_s))) if time_s.size > 1 else 1.0
    meta = {
        "title": recording.name.split(".")[0],
        "source": f"FjordLink {recording.name}, Kiel University (ds-kiel)",
        "licence": "CC BY 4.0",
        "notes": "one-way delay is half the ping latency",
        "duration_s": float(time_s[-1]) + step_s,
    }
    arrays = {"time_s": time_s, "delay_s": latency_ms / 2000, "drop_rate": drop_rate}
    return Trace("delay", arrays, meta)


def _numbers(table: Any, name: str, where: str) -> NDArray[np.float64]:
    try:
        found: NDArray[np.float64] = table[name].to_numpy().astype(np.float64)
    except (TypeError, ValueError, OverflowError, NotImplementedError) as error:
        raise TraceError(f"{where}: {name} holds no numbers", "check the file") from error
    return found

"""Traces as Parquet files: the same arrays as columns, the same metadata in the schema."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from farlink.channels.trace import KINDS, Trace
from farlink.errors import TraceError
from farlink.extras import require

_KEY = b"farlink_trace"


def to_bytes(trace: Trace) -> bytes:
    """A trace as the bytes of a Parquet file.

    Scalars, and arrays of another length than the series, stand in the metadata.

    Raises
    ------
    MissingExtraError
        If pyarrow is not installed.
    """
    pa = require("pyarrow", "a Parquet file")
    pq = require("pyarrow.parquet", "a Parquet file")
    series = next(name for name, array in trace.arrays.items() if array.ndim)
    length = trace[series].size
    columns = {name: array for name, array in trace.arrays.items() if array.ndim and array.size == length}
    rest = {name: array.tolist() for name, array in trace.arrays.items() if name not in columns}
    meta: dict[str, Any] = {"kind": trace.kind, "meta": trace.meta, "rest": rest, "units": dict(KINDS[trace.kind].units)}
    table = pa.table(columns).replace_schema_metadata({_KEY: json.dumps(meta, sort_keys=True).encode()})
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, compression="zstd")
    return bytes(sink.getvalue().to_pybytes())


def is_trace(data: bytes) -> bool:
    """Whether a Parquet file was written by `to_bytes`."""
    return _KEY in data[-100_000:]


def table_of(data: bytes, where: str) -> Any:
    """The table in the bytes of a Parquet file.

    Raises
    ------
    TraceError
        If it is truncated.
    """
    pa = require("pyarrow", "a Parquet file")
    pq = require("pyarrow.parquet", "a Parquet file")
    try:
        return pq.read_table(pa.BufferReader(data))
    except (pa.ArrowInvalid, OSError) as error:
        raise TraceError(f"{where}: not a complete Parquet file", "fetch it again; it may be truncated") from error


def from_bytes(data: bytes, where: str) -> Trace:
    """Read a trace from the bytes of a Parquet file.

    Parameters
    ----------
    data
        Contents of the file.
    where
        Its name, for messages.

    Raises
    ------
    TraceError
        If it is truncated or not a trace.
    """
    table = table_of(data, where)
    stored = (table.schema.metadata or {}).get(_KEY)
    if stored is None:
        raise TraceError(f"{where}: a Parquet file, but not a trace", "import it first: farlink trace import FILE")
    try:
        meta = json.loads(stored)
        arrays = {name: table[name].to_numpy() for name in table.column_names}
        arrays |= {name: np.array(value) for name, value in meta["rest"].items()}
        return Trace(meta["kind"], arrays, meta["meta"])
    except (ValueError, KeyError, TypeError) as error:
        raise TraceError(f"{where}: its metadata is not that of a trace", "write it again with farlink trace import") from error
    except TraceError as error:
        raise TraceError(f"{where}: {error.message}", error.remedy) from error

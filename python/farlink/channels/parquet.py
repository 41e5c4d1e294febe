"""Traces as Parquet files: the same arrays as columns, the same metadata in the schema."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from farlink.channels.trace import KINDS, Trace, made
from farlink.errors import TraceError
from farlink.extras import require
from farlink.untrusted import parquet_table

_KEY = b"farlink_trace"


def to_bytes(trace: Trace) -> bytes:
    """A trace as the bytes of a Parquet file.

    Scalars, and arrays of another length than the series, are stored in the metadata.

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
        If it is truncated, or too large.
    """
    return parquet_table(data, where, TraceError)


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
    remedy = "write it again with farlink trace import"
    try:
        meta = json.loads(stored)
        kind, rest, said = meta["kind"], meta["rest"], meta["meta"]
        if not (isinstance(kind, str) and isinstance(rest, dict) and isinstance(said, dict)):
            raise TypeError(kind)
        arrays = {name: table[name].to_numpy() for name in table.column_names}
        arrays |= {name: np.array(value) for name, value in rest.items()}
    except (ValueError, KeyError, TypeError, RecursionError, NotImplementedError) as error:
        raise TraceError(f"{where}: its metadata is not that of a trace", remedy) from error
    return made(kind, arrays, said, where)

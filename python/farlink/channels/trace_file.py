"""Trace files of farlink's own formats, ``.npz`` and Parquet, read and written."""

from __future__ import annotations

from pathlib import Path

from farlink.channels import parquet
from farlink.channels.trace import Trace, from_bytes, read_bytes
from farlink.output import whole_file


def read(path: str | Path) -> Trace:
    """Read a trace file of farlink's own format, ``.npz`` or Parquet.

    Parameters
    ----------
    path
        The file.

    Raises
    ------
    TraceError
        If it is missing, truncated, or not a trace.
    """
    path = Path(path)
    data = read_bytes(path)
    if data[:4] == b"PAR1":
        return parquet.from_bytes(data, str(path))
    return from_bytes(data, str(path))


def write(trace: Trace, path: str | Path) -> Path:
    """Write a trace; the file appears whole or not at all.

    Parameters
    ----------
    trace
        What to write.
    path
        Where to. The suffix ``.parquet`` selects Parquet, which needs the ``parquet`` extra; any other file is an ``.npz``.

    Returns
    -------
    Path
        The file.
    """
    path = Path(path)
    data = parquet.to_bytes(trace) if path.suffix == ".parquet" else trace.to_bytes()
    with whole_file(path) as temporary:
        temporary.write_bytes(data)
    return path

"""Received power in MATLAB's files: format 5 to 7 through SciPy, 7.3 as the HDF5 that it is.

Every vector of numbers is a column, fields of structures too; the sampling rate may be a scalar such as ``fs``.
Another process reads: see `apart`.
"""

from __future__ import annotations

import io
import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from farlink.channels.importers import hdf5
from farlink.channels.importers.apart import trace_apart
from farlink.channels.importers.power_series import Table, columns_of, series_trace, with_rate
from farlink.channels.importers.recording import Recording
from farlink.channels.trace import Trace
from farlink.errors import FarlinkError, TraceError
from farlink.extras import require
from farlink.untrusted import MOST_VALUES

NAME = "matlab"
KINDS = ("power",)
DESCRIPTION = "received power in MATLAB's .mat, 5 to 7.3: --column names the variable"

_HEAD = b"MATLAB "


def recognises(recording: Recording) -> bool:
    """Whether it begins as MATLAB's files do."""
    return recording.data[:7] == _HEAD


def trace(recording: Recording) -> Trace:
    """The power trace in a recording.

    Raises
    ------
    TraceError
        If the file is truncated or too large; and for what `series_trace` refuses.
    """
    if hdf5.recognises(recording):
        return hdf5.trace(recording)
    require("scipy.io", "a MATLAB file")
    return trace_apart(recording, __name__, "MATLAB")


def trace_here(recording: Recording) -> Trace:
    """The same, in this process, which some damaged files end.

    Parameters
    ----------
    recording
        The measured file.
    """
    sio = require("scipy.io", "a MATLAB file")
    try:
        # A matrix says its size before it is unpacked.
        if sum(math.prod(shape) for _, shape, _ in sio.whosmat(io.BytesIO(recording.data))) > MOST_VALUES:
            raise TraceError(f"{recording.where}: more than the {MOST_VALUES:,} values that are read", "cut it into parts")
        stored = sio.loadmat(io.BytesIO(recording.data), squeeze_me=True, struct_as_record=True)
    except (FarlinkError, MemoryError):
        raise
    except Exception as error:  # SciPy's reader may raise any error on a damaged file
        raise TraceError(f"{recording.where}: not a complete MATLAB file", "fetch it again; it may be truncated") from error
    columns: dict[str, NDArray[Any]] = {}
    scalars: dict[str, float] = {}
    for name, values in _variables("", stored):
        if values.dtype.kind not in "biuf":
            continue
        if values.size == 1:
            scalars[name] = float(values.ravel()[0])
        else:
            columns |= columns_of(name, values)
    table = Table(dict.fromkeys(columns), lambda name: columns[name].astype(np.float64))
    return series_trace(recording, with_rate(table, scalars))


def _variables(path: str, items: dict[str, Any]) -> Iterator[tuple[str, NDArray[Any]]]:
    for name, value in items.items():
        if name.startswith("__"):
            continue
        array = np.asarray(value)
        if array.dtype.names and array.size == 1:
            record = array.ravel()[0]
            yield from _variables(f"{path}{name}/", {field: record[field] for field in array.dtype.names})
        else:
            yield f"{path}{name}", array

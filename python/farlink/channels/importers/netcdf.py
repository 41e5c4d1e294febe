"""Received power in classic NetCDF, formats 1 and 2, through SciPy; NetCDF-4 is HDF5.

Every variable of one dimension is a column; its attribute ``units`` is the unit.
"""

from __future__ import annotations

import io
from typing import Any

import numpy as np

from farlink.channels.importers.apart import trace_apart
from farlink.channels.importers.hdf5 import text_of, unpacked
from farlink.channels.importers.power_series import Table, series_trace, with_rate
from farlink.channels.importers.recording import Recording
from farlink.channels.trace import Trace
from farlink.errors import TraceError
from farlink.extras import require

NAME = "netcdf"
KINDS = ("power",)
DESCRIPTION = "received power in classic NetCDF: --column names the variable"


def recognises(recording: Recording) -> bool:
    """Whether it begins as classic NetCDF does."""
    return recording.data[:3] == b"CDF" and recording.data[3:4] in (b"\x01", b"\x02", b"\x05")


def trace(recording: Recording) -> Trace:
    """The power trace in a recording.

    Raises
    ------
    TraceError
        If the file is truncated, too large or of format 5; and for what `series_trace` refuses.
    """
    if recording.data[3:4] == b"\x05":
        raise TraceError(f"{recording.where}: NetCDF of format 5 is not read", "convert it: nccopy -k nc4 IN OUT")
    require("scipy.io", "a NetCDF file")
    return trace_apart(recording, __name__, "NetCDF")


def trace_here(recording: Recording) -> Trace:
    """The same, in this process, which some damaged files end.

    Parameters
    ----------
    recording
        The measured file.
    """
    sio = require("scipy.io", "a NetCDF file")
    try:
        file = sio.netcdf_file(io.BytesIO(recording.data), "r", mmap=False)
    except MemoryError:
        raise
    except Exception as error:  # SciPy's reader may raise any error on a damaged file
        raise TraceError(f"{recording.where}: not a complete NetCDF file", "fetch it again; it may be truncated") from error
    attributes = {name: vars(item).get("_attributes", {}) for name, item in file.variables.items()}
    scalars: dict[str, float] = {}
    for found in (vars(file).get("_attributes", {}), *attributes.values()):
        scalars |= {name: float(np.ravel(value)[0]) for name, value in found.items() if _is_scalar(value)}
    scalars |= {name: float(np.ravel(item.data)[0]) for name, item in file.variables.items() if _is_scalar(item.data)}
    units = {
        name: text_of(attributes[name].get("units"))
        for name, item in file.variables.items()
        if np.ndim(item.data) == 1 and item.data.dtype.kind in "biuf"
    }
    return series_trace(
        recording, with_rate(Table(units, lambda name: unpacked(file.variables[name].data, attributes[name])), scalars)
    )


def _is_scalar(value: Any) -> bool:
    array = np.asarray(value)
    return array.size == 1 and array.dtype.kind in "biuf"

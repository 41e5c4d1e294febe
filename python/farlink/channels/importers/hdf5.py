"""Received power in HDF5, which is also NetCDF-4 and MATLAB's format 7.3.

Every vector of numbers is a column, named by its path; the attribute ``units`` is its unit. The sampling rate may be an
attribute or a scalar, ``sample_rate_hz`` or ``fs``.

References
----------
NetCDF Climate and Forecast conventions, sections 2.5.1 (missing data) and 8.1 (packed data).
"""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from farlink.channels.importers.apart import trace_apart
from farlink.channels.importers.power_series import Table, columns_of, series_trace, with_rate
from farlink.channels.importers.recording import Recording
from farlink.channels.trace import Trace
from farlink.errors import FarlinkError, TraceError
from farlink.extras import require
from farlink.untrusted import MOST_VALUES

NAME = "hdf5"
KINDS = ("power",)
DESCRIPTION = "received power in HDF5 or NetCDF-4: --column names the data set"

# Attributes of more values are not read.
_LONG = 1000
_SIGNATURE = b"\x89HDF\r\n\x1a\n"


def recognises(recording: Recording) -> bool:
    """Whether it bears the signature of HDF5, at its beginning or after a block of MATLAB's."""
    return recording.data[:8] == _SIGNATURE or recording.data[512:520] == _SIGNATURE


def trace(recording: Recording) -> Trace:
    """The power trace in a recording.

    Raises
    ------
    TraceError
        If the file is truncated or too large; and for what `series_trace` refuses.
    """
    require("h5py", "an HDF5 file")
    return trace_apart(recording, __name__, "HDF5")


def trace_here(recording: Recording) -> Trace:
    """The same, in this process, which some damaged files end.

    Parameters
    ----------
    recording
        The measured file.
    """
    h5py = require("h5py", "an HDF5 file")
    try:
        with h5py.File(io.BytesIO(recording.data), "r") as file:
            return series_trace(recording, _table(h5py, file))
    except (FarlinkError, MemoryError):
        raise
    except Exception as error:  # h5py may raise any error on a damaged file
        raise TraceError(f"{recording.where}: not a complete HDF5 file", "fetch it again; it may be truncated") from error


def unpacked(values: NDArray[Any], attributes: Mapping[str, Any]) -> NDArray[np.float64]:
    """Numbers as they were measured: missing ones NaN, packed ones scaled.

    Parameters
    ----------
    values
        As stored.
    attributes
        Of the variable: ``_FillValue``, ``missing_value``, ``scale_factor``, ``add_offset``.
    """
    found = values.astype(np.float64)
    for key in ("_FillValue", "missing_value"):
        if key in attributes:
            found[np.isin(values, np.asarray(attributes[key]))] = np.nan
    for key, apply in (("scale_factor", np.multiply), ("add_offset", np.add)):
        if key in attributes:
            found = apply(found, float(np.ravel(attributes[key])[0]))
    return found


def text_of(value: Any) -> str | None:
    """An attribute as text; None if it is not."""
    if isinstance(value, bytes | np.bytes_):
        return value.decode("utf-8", "replace")
    return str(value) if isinstance(value, str) else None


def _table(h5py: Any, file: Any) -> Table:
    units: dict[str, str | None] = {}
    loads: dict[str, Callable[[], NDArray[np.float64]]] = {}
    scalars: dict[str, float] = {
        name: float(value) for name, value in _attributes(file).items() if np.ndim(value) == 0 and _is_real(value)
    }

    def visit(path: str, item: Any) -> None:
        if not isinstance(item, h5py.Dataset) or item.shape is None or path.startswith("#"):
            return
        # Links to other files are not followed, because the file is not trusted.
        if item.external or item.is_virtual:
            return
        attributes = _attributes(item)
        if text_of(attributes.get("MATLAB_class")) == "char":
            return
        scalars.update(
            {name: float(np.ravel(value)[0]) for name, value in attributes.items() if np.size(value) == 1 and _is_real(value)}
        )
        for field in item.dtype.names or (None,):
            dtype = item.dtype if field is None else item.dtype[field]
            name = path if field is None else f"{path}/{field}"
            if dtype.kind not in "biuf":
                continue
            if item.size == 1:
                scalars[name] = float(np.ravel(item[()] if field is None else item[field])[0])
                continue
            # A view without data gives the number of columns.
            if item.size > MOST_VALUES:
                continue
            for column in columns_of(name, np.broadcast_to(np.zeros(1, dtype), item.shape)):
                units[column] = text_of(attributes.get("units"))
                loads[column] = partial(_load, item, field, name, column)

    file.visititems(visit)
    return with_rate(Table(units, lambda name: loads[name]()), scalars)


def _load(item: Any, field: str | None, name: str, column: str) -> NDArray[np.float64]:
    return unpacked(columns_of(name, item[()] if field is None else item[field])[column], _attributes(item))


def _attributes(item: Any) -> dict[str, Any]:
    """The short ones."""
    return {
        name: item.attrs[name]
        for name in item.attrs
        if item.attrs.get_id(name).get_space().get_simple_extent_npoints() <= _LONG
    }


def _is_real(value: Any) -> bool:
    return np.asarray(value).dtype.kind in "biuf"

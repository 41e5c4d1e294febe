"""Traces: measured capacity, delay and loss, in the one format that the engines read.

A trace file is an NumPy archive (``.npz``): the arrays of its kind, little endian, and ``meta``, a
JSON text with the title, source, licence, units and duration. Equal traces give equal bytes.
"""

from __future__ import annotations

import io
import json
import stat
import zipfile
import zlib
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from farlink.errors import TraceError
from farlink.output import whole_file

FORMAT_VERSION = 1

# C/N0 above this is a ratio, not dBHz.
_MOST_DBHZ = 200.0

# Date that every member of an archive bears, so that equal traces are equal files: the first that zip can express.
_ZIP_DATE = (1980, 1, 1, 0, 0, 0)


@dataclass(frozen=True)
class Kind:
    """What a kind of trace consists of.

    Attributes
    ----------
    arrays
        Required arrays and their types.
    units
        Unit of each array, optional ones too.
    use
        Where a scenario may name it.
    """

    arrays: Mapping[str, str]
    units: Mapping[str, str]
    use: str


KINDS: dict[str, Kind] = {
    "delivery": Kind(
        {"opportunity_s": "<f8", "bytes_per_opportunity": "<u4"},
        {"opportunity_s": "s", "bytes_per_opportunity": "bytes"},
        'rate_bps = { kind = "rate-trace", file = ... }',
    ),
    "rate": Kind(
        {"time_s": "<f8", "rate_bps": "<f8"},
        {"time_s": "s", "rate_bps": "bit/s"},
        'rate_bps = { kind = "rate-trace", file = ... }',
    ),
    "delay": Kind(
        {"time_s": "<f8", "delay_s": "<f8"},
        {"time_s": "s", "delay_s": "s", "drop_rate": "1"},
        'delay_s = { kind = "delay-trace", file = ... }',
    ),
    "power": Kind(
        {"power_w": "<f8"},
        {"power_w": "W", "blocked": "1"},
        'channel = { kind = "fading", file = ... }',
    ),
    "cn0": Kind(
        {"time_s": "<f8", "cn0_dbhz": "<f8"},
        {"time_s": "s", "cn0_dbhz": "dBHz"},
        "farlink trace adapt makes a rate and a bit error rate of it",
    ),
    "ber": Kind(
        {"ber": "<f8"},
        {"ber": "1"},
        'channel = { kind = "ber-trace", file = ... }',
    ),
    "packet-loss": Kind(
        {"lost": "|u1"},
        {"lost": "1", "segment_start": "frame"},
        'channel = { kind = "packet-trace", file = ... }',
    ),
    "bit-errors": Kind(
        {"position": "<u8", "bits": "<u8"},
        {"position": "bit", "bits": "bit"},
        'channel = { kind = "bit-trace", file = ... }',
    ),
}

# Optional arrays and their types.
_OPTIONAL = {"drop_rate": "<f8", "segment_start": "<u8", "blocked": "|u1"}


@dataclass(frozen=True)
class Trace:
    """A recorded series that a channel or a link replays.

    Parameters
    ----------
    kind
        One of `KINDS`.
    arrays
        The arrays of that kind; scalars are arrays without dimension. Converted to the types of the kind.
        A ``delay`` trace may carry ``drop_rate`` (probability, as long as ``time_s``); a ``packet-loss`` trace that joins
        several recordings carries ``segment_start`` (index of the first frame of each); a ``power`` trace, whose samples
        are at equal distances, may carry ``blocked`` (1 where the line of sight was blocked or tracking lost); ``cn0_dbhz``
        may be ``-inf``, no signal. Samples of ``power`` and ``ber`` are at equal distances.
    meta
        ``duration_s`` (for the kinds with a time axis), and whatever is known of ``title``, ``source``, ``licence``, ``notes``.

    Raises
    ------
    TraceError
        If an array is missing or empty, or holds values that its kind cannot have.

    Examples
    --------
    >>> trace = Trace("delay", {"time_s": [0.0, 0.01], "delay_s": [0.012, 0.011]}, {"duration_s": 0.02})
    >>> trace["delay_s"]
    array([0.012, 0.011])
    >>> trace.duration_s
    0.02
    """

    kind: str
    arrays: Mapping[str, NDArray[Any]]
    meta: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "arrays", _typed(self.kind, self.arrays))
        _check(self)

    def __getitem__(self, name: str) -> NDArray[Any]:
        """The array of that name."""
        return self.arrays[name]

    @property
    def duration_s(self) -> float | None:
        """Time after which it starts over, in s; None for kinds that count frames or bits."""
        duration_s = self.meta.get("duration_s")
        return None if duration_s is None else float(duration_s)

    @property
    def title(self) -> str:
        """Its title, else its kind."""
        return str(self.meta.get("title") or f"{self.kind} trace")

    def to_bytes(self) -> bytes:
        """The trace as the bytes of its file."""
        members = {name: self.arrays[name] for name in sorted(self.arrays)}
        text = json.dumps(self._stored_meta(), sort_keys=True, ensure_ascii=True, allow_nan=False)
        members["meta"] = np.array(text.encode("ascii"))
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w") as archive:
            for name, array in members.items():
                member = io.BytesIO()
                np.lib.format.write_array(member, array, version=(1, 0), allow_pickle=False)
                info = zipfile.ZipInfo(f"{name}.npy", date_time=_ZIP_DATE)
                info.compress_type = zipfile.ZIP_DEFLATED
                info.create_system = 3
                archive.writestr(info, member.getvalue(), compresslevel=6)
        return buffer.getvalue()

    def _stored_meta(self) -> dict[str, Any]:
        units = KINDS[self.kind].units
        return {
            **self.meta,
            "farlink_trace": FORMAT_VERSION,
            "kind": self.kind,
            "units": {name: units[name] for name in sorted(self.arrays) if name in units},
        }


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
        from farlink.channels import parquet

        return parquet.from_bytes(data, str(path))
    return from_bytes(data, str(path))


def from_bytes(data: bytes, where: str) -> Trace:
    """Read a trace from the bytes of its ``.npz`` file.

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
    remedy = "import the measurement again: farlink trace import FILE"
    try:
        with np.load(io.BytesIO(data), allow_pickle=False) as archive:
            members = {name: archive[name] for name in archive.files}
    except (ValueError, OSError, EOFError, KeyError, zipfile.BadZipFile, zlib.error, NotImplementedError) as error:
        raise TraceError(f"{where}: not a complete .npz archive", remedy) from error
    except AttributeError as error:  # np.load gives the bare array of an .npy file
        raise TraceError(f"{where}: an .npy array, not an .npz archive", remedy) from error
    meta = _meta(members.pop("meta", None), where, remedy)
    kind = meta.pop("kind", None)
    if kind not in KINDS:
        raise TraceError(f"{where}: kind {kind!r} is not one of {', '.join(KINDS)}", remedy)
    for key in ("farlink_trace", "units"):
        meta.pop(key, None)
    try:
        return Trace(kind, members, meta)
    except TraceError as error:
        raise TraceError(f"{where}: {error.message}", error.remedy) from error


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
    if path.suffix == ".parquet":
        from farlink.channels import parquet

        data = parquet.to_bytes(trace)
    else:
        data = trace.to_bytes()
    with whole_file(path) as temporary:
        temporary.write_bytes(data)
    return path


def resolve(
    path: str | Path, *, kinds: Collection[str] | None = None, format: str | None = None, member: str | None = None
) -> Path:
    """Find the ``.npz`` file of a trace, importing a measured file into the cache if need be.

    Parameters
    ----------
    path
        A trace file, which is checked; or a measured file of a known format. ``archive.tar.gz/member`` and
        ``directory/member`` name one file of several.
    kinds
        Kinds of trace that the caller can use; also decides which format an ambiguous file has. Any kind by default.
    format
        Name of the importer; recognised from the file by default.
    member
        File within an archive or directory, if `path` does not name it.

    Returns
    -------
    Path
        `path` itself, or the file in the cache (``$XDG_CACHE_HOME/farlink/traces``), whose name is a hash of the contents
        and of the importer's version.

    Raises
    ------
    TraceError
        If the file is missing, malformed, of an unknown format or of another kind.
    """
    from farlink.channels import cache

    return cache.resolve(Path(path), kinds=kinds, format=format, member=member)


def read_bytes(path: Path) -> bytes:
    """Contents of a file that a user named.

    Raises
    ------
    TraceError
        If it cannot be read.
    """
    try:
        mode = path.stat().st_mode
        if stat.S_ISCHR(mode) or stat.S_ISBLK(mode):
            # Some devices never end.
            raise TraceError(f"{path} is a device, not a file", "name a measured file")
        data = path.read_bytes()
    except FileNotFoundError as error:
        raise TraceError(f"{path}: no such file", missing_remedy(path)) from error
    except IsADirectoryError as error:
        raise TraceError(f"{path} is a directory", "name a file in it") from error
    except OSError as error:
        raise TraceError(f"cannot read {path}: {error.strerror}", "check the name and its permissions") from error
    except ValueError as error:
        raise TraceError(f"{str(path)!r} is not a name of a file", "check the name") from error
    return data


def missing_remedy(path: Path) -> str:
    """What to do about a file that does not exist."""
    if "$" in str(path):
        return "set the environment variable in its name, for example FARLINK_DATA"
    parent = path.parent
    return f"check the name; directory {parent} exists" if parent.is_dir() else f"directory {parent} does not exist either"


def _meta(member: NDArray[Any] | None, where: str, remedy: str) -> dict[str, Any]:
    if member is None:
        raise TraceError(f"{where}: an .npz archive without meta, so not a trace", remedy)
    try:
        item = member.item()
        meta = json.loads(item)
        version = meta["farlink_trace"]
    except (ValueError, TypeError, KeyError) as error:
        raise TraceError(f"{where}: its meta is not that of a trace", remedy) from error
    if version != FORMAT_VERSION:
        raise TraceError(f"{where}: trace format {version!r}, this farlink reads {FORMAT_VERSION}", remedy)
    return dict(meta)


def _typed(kind: str, arrays: Mapping[str, Any]) -> dict[str, NDArray[Any]]:
    if kind not in KINDS:
        raise TraceError(f"kind {kind!r} of trace", f"choose one of: {', '.join(KINDS)}")
    types = {**KINDS[kind].arrays, **{name: _OPTIONAL[name] for name in _OPTIONAL if name in KINDS[kind].units}}
    missing = [name for name in KINDS[kind].arrays if name not in arrays]
    if missing:
        raise TraceError(f"a {kind} trace needs {', '.join(missing)}", f"its arrays are: {', '.join(types)}")
    unknown = [name for name in arrays if name not in types]
    if unknown:
        raise TraceError(f"{unknown[0]} is no array of a {kind} trace", f"its arrays are: {', '.join(types)}")
    return {name: _converted(name, array, types[name]) for name, array in arrays.items()}


def _converted(name: str, array: Any, dtype: str) -> NDArray[Any]:
    given = np.asarray(array)
    remedy = "check the measurement it was made from"
    if given.dtype.kind not in "bifu":
        raise TraceError(f"{name} holds {given.dtype}, not numbers", remedy)
    wanted = np.dtype(dtype)
    scalar = name in ("bytes_per_opportunity", "bits")
    if given.ndim != (0 if scalar else 1):
        raise TraceError(f"{name} has {given.ndim} dimensions", "scalars have none, series one")
    allowed = np.isfinite(given) | (np.isneginf(given) & (name == "cn0_dbhz")) if given.dtype.kind == "f" else True
    if not np.all(allowed):
        raise TraceError(f"{name} holds a value that is not finite", remedy)
    if wanted.kind == "u":
        limits = np.iinfo(wanted)
        if np.any(given < 0) or np.any(given > limits.max) or np.any(given != np.floor(given)):
            raise TraceError(f"{name} holds values that are not whole numbers from 0 to {limits.max}", remedy)
    return np.ascontiguousarray(given.astype(wanted)) if given.ndim else given.astype(wanted)


def _check(trace: Trace) -> None:
    kind, arrays = trace.kind, trace.arrays
    remedy = "check the measurement it was made from"
    if kind in ("delivery", "rate", "delay", "power", "cn0", "ber"):
        duration_s = trace.meta.get("duration_s")
        if not isinstance(duration_s, int | float) or not np.isfinite(duration_s) or duration_s <= 0:
            raise TraceError(f"duration_s is {duration_s!r}", "a trace lasts a number of seconds above 0")
    if kind == "power":
        _check_power(arrays)
    elif kind == "ber":
        _check_ber(arrays["ber"])
    elif kind in ("delivery", "rate", "delay", "cn0"):
        times = arrays["opportunity_s" if kind == "delivery" else "time_s"]
        if times.size == 0:
            raise TraceError("the trace is empty", remedy)
        steps = np.diff(times)
        if np.any(steps < 0) or (kind != "delivery" and np.any(steps == 0)):
            raise TraceError(f"time goes back at entry {int(np.argmin(steps)) + 1}", remedy)
        if times[0] < 0 or times[-1] > duration_s or (kind != "delivery" and times[-1] == duration_s):
            raise TraceError(f"times from {times[0]:g} s to {times[-1]:g} s lie outside its {duration_s:g} s", remedy)
        if kind == "delivery" and arrays["bytes_per_opportunity"] == 0:
            raise TraceError("bytes_per_opportunity is 0", "give the bytes that may cross at each opportunity")
        for name in ("rate_bps", "delay_s", "drop_rate", "cn0_dbhz"):
            if name in arrays:
                _check_series(name, arrays[name], times)
        if kind != "delivery" and times[0] != 0:
            raise TraceError(f"the first time is {times[0]:g} s", "a series starts at 0 s")
    elif kind == "packet-loss":
        lost = arrays["lost"]
        if lost.size == 0:
            raise TraceError("the trace is empty", remedy)
        if np.any(lost > 1):
            raise TraceError(f"lost holds {int(lost.max())}", "0 is received, 1 is lost")
        if "segment_start" in arrays:
            starts = arrays["segment_start"].astype(np.int64)
            if starts.size == 0 or starts[0] != 0 or np.any(np.diff(starts) <= 0) or starts[-1] >= lost.size:
                raise TraceError("segment_start is not an ascending list of frames that begins with 0", remedy)
    else:
        position, bits = arrays["position"], int(arrays["bits"])
        if bits == 0:
            raise TraceError("the trace is empty", remedy)
        if np.any(position[1:] <= position[:-1]):
            raise TraceError("positions of wrong bits do not ascend", remedy)
        if position.size and int(position[-1]) >= bits:
            raise TraceError(f"wrong bit {int(position[-1])} lies beyond the {bits} bits", remedy)


def _check_ber(ber: NDArray[Any]) -> None:
    if ber.size == 0:
        raise TraceError("the trace is empty", "give a bit error rate for each sample")
    bad = np.flatnonzero((ber < 0) | (ber > 0.5))
    if bad.size:
        raise TraceError(f"ber is {ber[bad[0]]:g} at sample {bad[0]}", "a bit error rate is from 0 to 0.5")


def _check_power(arrays: Mapping[str, NDArray[Any]]) -> None:
    power_w = arrays["power_w"]
    if power_w.size == 0:
        raise TraceError("the trace is empty", "check the measurement it was made from")
    if np.any(power_w < 0):
        at = int(np.argmax(power_w < 0))
        raise TraceError(f"power_w is {power_w[at]:g} W at sample {at}", "power is at least 0; is its unit dBm?")
    if "blocked" in arrays:
        blocked = arrays["blocked"]
        if blocked.size != power_w.size:
            raise TraceError(f"{blocked.size} values of blocked for {power_w.size} samples", "give one value for each sample")
        if np.any(blocked > 1):
            raise TraceError(f"blocked is {int(blocked.max())}", "0 is clear, 1 is blocked")


def _check_series(name: str, values: NDArray[Any], times: NDArray[Any]) -> None:
    if values.size != times.size:
        raise TraceError(f"{values.size} values of {name} for {times.size} times", "give one value for each time")
    if name == "cn0_dbhz":
        _check_cn0(values, times)
        return
    if np.any(values < 0):
        raise TraceError(f"{name} is {values.min():g} at entry {int(np.argmin(values))}", "it is at least 0")
    if name == "drop_rate" and np.any(values > 1):
        raise TraceError(f"drop_rate is {values.max():g}", "it is a fraction, from 0 to 1")
    if name == "rate_bps" and not np.any(values > 0):
        raise TraceError("the rate is 0 throughout", "nothing could ever cross such a link")


def _check_cn0(values: NDArray[Any], times: NDArray[Any]) -> None:
    if np.all(np.isneginf(values)):
        raise TraceError("there is no signal throughout", "check the column")
    bad = np.flatnonzero(values > _MOST_DBHZ)
    if bad.size:
        raise TraceError(
            f"cn0_dbhz is {values[bad[0]]:g} at {times[bad[0]]:.9g} s",
            f"C/N0 in dBHz is at most {_MOST_DBHZ:g}; take ten times the logarithm of a ratio",
        )

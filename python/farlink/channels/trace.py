"""Traces: measured capacity, delay and loss, in the one format that the engines read.

A trace file is an NumPy archive (``.npz``): the arrays of its kind, little endian, and ``meta``, a
JSON text with the title, source, licence, units and duration. Equal traces give equal bytes.
"""

from __future__ import annotations

import io
import json
import shutil
import zipfile
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from farlink.channels.trace_rules import KINDS, Kind, check, typed
from farlink.errors import TraceError
from farlink.untrusted import printable, read_file

__all__ = ["KINDS", "Kind", "Trace"]

FORMAT_VERSION = 1

# Date that every member of an archive bears, so that equal traces are equal files: the first that zip can express.
_ZIP_DATE = (1980, 1, 1, 0, 0, 0)

_WRITE_AGAIN = "write it again with farlink trace import"


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
        object.__setattr__(self, "arrays", typed(self.kind, self.arrays))
        check(self.kind, self.arrays, self.meta)

    def __getitem__(self, name: str) -> NDArray[Any]:
        """The array of that name."""
        return self.arrays[name]

    @property
    def duration_s(self) -> float | None:
        """Time after which the trace repeats, in s; None for kinds that count frames or bits."""
        duration_s = self.meta.get("duration_s")
        return None if duration_s is None else float(duration_s)

    @property
    def title(self) -> str:
        """Its title, else its kind."""
        return printable(self.meta.get("title") or f"{self.kind} trace")

    def to_bytes(self) -> bytes:
        """The trace file as bytes."""
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w") as archive:
            for name in sorted(self.arrays):
                member = io.BytesIO()
                np.lib.format.write_array(member, self.arrays[name], version=(1, 0), allow_pickle=False)
                member.seek(0)
                add_member(archive, name, member)
            add_meta(archive, self.kind, sorted(self.arrays), self.meta)
        return buffer.getvalue()


def add_member(archive: zipfile.ZipFile, name: str, *contents: IO[bytes]) -> None:
    """Add an array to the archive of a trace, a part at a time; equal arrays give equal bytes.

    Parameters
    ----------
    archive
        Where to.
    name
        Of the array.
    contents
        Parts of its file in NumPy's format, each from where it stands to its end.
    """
    info = zipfile.ZipInfo(f"{name}.npy", date_time=_ZIP_DATE)
    info.compress_type = zipfile.ZIP_DEFLATED
    info.create_system = 3
    info.external_attr = 0o600 << 16
    with archive.open(info, "w") as member:
        for content in contents:
            shutil.copyfileobj(content, member, 1 << 20)


def add_meta(archive: zipfile.ZipFile, kind: str, names: Collection[str], meta: Mapping[str, Any]) -> None:
    """Add the metadata of a trace to its archive.

    Parameters
    ----------
    archive
        Where to.
    kind
        Its kind.
    names
        Of its arrays.
    meta
        What is known of it.
    """
    units = KINDS[kind].units
    said = {name: units[name] for name in names if name in units}
    stored = {**meta, "farlink_trace": FORMAT_VERSION, "kind": kind, "units": said}
    text = json.dumps(stored, sort_keys=True, ensure_ascii=True, allow_nan=False)
    member = io.BytesIO()
    np.lib.format.write_array(member, np.array(text.encode("ascii")), version=(1, 0), allow_pickle=False)
    member.seek(0)
    add_member(archive, "meta", member)


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
    from farlink import _core

    try:
        found = _core.read_trace(data)
    except ValueError as error:
        raise TraceError(f"{where}: {error}", "import the measurement again: farlink trace import FILE") from error
    scalars = {name: np.array(value, np.uint64) if isinstance(value, int) else value for name, value in found["arrays"].items()}
    return made(found["kind"], scalars, json.loads(found["meta"]), where)


def made(kind: str, arrays: Mapping[str, Any], stored: Mapping[str, Any], where: str) -> Trace:
    """The trace that a file holds, of which nothing is believed.

    Parameters
    ----------
    kind
        As the file says.
    arrays
        By name.
    stored
        Its metadata.
    where
        Its name, for messages.

    Raises
    ------
    TraceError
        If there is no such trace.
    """
    meta = {key: value for key, value in stored.items() if key not in ("farlink_trace", "kind", "units")}
    for key in ("title", "source", "licence", "notes"):
        if not isinstance(meta.get(key, ""), str):
            raise TraceError(f"{where}: {key} is {printable(repr(meta[key]), 40)}, not a text", _WRITE_AGAIN)
    done = meta.get("calibration", {"ber": 0.0, "gain_db": 0.0})
    if not isinstance(done, dict) or not all(isinstance(done.get(key), int | float) for key in ("ber", "gain_db")):
        raise TraceError(f"{where}: calibration is {printable(repr(done), 40)}", _WRITE_AGAIN)
    try:
        return Trace(kind, arrays, meta)
    except TraceError as error:
        raise TraceError(f"{where}: {error.message}", error.remedy) from error


def read_bytes(path: Path) -> bytes:
    """Contents of a file that a user named.

    Raises
    ------
    TraceError
        If it cannot be read.
    """
    try:
        return read_file(path, TraceError)
    except FileNotFoundError as error:
        raise TraceError(f"{path}: no such file", missing_remedy(path)) from error
    except IsADirectoryError as error:
        raise TraceError(f"{path} is a directory", "name a file in it") from error
    except OSError as error:
        raise TraceError(f"cannot read {path}: {error.strerror}", "check the name and its permissions") from error
    except ValueError as error:
        raise TraceError(f"{str(path)!r} is not a name of a file", "check the name") from error


def missing_remedy(path: Path) -> str:
    """Remedy for a file that does not exist."""
    if "$" in str(path):
        return "set the environment variable in its name, for example FARLINK_DATA"
    parent = path.parent
    return f"check the name; directory {parent} exists" if parent.is_dir() else f"directory {parent} does not exist either"

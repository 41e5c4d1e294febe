"""The file of a finished unit: its rows as Parquet, and in the metadata its key, two checksums and what belongs to no row.

One checksum is over the rows: two workers that had the same unit are compared by it. The other, the seal, is over the bytes of
the file, so that a study that is started again need not read the rows of what is done.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from io import BytesIO
from typing import Any

import numpy as np

from farlink.extras import require

_METADATA = b"farlink.unit"
# In the metadata, followed by SHA-256 over the unit's key and the file's bytes with zeros in its place.
_SEAL = b"farlink.seal="
_OPEN = b"0" * 64


class DamagedUnit(Exception):
    """The file of a unit is truncated, changed or foreign."""


@dataclass(frozen=True)
class UnitContent:
    """Outcome of a unit.

    Attributes
    ----------
    rows
        As a result has them, of point 0.
    summary
        Of engines whose intervals come from within a run; None of others, where it follows from the rows.
    notes, approximations
        As a result has them.
    build
        Of the code that computed it.
    """

    rows: Mapping[str, Any]
    summary: Mapping[str, Any] | None
    notes: Sequence[str]
    approximations: Sequence[tuple[str, str]]
    build: str

    @cached_property
    def digest(self) -> str:
        """SHA-256 over rows and summary, to the bit."""
        digest = hashlib.sha256()
        for table in (self.rows, self.summary or {}):
            for name, values in table.items():
                content = json.dumps(values).encode() if isinstance(values, list) else np.ascontiguousarray(values).tobytes()
                digest.update(f"{name}\0{len(content)}\0".encode())
                digest.update(content)
        return digest.hexdigest()


def encode(key: str, content: UnitContent) -> bytes:
    """The bytes of the file; equal contents have equal ones."""
    pyarrow = require("pyarrow", "a study in a folder")
    parquet = require("pyarrow.parquet", "a study in a folder")
    about = {
        "key": key,
        "digest": content.digest,
        "build": content.build,
        "notes": list(content.notes),
        "approximations": [list(one) for one in content.approximations],
        "summary": None if content.summary is None else {name: _listed(values) for name, values in content.summary.items()},
    }
    # Scalars of NumPy, and no values of Python: a NaN stays one, and is no null.
    table = pyarrow.table({name: pyarrow.array(values) for name, values in content.rows.items()})
    file = BytesIO()
    about_table = {_METADATA: json.dumps(about), b"seal": _SEAL + _OPEN}
    parquet.write_table(table.replace_schema_metadata(about_table), file, compression="zstd")
    return _with_seal(key, file.getvalue())


def is_sealed(data: bytes, key: str) -> bool:
    """Whether the bytes are those of the whole file of this unit, as it was written."""
    at = data.rfind(_SEAL)
    if at < 0:
        return False
    start = at + len(_SEAL)
    return data[start : start + len(_OPEN)] == _seal(key, data, start)


def _with_seal(key: str, data: bytes) -> bytes:
    start = data.rindex(_SEAL) + len(_SEAL)
    return data[:start] + _seal(key, data, start) + data[start + len(_OPEN) :]


def _seal(key: str, data: bytes, start: int) -> bytes:
    digest = hashlib.sha256(key.encode())
    for part in (data[:start], _OPEN, data[start + len(_OPEN) :]):
        digest.update(part)
    return digest.hexdigest().encode()


def parse(data: bytes, key: str) -> UnitContent:
    """Content of a file.

    Raises
    ------
    DamagedUnit
        If it is not the whole file of this unit.
    """
    pyarrow = require("pyarrow", "a study in a folder")
    parquet = require("pyarrow.parquet", "a study in a folder")
    try:
        table = parquet.ParquetFile(pyarrow.BufferReader(data)).read(use_threads=False)
        about = json.loads((table.schema.metadata or {})[_METADATA])
        rows = {name: _column(table[name]) for name in table.column_names}
        summary = about["summary"]
        content = UnitContent(
            rows=rows,
            summary=None if summary is None else {str(name): _from_list(values) for name, values in summary.items()},
            notes=[str(note) for note in about["notes"]],
            approximations=[(str(engine), str(path)) for engine, path in about["approximations"]],
            build=str(about["build"]),
        )
        said_key, said_digest = str(about["key"]), str(about["digest"])
    except (pyarrow.ArrowException, OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise DamagedUnit("it is not a whole file of a unit") from error
    if said_key != key:
        raise DamagedUnit(f"it is of the unit {said_key[:12]}")
    if said_digest != content.digest:
        raise DamagedUnit("its checksum is wrong")
    if not is_sealed(data, key):
        raise DamagedUnit("it was changed")
    return content


def _column(column: Any) -> Any:
    if str(column.type) in ("string", "large_string"):
        return column.to_pylist()
    return column.combine_chunks().to_numpy(zero_copy_only=False)


def _listed(values: Any) -> dict[str, Any]:
    """A column of a summary as JSON: texts as they are, numbers by their bytes, so that not a bit changes."""
    if isinstance(values, list):
        return {"type": "text", "values": values}
    little = np.ascontiguousarray(values).astype(values.dtype.newbyteorder("<"))
    return {"type": values.dtype.name, "base64": base64.b64encode(little.tobytes()).decode("ascii")}


def _from_list(column: Mapping[str, Any]) -> Any:
    if column["type"] == "text":
        return [str(value) for value in column["values"]]
    if column["type"] not in ("float64", "uint64"):
        raise ValueError(column["type"])
    little = np.dtype(column["type"]).newbyteorder("<")
    return np.frombuffer(base64.b64decode(column["base64"], validate=True), dtype=little).astype(column["type"])

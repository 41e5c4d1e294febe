"""Trace files of imported measurements, stored by content, so that each file is imported once."""

from __future__ import annotations

import hashlib
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path

import numpy as np

from farlink.channels import importers, parquet
from farlink.channels.importers import recording
from farlink.channels.importers.recording import Hints, Recording
from farlink.channels.synthesis.text import is_synthetic, synthetic_file, synthetic_trace
from farlink.channels.trace import KINDS, Trace, read_bytes
from farlink.channels.trace_file import read, write
from farlink.errors import OutputError, TraceError
from farlink.folders import cache_folder, fingerprint, set_aside


def directory() -> Path:
    """Where imported traces are kept."""
    return cache_folder("traces")


def import_file(
    path: Path,
    *,
    format: str | None = None,
    member: str | None = None,
    kinds: Collection[str] | None = None,
    hints: Hints | None = None,
) -> Trace:
    """Read a trace from a measured file, or from a trace file.

    Parameters
    ----------
    path
        Trace file, measured file, archive or directory; or ``synthetic:NAME?key=value``.
    format
        Name of the importer; recognised from the file by default.
    member
        File within an archive or directory; a pattern with ``*`` joins the loss traces that it selects.
    kinds
        Kinds of trace that the caller can use.
    hints
        Properties of a measurement of received power that the file does not contain.

    Raises
    ------
    TraceError
        If it is missing, malformed or of an unknown format.
    """
    if is_synthetic(path):
        return synthetic_trace(path)
    if format is None and member is None and _is_trace(path):
        if hints is not None and hints.given():
            raise TraceError(f"{path} is a trace already", f"leave out {hints.given()[0]}, or name the measured file")
        return read(path)
    recordings = recording.load(path, member)
    if hints is not None:
        recordings = [replace(item, hints=hints) for item in recordings]
    return _import(recordings, format, kinds, member)


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
    path = Path(path)
    if is_synthetic(path):
        return synthetic_file(path, kinds=kinds)
    if format is None and member is None and _is_trace(path):
        found = read(path)
        _check_kind(found, kinds, path)
        if path.suffix == ".npz":
            return path
        return _stored(found, hashlib.sha256(read_bytes(path)).hexdigest())
    recordings = recording.load(path, member)
    key = _key(recordings, format, kinds)
    kept = directory() / f"{key}.npz"
    if kept.is_file():
        try:
            found = read(kept)
        except TraceError as error:
            set_aside(kept, error.message)
        else:
            _check_kind(found, kinds, path)
            return kept
    imported = _import(recordings, format, kinds, member)
    _check_kind(imported, kinds, path)
    return _stored(imported, key)


def _is_trace(path: Path) -> bool:
    if path.suffix == ".npz":
        return True
    try:
        if not path.is_file():
            return False
        with path.open("rb") as file:
            head = file.read(4)
    except OSError as error:
        raise TraceError(f"cannot read {path}: {error.strerror}", "check the name and its permissions") from error
    if head == b"PAR1":
        return parquet.is_trace(read_bytes(path))
    return head == b"PK\x03\x04"


def _import(recordings: list[Recording], format: str | None, kinds: Collection[str] | None, member: str | None) -> Trace:
    traces = [importers.choose(item, format=format, kinds=kinds).trace(item) for item in recordings]
    if len(traces) == 1:
        return traces[0]
    other = next((item for item, trace in zip(recordings, traces, strict=True) if trace.kind != "packet-loss"), None)
    if other is not None:
        raise TraceError(f"{other.where}: only loss traces can be joined", "choose one file with --member")
    starts = np.cumsum([0] + [trace["lost"].size for trace in traces[:-1]])
    joined = np.concatenate([trace["lost"] for trace in traces])
    title = f"{len(traces)} recordings" + (f", {member}" if member not in (None, "*") else "")
    source = f"{traces[0].meta.get('source', '')} and {len(traces) - 1} more"
    return Trace("packet-loss", {"lost": joined, "segment_start": starts}, {"title": title, "source": source})


def _key(recordings: list[Recording], format: str | None, kinds: Collection[str] | None) -> str:
    made_by = fingerprint("farlink.channels", "farlink.channels.importers")
    digest = hashlib.sha256(f"{made_by}\0{format}\0{sorted(kinds) if kinds else None}".encode())
    for item in recordings:
        # The name is part of the key, because the format and the title depend on it.
        digest.update(f"\0{item.name}\0{len(item.data)}\0".encode())
        digest.update(item.data)
    return digest.hexdigest()


def _stored(trace: Trace, key: str) -> Path:
    kept = directory() / f"{key}.npz"
    try:
        kept.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(
            f"cannot create {kept.parent}: {error.strerror}", "set XDG_CACHE_HOME to a directory you may write to"
        ) from error
    return write(trace, kept)


def _check_kind(trace: Trace, kinds: Collection[str] | None, path: Path) -> None:
    if kinds is not None and trace.kind not in kinds:
        raise TraceError(
            f"{path}: a {trace.kind} trace, where {' or '.join(sorted(kinds))} is wanted", f"use it as {KINDS[trace.kind].use}"
        )

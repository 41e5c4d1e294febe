"""Importers of measured files: one module per format, one line here."""

from __future__ import annotations

from collections.abc import Collection
from typing import Protocol

from farlink.channels.importers import (
    csv_cn0,
    csv_power,
    csv_series,
    fjordlink,
    hdf5,
    leoreplayer,
    mahimahi,
    matlab,
    netcdf,
    rutgers,
)
from farlink.channels.importers.recording import Recording
from farlink.channels.trace import Trace
from farlink.errors import TraceError
from farlink.near_names import instead

# Kinds of trace for which a user may supply missing information.
_HINTED = {"power", "cn0"}


class Importer(Protocol):
    """Interface of the modules of this package."""

    NAME: str
    KINDS: tuple[str, ...]
    DESCRIPTION: str

    def recognises(self, recording: Recording) -> bool:
        """Whether a recording has this format, judged by its name and its beginning."""
        ...

    def trace(self, recording: Recording) -> Trace:
        """The trace in a recording."""
        ...


# In the order in which they try to recognise a file.
IMPORTERS: dict[str, Importer] = {
    module.NAME: module
    for module in (
        fjordlink,
        matlab,
        hdf5,
        netcdf,
        csv_cn0,
        csv_power,
        csv_series,
        rutgers,
        leoreplayer,
        mahimahi,
    )
}


def choose(recording: Recording, *, format: str | None = None, kinds: Collection[str] | None = None) -> Importer:
    """Find the importer of a recording.

    Parameters
    ----------
    recording
        The measured file.
    format
        Name of the importer, or None to recognise it.
    kinds
        Kinds of trace that the caller can use, which decides between formats that look alike.

    Raises
    ------
    TraceError
        If there is no importer of that name or none recognises the file.
    """
    if format is not None:
        if format not in IMPORTERS:
            raise TraceError(f"there is no trace format {format!r}", instead(format, IMPORTERS))
        return _hinted(IMPORTERS[format], recording)
    matches = [importer for importer in IMPORTERS.values() if importer.recognises(recording)]
    usable = [importer for importer in matches if kinds is None or set(kinds) & set(importer.KINDS)]
    if usable:
        return _hinted(usable[0], recording)
    if matches:
        return _hinted(matches[0], recording)
    if not recording.data.strip():
        raise TraceError(f"{recording.where}: the file is empty", "fetch or record it again")
    raise TraceError(f"{recording.where}: not a known format of traces", f"name one with --format: {', '.join(IMPORTERS)}")


def _hinted(importer: Importer, recording: Recording) -> Importer:
    given = recording.hints.given()
    if given and not _HINTED & set(importer.KINDS):
        known = ", ".join(name for name, one in IMPORTERS.items() if _HINTED & set(one.KINDS))
        raise TraceError(
            f"{recording.where}: {given[0]} is for received power and C/N0, this is {importer.NAME}",
            f"leave it out, or name one of: {known}",
        )
    return importer

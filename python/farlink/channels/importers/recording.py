"""Measured files as bytes, whether plain, compressed, in an archive or in a directory."""

from __future__ import annotations

import io
import tarfile
from dataclasses import dataclass, fields, replace
from fnmatch import fnmatchcase
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from farlink.channels.trace import missing_remedy, read_bytes
from farlink.errors import TraceError
from farlink.untrusted import MOST_UNPACKED_BYTES, check_lines, gunzip, lines_of, printable

_TRUNCATED = "fetch it again; it may be truncated"


@dataclass(frozen=True)
class Hints:
    """Information that a user supplies on a recording of received power or C/N0 whose file lacks it.

    Attributes
    ----------
    unit
        Unit of the power.
    column
        Name of the column, variable or data set that holds the values, or its number from 1.
    time_column
        That of the times.
    sample_rate_hz
        Sampling rate, in Hz, instead of times.
    gaps
        What becomes of missing samples: ``refuse``, ``hold``, and ``blocked`` (of power) or ``outage`` (of C/N0); None is
        ``refuse``.
    separator
        Separator of the cells of a text file.
    """

    unit: str | None = None
    column: str | None = None
    time_column: str | None = None
    sample_rate_hz: float | None = None
    gaps: str | None = None
    separator: str | None = None

    def given(self) -> list[str]:
        """Names of the options that were given, as on the command line."""
        return [f"--{key.name.replace('_', '-')}" for key in fields(self) if getattr(self, key.name) is not None]


@dataclass(frozen=True)
class Recording:
    """A measured file.

    Attributes
    ----------
    name
        Its name without directory and without ``.gz``.
    where
        Its path, and its name within an archive, for messages.
    data
        Its contents, decompressed.
    hints
        Further properties.
    """

    name: str
    where: str
    data: bytes
    hints: Hints = Hints()

    def text(self) -> str:
        """Contents as text.

        Raises
        ------
        TraceError
            If it is not text, or has too many lines.
        """
        check_lines(self.data, self.where, TraceError)
        try:
            return self.data.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            line = self.data[: error.start].count(b"\n") + 1
            raise TraceError(f"{self.where}, line {line}: not text", "check that it is the measured file itself") from error

    def numbers(self, what: str, remedy: str) -> NDArray[np.float64]:
        """One number per line.

        Parameters
        ----------
        what
            What a line should hold, for messages.
        remedy
            How to correct a line that does not.

        Raises
        ------
        TraceError
            If the file is empty or a line is not a finite number of at least 0; names the first such line.
        """
        lines = lines_of(self.text())
        if not any(line.strip() for line in lines):
            raise TraceError(f"{self.where}: the file is empty", "fetch or record it again")
        try:
            values = np.array(lines, dtype=np.float64)
        except ValueError:
            values = np.array([_number(line) for line in lines], dtype=np.float64)
        bad = np.flatnonzero(~(np.isfinite(values) & (values >= 0)))
        if bad.size:
            index = int(bad[0])
            raise TraceError(f"{self.where}, line {index + 1}: {_shown(lines[index])} is not {what}", remedy)
        return values


def load(path: Path, member: str | None = None) -> list[Recording]:
    """Read one measured file, or those that `member` selects from an archive or directory.

    Parameters
    ----------
    path
        File, ``.tar``/``.tar.gz`` archive or directory; or such a path continued into the archive or directory.
    member
        File within, or a pattern with ``*``, which may select several.

    Returns
    -------
    list of Recording
        In order of their names.

    Raises
    ------
    TraceError
        If it is missing, unreadable or truncated; if nothing is selected, or several files without saying so.
    """
    container, inside = _split(path)
    if inside is not None:
        if member is not None:
            raise TraceError(f"{path} names a member already, and so does --member {member}", "give one of the two")
        path, member = container, inside
    if path.is_dir():
        found = {file.relative_to(path).as_posix(): file for file in sorted(path.rglob("*")) if file.is_file()}
        names = _selected(list(found), path, member)
        _check_total(sum(found[name].stat().st_size for name in names), path)
        return [_recording(found[name], f"{path}/{name}") for name in names]
    data = read_bytes(path)
    if path.name.endswith((".tar", ".tgz", ".tar.gz")):
        return _from_archive(data, path, member)
    if member is not None:
        raise TraceError(f"{path} is one file, so it has no member {member}", "leave the member out")
    return [Recording(path.name.removesuffix(".gz"), str(path), gunzip(data, str(path), TraceError))]


def load_one(path: Path, member: str | None, hints: Hints) -> Recording:
    """Read one measured file, with the user's information about it.

    Raises
    ------
    TraceError
        If it is missing, unreadable or truncated, or not one.
    """
    found = load(path, member)
    if len(found) > 1:
        raise TraceError(f"{path}: --member {member} selects {len(found)} files", "choose one")
    return replace(found[0], hints=hints)


def _split(path: Path) -> tuple[Path, str | None]:
    """Part a path that leads into an archive: the archive, and the member."""
    if path.exists():
        return path, None
    for parent in path.parents:
        if parent.is_file() and parent.name.endswith((".tar", ".tgz", ".tar.gz")):
            return parent, path.relative_to(parent).as_posix()
    raise TraceError(f"{path}: no such file", missing_remedy(path))


def _recording(file: Path, where: str) -> Recording:
    return Recording(file.name.removesuffix(".gz"), where, gunzip(read_bytes(file), where, TraceError))


def _from_archive(data: bytes, path: Path, member: str | None) -> list[Recording]:
    try:
        content = gunzip(data, str(path), TraceError)
    except TraceError as error:
        message = f"{path}: not a complete archive" if isinstance(error.__cause__, Exception) else error.message
        raise TraceError(message, error.remedy) from error
    try:
        with tarfile.open(fileobj=io.BytesIO(content), mode="r:") as archive:
            found = {info.name.removeprefix("./"): info for info in archive if info.isfile()}
            names = _selected(sorted(found), path, member)
            # A sparse file is larger than its data in the archive.
            _check_total(sum(found[name].size for name in names), path)
            contents = [stream.read() if (stream := archive.extractfile(found[name])) else b"" for name in names]
    except (tarfile.TarError, EOFError, OSError, ValueError, RecursionError) as error:
        raise TraceError(f"{path}: not a complete archive", _TRUNCATED) from error
    return [Recording(Path(name).name, f"{path}/{name}", held) for name, held in zip(names, contents, strict=True)]


def _check_total(total_bytes: int, path: Path) -> None:
    if total_bytes > MOST_UNPACKED_BYTES:
        raise TraceError(
            f"{path}: {total_bytes:,} bytes are chosen, more than the {MOST_UNPACKED_BYTES:,} that are read",
            "choose fewer with --member",
        )


def _selected(names: list[str], path: Path, member: str | None) -> list[str]:
    if not names:
        raise TraceError(f"{path} holds no file", "name a measured file")
    if member is None:
        if len(names) > 1:
            raise TraceError(
                f"{path} holds {len(names)} files", f"choose with --member, for example: --member '{names[0]}', or '*' for all"
            )
        return names
    chosen = [member] if member in names else [name for name in names if fnmatchcase(name, member)]
    if not chosen:
        raise TraceError(f"{path} has no member {member}", f"it holds {len(names)} files such as {names[0]}")
    return chosen


def _number(line: str) -> float:
    try:
        return float(line)
    except ValueError:
        return float("nan")


def _shown(line: str) -> str:
    line = line.strip()
    return repr(printable(line, 40)) if line else "an empty line"

"""Files that people edit in the dashboard: bundles and profiles of modems. What has mistakes is not saved."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from farlink.errors import FarlinkError, OperatorError, OutputError
from farlink.operator.at import profiles
from farlink.operator.config import Mistake, check
from farlink.operator.tables import read_tables
from farlink.untrusted import printable, read_file

MOST_BYTES = 200_000
"""Of a file that is edited here."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,31}")


@dataclass(frozen=True)
class Text:
    """A file as it was read.

    Attributes
    ----------
    path
        The file.
    text
        What is in it.
    stamp
        Tells whether somebody else has changed it since; empty if there was no file.
    """

    path: Path
    text: str
    stamp: str


def opened(path: Path) -> Text:
    """Read a file to edit it; one that does not exist is empty.

    Raises
    ------
    OperatorError
        If it is no text, or too long.
    """
    try:
        data = read_file(path, OperatorError, MOST_BYTES)
    except FileNotFoundError:
        return Text(path, "", "")
    except OSError as error:
        raise OperatorError(f"cannot read {path}: {error.strerror}", "give its user the right to") from error
    try:
        return Text(path, data.decode("utf-8-sig"), _stamp(data))
    except UnicodeDecodeError as error:
        raise OperatorError(f"{path} is not a text file in UTF-8", "save it as UTF-8") from error


def mistakes_of_bundle(path: Path, text: str) -> tuple[Mistake, ...]:
    """Every mistake that a bundle's file would have.

    Parameters
    ----------
    path
        The file; other paths in it are relative to its folder.
    text
        What it is to say.
    """
    with _Draft(path, text) as draft:
        return draft.mistakes()


def save_bundle(path: Path, text: str, stamp: str) -> tuple[Mistake, ...]:
    """Save a bundle's file if it has no mistake. The old one is kept as ``NAME.toml.old``.

    Parameters
    ----------
    path, text
        The file, and what it is to say.
    stamp
        That of the file when it was opened.

    Returns
    -------
    tuple of Mistake
        Why it was not saved; none if it was.

    Raises
    ------
    OutputError
        If it cannot be written, or somebody else has changed it.
    """
    with _Draft(path, text) as draft:
        mistakes = draft.mistakes()
        if not mistakes:
            draft.save(stamp)
        return mistakes


def save_profile(path: Path, text: str, stamp: str) -> tuple[Mistake, ...]:
    """Save a profile of a modem if it has no mistake, as `save_bundle` does."""
    with _Draft(path, text) as draft:
        mistakes = draft.mistakes_of_profile()
        if not mistakes:
            draft.save(stamp)
        return mistakes


def mistakes_of_profile(path: Path, text: str) -> tuple[Mistake, ...]:
    """Every mistake that a profile of a modem would have."""
    with _Draft(path, text) as draft:
        return draft.mistakes_of_profile()


def new_file(folder: Path, name: str) -> Path:
    """The path of a new file.

    Raises
    ------
    OperatorError
        If it is no name for a file, or there is one.
    """
    if not _NAME.fullmatch(name):
        rule = "give up to 32 letters, digits, '-' and '_', which begin with a letter or digit"
        raise OperatorError(f"{printable(name, 40)!r} is no name for a file", rule)
    path = folder / f"{name}.toml"
    if path.exists():
        raise OperatorError(f"{path} exists already", "choose another name, or open that file")
    return path


def own_profiles(folders: Iterable[Path]) -> list[Path]:
    """Profiles of modems in some folders: TOML files with the lines that a modem gets first."""
    found = []
    for folder in dict.fromkeys(folders):
        for path in sorted(folder.glob("[!.]*.toml")):
            try:
                tables = read_tables(path, "a profile")
            except FarlinkError:
                continue
            if "init" in tables and "title" in tables:
                found.append(path)
    return found


class _Draft:
    """A text in a file beside the one that it may become, so that what was checked is what is saved."""

    def __init__(self, path: Path, text: str) -> None:
        self._path = path.resolve()
        data = text.replace("\r\n", "\n").encode("utf-8", "replace")
        if len(data) > MOST_BYTES:
            raise OutputError(f"{len(data):,} bytes are too many", f"give at most {MOST_BYTES:,}")
        try:
            handle, name = tempfile.mkstemp(prefix=".farlink.", suffix=".toml", dir=self._path.parent)
            with os.fdopen(handle, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise OutputError(f"cannot write in {path.parent}: {error.strerror}", "give its user the right to") from error
        self._draft = Path(name)

    def __enter__(self) -> _Draft:
        return self

    def __exit__(self, *_: object) -> None:
        self._draft.unlink(missing_ok=True)

    def mistakes(self) -> tuple[Mistake, ...]:
        try:
            found = check(self._draft, needs_ports=False).mistakes
        except FarlinkError as error:
            found = (Mistake(1, 1, error.message, error.remedy),)
        return tuple(self._named(one) for one in found)

    def mistakes_of_profile(self) -> tuple[Mistake, ...]:
        try:
            profiles.load(str(self._draft))
        except FarlinkError as error:
            place = re.search(r"at line (\d+)(?:, column (\d+))?", error.message)
            line, column = (int(place[1]), int(place[2] or 1)) if place else (1, 1)
            return (self._named(Mistake(line, column, error.message, error.remedy)),)
        return ()

    def save(self, stamp: str) -> None:
        try:
            is_there = self._path.exists()
            if (_stamp(self._path.read_bytes()) if is_there else "") != stamp:
                raise OutputError(f"{self._path} was changed by somebody else meanwhile", "open it again")
            if is_there:
                shutil.copymode(self._path, self._draft)
                kept = self._path.with_name(f"{self._path.name}.old")
                copy = self._draft.with_suffix(".old")
                shutil.copy2(self._path, copy)
                copy.replace(kept)
            else:
                self._draft.chmod(0o644)
            self._draft.replace(self._path)
            folder = os.open(self._path.parent, os.O_RDONLY | os.O_DIRECTORY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)
        except OSError as error:
            raise OutputError(
                f"cannot write {self._path}: {error.strerror}", "free some space, or give the right to"
            ) from error

    def _named(self, mistake: Mistake) -> Mistake:
        """With the name of the file that is meant."""
        message = mistake.message.replace(str(self._draft), self._path.name).replace(self._draft.stem, self._path.stem)
        return Mistake(mistake.line, mistake.column, message, mistake.remedy)


def _stamp(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()

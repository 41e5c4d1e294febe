"""Files that appear whole or not at all."""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from farlink.errors import OutputError


@contextmanager
def whole_file(path: str | Path, *, mode: int | None = None) -> Iterator[Path]:
    """Write to a temporary file in the folder of `path`, which replaces `path` when the block succeeds.

    A device or pipe is written to, never replaced.

    Parameters
    ----------
    path
        The file to write. Its directory must exist.
    mode
        Its permissions, for example ``0o600``; by default those of a new file.

    Yields
    ------
    Path
        The temporary file. It is removed if the block raises.

    Raises
    ------
    OutputError
        If the directory is missing or cannot be written.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> directory = pathlib.Path(tempfile.mkdtemp())
    >>> with whole_file(directory / "rows.csv") as temporary:
    ...     _ = temporary.write_text("run,seed")
    >>> (directory / "rows.csv").read_text()
    'run,seed'
    """
    # The target of a symbolic link is replaced, not the link.
    target = Path(path).resolve()
    is_special = target.exists() and not target.is_file()
    if not is_special:
        check_writable(target)
    try:
        handle, name = tempfile.mkstemp(prefix=".farlink.", dir=None if is_special else target.parent)
    except OSError as error:
        raise OutputError(f"cannot write {path}: {error.strerror}", "choose a directory you may write to") from error
    temporary = Path(name)
    try:
        os.close(handle)
        yield temporary
        if is_special:
            with temporary.open("rb") as content, target.open("wb") as device:
                shutil.copyfileobj(content, device)
        else:
            temporary.chmod(0o666 & ~_umask() if mode is None else mode)
            temporary.replace(target)
    except OSError as error:
        raise OutputError(f"cannot write {path}: {error.strerror}", "free some space, or choose another place") from error
    finally:
        temporary.unlink(missing_ok=True)


def check_writable(path: Path) -> None:
    """Refuse an unwritable file before the work starts.

    Raises
    ------
    OutputError
        If `path` is a directory, or its own directory does not exist or takes no file of that name.
    """
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        mode = None
    except OSError as error:
        raise OutputError(f"cannot write {path}: {error.strerror}", "choose another name") from error
    if mode is not None and stat.S_ISDIR(mode):
        raise OutputError(f"{path} is a directory", "give the name of a file in it")
    if mode is not None and not stat.S_ISREG(mode):
        return
    directory = path.parent
    if not directory.exists():
        raise OutputError(f"directory {directory} does not exist", f"create it: mkdir -p {directory}")
    # Only an attempt shows it, because permissions are not the only obstacle.
    try:
        handle, name = tempfile.mkstemp(prefix=".farlink.", dir=directory)
    except OSError as error:
        raise OutputError(
            f"directory {directory} cannot be written: {error.strerror}", "choose a directory you may write to"
        ) from error
    try:
        os.close(handle)
    finally:
        Path(name).unlink()


def check_directory(path: Path) -> None:
    """Refuse an unwritable directory before the work starts.

    Raises
    ------
    OutputError
        If something other than a directory has its name, or it cannot be written.
    """
    existing = next(place for place in (path, *path.absolute().parents) if place.exists())
    if not existing.is_dir():
        raise OutputError(f"{existing} is a file, not a directory", "give the name of a directory")
    check_writable(existing / path.name)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask

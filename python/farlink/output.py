"""Files that appear whole or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from farlink.errors import OutputError


@contextmanager
def whole_file(path: str | Path) -> Iterator[Path]:
    """Write to a temporary file beside `path`, which replaces it when the block succeeds.

    Parameters
    ----------
    path
        The file to write. Its directory must exist.

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
    target = Path(path)
    check_writable(target)
    try:
        handle, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    except OSError as error:
        raise OutputError(f"cannot write {target}: {error.strerror}", "choose a directory you may write to") from error
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        temporary.chmod(0o666 & ~_umask())
        temporary.replace(target)
    except OSError as error:
        raise OutputError(f"cannot write {target}: {error.strerror}", "free some space, or choose another place") from error
    finally:
        temporary.unlink(missing_ok=True)


def check_writable(path: Path) -> None:
    """Refuse a file that could not be written, before the work that fills it.

    Raises
    ------
    OutputError
        If `path` is a directory or its own directory does not exist or is read-only.
    """
    if path.is_dir():
        raise OutputError(f"{path} is a directory", "give the name of a file in it")
    if not path.parent.is_dir():
        raise OutputError(f"directory {path.parent} does not exist", f"create it: mkdir -p {path.parent}")
    if not os.access(path.parent, os.W_OK):
        raise OutputError(f"directory {path.parent} cannot be written", "choose a directory you may write to")


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask

"""Cache folders of farlink."""

from __future__ import annotations

import hashlib
import logging
import os
from functools import cache
from importlib import resources
from pathlib import Path

_log = logging.getLogger("farlink")


def cache_folder(kind: str) -> Path:
    """Folder of one kind of kept things.

    It lies in ``$FARLINK_CACHE``, else in ``farlink`` in ``$XDG_CACHE_HOME``, by default ``~/.cache``.

    Parameters
    ----------
    kind
        ``"traces"``, ``"codes"`` or ``"goodput"``.

    Examples
    --------
    >>> cache_folder("codes").name
    'codes'
    """
    own = os.environ.get("FARLINK_CACHE", "")
    if own:
        return Path(own) / kind
    home = os.environ.get("XDG_CACHE_HOME", "")
    # The base directory specification: a relative path is to be ignored.
    base = Path(home) if home.startswith("/") else Path.home() / ".cache"
    return base / "farlink" / kind


def set_aside(path: Path, why: str) -> None:
    """Rename a damaged file of the cache, with a warning, before its content is computed again.

    Parameters
    ----------
    path
        The file. It gets the suffix ``.damaged``.
    why
        What is wrong with it.
    """
    aside = path.with_suffix(".damaged")
    try:
        path.replace(aside)
    except OSError:
        _log.warning("note: %s is not used: %s; made anew", path, why)
    else:
        _log.warning("note: %s is not used: %s; set aside as %s and made anew", path, why, aside.name)


@cache
def fingerprint(*packages: str) -> str:
    """SHA-256 over the Python sources of packages and over the Rust code, independent of their paths and line ends.

    It is part of the names of cached files, so that another version of the code does not use them.

    Parameters
    ----------
    packages
        Their names; those within are packages of their own.

    Examples
    --------
    >>> len(fingerprint("farlink.channels"))
    64
    """
    from farlink import _core

    digest = hashlib.sha256(_core.__build__.encode())
    for package in sorted(packages):
        files = {file.name: file for file in resources.files(package).iterdir() if file.name.endswith(".py")}
        for name in sorted(files):
            lines = files[name].read_bytes().replace(b"\r\n", b"\n")
            digest.update(f"{package}/{name}\0{len(lines)}\0".encode())
            digest.update(lines)
    return digest.hexdigest()

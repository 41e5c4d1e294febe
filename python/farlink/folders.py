"""Where farlink keeps what it would otherwise compute again."""

from __future__ import annotations

import os
from pathlib import Path


def cache_folder(kind: str) -> Path:
    """Folder of one kind of kept things.

    It lies in ``$FARLINK_CACHE``, else in ``farlink`` in ``$XDG_CACHE_HOME``, by default ``~/.cache``.

    Parameters
    ----------
    kind
        ``"traces"`` or ``"codes"``.

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

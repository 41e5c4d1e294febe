"""The name of a build: equal names give equal rows."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

# Packages that show, serve or operate, and whose code no row depends on.
_NO_ROWS = {"capture", "cli", "net", "operator", "papers", "plot", "report", "web", "wireshark", "__pycache__"}

# Digits of a name that are shown.
SHOWN = 12


@cache
def build_name() -> str:
    """SHA-256 over the Rust code and the Python sources that make rows, in hexadecimal digits.

    It depends neither on where farlink lies nor on the ends of lines: a checkout, a source distribution and a wheel of the same
    sources have the same one. The version does not count: it changes less often than results do.

    Examples
    --------
    >>> len(build_name())
    64
    """
    import hashlib
    from importlib import resources

    from farlink import _core

    digest = hashlib.sha256(_core.__build__.encode())
    for name, file in sorted(_sources(resources.files("farlink"), "")):
        lines = file.read_bytes().replace(b"\r\n", b"\n")
        digest.update(f"{name}\0{len(lines)}\0".encode())
        digest.update(lines)
    return digest.hexdigest()


def described() -> str:
    """The build, the SIMD instructions that its decoders use here, and the cores that this process may use, in a line.

    Examples
    --------
    >>> described().startswith("build ")
    True
    """
    from farlink import _core

    return f"build {build_name()[:SHOWN]}, SIMD {_core.simd()}, cores {cores()}"


def cores() -> int:
    """Number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _sources(folder: Traversable, below: str) -> Iterator[tuple[str, Traversable]]:
    for entry in folder.iterdir():
        if entry.is_dir():
            if entry.name not in _NO_ROWS:
                yield from _sources(entry, f"{below}{entry.name}/")
        elif entry.name.endswith(".py"):
            yield f"{below}{entry.name}", entry

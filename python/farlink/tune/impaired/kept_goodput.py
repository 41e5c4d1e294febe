"""Goodput that was simulated, kept so that an interrupted study goes on where it was, and a repeated one takes no time.

A file belongs to a scenario, its losses and the engine's code, whose fingerprints are its name. It is believed only with the
right checksum.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from farlink.errors import FarlinkError, OutputError
from farlink.folders import cache_folder, set_aside
from farlink.output import whole_file
from farlink.untrusted import read_file

# Changes with the format.
_FORMAT = 1
_MOST_BYTES = 1 << 12


def read(key: Mapping[str, Any]) -> tuple[float, float] | None:
    """Share of the link's rate and the half-width of its 95 % interval; None if they are not kept.

    A file that is damaged is set aside, and that is said.

    Parameters
    ----------
    key
        What decides the result.
    """
    name = _name(key)
    path = _path(name)
    try:
        content = read_file(path, FarlinkError, _MOST_BYTES)
    except OSError:
        return None
    except FarlinkError:
        content = b""
    found = parse(content, name)
    if found is None:
        set_aside(path, "it is not whole")
    return found


def parse(content: bytes, name: str) -> tuple[float, float] | None:
    """Contents of a file; None if it is invalid.

    Parameters
    ----------
    content
        Of the file.
    name
        What it should be of.
    """
    try:
        kept = json.loads(content)
        share, half_width, said = kept["share"], kept["half_width"], kept["sha256"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    if not all(isinstance(one, float) and math.isfinite(one) and one >= 0 for one in (share, half_width)):
        return None
    return (share, half_width) if said == _digest(name, share, half_width) else None


def write(key: Mapping[str, Any], share: float, half_width: float) -> None:
    """Keep a result. If that is impossible, it is simulated again next time."""
    name = _name(key)
    share, half_width = float(share), float(half_width)
    content = {"share": share, "half_width": half_width, "sha256": _digest(name, share, half_width)}
    path = _path(name)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with whole_file(path) as temporary:
            temporary.write_text(json.dumps(content), encoding="utf-8")
    except (OSError, OutputError):
        return


def _digest(name: str, share: float, half_width: float) -> str:
    return hashlib.sha256(json.dumps([name, share, half_width]).encode()).hexdigest()


def _name(key: Mapping[str, Any]) -> str:
    from farlink import _core

    whole = json.dumps({**key, "build": _core.__build__, "format": _FORMAT}, sort_keys=True)
    return hashlib.sha256(whole.encode()).hexdigest()


def _path(name: str) -> Path:
    return cache_folder("goodput") / f"{name[:24]}.json"

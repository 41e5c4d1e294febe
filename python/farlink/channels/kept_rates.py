"""Simulated error rates, kept so that they are computed once."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from farlink.errors import OutputError
from farlink.folders import cache_folder
from farlink.output import whole_file

# Changes with the format, and with decoders or noise that give other numbers for the same seed.
_FORMAT = 1


def read(key: Mapping[str, Any]) -> dict[str, Any] | None:
    """What was kept for a simulation; None if there is nothing, or nothing that can be trusted."""
    try:
        kept = json.loads(_path(key).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    if not isinstance(kept, dict) or kept.get("key") != _whole(key) or not isinstance(kept.get("found"), dict):
        return None
    return dict(kept["found"])


def write(key: Mapping[str, Any], found: Mapping[str, Any]) -> None:
    """Keep what a simulation found. Where that is not possible it is simulated again next time."""
    path = _path(key)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with whole_file(path) as temporary:
            temporary.write_text(json.dumps({"key": _whole(key), "found": dict(found)}), encoding="utf-8")
    except (OSError, OutputError):
        return


def _whole(key: Mapping[str, Any]) -> str:
    from farlink import _core

    return json.dumps({**key, "farlink": _core.__version__, "format": _FORMAT}, sort_keys=True)


def _path(key: Mapping[str, Any]) -> Path:
    return cache_folder("codes") / f"{hashlib.sha256(_whole(key).encode()).hexdigest()[:24]}.rate.json"

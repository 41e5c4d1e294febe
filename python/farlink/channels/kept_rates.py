"""Simulated error rates, kept so that they are computed once.

A file belongs to the code that computed it, whose fingerprint is part of its name; and what it holds is believed only where its
checksum is right and the numbers are rates that such a simulation can give.
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
_FORMAT = 2
_MOST_BYTES = 1 << 16
_COUNTS = ("bits", "wrong_bits", "events", "gave_up", "packets", "wrong_packets", "packet_bits")
_RATES = ("bit_error_rate", "event_rate", "packet_error_rate")
_FLAGS = ("interrupted", "reached")


def read(key: Mapping[str, Any]) -> dict[str, Any] | None:
    """The cached result of a simulation; None without a valid one.

    A file that is damaged is set aside, and that is said.

    Parameters
    ----------
    key
        What decides the result.
    """
    path = _path(key)
    try:
        content = read_file(path, FarlinkError, _MOST_BYTES)
    except OSError:
        return None
    except FarlinkError:
        content = b""
    found, why = parse(content, _whole(key))
    if found is None:
        set_aside(path, why)
    return found


def parse(content: bytes, key: str) -> tuple[dict[str, Any] | None, str]:
    """Contents of a file; or None, and the reason why it is invalid.

    Parameters
    ----------
    content
        Of the file.
    key
        What it should be of.
    """
    try:
        kept = json.loads(content, parse_constant=_no_number)
        said, found = kept["sha256"], kept["found"]
        digest = _digest(kept["key"], found)
    except (ValueError, KeyError, TypeError, RecursionError):
        return None, "it is not whole"
    if said != digest:
        return None, "its checksum is wrong"
    if kept["key"] != key:
        return None, "it is of another simulation"
    wrong = _impossible(found)
    return (None, wrong) if wrong else (dict(found), "")


def write(key: Mapping[str, Any], found: Mapping[str, Any]) -> None:
    """Cache the result of a simulation. If that is impossible, it is simulated again next time."""
    path, whole = _path(key), _whole(key)
    content = {"key": whole, "found": dict(found), "sha256": _digest(whole, dict(found))}
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with whole_file(path) as temporary:
            temporary.write_text(json.dumps(content), encoding="utf-8")
    except (OSError, OutputError):
        return


def _impossible(found: Any) -> str:
    """Errors in the numbers of a simulation; empty if there are none."""
    if not isinstance(found, dict) or set(found) != {*_COUNTS, *_RATES, *_FLAGS}:
        return "it does not hold what a simulation finds"
    if not all(isinstance(found[name], bool) for name in _FLAGS):
        return "it does not say whether the simulation ended"
    for name in _COUNTS:
        if type(found[name]) is not int or not 0 <= found[name] < 1 << 63:
            return f"{name} is no number of them"
    for part, whole in (("wrong_bits", "bits"), ("wrong_packets", "packets")):
        if found[part] > found[whole]:
            return f"{part} is above {whole}"
    for name in _RATES:
        rate = found[name]
        if not isinstance(rate, list | tuple) or len(rate) != 3 or not all(type(one) is float for one in rate):
            return f"{name} is no estimate with its interval"
        value, low, high = rate
        if not (0 <= low <= value <= high <= 1 and math.isfinite(value)):
            return f"{name} is no rate within its interval, from 0 to 1"
    for rate, part, whole in (("bit_error_rate", "wrong_bits", "bits"), ("packet_error_rate", "wrong_packets", "packets")):
        if found[whole] and not math.isclose(found[rate][0], found[part] / found[whole], rel_tol=1e-9):
            return f"{rate} is not {part} of {whole}"
    return ""


def _no_number(name: str) -> float:
    raise ValueError(name)


def _digest(key: Any, found: Any) -> str:
    return hashlib.sha256(json.dumps([key, found], sort_keys=True).encode()).hexdigest()


def _whole(key: Mapping[str, Any]) -> str:
    from farlink import _core

    return json.dumps({**key, "build": _core.__build__, "format": _FORMAT}, sort_keys=True)


def _path(key: Mapping[str, Any]) -> Path:
    return cache_folder("codes") / f"{hashlib.sha256(_whole(key).encode()).hexdigest()[:24]}.rate.json"

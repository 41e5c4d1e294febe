"""Results of simulations, kept so that they are computed once.

A file belongs to the code that computed it, whose fingerprint is part of its name; and what it holds is believed only where its
checksum is right and the numbers are such as the simulation can give.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from farlink.errors import FarlinkError, OutputError
from farlink.folders import cache_folder, set_aside
from farlink.output import whole_file
from farlink.untrusted import read_file


@dataclass(frozen=True)
class KeptResults:
    """The results of one kind of simulation.

    Attributes
    ----------
    folder, suffix
        Kind of the cache folder that they lie in, and how the names of files end.
    format
        Changes with what a file holds.
    most_bytes
        No file is longer.
    impossible
        Says what is wrong with a result; empty if nothing is.
    """

    folder: str
    suffix: str
    format: int
    most_bytes: int
    impossible: Callable[[Any], str]

    def read(self, key: Mapping[str, Any]) -> dict[str, Any] | None:
        """The kept result of a simulation; None without a valid one.

        A file that is damaged is set aside, and that is said.

        Parameters
        ----------
        key
            What decides the result.
        """
        path = self._path(key)
        try:
            content = read_file(path, FarlinkError, self.most_bytes)
        except OSError:
            return None
        except FarlinkError:
            content = b""
        found, why = self.parse(content, self._whole(key))
        if found is None:
            set_aside(path, why)
        return found

    def parse(self, content: bytes, key: str) -> tuple[dict[str, Any] | None, str]:
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
            right = digest(kept["key"], found)
        except (ValueError, KeyError, TypeError, RecursionError):
            return None, "it is not whole"
        if said != right:
            return None, "its checksum is wrong"
        if kept["key"] != key:
            return None, "it is of another simulation"
        wrong = self.impossible(found)
        return (None, wrong) if wrong else (dict(found), "")

    def write(self, key: Mapping[str, Any], found: Mapping[str, Any]) -> None:
        """Keep the result of a simulation. If that is impossible, it is simulated again next time."""
        path, whole = self._path(key), self._whole(key)
        content = {"key": whole, "found": dict(found), "sha256": digest(whole, dict(found))}
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with whole_file(path) as temporary:
                temporary.write_text(json.dumps(content), encoding="utf-8")
        except (OSError, OutputError):
            return

    def _whole(self, key: Mapping[str, Any]) -> str:
        from farlink import _core

        return json.dumps({**key, "build": _core.__build__, "format": self.format}, sort_keys=True)

    def _path(self, key: Mapping[str, Any]) -> Path:
        return cache_folder(self.folder) / f"{hashlib.sha256(self._whole(key).encode()).hexdigest()[:24]}{self.suffix}"


def digest(key: Any, found: Any) -> str:
    """Checksum of a result and of what decides it."""
    return hashlib.sha256(json.dumps([key, found], sort_keys=True).encode()).hexdigest()


def _no_number(name: str) -> float:
    raise ValueError(name)

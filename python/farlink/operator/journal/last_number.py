"""The number of the last durable transition, in a file of its own.

SQLite takes a write-ahead log whose end is cut off for one that ends there. This number tells that something is missing.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

_WIDTH = 19  # of the highest number that SQLite has


class LastNumber:
    """``NAME.last`` beside a journal, opened to write.

    Attributes
    ----------
    number
        The last number; None if the file is new or damaged.
    """

    def __init__(self, path: Path) -> None:
        self.number = self.read(path)
        self._file = os.open(_beside(path), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)

    @staticmethod
    def read(path: Path) -> int | None:
        """The last number of a journal; None if nothing says it."""
        try:
            text = _beside(path).read_bytes()
        except OSError:
            return None
        return int(text) if re.fullmatch(rb"[0-9]{%d}\n" % _WIDTH, text) else None

    def write(self, number: int) -> None:
        """Keep a number, over a power cut too."""
        os.pwrite(self._file, f"{number:0{_WIDTH}}\n".encode(), 0)
        os.fdatasync(self._file)
        self.number = number

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)


def _beside(path: Path) -> Path:
    return path.with_name(f"{path.name}.last")

"""The last sign of life of an operator: how far it came, and what its calls had cost, if it is killed.

It is written every second into a file beside the journal, over the one before the last, and is not forced onto the disk: the
kernel keeps it when the operator is killed. When the power fails, what the journal has kept durably may be newer.
"""

from __future__ import annotations

import json
import math
import os
import zlib
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

# The two places in the file: a write that a kill cuts in half leaves the other one whole.
_PLACE_BYTES = 1 << 20
_PLACES = 2
_CRC_LETTERS = 8


@dataclass(frozen=True)
class Life:
    """A sign of life.

    Attributes
    ----------
    number
        Counts signs, over starts too: the highest is the newest.
    time_s
        When, in s since 1970-01-01 UTC.
    monotonic_s, boot_id
        Reading of a clock that is never set, in s, and the start of the machine from which it counts.
    history
        How calls went and what they cost until then, as the dialler says it.
    """

    number: int
    time_s: float
    monotonic_s: float
    boot_id: str
    history: str

    def text(self) -> str:
        """As a line of JSON."""
        return json.dumps(asdict(self))


def life_of(text: str) -> Life | None:
    """Read the text of `Life.text`; None if it is something else."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    if isinstance(found, dict) and set(found) == {"number", "time_s", "monotonic_s", "boot_id", "history"}:
        with suppress(TypeError, ValueError, OverflowError):
            numbers = (int(found["number"]), float(found["time_s"]), float(found["monotonic_s"]))
            if all(map(math.isfinite, numbers)):
                return Life(*numbers, str(found["boot_id"]), str(found["history"]))
    return None


class SignOfLife:
    """``NAME.alive`` beside a journal. Whatever is wrong with it, nothing stops: it is worth less than the journal.

    Parameters
    ----------
    journal
        Path of the journal.
    """

    def __init__(self, journal: Path) -> None:
        self._path = journal.with_name(f"{journal.name}.alive")
        self._file: int | None = None

    def write(self, life: Life) -> None:
        """Write a sign."""
        text = life.text().encode()
        line = b"%0*x %s\n" % (_CRC_LETTERS, zlib.crc32(text), text)
        if len(line) > _PLACE_BYTES:
            return
        with suppress(OSError):
            if self._file is None:
                self._file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
            os.pwrite(self._file, line, life.number % _PLACES * _PLACE_BYTES)

    def read(self) -> Life | None:
        """The newest sign; None if there is none that is whole."""
        found = []
        with suppress(OSError), self._path.open("rb") as file:
            for place in range(_PLACES):
                file.seek(place * _PLACE_BYTES)
                crc, _, text = file.read(_PLACE_BYTES).partition(b"\n")[0].partition(b" ")
                if crc == b"%0*x" % (_CRC_LETTERS, zlib.crc32(text)):
                    found.append(life_of(text.decode("utf-8", "replace")))
        return max((one for one in found if one is not None), key=lambda one: one.number, default=None)

    def close(self) -> None:
        """Close the file; a second time does nothing."""
        if self._file is not None:
            os.close(self._file)
            self._file = None

"""Packet-reception traces of 802.11 links under injected noise, measured at Rutgers' ORBIT testbed.

Each line is ``sequence rssi`` of a frame that arrived; a sequence number that is missing was lost. An empty file is a link
over which nothing arrived.

Notes
-----
A trace counts 300 frames, sequence numbers 0 to 299. Most files go on to 300 and some to 301; those are left out, so that
every link counts the same frames. An RSSI of 128 marks an error of the receiver's reading: the frame counts as received.

References
----------
CRAWDAD dataset rutgers/noise (2007-04-20).
"""

from __future__ import annotations

import re

import numpy as np

from farlink.channels.importers.recording import Recording
from farlink.channels.trace import Trace
from farlink.errors import TraceError
from farlink.untrusted import lines_of, printable

NAME = "rutgers-802.11"
KINDS = ("packet-loss",)
DESCRIPTION = "802.11 reception trace: 'sequence rssi' of each received frame, 300 frames sent"

_FRAMES = 300
_ERROR_RSSI = 128
_MOST_DIGITS = 18
_LINE = re.compile(rb"[ \t]*\d+[ \t]+\d+[ \t\r]*(\n|$)")


def recognises(recording: Recording) -> bool:
    """Whether its name begins with ``sdec`` or its first line is two whole numbers."""
    return recording.name.startswith("sdec") or _LINE.match(recording.data[:100]) is not None


def trace(recording: Recording) -> Trace:
    """The loss trace in a recording.

    Raises
    ------
    TraceError
        If a line is not two whole numbers or a sequence number does not ascend; names the line.
    """
    lost = np.ones(_FRAMES, dtype=np.uint8)
    beyond = errors = 0
    previous = -1
    for number, line in enumerate(lines_of(recording.text()), start=1):
        words = line.split()
        if len(words) != 2 or not all(word.isascii() and word.isdigit() and len(word) <= _MOST_DIGITS for word in words):
            raise TraceError(
                f"{recording.where}, line {number}: {printable(line, 40)!r} is not a sequence number and an RSSI",
                "each line is two whole numbers; the file may be truncated",
            )
        sequence, rssi = int(words[0]), int(words[1])
        if sequence <= previous:
            raise TraceError(
                f"{recording.where}, line {number}: sequence number {sequence} comes after {previous}",
                "sequence numbers ascend; remove what was recorded twice",
            )
        previous = sequence
        errors += rssi == _ERROR_RSSI
        if sequence < _FRAMES:
            lost[sequence] = 0
        else:
            beyond += 1
    title = "/".join(recording.where.split("/")[-2:])
    meta = {
        "title": recording.name,
        "source": f"802.11 reception trace {title}, CRAWDAD rutgers/noise",
        "frames_beyond": beyond,
        "rssi_errors": errors,
    }
    return Trace("packet-loss", {"lost": lost}, meta)

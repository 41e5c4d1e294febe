"""Final results of AT commands, in words and in numbers, and the level of X from which a modem sends each."""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Result:
    """One result of V.250.

    Attributes
    ----------
    words
        With ``V1``.
    code
        With ``V0``.
    least_x
        The level of X from which it is sent.
    below
        What is sent below that level.
    """

    words: str
    code: int
    least_x: int = 0
    below: str = ""


RESULTS = {
    one.words: one
    for one in (
        Result("OK", 0),
        Result("CONNECT", 1),
        Result("RING", 2),
        Result("NO CARRIER", 3),
        Result("ERROR", 4),
        Result("NO DIALTONE", 6, least_x=2, below="NO CARRIER"),
        Result("BUSY", 7, least_x=3, below="NO CARRIER"),
        Result("NO ANSWER", 8),
    )
}
# With X1 and above CONNECT says the speed of the serial port, which is not that of the call.
CONNECT_CODES = {5: 1200, 10: 2400, 11: 4800, 12: 9600, 13: 14_400, 14: 19_200}

_BY_CODE = {one.code: one.words for one in RESULTS.values()}
_CONNECT = re.compile(r"CONNECT(?:[ /]+(\d{1,9})\b.*)?")
_ERRORS = re.compile(r"\+CM[ES] ERROR\b.*")


@dataclass(frozen=True)
class Final:
    """A result that a modem sent: its words, as in `RESULTS`, the speed of a CONNECT, and the line itself."""

    words: str
    text: str
    speed_bps: int | None = None


def final_of(line: str, *, takes_numbers: bool) -> Final | None:
    """The result that a line is; None of another line.

    Parameters
    ----------
    line
        Without its end.
    takes_numbers
        Whether a number is a result, as with ``V0``.

    Examples
    --------
    >>> final_of("CONNECT 19200", takes_numbers=False)
    Final(words='CONNECT', text='CONNECT 19200', speed_bps=19200)
    >>> final_of("+CME ERROR: 10", takes_numbers=False).words
    'ERROR'
    >>> final_of("7", takes_numbers=True).words
    'BUSY'
    """
    if takes_numbers and line.isascii() and line.isdigit() and len(line) <= 2:
        code = int(line)
        if code in CONNECT_CODES:
            return Final("CONNECT", line, CONNECT_CODES[code])
        return Final(_BY_CODE[code], line) if code in _BY_CODE else None
    words = "NO DIALTONE" if line == "NO DIAL TONE" else line
    if words in RESULTS and words != "CONNECT":
        return Final(words, line)
    if _ERRORS.fullmatch(line):
        return Final("ERROR", line)
    connect = _CONNECT.fullmatch(line)
    if connect is None:
        return None
    return Final("CONNECT", line, int(connect[1]) if connect[1] else None)


def shown(words: str, *, x_level: int, speed_bps: int) -> tuple[str, int]:
    """A modem's result at a level of X: words and code.

    Examples
    --------
    >>> shown("BUSY", x_level=4, speed_bps=19200), shown("BUSY", x_level=1, speed_bps=19200)
    (('BUSY', 7), ('NO CARRIER', 3))
    >>> shown("CONNECT", x_level=1, speed_bps=19200)
    ('CONNECT 19200', 14)
    """
    result = RESULTS[words]
    if x_level < result.least_x:
        result = RESULTS[result.below]
    if result.words == "CONNECT" and x_level >= 1:
        codes = {speed: code for code, speed in CONNECT_CODES.items()}
        return f"CONNECT {speed_bps}", codes.get(speed_bps, 1)
    return result.words, result.code

"""Lines of modems between a command and its result, or unasked: registration and signal, with the quirks of each modem."""

from __future__ import annotations

import re

from farlink.untrusted import printable

REGISTRATIONS = {
    0: "not registered",
    1: "registered",
    2: "searching",
    3: "denied",
    4: "unknown",
    5: "registered, roaming",
}
_REGISTERED = (1, 5)
_UNKNOWN = 99

_CREG = re.compile(r"\+CREG: *(\d{1,3})(?: *, *([^,]*))?(?:,.*)?")
_CSQ = re.compile(r"\+CSQF?: *(\d{1,3})(?: *, *\d{1,3})?")
_CPIN = re.compile(r"\+CPIN: *([A-Z0-9 -]{1,24})")
_CEER = re.compile(r"\+CEER: *(.*)")
# Number, type, subaddress with its type, name in the telephone book (3GPP TS 27.007, section 7.6); of Iridium the first two.
_CLIP = re.compile(r'\+CLIP: *"([^"]*)" *(?:,[^,]*)?(?:,[^,]*)?(?:,[^,]*)?(?:, *"([^"]*)")?.*')
_CALLER = re.compile(r"\+?[0-9*#]{1,31}")


def registration_of(line: str) -> int | None:
    """The state in a line of ``+CREG``, a key of `REGISTRATIONS`; None of another line.

    Asked for, it stands behind the mode (``+CREG: 2,1,...``, of Iridium ``+CREG:002,001,...``); unasked it comes first, with
    the area behind it, which is quoted or has four digits.

    Examples
    --------
    >>> [registration_of(line) for line in ("+CREG:0,1", "+CREG: 5", '+CREG: 1,"00A3","1F2B"', "+CREG:002,005")]
    [1, 5, 1, 5]
    """
    found = _CREG.fullmatch(line)
    if found is None:
        return None
    second = (found[2] or "").strip()
    is_asked = second.isascii() and second.isdigit() and len(second) <= 3
    state = int(second if is_asked else found[1])
    return state if state in REGISTRATIONS else None


def is_registered(state: int) -> bool:
    """Whether a modem in this state can dial."""
    return state in _REGISTERED


def signal_of(line: str, most: int) -> tuple[bool, int | None]:
    """Whether a line is one of ``+CSQ`` or ``+CSQF``, and its signal; None if the modem knows none.

    Parameters
    ----------
    line
        Without its end.
    most
        Highest signal of the scale: 5 bars, or 31.

    Examples
    --------
    >>> signal_of("+CSQ:1", 5), signal_of("+CSQ:099,099", 5), signal_of("+CSQ: 18,99", 31), signal_of("OK", 5)
    ((True, 1), (True, None), (True, 18), (False, None))
    """
    found = _CSQ.fullmatch(line)
    if found is None:
        return False, None
    level = int(found[1])
    return True, level if level <= most and level != _UNKNOWN else None


def pin_of(line: str) -> str | None:
    """State of a SIM by a line of ``+CPIN``: ``READY``, ``SIM PIN``, ``SIM PUK``; None for another line."""
    found = _CPIN.fullmatch(line)
    return found[1].strip() if found else None


def caller_of(line: str) -> tuple[str, str] | None:
    """Number and name of who calls, of a line of ``+CLIP``; each is empty if it is not told. None of another line.

    Examples
    --------
    >>> caller_of('+CLIP:"+881600005001",145'), caller_of('+CLIP: "5550123",129,"",0,"glacier",0'), caller_of('+CLIP: "",128')
    (('+881600005001', ''), ('5550123', 'glacier'), ('', ''))
    """
    found = _CLIP.fullmatch(line)
    if found is None:
        return None
    number = found[1] if _CALLER.fullmatch(found[1]) else ""
    return number, printable(found[2] or "", 40)


def cause_of(line: str) -> str:
    """Why the last call ended, of a line of ``+CEER``; modems also answer without its name."""
    found = _CEER.fullmatch(line)
    return (found[1] if found else line).strip()[:200]

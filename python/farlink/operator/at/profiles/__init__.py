"""Profiles of modems: TOML files, those of this folder and those of users."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from farlink.errors import OperatorError
from farlink.near_names import instead
from farlink.operator.tables import Key, mistakes_of, name_of, number, read_tables, refuse, switch, text, whole

_FOLDER = Path(__file__).parent
SCALES = {"bars": 5, "gsm": 31, "none": 0}
"""Highest signal of each scale of ``+CSQ``."""

_LINE = re.compile(r"[Aa][Tt][ -~]{0,200}")


@dataclass(frozen=True)
class Profile:
    """Commands for one kind of modem, and their time limits.

    Attributes
    ----------
    name
        Of the file.
    title
        What people call the modem.
    init
        Lines that it gets first, in order. Each must be answered with OK.
    speed_bps
        Of its serial port.
    dial
        The line that dials, with ``{number}``.
    dial_limit_s
        A dial without a result is given up after so long.
    command_limit_s, signal_limit_s
        Limit of other lines, and of ``+CSQ``, which takes 10 s in a handoff and up to 50 s without registration.
    hang_up
        ``dtr``: drop DTR for a second; ``escape``: ``+++``, then ``ATH0``.
    answer
        ``ata``: the answer is asked for; ``auto``: the modem answers by itself, as ``S0=1`` in a line of `init` tells it.
    results
        ``words`` or ``numbers`` (``V0``).
    signal
        Scale of ``+CSQ``: ``bars`` (0 to 5), ``gsm`` (0 to 31), or ``none`` if the modem does not know.
    least_signal
        Below it nothing should be dialled.
    registers
        Whether ``+CREG?`` is known; it is asked first then, since ``+CSQ`` takes long without registration.
    asks_cause
        Whether ``+CEER`` tells why a call dropped.
    has_sim
        Whether ``+CPIN?`` is asked at the start.
    names_callers
        Whether ``+CLIP`` is known: behind RING the modem says who calls.
    sends_sms
        Whether ``+CMGS`` sends short messages, in PDU mode.
    csq_form
        How the modem writes its signal, for the bank: ``short``, ``three-digits`` or ``3gpp``.
    """

    name: str
    title: str
    init: tuple[str, ...]
    speed_bps: int = 115_200
    dial: str = "ATDT{number}"
    dial_limit_s: float = 90.0
    command_limit_s: float = 5.0
    signal_limit_s: float = 60.0
    hang_up: str = "dtr"
    answer: str = "ata"
    results: str = "words"
    signal: str = "none"
    least_signal: int = 0
    registers: bool = False
    asks_cause: bool = False
    has_sim: bool = False
    names_callers: bool = False
    sends_sms: bool = False
    csq_form: str = "3gpp"


def _are_lines(value: Any) -> bool:
    is_list = isinstance(value, list) and 1 <= len(value) <= 32
    return is_list and all(isinstance(line, str) and _LINE.fullmatch(line) for line in value)


def _dials(line: str) -> bool:
    return bool(_LINE.fullmatch(line)) and line.count("{number}") == 1 and line.count("{") == line.count("}") == 1


KEYS: Mapping[str, Key] = {
    "title": text(lambda title: 0 < len(title) <= 80 and title.isprintable(), "a text of up to 80 characters", is_needed=True),
    "init": Key(_are_lines, "a list of 1 to 32 lines that begin with AT", is_needed=True),
    "speed_bps": whole(300, 4_000_000),
    "dial": text(_dials, "a line that begins with AT and has {number} once"),
    "dial_limit_s": number(1, 600),
    "command_limit_s": number(0.1, 600),
    "signal_limit_s": number(0.1, 600),
    "hang_up": name_of(("dtr", "escape")),
    "answer": name_of(("ata", "auto")),
    "results": name_of(("words", "numbers")),
    "signal": name_of(SCALES),
    "least_signal": whole(0, 31),
    "registers": switch(),
    "asks_cause": switch(),
    "has_sim": switch(),
    "names_callers": switch(),
    "sends_sms": switch(),
    "csq_form": name_of(("short", "three-digits", "3gpp")),
}


def names() -> list[str]:
    """The profiles that farlink has."""
    return sorted(path.stem for path in _FOLDER.glob("*.toml"))


def load(name: str) -> Profile:
    """A profile of farlink's, or of a file.

    Parameters
    ----------
    name
        A name, such as ``iridium-9522b``; or a path that ends in ``.toml``.

    Raises
    ------
    OperatorError
        If there is none, or the file has mistakes: all of them are named, with the nearest names.

    Examples
    --------
    >>> load("iridium-9522b").least_signal
    3
    >>> load("iridum-9522b")
    Traceback (most recent call last):
        ...
    farlink.errors.OperatorError: there is no profile 'iridum-9522b'
    """
    if name.endswith(".toml"):
        return profile_of(read_tables(Path(name), "a profile"), Path(name).stem, where=name)
    if name not in names():
        raise OperatorError(f"there is no profile {name!r}", f"{instead(name, names())}; or give a file, NAME.toml")
    path = _FOLDER / f"{name}.toml"
    return profile_of(read_tables(path, "a profile"), name, where=str(path))


def profile_of(table: Mapping[str, Any], name: str, *, where: str) -> Profile:
    """A profile from the table of its file.

    Parameters
    ----------
    table
        What was read.
    name
        Name of the profile.
    where
        The file, for messages.

    Raises
    ------
    OperatorError
        If there are mistakes.
    """
    found = mistakes_of(table, KEYS)
    scale, least = table.get("signal", "none"), table.get("least_signal", 0)
    if not found and least > SCALES[scale]:
        least_key = whole(0, SCALES[scale])
        found = mistakes_of({"least_signal": least}, {"least_signal": least_key})
    refuse(found, where)
    return Profile(name=name, **{**table, "init": tuple(table["init"])})

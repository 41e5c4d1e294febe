"""Rows of a journal: connections, their modems, and transitions of these."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

from farlink.channels.calls.journal import KINDS
from farlink.errors import JournalError
from farlink.near_names import instead
from farlink.untrusted import printable

STATES = {
    **KINDS,
    "waiting": "the line waits for a call from the far end",
    "held": "someone has taken the line out of use",
}
"""States of a line (figure 7.2 and those of a log of calls), and observations of it."""

OBSERVATIONS = ("alive", "snr", "handover")
"""States among `STATES` that may be lost at a power cut: they come every few seconds, and change nothing."""

MOST_NONSENSE_BYTES = 4096
"""Of what a modem said, the last so many bytes are kept."""

_MOST_CHARACTERS = 300
_BARS = range(6)
_MOST_COUNT = 2**63 - 1
# Years 1970 to 9999: what ISO 8601 can say.
_LAST_S = 253_402_300_799.0


@dataclass(frozen=True)
class Transition:
    """A line changes its state, or is observed.

    Attributes
    ----------
    connection
        Number of its connection.
    modem
        Name of the line.
    state
        The new state, one of `STATES`.
    time_s
        When, in s since 1970-01-01 UTC, to the millisecond.
    monotonic_s
        Reading of a clock that is never set, in s, to the microsecond.
    boot_id
        Which start of the machine that clock counts from.
    cause
        Why, in the modem's or pppd's words.
    snr_db, bars
        Signal, in dB and in bars from 0 to 5.
    attempt
        Count of the dial since the line was last up, from 1.
    bytes_in, bytes_out
        What the call has carried so far.
    is_injected
        Whether the operator dropped the call itself, as a test.
    caller
        Number and name of who calls, as the network tells them; None of calls that this end dials, and of who is not told.
    nonsense
        The last bytes that the modem said and nobody understood.
    number
        Its place in the journal, from 1; 0 before it is recorded.
    """

    connection: int
    modem: str
    state: str
    time_s: float
    monotonic_s: float
    boot_id: str
    cause: str = ""
    snr_db: float | None = None
    bars: int | None = None
    attempt: int | None = None
    bytes_in: int | None = None
    bytes_out: int | None = None
    is_injected: bool = False
    caller: str | None = None
    nonsense: bytes = b""
    number: int = 0


@dataclass(frozen=True)
class Connection:
    """A bundle from its first dial until its last line is lost (section 7.3).

    Attributes
    ----------
    number
        Its place in the journal, from 1.
    start_s
        When it began, in s since 1970-01-01 UTC.
    end_s
        When it ended; None if it has not, or nobody saw it end.
    indices
        Modem -> its index; that of the primary modem is 1.
    """

    number: int
    start_s: float
    end_s: float | None = None
    indices: dict[str, int] = field(default_factory=dict)

    @property
    def primary(self) -> str | None:
        """The primary modem."""
        return next((modem for modem, index in self.indices.items() if index == 1), None)


@dataclass(frozen=True)
class AlertRow:
    """An alert that was raised.

    Attributes
    ----------
    alert, line
        Name of its cause, and the line; None if it is about the bundle.
    severity
        ``info``, ``warning`` or ``critical``.
    raised_s, cleared_s
        When its cause began, and when it was cleared, in s since 1970-01-01 UTC; the latter is None while it is raised.
    cause
        Why, in the words of modem, disk or network.
    number
        Its place in the journal, from 1.
    """

    alert: str
    line: str | None
    severity: str
    raised_s: float
    cause: str
    cleared_s: float | None = None
    number: int = 0


@dataclass(frozen=True)
class History:
    """Contents of a journal: connections, transitions and alerts in the order of their numbers."""

    connections: tuple[Connection, ...]
    transitions: tuple[Transition, ...]
    alerts: tuple[AlertRow, ...] = ()


def checked(given: Transition) -> Transition:
    """A transition with rounded times, causes that harm no terminal and no XML, and nonsense cut to its last bytes.

    Raises
    ------
    JournalError
        If the state is unknown, a time is none, or a count is below 0.
    """
    if given.state not in STATES:
        raise JournalError(f"there is no state {printable(given.state, 40)!r}", instead(given.state, STATES))
    if not given.modem or given.modem != printable(given.modem, _MOST_CHARACTERS):
        raise JournalError(f"modem {printable(given.modem, 40)!r}: not a name", "name it in one line of printable letters")
    if given.bars is not None and given.bars not in _BARS:
        raise JournalError(f"bars: {given.bars} is not one of 0 to 5", "bars are those of AT+CSQ")
    if given.snr_db is not None and not math.isfinite(given.snr_db):
        raise JournalError(f"snr_db: {given.snr_db} is no ratio", "leave it out if it is unknown")
    if given.state == "snr" and given.snr_db is None:
        raise JournalError("state snr without snr_db", "give the ratio in dB; bars alone belong to the state alive")
    if not math.isfinite(given.monotonic_s):
        raise JournalError(f"monotonic_s: {given.monotonic_s} is no time", "give the reading of the monotonic clock")
    for name in ("connection", "attempt", "bytes_in", "bytes_out", "number"):
        count = getattr(given, name)
        if count is not None and not 0 <= count <= _MOST_COUNT:
            raise JournalError(f"{name}: {count} is out of range", "give 0 or more")
    return replace(
        given,
        time_s=checked_time(given.time_s),
        monotonic_s=round(float(given.monotonic_s), 6),
        boot_id=_line(given.boot_id),
        snr_db=None if given.snr_db is None else float(given.snr_db),
        cause=_line(given.cause),
        caller=_line(given.caller or "") or None,
        nonsense=given.nonsense[-MOST_NONSENSE_BYTES:],
    )


def checked_time(time_s: float) -> float:
    """A time of day, to the millisecond.

    Raises
    ------
    JournalError
        If it is none between 1970 and 9999.
    """
    if not 0 <= time_s <= _LAST_S:
        raise JournalError(f"time {time_s:g} s is not between 1970 and 9999", "give s since 1970-01-01 UTC")
    return round(float(time_s), 3)


def _line(text: str) -> str:
    # Twice, as letters that are left out may leave two spaces beside each other.
    return printable(printable(text, _MOST_CHARACTERS), _MOST_CHARACTERS)

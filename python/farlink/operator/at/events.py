"""What a dialogue with a modem tells its owner."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Ready:
    """The modem has answered all lines of its profile, and its SIM is open."""


@dataclass(frozen=True)
class Failed:
    """The modem is of no use until it is started again: why, and the last 4 KB that it sent."""

    reason: str
    tail: bytes


@dataclass(frozen=True)
class PinNeeded:
    """The SIM waits for its PIN: the owner notes for good that it is tried, and calls `enter_pin`."""


@dataclass(frozen=True)
class PinTried:
    """The SIM got its PIN. After anything but ``accepted`` it must not get it again; the owner has to remember that."""

    outcome: Literal["accepted", "refused", "unanswered"]


@dataclass(frozen=True)
class Registration:
    """State of registration, of ``farlink.operator.at.answers.REGISTRATIONS``."""

    state: int
    words: str
    is_registered: bool


@dataclass(frozen=True)
class Signal:
    """Signal on the scale of the profile; None if the modem knows none."""

    level: int | None


@dataclass(frozen=True)
class Dialling:
    """The number has gone to the modem."""

    number: str


@dataclass(frozen=True)
class DialFailed:
    """A dial, or an answer, came to nothing: ``BUSY``, ``NO CARRIER``, ``time limit``, in the words of the modem."""

    result: str


@dataclass(frozen=True)
class Ringing:
    """Someone calls; comes again with each RING. Number and name are those of ``+CLIP``, empty if nobody tells them."""

    number: str = ""
    name: str = ""


@dataclass(frozen=True)
class RingingEnded:
    """The caller has given up."""


@dataclass(frozen=True)
class Connected:
    """The call is up; the speed is that of the serial port as a rule, None if the modem does not say. Data follow."""

    speed_bps: int | None
    is_incoming: bool


@dataclass(frozen=True)
class Data:
    """Bytes of the call."""

    content: bytes


@dataclass(frozen=True)
class Dropped:
    """The call is lost: how that was noticed, ``DCD`` or ``NO CARRIER``."""

    how: str


@dataclass(frozen=True)
class Cause:
    """Why the last call ended, as ``+CEER`` tells it."""

    text: str


@dataclass(frozen=True)
class DropDtr:
    """The owner has to drop DTR for a second: the modem hangs up."""


@dataclass(frozen=True)
class HungUp:
    """The call was ended on purpose; not confirmed if the modem did not answer."""

    is_confirmed: bool


@dataclass(frozen=True)
class Answered:
    """The result of a line that the owner asked: its words, or ``time limit``, and what came before it."""

    command: str
    result: str
    lines: tuple[str, ...]


@dataclass(frozen=True)
class SmsSent:
    """What came of a short message: whether the network has it, and the modem's words."""

    is_sent: bool
    result: str


@dataclass(frozen=True)
class Unknown:
    """A line that belongs to nothing."""

    text: str


Event = (
    Ready
    | Failed
    | PinNeeded
    | PinTried
    | Registration
    | Signal
    | Dialling
    | DialFailed
    | Ringing
    | RingingEnded
    | Connected
    | Data
    | Dropped
    | Cause
    | DropDtr
    | HungUp
    | Answered
    | SmsSent
    | Unknown
)

"""Interface of every kind of line: the orders that it takes, and the reports that it gives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol


@dataclass(frozen=True)
class Report:
    """Something that was observed of a line.

    Attributes
    ----------
    line
        Its name.
    event
        One of the dialler's events (`farlink._core.BundleDialler`), or ``note``: for the journal only.
    call
        Of the order that began the call; None of a call that came by itself.
    cause
        In the words of the modem or of what carries PPP.
    level
        Signal, on the scale of the profile.
    took_s
        How long the modem took to tell the signal.
    number
        Of who calls.
    said
        The last bytes of a modem that nobody understood.
    bytes_in, bytes_out
        What the call has carried; None if nobody counted.
    """

    line: str
    event: str
    call: int | None = None
    cause: str = ""
    level: int | None = None
    took_s: float = 0.0
    number: str = ""
    said: bytes = b""
    bytes_in: int | None = None
    bytes_out: int | None = None


class Pins(Protocol):
    """Which PINs may still be tried; what is noted is durable."""

    def may_try(self, line: str) -> bool:
        """Whether the PIN of this line may be sent."""
        ...

    def note_tried(self, line: str) -> bool:
        """Note that it is about to be sent; False if that cannot be noted, and it must not be sent."""
        ...

    def note_outcome(self, line: str, outcome: str) -> None:
        """Note what came of it."""
        ...


class Line(Protocol):
    """A line of any kind. Orders are carried out one after the other; each says of which call it is."""

    name: str

    async def run(self) -> None:
        """Move the line until this is cancelled. Then nothing of it is left: no call, no process, no open port."""
        ...

    def dial(self, call: int) -> None:
        """Dial; `carrier` or `dial-failed` is reported."""
        ...

    def answer(self, call: int) -> None:
        """Take the call that rings; `carrier` or `dial-failed` is reported."""
        ...

    def start_link(self, call: int) -> None:
        """Let PPP begin on the call; `link-up` or `dial-failed` is reported."""
        ...

    def hang_up(self, *, ends_bundle: bool = False) -> None:
        """End whatever there is: dial, call and PPP. Nothing is reported."""
        ...

    def try_again(self) -> None:
        """Do at once what waits for a pause after a failure: somebody asks for a redial."""
        ...

    def observed(self) -> dict[str, Any]:
        """Its present state, for `farlink bundle status`."""
        ...

    @property
    def is_idle(self) -> bool:
        """Whether nothing of a call is left."""
        ...

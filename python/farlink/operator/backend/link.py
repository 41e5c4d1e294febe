"""The seam: a back end starts a link on the tty of a call; the link says what is observed of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True)
class Up:
    """PPP is up on the link, as was observed: never inferred from a process."""


@dataclass(frozen=True)
class Down:
    """The link is over: why, in the words of what carried it."""

    cause: str


@dataclass(frozen=True)
class Probe:
    """A probe over the link was answered by the far end, or was not in its time."""

    is_answered: bool


@dataclass(frozen=True)
class Carried:
    """Bytes that the link has carried so far."""

    bytes_in: int
    bytes_out: int


Said = Up | Down | Probe | Carried
Listener = Callable[[Said], None]


class Link(Protocol):
    """One link of the bundle, on one call."""

    async def hang_up(self, *, ends_bundle: bool = False) -> None:
        """End this link, and no other unless the whole bundle is to end. Nothing of it is left on the tty when this returns."""
        ...


class BackEnd(Protocol):
    """Back end: it carries PPP over the lines of a bundle."""

    name: str

    def missing(self) -> str | None:
        """The needs that this machine lacks, in words; None if there are none."""
        ...

    def prepare(self) -> list[str]:
        """Write the files that it needs, and end what a killed operator left behind; says what that was.

        Raises
        ------
        OutputError
            If a file cannot be written.
        """
        ...

    def delay_s(self, line: str) -> float:
        """How long after CONNECT a link of this line is to be started."""
        ...

    async def start(self, line: str, tty: int, tell: Listener) -> Link:
        """Start a link.

        Parameters
        ----------
        line
            Its name.
        tty
            File descriptor of the call's tty, which the caller keeps open.
        tell
            Gets what is observed.

        Raises
        ------
        OSError
            If it cannot be started.
        """
        ...

    def is_bundle_lost(self) -> bool:
        """Whether links are up whose bundle is gone: all of them carry nothing."""
        ...

    async def tear_down(self) -> None:
        """End the bundle: no process and no interface of it is left."""
        ...

"""The stand-in for pppd: probes and their answers over the tty, without kernel PPP and root. It carries no packets."""

from __future__ import annotations

import hashlib
import signal
import sys
from pathlib import Path

from farlink.operator.backend import orphans
from farlink.operator.backend.link import Carried, Down, Link, Listener, Probe, Said, Up
from farlink.operator.backend.process import Process
from farlink.operator.config.bundle import Bundle

_CHILD = Path(__file__).with_name("stand_in_child.py")

# Exit statuses, those of pppd.
CAUSES = {
    0: "ended",
    5: "ended by the operator",
    10: "the far end does not answer",
    15: "the far end answers no probes any more",
    16: "the modem hung up",
}


class StandIn:
    """Links that pass probes only.

    Parameters
    ----------
    bundle
        Echoes and their limits are those of PPP.
    """

    name = "stand-in"

    def __init__(self, bundle: Bundle) -> None:
        self._bundle = bundle
        whose = hashlib.sha256(str(bundle.journal.absolute()).encode()).hexdigest()[:16]
        self._marks = {line.name: f"farlink-stand-in:{bundle.name}:{line.name}:{whose}" for line in bundle.ppp_lines}

    def missing(self) -> str | None:
        """Nothing."""
        return None

    def prepare(self) -> list[str]:
        """End what a killed operator left behind."""
        return orphans.end(set(self._marks.values()))

    def delay_s(self, line: str) -> float:  # noqa: ARG002
        """None: what comes too early is said again soon."""
        return 0.0

    async def start(self, line: str, tty: int, tell: Listener) -> Link:
        """Start a link."""
        return await _StandInLink.start(self._arguments(line), tty, tell)

    def is_bundle_lost(self) -> bool:
        """Never: there is no bundle."""
        return False

    async def tear_down(self) -> None:
        """Nothing is left."""

    def _arguments(self, line: str) -> list[str]:
        ppp = self._bundle.ppp
        times = [f"{value:g}" for value in (ppp.echo_interval_s, ppp.echo_failures, ppp.lcp_restart_s * ppp.lcp_tries)]
        return [sys.executable, "-I", "-S", str(_CHILD), *times, self._marks[line]]


class _StandInLink:
    def __init__(self, tell: Listener) -> None:
        self._tell = tell
        self._process: Process | None = None

    @classmethod
    async def start(cls, arguments: list[str], tty: int, tell: Listener) -> _StandInLink:
        made = cls(tell)
        made._process = await Process.start(arguments, tty=tty, said=made._said, ended=made._ended)
        return made

    async def hang_up(self, *, ends_bundle: bool = False) -> None:
        if self._process is not None:
            await self._process.end(signal.SIGTERM if ends_bundle else signal.SIGHUP)

    def _said(self, text: str) -> None:
        meaning = said_of(text)
        if meaning is not None:
            self._tell(meaning)

    def _ended(self, status: int) -> None:
        self._tell(Down(CAUSES.get(status, f"the stand-in ended with {status}")))


def said_of(text: str) -> Said | None:
    """The meaning of a line of the child.

    Examples
    --------
    >>> said_of("up"), said_of("carried 10 20"), said_of("nonsense")
    (Up(), Carried(bytes_in=10, bytes_out=20), None)
    """
    match text.split():
        case ["up"]:
            return Up()
        case ["probe", ("answered" | "lost") as outcome]:
            return Probe(outcome == "answered")
        case ["carried", bytes_in, bytes_out] if bytes_in.isdecimal() and bytes_out.isdecimal():
            return Carried(int(bytes_in), int(bytes_out))
    return None

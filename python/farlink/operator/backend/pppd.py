"""Links of Linux' pppd: one process for each call, and a rule for each thing that pppd 2.4.9 does to a bundle.

What is up is read from pppd's messages and from the kernel's interfaces, never inferred from a process: the pppd of the first
link lives on after its link is lost, and owns the bundle.
"""

from __future__ import annotations

import asyncio
import os
import re
import signal
import subprocess
from contextlib import suppress
from pathlib import Path

from farlink.errors import OutputError
from farlink.operator.backend import orphans
from farlink.operator.backend.kept_log import keep
from farlink.operator.backend.link import Carried, Down, Link, Listener, Said, Up
from farlink.operator.backend.process import Process
from farlink.operator.config.bundle import Bundle, Line
from farlink.operator.config.secrets_file import Secrets
from farlink.operator.journal.lock import Lock
from farlink.operator.pppd import Pppd, file_stem, needs_of, program_of

_INTERFACES = Path("/sys/class/net")
# Above what pppd takes to ask a dead far end for its end, and to be done with that.
_SPARE_S = 3.0
# From the message to the closing of the tty.
_CLOSE_S = 0.5
# What a link has carried is said behind its end, and soon; a link that ends is not kept secret for longer.
_LAST_WORDS_S = 0.5

# Exit statuses (pppd(8)).
CAUSES = {
    0: "ended",
    1: "pppd: a fatal error",
    2: "pppd: wrong options",
    3: "pppd is not setuid root, and this is not root",
    4: "the kernel has no PPP",
    5: "ended by a signal",
    6: "pppd: the port cannot be locked",
    7: "pppd: the port cannot be opened",
    10: "no network protocol was negotiated",
    11: "the far end failed to authenticate itself",
    15: "the far end answers no echoes any more",
    16: "the modem hung up",
    17: "PPP loops back to this end",
    19: "the far end refused the authentication",
}

_UP = re.compile(r"remote IP address |local  LL address ")
_ATTACHED = re.compile(r"Link attached to ppp\d+")
# How often it is looked whether the interface of an attached link is up.
_LOOK_S = 0.1
_IFF_UP = 1
_DOWN = re.compile(r"Modem hangup|Connection terminated\.|Link terminated\.|Hangup \(SIGHUP\)|No response to \d+ echo-requests")
_INTERFACE = re.compile(r"(?:Using interface|New bundle|Link attached to) (ppp\d+)")
# Behind this the tty is no longer pppd's, whether its process lives or not: the first of a link in a bundle, the other one of
# a link alone, and of a whole bundle.
_RELEASED = re.compile(r"(?:Link|Connection) terminated\.")
_BYTES = re.compile(r"Sent (\d+) bytes, received (\d+) bytes\.")


def said_of(line: str) -> list[Said]:
    """What a message of pppd means.

    Examples
    --------
    >>> said_of("remote IP address 10.0.0.2"), said_of("Modem hangup"), said_of("Connect: ppp0 <--> /dev/ttyUSB0")
    ([Up()], [Down(cause='Modem hangup')], [])
    """
    if _UP.search(line):
        return [Up()]
    found = _BYTES.search(line)
    if found:
        return [Carried(bytes_in=int(found[2]), bytes_out=int(found[1]))]
    return [Down(line)] if _DOWN.search(line) else []


class PppdBackEnd:
    """Links of pppd.

    Parameters
    ----------
    bundle, secrets
        What its options and secrets are compiled from.
    folder
        Where options and logs are.
    secrets_folder
        Where pppd looks for secrets.
    profiles_folder
        That of ``bundle.toml``.
    program
        pppd, for tests another.
    is_root
        Whether this user may write what pppd reads. Others use what root has installed.
    """

    name = "pppd"

    def __init__(
        self,
        bundle: Bundle,
        secrets: Secrets,
        *,
        folder: Path,
        secrets_folder: Path = Path("/etc/ppp"),
        profiles_folder: Path = Path(),
        program: str | None = None,
        interfaces: Path = _INTERFACES,
        is_root: bool | None = None,
    ) -> None:
        self._bundle, self._secrets, self._folder, self._interfaces = bundle, secrets, folder, interfaces
        self._compiler = Pppd(folder, secrets_folder=secrets_folder, profiles_folder=profiles_folder)
        self._program = program_of(program)
        self._is_root = os.geteuid() == 0 if is_root is None else is_root
        self._options = {line.name: self._options_of(line) for line in bundle.ppp_lines}
        self._links: list[_PppdLink] = []
        self._lock: Lock | None = None

    def missing(self) -> str | None:
        """pppd, the kernel's PPP, or a right of this user."""
        return "; ".join(map(str, needs_of(self._bundle, self._compiler, program=self._program))) or None

    def prepare(self) -> list[str]:
        """Write options and secrets, and end what a killed operator left behind."""
        self._folder.mkdir(mode=0o755, parents=True, exist_ok=True)
        # A copy of the bundle in another folder has another journal and its lock: its pppds would be taken for left behind.
        # Without the right to write there, it is left out.
        with suppress(OutputError):
            self._lock = self._lock or Lock(self._folder / self._bundle.name)
        # An editor may have the options open, too.
        ended = orphans.end({"\0".join(options) for options in self._options.values()})
        if self._is_root:
            self._compiler.write(self._bundle, self._secrets)
        return [one.partition("\0")[2] for one in ended]

    def _options_of(self, line: Line) -> tuple[str, str]:
        """How pppd is told where the options of a line are."""
        if self._is_root:
            return "file", str(self._folder / f"{file_stem(self._bundle.name, line.name)}.options")
        return "call", self._compiler.peer(self._bundle, line)

    def delay_s(self, line: str) -> float:
        """The end that dials waits, so that its first request does not come before the far end listens."""
        role = next(one.role for one in self._bundle.lines if one.name == line)
        return self._bundle.ppp.connect_delay_s if role == "dial" else 0.0

    async def start(self, line: str, tty: int, tell: Listener) -> Link:  # noqa: ARG002
        """Start a pppd, which ends with its call (`persist` would never dial the first link of a bundle again)."""
        # A dead link asks in vain for its end, so long.
        patience_s = self._bundle.ppp.lcp_restart_s + _SPARE_S
        made = _PppdLink(self._log(line), tell, self._secrets.texts(), patience_s, self._interfaces)
        self._links = [one for one in self._links if one.is_running]
        self._links.append(made)
        # Messages go to the operator, which reads and keeps them.
        await made.start([self._program, *self._options[line], "logfd", "1"])
        return made

    def is_bundle_lost(self) -> bool:
        """Whether pppds have links that are up, and their interface is gone.

        That is what is left when the owner of the bundle was killed: the other pppds live, their links carry nothing, and the
        far end keeps its old bundle, so a redialled first link gets no address. All of them have to be ended and dialled anew.
        """
        names = {one.interface for one in self._links if one.is_up and one.interface is not None}
        return any(not (self._interfaces / name).exists() for name in names)

    async def tear_down(self) -> None:
        """End all: SIGTERM to the owner ends the whole bundle, and nothing else may be used for one link."""
        links, self._links = self._links, []
        await asyncio.gather(*(one.end(signal.SIGTERM) for one in links))

    def _log(self, line: str) -> Path:
        return self._folder / f"{file_stem(self._bundle.name, line)}.log"


class _PppdLink:
    """One pppd.

    Attributes
    ----------
    is_up
        Whether its link is up.
    interface
        That of its bundle.
    """

    def __init__(self, log: Path, tell: Listener, secrets: tuple[str, ...], patience_s: float, interfaces: Path) -> None:
        self._interfaces = interfaces
        self._log, self._tell, self._secrets, self._patience_s = log, tell, secrets, patience_s
        self._process: Process | None = None
        self._cause: str | None = None
        self._last_words: asyncio.TimerHandle | None = None
        self._is_told = self._is_owner = self._is_in_bundle = False
        self._released = asyncio.Event()
        self.is_up = False
        self.interface: str | None = None

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.is_running

    async def start(self, arguments: list[str]) -> None:
        # Its options name the port. As standard input, which `nodetach` never closes, the port would stay open and locked when
        # the link of the bundle's owner is lost.
        self._process = await Process.start(arguments, tty=subprocess.DEVNULL, said=self._said, ended=self._ended)

    async def hang_up(self, *, ends_bundle: bool = False) -> None:
        """End this link, and wait until its tty is free.

        SIGHUP closes only this link, also that of the bundle's owner, whose process then lives on. SIGTERM to the owner would
        end the whole bundle: it is the last resort, as is SIGKILL.
        """
        if ends_bundle:
            await self.end(signal.SIGTERM)
            return
        if self._process is None or not self.is_running:
            return
        if not self._released.is_set():
            self._process.send(signal.SIGHUP)
        with suppress(TimeoutError):
            async with asyncio.timeout(self._patience_s):
                await self._released.wait()
        if not self._released.is_set():
            await self.end(signal.SIGTERM if self._is_owner else signal.SIGKILL)
        until = asyncio.get_running_loop().time() + _CLOSE_S
        while self.is_running and asyncio.get_running_loop().time() < until:
            await asyncio.sleep(0.02)

    async def end(self, number: int) -> None:
        if self._process is not None:
            await self._process.end(number)

    def _said(self, line: str) -> None:
        keep(self._log, line, self._secrets)
        interface = _INTERFACE.search(line)
        if interface:
            self.interface = interface[1]
        self._is_owner = self._is_owner or "New bundle" in line
        self._is_in_bundle = self._is_in_bundle or self._is_owner or "Link attached" in line
        for one in said_of(line):
            if isinstance(one, Down):
                # The process may live on as the owner of the bundle; the link is over all the same.
                self._over(one.cause)
            elif isinstance(one, Carried):
                # In a bundle pppd counts what all links have carried, not this one.
                if not self._is_in_bundle:
                    self._tell(one)
            elif self._cause is None:
                self.is_up = self.is_up or isinstance(one, Up)
                self._tell(one)
        if _ATTACHED.search(line):
            self._look()
        if _RELEASED.search(line):
            self._free()

    def _look(self) -> None:
        """An attached link is up as soon as its bundle is: the addresses are negotiated over another link, perhaps later."""
        if self._cause is not None or self.is_up:
            return
        if self.interface is not None and _is_interface_up(self._interfaces / self.interface):
            self.is_up = True
            self._tell(Up())
        else:
            asyncio.get_running_loop().call_later(_LOOK_S, self._look)

    def _ended(self, status: int) -> None:
        self._over(CAUSES.get(status, f"pppd ended with {status}"))
        self._free()

    def _over(self, cause: str) -> None:
        if self._cause is None:
            self._cause, self.is_up = cause, False
            self._last_words = asyncio.get_running_loop().call_later(_LAST_WORDS_S, self._tell_end)

    def _free(self) -> None:
        self._released.set()
        self._tell_end()

    def _tell_end(self) -> None:
        if not self._is_told and self._cause is not None:
            self._is_told = True
            if self._last_words is not None:
                self._last_words.cancel()
            self._tell(Down(self._cause))


def _is_interface_up(folder: Path) -> bool:
    try:
        return bool(int((folder / "flags").read_text(), 16) & _IFF_UP)
    except (OSError, ValueError):
        return False

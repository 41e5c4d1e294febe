"""Links of farlink's own PPP: one process for a bundle, which gets the tty of each call and needs no kernel PPP.

Its messages say what is up, so nothing is inferred from a process. A link that is hung up leaves the others as they are, the
first one too.
"""

from __future__ import annotations

import asyncio
import json
import signal
import socket
import sys
from contextlib import suppress
from functools import partial
from pathlib import Path

from farlink.errors import OutputError
from farlink.operator.backend import orphans
from farlink.operator.backend.kept_log import keep
from farlink.operator.backend.link import Carried, Down, Link, Listener, Up
from farlink.operator.backend.own_ppp_config import config_text, secrets_text
from farlink.operator.backend.process import Process
from farlink.operator.config.bundle import Bundle
from farlink.operator.config.secrets_file import Secrets
from farlink.operator.journal.lock import Lock
from farlink.operator.pppd.needs import Need
from farlink.output import whole_file

# Isolated, so that neither the folder nor the environment of the caller says what is imported.
_COMMAND = [sys.executable, "-I", "-c", "from farlink.net.ppp_bundles import serve_operator; serve_operator()"]
_DEVICE = Path("/dev/net/tun")
_STATUS = Path("/proc/self/status")
# Bit of CAP_NET_ADMIN (capabilities(7)).
_NET_ADMIN = 12
# From an order to the closing of the tty, and to the end of the process.
_PATIENCE_S = 5.0


class OwnPpp:
    """Links of farlink's own PPP.

    Parameters
    ----------
    bundle, secrets
        What its configuration is compiled from.
    folder
        Where its configuration and its log are.
    command
        Starts the process; for tests another.
    """

    name = "farlink"

    def __init__(self, bundle: Bundle, secrets: Secrets, *, folder: Path, command: list[str] | None = None) -> None:
        self._bundle, self._secrets, self._folder = bundle, secrets, folder
        self._config = folder / f"{bundle.name}.ppp.toml"
        self._command = [*(command or _COMMAND), str(self._config)]
        self._log = folder / f"{bundle.name}.ppp.log"
        self._lock: Lock | None = None
        self._process: Process | None = None
        self._orders: socket.socket | None = None
        self._links: dict[str, _OwnLink] = {}
        self._has_network = False
        self._why = ""
        self._starting = asyncio.Lock()
        # How many times the process was started.
        self._times = 0

    def missing(self) -> str | None:
        """TUN devices, or the right to make one."""
        return "; ".join(map(str, needs_of_own_ppp())) or None

    def prepare(self) -> list[str]:
        """Write the configuration, and end what a killed operator left behind."""
        self._folder.mkdir(mode=0o755, parents=True, exist_ok=True)
        with suppress(OutputError):
            self._lock = self._lock or Lock(self._folder / self._bundle.name)
        # An editor may have the configuration open, too.
        ended = orphans.end({"\0".join(self._command[-2:])})
        secrets = self._config.with_suffix(".secrets.toml")
        for path, text in (
            (secrets, secrets_text(self._bundle, self._secrets)),
            (self._config, config_text(self._bundle, secrets)),
        ):
            with whole_file(path, mode=0o600) as temporary:
                temporary.write_text(text, encoding="utf-8")
        return [one.partition("\0")[2] for one in ended]

    def delay_s(self, line: str) -> float:
        """The end that dials waits, so that its first request does not come before the far end listens."""
        role = next(one.role for one in self._bundle.lines if one.name == line)
        return self._bundle.ppp.connect_delay_s if role == "dial" else 0.0

    async def start(self, line: str, tty: int, tell: Listener) -> Link:
        """Hand the tty of a call over.

        Raises
        ------
        OSError
            If the process cannot be started, or takes no orders.
        """
        # Calls come up together, and there is one process for all.
        async with self._starting:
            if self._process is None or not self._process.is_running:
                await self._start_process()
        made = self._links[line] = _OwnLink(self, line, tell, self._times)
        self._order({"attach": line}, tty)
        return made

    def is_bundle_lost(self) -> bool:
        """Never: when the process ends, each link is told to be down."""
        return False

    async def tear_down(self) -> None:
        """End the process, which ends each line in order."""
        process, self._process = self._process, None
        if self._orders is not None:
            self._orders.close()
            self._orders = None
        if process is not None:
            await process.end(signal.SIGTERM)

    async def _start_process(self) -> None:
        if self._orders is not None:
            self._orders.close()
        self._has_network, self._why = False, ""
        self._times += 1
        own, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        own.setblocking(False)
        self._orders = own
        with other:
            ended = partial(self._ended, self._times)
            self._process = await Process.start(self._command, tty=other.fileno(), said=self._said, ended=ended)

    def _order(self, order: dict[str, str], tty: int | None = None) -> None:
        if self._orders is None:
            raise OSError(32, "the process that carries PPP has ended")
        socket.send_fds(self._orders, [json.dumps(order).encode()], [] if tty is None else [tty])

    async def give_back(self, line: str, link: _OwnLink) -> None:
        """Ask for the tty of a line back, and wait until it is closed there."""
        if self._links.get(line) is not link:
            return
        with suppress(OSError, TimeoutError):
            self._order({"detach": line})
            async with asyncio.timeout(_PATIENCE_S):
                await link.released.wait()
        if not link.released.is_set() and self._process is not None:
            # It would keep the tty, and the call.
            await self._process.end(signal.SIGKILL)
        if self._links.get(line) is link:
            del self._links[line]

    def _said(self, text: str) -> None:
        try:
            event = json.loads(text)
            kind, line, words = event["kind"], event["line"], event["text"]
        except (ValueError, TypeError, KeyError):
            keep(self._log, text, self._secrets.texts())
            return
        if kind != "carried":
            keep(self._log, f"{kind}: {line}: {words}" if line else f"{kind}: {words}", self._secrets.texts())
        if kind == "failed":
            self._why = words
        if kind in ("network", "no-network"):
            self._has_network = kind == "network"
            for one in list(self._links.values()):
                one.network(is_up=self._has_network)
        link = self._links.get(line)
        if link is not None:
            link.said(kind, words, has_network=self._has_network)

    def _ended(self, times: int, status: int) -> None:
        """A process has ended, with its lines; the next one may run already."""
        why = self._why or f"the process that carries PPP ended with {status}"
        for line, link in list(self._links.items()):
            if link.times == times:
                del self._links[line]
                link.over(why)
                link.released.set()


class _OwnLink:
    """The link of one line, on one call.

    Attributes
    ----------
    times
        Which start of the process it belongs to.
    released
        Set when its tty is closed in the process.
    """

    def __init__(self, of: OwnPpp, line: str, tell: Listener, times: int) -> None:
        self._of, self._line, self._tell, self.times = of, line, tell, times
        self._is_member = self._is_up = self._is_over = False
        self.released = asyncio.Event()

    async def hang_up(self, *, ends_bundle: bool = False) -> None:  # noqa: ARG002
        """Close the tty there; the other lines stay as they are."""
        await self._of.give_back(self._line, self)

    def network(self, *, is_up: bool) -> None:
        """Packets can be carried, or no longer: a line alone, whose addresses are not agreed on, is not up."""
        if is_up and self._is_member and not self._is_up and not self._is_over:
            self._is_up = True
            self._tell(Up())

    def said(self, kind: str, words: str, *, has_network: bool) -> None:
        """The process' reports on its line."""
        match kind:
            case "up":
                self._is_member = True
                self.network(is_up=has_network)
            case "down":
                self.over(words)
            case "detached":
                self.released.set()
            case "carried":
                bytes_in, _, bytes_out = words.partition(" ")
                self._tell(Carried(bytes_in=int(bytes_in), bytes_out=int(bytes_out)))

    def over(self, cause: str) -> None:
        """It is down, for good: the call is hung up then."""
        if not self._is_over:
            self._is_over = True
            self._tell(Down(cause))


def needs_of_own_ppp() -> list[Need]:
    """The needs that this machine, or this user, lacks."""
    found = [] if _DEVICE.exists() else [Need(f"this machine has no {_DEVICE}", "modprobe tun")]
    if not _may_change_network():
        remedy = "run it with sudo, or as a service with AmbientCapabilities=CAP_NET_ADMIN"
        found.append(Need("this user may make no TUN device (CAP_NET_ADMIN)", remedy))
    return found


def _may_change_network() -> bool:
    for row in _STATUS.read_text(encoding="utf-8").splitlines():
        if row.startswith("CapEff:"):
            return bool(int(row.partition(":")[2], 16) >> _NET_ADMIN & 1)
    return False

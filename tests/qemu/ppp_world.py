"""Both ends of a bundle in one guest: a bank of modems between them, and pppd at each end of each call.

Runs in the guest. The near end dials and has the guest's own namespaces; the far end answers and has its own network and its
own `/run`, since pppd joins bundles by a database there. This stands in the place of the operator until that dials: for each
modem the dialogue of `farlink.operator.at`, then one pppd for each call, with the options of `farlink.operator.pppd`.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import fcntl
import os
import re
import select
import signal
import socket
import time
import tty
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any

from farlink.operator.at import Dialogue, State
from farlink.operator.at import events as ev
from farlink.operator.at.profiles import Profile
from farlink.operator.at.profiles import load as load_profile
from farlink.operator.bank import Ports, of_options, serve
from farlink.operator.config import Bundle, Secrets, load
from farlink.operator.pppd import Pppd
from tests.qemu.places import ADDRESSES, MissedError, Place, until
from tests.qemu.traffic import Stream

_BANK = Path("/tmp/modems")


class End(Place):
    """One end of a bundle: its namespaces, its configuration, its files.

    Parameters
    ----------
    name
        `near` or `far`.
    lines
        How many lines it has.
    folder
        Where its files are made.
    ppp, top
        Lines of ``bundle.toml``: of the table ``[ppp]``, and before the tables.
    """

    def __init__(self, name: str, lines: int, folder: Path, *, ppp: str = "", top: str = "") -> None:
        super().__init__(name)
        self.folder = folder / name
        self.folder.mkdir(parents=True, exist_ok=True)
        self.bundle, self.secrets = self._configured(lines, ppp, top)
        self.profiles: list[Profile] = [load_profile(line.profile) for line in self.bundle.lines]

    def _configured(self, lines: int, ppp: str, top: str) -> tuple[Bundle, Secrets]:
        other = "far" if self.name == "near" else "near"
        text = f'name = "camp"\nuser = "camp"\nsecrets = "secrets.toml"\n{top}\n'
        text += f'[ppp]\nlocal = "{ADDRESSES[self.name]}"\nremote = "{ADDRESSES[other]}"\n{ppp}\n'
        for at in range(lines):
            modem = 2 * at + (1 if self.name == "near" else 2)
            text += f'[[line]]\nname = "line-{at + 1}"\nport = "{_BANK}/modem-{modem}"\nprofile = "iridium-9522b"\n'
            text += f'number = "00{number_of(modem + 1)}"\n' if self.name == "near" else 'role = "answer"\n'
        (self.folder / "bundle.toml").write_text(text)
        secrets = self.folder / "secrets.toml"
        secrets.write_text('password = "canary-of-camp"\n')
        secrets.chmod(0o600)
        return load(self.folder / "bundle.toml")

    def write_options(self) -> None:
        """Options of each line, and the secrets, which pppd reads from `/etc/ppp` only: both ends have the same."""
        Pppd(self.folder).write(self.bundle, self.secrets)

    def options(self, at: int) -> Path:
        """The options of a line."""
        return self.folder / f"camp@line-{at + 1}.options"

    def log(self, at: int) -> str:
        """What the pppd's of a line wrote."""
        path = self.folder / f"camp@line-{at + 1}.log"
        return path.read_text(errors="replace") if path.exists() else ""

    def interfaces(self) -> dict[str, dict[str, Any]]:
        """PPP interfaces as the kernel shows them: address, MTU, bytes received and sent."""
        found: dict[str, dict[str, Any]] = {}
        with self.network(), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asked:
            for row in Path("/proc/thread-self/net/dev").read_text().splitlines():
                name, _, counts = row.partition(":")
                if (name := name.strip()).startswith("ppp"):
                    numbers = counts.split()
                    address, is_up = _address(asked, name)
                    seen = {"received": int(numbers[0]), "sent": int(numbers[8]), "address": address, "is_up": is_up}
                    found[name] = seen | {"mtu_bytes": _mtu_bytes(asked, name)}
        return found


def number_of(modem: int) -> int:
    """Number of a modem of the bank, from 1."""
    return 881_600_005_000 + modem


def _address(asked: socket.socket, interface: str) -> tuple[str | None, bool]:
    """The address of an interface, and whether it is up."""
    request = interface.encode().ljust(40, b"\0")
    try:
        flags = fcntl.ioctl(asked, 0x8913, request)  # SIOCGIFFLAGS
        answer = fcntl.ioctl(asked, 0x8915, request)  # SIOCGIFADDR
    except OSError as error:
        if error.errno not in (errno.EADDRNOTAVAIL, errno.ENODEV):
            raise
        return None, False
    return socket.inet_ntoa(answer[20:24]), bool(flags[16] & 1)


def _mtu_bytes(asked: socket.socket, interface: str) -> int | None:
    try:
        answer = fcntl.ioctl(asked, 0x8921, interface.encode().ljust(40, b"\0"))  # SIOCGIFMTU
    except OSError:
        return None
    return int.from_bytes(answer[16:20], "little")


class Phone:
    """The port of one modem at one end: the dialogue that makes a call, then pppd over it."""

    def __init__(self, end: End, at: int) -> None:
        self.end, self.at = end, at
        self.pppd: asyncio.subprocess.Process | None = None
        self._earlier: list[asyncio.subprocess.Process] = []
        self._loop = asyncio.get_running_loop()
        self._port = -1
        self._timer: asyncio.TimerHandle | None = None
        self._dialogue = Dialogue(end.profiles[at])
        self.events: list[ev.Event] = []

    @property
    def state(self) -> State:
        """Of the dialogue."""
        return self._dialogue.state

    def open(self) -> None:
        """Open the port and begin the dialogue anew."""
        self.close()
        self._port = os.open(self.end.bundle.lines[self.at].port, os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK)
        tty.setraw(self._port)
        self._dialogue = Dialogue(self.end.profiles[self.at])
        self.events.clear()
        self._dialogue.start(self._loop.time())
        self._loop.add_reader(self._port, self._read)
        self._feed(b"")

    def dial(self) -> None:
        """Dial the number of the line."""
        self.events += self._dialogue.dial(self.end.bundle.lines[self.at].number, self._loop.time())
        self._feed(b"")

    def _read(self) -> None:
        try:
            data = os.read(self._port, 4096)
        except OSError:
            data = b""
        if not data:
            self._stop()
        self._feed(data)

    def _feed(self, data: bytes) -> None:
        found = self._dialogue.feed(data, self._loop.time())
        self.events += found
        if any(isinstance(event, ev.Ringing) for event in found) and self._dialogue.state is State.READY:
            self._dialogue.answer(self._loop.time())
        if self._dialogue.state is State.ONLINE:
            self._stop()
            return
        if written := self._dialogue.poll_output():
            os.write(self._port, written)
        if self._timer is not None:
            self._timer.cancel()
        due = self._dialogue.poll_timeout()
        self._timer = None if due is None else self._loop.call_at(due, self._feed, b"")

    def _stop(self) -> None:
        """Read no more: from now on the port is pppd's."""
        self._loop.remove_reader(self._port)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    async def start_pppd(self, *more: str) -> None:
        """Start pppd on the port, as the options of the line say it; further options go behind them."""
        words = [*self.end.inside, "pppd", "file", str(self.end.options(self.at)), *more]
        if self.lives:
            # The owner of the bundle lives on when its link is lost, and ends with the bundle.
            assert self.pppd is not None
            self._earlier.append(self.pppd)
        out = (self.end.folder / f"line-{self.at + 1}.out").open("ab")
        self.pppd = await asyncio.create_subprocess_exec(
            *words, stdin=asyncio.subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True
        )
        out.close()

    @property
    def lives(self) -> bool:
        """Whether the pppd of the last call is there."""
        return self.pppd is not None and self.pppd.returncode is None

    @property
    def has_carrier(self) -> bool:
        """Whether the port is open, and no hang-up has come: what a link is known by, since a pid is none."""
        if self._port < 0:
            return False
        poll = select.poll()
        poll.register(self._port, 0)
        return not any(mask & (select.POLLHUP | select.POLLERR) for _, mask in poll.poll(0))

    @property
    def all_pppds(self) -> list[asyncio.subprocess.Process]:
        """Those that live, of this call and of calls before it."""
        started = [*self._earlier, *([] if self.pppd is None else [self.pppd])]
        return [one for one in started if one.returncode is None]

    def signal(self, number: int) -> None:
        """Send a signal to pppd."""
        if self.pppd is not None and self.pppd.returncode is None:
            self.pppd.send_signal(number)

    async def ended(self, within_s: float = 20.0) -> int:
        """Wait for the end of pppd: its status."""
        assert self.pppd is not None
        await until(lambda: not self.lives, f"end of pppd of line {self.at + 1}, {self.end.name}", within_s)
        assert self.pppd.returncode is not None
        return self.pppd.returncode

    def close(self) -> None:
        """Close the port, so that DTR falls."""
        if self._port >= 0:
            self._stop()
            os.close(self._port)
            self._port = -1


def _is_ready(end: End) -> bool:
    interface = end.interfaces().get("ppp0", {"is_up": False})
    return interface["is_up"] and interface["address"] == ADDRESSES[end.name]


class World:
    """Two ends and the bank between them."""

    def __init__(self, ends: dict[str, End], ports: Ports) -> None:
        self.ends, self.ports = ends, ports
        self.lines = len(ends["near"].bundle.lines)
        self.near = [Phone(ends["near"], at) for at in range(self.lines)]
        self.far = [Phone(ends["far"], at) for at in range(self.lines)]

    def pair(self, at: int) -> tuple[Phone, Phone]:
        """Both ends of a line."""
        return self.near[at], self.far[at]

    async def call(self, at: int) -> None:
        """Have the near modem dial, and the far one answer."""
        near, far = self.pair(at)
        near.close()
        far.close()
        # As long as DTR has to be low until a modem takes it for the end of a call.
        await asyncio.sleep(0.3)
        near.open()
        far.open()
        await until(lambda: near.state is far.state is State.READY, f"modems of line {at + 1} ready", 60)
        near.dial()
        await until(lambda: near.state is far.state is State.ONLINE, f"call of line {at + 1}", 90)

    async def start(self, at: int, more: tuple[str, ...] = (), *, far_only: tuple[str, ...] = ()) -> None:
        """Start pppd at both ends; the end that dials gives the other one time to read."""
        near, far = self.pair(at)
        await far.start_pppd(*more, *far_only)
        await asyncio.sleep(near.end.bundle.ppp.connect_delay_s)
        await near.start_pppd(*more)

    async def attach(self, at: int, within_s: float = 60.0, more: tuple[str, ...] = ()) -> float:
        """Start pppd at both ends, and wait until each says that its link is in the bundle; returns how long that took."""
        begin = time.monotonic()
        phones = self.pair(at)
        before = [joined(phone) for phone in phones]
        await self.start(at, more)
        await until(
            lambda: all(joined(phone) > count for phone, count in zip(phones, before, strict=True)),
            f"line {at + 1} in the bundle",
            within_s,
        )
        return time.monotonic() - begin

    async def bring_up(self, at: int, **how: Any) -> float:
        """Call, then attach."""
        await self.call(at)
        return await self.attach(at, **how)

    async def addressed(self, within_s: float = 60.0) -> None:
        """Wait until ppp0 of both ends is up and has its address."""
        for name, end in self.ends.items():
            await until(partial(_is_ready, end), f"address of the {name} end", within_s)

    def drop(self, at: int) -> None:
        """The bank loses the call of a line: a hang-up for both pppds."""
        self.ports.do(f"modem-{2 * at + 1}", "drop")

    async def drop_late(self, at: int, late: str, after_s: float) -> None:
        """The call of a line is lost: one end has a hang-up at once, the `late` one after so many seconds."""
        self.deafen(at)
        early = 2 * at + (2 if late == "near" else 1)
        next(port for port in self.ports.ports if port.modem.name == f"modem-{early}").lose_carrier()
        await asyncio.sleep(after_s)
        self.drop(at)
        self.hear(at)

    def deafen(self, at: int) -> None:
        """The call of a line stays up and carries nothing."""
        self.ports.do(f"modem-{2 * at + 1}", "deaf")

    def hear(self, at: int) -> None:
        """The call of a line carries bytes again."""
        self.ports.do(f"modem-{2 * at + 1}", "normal")

    def carried(self) -> list[int | None]:
        """How many bytes each call has carried to the far end."""
        return [self.ports.carried_bytes(f"modem-{2 * at + 1}") for at in range(self.lines)]

    async def used(self, packets: int = 6, length: int = 200, every_s: float = 0.25, within_s: float = 8.0) -> dict[str, Any]:
        """Send packets through the bundle: how many arrive, and over which lines their bytes went."""
        before = self.carried()
        stream = Stream(self.ends, length=length, every_s=every_s)
        stream.start(packets)
        with contextlib.suppress(MissedError):
            await until(lambda: len(stream.arrived) == packets, "packets", packets * every_s + within_s)
        stream.close()
        after = self.carried()
        bytes_of = [0 if b is None or a is None else b - a for a, b in zip(before, after, strict=True)]
        return {"sent": packets, "arrived": len(stream.arrived), "bytes": bytes_of}

    async def close(self) -> None:
        """End every pppd and close every port."""
        phones = [*self.near, *self.far]
        for number in (signal.SIGTERM, signal.SIGKILL):
            for phone in phones:
                for one in phone.all_pppds:
                    one.send_signal(number)
            with contextlib.suppress(MissedError):
                await until(lambda: not any(phone.all_pppds for phone in phones), "end of all pppds", 15)
        for phone in phones:
            phone.close()


_JOINED = re.compile(r"New bundle ppp\d+ created|Link attached to ppp\d+")
_LEFT = re.compile(r"(?:Link|Connection) terminated\.|Modem hangup")
_GAVE_UP = re.compile(r"No response to \d+ echo-requests")


def joined(phone: Phone) -> int:
    """How many times a link of this line has become part of a bundle."""
    return len(_JOINED.findall(phone.end.log(phone.at)))


def why_left(phone: Phone) -> str | None:
    """Why the link is no longer part of the bundle, by what its pppd says; None while it is.

    Neither carrier nor the process tells: a pppd that gives its link up leaves the call as it is, and the owner of the bundle
    lives on without a link.
    """
    said = _JOINED.split(phone.end.log(phone.at))[-1]
    left = _LEFT.search(said)
    if left is None:
        return None if phone.lives else "pppd has ended"
    return (_GAVE_UP.search(said) or left)[0]


async def play(
    act: Callable[[World], Awaitable[dict[str, Any]]],
    folder: Path,
    *,
    lines: int = 2,
    ppp: str = "",
    top: str = "",
    set_up_s: float = 0.2,
    **bank: Any,
) -> dict[str, Any]:
    """Have both ends and a bank, and do something with them.

    Parameters
    ----------
    act
        What is done; it returns what was seen.
    folder
        Where logs are kept.
    lines
        Of each end.
    ppp, top
        Lines of ``bundle.toml`` of both ends.
    set_up_s
        From the answer of a modem to CONNECT.
    bank
        Options of the bank.
    """
    begin = time.monotonic()
    told: list[str] = []
    config = of_options(**{"modems": 2 * lines, "rate_bps": 19200, "delay_s": 0.05, **bank})
    config = type(config)(**{**vars(config), "set_up_s": set_up_s})
    held: asyncio.Future[Ports] = asyncio.get_running_loop().create_future()
    waiting: list[Ports] = []
    banking = asyncio.ensure_future(
        serve(
            config,
            folder=_BANK,
            ready=lambda _: held.set_result(waiting[0]),
            tell=lambda at_s, said: told.append(f"{at_s:.2f} {said}"),
            control=waiting.append,
        )
    )
    ends: dict[str, End] = {}
    world = None
    try:
        await asyncio.wait({held, banking}, return_when=asyncio.FIRST_COMPLETED)
        if banking.done():
            banking.result()
        for name in ("near", "far"):
            ends[name] = End(name, lines, folder, ppp=ppp, top=top)
            ends[name].write_options()
        world = World(ends, await held)
        try:
            found = await act(world)
        except (MissedError, AssertionError) as error:
            found = {"error": f"{type(error).__name__}: {error}", "events": [repr(phone.events[-4:]) for phone in world.near]}
    finally:
        if world is not None:
            await world.close()
        for end in ends.values():
            end.close()
        banking.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await banking
        # Joining bundles by what a former row left there would be wrong.
        for name in ("pppd2.tdb",):
            Path("/run", name).unlink(missing_ok=True)
    (folder / "bank.log").write_text("".join(f"{line}\n" for line in told))
    return {**found, "took_s": time.monotonic() - begin}

"""The terminals of a bank: each modem is a pty, whose name stays although each loss of carrier brings a new one."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import fcntl
import os
import select
import signal
import struct
import tempfile
import tty
from collections.abc import Callable, Iterator
from pathlib import Path

from farlink.errors import OperatorError
from farlink.operator.bank.config import ACTIONS, BankConfig, Scripted
from farlink.operator.bank.exchange import Exchange
from farlink.operator.bank.modem import Modem

# How often it is asked whether somebody has opened a terminal: Linux wakes nobody for it.
_LOOK_S = 0.05
_READ_BYTES = 4096
# Bytes that a terminal without a reader may leave behind in the modem.
_MOST_UNREAD_BYTES = 1 << 16
# Linux' line discipline of a terminal, which termios of Python does not know.
_TIOCGETD, _N_TTY = 0x5424, 0
_INT = struct.Struct("i")


class Port:
    """The terminal of one modem.

    Parameters
    ----------
    modem
        Whose it is.
    exchange
        Gets what is typed.
    link
        Symbolic link that names the pty.
    settle
        Called after something was typed or closed.
    """

    def __init__(self, modem: Modem, exchange: Exchange, link: Path, settle: Callable[[], None]) -> None:
        self.modem = modem
        self.link = link
        self._exchange = exchange
        self._settle = settle
        self._loop = asyncio.get_running_loop()
        self._look: asyncio.TimerHandle | None = None
        self._is_read = False
        self._open()

    def write(self) -> None:
        """Write what the modem says: nothing to a closed terminal, and 64 KB at most to one that is not read."""
        output = self.modem.output
        if not self.modem.has_dtr:
            output.clear()
        if output:
            with contextlib.suppress(BlockingIOError, OSError):
                del output[: os.write(self._master, output)]
        del output[:-_MOST_UNREAD_BYTES]
        if output:
            self._loop.add_writer(self._master, self.write)
        else:
            self._loop.remove_writer(self._master)

    def lose_carrier(self) -> None:
        """Close the pty, so that whoever has it open gets a hang-up, and put a new one in its place."""
        former = self._detached()
        # The name stands for the new one before anybody learns of the end of the old one, and may open it again.
        self._open()
        os.close(former)

    def close(self) -> None:
        """Close the pty and remove its name."""
        os.close(self._detached())
        self.link.unlink(missing_ok=True)

    def _open(self) -> None:
        self._master, slave = os.openpty()
        tty.setraw(slave)
        os.set_blocking(self._master, False)
        temporary = self.link.with_name(f".{self.link.name}.new")
        temporary.unlink(missing_ok=True)
        temporary.symlink_to(os.ttyname(slave))
        temporary.replace(self.link)
        # From now on the master says whether the pty is open elsewhere.
        os.close(slave)
        self.modem.has_dtr = False
        self._look = self._loop.call_later(_LOOK_S, self._look_for_dtr)

    def _detached(self) -> int:
        """The pty, which is watched no longer."""
        if self._look is not None:
            self._look.cancel()
        self._loop.remove_reader(self._master)
        self._loop.remove_writer(self._master)
        self._is_read = False
        return self._master

    def _look_for_dtr(self) -> None:
        """See whether somebody has the terminal open; and read it again where the buffer of its call was full."""
        self._look = self._loop.call_later(_LOOK_S, self._look_for_dtr)
        poll = select.poll()
        poll.register(self._master, 0)
        is_open = not any(mask & select.POLLHUP for _, mask in poll.poll(0))
        if is_open != self.modem.has_dtr:
            # Bytes that were written before the end are still to be read; those for which a full call has no room end with it.
            if not is_open:
                self._read()
                self._forget()
            self.modem.has_dtr = is_open
            if not is_open:
                self._stop_reading()
                if not self._is_plain():
                    self.lose_carrier()
                self._exchange.closed(self.modem, self._loop.time())
                self._settle()
        if self.modem.has_dtr and not self._is_read:
            self._loop.add_reader(self._master, self._read)
            self._is_read = True

    def _forget(self) -> None:
        """Drop what the terminal holds: at the next opening the modem would take it for commands."""
        with contextlib.suppress(OSError):  # EIO or EAGAIN: there is no more
            while os.read(self._master, 1 << 16):
                pass

    def _is_plain(self) -> bool:
        """Whether the closed terminal is one of text again.

        A killed pppd leaves it to PPP. A serial port forgets that when it is closed; a pty does not while its master is open.
        """
        try:
            terminal = os.open(self.link, os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK)
        except OSError:
            return False
        try:
            discipline = fcntl.ioctl(terminal, _TIOCGETD, b"\0" * _INT.size)
        except OSError:
            return False
        finally:
            os.close(terminal)
        return discipline == _INT.pack(_N_TTY)

    def _stop_reading(self) -> None:
        self._loop.remove_reader(self._master)
        self._is_read = False

    def _read(self) -> None:
        now = self._loop.time()
        room = self._exchange.room(self.modem, now)
        if room == 0:
            self._stop_reading()
            return
        try:
            data = os.read(self._master, min(room, _READ_BYTES))
        except BlockingIOError:
            return
        except OSError as error:
            if error.errno != errno.EIO:  # EIO: closed elsewhere
                raise
            self._stop_reading()
            return
        self._exchange.typed(self.modem, data, now)
        self._settle()


class Ports:
    """All ports, and the timer of their exchange.

    Parameters
    ----------
    exchange
        Of their modems.
    folder
        Where the names of the terminals are made.

    Attributes
    ----------
    ports
        One for each modem.
    """

    def __init__(self, exchange: Exchange, folder: Path) -> None:
        self._exchange = exchange
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self.ports: list[Port] = []
        for name, modem in exchange.modems.items():
            self.ports.append(Port(modem, exchange, folder / name, self.settle))

    def settle(self) -> None:
        """Write what modems say, hang up whose carrier is lost, and wait for what is next."""
        self._exchange.advance(self._loop.time())
        for port in self.ports:
            if self._exchange.take_lost(port.modem):
                port.lose_carrier()
            port.write()
        if self._timer is not None:
            self._timer.cancel()
        due = self._exchange.poll_timeout()
        self._timer = None if due is None else self._loop.call_at(due, self.settle)

    def do(self, modem: str, action: str, level: int = 0) -> None:
        """Do something to a modem now, beside what is scripted: one of `ACTIONS`.

        Raises
        ------
        OperatorError
            If there is no such modem or action.
        """
        if modem not in self._exchange.modems:
            raise OperatorError(f"there is no modem {modem!r}", f"give one of {', '.join(self._exchange.modems)}")
        if action not in ACTIONS:
            raise OperatorError(f"{action!r} is nothing that is done to a modem", f"give one of {', '.join(ACTIONS)}")
        now = self._loop.time()
        self._exchange.do(Scripted(now, modem, action, level), now)
        self.settle()

    def carried_bytes(self, modem: str) -> int | None:
        """How many bytes of a modem have arrived at the other end of its call; None without a call."""
        return self._exchange.carried_bytes(self._exchange.modems[modem])

    def close(self) -> None:
        """Close and remove all of them."""
        if self._timer is not None:
            self._timer.cancel()
        for port in self.ports:
            port.close()


async def serve(
    config: BankConfig,
    *,
    folder: Path | None = None,
    duration_s: float | None = None,
    ready: Callable[[list[tuple[str, str, Path]]], None],
    tell: Callable[[float, str], None] | None = None,
    control: Callable[[Ports], None] | None = None,
) -> None:
    """Run a bank until it is cancelled, SIGINT or SIGTERM comes, or its time is over.

    Parameters
    ----------
    config
        The bank.
    folder
        Where the names of the terminals are made; by default a new one below the temporary folder. It is removed at the end if
        it was not there before.
    duration_s
        How long; by default without end.
    ready
        Gets name, number and path of each modem.
    tell
        Gets what happens: seconds since the start, and a text.
    control
        Gets the ports before they are ready, for a program that does something to modems while the bank runs in its own loop.

    Raises
    ------
    OperatorError
        If the folder cannot be used, or another bank uses it.
    """
    loop = asyncio.get_running_loop()
    begin = loop.time()
    events = tuple(type(one)(begin + one.at_s, one.modem, one.action, one.level) for one in config.events)
    told = None if tell is None else lambda now, said: tell(now - begin, said)
    exchange = Exchange(BankConfig(**{**vars(config), "events": events}), told)
    with _folder(folder, list(exchange.modems)) as used:
        ports = Ports(exchange, used)
        stop = asyncio.Event()
        for number in (signal.SIGINT, signal.SIGTERM):
            with contextlib.suppress(RuntimeError, ValueError):  # not in the main thread
                loop.add_signal_handler(number, stop.set)
        try:
            if control is not None:
                control(ports)
            ready([(port.modem.name, port.modem.number, port.link) for port in ports.ports])
            ports.settle()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(stop.wait(), duration_s)
        finally:
            ports.close()
            for number in (signal.SIGINT, signal.SIGTERM):
                with contextlib.suppress(RuntimeError, ValueError):
                    loop.remove_signal_handler(number)


@contextlib.contextmanager
def _folder(folder: Path | None, names: list[str]) -> Iterator[Path]:
    """The folder of the names, which is this bank's alone."""
    if folder is None:
        with tempfile.TemporaryDirectory(prefix="farlink-bank-") as temporary:
            yield Path(temporary)
        return
    is_new = not folder.exists()
    try:
        folder.mkdir(exist_ok=True)
        lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    except OSError as error:
        raise OperatorError(f"cannot use the folder {folder}: {error.strerror}", "give another folder") from error
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise OperatorError(f"another bank of modems uses {folder}", "give each bank a folder of its own") from error
        # Links of a bank that was killed are replaced; anything else is the user's.
        taken = [name for name in names if (folder / name).exists() and not (folder / name).is_symlink()]
        if taken:
            raise OperatorError(f"{folder / taken[0]} exists and is no name of a modem", "give another folder, or remove it")
        yield folder
    finally:
        os.close(lock)
        if is_new:
            with contextlib.suppress(OSError):
                folder.rmdir()

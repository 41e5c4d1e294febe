"""Where the API listens: a Unix socket of its user's own, or an address, of this machine unless more is allowed."""

from __future__ import annotations

import ipaddress
import socket
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from farlink.errors import ArgumentError, OperatorError
from farlink.operator.live.control import bind_privately, short_name
from farlink.untrusted import printable

_BACKLOG = 64
_ALIVE_S = 1.0


class ListenError(OperatorError):
    """The address cannot be listened on."""

    exit_code = 1


@dataclass(frozen=True)
class Place:
    """Where to listen.

    Attributes
    ----------
    path
        A Unix socket; None for an address.
    host, port
        The address; port 0 for any that is free.
    is_remote
        Whether other machines may ask.
    """

    path: Path | None = None
    host: str = ""
    port: int = 0
    is_remote: bool = False

    def words(self, listener: socket.socket) -> str:
        """Where `listener`, which was made for it, listens."""
        if self.path is not None:
            return str(self.path)
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{listener.getsockname()[1]}"


def socket_of(journal: Path) -> Path:
    """The Unix socket of the API for a bundle with this journal."""
    return journal.with_name(f"{journal.name}.http")


def place_of(text: str, *, allow_remote: bool) -> Place:
    """The address in ``HOST:PORT``.

    Parameters
    ----------
    text
        The address: ``127.0.0.1:9464``, ``[::1]:9464``, ``localhost:9464``.
    allow_remote
        Whether it may be one that other machines reach.

    Raises
    ------
    ArgumentError
        If it is none, or other machines reach it and may not.

    Examples
    --------
    >>> place_of("127.0.0.1:9464", allow_remote=False)
    Place(path=None, host='127.0.0.1', port=9464, is_remote=False)
    >>> place_of("0.0.0.0:9464", allow_remote=False)
    Traceback (most recent call last):
        ...
    farlink.errors.ArgumentError: --listen 0.0.0.0:9464: other machines reach that address
    """
    shown = printable(text, 60)
    host, colon, port = text.rpartition(":")
    host = host[1:-1] if host.startswith("[") and host.endswith("]") else host
    if not colon or not port.isascii() or not port.isdecimal() or int(port) > 65535:
        raise ArgumentError(f"--listen {shown}: no address and port", "write for example 127.0.0.1:9464")
    if host == "localhost":
        host = "127.0.0.1"
    try:
        address = ipaddress.ip_address(host)
    except ValueError as error:
        message = f"--listen {shown}: {printable(host, 40)!r} is no IP address"
        raise ArgumentError(message, "write for example 127.0.0.1:9464 or [::1]:9464") from error
    if not address.is_loopback and not allow_remote:
        remedy = "listen at 127.0.0.1, or say --allow-remote: then every answer needs a token, and a proxy should add TLS"
        raise ArgumentError(f"--listen {shown}: other machines reach that address", remedy)
    return Place(host=host, port=int(port), is_remote=not address.is_loopback)


@contextmanager
def listening(place: Place) -> Iterator[socket.socket]:
    """A socket that listens there, and is gone behind the block; if another process has made one there since, that stays.

    Raises
    ------
    ListenError
        As `listener_of` does.
    """
    with listener_of(place) as listener:
        made = _file_at(place)
        try:
            yield listener
        finally:
            if place.path is not None and _file_at(place) == made:
                place.path.unlink(missing_ok=True)


def _file_at(place: Place) -> tuple[int, int, int] | None:
    """Which file is there; the number of one that is gone is given again."""
    if place.path is None:
        return None
    try:
        status = place.path.lstat()
    except OSError:
        return None
    return status.st_dev, status.st_ino, status.st_mtime_ns


def listener_of(place: Place) -> socket.socket:
    """A socket that listens there.

    Raises
    ------
    ListenError
        If that is not possible: a port that is taken, a folder that takes no socket.
    """
    return _at_address(place) if place.path is None else _at_path(place.path)


def _at_address(place: Place) -> socket.socket:
    family = socket.AF_INET6 if ":" in place.host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((place.host, place.port))
        listener.listen(_BACKLOG)
    except OSError as error:
        listener.close()
        message = f"cannot listen at {place.host} port {place.port}: {(error.strerror or str(error)).lower()}"
        raise ListenError(
            message, f"`ss -ltnp sport = :{place.port}` shows who has it; choose another with --listen"
        ) from error
    return listener


def _at_path(path: Path) -> socket.socket:
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
    try:
        _remove_left_over(path)
        bind_privately(listener, path)
        listener.listen(_BACKLOG)
    except OSError as error:
        listener.close()
        message = f"cannot listen at {path}: {(error.strerror or str(error)).lower()}"
        raise ListenError(message, "name another place with --socket, in a folder that you may write to") from error
    except ListenError:
        listener.close()
        raise
    return listener


def _remove_left_over(path: Path) -> None:
    """Remove the socket of a killed process; one that is in use, or another file, stays."""
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(mode):
        raise ListenError(f"{path} is no socket", "move it away, or name another place with --socket")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC) as asking:
        asking.settimeout(_ALIVE_S)
        try:
            with short_name(path) as name:
                asking.connect(name)
        except ConnectionRefusedError:
            path.unlink(missing_ok=True)
            return
    raise ListenError(f"cannot listen at {path}: another process does", "end it, or name another place with --socket")

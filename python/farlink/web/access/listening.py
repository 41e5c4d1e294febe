"""Where the dashboard listens, and by which names it may be asked."""

from __future__ import annotations

import ipaddress
import re
import socket
from collections.abc import Iterable
from dataclasses import dataclass

from farlink.errors import ArgumentError, TransferError
from farlink.untrusted import printable

_LOCAL_NAMES = ("localhost", "127.0.0.1", "::1")
_NAME = re.compile(r"(?=.{1,253}$)[a-z0-9_]([a-z0-9_-]{0,62})(\.[a-z0-9_]([a-z0-9_-]{0,62}))*\.?")


@dataclass(frozen=True)
class Listen:
    """An address and a port; port 0 is any that is free."""

    address: str
    port: int

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine reaches it."""
        return ipaddress.ip_address(self.address).is_loopback

    @property
    def shown(self) -> str:
        """As it stands in an address of the web."""
        return f"[{self.address}]:{self.port}" if ":" in self.address else f"{self.address}:{self.port}"


def listen_of(text: str) -> Listen:
    """An address from ``ADDRESS:PORT``, ``[ADDRESS]:PORT`` or ``PORT``, which is on this machine.

    Raises
    ------
    ArgumentError
        If it is none.

    Examples
    --------
    >>> listen_of("8090"), listen_of("[::1]:80").is_loopback
    (Listen(address='127.0.0.1', port=8090), True)
    """
    address, _, port = text.rpartition(":")
    address = address.removeprefix("[").removesuffix("]") or "127.0.0.1"
    address = "127.0.0.1" if address == "localhost" else address
    try:
        ipaddress.ip_address(address)
        is_port = port.isascii() and port.isdigit() and int(port[:6]) <= 65535
    except ValueError:
        is_port = False
    if not is_port:
        message = f"--listen {printable(text, 60)!r} is no address with a port"
        raise ArgumentError(message, "write for example 127.0.0.1:8090, [::1]:8090 or 8090")
    return Listen(address, int(port))


def bound(listen: Listen) -> socket.socket:
    """A socket that listens.

    Raises
    ------
    TransferError
        If the port is taken, or the address is not this machine's; `exit_code` is 1.
    """
    family = socket.AF_INET6 if ":" in listen.address else socket.AF_INET
    made = socket.socket(family, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind((listen.address, listen.port))
        made.listen(128)
    except OSError as error:
        made.close()
        message = f"cannot listen at {listen.shown}: {error.strerror}"
        raise TransferError(message, "give another port: --listen 127.0.0.1:PORT, or 0 for any", 1) from error
    return made


class Names:
    """Names by which the dashboard may be asked: a page of a stranger cannot have a name of its own point here (DNS rebinding).

    Parameters
    ----------
    listen
        Where it listens.
    more
        Other names, as that of a proxy before it.

    Raises
    ------
    ArgumentError
        If one of them is no name.
    """

    def __init__(self, listen: Listen, more: Iterable[str] = ()) -> None:
        address = ipaddress.ip_address(listen.address)
        self._names = {*_LOCAL_NAMES, str(address)}
        # No name can be made to point at an address that stands there as digits.
        self._takes_addresses = address.is_unspecified
        for name in more:
            plain = name.lower().removeprefix("[").removesuffix("]").removesuffix(".")
            if not (_NAME.fullmatch(plain) or _is_address(plain)):
                message = f"--host {printable(name, 60)!r} is no name of a host"
                raise ArgumentError(message, "write it without http:// and port: dash.example.org")
            self._names.add(plain)

    def has(self, host: str) -> bool:
        """Whether this is one, as it stands in the header ``Host``."""
        name = _host_of(host)
        return name is not None and (name in self._names or (self._takes_addresses and _is_address(name)))


def is_same(origin: str, host: str) -> bool:
    """Whether the header ``Origin`` names the site of the header ``Host``.

    Examples
    --------
    >>> (
    ...     is_same("http://localhost:8090", "localhost:8090"),
    ...     is_same("http://evil.example", "localhost:8090"),
    ...     is_same("null", "a"),
    ... )
    (True, False, False)
    """
    scheme, separator, rest = origin.lower().partition("://")
    default = {"http": ":80", "https": ":443"}.get(scheme, "")
    return bool(separator and default) and rest.removesuffix(default) == host.lower().removesuffix(default)


def _host_of(host: str) -> str | None:
    found = re.fullmatch(r"(?:\[([0-9a-f:.%]+)\]|([^:\[\]]+))(?::[0-9]{1,5})?", host.strip().lower())
    return None if found is None else (found[1] or found[2]).removesuffix(".")


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True

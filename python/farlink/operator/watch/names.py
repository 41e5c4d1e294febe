"""By which names a server may be asked, and by whose pages."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable

from farlink.errors import ArgumentError
from farlink.operator.watch.listen import Place
from farlink.untrusted import printable

_SCHEMES = {"http": ":80", "https": ":443"}
_LOCAL_NAMES = ("localhost", "127.0.0.1", "::1")
_NAME = re.compile(r"(?=.{1,253}$)[a-z0-9_]([a-z0-9_-]{0,62})(\.[a-z0-9_]([a-z0-9_-]{0,62}))*\.?")


class Names:
    """Names by which a server may be asked: a page of a stranger cannot have a name of its own point here (DNS rebinding).

    Parameters
    ----------
    place
        Where it listens. A Unix socket has no name, and no browser reaches it.
    more
        Other names, as that of a proxy before it.
    option
        Of the command that gives these, for messages.

    Raises
    ------
    ArgumentError
        If one of them is no name.
    """

    def __init__(self, place: Place, more: Iterable[str] = (), *, option: str = "--host") -> None:
        self._names: set[str] = set()
        self._takes_addresses = False
        if place.path is None:
            address = ipaddress.ip_address(place.host)
            self._names = {*_LOCAL_NAMES, str(address)}
            # No name can be made to point at an address that stands there as digits.
            self._takes_addresses = address.is_unspecified
        for name in more:
            plain = name.lower().removeprefix("[").removesuffix("]").removesuffix(".")
            if not (_NAME.fullmatch(plain) or _is_address(plain)):
                message = f"{option} {printable(name, 60)!r} is no name of a host"
                raise ArgumentError(message, "write it without http:// and port: dash.example.org")
            self._names.add(plain)

    def has(self, host: str) -> bool:
        """Whether this is one, as it stands in the header ``Host``."""
        name = _host_of(host)
        return name is not None and (name in self._names or (self._takes_addresses and _is_address(name)))

    def has_origin(self, origin: str) -> bool:
        """Whether a header ``Origin`` is that of a page which one of these names has given, at any port."""
        scheme, _, host = origin.partition("://")
        return scheme.lower() in _SCHEMES and self.has(host)


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
    default = _SCHEMES.get(scheme, "")
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

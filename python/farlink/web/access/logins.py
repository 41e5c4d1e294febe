"""Logins: tries are limited, and who is in has a random token whose hash the server keeps."""

from __future__ import annotations

import hashlib
import ipaddress
import secrets
from collections import OrderedDict
from dataclasses import dataclass

LIFE_S = 12 * 3600.0
"""How long a login lasts, in s."""

_FREE_TRIES = 5
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 2.0, 900.0
# Of all addresses together.
_TRIES_PER_MINUTE = 30
_MOST_ADDRESSES, _MOST_LOGINS = 1000, 100


@dataclass
class _Failures:
    count: int = 0
    free_at_s: float = 0.0


class Tries:
    """How soon a password may be tried again: after some failures from an address, with pauses that double.

    Times are those of a clock that is never set, in s.
    """

    def __init__(self) -> None:
        self._of: OrderedDict[str, _Failures] = OrderedDict()
        self._recent_s: list[float] = []

    def wait_s(self, address: str, now_s: float) -> float:
        """How long this address must wait, in s; 0 if it may try now."""
        self._recent_s = [at for at in self._recent_s if now_s - at < 60.0]
        common = 60.0 - (now_s - self._recent_s[0]) if len(self._recent_s) >= _TRIES_PER_MINUTE else 0.0
        of = self._of.get(_network(address))
        return max(common, 0.0 if of is None else of.free_at_s - now_s, 0.0)

    def failed(self, address: str, now_s: float) -> None:
        """A password was wrong."""
        self._recent_s.append(now_s)
        failures = self._of.setdefault(_network(address), _Failures())
        self._of.move_to_end(_network(address))
        failures.count += 1
        if failures.count >= _FREE_TRIES:
            doubled = min(failures.count - _FREE_TRIES, 20)
            failures.free_at_s = now_s + min(_LONGEST_PAUSE_S, _FIRST_PAUSE_S * 2**doubled)
        while len(self._of) > _MOST_ADDRESSES:
            self._of.popitem(last=False)

    def succeeded(self, address: str) -> None:
        """A password was right."""
        self._of.pop(_network(address), None)


class Logins:
    """Sessions that are logged in. Only hashes of their tokens are kept, in memory: the end of the server ends all of them."""

    def __init__(self) -> None:
        self._until_s: OrderedDict[str, float] = OrderedDict()

    def begin(self, now_s: float) -> str:
        """A new token."""
        token = secrets.token_urlsafe(32)
        self._until_s[_hash(token)] = now_s + LIFE_S
        while len(self._until_s) > _MOST_LOGINS:
            self._until_s.popitem(last=False)
        return token

    def is_in(self, token: str, now_s: float) -> bool:
        """Whether a token is that of somebody who is in."""
        until_s = self._until_s.get(_hash(token))
        if until_s is not None and now_s >= until_s:
            self.end(token)
        return until_s is not None and now_s < until_s

    def end(self, token: str) -> None:
        """Somebody goes."""
        self._until_s.pop(_hash(token), None)

    def end_all(self) -> None:
        """The password is another one now."""
        self._until_s.clear()


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


def _network(address: str) -> str:
    """An address, or of IPv6 the network that one subscriber has."""
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return "other"
    return str(ipaddress.ip_network((found, 64), strict=False)) if found.version == 6 else str(found)

"""A packet data bearer as ModemManager describes it: whether it is connected, its interface, its addresses and its bytes."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from farlink.operator.lines.modem_manager import values
from farlink.operator.lines.modem_manager.bus import SERVICE, BusError
from farlink.operator.lines.modem_manager.words import IP_METHODS

BEARER = f"{SERVICE}.Bearer"

_INTERFACE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,14}")


@dataclass(frozen=True)
class Addresses:
    """Addresses of a bearer's interface, of one version of IP.

    Attributes
    ----------
    method
        ``static``, ``dhcp`` (of IPv6: router advertisements) or ``ppp``; empty if the bearer does not have this version.
    address
        With its prefix, ``10.0.0.2/30``; empty if it is not known.
    gateway, dns
        As the network gives them.
    mtu_bytes
        None if the network gives none.
    """

    method: str = ""
    address: str = ""
    gateway: str = ""
    dns: tuple[str, ...] = ()
    mtu_bytes: int | None = None

    @classmethod
    def of(cls, table: Any) -> Addresses:
        """The addresses of ``Ip4Config`` or ``Ip6Config``."""
        method = IP_METHODS.get(values.whole(table, "method") or 0, "")
        address, prefix = values.text(table, "address", 60), values.whole(table, "prefix")
        mtu_bytes = values.whole(table, "mtu")
        return cls(
            method,
            _address(f"{address}/{prefix}") if address and prefix is not None else "",
            _alone(values.text(table, "gateway", 60)),
            tuple(one for key in ("dns1", "dns2", "dns3") if (one := _alone(values.text(table, key, 60)))),
            mtu_bytes if mtu_bytes is not None and 576 <= mtu_bytes <= 65_535 else None,
        )

    def words(self) -> str:
        """Address, gateway and name servers in words.

        Examples
        --------
        >>> Addresses("static", "10.64.0.2/30", "10.64.0.1", ("10.64.0.1",)).words()
        '10.64.0.2/30 (static), gateway 10.64.0.1, DNS 10.64.0.1'
        """
        parts = [f"{self.address} ({self.method})" if self.address else f"addresses by {self.method}"]
        parts += [f"gateway {self.gateway}"] if self.gateway else []
        return ", ".join(parts + ([f"DNS {' '.join(self.dns)}"] if self.dns else []))


@dataclass(frozen=True)
class Bearer:
    """State of a bearer; `is_connected` is None if it does not say."""

    is_connected: bool | None
    interface: str
    ipv4: Addresses
    ipv6: Addresses
    bytes_in: int | None
    bytes_out: int | None
    error: str

    @classmethod
    def of(cls, own: Mapping[str, Any]) -> Bearer:
        """The bearer of its properties, whatever they are."""
        connected, interface = own.get("Connected"), values.text(own, "Interface", 40)
        return cls(
            connected if isinstance(connected, bool) else None,
            interface if _INTERFACE.fullmatch(interface) else "",
            Addresses.of(own.get("Ip4Config")),
            Addresses.of(own.get("Ip6Config")),
            _count(own.get("Stats"), "rx-bytes"),
            _count(own.get("Stats"), "tx-bytes"),
            _error(own.get("ConnectionError")),
        )

    def observed(self) -> dict[str, Any]:
        """Interface and addresses, for people."""
        found: dict[str, Any] = {"interface": self.interface or None}
        for name, one in (("ipv4", self.ipv4), ("ipv6", self.ipv6)):
            found[name] = one.address or one.method or None
            found[f"{name}_method"] = one.method or None
            found[f"{name}_gateway"] = one.gateway or None
        found["dns"] = [*self.ipv4.dns, *self.ipv6.dns]
        return found

    def words(self) -> str:
        """Interface and addresses in words; empty if there is no bearer."""
        if not self.interface:
            return ""
        return ", ".join([self.interface, *(one.words() for one in (self.ipv4, self.ipv6) if one.method)])


def _count(table: Any, key: str) -> int | None:
    count = values.whole(table, key)
    return count if count is not None and 0 <= count < 1 << 63 else None


def _error(pair: Any) -> str:
    """Why the network has ended the connection; empty if it does not say."""
    is_pair = isinstance(pair, list | tuple) and len(pair) == 2 and all(isinstance(one, str) for one in pair)
    return str(BusError(*pair)) if is_pair and pair[0] else ""


def _address(text: str) -> str:
    try:
        return str(ipaddress.ip_interface(text))
    except ValueError:
        return ""


def _alone(text: str) -> str:
    try:
        return str(ipaddress.ip_address(text))
    except ValueError:
        return ""

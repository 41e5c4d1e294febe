"""Settings of a line of kind ``interface``, and the times and bytes that follow from them."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass

from farlink.operator.interface import echo, peer_message

DAY_S = 86_400.0
_IPV4_BYTES, _IPV6_BYTES, _UDP_BYTES = 20, 40, 8


@dataclass(frozen=True)
class InterfaceSettings:
    """Keys of a line of kind ``interface``.

    Attributes
    ----------
    interface
        Its name.
    probe
        Hosts that answer ICMP echoes.
    peer
        ``HOST:PORT`` of a far operator that answers probes; empty if there is none.
    probe_listen
        ``ADDRESS:PORT`` where this end answers such probes; empty if it does not.
    probe_interval_s
        Time between two probes; None for a third of `noticed_s`.
    noticed_s
        A dead line is noticed within so long.
    probe_bytes_per_day
        What probes and their answers may cost in a day (UTC), with headers of IP; None for no limit.
    route
        Whether a default route is kept while the line is up.
    gateway
        Of that route; empty for the one that DHCP has given, or none.
    metric
        Of that route; None for one that follows from the rank.
    """

    interface: str
    probe: tuple[str, ...] = ()
    peer: str = ""
    probe_listen: str = ""
    probe_interval_s: float | None = None
    noticed_s: float = 3.0
    probe_bytes_per_day: int | None = None
    route: bool = False
    gateway: str = ""
    metric: int | None = None

    @property
    def interval_s(self) -> float:
        """Time between two probes, as far as no budget makes it longer."""
        return self.noticed_s / 3 if self.probe_interval_s is None else self.probe_interval_s

    @property
    def probe_bytes(self) -> int:
        """The most that a probe and its answer take."""
        costs = [2 * (ip_bytes(host) + echo.BYTES) for host in self.probe]
        if self.peer:
            costs.append(2 * (ip_bytes(host_and_port(self.peer)[0]) + _UDP_BYTES + peer_message.BYTES))
        return max(costs, default=0)

    @property
    def budget_interval_s(self) -> float:
        """Time between two probes that the budget allows, if they are spread over a day; 0 without a budget."""
        return 0.0 if self.probe_bytes_per_day is None else DAY_S * self.probe_bytes / self.probe_bytes_per_day


def ip_bytes(host: str) -> int:
    """Bytes of the IP header of a packet to a host; a name may have an IPv6 address."""
    try:
        is_small = ipaddress.ip_address(host).version == 4
    except ValueError:
        is_small = False
    return _IPV4_BYTES if is_small else _IPV6_BYTES


def udp_bytes(host: str) -> int:
    """Bytes of a probe to a far operator, or of its answer, with all headers."""
    return ip_bytes(host) + _UDP_BYTES + peer_message.BYTES


def host_and_port(text: str) -> tuple[str, int]:
    """The parts of ``HOST:PORT``.

    Raises
    ------
    ValueError
        If it is none.

    Examples
    --------
    >>> host_and_port("far.example:7411"), host_and_port("[2001:db8::1]:7411")
    (('far.example', 7411), ('2001:db8::1', 7411))
    """
    host, colon, port = text.rpartition(":")
    if host.startswith("[") and host.endswith("]"):
        host = str(ipaddress.IPv6Address(host[1:-1]))
    elif ":" in host:
        raise ValueError("an IPv6 address needs brackets")
    if not colon or not host or not (port.isascii() and port.isdecimal() and len(port) <= 5 and 1 <= int(port) <= 65535):
        raise ValueError("no host and port")
    return host, int(port)

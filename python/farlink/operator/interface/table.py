"""What netlink has said of the interfaces of this machine, without a socket."""

from __future__ import annotations

import ipaddress
from collections import deque

from farlink.operator.interface import netlink
from farlink.operator.interface.netlink import Address, Link, Message, Route

_DUMPS = (netlink.GET_LINK, netlink.GET_ADDRESS)
_KINDS = {netlink.GET_LINK: Link, netlink.GET_ADDRESS: Address, netlink.GET_ROUTE: Route}


class Table:
    """Links, addresses and default routes, kept up to date by what the kernel says.

    Call `poll_output` and send what it gives; `feed` each datagram; `lost` if some did not arrive.

    Parameters
    ----------
    has_routes
        Whether routes are asked for; routers may have a million.

    Attributes
    ----------
    is_known
        Whether everything has been told once.
    """

    def __init__(self, *, has_routes: bool = True) -> None:
        self.is_known = False
        self._dumps = (*_DUMPS, netlink.GET_ROUTE) if has_routes else _DUMPS
        self._found: dict[object, Link | Address | Route] = {}
        # Entries that the kernel has listed so far. At the end of its list, entries that are not among them are gone.
        self._seen: set[object] = set()
        self._to_ask = deque(self._dumps)
        self._asked: int | None = None
        self._sequence = 0

    def lost(self) -> None:
        """Messages were lost: ask for everything again."""
        self._to_ask, self._asked = deque(self._dumps), None

    def poll_output(self) -> bytes:
        """What is to be sent now; nothing if that is empty."""
        if self._asked is not None or not self._to_ask:
            return b""
        self._asked = self._to_ask.popleft()
        self._seen.clear()
        self._sequence += 1
        return netlink.dump(self._asked, self._sequence)

    def feed(self, data: bytes) -> list[Message]:
        """Take a datagram; gives its messages."""
        found = list(netlink.messages(data))
        for one in found:
            self._take(one)
        return found

    def link(self, name: str) -> Link | None:
        """An interface; None if there is none of that name."""
        return next((one for one in self._found.values() if isinstance(one, Link) and one.name == name), None)

    def addresses(self, index: int) -> tuple[str, ...]:
        """The addresses of an interface with which packets can leave its link, such as ``192.0.2.7/24``, in order."""
        of_it = [one for one in self._found.values() if isinstance(one, Address) and one.index == index and one.is_usable]
        return tuple(sorted(one.text for one in of_it if not ipaddress.ip_interface(one.text).ip.is_link_local))

    def routes(self, index: int) -> tuple[Route, ...]:
        """The default routes over an interface, the preferred one first."""
        of_it = [one for one in self._found.values() if isinstance(one, Route) and one.index == index]
        return tuple(sorted(of_it, key=lambda one: one.metric))

    def _take(self, message: Message) -> None:
        if message.kind in (netlink.DONE, netlink.ERROR) and message.sequence == self._sequence and self._asked is not None:
            self._told_all(self._asked, is_whole=message.kind == netlink.DONE)
            return
        content = message.content
        if content is None:
            return
        key = _key(content)
        if message.kind in (netlink.NEW_LINK, netlink.NEW_ADDRESS, netlink.NEW_ROUTE):
            self._seen.add(key)
            self._found[key] = content
            return
        self._found.pop(key, None)
        if isinstance(content, Link):
            # The kernel says nothing of the IPv6 addresses of an interface that is gone.
            self._found = {key: one for key, one in self._found.items() if one.index != content.index}

    def _told_all(self, asked: int, *, is_whole: bool) -> None:
        kind = _KINDS[asked]
        if is_whole:  # a request that was refused tells of nothing that it is gone
            self._found = {key: one for key, one in self._found.items() if not isinstance(one, kind) or key in self._seen}
        self._asked = None
        self.is_known = self.is_known or not self._to_ask


def _key(content: Link | Address | Route) -> object:
    if isinstance(content, Link):
        return ("link", content.index)
    if isinstance(content, Address):
        return ("address", content.index, content.text)
    return content

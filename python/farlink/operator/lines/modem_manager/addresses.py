"""A bearer's static addresses on its interface, set with iproute2."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from farlink.operator.lines.modem_manager.bearer import Bearer
from farlink.untrusted import printable

_LIMIT_S = 5.0


class AddressError(Exception):
    """An address could not be set: why, in the words of ``ip``."""


class Set:
    """Addresses that were set, which `clear` removes."""

    def __init__(self, bearer: Bearer) -> None:
        self._interface = bearer.interface
        self._bearer = bearer
        self._done: list[str] = []

    async def set(self) -> None:
        """Set the static addresses of the bearer. Routes and name servers stay as they are.

        Raises
        ------
        AddressError
            If the bearer does not name its interface, or this user may not set it.
        """
        if not self._interface:
            raise AddressError("the bearer does not name its interface")
        of = [one for one in (self._bearer.ipv4, self._bearer.ipv6) if one.method == "static" and one.address]
        mtu = [word for one in of[:1] if one.mtu_bytes is not None for word in ("mtu", str(one.mtu_bytes))]
        await _ip("link", "set", "dev", self._interface, *mtu, "up")
        for one in of:
            await _ip("address", "replace", one.address, "dev", self._interface)
            self._done.append(one.address)

    async def clear(self) -> None:
        """Remove what was set; an interface may be gone already."""
        for address in self._done:
            with suppress(AddressError):
                await _ip("address", "del", address, "dev", self._interface)
        self._done = []


async def _ip(*words: str) -> None:
    try:
        process = await asyncio.create_subprocess_exec(
            *("ip", *words), stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.PIPE
        )
    except OSError as error:
        raise AddressError(f"ip: {error.strerror}") from error
    try:
        async with asyncio.timeout(_LIMIT_S):
            _, said = await process.communicate()
    except BaseException as error:
        with suppress(ProcessLookupError):
            process.kill()
        if isinstance(error, TimeoutError):
            raise AddressError(f"ip {words[0]} {words[1]}: not done after {_LIMIT_S:g} s") from error
        raise
    if process.returncode:
        raise AddressError(f"ip {words[0]} {words[1]}: {printable(said.decode(errors='replace'), 120)}")

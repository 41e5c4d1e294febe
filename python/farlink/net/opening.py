"""Connections and listeners for asyncio are opened. What they do then is in `farlink.net.streams`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Generator
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from farlink.errors import ArgumentError, core_errors
from farlink.net.addresses import UDP_PORT, Insecure, resolved
from farlink.net.keys import folder, peer_key, trusted
from farlink.net.streams import Connection, Listener
from farlink.net.waits import until

if TYPE_CHECKING:
    import os

    from farlink._core import NetConnection

STREAM_PORT = 2
"""The port within a session to which connections are opened unless another one is given; files use port 1."""

# Ports above are those from which connections are opened.
_LAST_PORT = 0xBFFF


class _Closing(Protocol):
    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None: ...


Opened = TypeVar("Opened", bound=_Closing)


class Opening(Generic[Opened]):
    """The result of `connect` and `listen`: to be awaited, or entered with ``async with``, which closes it at the end."""

    def __init__(self, opened: Callable[[], Coroutine[Any, Any, Opened]]) -> None:
        self._opened = opened

    def __await__(self) -> Generator[Any, None, Opened]:
        return self._opened().__await__()

    async def __aenter__(self) -> Opened:
        self._entered = await self
        return self._entered

    async def __aexit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        await self._entered.__aexit__(kind, *rest)


def connect(
    to: str,
    *,
    peer: str | None = None,
    port: int = STREAM_PORT,
    keys: str | os.PathLike[str] | None = None,
    psk: str | None = None,
    rate_bps: float | None = None,
    packet_bytes: int = 1500,
    damaged_links: bool = False,
    insecure: Insecure | None = None,
    patience_s: float = 60.0,
    early: bool = False,
) -> Opening[Connection]:
    """Open a connection to a host: ``async with connect(...) as connection``, or ``connection = await connect(...)``.

    Parameters
    ----------
    to
        The host: a name or an address, with `:PORT` if the UDP port is not 47470; IPv6 addresses with a port in brackets.
    peer
        Its public key, or its name as `trust` has set it; by default the only trusted host.
    port
        The port within the session, 1 to 49151, as the peer listens to; several programs of one host may share a UDP port.
    keys
        Folder of the own keys.
    psk
        A key that both sides share, 32 bytes in base64.
    rate_bps
        The rate in bit/s, headers included. By default it is learnt, and safe on a path that others share.
    packet_bytes
        Longest packet to look for on the path, in bytes, headers of IP and UDP included, 1200 to 9000. Packets begin with 1200.
    damaged_links
        As of `send_files`; both sides have to say so.
    insecure
        As of `send_files`.
    patience_s
        How long a silent peer is waited for, in seconds, 1 at least: to answer at all, and through outages later.
    early
        Do not wait for the answer of the peer: what is written at once travels with the first packet, a round trip earlier.
        Whether anybody is there shows when it is read, or by `Connection.finish`.

    Raises
    ------
    ArgumentError
        If the address, the port or the name of the peer is none.
    TransferError
        If the peer does not answer (nobody is there, a key is not the right one, or it does not trust this host), or a file of
        this host cannot be used.

    Examples
    --------
    >>> async def question() -> bytes:
    ...     async with connect("192.0.2.7", peer="shore") as connection:
    ...         await connection.write(b"status?")
    ...         await connection.finish()
    ...         return await connection.read()
    """

    def begun() -> tuple[NetConnection, str | None]:
        from farlink import _core

        key = peer_key(peer, keys)
        names = {known: name for name, known in trusted(keys).items()}
        address = resolved(to)
        if address.endswith(":0"):
            raise ArgumentError(f"{to}: nothing can be sent to port 0", "give the port at which the peer listens")
        with core_errors():
            core = _core.connect_stream(
                key,
                address,
                port=_port(port),
                keys=folder(keys),
                psk=psk,
                rate_bps=rate_bps,
                packet_bytes=packet_bytes,
                damaged_links=damaged_links,
                insecure=insecure,
                patience_s=patience_s,
            )
        return core, names.get(key)

    async def opened() -> Connection:
        core, name = await asyncio.to_thread(begun)
        try:
            while not early:
                with core_errors():
                    if core.try_connected():
                        break
                await until(core.until_connected)
        except BaseException:
            core.close()
            raise
        return Connection(core, name)

    return Opening(opened)


def listen(
    address: str = f"127.0.0.1:{UDP_PORT}",
    *,
    port: int = STREAM_PORT,
    keys: str | os.PathLike[str] | None = None,
    psk: str | None = None,
    rate_bps: float | None = None,
    packet_bytes: int = 1500,
    damaged_links: bool = False,
    insecure: Insecure | None = None,
    patience_s: float = 60.0,
) -> Opening[Listener]:
    """Accept connections of trusted hosts: ``async with listen(...) as listener``, or ``listener = await listen(...)``.

    Parameters
    ----------
    address
        Address and UDP port of the socket. By default only this machine can connect; `0.0.0.0` or `[::]` is every interface.
    port
        The port within the session, 1 to 49151.
    keys
        Folder of the own keys. Only one listener, or one `receive_files`, may have it at a time.
    psk, rate_bps, packet_bytes, damaged_links, insecure, patience_s
        As of `connect`; they are those of all accepted connections.

    Raises
    ------
    ArgumentError
        If the address or the port is none, or no host is trusted.
    TransferError
        If the address or a file of this host cannot be used.

    Notes
    -----
    Who is trusted is read once, when it begins.

    Examples
    --------
    >>> async def serve() -> None:
    ...     async with listen("0.0.0.0") as listener:
    ...         async for connection in listener:
    ...             async with connection:
    ...                 print(connection.name, "asks", await connection.read())
    ...                 await connection.write(b"all is well")
    """

    def begun() -> Listener:
        from farlink import _core

        names = {key: name for name, key in trusted(keys).items()}
        if not names:
            raise ArgumentError("no host is trusted, so none could connect", "trust one, as farlink trust KEY NAME does")
        with core_errors():
            core = _core.listen_for_streams(
                resolved(address),
                port=_port(port),
                keys=folder(keys),
                psk=psk,
                rate_bps=rate_bps,
                packet_bytes=packet_bytes,
                damaged_links=damaged_links,
                insecure=insecure,
                patience_s=patience_s,
            )
        return Listener(core, names)

    async def opened() -> Listener:
        return await asyncio.to_thread(begun)

    return Opening(opened)


def _port(port: int) -> int:
    if not 1 <= port <= _LAST_PORT:
        raise ArgumentError(f"there is no port {port} within a session", f"give 1 to {_LAST_PORT}")
    return port

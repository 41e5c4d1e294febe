"""The process that serves the API: uvicorn on one socket, until a signal."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable, Sequence

import uvicorn

from farlink.operator.live.systemd import notify
from farlink.operator.watch.api import application
from farlink.operator.watch.gate import Gate, Policy
from farlink.operator.watch.listen import Place
from farlink.operator.watch.names import Names
from farlink.operator.watch.protocol import Http
from farlink.operator.watch.quiet_server import QuietServer
from farlink.operator.watch.source import Source
from farlink.operator.watch.sparing import Sparing
from farlink.operator.watch.tokens import Tokens, file_of
from farlink.untrusted import printable

# Most bytes of a request line with its headers.
_MOST_HEAD_BYTES = 16_384
_MOST_CONNECTIONS = 100
_KEEP_ALIVE_S = 10
_END_S = 3


def policy_of(place: Place, hosts: Sequence[str] = (), *, allow_changes: bool = False) -> Policy:
    """Rules of access at a place: which caller may ask for what.

    Parameters
    ----------
    place
        Where the API listens.
    hosts
        More names of it, such as that of a proxy.
    allow_changes
        Whether orders are taken.

    Raises
    ------
    ArgumentError
        If one of the names is none.

    Notes
    -----
    A Unix socket is its user's own, who may read the journal anyway. Every user of this machine reaches its loopback: there
    metrics are open, and the rest needs a token.
    """
    is_local = place.path is not None
    return Policy(
        names=Names(place, hosts, option="--allow-host"),
        is_any_host_right=is_local,
        needs_token_to_read=not is_local,
        needs_token_for_metrics=place.is_remote,
        allow_changes=allow_changes,
    )


def serve(sources: Sequence[Source], policy: Policy, listener: socket.socket, tell: Callable[[str], None]) -> None:
    """Serve the API until SIGTERM, SIGINT or SIGHUP.

    Parameters
    ----------
    sources
        The bundles.
    policy
        Who may ask for what.
    listener
        A socket that listens; it is closed at the end.
    tell
        Gets what happens, in words.
    """
    tokens = {source.bundle.name: Tokens(file_of(source.bundle.journal)) for source in sources}
    gate = Gate(application(sources, policy), policy, tokens, tell)
    logging.getLogger("uvicorn.error").addHandler(_Told(Sparing(tell)))
    config = uvicorn.Config(
        gate,
        http=Http,
        ws="none",
        loop="asyncio",
        lifespan="off",
        interface="asgi3",
        log_config=None,
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        limit_concurrency=_MOST_CONNECTIONS,
        timeout_keep_alive=_KEEP_ALIVE_S,
        timeout_graceful_shutdown=_END_S,
        h11_max_incomplete_event_size=_MOST_HEAD_BYTES,
    )
    with listener:
        asyncio.run(QuietServer(config).until_signal(listener, began=lambda: notify("READY=1")))
        notify("STOPPING=1")


class _Told(logging.Handler):
    """What uvicorn warns of, without tracebacks: their values may hold what a client has sent."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        super().__init__(logging.WARNING)
        self._tell = tell

    def emit(self, record: logging.LogRecord) -> None:
        error = record.exc_info[1] if record.exc_info else None
        place = ""
        if error is not None and error.__traceback__ is not None:
            at = error.__traceback__
            while at.tb_next is not None:
                at = at.tb_next
            place = f": {type(error).__name__} at {at.tb_frame.f_code.co_filename}, line {at.tb_lineno}"
        self._tell(printable(record.getMessage().split("\n", 1)[0] + place, 500))

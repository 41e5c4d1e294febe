"""What a request must fulfil before the API sees it: a host and origin that are meant, a known token, a small body."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, MutableMapping
from dataclasses import dataclass, field
from typing import Any

from farlink.errors import FarlinkError
from farlink.operator.watch.names import Names
from farlink.operator.watch.sparing import Sparing
from farlink.operator.watch.tokens import Right, Tokens
from farlink.untrusted import printable

MOST_BODY_BYTES = 65_536
_BODY_S = 10.0

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Message, Receive, Send], Awaitable[None]]
Tell = Callable[[str], None]

_HEADERS = [
    (b"cache-control", b"no-store"),
    (b"x-content-type-options", b"nosniff"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
    (b"referrer-policy", b"no-referrer"),
]


@dataclass(frozen=True)
class Policy:
    """Rules of access: which caller may ask for what.

    Attributes
    ----------
    names
        Of this server. A page whose origin has another one may not ask.
    is_any_host_right
        Whether it may be asked by any name: no browser reaches a Unix socket by one.
    needs_token_to_read
        Whether reading needs a token.
    needs_token_for_metrics
        Whether metrics and the description of the API need one, too.
    allow_changes
        Whether anything can be changed, with a token that has the right.
    """

    names: Names
    is_any_host_right: bool = False
    needs_token_to_read: bool = False
    needs_token_for_metrics: bool = False
    allow_changes: bool = False


@dataclass
class Asker:
    """The caller of a request.

    Attributes
    ----------
    name
        Of the token; empty without one.
    rights
        Bundle -> what the token may there.
    """

    name: str = ""
    rights: dict[str, Right] = field(default_factory=dict)


class _Refused(Exception):
    def __init__(self, status: int, error: str, remedy: str, headers: Iterable[tuple[bytes, bytes]] = ()) -> None:
        super().__init__(error)
        self.status, self.error, self.remedy, self.headers = status, error, remedy, list(headers)


class Gate:
    """An ASGI application around that of the API. Who asks is in ``scope["state"]["asker"]``.

    Parameters
    ----------
    app
        The API.
    policy
        Who may ask for what.
    tokens
        Bundle -> its tokens.
    tell
        Gets a line for each request that changes something or is refused, of strangers' a few; never tokens or queries.
    """

    def __init__(self, app: App, policy: Policy, tokens: Mapping[str, Tokens], tell: Tell) -> None:
        self._app, self._policy, self._tokens, self._tell = app, policy, tokens, tell
        self._tell_refused = Sparing(tell)

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        if scope["type"] != "http":
            return
        begin = time.monotonic()
        asker = Asker()
        status = 0

        async def answer(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message = {**message, "headers": [*message.get("headers", []), *_HEADERS]}
            await send(message)

        try:
            self._check_names(scope)
            asker = self._asker(scope)
            scope.setdefault("state", {})["asker"] = asker
            whole = await _whole_body(scope, receive)
            await self._app(scope, whole, answer)
        except _Refused as refused:
            await _refuse(refused, answer)
        finally:
            if status >= 400 or scope["method"] not in ("GET", "HEAD"):
                who = f" by {asker.name}" if asker.name else ""
                path = printable(scope["path"], 120)
                took_s = time.monotonic() - begin
                tell = self._tell if status < 400 or asker.name else self._tell_refused
                tell(f"{printable(scope['method'], 10)} {path}{who}: {status} in {took_s:.3f} s")

    def _check_names(self, scope: Message) -> None:
        """Refuse what somebody else's page makes a browser ask, by a name that is made to lead here or from its own origin."""
        if not self._policy.is_any_host_right:
            for host in _all(scope, b"host") or [""]:
                if not self._policy.names.has(host):
                    raise _Refused(
                        403, "this server does not have that name", "ask by its address, or start it with --allow-host"
                    )
        for origin in _all(scope, b"origin"):
            if not self._policy.names.has_origin(origin):
                raise _Refused(403, "pages of other origins may not ask", "start it with --allow-host if the page is yours")

    def _asker(self, scope: Message) -> Asker:
        given = _all(scope, b"authorization")
        if not given:
            return Asker()
        kind, _, text = given[0].partition(" ")
        asker = Asker()
        if kind.lower() == "bearer" and len(given) == 1:
            for bundle, tokens in self._tokens.items():
                try:
                    found = tokens.of(text.strip())
                except FarlinkError as error:
                    self._tell_refused(f"no token of bundle {bundle} is accepted: {error.message}")
                    continue
                if found is not None:
                    asker.name = found.name
                    asker.rights[bundle] = found.right
        if not asker.rights:
            raise _Refused(401, "the token is not known", "`farlink bundle token list` has those that are", [_CHALLENGE])
        return asker


_CLOSE = (b"connection", b"close")
_CHALLENGE = (b"www-authenticate", b'Bearer realm="farlink"')


def _all(scope: Message, name: bytes) -> list[str]:
    return [value.decode("latin-1").strip() for key, value in scope["headers"] if key.lower() == name]


async def _whole_body(scope: Message, receive: Receive) -> Receive:
    """The body, read whole, so that one that is too long or too slow is refused before anything is done."""
    try:
        async with asyncio.timeout(_BODY_S):
            return await _read_body(scope, receive)
    except TimeoutError as error:
        raise _Refused(408, f"the body took more than {_BODY_S:g} s", "send it at once", [_CLOSE]) from error


async def _read_body(scope: Message, receive: Receive) -> Receive:
    said = _all(scope, b"content-length")
    if said and said[0].isdecimal() and int(said[0][:20]) > MOST_BODY_BYTES:
        raise _too_long()
    body = b""
    while True:
        message = await receive()
        if message["type"] != "http.request":
            return receive
        body += message.get("body", b"")
        if len(body) > MOST_BODY_BYTES:
            raise _too_long()
        if not message.get("more_body", False):
            break
    is_given = False

    async def whole() -> Message:
        nonlocal is_given
        if is_given:
            return await receive()
        is_given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return whole


def _too_long() -> _Refused:
    return _Refused(413, f"the body has more than {MOST_BODY_BYTES} bytes", "send less", [_CLOSE])


async def _refuse(refused: _Refused, send: Send) -> None:
    body = json.dumps({"error": refused.error, "remedy": refused.remedy}).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode()), *refused.headers]
    await send({"type": "http.response.start", "status": refused.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})

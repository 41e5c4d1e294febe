"""Requests that are let through: of a name that is ours, from no foreign page, and of somebody who is in."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, MutableMapping
from http.cookies import CookieError, SimpleCookie
from pathlib import Path
from typing import Any
from urllib.parse import quote

from farlink.operator.watch.names import Names, is_same
from farlink.web.access.logins import Logins

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

COOKIE = "farlink_web"
LOGIN = "/login"
STYLE = "/farlink.css"
_OPEN = (LOGIN, STYLE)
_MOST_BODY_BYTES = 4_000_000
# Open pages and requests under way. A page takes about a megabyte.
_MOST_AT_ONCE = 200

# NiceGUI's pages have scripts and styles in line, and Vue compiles templates. Nothing may come from, or go to, another host.
_POLICY = (
    "default-src 'self'; script-src 'self' 'unsafe-inline' 'unsafe-eval'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data: blob:; font-src 'self' data:; worker-src 'self' blob:; connect-src 'self'; "
    "object-src 'none'; base-uri 'self'; form-action 'self'; frame-ancestors 'none'"
)
_HEADERS = (
    (b"content-security-policy", _POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"same-origin"),
    (b"x-frame-options", b"DENY"),
    (b"cross-origin-resource-policy", b"same-origin"),
)


class Guard:
    """Stands before the whole application, its websocket included.

    Parameters
    ----------
    app
        What it stands before.
    names
        By which the dashboard may be asked.
    logins
        Who is in; None if there is no password.
    password_file
        When it changes, all are out.
    """

    def __init__(self, app: App, names: Names, logins: Logins | None, password_file: Path | None = None) -> None:
        self.app = app
        self._names, self._logins, self._file = names, logins, password_file
        self._stamp = self._stamped()
        self._under_way = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request through, or refuse it."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if self._under_way >= _MOST_AT_ONCE:
            await _refuse(scope, send, 503, "too many pages are open; close some")
            return
        self._under_way += 1
        try:
            await self._checked(scope, receive, send)
        finally:
            self._under_way -= 1

    async def _checked(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._end_logins_of_another_password()
        headers = _Headers(scope)
        refusal = self._refusal(headers)
        if refusal:
            await _refuse(scope, send, 403, refusal)
        elif int(headers.first("content-length") or 0) > _MOST_BODY_BYTES:
            await _refuse(scope, send, 413, "too much at once")
        elif self._logins is None or scope["path"] in _OPEN or self._is_in(headers.token):
            await self.app(scope, self._while_in(scope, headers.token, receive), _with_headers(scope, send))
        elif scope["type"] == "http" and scope["method"] == "GET" and "text/html" in headers.first("accept"):
            await _redirect(send, f"{LOGIN}?next={quote(_asked(scope))}")
        else:
            await _refuse(scope, send, 401, "log in first")

    def _refusal(self, headers: _Headers) -> str:
        host, origin = headers.all("host"), headers.first("origin")
        if len(host) != 1 or not self._names.has(host[0]):
            return "this dashboard is not asked by that name; farlink web --host NAME allows one"
        if origin and not is_same(origin, host[0]):
            return "another page may not ask this dashboard"
        return ""

    def _is_in(self, token: str) -> bool:
        return self._logins is None or (bool(token) and self._logins.is_in(token, time.monotonic()))

    def _end_logins_of_another_password(self) -> None:
        stamp = self._stamped()
        if stamp != self._stamp:
            self._stamp = stamp
            if self._logins is not None:
                self._logins.end_all()

    def _while_in(self, scope: Scope, token: str, receive: Receive) -> Receive:
        """A websocket ends when its login does; its pings come every few seconds."""
        if scope["type"] != "websocket" or self._logins is None:
            return receive

        async def received() -> Message:
            message = await receive()
            self._end_logins_of_another_password()
            if message["type"] == "websocket.receive" and not self._is_in(token):
                return {"type": "websocket.disconnect", "code": 1008}
            return message

        return received

    def _stamped(self) -> object:
        if self._file is None:
            return None
        try:
            status = self._file.stat()
        except OSError:
            return None
        return (status.st_ino, status.st_mtime_ns, status.st_size)


class _Headers:
    def __init__(self, scope: Scope) -> None:
        self._pairs = [(name.lower(), value.decode("latin-1")) for name, value in scope["headers"]]

    def all(self, name: str) -> list[str]:
        return [value for one, value in self._pairs if one == name.encode()]

    def first(self, name: str) -> str:
        return next(iter(self.all(name)), "")

    @property
    def token(self) -> str:
        try:
            found = SimpleCookie(self.first("cookie")).get(COOKIE)
        except CookieError:
            return ""
        return "" if found is None else found.value


def _asked(scope: Scope) -> str:
    query = scope.get("query_string", b"").decode("latin-1")
    return f"{scope['path']}?{query}" if query else str(scope["path"])


def _with_headers(scope: Scope, send: Send) -> Send:
    """With the headers that every answer has. What is private is kept by nobody."""
    is_private = not scope["path"].startswith("/_nicegui/")

    async def sent(message: Message) -> None:
        if message["type"] == "http.response.start":
            own = [*_HEADERS, (b"cache-control", b"no-store")] if is_private else list(_HEADERS)
            names = {name for name, _ in own}
            message["headers"] = [pair for pair in message.get("headers", []) if pair[0].lower() not in names] + own
        await send(message)

    return sent


async def _refuse(scope: Scope, send: Send, status: int, why: str) -> None:
    if scope["type"] == "websocket":
        await send({"type": "websocket.close", "code": 1008, "reason": why})  # before it is accepted: 403
        return
    body = f"{status}: {why}\n".encode()
    headers = [*_HEADERS, (b"content-type", b"text/plain; charset=utf-8"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


async def _redirect(send: Send, to: str) -> None:
    headers = [*_HEADERS, (b"location", to.encode("latin-1")), (b"cache-control", b"no-store"), (b"content-length", b"0")]
    await send({"type": "http.response.start", "status": 303, "headers": headers})
    await send({"type": "http.response.body", "body": b""})

"""The process: pages, login and guard together, served by uvicorn."""

from __future__ import annotations

import asyncio
import gc
import socket
import time
from pathlib import Path
from urllib.parse import parse_qs

import uvicorn
from fastapi import FastAPI, Request, Response
from fastapi.responses import FileResponse, HTMLResponse, RedirectResponse
from nicegui import ui
from starlette.requests import ClientDisconnect

from farlink.errors import FarlinkError
from farlink.operator.watch.names import Names
from farlink.operator.watch.protocol import Http
from farlink.operator.watch.quiet_server import QuietServer
from farlink.web.access import password
from farlink.web.access.guard import COOKIE, LOGIN, STYLE, Guard
from farlink.web.access.logins import LIFE_S, Logins, Tries
from farlink.web.pages import bank, fit, journal, line, overview, profiles, timeline
from farlink.web.pages.frame import Site
from farlink.web.pages.login import local, login_page

_PAGES = Path(__file__).parent / "pages"
_HEAD = f'<link rel="stylesheet" href="{STYLE}"><script src="/farlink.js"></script>'
_MOST_FORM_BYTES, _MOST_FIELDS = 8192, 10
# Pages have a websocket each; the guard has a limit of its own for those.
_MOST_CONNECTIONS = 300
_FAREWELL_S = 2
_ICON = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16">'
    '<path d="M1 11a7 7 0 0 1 14 0" fill="none" stroke="#00527a" stroke-width="2.5"/>'
    '<circle cx="8" cy="12" r="2.5" fill="#00527a"/></svg>'
)


def application(site: Site, names: Names, password_file: Path | None) -> Guard:
    """The whole as an ASGI application.

    Parameters
    ----------
    site
        What the pages show.
    names
        By which it may be asked.
    password_file
        That of the password; None if there is none.
    """
    app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None)
    logins = None if password_file is None else Logins()
    _files(app)
    if logins is not None and password_file is not None:
        _login(app, logins, password_file)
    for page in (overview, line, timeline, fit, journal, profiles, bank):
        page.register(site)
    ui.add_head_html(_HEAD, shared=True)
    ui.run_with(
        app,
        title="farlink",
        favicon=_ICON,
        dark=None,
        language="en-US",
        tailwind=False,
        message_history_length=100,
        show_welcome_message=False,
    )
    return Guard(app, names, logins, password_file)


def serve(app: Guard, listening: socket.socket) -> None:
    """Serve until SIGTERM, SIGINT or SIGHUP.

    Parameters
    ----------
    app
        What is served.
    listening
        Listens already.
    """
    config = uvicorn.Config(
        app,
        http=Http,
        limit_concurrency=_MOST_CONNECTIONS,
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=_FAREWELL_S,
    )
    # Pages that were left are cycles of objects, for which Python looks once they are a quarter of all objects that there are.
    # Imported modules, which stay for good, are left out of that.
    gc.collect()
    gc.freeze()
    asyncio.run(QuietServer(config).until_signal(listening))


def _files(app: FastAPI) -> None:
    @app.get(STYLE)
    def style() -> FileResponse:
        return FileResponse(_PAGES / "farlink.css", media_type="text/css")

    @app.get("/farlink.js")
    def script() -> FileResponse:
        return FileResponse(_PAGES / "farlink.js", media_type="text/javascript")


def _login(app: FastAPI, logins: Logins, file: Path) -> None:
    tries, one = Tries(), asyncio.Semaphore(1)

    @app.get(LOGIN)
    def asked(request: Request) -> Response:
        return HTMLResponse(login_page(to=local(request.query_params.get("next", "/"))))

    @app.post(LOGIN)
    async def given(request: Request) -> Response:
        try:
            fields = await _form(request)
        except ClientDisconnect:  # gone before all was said: no try, and nobody hears an answer
            return Response(status_code=400)
        to, address = local(fields.get("next", "/")), request.client.host if request.client else ""
        async with one:  # a try takes memory and time: one after the other
            wait_s = tries.wait_s(address, time.monotonic())
            if wait_s > 0:
                said = f"too many wrong passwords; try again in {wait_s:.0f} s"
                return HTMLResponse(login_page(said, to), 429, {"Retry-After": f"{wait_s:.0f}"})
            try:
                is_right = await asyncio.to_thread(password.is_right, file, fields.get("password", ""))
            except FarlinkError as error:
                return HTMLResponse(login_page(f"{error.message}; {error.remedy}", to), 403)
            if not is_right:
                tries.failed(address, time.monotonic())
                return HTMLResponse(login_page("the password is wrong", to), 403)
            tries.succeeded(address)
        answer = RedirectResponse(to, 303)
        is_safe = request.url.scheme == "https" or request.headers.get("origin", "").startswith("https:")
        token = logins.begin(time.monotonic())
        answer.set_cookie(COOKIE, token, max_age=int(LIFE_S), httponly=True, samesite="strict", secure=is_safe, path="/")
        return answer

    @app.post("/logout")
    def out(request: Request) -> Response:
        logins.end(request.cookies.get(COOKIE, ""))
        answer = RedirectResponse(LOGIN, 303)
        answer.delete_cookie(COOKIE, path="/", httponly=True, samesite="strict")
        return answer


async def _form(request: Request) -> dict[str, str]:
    """The fields of a login; none of what is no such form."""
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > _MOST_FORM_BYTES:
            return {}
    try:
        found = parse_qs(body.decode("utf-8", "replace"), keep_blank_values=True, max_num_fields=_MOST_FIELDS)
    except ValueError:  # more fields than a login has
        return {}
    return {key: values[0] for key, values in found.items()}

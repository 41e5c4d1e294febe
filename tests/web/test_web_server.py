"""`farlink web` as a process: how it starts and refuses to, its login, and what strangers get."""

from __future__ import annotations

import contextlib
import http.client
import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from farlink.web.access import password
from farlink.web.access.guard import COOKIE
from tests.operator.live_world import until
from tests.warm import Programs
from tests.web.journals import write_bundle, write_calls
from tests.web.web_world import Dashboard, missing

needs_nicegui = pytest.mark.skipif(bool(missing()), reason=missing())
CANARY = "canary-word-4711"


Started = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def farlink_web(programs: Programs) -> Started:
    """Run `farlink web` in a folder until it ends."""

    def run(folder: Path, *arguments: str, typed: str = "", code: str = "") -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "XDG_CONFIG_HOME": str(folder / "config")}
        program = f"{code}\nimport sys; from farlink.cli import main; sys.argv = ['farlink', 'web', *sys.argv[1:]]; main()"
        command = ["-c", program, *arguments]
        done = programs.run(command, cwd=folder, env=environment, given=typed.encode(), timeout=60)
        return subprocess.CompletedProcess(command, done.returncode, done.stdout.decode(), done.stderr.decode())

    return run


def test_refusals_name_what_is_wrong_and_what_to_do(farlink_web, tmp_path):
    for arguments, said in (
        (["--listen", "0.0.0.0:0"], "there is no password"),
        (["none.toml"], "none.toml: no such file"),
        (["--password-file", "none"], "the password's file none cannot be read"),
        (["--listen", "example.org:80"], "is no IP address"),
    ):
        done = farlink_web(tmp_path, *arguments)
        assert (done.returncode, done.stdout) == (2, ""), done.stderr
        assert said in done.stderr
        assert "hint: " in done.stderr


def test_without_nicegui_the_remedy_is_told_at_the_start(farlink_web, tmp_path):
    done = farlink_web(tmp_path, code="import sys; sys.modules['nicegui'] = None")
    assert (done.returncode, done.stdout) == (2, "")
    assert "the dashboard needs nicegui" in done.stderr
    assert "pip install 'farlink[web]'" in done.stderr


def test_a_password_is_set_from_a_pipe(farlink_web, tmp_path):
    done = farlink_web(tmp_path, "--set-password", typed=f"{CANARY}\n")
    assert done.returncode == 0, done.stderr
    assert CANARY not in done.stdout + done.stderr
    assert password.is_right(tmp_path / "config/farlink/web-password.json", CANARY)
    assert farlink_web(tmp_path, "--set-password", typed="short\n").returncode == 2


@pytest.fixture(scope="module")
def dashboard(tmp_path_factory):
    """One with a password and a bundle whose operator is away."""
    folder = tmp_path_factory.mktemp("dashboard")
    write_calls(folder / "old.journal", calls=20)
    write_bundle(folder)
    password.write(folder / "config/farlink/web-password.json", CANARY)
    made = Dashboard(folder, "old.toml")
    yield made
    assert made.end() == 0, made.log


def asked(dashboard: Dashboard, path: str, method: str = "GET", body: str = "", **headers: str):
    """Status, headers and body of an answer."""
    connection = http.client.HTTPConnection(dashboard.url.removeprefix("http://"), timeout=60)
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    connection.request(method, path, body, {"Accept": "text/html", **sent})
    answer = connection.getresponse()
    found = answer.read().decode("utf-8", "replace")
    connection.close()
    return answer.status, answer.headers, found


def upgraded(dashboard: Dashboard, **headers: str) -> int:
    """Status of a try to open the websocket."""
    path = "/_nicegui_ws/socket.io/?EIO=4&transport=websocket"
    handshake = {"Upgrade": "websocket", "Connection": "Upgrade", "Sec_WebSocket_Version": "13"}
    return asked(dashboard, path, Sec_WebSocket_Key="dGhlIHNhbXBsZSBub25jZQ==", **handshake, **headers)[0]


def logged_in(dashboard: Dashboard, to: str = "/") -> tuple[str, str]:
    """The cookie of a login, and where it leads."""
    status, headers, page = asked(dashboard, "/login", "POST", f"password={CANARY}&next={to}")
    assert status == 303, page
    return headers["Set-Cookie"], headers["Location"]


@needs_nicegui
def test_a_login_and_its_end(dashboard):
    status, headers, _ = asked(dashboard, "/fit?bundle=old")
    assert (status, headers["Location"]) == (303, "/login?next=/fit%3Fbundle%3Dold")
    assert asked(dashboard, "/login")[0] == 200
    status, _, page = asked(dashboard, "/login", "POST", "password=wrong-word-4711")
    assert (status, "the password is wrong" in page) == (403, True)
    cookie, to = logged_in(dashboard, "//evil.example")
    assert to == "/"
    assert {"HttpOnly", "SameSite=strict", "Path=/"} <= {part.strip() for part in cookie.split(";")}
    own = {"Cookie": cookie.split(";")[0]}
    status, headers, page = asked(dashboard, "/", **own)
    assert (status, "Bundle old" in page) == (200, True)
    assert "default-src 'self'" in headers["Content-Security-Policy"]
    assert (headers["Cache-Control"], headers["Server"]) == ("no-store", None)
    assert upgraded(dashboard, **own) == 101
    assert asked(dashboard, "/logout", "POST", **own)[0] == 303
    assert asked(dashboard, "/", **own)[0] == 303
    assert upgraded(dashboard, **own) == 403


@needs_nicegui
def test_foreign_names_and_pages_get_403(dashboard):
    own = {"Cookie": logged_in(dashboard)[0].split(";")[0]}
    for foreign in ({"Host": "evil.example"}, {"Origin": "http://evil.example"}, {"Origin": "null"}):
        assert asked(dashboard, "/", **own, **foreign)[0] == 403
        assert asked(dashboard, "/login", "POST", f"password={CANARY}", **foreign)[0] == 403
        assert upgraded(dashboard, **own, **foreign) == 403
    assert upgraded(dashboard, **own, Origin=dashboard.url) == 101


@needs_nicegui
def test_clients_that_say_nothing_keep_nobody_else_out_and_pages_stay_open(dashboard):
    """Silent ones take every connection that there is, and lose it within 20 s; a websocket is none of them."""
    cookie = logged_in(dashboard)[0].split(";")[0]
    port = int(dashboard.url.rpartition(":")[2])
    with contextlib.ExitStack() as opened:

        def connection() -> socket.socket:
            return opened.enter_context(socket.create_connection(("127.0.0.1", port), timeout=60))

        page = connection()
        page.sendall(
            b"GET /_nicegui_ws/socket.io/?EIO=4&transport=websocket HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\n"
            b"Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
            + f"Cookie: {cookie}\r\n\r\n".encode()
        )
        assert page.recv(12) == b"HTTP/1.1 101"
        for _ in range(310):
            connection().sendall(b"GET / HTTP/1.1\r\n")
        assert asked(dashboard, "/farlink.css")[0] == 503, "this is not what is tested, then: there is room"
        until(lambda: asked(dashboard, "/farlink.css", Cookie=cookie)[0] == 200)
        page.settimeout(1)
        with contextlib.suppress(TimeoutError):
            while True:
                assert page.recv(4096), "the page's connection was closed"


@needs_nicegui
def test_odd_requests_end_nothing(dashboard):
    own = {"Cookie": logged_in(dashboard)[0].split(";")[0]}
    for path in (
        "/line",
        "/line?bundle=x&line=y",
        "/timeline?span=9y",
        "/fit?bundle=../x",
        "/journal?page=0",
        "/journal?since=x",
    ):
        status, _, page = asked(dashboard, path, **own)
        assert status == 200, path
        assert "Error:" in page, path
    for path in ("/edit?profile=/etc/shadow", "/edit?new=bundle&name=../x", "/profile?name=../../x", "/edit?bundle=%00"):
        assert "Error:" in asked(dashboard, path, **own)[2], path
    for body in ("", "password", "password=" + "x" * 20_000, "\x00\xff", "next=/&next=//x", "a=1&" * 11):
        assert asked(dashboard, "/login", "POST", body)[0] in (403, 429)
        time.sleep(0)
    with socket.create_connection(("127.0.0.1", int(dashboard.url.rpartition(":")[2]))) as hasty:
        hasty.sendall(b"POST /login HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\npassword=")
    assert asked(dashboard, "/nothing", **own)[0] == 404
    script = "<script>alert(1)</script>"
    assert script not in asked(dashboard, f"/line?bundle=old&line={script}", **own)[2].replace("\\u003c", "<")
    assert "Traceback" not in dashboard.log, dashboard.log


@needs_nicegui
def test_tries_are_limited_and_no_secret_is_told(farlink_web, dashboard):
    answers = [asked(dashboard, "/login", "POST", f"password={CANARY}-{at}") for at in range(7)]
    assert answers[-1][0] == 429
    assert float(answers[-1][1]["Retry-After"]) >= 1
    assert "too many wrong passwords" in asked(dashboard, "/login", "POST", f"password={CANARY}")[2]
    assert CANARY not in dashboard.log
    for name in ("cmdline", "environ"):
        with contextlib.suppress(PermissionError):  # nobody but root may read the latter, which is as it should be
            assert CANARY not in Path(f"/proc/{dashboard.process.pid}/{name}").read_text()
    assert COOKIE not in dashboard.log
    assert not (dashboard.folder / ".nicegui").exists(), "nothing is stored beside the bundles"
    done = farlink_web(dashboard.folder, "--listen", dashboard.url.removeprefix("http://"))
    assert (done.returncode, done.stdout) == (1, "")
    assert "address already in use" in done.stderr


@contextlib.contextmanager
def hangups(action: signal.Handlers) -> Iterator[None]:
    """What SIGHUP does to programs that are started meanwhile."""
    before = signal.signal(signal.SIGHUP, action)
    try:
        yield
    finally:
        signal.signal(signal.SIGHUP, before)


@needs_nicegui
def test_the_end_of_a_terminal_ends_the_dashboard_with_its_bank(tmp_path):
    """SIGHUP is what a terminal that is closed sends, and what `nohup` ignores."""
    write_bundle(tmp_path)
    with hangups(signal.SIG_DFL):  # the tests themselves may run under `nohup`
        made = Dashboard(tmp_path, "old.toml")
    assert asked(made, "/farlink.css")[0] == 200
    made.process.send_signal(signal.SIGHUP)
    assert made.process.wait(60) == 0, made.log
    made.end()
    with hangups(signal.SIG_IGN):
        made = Dashboard(tmp_path, "old.toml")
    assert asked(made, "/farlink.css")[0] == 200
    made.process.send_signal(signal.SIGHUP)
    assert asked(made, "/farlink.css")[0] == 200
    assert made.end() == 0, made.log

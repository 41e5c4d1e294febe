"""Who may come in: names, origins, passwords, tries and logins; times are arguments."""

from __future__ import annotations

import asyncio
import stat
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farlink.errors import ArgumentError, OperatorError, OutputError
from farlink.operator.watch.listen import Place
from farlink.operator.watch.names import Names, is_same
from farlink.web.access import password
from farlink.web.access.guard import COOKIE, Guard
from farlink.web.access.logins import LIFE_S, Logins, Tries

HERE = Place(host="127.0.0.1", port=8090)


@pytest.mark.parametrize(
    "host", ["localhost", "localhost:8090", "127.0.0.1:8090", "[::1]:8090", "LOCALHOST:1", "dash.example.org"]
)
def test_names_that_are_ours(host):
    assert Names(HERE, ["dash.example.org"]).has(host)


@pytest.mark.parametrize(
    "host", ["", "evil.example", "localhost.evil.example", "127.0.0.1.nip.io", "10.0.0.1", "[::2]", "a b", "::1", "x:y"]
)
def test_names_that_are_not(host):
    assert not Names(HERE, ["dash.example.org"]).has(host)


def test_of_all_addresses_each_may_be_asked_by_its_digits_but_by_no_foreign_name():
    names = Names(Place(host="0.0.0.0", port=8090, is_remote=True))
    assert names.has("192.168.1.7:8090")
    assert not names.has("evil.example:8090")


@given(st.text(max_size=60))
def test_any_header_is_a_name_of_ours_or_refused(text):
    Names(HERE).has(text)
    assert not is_same(text, "localhost:8090") or "localhost:8090" in text.lower()


def test_a_name_that_is_none_is_refused():
    with pytest.raises(ArgumentError, match="no name of a host"):
        Names(HERE, ["http://x"])


def test_only_a_hash_is_kept_and_only_for_its_owner(tmp_path):
    path = tmp_path / "made" / "web-password.json"
    password.write(path, "canary-word-4711")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert "canary" not in path.read_text()
    assert password.is_right(path, "canary-word-4711")
    assert not password.is_right(path, "canary-word-4712")
    assert not password.is_right(path, "x" * 100_000)
    path.chmod(0o640)
    with pytest.raises(OperatorError, match=r"others may read .* \(mode 0640\)"):
        password.check_file(path)


@pytest.mark.parametrize(
    "text", ["", "7", "{}", '{"scrypt": [1, 2, 3], "salt": "00", "hash": "00"}', '{"scrypt": 1}', "[" * 9999, "\x00"]
)
def test_a_damaged_file_is_refused(tmp_path, text):
    path = tmp_path / "p"
    path.write_text(text)
    path.chmod(0o600)
    with pytest.raises(OperatorError, match=str(path)):
        password.check_file(path)


@pytest.mark.parametrize("text", ["", "short", "x" * 201])
def test_passwords_have_a_length(tmp_path, text):
    with pytest.raises(OperatorError, match=f"has {len(text)} letters"):
        password.write(tmp_path / "p", text)


def test_a_folder_that_cannot_be_made_is_named(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(OutputError, match=r"cannot make .*file/folder"):
        password.write(tmp_path / "file" / "folder" / "web-password.json", "long enough for it")


def test_wrong_passwords_make_longer_and_longer_pauses():
    tries, now = Tries(), 0.0
    waits = []
    for _ in range(12):
        assert tries.wait_s("10.0.0.1", now) == 0
        tries.failed("10.0.0.1", now)
        waits.append(tries.wait_s("10.0.0.1", now))
        now += waits[-1] + 61
    assert waits[:7] == [0, 0, 0, 0, 2, 4, 8]
    assert tries.wait_s("10.0.0.2", now) == 0
    tries.failed("10.0.0.1", now)
    tries.succeeded("10.0.0.1")
    assert tries.wait_s("10.0.0.1", now) == 0


def test_many_addresses_together_are_limited_and_take_no_memory():
    tries = Tries()
    for at in range(30):
        tries.failed(f"10.0.0.{at}", 5.0)
    assert tries.wait_s("10.9.9.9", 10.0) == pytest.approx(55)
    assert tries.wait_s("10.9.9.9", 66.0) == 0
    for at in range(3000):
        tries.failed(f"10.1.{at // 250}.{at % 250}", 100.0 + at)
    assert len(tries._of) <= 1000
    assert len(tries._recent_s) <= 3000
    tries.wait_s("x", 1e6)
    assert not tries._recent_s


def test_the_addresses_of_one_subscriber_count_as_one():
    tries = Tries()
    for at in range(5):
        tries.failed(f"2001:db8::{at}", 1.0)
    assert tries.wait_s("2001:db8::ffff", 1.0) > 0
    assert tries.wait_s("2001:db8:1::1", 1.0) == 0


def test_a_login_ends():
    logins = Logins()
    token = logins.begin(0.0)
    assert logins.is_in(token, LIFE_S - 1)
    assert not logins.is_in(token, LIFE_S)
    assert not logins.is_in(token, 0.0)
    token, other = logins.begin(0.0), logins.begin(0.0)
    logins.end(token)
    assert (logins.is_in(token, 1.0), logins.is_in(other, 1.0)) == (False, True)
    logins.end_all()
    assert not logins.is_in(other, 1.0)
    assert token not in repr(vars(logins))


class Asked:
    """An application that notes what reaches it."""

    def __init__(self) -> None:
        self.scopes = []

    async def __call__(self, scope, receive, send):
        self.scopes.append(scope)
        if scope["type"] == "websocket":
            self.received = [(await receive())["type"] for _ in range(2)]
            return
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"in"})


def status_of(guard, kind="http", path="/", **headers):
    """The status of the answer; that of a websocket that is refused is 403."""
    sent = []

    async def send(message):
        sent.append(message)

    async def receive():
        return {"type": "websocket.receive", "text": "2"}

    pairs = [(name.replace("_", "-").encode(), value.encode("latin-1")) for name, value in headers.items()]
    scope = {"type": kind, "path": path, "method": "GET", "headers": pairs, "query_string": b""}
    asyncio.run(guard(scope, receive, send))
    if kind == "websocket":
        return 403 if sent and sent[0]["type"] == "websocket.close" else 101
    return sent[0]["status"]


@pytest.mark.parametrize("kind", ["http", "websocket"])
def test_foreign_names_and_pages_reach_nothing(kind):
    asked = Asked()
    guard = Guard(asked, Names(HERE), None)
    for headers in (
        {"host": "evil.example"},
        {},
        {"host": "localhost:8090", "origin": "http://evil.example"},
        {"host": "localhost:8090", "origin": "null"},
        {"host": "localhost:8090", "origin": "http://localhost:9999"},
    ):
        assert status_of(guard, kind, **headers) == 403
    assert not asked.scopes
    assert status_of(guard, kind, host="localhost:8090", origin="http://localhost:8090") in (200, 101)


@pytest.mark.parametrize(
    "path", ["/", "/fit", "/_nicegui/x", "/_nicegui_ws/socket.io/", "/logins", "/login/", "//login", "/farlink.js"]
)
def test_nothing_but_the_login_is_seen_before_it(path, tmp_path):
    asked, logins = Asked(), Logins()
    guard = Guard(asked, Names(HERE), logins, tmp_path / "p")
    for cookie in ("", f"{COOKIE}=guessed", f"{COOKIE}=", ";;=;", f'{COOKIE}="\x80'):
        assert status_of(guard, path=path, host="localhost", cookie=cookie) == 401
        assert status_of(guard, "websocket", path=path, host="localhost", cookie=cookie) == 403
    assert status_of(guard, path=path, host="localhost", accept="text/html") == 303
    assert not asked.scopes
    token = logins.begin(time.monotonic())
    assert status_of(guard, path=path, host="localhost", cookie=f"a=b; {COOKIE}={token}") == 200
    (tmp_path / "p").write_text("another password")
    assert status_of(guard, path=path, host="localhost", cookie=f"{COOKIE}={token}") == 401


def test_so_many_at_once_are_served_and_one_more_when_one_has_ended():
    waiting: list[asyncio.Future[None]] = []

    async def page(scope, receive, send):  # noqa: ARG001
        waiting.append(asyncio.get_running_loop().create_future())
        await waiting[-1]

    async def all_of_them():
        guard = Guard(page, Names(HERE), None)
        sent = []

        async def send(message):
            sent.append(message)

        scope = {"type": "websocket", "path": "/", "headers": [(b"host", b"localhost")], "query_string": b""}
        pages = [asyncio.create_task(guard(scope, None, send)) for _ in range(300)]
        while len(waiting) + len(sent) < 300:
            await asyncio.sleep(0)
        assert (len(waiting), {message["type"] for message in sent}) == (200, {"websocket.close"})
        waiting[0].set_result(None)
        await pages[0]
        pages.append(asyncio.create_task(guard(scope, None, send)))
        await asyncio.sleep(0)
        assert len(waiting) == 201
        for one in waiting[1:]:
            one.set_result(None)
        await asyncio.gather(*pages)

    asyncio.run(all_of_them())


def test_a_websocket_ends_with_its_login(tmp_path):
    asked, logins = Asked(), Logins()
    guard = Guard(asked, Names(HERE), logins, tmp_path / "p")
    token = logins.begin(time.monotonic())
    real = logins.is_in
    answers = iter([True, True, False])
    logins.is_in = lambda *given: next(answers) and real(*given)
    status_of(guard, "websocket", host="localhost", cookie=f"{COOKIE}={token}")
    assert asked.received == ["websocket.receive", "websocket.disconnect"]


def test_a_login_with_a_new_password_is_not_ended_by_that_password(tmp_path):
    """Who has the login's page open gives the new password first, and asks for another page then."""
    logins = Logins()
    tokens = [logins.begin(time.monotonic())]

    class Login(Asked):
        async def __call__(self, scope, receive, send):
            tokens.append(logins.begin(time.monotonic()))
            await super().__call__(scope, receive, send)

    guard = Guard(Login(), Names(HERE), logins, tmp_path / "p")
    (tmp_path / "p").write_text("another password")
    assert status_of(guard, path="/login", host="localhost") == 200
    old, new = tokens
    assert status_of(guard, path="/", host="localhost", cookie=f"{COOKIE}={old}") == 401
    assert status_of(guard, path="/", host="localhost", cookie=f"{COOKIE}={new}") == 200

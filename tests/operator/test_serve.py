"""`farlink bundle serve` beside operators at both ends of a bank: what it tells, whom it refuses, and that it stops nothing."""

from __future__ import annotations

import contextlib
import http.client
import json
import re
import shlex
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from farlink.operator.watch.tokens import Tokens, file_of
from tests.conftest import ROOT
from tests.operator.live_world import CANARY, FARLINK, PATIENCE_S, World, until, world_in
from tests.operator.watched import promtool

httpx = pytest.importorskip("httpx")
schemathesis = pytest.importorskip("schemathesis")

BUNDLE = "/v1/bundles/near"


class Server:
    """`farlink bundle serve`, as a process."""

    def __init__(self, folder: Path, *arguments: object) -> None:
        self.log_file = folder / f"serve-{time.monotonic_ns()}.log"
        self.command = [*FARLINK, "bundle", "serve", *map(str, arguments)]
        with self.log_file.open("wb") as log:
            self.process = subprocess.Popen(self.command, stdout=log, stderr=log)
        until(lambda: "listening at" in self.log or self.process.poll() is not None, lambda: self.log)

    @property
    def log(self) -> str:
        return self.log_file.read_text(errors="replace")

    @property
    def where(self) -> str:
        found = re.search(r"listening at (\S+)", self.log)
        assert found is not None, self.log
        return found[1]

    def client(self, token: str = "") -> httpx.Client:
        headers = {"authorization": f"Bearer {token}"} if token else {}
        if self.where.startswith("/"):
            transport = httpx.HTTPTransport(uds=self.where)
            return httpx.Client(transport=transport, base_url="http://near", headers=headers, timeout=PATIENCE_S)
        return httpx.Client(base_url=self.where, headers=headers, timeout=PATIENCE_S)

    def end(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(PATIENCE_S)


@contextlib.contextmanager
def serving(folder: Path, *arguments: object) -> Iterator[Server]:
    server = Server(folder, *arguments)
    try:
        yield server
    finally:
        server.process.kill()
        server.process.wait()


@pytest.fixture(scope="module")
def world(tmp_path_factory) -> Iterator[World]:
    """Two lines at each end; near's tokens, one of which may change."""
    with world_in(tmp_path_factory.mktemp("served")) as made:
        made.bank(2)
        made.near = made.start(made.configure("near", 2))
        made.far = made.start(made.configure("far", 2))
        until(lambda: made.near.ups() == made.far.ups() == 2, lambda: made.near.log + made.far.log)
        tokens = Tokens(file_of(made.near.bundle.journal))
        made.reader, made.changer = tokens.add("reader", "read"), tokens.add("changer", "change")
        yield made


@pytest.fixture(scope="module")
def server(world) -> Iterator[Server]:
    arguments = (world.near.config, world.far.config, "--listen", "127.0.0.1:0", "--allow-changes")
    with serving(world.folder, *arguments) as made:
        yield made
        assert made.end() == 0, made.log


def test_it_tells_what_the_operator_and_the_journal_say(world, server):
    with server.client(world.reader) as client:
        assert client.get("/v1/bundles").json() == {"bundles": [{"bundle": "near", "is_operated": True}]}
        status = client.get(BUNDLE).json()
        assert (status["bundle"], status["up"], len(status["lines"])) == ("near", 2, 2)
        assert client.get(f"{BUNDLE}/lines").json()["lines"][0]["line"] == "near-1"
        assert client.get(f"{BUNDLE}/lines/near-2").json()["state"] == "connected"
        assert [one["alert"] for one in client.get(f"{BUNDLE}/alerts").json()["alerts"]] == [
            one["alert"] for one in status["alerts"]
        ]
        found, after = [], 0
        while (page := client.get(f"{BUNDLE}/transitions", params={"after": after, "limit": 3}).json())["transitions"]:
            found += page["transitions"]
            after = found[-1]["number"]
        assert [one["number"] for one in found] == [one.number for one in world.near.history.transitions][: len(found)]
        only = client.get(f"{BUNDLE}/transitions", params={"line": "near-1", "state": "connected"}).json()["transitions"]
        assert {(one["line"], one["state"]) for one in only} == {("near-1", "connected")}
        assert client.get(f"{BUNDLE}/connections").json()["connections"][-1]["number"] == 1
        report = client.get(f"{BUNDLE}/connections/last/report").json()
        assert [one["line"] for one in report["lines"] if one["ups"]] != []
        text = client.get("/metrics")
        assert text.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
        assert 'farlink_line_up{bundle="near",line="near-1"} 1.0' in text.text
        assert 'farlink_line_up{bundle="far",line="far-2"} 1.0' in text.text
        tool = promtool()
        if tool is not None:
            done = subprocess.run([tool, "check", "metrics"], input=text.content, capture_output=True, check=False)
            assert (done.returncode, done.stderr) == (0, b"")


def test_orders_are_carried_out_and_drops_counted(world, server):
    with server.client(world.changer) as client:
        done = client.post(f"{BUNDLE}/hold", json={"lines": ["near-2"], "why": "antenna"})
        assert (done.status_code, done.json()["lines"]) == (200, ["near-2"]), done.text
        until(lambda: world.near.state("near-2") == "held")
        assert world.near.of("near-2", "held")[-1].cause == "antenna (by changer)"
        assert client.get(f"{BUNDLE}/lines/near-2").json()["state"] == "held"
        refused = client.post(f"{BUNDLE}/redial", json={"lines": ["near-2"]})
        assert (refused.status_code, refused.json()["error"]) == (409, "redial: near-2 is held")
        assert client.post(f"{BUNDLE}/release", json={"lines": ["near-2"]}).status_code == 200
        until(lambda: world.near.ups() == 2, lambda: world.near.log)

        def injected() -> float:
            found = re.search(
                r'farlink_line_injected_drops_total{bundle="near",line="near-1"} (\S+)', client.get("/metrics").text
            )
            assert found is not None
            return float(found[1])

        before = injected()
        assert client.post(f"{BUNDLE}/drop", json={"lines": ["near-1"]}).status_code == 200
        until(lambda: injected() == before + 1)
        assert client.post(f"{BUNDLE}/inject", json={"lines": ["near-1"], "mean_s": 9999}).status_code == 200
        assert client.get(BUNDLE).json()["injected_per_s"] == pytest.approx(1 / 9999)
        assert client.delete(f"{BUNDLE}/inject").status_code == 200
        assert client.get(BUNDLE).json()["injected_per_s"] is None
        until(lambda: world.near.ups() == 2, lambda: world.near.log)


READS = [
    "/v1/bundles",
    BUNDLE,
    f"{BUNDLE}/lines/near-1",
    f"{BUNDLE}/transitions",
    f"{BUNDLE}/connections/last/report",
    f"{BUNDLE}/fit",
]
ORDERS = ["hold", "release", "redial", "drop", "inject"]


def test_without_the_right_token_nothing_is_told_or_done(world, server):
    wrong = world.reader[:-4] + "AAAA"
    before = len(world.near.history.transitions)
    for path in READS:
        with server.client() as client:
            answer = client.get(path)
            assert (answer.status_code, answer.headers["www-authenticate"]) == (401, 'Bearer realm="farlink"')
        with server.client(wrong) as client:
            assert client.get(path).status_code == 401
            assert client.get("/metrics").status_code == 401, "a wrong token is refused where none is needed, too"
    body = {"lines": ["near-1"], "mean_s": 1}
    for order in ORDERS:
        for token, status in (("", 401), (wrong, 401), (world.reader, 403)):
            with server.client(token) as client:
                assert client.post(f"{BUNDLE}/{order}", json=body).status_code == status
    with server.client(world.changer) as client:
        assert client.get("/v1/bundles/far").status_code == 403, "the token is near's"
        assert client.post("/v1/bundles/far/hold", json={"lines": ["far-1"]}).status_code == 403
        for kind in (f"Basic {world.changer}", f"Bearer {world.changer} x", "Bearer", world.changer):
            assert client.get(BUNDLE, headers={"authorization": kind}).status_code == 401
        assert client.get(BUNDLE, params={"token": world.changer}, headers={"authorization": ""}).status_code == 401
    assert not [one for one in world.near.history.transitions[before:] if one.state in ("held", "dropped")]


def test_a_token_that_is_revoked_is_refused_at_once(world, server):
    tokens = Tokens(file_of(world.near.bundle.journal))
    token = tokens.add("guest", "read")
    with server.client(token) as client:
        assert client.get(BUNDLE).status_code == 200
        tokens.revoke("guest")
        assert client.get(BUNDLE).status_code == 401


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"host": "localhost"}, 200),
        ({"host": "[::1]:80"}, 200),
        ({"host": "evil.example"}, 403),
        ({"host": "127.0.0.1.evil.example"}, 403),
        ({"host": "127.0.0.1@evil.example"}, 403),
        ({"host": ""}, 403),
        ({"origin": "http://127.0.0.1:1"}, 200),
        ({"origin": "http://evil.example"}, 403),
        ({"origin": "null"}, 403),
        ({"origin": "file://127.0.0.1"}, 403),
        ({"origin": "http://[::1"}, 403),
    ],
)
@pytest.mark.parametrize("path", ["/metrics", BUNDLE, "/openapi.json"])
def test_foreign_hosts_and_origins_are_refused(world, server, path, headers, status):
    with server.client(world.reader) as client:
        answer = client.get(path, headers=headers)
        assert answer.status_code == status
        assert "server" not in answer.headers
        assert "access-control-allow-origin" not in answer.headers


def test_bodies_and_requests_that_are_too_long_or_none_are_refused(world, server):
    host, port = server.where.removeprefix("http://").split(":")
    with server.client(world.changer) as client:
        assert client.post(f"{BUNDLE}/hold", content=b"x" * 70_000).status_code == 413
        chunks = (b"x" * 1000 for _ in range(100))
        assert client.post(f"{BUNDLE}/hold", content=chunks).status_code == 413
        for body in (
            b"",
            b"{",
            b"[]",
            b"\xff",
            b'{"lines": []}',
            b'{"lines": ["near-1"], "more": 1}',
            b'{"lines": "near-1"}',
            b"[" * 60_000,
        ):
            answer = client.post(f"{BUNDLE}/hold", content=body, headers={"content-type": "application/json"})
            assert answer.status_code in (400, 422)
            assert set(answer.json()) == {"error", "remedy"}
        assert client.post(f"{BUNDLE}/hold", json={"lines": ["nobody"]}).status_code == 404
        for value in ("x", "-1", "1e400", "nan", "99999999999999999999", ""):
            assert client.get(f"{BUNDLE}/transitions", params={"limit": value}).status_code == 422
        assert client.get(f"{BUNDLE}/connections/999/report").status_code == 404
        assert client.delete(BUNDLE).status_code == 405
        assert client.get(f"{BUNDLE}%2f..%2f..").status_code == 404
    for sent in (
        b"GET / HTTP/9\r\n\r\n",
        b"\x16\x03\x01\x02",
        b"GET / HTTP/1.1\r\n" + b"a: b\r\n" * 9000 + b"\r\n",
        b"GET /" + b"x" * 99_999,
    ):
        with socket.create_connection((host, int(port)), timeout=PATIENCE_S) as raw, contextlib.suppress(ConnectionError):
            raw.sendall(sent)
            raw.shutdown(socket.SHUT_WR)
            assert raw.recv(100)[:12] in (b"HTTP/1.1 400", b"HTTP/1.1 403", b"")
    assert "internal" not in server.log.lower()


def schema_of(server: Server, token: str):
    return schemathesis.openapi.from_url(f"{server.where}/openapi.json", headers={"authorization": f"Bearer {token}"})


@pytest.mark.parametrize("cases", [200, pytest.param(5000, marks=pytest.mark.nightly)])
def test_the_api_keeps_what_its_description_says_whatever_is_asked(world, server, cases):
    """Cases by its own description, right and wrong ones; of those with a bundle in the path, most name one that there is."""
    schema = schema_of(server, world.changer)
    modes = (schemathesis.GenerationMode.POSITIVE, schemathesis.GenerationMode.NEGATIVE)
    operations = [found.ok() for found in schema.get_all_operations()]
    assert len(operations) >= 14
    counts: dict[int, int] = {}
    strategies = [one.as_strategy(generation_mode=mode) for one in operations for mode in modes if _can(one, mode)]

    @settings(max_examples=cases, database=None, suppress_health_check=list(HealthCheck))
    @given(case=st.one_of(strategies), is_known=st.integers(0, 4))
    def ask(case, is_known):
        if is_known and "bundle" in (case.path_parameters or {}):
            case.path_parameters["bundle"] = "near"
            if "line" in case.path_parameters:
                case.path_parameters["line"] = "near-1"
        if is_known > 2 and isinstance(case.body, dict) and isinstance(case.body.get("lines"), list):
            case.body["lines"] = ["near-1"]
        answer = case.call(headers={"authorization": f"Bearer {world.changer}"})
        counts[answer.status_code] = counts.get(answer.status_code, 0) + 1
        assert answer.status_code < 500, (case.as_curl_command(), answer.content)
        case.validate_response(answer, checks=_checks())

    ask()
    print(f"answers by status: {dict(sorted(counts.items()))}")
    assert counts.get(200, 0) > cases / 20
    assert world.near.process.poll() is None
    assert server.process.poll() is None
    world.near.ask(do="inject", off=True)
    with contextlib.suppress(Exception):
        world.near.ask(do="release")
    until(lambda: world.near.ups() == 2, lambda: world.near.log[-2000:])


def _can(operation, mode) -> bool:
    """Whether there are cases: an operation without parameters has no wrong ones."""
    try:
        operation.as_strategy(generation_mode=mode).validate()
    except Exception:
        return False
    return True


def _checks():
    from schemathesis.checks import load_all_checks
    from schemathesis.specs.openapi import checks

    load_all_checks()
    return [checks.status_code_conformance, checks.content_type_conformance, checks.response_schema_conformance]


def test_an_operator_that_is_away_is_503_and_the_journal_is_told_all_the_same(world, tmp_path):
    config = world.configure("other", 1)
    for suffix in ("", "-wal"):
        shutil.copy(f"{world.near.bundle.journal}{suffix}", config.with_name(f"other.journal{suffix}"))
    with serving(tmp_path, config) as server, server.client() as client:
        assert Path(server.where).stat().st_mode & 0o777 == 0o600
        answer = client.get("/v1/bundles/other", headers={"host": "any.example"})
        assert answer.status_code == 503
        assert answer.json()["error"].startswith("no operator of bundle other is running")
        assert client.get("/v1/bundles").json() == {"bundles": [{"bundle": "other", "is_operated": False}]}
        assert client.get("/v1/bundles/other/transitions").json()["transitions"]
        assert client.get("/v1/bundles/other/connections/1/report").status_code == 200
        assert 'farlink_operator_reachable{bundle="other"} 0.0' in client.get("/metrics").text
        assert client.post("/v1/bundles/other/hold", json={"lines": ["x"]}).status_code == 404, "changes are not allowed"
        assert client.get("/v1/bundles/other", headers={"origin": "http://evil.example"}).status_code == 403
        where = Path(server.where)
        assert server.end() == 0
        assert not where.exists()


def test_a_port_that_is_taken_is_said_and_the_bundle_stays_up(world, server, programs):
    def refused(*arguments: object) -> tuple[int, str]:
        command = ["-m", "farlink.cli", "bundle", "serve", *map(str, arguments)]
        done = programs.run(command, cwd=world.folder, timeout=PATIENCE_S)
        return done.returncode, done.stderr.decode()

    address, config = server.where.removeprefix("http://"), world.near.config
    port = address.rpartition(":")[2]
    status, said = refused(config, "--listen", address)
    assert (status, said.splitlines()[0]) == (1, f"error: cannot listen at 127.0.0.1 port {port}: address already in use")
    assert world.near.process.poll() is None
    for more in (("--listen", "0.0.0.0:0"), ("--listen", "x"), (config,), ("--listen", "127.0.0.1:0", "--socket", "s")):
        status, said = refused(config, *more)
        assert (status, "hint: " in said) == (2, True), said
    (world.folder / "taken").write_text("mine")
    assert refused(config, "--socket", world.folder / "taken")[0] == 1


def test_a_remote_address_needs_a_token_for_everything(world, tmp_path):
    # 0.0.0.0 is remote by its rule; it is asked over loopback, by a name that is allowed.
    arguments = (world.near.config, "--listen", "0.0.0.0:0", "--allow-remote", "--allow-host", "127.0.0.1")
    with serving(tmp_path, *arguments) as server:
        where = server.where.replace("0.0.0.0", "127.0.0.1")
        for path in ("/metrics", "/openapi.json", "/v1/bundles", BUNDLE):
            assert httpx.get(where + path).status_code == 401
            assert httpx.get(where + path, headers={"authorization": f"Bearer {world.reader}"}).status_code == 200


def test_a_server_that_is_killed_or_stopped_ends_nothing(world, tmp_path):
    calls = {name: one["call"] for name, one in world.near.lines().items()}
    with serving(tmp_path, world.near.config, "--listen", "127.0.0.1:0") as server, server.client() as client:
        client.get("/metrics")
        for number in (signal.SIGSTOP, signal.SIGKILL):
            server.process.send_signal(number)
            world.near.ask(do="status")
    assert {name: one["call"] for name, one in world.near.lines().items()} == calls


def test_under_nohup_the_end_of_a_terminal_ends_nothing(world, tmp_path):
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        server = Server(tmp_path, world.near.config, "--socket", tmp_path / "http")
    finally:
        signal.signal(signal.SIGHUP, before)
    server.process.send_signal(signal.SIGHUP)
    with server.client() as client:
        assert client.get("/v1/bundles").status_code == 200
    assert server.end() == 0, server.log


def test_operators_that_hang_delay_nobody_for_long(world, tmp_path):
    arguments = (world.near.config, world.far.config, "--listen", "127.0.0.1:0")
    with serving(tmp_path, *arguments) as server, server.client() as client:
        for one in (world.near, world.far):
            one.process.send_signal(signal.SIGSTOP)
        try:
            begin = time.monotonic()
            text = client.get("/metrics").text
            took_s = time.monotonic() - begin
        finally:
            for one in (world.near, world.far):
                one.process.send_signal(signal.SIGCONT)
        assert text.count("\nfarlink_operator_reachable{") == 2
        assert took_s < 9, "less than Prometheus waits, 10 s"
        until(lambda: 'farlink_operator_reachable{bundle="near"} 1.0' in client.get("/metrics").text)


def test_no_secret_is_in_a_log_a_metric_an_answer_or_the_process_list(world, server):
    secrets = [CANARY, *(token.split("_", 2)[2] for token in (world.reader, world.changer))]
    told = [server.log, Path(f"/proc/{server.process.pid}/cmdline").read_text()]
    with server.client(world.changer) as client:
        paths = [
            *READS,
            "/metrics",
            "/openapi.json",
            f"{BUNDLE}/connections",
            f"{BUNDLE}/alerts",
            f"{BUNDLE}/nothing?token={CANARY}",
        ]
        for path in paths:
            answer = client.get(path)
            told += [answer.text, str(answer.headers)]
        client.post(f"{BUNDLE}/hold?x={CANARY}", json={"lines": [CANARY[:-1]]})
    told.append(server.log)
    with contextlib.suppress(PermissionError):  # which is the point: it is not dumpable
        told.append(Path(f"/proc/{server.process.pid}/environ").read_text())
    told.append(file_of(world.near.bundle.journal).read_text())
    for secret in secrets:
        assert not [text for text in told if secret in text], secret


def test_the_commands_of_tokens_and_reports(world, programs):
    def farlink(*arguments: object) -> subprocess.CompletedProcess[str]:
        command = ["-m", "farlink.cli", "bundle", *map(str, arguments)]
        done = programs.run(command, cwd=world.folder, timeout=PATIENCE_S)
        return subprocess.CompletedProcess(command, done.returncode, done.stdout.decode(), done.stderr.decode())

    config = world.near.config
    made = farlink("token", "add", "cli", "--right", "change", config)
    assert re.fullmatch(r"flk1_\S+\n", made.stdout)
    assert "cli   " in farlink("token", "list", config).stdout
    assert farlink("token", "add", "cli", config).returncode == 2
    assert farlink("token", "revoke", "cli", config).returncode == 0
    assert "cli " not in farlink("token", "list", config).stdout
    assert farlink("report", config).stdout.startswith("# Connection ")
    folder = world.folder / "reports"
    folder.mkdir()
    assert farlink("report", config, "--connection", 1, "-o", folder).returncode == 0
    assert sorted(one.suffix for one in folder.iterdir()) == [".html", ".json", ".md"]
    page = (folder / "near-connection-1.html").read_text()
    assert "<svg" in page
    assert "http" not in page.replace("http://www.w3.org", "")
    assert json.loads((folder / "near-connection-1.json").read_text())["connection"] == 1
    for arguments in (("--connection", 999), ("--connection", 0), ("-o", "x.pdf"), ("-o", "/nowhere/x.md")):
        refused = farlink("report", config, *arguments)
        assert (refused.returncode, "hint: " in refused.stderr) == (2, True), refused.stderr


def test_keep_alive_and_pipelined_requests_are_answered_in_order(world, server):
    host, port = server.where.removeprefix("http://").split(":")
    connection = http.client.HTTPConnection(host, int(port), timeout=PATIENCE_S)
    for _ in range(20):
        connection.request("GET", BUNDLE, headers={"authorization": f"Bearer {world.reader}"})
        answer = connection.getresponse()
        assert (answer.status, json.loads(answer.read())["bundle"]) == (200, "near")
    connection.close()


def test_the_commands_of_the_guide_run(world, programs, tmp_path):
    guide = (ROOT / "docs" / "guides" / "bundle-watch.md").read_text(encoding="utf-8").replace("kansas", "near-1")
    blocks = re.findall(r"^```console\n(.*?)^```$", guide, flags=re.MULTILINE | re.DOTALL)
    serve, *commands = [shlex.split(line) for block in blocks for line in re.findall(r"^\$ (.*)$", block, flags=re.MULTILINE)]
    assert serve == ["farlink", "bundle", "serve", "near.toml"]
    assert len(commands) >= 14
    printed = ""
    with serving(tmp_path, world.near.config):
        for program, *arguments in commands:
            if program == "farlink":
                done = programs.run(["-m", "farlink.cli", *arguments], cwd=world.folder, timeout=PATIENCE_S)
            else:
                done = subprocess.run([program, "-f", *arguments], cwd=world.folder, capture_output=True, check=False)
            assert done.returncode == 0, (program, arguments, done.stderr)
            printed += done.stdout.decode()
    assert '"is_operated":true' in printed
    assert "farlink_line_up" in printed
    assert (world.folder / "monitoring" / "farlink-rules.yaml").is_file()


@pytest.mark.usefixtures("world")
def test_clients_that_say_nothing_keep_nobody_else_out(server):
    """They take every connection that there is, and lose it soon: within 20 s; the body of a request has 10 s."""
    host, port = server.where.removeprefix("http://").split(":")
    with contextlib.ExitStack() as idle:
        for at in range(110):
            one = idle.enter_context(socket.create_connection((host, int(port)), timeout=PATIENCE_S))
            one.sendall(
                b"POST /v1/bundles HTTP/1.1\r\nHost: 127.0.0.1\r\n" + (b"Content-Length: 9\r\n\r\n" if at == 0 else b"")
            )
        refused = httpx.get(f"{server.where}/metrics")
        assert refused.status_code == 503, "this is not what is tested, then: there is room"
        until(lambda: httpx.get(f"{server.where}/metrics").status_code == 200)

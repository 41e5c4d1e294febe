"""`farlink gateway` as a user types it: the commands of its guide, curl, signals, refusals."""

from __future__ import annotations

import http.server
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.conftest import ROOT, Command, assert_refused

GUIDE = ROOT / "docs" / "guides" / "gateway.md"
UNIT = ROOT / "docs" / "guides" / "farlink-gateway@.service"
Start = Callable[..., tuple[subprocess.Popen[str], list[str]]]


@pytest.fixture
def hosts(farlink: Command, tmp_path: Path) -> Path:
    """A folder with the keys of two hosts, `office` and `hub`, that know each other."""
    keys = {name: farlink("keygen", "--keys", name).stdout.strip() for name in ("office", "hub")}
    assert farlink("trust", keys["hub"], "hub", "--keys", "office").returncode == 0
    assert farlink("trust", keys["office"], "office", "--keys", "hub").returncode == 0
    return tmp_path


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Start `farlink gateway` with arguments; gives the process and its addresses, that of sessions first."""
    processes = []

    def started(*arguments: str, namespace: str = "") -> tuple[subprocess.Popen[str], list[str]]:
        command = [*within(namespace), sys.executable, "-m", "farlink.cli", "gateway", *arguments]
        # Warnings of short buffers depend on the machine.
        environment = {**os.environ, "FARLINK_LOG": "error"}
        process = subprocess.Popen(command, cwd=tmp_path, env=environment, stderr=subprocess.PIPE, text=True)
        processes.append(process)
        assert process.stderr is not None
        while not (said := process.stderr.readline()).startswith("sessions at "):
            assert said, process.wait()
        return process, re.findall(r"[\d.]+:\d+", said)

    yield started
    for process in processes:
        process.kill()
        process.communicate()


@pytest.fixture
def server() -> Iterator[str]:
    """Address of a web server that answers with 100,000 bytes."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Length", "100000")
            self.end_headers()
            self.wfile.write(b"x" * 100_000)

        def log_message(self, *_: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as httpd:
        threading.Thread(target=httpd.serve_forever, daemon=True).start()
        yield f"127.0.0.1:{httpd.server_address[1]}"
        httpd.shutdown()


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.DOTALL)


def within(namespace: str) -> list[str]:
    return ["ip", "netns", "exec", namespace] if namespace else []


def run_curl(*arguments: str, namespace: str = "") -> subprocess.CompletedProcess[bytes]:
    if shutil.which("curl") is None:
        pytest.skip("curl is not installed")
    # Variables of the environment may name other proxies.
    environment = {key: value for key, value in os.environ.items() if "proxy" not in key.lower()}
    command = [*within(namespace), "curl", "-sS", "--max-time", "20", *arguments]
    return subprocess.run(command, capture_output=True, env=environment, check=False)


def curl(*arguments: str, namespace: str = "") -> bytes:
    done = run_curl(*arguments, namespace=namespace)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_guide(farlink, hosts, start, server):
    hub, office, passwords, _, _, udp, custody = blocks("toml")
    # The machine of the test stands for both, and for the destination.
    port = server.rpartition(":")[2]
    hub = hub.replace("192.0.2.1:47470", "127.0.0.1:0").replace('"10.7.0.0/16:22"', f'"10.7.0.0/16:22", "127.0.0.1:{port}"')
    (hosts / "hub.toml").write_text('keys = "hub"\n' + hub)
    typed = [line.partition("$ ") for block in blocks("console") for line in block.splitlines()]
    commands = {(host, words.partition("#")[0].strip()) for host, _, words in typed}
    assert ("hub", "farlink gateway hub.toml") in commands
    assert ("office", "farlink gateway office.toml") in commands

    _, [sessions, *_] = start("hub.toml")
    text = office.replace("192.0.2.1:47470", sessions).replace("10.7.1.2:22", server)
    text = re.sub(r"127\.0\.0\.1:(1080|3128|2222)", "127.0.0.1:0", text)
    (hosts / "office.toml").write_text('keys = "office"\n' + text)
    _, [_, forward, socks, proxy] = start("office.toml")

    assert len(curl(f"http://{forward}/")) == 100_000
    assert len(curl("--proxy", f"socks5h://{socks}", f"http://{server}/")) == 100_000
    assert len(curl("--proxy", f"http://{proxy}", "--proxytunnel", f"http://{server}/")) == 100_000

    for host, command in sorted(commands):
        words = command.split()
        if words[:3] == ["farlink", "gateway", "check"]:
            done = farlink(*words[1:])
            assert done.returncode == 0, done.stderr
            assert done.stdout.count("\n") >= 2, command
            assert host in ("hub", "office")
    assert "office may reach it through this gateway" in farlink("gateway", "check", "hub.toml", "10.7.1.2:22").stdout
    assert "class 1" in farlink("gateway", "check", "office.toml", "10.7.1.2:22").stdout

    (hosts / "passwords").write_text("ann:open sesame\n")
    (hosts / "passwords").chmod(0o600)
    with_password = (hosts / "office.toml").read_text() + passwords.replace("10.1.0.1:1080", "0.0.0.0:0")
    (hosts / "passwords.toml").write_text(with_password)
    assert "with a password" in farlink("gateway", "check", "passwords.toml").stdout

    (hosts / "udp.toml").write_text((hosts / "office.toml").read_text() + udp)
    said = farlink("gateway", "check", "udp.toml", "10.7.1.3:5004").stdout
    assert "10.7.1.3:5004 (UDP): class 2, quasi-reliable, given up after 1 s (rule 3)" in said
    assert "10.7.1.3:5004: class 6, reliable, no deadline (no rule)" in said

    # Any two keys.
    keys = {name: farlink("keygen", "--keys", name).stdout.strip() for name in ("hub-keys", "ship", "shore")}
    for name in ("ship", "shore"):
        custody = custody.replace(name.upper(), keys[name])
    (hosts / "custody.toml").write_text(custody)
    said = farlink("gateway", "check", "custody.toml").stdout
    assert "streams of ship to the sink archive go to shore, and are kept until it has them" in said


def test_a_reload_keeps_connections_and_a_signal_drains(hosts, start, server):
    port = server.rpartition(":")[2]
    (hosts / "hub.toml").write_text(f'keys = "hub"\nlisten = "127.0.0.1:0"\n[peer.office]\nallow = ["127.0.0.1:{port}"]\n')
    hub, [sessions, *_] = start("hub.toml")
    text = f'keys = "office"\n[peer.hub]\naddress = "{sessions}"\n[[forward]]\nlisten = "127.0.0.1:0"\n'
    (hosts / "office.toml").write_text(f'{text}destination = "{server}"\n')
    office, [_, forward] = start("office.toml", "--log", "info", "--log-json")
    address, _, port = forward.partition(":")
    with socket.create_connection((address, int(port)), timeout=20) as client:
        client.sendall(b"GET / HTTP/1.0\r\n")

        office.send_signal(signal.SIGHUP)
        assert office.stderr.readline() == "reloaded\n"
        (hosts / "hub.toml").write_text("listen = 5\n")
        hub.send_signal(signal.SIGHUP)
        said = hub.stderr.readline()
        assert said.startswith("the configuration before stays in force: hub.toml: line 1: "), said

        office.terminate()
        assert office.stderr.readline() == "draining\n"
        client.sendall(b"\r\n")
        arrived = b""
        while piece := client.recv(65536):
            arrived += piece
        assert len(arrived) > 100_000
    assert office.wait(20) == 0
    lines = [json.loads(line) for line in office.stderr.read().splitlines()]
    assert any(line["fields"].get("message") == "a connection has ended" for line in lines), lines
    assert server not in json.dumps(lines), "destinations are logged only on request"


def test_both_ends_are_reset_when_a_gateway_is_killed(hosts, start):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        (hosts / "hub.toml").write_text(f'keys = "hub"\nlisten = "127.0.0.1:0"\n[peer.office]\nallow = ["127.0.0.1:{port}"]\n')
        hub, [sessions, *_] = start("hub.toml")
        text = f'keys = "office"\n[peer.hub]\naddress = "{sessions}"\n[[forward]]\nlisten = "127.0.0.1:0"\n'
        (hosts / "office.toml").write_text(f'{text}destination = "127.0.0.1:{port}"\n')
        office, [_, forward] = start("office.toml")
        address, _, port = forward.partition(":")
        with socket.create_connection((address, int(port)), timeout=20) as client:
            client.sendall(b"x")
            served, _ = listener.accept()
            with served:
                assert served.recv(1) == b"x"
                for gateway, end in ((office, client), (hub, served)):
                    gateway.kill()
                    end.settimeout(20)
                    with pytest.raises(ConnectionResetError):
                        end.recv(1)


def ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, capture_output=True)


@contextmanager
def named(*names: str) -> Iterator[None]:
    """Network namespaces of these names, which are removed at the end."""
    if os.geteuid() != 0 or shutil.which("ip") is None:
        pytest.skip("namespaces need root and iproute2")
    try:
        for name in names:
            ip("netns", "add", name)
            ip("-n", name, "link", "set", "lo", "up")
        yield
    finally:
        for name in names:
            subprocess.run(["ip", "netns", "delete", name], check=False, capture_output=True)


def join(near: str, far: str, near_at: str, far_at: str, names: tuple[str, str] = ("wire", "wire")) -> None:
    """Put a link between two namespaces."""
    ip("-n", near, "link", "add", names[0], "type", "veth", "peer", "name", names[1], "netns", far)
    for end, name, address in zip((near, far), names, (near_at, far_at), strict=True):
        ip("-n", end, "address", "add", address, "dev", name)
        ip("-n", end, "link", "set", name, "up")


@pytest.fixture
def namespaces() -> Iterator[tuple[str, str]]:
    """Two network namespaces with a link between them: 10.98.7.1 and 10.98.7.2."""
    near, far = (f"farlink-{side}-{os.getpid()}" for side in ("near", "far"))
    with named(near, far):
        join(near, far, "10.98.7.1/24", "10.98.7.2/24")
        yield near, far


def test_curl_reaches_a_server_of_another_network_only_through_the_gateways(hosts, start, namespaces):
    near, far = namespaces
    program = [sys.executable, "-m", "http.server", "--bind", "127.0.0.1", "8000"]
    server = subprocess.Popen(
        ["ip", "netns", "exec", far, *program], cwd=hosts, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL
    )
    try:
        (hosts / "page").write_bytes(b"x" * 300_000)
        (hosts / "hub.toml").write_text('keys = "hub"\nlisten = "10.98.7.2:0"\n[peer.office]\nallow = ["127.0.0.1:8000"]\n')
        _, [sessions] = start("hub.toml", namespace=far)
        (hosts / "passwords").write_text("ann:open sesame\n")
        (hosts / "passwords").chmod(0o600)
        listeners = "".join(f'[[{kind}]]\nlisten = "10.98.7.1:0"\npasswords = "passwords"\n' for kind in ("socks", "http"))
        (hosts / "office.toml").write_text(f'keys = "office"\n[peer.hub]\naddress = "{sessions}"\n{listeners}')
        _, [_, socks, proxy] = start("office.toml", namespace=near)
        inside = ("--retry", "20", "--retry-connrefused", "--retry-delay", "1", "--retry-all-errors")
        page = "http://127.0.0.1:8000/page"
        for way in (["--proxy", f"socks5h://{socks}"], ["--proxy", f"http://{proxy}", "--proxytunnel"]):
            arrived = curl(*way, "--proxy-user", "ann:open sesame", *inside, page, namespace=near)
            assert arrived == b"x" * 300_000
            done = run_curl(*way, "--proxy-user", "ann:sesame", page, namespace=near)
            assert done.returncode != 0
    finally:
        server.kill()
        server.wait()


def test_marks_of_clients_choose_classes_and_arrive(hosts, start, namespaces):
    """EF (46) becomes class 2, and the mark of the packets to the destination, if both gateways trust it."""
    near, far = namespaces
    for name in namespaces:
        if subprocess.run([*within(name), "sysctl", "-qw", "net.ipv4.tcp_reflect_tos=1"], check=False).returncode:
            pytest.skip("Linux tells no marks here")
    server = (
        "import socket; listener = socket.create_server(('127.0.0.1', 8000)); print('ready', flush=True)\n"
        "for _ in range(2):\n"
        "    served, _ = listener.accept()\n"
        "    print(served.getsockopt(socket.IPPROTO_IP, socket.IP_TOS) >> 2, flush=True); served.close()"
    )
    client = (
        "import socket, sys; client = socket.socket(); client.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, 46 << 2)\n"
        "client.connect(('127.0.0.1', int(sys.argv[1]))); client.recv(1)"
    )
    serving = subprocess.Popen([*within(far), sys.executable, "-c", server], stdout=subprocess.PIPE, text=True)
    try:
        assert serving.stdout is not None
        assert serving.stdout.readline() == "ready\n"
        (hosts / "hub.toml").write_text(
            'keys = "hub"\nlisten = "10.98.7.2:0"\ntrust_dscp = true\n[peer.office]\nallow = ["127.0.0.1:8000"]\n'
        )
        _, [sessions] = start("hub.toml", namespace=far)
        for trust, arrived in (("true", "46"), ("false", "0")):
            (hosts / "office.toml").write_text(
                f'keys = "office"\ntrust_dscp = {trust}\n[peer.hub]\naddress = "{sessions}"\n'
                '[[forward]]\nlisten = "127.0.0.1:0"\ndestination = "127.0.0.1:8000"\n'
            )
            _, [_, forward] = start("office.toml", namespace=near)
            port = forward.rpartition(":")[2]
            subprocess.run([*within(near), sys.executable, "-c", client, port], check=True, timeout=20)
            assert serving.stdout.readline() == f"{arrived}\n"
    finally:
        serving.kill()
        serving.communicate()


# The number of the family among the blocks of the guide; addresses of the client, of the router towards it, and of a server.
BEHIND = {
    "IPv4": (0, "10.1.0.9/16", "10.1.0.1/16", "192.0.2.80"),
    "IPv6": (1, "2001:db8:1::9/64", "2001:db8:1::1/64", "2001:db8:2::80"),
}


@pytest.mark.parametrize("family", BEHIND)
def test_clients_behind_a_router_need_no_settings(hosts, start, namespaces, family):
    """The rules of the guide, typed: curl of a third network gets its bytes, from an address that only the hub knows."""
    near, far = namespaces
    number, inner, router, served = BEHIND[family]
    client = f"farlink-client-{os.getpid()}"
    if shutil.which("nft") is None or subprocess.run([*within(near), "nft", "list", "tables"], check=False).returncode:
        pytest.skip("nftables is not here")
    with named(client):
        join(near, client, "10.1.0.1/16", "10.1.0.9/16", ("lan", "wire"))
        if family == "IPv6":
            ip("-n", near, "address", "add", router, "dev", "lan", "nodad")
            ip("-n", client, "address", "add", inner, "dev", "wire", "nodad")
        ip("-n", client, "route", "add", "default", "via", router.partition("/")[0])
        ip("-n", far, "address", "add", served, "dev", "lo")
        typed = [block for block in blocks("console") if ".nft" in block][number]
        for name, rules in zip(("tproxy.nft", "tproxy6.nft"), blocks("nft"), strict=True):
            (hosts / name).write_text(rules)
        for line in typed.splitlines():
            subprocess.run([*within(near), *line.removeprefix("office$ ").split()], cwd=hosts, check=True)
        program = [sys.executable, "-m", "http.server", "--bind", served, "8000"]
        server = subprocess.Popen([*within(far), *program], cwd=hosts, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        host, nobody = (f"[{served}]", "[2001:db8:2::81]") if family == "IPv6" else (served, "192.0.2.81")
        try:
            (hosts / "page").write_bytes(b"x" * 300_000)
            (hosts / "hub.toml").write_text(f'keys = "hub"\nlisten = "10.98.7.2:0"\n[peer.office]\nallow = ["{host}:8000"]\n')
            _, [sessions] = start("hub.toml", namespace=far)
            transparent = [block for block in blocks("toml") if "[[transparent]]" in block][number]
            (hosts / "office.toml").write_text(f'keys = "office"\n[peer.hub]\naddress = "{sessions}"\n{transparent}')
            start("office.toml", namespace=near)
            inside = ("--retry", "20", "--retry-delay", "1", "--retry-all-errors")
            assert curl(*inside, f"http://{host}:8000/page", namespace=client) == b"x" * 300_000
            # What the hub does not allow, and the listener itself, are accepted and reset.
            itself = router.partition("/")[0]
            for nowhere in (f"{nobody}:8000", f"[{itself}]:3129" if family == "IPv6" else f"{itself}:3129"):
                done = run_curl("-g", f"http://{nowhere}/", namespace=client)
                assert done.returncode in (7, 55, 56), done.stderr  # by when curl notices
        finally:
            server.kill()
            server.wait()


def test_without_its_capability_a_transparent_listener_is_refused(farlink, hosts):
    (hosts / "office.toml").write_text(
        'keys = "office"\n[peer.hub]\naddress = "127.0.0.1:1"\n[[transparent]]\nlisten = "127.0.0.1:0"\n'
    )
    assert "TPROXY" in farlink("gateway", "check", "office.toml").stdout
    words = [sys.executable, "-m", "farlink.cli", "gateway", "office.toml"]
    if os.geteuid() == 0:
        if shutil.which("setpriv") is None:
            pytest.skip("setpriv is not installed")
        words = ["setpriv", "--bounding-set=-net_admin,-net_raw", *words]
    done = subprocess.run(words, cwd=hosts, capture_output=True, text=True, timeout=60, check=False)
    assert_refused(done, ["transparent: 127.0.0.1:0 cannot take connections to other hosts", "CAP_NET_ADMIN"])


def test_bad_input_is_refused(farlink, hosts):
    assert_refused(farlink("gateway", "none.toml"), ["none.toml: cannot be read", "give the path"])
    (hosts / "wrong.toml").write_text('keys = "office"\nlisten = "127.0.0.1:0"\n[peer.hub]\nalow = []\n')
    assert_refused(farlink("gateway", "wrong.toml"), ["line 4: unknown field `alow`", "did you mean `allow`?"])
    assert_refused(farlink("gateway", "check", "wrong.toml"), ["line 4"])
    with socket.create_server(("127.0.0.1", 0)) as taken:
        at = f"127.0.0.1:{taken.getsockname()[1]}"
        text = 'keys = "office"\n[peer.hub]\naddress = "127.0.0.1:1"\n[[socks]]\nlisten = "{}"\n'
        (hosts / "taken.toml").write_text(text.format(at))
        assert_refused(farlink("gateway", "taken.toml"), [f"cannot listen at {at}", "choose another port"])
        # Who can start, is told so before: the check opens nothing.
        assert farlink("gateway", "check", "taken.toml").returncode == 0
    assert_refused(farlink("gateway", "check", "taken.toml", "nowhere"), ["has no port", "HOST:PORT"])


def test_systemd_takes_the_unit_and_finds_it_confined(tmp_path):
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is not installed")
    unit = tmp_path / "farlink-gateway@office.service"
    unit.write_text(UNIT.read_text().replace("/usr/bin/farlink", "/bin/true"))
    done = subprocess.run(["systemd-analyze", "verify", "--man=no", unit], capture_output=True, text=True, check=False)
    assert unit.name not in done.stderr, done.stderr
    command = ["systemd-analyze", "security", "--offline=true", "--no-pager", "--threshold=20", unit]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-500:] + done.stderr


def test_systemd_is_told_when_it_is_ready(hosts, tmp_path):
    place = tmp_path / "notify"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notified:
        notified.bind(str(place))
        notified.settimeout(20)
        (hosts / "hub.toml").write_text('keys = "hub"\nlisten = "127.0.0.1:0"\n[peer.office]\n')
        command = [sys.executable, "-m", "farlink.cli", "gateway", "hub.toml"]
        process = subprocess.Popen(
            command, cwd=hosts, env={**os.environ, "NOTIFY_SOCKET": str(place)}, stderr=subprocess.DEVNULL
        )
        try:
            assert notified.recv(100).decode().strip() == "READY=1"
            time.sleep(0.1)
            process.terminate()
            assert notified.recv(100).decode().strip() == "STOPPING=1"
            assert process.wait(20) == 0
        finally:
            process.kill()
            process.wait()

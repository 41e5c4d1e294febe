"""`farlink emulate` as a user types it: UDP without root, and namespaces as root."""

from __future__ import annotations

import ast
import json
import os
import re
import shlex
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.conftest import ROOT, assert_refused

from farlink.cli.emulate import EXAMPLES

GUIDE = ROOT / "docs" / "guides" / "emulate.md"
CLI = [sys.executable, "-m", "farlink.cli"]

LINK = """
duration_s = 10
link = { rate_bps = 1e6, delay_s = 0.05, queue_packets = 5, return = { delay_s = 0.02 } }
transport.udp = { kind = "udp" }
flow.one = { transport = "udp", traffic = { kind = "file", bytes = 1 } }
"""

# Lateness beyond the bounds makes a run invalid, and a busy machine may cause it.
VALID_OR_LATE = (0, 1)


def _missing() -> str | None:
    """Why there are no network namespaces here; None if there are."""
    if os.geteuid() != 0:
        return "not root"
    if not Path("/dev/net/tun").exists():
        return "no /dev/net/tun"
    name = f"farlink-test-{os.getpid()}"
    if subprocess.run(["ip", "netns", "add", name], capture_output=True, check=False).returncode != 0:
        return "no network namespaces"
    subprocess.run(["ip", "netns", "del", name], check=True)
    return None


WITHOUT = _missing()
as_root = pytest.mark.skipif(WITHOUT is not None, reason=f"TUN devices in network namespaces: {WITHOUT}")


@contextmanager
def echo() -> Iterator[int]:
    """A server that sends back what it gets; its port."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind(("127.0.0.1", 0))

        def serve() -> None:
            while True:
                data, client = server.recvfrom(65536)
                if data == b"end":
                    return
                server.sendto(data, client)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield server.getsockname()[1]
        server.sendto(b"end", server.getsockname())
        thread.join()


@contextmanager
def emulating(*arguments: str, cwd: Path, said: str) -> Iterator[tuple[subprocess.Popen[str], re.Match[str]]]:
    """A running emulator that has said something."""
    process = subprocess.Popen(
        [*CLI, "emulate", *arguments], cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stderr is not None
    try:
        lines = []
        while line := process.stderr.readline():
            lines.append(line)
            if found := re.search(said, line):
                yield process, found
                break
        else:
            pytest.fail("".join(lines))
    finally:
        process.kill()
        process.communicate()


@pytest.fixture
def link(tmp_path: Path) -> Path:
    """A folder with a scenario."""
    (tmp_path / "link.toml").write_text(LINK)
    return tmp_path


def namespaces() -> list[str]:
    """The emulators' namespaces that there are."""
    return sorted(path.name for path in Path("/run/netns").glob("farlink-*") if "test" not in path.name)


def assert_nothing_is_left(before: list[str]) -> None:
    """Other tests have emulators at the same time, whose namespaces go by themselves; what a killed run left may go as well."""
    end = time.monotonic() + 60
    while not set(namespaces()) <= set(before):
        assert time.monotonic() < end, f"{namespaces()}, before {before}"
        time.sleep(0.1)


def test_datagrams_take_the_link_and_ctrl_c_keeps_the_result(link):
    with (
        echo() as port,
        emulating(
            *("link.toml", "--listen", "127.0.0.1:0", "--to", f"127.0.0.1:{port}", "--json", "out.json", "--seed", "7"),
            cwd=link,
            said=r"relaying UDP from (\S+):(\d+)",
        ) as (process, found),
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client,
    ):
        client.connect((found[1], int(found[2])))
        client.settimeout(10)
        began = time.monotonic()
        client.send(bytes(972))
        assert client.recv(2000) == bytes(972)
        # 8 ms of rate in each direction.
        assert 0.086 <= time.monotonic() - began < 5
        # One is sent and five wait at most, if they come at once.
        for _ in range(50):
            client.send(bytes(972))
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=30)

    assert process.returncode in VALID_OR_LATE
    result = json.loads((link / "out.json").read_text())
    assert result["valid"] == (process.returncode == 0)
    assert "valid" in out
    assert "forward" in out
    assert result["seed"] == 7
    forward, back = result["forward"], result["return"]
    assert (forward["in_packets"], forward["in_bytes"]) == (51, 51 * 1000)
    assert forward["dropped"] >= 38
    assert forward["out_packets"] + forward["dropped"] == 51
    assert back["out_packets"] == forward["out_packets"]
    assert forward["delay_p50_s"] == pytest.approx(0.075, abs=0.03)
    assert forward["late_p50_s"] >= 0


@pytest.mark.usefixtures("link")
def test_a_duration_ends_it_and_json_may_go_to_standard_output(farlink):
    done = farlink("emulate", "link.toml", "--listen", "127.0.0.1:0", "--to", "127.0.0.1:9", "--duration", "0.3", "--json", "-")

    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert 0.3 <= result["elapsed_s"] < 5
    assert result["forward"]["in_packets"] == 0
    assert result["valid"]


@pytest.mark.parametrize(
    ("arguments", "wrong", "remedy"),
    [
        ([], "there is no line to play on", "--listen and --to"),
        (["--netns", "--tun", "a,b"], "more than one line", "--netns"),
        (["--listen", "127.0.0.1:5000"], "belong together", "give both"),
        (["--tun", "a"], "no pair of devices", "--tun near,far"),
        (["--netns", "--deliver-damaged"], "is for the relay of UDP", "leave it out"),
        (["--listen", "127.0.0.1:1", "--to", "127.0.0.1:2", "--class", "ef=0"], "--class is for devices", "leave it out"),
        (["--listen", "127.0.0.1:x", "--to", "127.0.0.1:2"], "is no port", "write for example"),
        (["--netns", "--duration", "-1"], "--duration -1.0", "give seconds"),
        (["--", "no-such-program"], "there is no program 'no-such-program'", "installed"),
        (["--netns", "--class", "ef=9"], "'ef=9' names no class", "ef=0"),
        (["--netns", "--class", "eff=0"], "'eff' is no DSCP", "did you mean"),
        (["--far", "'python3"], "No closing quotation", "close what is quoted"),
        (["--netns", "--memory", "0"], "--memory 0: not at least 1", "--help"),
        (["--netns", "--set", "link.rate=1"], "link.rate", "did you mean"),
    ],
)
@pytest.mark.usefixtures("link")
def test_bad_arguments_are_refused(farlink, arguments, wrong, remedy):
    assert_refused(farlink("emulate", "link.toml", *arguments), [wrong, remedy])


@pytest.mark.usefixtures("link")
def test_a_port_in_use_is_refused(farlink):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as taken:
        taken.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{taken.getsockname()[1]}"

        refused = farlink("emulate", "link.toml", "--listen", address, "--to", "127.0.0.1:9")

    assert_refused(refused, [address, "give another port"])


def test_what_real_packets_cannot_play_is_named(farlink):
    line = ("--listen", "127.0.0.1:0", "--to", "127.0.0.1:9")
    grid = farlink("emulate", str(ROOT / "scenarios" / "two-hop.toml"), *line)
    gateways = farlink("emulate", str(ROOT / "scenarios" / "gateways.toml"), "--point", "0", *line)

    assert_refused(grid, ["the scenario has 3 grid points", "--point 0"])
    assert_refused(gateways, ["gateway", "remove it"])


@as_root
def test_a_command_runs_inside_and_gives_its_status(farlink, link):
    server = """
import socket
s = socket.socket(type=socket.SOCK_DGRAM)
s.bind(("198.18.0.2", 7))
while True:
    s.sendto(*s.recvfrom(2000))
"""
    client = """
import os, socket, sys, time
s = socket.socket(type=socket.SOCK_DGRAM)
s.settimeout(10)
s.connect((os.environ["FARLINK_FAR"], 7))
for n in range(20):
    began = time.monotonic()
    s.send(bytes(972))
    s.recv(2000)
    assert 0.086 <= time.monotonic() - began < 5
print("done")
sys.exit(7)
"""
    before = namespaces()
    far = shlex.join([sys.executable, "-c", server])
    done = farlink("emulate", "link.toml", "--far", far, "--json", "out.json", "--", sys.executable, "-c", client)

    assert (done.returncode, done.stdout) == (7, "done\n"), done.stderr
    assert "near end: 198.18.0.1" in done.stderr
    assert "forward" in done.stderr
    result = json.loads((link / "out.json").read_text())
    assert result["forward"]["out_packets"] == result["return"]["out_packets"] == 20
    assert_nothing_is_left(before)


@as_root
@pytest.mark.usefixtures("link")
def test_a_device_that_was_removed_fails_the_run(farlink):
    done = farlink("emulate", "link.toml", "--", "ip", "link", "delete", "farlink0")

    assert done.returncode == 1, done.stderr
    assert "is gone" in done.stderr


@as_root
@pytest.mark.usefixtures("link")
def test_a_command_that_a_signal_ends_has_the_status_of_shells(farlink):
    done = farlink("emulate", "link.toml", "--", "sh", "-c", "kill -TERM $$")

    assert done.returncode == 128 + signal.SIGTERM


@as_root
@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 128 + signal.SIGTERM), (signal.SIGINT, 3)])
def test_a_command_gets_signals_and_decides(link, number, status):
    """SIGTERM is passed on; Ctrl-C the terminal sends to the command too, and nobody ends it for that."""
    words = [*CLI, "emulate", "link.toml", "--", "sh", "-c", "echo begun; sleep 1.5; exit 3"]
    with subprocess.Popen(words, cwd=link, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "begun\n"
        time.sleep(0.2)
        process.send_signal(number)
        process.communicate(timeout=30)

    assert process.returncode == status


@as_root
@pytest.mark.usefixtures("link")
def test_a_command_that_outlives_the_duration_is_ended(farlink):
    done = farlink("emulate", "link.toml", "--duration", "0.5", "--", "sleep", "60")

    assert done.returncode == 124
    assert "ended after 0.5 s" in done.stderr


@as_root
def test_kernel_drops_what_the_link_damaged_and_gives_it_without_checksum(farlink, link):
    """Behind bit errors a checked datagram never arrives wrong, and an unchecked one does."""
    server = f"""
import socket
s = socket.socket(type=socket.SOCK_DGRAM)
s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
s.bind(("198.18.0.2", 7))
counts = [[0, 0], [0, 0]]
while True:
    data = s.recv(2000)
    if len(data) == 3:
        break
    checked = len(data) == 1000
    counts[checked][data != bytes(len(data))] += 1
open({str(link / "counts")!r}, "w").write(repr(counts))
"""
    client = """
import socket, time
checked, unchecked = (socket.socket(type=socket.SOCK_DGRAM) for _ in range(2))
unchecked.setsockopt(socket.SOL_SOCKET, 11, 1)  # SO_NO_CHECK
for _ in range(200):
    checked.sendto(bytes(1000), ("198.18.0.2", 7))
    unchecked.sendto(bytes(999), ("198.18.0.2", 7))
    time.sleep(0.001)
time.sleep(0.3)
for _ in range(20):
    checked.sendto(b"end", ("198.18.0.2", 7))
time.sleep(0.3)
"""
    far = shlex.join([sys.executable, "-c", server])
    changes = ("--set", "link.rate_bps=1e8", "--set", "link.channel={kind='ber', ber=1e-4}", "--set", "link.queue_packets=1000")
    done = farlink("emulate", "link.toml", *changes, "--far", far, "--json", "o.json", "--", sys.executable, "-c", client)

    assert done.returncode == 0, done.stderr
    unchecked, checked = json.loads((link / "counts").read_text())
    forward = json.loads((link / "o.json").read_text())["forward"]
    assert checked[1] == 0, checked
    assert 50 < checked[0] < 130, checked
    assert min(unchecked) > 50, unchecked
    assert forward["damaged"] >= unchecked[1]
    assert forward["ruined"] > 0


@as_root
def test_classes_go_in_turn_by_their_codepoints(farlink, link):
    """Two floods of equal rate over half of it: expedited forwarding passes, the rest waits and is dropped."""
    (link / "link.toml").write_text(LINK.replace("queue_packets = 5", 'queue_packets = 5, service = "strict"'))
    client = """
import socket, time
lines = []
for dscp in (46, 0):
    line = socket.socket(type=socket.SOCK_DGRAM)
    line.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, dscp << 2)
    line.connect(("198.18.0.2", 7))
    lines.append(line)
for _ in range(100):
    for line in lines:
        line.send(bytes(972))
    time.sleep(0.008)
time.sleep(0.2)
"""
    server = f"""
import socket
s = socket.socket(type=socket.SOCK_DGRAM)
s.setsockopt(socket.IPPROTO_IP, socket.IP_RECVTOS, 1)
s.bind(("198.18.0.2", 7))
counts = {{}}
while True:
    _, notes, _, _ = s.recvmsg(2000, 64)
    dscp = notes[0][2][0] >> 2
    counts[dscp] = counts.get(dscp, 0) + 1
    open({str(link / "counts")!r}, "w").write(repr(sorted(counts.items())))
"""
    far = shlex.join([sys.executable, "-c", server])
    words = ("--class", "ef=0", "--class", "default=3", "--far", far)
    done = farlink("emulate", "link.toml", *words, "--", sys.executable, "-c", client)

    assert done.returncode == 0, done.stderr
    counts = dict(ast.literal_eval((link / "counts").read_text()))
    # Each is offered the whole rate. A busy machine sends late, and then both may fit for a moment.
    assert counts[46] >= 90
    assert counts[0] <= 60


@as_root
@pytest.mark.usefixtures("link")
def test_devices_that_the_user_made_are_taken(farlink):
    names = [f"farlt{os.getpid() % 10_000}{end}" for end in "ab"]
    try:
        for name in names:
            subprocess.run(["ip", "tuntap", "add", "dev", name, "mode", "tun"], check=True)
        done = farlink("emulate", "link.toml", "--tun", ",".join(names), "--duration", "0.3")
        taken = farlink("emulate", "link.toml", "--tun", "lo,lo", "--duration", "0.3")
    finally:
        for name in names:
            subprocess.run(["ip", "tuntap", "del", "dev", name, "mode", "tun"], check=False)

    assert done.returncode == 0, done.stderr
    assert_refused(taken, ["cannot open lo", "ip tuntap add dev NAME mode tun"])


@as_root
def test_what_a_killed_emulator_left_is_removed_at_the_next_start(farlink, link):
    before = namespaces()
    with emulating("link.toml", "--netns", cwd=link, said=r"far end: .* exec (\S+)") as (process, found):
        assert found[1] in namespaces()
        process.kill()
        process.wait()
    assert found[1] in namespaces(), "nobody could remove it"

    done = farlink("emulate", "link.toml", "--", "true")

    assert done.returncode == 0, done.stderr
    assert_nothing_is_left(before)


@as_root
def test_two_emulators_have_namespaces_of_their_own(farlink, link):
    with emulating("link.toml", "--netns", cwd=link, said=r"far end: .* exec (\S+)") as (process, found):
        done = farlink("emulate", "link.toml", "--", "true")
        assert done.returncode == 0, done.stderr
        assert found[1] in namespaces()
        assert f"exec {found[1]} " not in done.stderr
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=30)
    assert found[1] not in namespaces()


@as_root
def test_without_permission_the_remedy_is_said(link):
    words = ["setpriv", "--inh-caps=-all", "--bounding-set=-all", *CLI, "emulate", "link.toml", "--netns"]

    done = subprocess.run(words, cwd=link, capture_output=True, text=True, timeout=60, check=False)

    assert_refused(done, ["netns", "run it as root"])


def test_the_commands_of_the_guide_run(farlink, link):
    text = GUIDE.read_text()
    (link / "link.toml").write_text(re.search(r"```toml link.toml\n(.*?)```", text, re.DOTALL)[1])
    blocks = re.findall(r"```console\n(.*?)```", text, re.DOTALL)
    commands = [line for block in blocks for line in block.splitlines() if line[:2] in ("$ ", "# ")]
    assert len(commands) >= 4
    for command in commands:
        if command.startswith("# ") and WITHOUT is not None:
            continue
        words = shlex.split(command[2:].replace("python3", sys.executable))
        if "curl" in words:
            page = "import sys, urllib.request as u; sys.exit(u.urlopen(sys.argv[1], timeout=20).status != 200)"
            words[words.index("curl") :] = [sys.executable, "-c", page, words[-1]]
        assert words[0] == "farlink"

        done = farlink(*words[1:])

        assert done.returncode in VALID_OR_LATE, f"{command}: {done.stderr}"
        assert "late p99" in done.stdout + done.stderr, done.stderr


@as_root
def test_the_examples_of_the_help_name_paths_that_can_be_played():
    lines = [line.removeprefix("sudo ") for line in EXAMPLES.splitlines() if line.startswith("sudo ")]
    assert len(lines) == 3
    for line in lines:
        words = shlex.split(line)[1:]
        ends = [words.index(end) for end in ("--far", "--", "--netns") if end in words]
        done = subprocess.run([*CLI, *words[: min(ends)], "--", "true"], cwd=ROOT, capture_output=True, text=True)
        assert done.returncode == 0, f"{line}: {done.stderr}"

"""`farlink keygen`, `trust`, `send` and `receive` as a user types them."""

from __future__ import annotations

import filecmp
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from tests.conftest import ROOT, Command, assert_refused

GUIDE = ROOT / "docs" / "guides" / "files.md"
CLI = [sys.executable, "-m", "farlink.cli"]


@pytest.fixture
def hosts(farlink: Command) -> tuple[str, str]:
    """Folders of the keys of two hosts that trust each other."""
    keys = [farlink("keygen", "--keys", name).stdout.strip() for name in ("ship-keys", "shore-keys")]
    assert farlink("trust", keys[1], "shore", "--keys", "ship-keys").returncode == 0
    assert farlink("trust", keys[0], "ship", "--keys", "shore-keys").returncode == 0
    return "ship-keys", "shore-keys"


def tree(place: Path, bytes_of_largest: int = 300_000) -> None:
    """A folder with files of several lengths, modes and times."""
    (place / "deep" / "er").mkdir(parents=True)
    (place / "empty").mkdir()
    (place / "none").touch()
    (place / "large.bin").write_bytes(random.Random(1).randbytes(bytes_of_largest))
    (place / "deep" / "er" / "run.sh").write_text("#!/bin/sh\n")
    (place / "deep" / "er" / "run.sh").chmod(0o750)
    os.utime(place / "none", (1_000_000_000, 1_000_000_000))


def assert_same(one: Path, other: Path) -> None:
    left, right = ({path.relative_to(root): path for path in root.rglob("*")} for root in (one, other))
    assert left.keys() == right.keys()
    for name, path in left.items():
        if path.is_file():
            assert filecmp.cmp(path, right[name], shallow=False), name
            assert (path.stat().st_mode, path.stat().st_mtime_ns) == (
                right[name].stat().st_mode,
                right[name].stat().st_mtime_ns,
            ), name


@contextmanager
def receiving(
    *arguments: str, cwd: Path, prefix: tuple[str, ...] = (), **environment: str
) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A running `farlink receive` and its address."""
    command = [*prefix, *CLI, "receive", *arguments]
    # Warnings of short buffers depend on the machine.
    environment = {"FARLINK_LOG": "error", **environment}
    process = subprocess.Popen(
        command, cwd=cwd, env={**os.environ, **environment}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        assert process.stderr is not None
        said = process.stderr.readline()
        found = re.match(r"listening on (\S+) ", said)
        assert found, said + process.stderr.read()
        yield process, found[1]
    finally:
        process.kill()
        process.wait()


def test_a_folder_arrives_as_it_was(farlink, hosts, tmp_path):
    tree(tmp_path / "data")
    ship, shore = hosts
    with receiving("in", "--listen", "127.0.0.1:0", "--once", "--keys", shore, cwd=tmp_path) as (process, address):
        sent = farlink("send", "data", address, "--keys", ship)
        received, _ = process.communicate(timeout=30)

    assert sent.returncode == process.returncode == 0, sent.stderr
    assert sent.stdout == "Files    3 placed, 0 already there\nContent  300,010 bytes sent, 0 there from before\n"
    assert received == "From     ship\n" + sent.stdout
    assert_same(tmp_path / "data", tmp_path / "in" / "data")
    assert (tmp_path / "ship-keys" / "key").stat().st_mode & 0o777 == 0o600


def test_what_is_there_is_not_sent_again(farlink, hosts, tmp_path):
    tree(tmp_path / "data")
    ship, shore = hosts
    with receiving("in", "--listen", "127.0.0.1:0", "--keys", shore, cwd=tmp_path) as (process, address):
        assert farlink("send", "data", address, "--keys", ship).returncode == 0
        again = farlink("send", "data", address, "--keys", ship)
        (tmp_path / "data" / "none").write_text("something")
        other = farlink("send", "data", address, "--keys", ship)
        process.send_signal(signal.SIGINT)
        process.wait(timeout=20)

    assert again.stdout == "Files    0 placed, 3 already there\nContent  0 bytes sent, 300,010 there from before\n"
    assert other.returncode == 2
    assert "data/none" in other.stderr
    assert process.returncode == 130


def test_strangers_and_wrong_keys_get_no_answer(farlink, hosts, tmp_path):
    ship, shore = hosts
    (tmp_path / "note").write_text("note")
    farlink("keygen", "--keys", "stranger")
    key = farlink("pubkey", "--keys", shore).stdout.strip()
    other = farlink("pubkey", "--keys", "stranger").stdout.strip()
    with receiving("in", "--listen", "127.0.0.1:0", "--keys", shore, cwd=tmp_path) as (_, address):
        for arguments in (["--keys", "stranger", "--key", key], ["--keys", ship, "--key", other]):
            done = farlink("send", "note", address, *arguments, "--patience", "1")
            assert done.returncode == 1, done.stderr
            assert "the peer does not answer; check address, keys and firewall" in done.stderr
        assert not (tmp_path / "in" / "note").exists()


def test_files_go_without_checksums_and_with_parity(farlink, hosts, tmp_path):
    tree(tmp_path / "data")
    ship, shore = hosts
    with receiving("in", "--listen", "127.0.0.1:0", "--once", "--damaged-links", "--keys", shore, cwd=tmp_path) as (
        process,
        address,
    ):
        sent = farlink("send", "data", address, "--damaged-links", "--keys", ship)
        process.communicate(timeout=30)

    assert sent.returncode == process.returncode == 0, sent.stderr
    assert_same(tmp_path / "data", tmp_path / "in" / "data")


@pytest.mark.parametrize("both", [True, False])
def test_packets_go_in_the_clear_only_if_both_sides_permit_it(farlink, hosts, tmp_path, both):
    tree(tmp_path / "data")
    ship, shore = hosts
    permission = ["--insecure"] if both else []
    with receiving("in", "--listen", "127.0.0.1:0", "--once", *permission, "--keys", shore, cwd=tmp_path) as (process, address):
        sent = farlink("send", "data", address, "--insecure", "--log", "debug", "--keys", ship)
        process.communicate(timeout=30)

    assert sent.returncode == process.returncode == 0, sent.stderr
    assert ("cover=Clear" if both else "cover=Seal") in sent.stderr
    assert_same(tmp_path / "data", tmp_path / "in" / "data")


def test_a_log_tells_of_the_session_and_no_secret(farlink, hosts, tmp_path):
    (tmp_path / "note").write_text("note")
    ship, shore = hosts
    secret = "S" * 42 + "0="
    with receiving("in", "--listen", "127.0.0.1:0", "--keys", shore, cwd=tmp_path, FARLINK_PSK=secret) as (_, address):
        done = farlink("send", "note", address, "--log", "debug", "--keys", ship, FARLINK_PSK=secret)

    assert done.returncode == 0, done.stderr
    shore_key = farlink("pubkey", "--keys", shore).stdout.strip()
    for told in ("handshake begun", "the handshake is answered", f"peer={shore_key}", f"remote={address}"):
        assert told in done.stderr
    for hidden in (secret, (tmp_path / "ship-keys" / "key").read_text().strip()):
        assert hidden not in done.stderr


WRONG = {
    "no key": (["send", "note", "127.0.0.1", "--keys", "none", "--key", "A" * 43 + "="], ["there is no key", "farlink keygen"]),
    "no file": (["send", "nothing", "127.0.0.1", "--keys", "ship-keys"], ['cannot send "nothing"', "check the path"]),
    "no receiver": (["send", "note", "--keys", "ship-keys"], ["only one argument", "then the receiver"]),
    "unknown name": (["send", "note", "127.0.0.1", "--keys", "ship-keys", "--key", "nobody"], ['"nobody"', "no key"]),
    "no port": (["send", "note", "127.0.0.1:http", "--keys", "ship-keys"], ["'http' is no port", "192.0.2.1:47470"]),
    "rate": (["send", "note", "127.0.0.1", "--keys", "ship-keys", "--rate", "-1"], ["rate", "10e6"]),
    "log": (["send", "note", "127.0.0.1", "--keys", "ship-keys", "--log", "loud"], ['"loud"', "error, warn, info"]),
    "packets": (["send", "note", "127.0.0.1", "--keys", "ship-keys", "--packet-bytes", "9001"], ["9001", "1200 to 9000"]),
    "foreign address": (
        ["receive", "in", "--listen", "192.0.2.1", "--keys", "shore-keys"],
        ["cannot use 192.0.2.1:47470", "another"],
    ),
    "insecure": (
        ["receive", "in", "--listen", "0.0.0.0", "--insecure", "--keys", "shore-keys"],
        ["others reach 0.0.0.0", "--insecure-anywhere"],
    ),
    "insecure to others": (
        ["send", "note", "192.0.2.1", "--insecure", "--keys", "ship-keys"],
        ["addresses of this machine", "--insecure-anywhere"],
    ),
    "patience": (["receive", "in", "--patience", "-1", "--keys", "shore-keys"], ["patience of -1 s", "0 or more"]),
    "second key": (["keygen", "--keys", "ship-keys"], ["there is a key already", "move it away"]),
    "no public key": (["trust", "abc", "x", "--keys", "ship-keys"], ['"abc"', "32 bytes in base64"]),
    "no name": (["trust", "A" * 43 + "=", "--keys", "ship-keys"], ["no name"]),
    "name": (["trust", "A" * 43 + "=", "../x", "--keys", "ship-keys"], ["../x", "letters"]),
    "unknown host": (["trust", "--remove", "x", "--keys", "ship-keys"], ["'x'", "farlink trust lists"]),
}


@pytest.mark.parametrize("case", WRONG)
@pytest.mark.usefixtures("hosts")
def test_wrong_input_is_refused_in_two_lines(case, farlink, tmp_path):
    (tmp_path / "note").write_text("note")
    arguments, said = WRONG[case]

    assert_refused(farlink(*arguments), said)
    assert not (tmp_path / "in").exists()


def test_a_readable_key_is_refused(farlink, hosts, tmp_path):
    (tmp_path / hosts[1] / "key").chmod(0o644)

    assert_refused(farlink("receive", "in", "--keys", hosts[1]), ["others can read the private key (mode 644)", "chmod 600"])


def test_only_one_process_receives_with_a_key(farlink, hosts, tmp_path):
    with receiving("in", "--listen", "127.0.0.1:0", "--keys", hosts[1], cwd=tmp_path):
        done = farlink("receive", "in", "--listen", "127.0.0.1:0", "--keys", hosts[1])

    assert_refused(done, ["another process receives with the same key", "another folder of keys"])


def there(folder: Path) -> int:
    """Bytes on the disk below a folder."""
    found = 0
    for path in folder.rglob("*"):
        with suppress(FileNotFoundError):
            found += 512 * path.stat().st_blocks
    return found


def test_either_side_may_be_killed_at_any_time(hosts, tmp_path):
    """Whatever is killed, the same commands go on, and in the end all is there. `make soak` sets more kills."""
    kills = int(os.environ.get("FARLINK_KILLS", "6"))
    chance = random.Random(int(os.environ.get("PROPTEST_RNG_SEED", "1")))
    tree(tmp_path / "data", 1_500_000 * kills)
    ship, shore = hosts
    send = [*CLI, "send", "data", "127.0.0.1:{port}", "--keys", ship, "--rate", "2e7"]
    done = False
    for _ in range(kills):
        with receiving("in", "--listen", "127.0.0.1:0", "--keys", shore, cwd=tmp_path) as (receiver, address):
            sender = subprocess.Popen(
                [part.format(port=address.rsplit(":", 1)[1]) for part in send], cwd=tmp_path, stdout=subprocess.DEVNULL
            )
            # At any time: before a byte has come, or when some more of them are there.
            more = there(tmp_path / "in") + chance.choice([0, chance.randrange(1_500_000)])
            while there(tmp_path / "in") < more and sender.poll() is None:
                time.sleep(0.01)
            done = sender.poll() == 0
            chance.choice([sender, receiver]).kill()
            sender.kill()
            sender.wait()
        assert not done or (tmp_path / "in" / "data" / "large.bin").exists()
    with receiving("in", "--listen", "127.0.0.1:0", "--keys", shore, cwd=tmp_path) as (receiver, address):
        last = subprocess.run(
            [part.format(port=address.rsplit(":", 1)[1]) for part in send],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    assert last.returncode == 0, last.stderr
    resumed = int(re.search(r"([\d,]+) there from before", last.stdout)[1].replace(",", ""))
    assert resumed > 0, last.stdout
    assert_same(tmp_path / "data", tmp_path / "in" / "data")


def test_a_receiver_gives_up_a_silent_sender_after_its_patience(hosts, tmp_path):
    tree(tmp_path / "data", 4_000_000)
    ship, shore = hosts
    with receiving("in", "--listen", "127.0.0.1:0", "--patience", "1", "--keys", shore, cwd=tmp_path) as (receiver, address):
        sender = subprocess.Popen([*CLI, "send", "data", address, "--keys", ship, "--rate", "1e7"], cwd=tmp_path)
        # The receiver says nothing of a sender that was killed before it was heard.
        while not any((tmp_path / "in").rglob("*")):
            assert sender.poll() is None
            time.sleep(0.05)
        sender.kill()
        sender.wait()
        killed = time.monotonic()
        said = receiver.stderr.readline()
        waited = time.monotonic() - killed
        again = subprocess.run([*CLI, "send", "data", address, "--keys", ship], cwd=tmp_path, check=False)

    assert said.startswith("ship: "), said
    assert waited < 60, "by default it waits five minutes"
    assert again.returncode == 0
    assert_same(tmp_path / "data", tmp_path / "in" / "data")


def test_a_sender_goes_on_when_its_receiver_is_started_again(hosts, tmp_path):
    tree(tmp_path / "data", 4_000_000)
    ship, shore = hosts
    with receiving("in", "--listen", "127.0.0.1:0", "--keys", shore, cwd=tmp_path) as (_, address):
        sender = subprocess.Popen(
            [*CLI, "send", "data", address, "--keys", ship, "--rate", "1e7"], cwd=tmp_path, stdout=subprocess.PIPE, text=True
        )
        time.sleep(2)
    with receiving("in", "--listen", address, "--keys", shore, cwd=tmp_path):
        said, _ = sender.communicate(timeout=60)

    assert sender.returncode == 0
    assert said.startswith("Files    3 placed, 0 already there\n"), said
    assert_same(tmp_path / "data", tmp_path / "in" / "data")


needs_namespaces = pytest.mark.skipif(
    os.geteuid() != 0 or shutil.which("ip") is None, reason="network namespaces need root, and Debian's package iproute2"
)


@pytest.fixture
def machines() -> Iterator[dict[str, str]]:
    """Two network namespaces with a cable between them, `shore` with the address of the guide; names by machine."""
    names = {name: f"farlink-{name}-{os.getpid()}" for name in ("shore", "ship")}
    cable = ["eth0", "netns", names["shore"], "type", "veth", "peer", "name", "eth0", "netns", names["ship"]]
    try:
        for name in names.values():
            subprocess.run(["ip", "netns", "add", name], check=True)
        subprocess.run(["ip", "link", "add", *cable], check=True)
        for name, address in (("shore", "192.0.2.1/24"), ("ship", "192.0.2.2/24")):
            for command in (
                ["addr", "add", address, "dev", "eth0"],
                ["link", "set", "eth0", "up"],
                ["link", "set", "lo", "up"],
            ):
                subprocess.run(["ip", "-n", names[name], *command], check=True)
        yield names
    finally:
        for name in names.values():
            subprocess.run(["ip", "netns", "del", name], check=False)


@needs_namespaces
@pytest.mark.parametrize("short", ["ship", "shore", "shore, later"])
def test_files_arrive_over_paths_that_carry_short_packets_only(machines, hosts, tmp_path, short):
    """The network device of `ship` refuses longer packets, that of `shore` drops them without a word."""
    ship, shore = hosts
    tree(tmp_path / "data", 2_000_000)
    prefixes = {name: ("ip", "netns", "exec", space) for name, space in machines.items()}

    def shorten() -> None:
        subprocess.run(["ip", "-n", machines[short.split(",")[0]], "link", "set", "eth0", "mtu", "1300"], check=True)

    if "later" not in short:
        shorten()
    listen = ["in", "--listen", "192.0.2.1:47470", "--keys", shore]
    with receiving(*listen, cwd=tmp_path, prefix=prefixes["shore"]) as (_, address):
        command = [*prefixes["ship"], *CLI, "send", "data", address, "--keys", ship, "--rate", "4e6", "--packet-bytes", "9000"]
        sender = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True)
        if "later" in short:
            time.sleep(2.5)
            shorten()
        said, _ = sender.communicate(timeout=60)
    assert sender.returncode == 0
    assert said.startswith("Files    3 placed, 0 already there\n"), said
    assert_same(tmp_path / "data", tmp_path / "in" / "data")


@needs_namespaces
def test_every_command_of_the_guide_runs_between_two_machines(machines, tmp_path):
    _type_the_guide(machines, tmp_path)


def _type_the_guide(names: dict[str, str], tmp_path: Path) -> None:
    for name in names:
        (tmp_path / name).mkdir()
    tree(tmp_path / "ship" / "logs")
    keys: dict[str, str] = {}
    said: list[str] = []
    receivers = []
    try:
        for name, command in re.findall(r"^(shore|ship)\$ farlink (.*)$", GUIDE.read_text(encoding="utf-8"), re.MULTILINE):
            for host, key in keys.items():
                command = command.replace(f"{host.upper()}_KEY", key)
            home = tmp_path / name
            prefix = ["ip", "netns", "exec", names[name], *CLI]
            environment = {**os.environ, "HOME": str(home), "XDG_CONFIG_HOME": ""}
            if command.startswith("receive"):
                receiver = subprocess.Popen(
                    [*prefix, *command.split()], cwd=home, env=environment, stderr=subprocess.PIPE, text=True
                )
                receivers.append(receiver)
                assert receiver.stderr is not None
                assert receiver.stderr.readline().startswith("listening on 192.0.2.1:47470 ")
                continue
            done = subprocess.run(
                [*prefix, *command.split()], cwd=home, env=environment, capture_output=True, text=True, timeout=60, check=False
            )
            assert done.returncode == 0, f"{command}: {done.stderr}"
            said.append(done.stdout)
            if command == "keygen":
                keys[name] = done.stdout.strip()
    finally:
        for receiver in receivers:
            receiver.kill()
            receiver.wait()
    assert_same(tmp_path / "ship" / "logs", tmp_path / "shore" / "incoming" / "logs")
    assert [re.match(r"Files +(.*)", one)[1] for one in said[-2:]] == ["3 placed, 0 already there", "0 placed, 3 already there"]

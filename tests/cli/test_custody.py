"""`farlink custody` as a user types it: streams through two gateways that keep them on their disks."""

from __future__ import annotations

import json
import os
import random
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.conftest import Command, assert_refused

CLI = [sys.executable, "-m", "farlink.cli"]
# Warnings of short buffers depend on the machine.
ENVIRONMENT = {**os.environ, "FARLINK_LOG": "error"}
Begin = Callable[..., "subprocess.Popen[bytes]"]


@dataclass
class Chain:
    """A ship, two gateways and a shore, each with keys."""

    folder: Path
    begin: Begin
    sink: str
    far: str
    near: str

    def gateway(self, name: str, custody: str = "") -> tuple[subprocess.Popen[bytes], str]:
        """Start a gateway; its address."""
        before, after, at = {"near": ("ship", "far", self.far), "far": ("near", "shore", self.sink)}[name]
        keys = {host: (self.folder / f"{host}.pub").read_text().strip() for host in (before, after)}
        (self.folder / f"{name}.toml").write_text(
            f'keys = "{name}"\nlisten = "{self.listen(name)}"\n'
            f'[peer.{before}]\nkey = "{keys[before]}"\n[peer.{after}]\nkey = "{keys[after]}"\naddress = "{at}"\n'
            f'[custody]\nfolder = "{name}-store"\n{custody}\n'
            f'[[custody.route]]\nsink = "archive"\nfrom = ["{before}"]\nto = "{after}"\n'
        )
        process = self.begin("gateway", f"{name}.toml")
        said = read_until(process, b"sessions at ")
        found = re.search(r"127\.0\.0\.1:\d+", said)
        assert found, said
        return process, found[0]

    def listen(self, name: str) -> str:
        return self.far if name == "far" else self.near

    def start(self, custody: str = "") -> None:
        """Start both."""
        self.gateway("far", custody)
        self.gateway("near", custody)


def free_address() -> str:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as free:
        free.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{free.getsockname()[1]}"


def read_until(process: subprocess.Popen[bytes], begin: bytes) -> str:
    assert process.stderr is not None
    while not (line := process.stderr.readline()).startswith(begin):
        assert line, process.wait()
    return line.decode()


def content(count: int) -> bytes:
    return random.Random(count).randbytes(count)


@pytest.fixture
def chain(farlink: Command, tmp_path: Path) -> Iterator[Chain]:
    """Hosts that know each other, and processes that end with the test."""
    for name in ("ship", "near", "far", "shore"):
        (tmp_path / f"{name}.pub").write_text(farlink("keygen", "--keys", name).stdout)
    for host, other in (("ship", "near"), ("shore", "far")):
        assert farlink("trust", (tmp_path / f"{other}.pub").read_text().strip(), other, "--keys", host).returncode == 0
    processes: list[subprocess.Popen[bytes]] = []

    def begin(*arguments: str) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(
            [*CLI, *arguments],
            cwd=tmp_path,
            env=ENVIRONMENT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        processes.append(process)
        return process

    yield Chain(tmp_path, begin, *(free_address() for _ in range(3)))
    for process in processes:
        process.kill()
        process.communicate()


def send(chain: Chain, source: str, *arguments: str) -> list[str]:
    return ["custody", "send", source, chain.near, "--sink", "archive", "--keys", "ship", *arguments]


def receive(chain: Chain, target: str, *arguments: str) -> list[str]:
    return ["custody", "receive", target, "--listen", chain.sink, "--keys", "shore", *arguments]


def ended(process: subprocess.Popen[bytes], within_s: float = 60) -> tuple[int, str, str]:
    out, errors = process.communicate(timeout=within_s)
    return process.returncode, out.decode(), errors.decode()


def test_a_file_arrives_though_its_sender_is_gone(chain, farlink):
    data = content(3_000_000)
    (chain.folder / "image").write_bytes(data)
    chain.start()
    sent = farlink(*send(chain, "image"))
    assert sent.returncode == 0, sent.stderr
    number = re.search(r"stream ([0-9a-f]{32})\n", sent.stderr)[1]
    assert sent.stdout == f"Stream  {number}\nKept    3,000,000 bytes, all of it\n"

    code, out, errors = ended(chain.begin(*receive(chain, "in", "--once")))

    assert code == 0, errors
    assert errors == f"listening on {chain.sink} for streams of 1 trusted host\n"
    assert out == (
        f"Stream   {number}\nFrom     far\nSink     archive\nContent  3,000,000 bytes\nFile     in/archive-{number}\n"
    )
    assert [path.name for path in (chain.folder / "in").iterdir()] == [f"archive-{number}"]
    assert (chain.folder / "in" / f"archive-{number}").read_bytes() == data
    # Neither gateway has anything of it, nor waits for its end to be known.
    for name in ("near", "far"):
        wait_until(lambda name=name: not list((chain.folder / f"{name}-store" / "streams").iterdir()))


def wait_until(is_so: Callable[[], object], within_s: float = 30) -> None:
    end = time.monotonic() + within_s
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.05)


def test_from_pipe_to_pipe(chain):
    data = content(700_000)
    chain.start()
    receiving = chain.begin(*receive(chain, "-"))
    read_until(receiving, b"listening on ")
    sending = chain.begin(*send(chain, "-", "--json"))
    out, errors = sending.communicate(data, timeout=60)
    assert sending.returncode == 0, errors
    summary = json.loads(out)
    assert summary["bytes"] == 700_000

    got, said = receiving.communicate(timeout=60)

    assert receiving.returncode == 0, said
    assert got == data
    assert f"Stream   {summary['stream']}" in said.decode()


def test_a_killed_sender_goes_on(chain, farlink):
    data = content(4_000_000)
    (chain.folder / "image").write_bytes(data)
    chain.start("stream_bytes = 1_000_000")
    # Nobody receives, so that the gateways are full after 2 MB.
    sending = chain.begin(*send(chain, "image"))
    number = read_until(sending, b"stream ").split()[1]
    held = chain.folder / "near-store" / "streams"
    wait_until(lambda: sum(path.stat().st_size for path in held.iterdir()) > 900_000)
    sending.kill()
    sending.wait()
    receiving = chain.begin(*receive(chain, "in", "--once"))

    again = farlink(*send(chain, "image", "--stream", number))

    assert again.returncode == 0, again.stderr
    assert again.stdout == f"Stream  {number}\nKept    4,000,000 bytes, all of it\n"
    code, _, errors = ended(receiving)
    assert code == 0, errors
    assert (chain.folder / "in" / f"archive-{number}").read_bytes() == data


def test_a_killed_receiver_goes_on(chain, farlink):
    data = content(30_000_000)
    (chain.folder / "image").write_bytes(data)
    chain.start()
    sent = farlink(*send(chain, "image"))
    number = re.search(r"stream ([0-9a-f]{32})\n", sent.stderr)[1]
    part = chain.folder / "in" / f".archive-{number}.part"
    receiving = chain.begin(*receive(chain, "in"))
    wait_until(lambda: part.exists() and part.stat().st_size > 2_000_000)
    receiving.kill()
    receiving.wait()
    assert part.exists(), "it was killed in the middle"

    code, _, errors = ended(chain.begin(*receive(chain, "in", "--once")))

    assert code == 0, errors
    assert (chain.folder / "in" / f"archive-{number}").read_bytes() == data


def test_ctrl_c_keeps_what_is_kept(chain):
    chain.start()
    receiving = chain.begin(*receive(chain, "in", "--json"))
    sending = chain.begin(*send(chain, "-"))
    assert sending.stdin is not None
    sending.stdin.write(content(100_000))
    sending.stdin.flush()
    number = read_until(sending, b"stream ").split()[1]
    part = chain.folder / "in" / f".archive-{number}.part"
    wait_until(lambda: part.exists() and part.stat().st_size == 100_000)
    for process in (sending, receiving):
        process.send_signal(signal.SIGINT)
        process.wait(20)  # before its standard input is closed
    code, _, errors = ended(sending, 20)
    assert (code, errors) == (130, "interrupted\n")
    code, out, _ = ended(receiving, 20)
    assert code == 130
    assert [json.loads(line)["kind"] for line in out.splitlines()] == ["listening", "begun"]
    assert part.read_bytes() == content(100_000)


def test_what_a_damaged_store_has_lost_is_named(chain, farlink):
    data = content(3_000_000)
    (chain.folder / "image").write_bytes(data)
    # The far gateway is not there yet: the near one has all of it.
    near, _ = chain.gateway("near")
    sent = farlink(*send(chain, "image"))
    assert sent.returncode == 0, sent.stderr
    near.kill()
    near.wait()
    (first, *_) = sorted((chain.folder / "near-store" / "streams").iterdir())
    with first.open("r+b") as file:
        file.seek(500_000)
        file.write(b"?" * 10)
    chain.start()

    code, out, errors = ended(chain.begin(*receive(chain, "in", "--once")))

    assert code == 1, errors
    (damaged,) = (chain.folder / "in").glob("*.damaged")
    lost = int(re.search(r"Lost     ([\d,]+) bytes", out)[1].replace(",", ""))
    begin, end = map(int, damaged.with_suffix(".lost").read_text().split())
    assert 0 < lost == end - begin < 20_000
    assert damaged.read_bytes() == data[:begin] + bytes(lost) + data[end:]


def test_another_content_is_refused(chain, farlink):
    chain.gateway("near")  # which passes it on to nobody
    (chain.folder / "image").write_bytes(content(50_000))
    first = json.loads(farlink(*send(chain, "image", "--json")).stdout)
    (chain.folder / "image").write_bytes(content(40_000))
    again = farlink(*send(chain, "image", "--stream", first["stream"]))
    assert again.returncode == 1
    assert f"error: {chain.near}: the next node does not take the stream\nhint: look at its log\n" in again.stderr


@pytest.mark.parametrize(
    ("arguments", "said", "code"),
    [
        (["--sink", "nowhere"], "the next node has no such sink for this host", 1),
        (["--sink", "to the archive"], "a sink's name has 1 to 64 of the characters", 2),
        (["--stream", "5"], "'5' is no number of a stream; give its 32 hexadecimal digits".replace("'", '"'), 2),
        (["--key", "stranger"], "stranger", 2),
        (["--rate", "-1"], "the rate", 2),
    ],
)
def test_mistakes_of_a_sender(chain, farlink, arguments, said, code):
    if code == 1:
        chain.start()
    (chain.folder / "note").write_text("note")
    done = farlink(*send(chain, "note", *arguments))
    assert done.returncode == code, done.stderr
    assert said.partition(";")[0] in done.stderr
    assert "hint: " in done.stderr
    assert "Traceback" not in done.stderr


def test_a_gateway_that_is_not_there(chain, farlink):
    (chain.folder / "note").write_text("note")
    done = farlink(*send(chain, "note", "--patience", "1"))
    assert done.returncode == 1
    number = re.search(r"stream ([0-9a-f]{32})\n", done.stderr)[1]
    assert f"error: {chain.near}: the gateway has kept nothing for 1 s, 0 bytes before\n" in done.stderr
    assert f"then go on with --stream {number}\n" in done.stderr


@pytest.mark.parametrize("source", ["missing", "ship"])
def test_a_source_that_cannot_be_read(chain, farlink, source):
    assert_refused(farlink(*send(chain, source)), ["cannot be read"])


def test_mistakes_of_a_receiver(chain, farlink):
    assert_refused(farlink(*receive(chain, "-", "--json")), ["standard output cannot have both"])
    (chain.folder / "file").touch()
    assert_refused(farlink(*receive(chain, "file")), ["file: no folder"])
    first = chain.begin(*receive(chain, "in"))
    read_until(first, b"listening on ")
    assert farlink(*receive(chain, "in")).returncode == 2

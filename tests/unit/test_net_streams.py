"""Streams between two hosts of this machine, for asyncio."""

from __future__ import annotations

import asyncio
import base64
import gc
import os
import random
import re
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.conftest import ROOT

from farlink import net
from farlink.errors import ArgumentError, FarlinkError, TransferError

GUIDE = ROOT / "docs" / "guides" / "streams.md"
HERE = "127.0.0.1:0"
CONTENT = random.Random(1).randbytes(3_000_000)


class Keys(NamedTuple):
    """Folders of the keys of two hosts that trust each other, and of one that trusts both and is trusted by none."""

    ship: Path
    shore: Path
    stranger: Path


@pytest.fixture
def keys(tmp_path):
    folders = Keys(*(tmp_path / name / "farlink" for name in Keys._fields))
    public = {name: net.generate_key(folder) for name, folder in folders._asdict().items()}
    net.trust(public["shore"], "shore", folders.ship)
    net.trust(public["ship"], "ship", folders.shore)
    net.trust(public["shore"], "shore", folders.stranger)
    return folders


def run(program, limit_s=30):
    return asyncio.run(asyncio.wait_for(program, limit_s))


async def echo(connection):
    async with connection:
        async for piece in connection:
            await connection.write(piece)


async def all_of(connection):
    return b"".join([piece async for piece in connection])


async def pair(tasks, listener, keys, **settings):
    """Both sides of a connection."""
    accepted = tasks.create_task(listener.accept())
    opened = await net.connect(listener.address, keys=keys.ship, **settings)
    return opened, await accepted


def test_megabytes_go_there_and_back(keys):
    async def program():
        async with net.listen(HERE, keys=keys.shore) as listener, asyncio.TaskGroup() as tasks:
            serving = tasks.create_task(listener.accept())
            async with net.connect(listener.address, peer="shore", keys=keys.ship) as connection:
                tasks.create_task(echo(await serving))
                reading = tasks.create_task(all_of(connection))
                await connection.write(CONTENT)
                statistics = connection.statistics
                await connection.finish()
                finished = connection.statistics
                return await reading, statistics, finished, connection, serving.result()

    back, statistics, finished, connection, accepted = run(program())
    assert back == CONTENT
    assert 0 < statistics.round_trip_s < 5
    assert statistics.rate_bps > 0
    assert statistics.settled_bytes <= len(CONTENT)
    assert finished is None or finished.settled_bytes >= len(CONTENT)
    assert (connection.name, connection.peer) == ("shore", net.public_key(keys.shore))
    assert (accepted.name, accepted.peer) == ("ship", net.public_key(keys.ship))
    assert connection.statistics is None
    assert re.fullmatch(r"127\.0\.0\.1:\d+", accepted.remote_address)
    assert repr(accepted) == f"<farlink.net.Connection with ship at {accepted.remote_address} (closed)>"


def test_connections_do_not_wait_for_each_other(keys):
    async def ask(address, number):
        async with net.connect(address, keys=keys.ship) as connection:
            await connection.write(CONTENT[: 1000 * number])
            await connection.finish()
            return await all_of(connection)

    async def program():
        async with net.listen(HERE, keys=keys.shore) as listener, asyncio.TaskGroup() as tasks:
            idle = await net.connect(listener.address, keys=keys.ship)

            async def serve():
                async for connection in listener:
                    tasks.create_task(echo(connection))

            serving = tasks.create_task(serve())
            answers = await asyncio.gather(*(ask(listener.address, number) for number in range(10)))
            await idle.close()
            serving.cancel()
            return answers

    assert run(program()) == [CONTENT[: 1000 * number] for number in range(10)]


def test_early_data_arrive_with_the_connection(keys):
    async def program():
        async with net.listen(HERE, keys=keys.shore) as listener, asyncio.TaskGroup() as tasks:
            connection = await net.connect(listener.address, keys=keys.ship, early=True)
            await connection.write(b"question")
            tasks.create_task(echo(await listener.accept()))
            assert await connection.readexactly(8) == b"question"
            await connection.close()

    run(program())


def test_a_writer_waits_for_a_reader(keys):
    async def program():
        async with net.listen(HERE, keys=keys.shore) as listener, asyncio.TaskGroup() as tasks:
            opened, accepted = await pair(tasks, listener, keys)
            written = 0
            with suppress(TimeoutError):
                while written < 64 << 20:
                    async with asyncio.timeout(0.5):
                        await opened.write(CONTENT[: 1 << 16])
                    written += 1 << 16
            reading = tasks.create_task(all_of(accepted))
            await opened.finish()
            data = await reading
            await accepted.close()
            await opened.close()
            return written, len(data)

    written, arrived = run(program())
    assert 1 << 20 < written < 64 << 20
    # The write that was cancelled has written a part.
    assert written <= arrived <= written + (1 << 16)


def test_a_cancelled_read_loses_nothing(keys):
    async def program():
        async with net.listen(HERE, keys=keys.shore) as listener, asyncio.TaskGroup() as tasks:
            opened, accepted = await pair(tasks, listener, keys, rate_bps=5e6)
            writing = tasks.create_task(opened.write(CONTENT[:500_000]))
            data, cancelled, chance = bytearray(), 0, random.Random(2)
            while len(data) < 500_000:
                try:
                    async with asyncio.timeout(chance.uniform(0, 0.004)):
                        data += await accepted.read(5000)
                except TimeoutError:
                    cancelled += 1
            await writing
            await accepted.close()
            await opened.close()
            return bytes(data), cancelled

    data, cancelled = run(program())
    assert data == CONTENT[:500_000]
    assert cancelled > 10


def test_a_cancelled_readexactly_loses_nothing(keys):
    async def program():
        async with net.listen(HERE, keys=keys.shore) as listener, asyncio.TaskGroup() as tasks:
            opened, accepted = await pair(tasks, listener, keys)
            await opened.write(b"abc")
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(accepted.readexactly(5), 0.3)
            await opened.write(b"defgh")
            assert await accepted.readexactly(5) == b"abcde"
            assert await accepted.read(2) == b"fg"
            await opened.finish()
            with pytest.raises(asyncio.IncompleteReadError) as caught:
                await accepted.readexactly(5)
            assert caught.value.partial == b"h"
            assert await accepted.read() == b""

    run(program())


def test_the_ends_of_both_directions(keys):
    async def program():
        async with net.listen(HERE, keys=keys.shore) as listener, asyncio.TaskGroup() as tasks:
            opened, accepted = await pair(tasks, listener, keys)
            await opened.write(b"last words")
            await opened.finish()
            await opened.finish()
            with pytest.raises(TransferError, match="the own direction has ended") as caught:
                await opened.write(b"more")
            assert caught.value.remedy == "write before finish()"
            assert await all_of(accepted) == b"last words"
            await accepted.write(b"answer")
            await accepted.close()
            assert await all_of(opened) == b"answer"
            await opened.close()
            await opened.close()
            with pytest.raises(TransferError, match=r"127\.0\.0\.1:\d+: the connection is closed"):
                await opened.read()

    run(program())


def test_a_failure_closes_in_order(keys):
    """Neither a failure in `async with` nor a connection that is forgotten waits for the peer; what was written arrives."""

    async def fails(connection):
        async with connection:
            await connection.write(CONTENT)
            raise KeyError

    async def program():
        async with net.listen(HERE, keys=keys.shore) as listener, asyncio.TaskGroup() as tasks:
            opened, accepted = await pair(tasks, listener, keys)
            with pytest.raises(KeyError):
                await fails(opened)
            assert await all_of(accepted) == CONTENT
            await accepted.close()

            opened, accepted = await pair(tasks, listener, keys)
            await opened.write(CONTENT[:100_000])
            del opened
            gc.collect()
            assert await all_of(accepted) == CONTENT[:100_000]

    run(program())


def test_closing_wakes_tasks_that_wait(keys):
    async def program():
        async with net.listen(HERE, keys=keys.shore) as listener, asyncio.TaskGroup() as tasks:
            opened, accepted = await pair(tasks, listener, keys)
            reading = asyncio.ensure_future(opened.read())
            tasks.create_task(echo(accepted))
            await asyncio.sleep(0.1)
            await opened.close()
            with pytest.raises(TransferError, match="the connection is closed"):
                await reading

    run(program())


def test_a_closed_listener_frees_its_address_and_keys(keys):
    async def program():
        listener = await net.listen(HERE, keys=keys.shore)
        async with asyncio.TaskGroup() as tasks:
            opened, accepted = await pair(tasks, listener, keys)
            waiting = asyncio.ensure_future(listener.accept())
            iterating = tasks.create_task(all_of_listener(listener))
            reading = asyncio.ensure_future(accepted.read())
            await opened.write(b"unread")
            await opened.finish()
            await asyncio.sleep(0.1)
            await listener.close()
            with pytest.raises(TransferError, match="the listener is closed"):
                await waiting
            assert await iterating == 0
            assert await reading == b"unread"
            with pytest.raises(TransferError, match="the connection is closed"):
                await accepted.read()
            assert await opened.read() == b""
            async with net.listen(listener.address, keys=keys.shore) as again:
                assert again.address == listener.address
            await opened.close()

    async def all_of_listener(listener):
        return len([connection async for connection in listener])

    run(program())


def test_a_closed_listener_delivers_and_does_not_wait_for_peers_that_never_end(keys):
    async def program():
        async with net.listen(HERE, keys=keys.shore) as listener, asyncio.TaskGroup() as tasks:
            opened, accepted = await pair(tasks, listener, keys)
            await accepted.write(CONTENT[:1_000_000])
            reading = tasks.create_task(all_of(opened))
            start = time.monotonic()
            await listener.close()
            took_s = time.monotonic() - start
            assert await reading == CONTENT[:1_000_000]
            return took_s

    assert run(program()) < 5


def test_a_cancelled_listener_is_closed(keys):
    async def serve(addresses):
        async with net.listen(HERE, keys=keys.shore) as listener:
            addresses.append(listener.address)
            async for _connection in listener:
                pass

    async def program():
        addresses = []
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(serve(addresses), 0.3)
        async with net.listen(addresses[0], keys=keys.shore):
            pass

    run(program(), 5)


@pytest.mark.parametrize("wrong", ["nobody", "own key", "peer's key", "port", "psk"])
def test_who_is_not_there_does_not_answer(wrong, keys):
    async def program():
        async with net.listen(HERE, keys=keys.shore) as listener:
            address = listener.address
            if wrong == "nobody":
                await listener.close()
            settings = {
                "own key": {"keys": keys.stranger},
                "peer's key": {"peer": net.public_key(keys.stranger)},
                "port": {"port": 7},
                "psk": {"psk": base64.b64encode(bytes(range(32))).decode()},
            }.get(wrong, {})
            start = time.monotonic()
            with pytest.raises(TransferError) as caught:
                await net.connect(address, **{"keys": keys.ship, "patience_s": 1, **settings})
            return address, caught.value, time.monotonic() - start

    address, error, took_s = run(program())
    assert error.message == f"{address}: the peer does not answer"
    assert error.remedy == "check address, keys and firewall"
    assert error.exit_code == 1
    assert 0.9 < took_s < 5


def test_waiting_takes_no_time_of_the_processor(keys):
    async def program():
        connection = await net.connect("127.0.0.1:9", keys=keys.ship, early=True, patience_s=1)
        assert connection.statistics.round_trip_s is None
        await connection.write(b"anybody there?")
        start = time.process_time()
        with pytest.raises(TransferError, match="the peer does not answer"):
            await connection.finish()
        return time.process_time() - start

    assert run(program()) < 0.3


def test_connecting_can_be_cancelled(keys):
    async def program():
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.2), net.connect("127.0.0.1:9", keys=keys.ship):
                pytest.fail("nobody is there")

    start = time.monotonic()
    run(program())
    assert time.monotonic() - start < 3


BAD = {
    "port": (lambda keys: net.connect("127.0.0.1:http", keys=keys.ship), ["'http' is no port"], "192.0.2.1:47470"),
    "port 0": (lambda keys: net.connect("127.0.0.1:0", keys=keys.ship), ["port 0"], "the peer listens"),
    "host": (lambda keys: net.connect("no such host", keys=keys.ship), ["no such host", "not known"], "address"),
    "name": (lambda keys: net.connect("127.0.0.1", peer="nobody", keys=keys.ship), ['"nobody"'], "farlink trust lists"),
    "no peer": (lambda keys: net.connect("127.0.0.1", keys=keys.ship.parent), ["no hosts are trusted"], "key or name"),
    "no key": (
        lambda keys: net.connect("127.0.0.1", peer="A" * 43 + "=", keys=keys.ship.parent),
        ["there is no key"],
        "farlink keygen",
    ),
    "session port": (lambda keys: net.connect("127.0.0.1", port=0, keys=keys.ship), ["no port 0"], "1 to 49151"),
    "rate": (lambda keys: net.connect("127.0.0.1", rate_bps=-1, keys=keys.ship), ["rate", "-1"], "10e6"),
    "patience": (lambda keys: net.connect("127.0.0.1", patience_s=-1, keys=keys.ship), ["patience", "-1"], "0 or more"),
    "packets": (lambda keys: net.connect("127.0.0.1", packet_bytes=9001, keys=keys.ship), ["9001"], "1500"),
    "psk": (lambda keys: net.connect("127.0.0.1", psk="hush", keys=keys.ship), ["pre-shared key"], "32 bytes in base64"),
    "address": (lambda keys: net.listen("192.0.2.1", keys=keys.shore), ["192.0.2.1:47470"], "another address"),
    "listener's port": (lambda keys: net.listen(HERE, port=50_000, keys=keys.shore), ["50000"], "1 to 49151"),
    "nobody trusted": (lambda keys: net.listen(HERE, keys=keys.shore.parent), ["no host is trusted"], "farlink trust"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_refused(case, keys):
    opening, said, remedy = BAD[case]

    async def program():
        await opening(keys)

    with pytest.raises(FarlinkError) as caught:
        run(program())
    assert caught.value.exit_code == 2
    assert remedy in caught.value.remedy
    for words in said:
        assert words in caught.value.message
    assert "hush" not in str(caught.value) + caught.value.remedy


def test_nothing_is_shared_by_two_listeners(keys):
    async def program():
        async with net.listen(HERE, keys=keys.shore) as listener:
            with pytest.raises(TransferError, match="another process receives with the same key") as same:
                await net.listen(HERE, keys=keys.shore)
            with pytest.raises(TransferError, match=f"cannot use {re.escape(listener.address)}: ") as used:
                await net.listen(listener.address, keys=keys.ship)
            return same.value.remedy, used.value.remedy

    assert run(program()) == (
        "stop it, or give this one another folder of keys",
        "choose another address or port",
    )


def test_only_one_byte_or_more_can_be_read(keys):
    async def program():
        async with net.listen(HERE, keys=keys.shore) as listener, asyncio.TaskGroup() as tasks:
            opened, accepted = await pair(tasks, listener, keys)
            with pytest.raises(ArgumentError, match="0 bytes cannot be read"):
                await opened.read(0)
            await accepted.close()
            await opened.close()

    run(program())


@pytest.fixture
def server(keys, tmp_path):
    """The running server of the guide, and its address."""
    programs = re.findall(r"^```python (\S+)\n(.*?)^```$", GUIDE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    for name, content in programs:
        (tmp_path / name).write_text(content)
    command = [sys.executable, "echo_server.py", HERE]
    environment = {**os.environ, "XDG_CONFIG_HOME": str(keys.shore.parent)}
    process = subprocess.Popen(
        command, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        found = re.match(r"listening on (\S+)\n", process.stdout.readline())
        assert found, process.stderr.read()
        yield process, found[1]
    finally:
        process.kill()
        process.communicate()


def test_the_programs_of_the_guide_run_and_ctrl_c_ends_them(keys, server, tmp_path):
    process, address = server
    client = subprocess.run(
        [sys.executable, "echo_client.py", address],
        cwd=tmp_path,
        env={**os.environ, "XDG_CONFIG_HOME": str(keys.ship.parent)},
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert (client.returncode, client.stdout, client.stderr) == (0, "hello over there\n", "")

    async def interrupted():
        # Of a connection that is open, and whose server reads.
        connection = await net.connect(address, keys=keys.ship)
        start = time.monotonic()
        process.send_signal(signal.SIGINT)
        assert await asyncio.to_thread(process.wait, 10) == 0
        assert time.monotonic() - start < 5
        assert await connection.read() == b""

    run(interrupted())
    assert process.stderr.read() == ""


def test_a_killed_peer_is_noticed(keys, server):
    process, address = server

    async def program():
        connection = await net.connect(address, keys=keys.ship, patience_s=1)
        await connection.write(b"hello")
        assert await connection.readexactly(5) == b"hello"
        process.kill()
        process.wait()
        await connection.write(b"anybody there?")
        with pytest.raises(TransferError, match=f"{re.escape(address)}: the peer does not answer"):
            await connection.read()

    run(program())

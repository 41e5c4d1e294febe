"""The back end `farlink` of the operator: its configuration, what it makes of messages, and calls through a bank of modems."""

from __future__ import annotations

import asyncio
import os
import sys
import textwrap
import tomllib
from pathlib import Path

import pytest

from farlink.errors import TransferError
from farlink.operator.backend import Carried, Down, OwnPpp, Up
from farlink.operator.backend.own_ppp_config import config_text, device_of, secrets_text
from farlink.operator.config import Bundle, Line, Ppp, Secrets, check
from tests.operator.live_world import PATIENCE_S, TOP, until, world_in
from tests.operator.ppp_world import missing

WITHOUT = missing()
# Says what it is told to do, and what a line would.
CHILD = """
    import json, os, socket, sys
    def say(kind, line, text):
        print(json.dumps({"kind": kind, "line": line, "text": text}), flush=True)
    orders = socket.socket(fileno=0)
    print("no message", flush=True)
    while True:
        data, files, _, _ = socket.recv_fds(orders, 4096, 1)
        if not data:
            break
        order, line = next(iter(json.loads(data).items()))
        if order == "detach":
            say("carried", line, "7 9")
            say("detached", line, "closed")
            continue
        word = os.read(files[0], 99)
        os.close(files[0])
        if word == b"die":
            sys.exit(3)
        if word == b"secret":
            say("down", line, "wrong secret: hush")
            continue
        say("up", line, "carries packets")
        say("carried", line, "5 6")
        say("network", None, "10.0.0.1")
"""


def bundle(*lines: Line, **more) -> Bundle:
    return Bundle("camp", lines or (Line("a", "/dev/ttyS0", number="1"), Line("b", "/dev/ttyS1", number="2")), 1, **more)


def test_each_end_compiles_what_its_role_needs(tmp_path):
    secrets = Secrets(password="hush")
    dialling = bundle(user="ship", ppp=Ppp(local="10.0.0.1", remote="10.0.0.2", lcp_restart_s=5))
    text = tomllib.loads(config_text(dialling, tmp_path / "s"))
    assert (text["name"], text["require"], text["local"], text["restart_s"]) == ("ship", [], "10.0.0.1", 5)
    assert [line["name"] for line in text["line"]] == ["a", "b"]
    assert tomllib.loads(secrets_text(dialling, secrets)) == {"own": "hush"}
    answering = bundle(Line("a", "/dev/ttyS0", role="answer"), user="camp")
    text = tomllib.loads(config_text(answering, tmp_path / "s"))
    # Both ends of a line have names of their own.
    assert (text["name"], text["require"]) == ("camp-answers", ["chap"])
    assert tomllib.loads(secrets_text(answering, secrets)) == {"peer": {"camp": "hush"}}
    nobody = bundle()
    assert tomllib.loads(config_text(nobody, tmp_path / "s"))["require"] == []
    assert secrets_text(nobody, secrets) == ""
    assert device_of(nobody) == "fl-camp"


def test_the_core_takes_what_is_compiled(tmp_path):
    from farlink import net

    secrets = tmp_path / "secrets.toml"
    for one in (bundle(user="ship", ppp=Ppp(ipv6=True)), bundle(Line("a", "/x", role="answer"), user="ship"), bundle()):
        secrets.write_text(secrets_text(one, Secrets(password='quo"te\\')))
        secrets.chmod(0o600)
        path = tmp_path / "camp.ppp.toml"
        path.write_text(config_text(one, secrets))
        assert any("handed over for each call" in line for line in net.check_ppp_bundle(path))
    path.write_text(config_text(bundle(), secrets).replace("tries = 10", "tries = 1000"))
    with pytest.raises(TransferError, match="tries: 1000"):
        net.check_ppp_bundle(path)


def act(folder: Path, words: list[bytes], *, then) -> tuple[dict[str, list], str]:
    """Start a line for each word, which its tty says; what was told of each, and the log."""
    child = folder / "child.py"
    child.write_text(textwrap.dedent(CHILD))
    of = bundle(*(Line(f"l{at}", "/dev/ttyS0", number="1") for at in range(len(words))))

    async def run() -> dict[str, list]:
        back_end = OwnPpp(of, Secrets(password="hush"), folder=folder, command=[sys.executable, str(child)])
        assert back_end.prepare() == []
        told: dict[str, list] = {}
        links = []
        for at, word in enumerate(words):
            reader, writer = os.pipe()
            os.write(writer, word)
            told[f"l{at}"] = []
            links.append(await back_end.start(f"l{at}", reader, told[f"l{at}"].append))
            os.close(reader)
            os.close(writer)
        async with asyncio.timeout(PATIENCE_S):
            await then(back_end, links, told)
        await back_end.tear_down()
        return told

    return asyncio.run(run()), (folder / "camp.ppp.log").read_text()


async def seen(condition) -> None:
    while not condition():
        await asyncio.sleep(0.01)


def test_a_line_is_up_when_packets_are_carried_and_its_tty_is_given_back(tmp_path):
    async def then(_, links, told):
        await seen(lambda: Up() in told["l0"] and Up() in told["l1"])
        await links[0].hang_up()
        await seen(lambda: Carried(7, 9) in told["l0"])

    told, log = act(tmp_path, [b"good", b"good"], then=then)
    assert told["l0"] == [Carried(5, 6), Up(), Carried(7, 9)]
    # The other one stays as it is, until the process ends.
    assert told["l1"][:2] == [Carried(5, 6), Up()] or told["l1"][:2] == [Up(), Carried(5, 6)]
    assert "no message" in log


def test_a_refused_line_says_why_and_no_secret(tmp_path):
    async def then(_, __, told):
        await seen(lambda: told["l0"])

    told, log = act(tmp_path, [b"secret"], then=then)
    assert told["l0"] == [Down("wrong secret: hush")]
    assert "wrong secret: ***" in log


def test_a_process_that_ends_takes_all_lines_with_it_and_is_started_again(tmp_path):
    async def then(back_end, _, told):
        await seen(lambda: told["l1"])
        assert told["l1"][-1] == Down("the process that carries PPP ended with 3")
        reader, writer = os.pipe()
        os.write(writer, b"good")
        again: list = []
        await back_end.start("l0", reader, again.append)
        await seen(lambda: Up() in again)

    told, _ = act(tmp_path, [b"good", b"die"], then=then)
    assert told["l0"][-1] == Down("the process that carries PPP ended with 3")


def test_calls_that_come_up_together_get_one_process(tmp_path):
    child = tmp_path / "child.py"
    child.write_text(f"open({str(tmp_path / 'starts')!r}, 'a').write('x')\n" + textwrap.dedent(CHILD))

    async def run() -> None:
        back_end = OwnPpp(bundle(), Secrets(), folder=tmp_path, command=[sys.executable, str(child)])
        back_end.prepare()
        told: dict[str, list] = {"a": [], "b": []}
        reader, writer = os.pipe()
        os.write(writer, b"good")
        await asyncio.gather(*(back_end.start(name, reader, told[name].append) for name in told))
        async with asyncio.timeout(PATIENCE_S):
            await seen(lambda: Up() in told["a"])
        os.close(writer)
        await back_end.tear_down()

    asyncio.run(run())
    assert (tmp_path / "starts").read_text() == "x"


def test_mistakes_of_the_back_end_are_named(tmp_path):
    config = tmp_path / "bundle.toml"
    (tmp_path / "secrets.toml").write_text('password = "hush"\n')
    (tmp_path / "secrets.toml").chmod(0o600)
    lines = '[[line]]\nname = "a"\nport = "/dev/a"\nprofile = "hayes"\nnumber = "00881600005003"\n'
    lines += '[[line]]\nname = "b"\nport = "/dev/b"\nprofile = "hayes"\nrole = "answer"\n'
    top = 'name = "camp"\nback_end = "farlink"\nuser = "ship"\nsecrets = "secrets.toml"\n'
    config.write_text(top + "[ppp]\ncompression = true\n" + lines)
    found = check(config, needs_ports=False)
    assert found.bundle is None
    assert [one.message.partition(":")[0] for one in found.mistakes] == ["user", "ppp.compression"]
    config.write_text(top.replace("farlink", "farlnk") + lines)
    assert "farlink" in check(config, needs_ports=False).mistakes[0].remedy


@pytest.mark.skipif(WITHOUT is not None, reason=f"operators in network namespaces: {WITHOUT}")
def test_operators_at_both_ends_carry_packets_through_a_bank_without_kernel_ppp(tmp_path):
    with world_in(tmp_path, ("unshare", "-n")) as world:
        world.bank(2)
        ends = {}
        for name, own, other in (("far", "10.66.0.2", "10.66.0.1"), ("near", "10.66.0.1", "10.66.0.2")):
            assert "[ppp]" in TOP
            config = world.configure(name, 2)
            text = config.read_text().replace('back_end = "stand-in"', 'back_end = "farlink"')
            config.write_text(text.replace("[ppp]\n", f'[ppp]\nlocal = "{own}"\nremote = "{other}"\nconnect_delay_s = 0.1\n'))
            ends[name] = world.start(config)
        near, far = ends["near"], ends["far"]
        # Two operators and their processes of PPP start here, on a machine that may be busy.
        until(lambda: near.ups() == 2 and far.ups() == 2, lambda: near.log + far.log, within_s=3 * PATIENCE_S)
        ping = ["nsenter", "-t", str(near.process.pid), "-n", "ping", "-c", "2", "-W", "3", "-s", "900", "10.66.0.2"]
        until(lambda: os.spawnvp(os.P_WAIT, ping[0], ping) == 0, lambda: near.log + far.log)
        # The first line drops: the other one carries on, and the first is dialled again.
        near.ask(do="inject", now=True, lines=["near-1"])
        until(lambda: near.of("near-1", "dropped") and far.of("far-1", "dropped"), lambda: near.log + far.log)
        until(lambda: os.spawnvp(os.P_WAIT, ping[0], ping) == 0, lambda: near.log + far.log)
        assert not near.of("near-2", "dropped")
        until(lambda: near.ups() == 2 and far.ups() == 2, lambda: near.log + far.log)
        assert all(one.bytes_in for one in far.of("far-1", "dropped"))
        assert (near.end(), far.end()) == (0, 0)
        assert "canary" not in near.log + far.log

"""Back ends: what a pppd says, exits with and is sent, rule by rule; and what a killed operator leaves behind."""

from __future__ import annotations

import asyncio
import os
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from farlink.errors import JournalError
from farlink.operator.backend import Carried, Down, PppdBackEnd, Probe, StandIn, Up, orphans
from farlink.operator.backend import stand_in as stand_ins
from farlink.operator.config import Bundle, Line, Secrets

PATIENCE_S = 30.0

# A pppd as far as its operator sees one: it says what the file SCRIPT tells, and acts on signals as pppd 2.4.9 does.
PPPD = """#!{python} -IS
import os, signal, sys, time
say = lambda text: os.write(1, (text + "\\n").encode())
folder, line = os.path.split(sys.argv[2])
script = open(os.path.join(folder, os.path.splitext(line)[0] + ".script")).read().split("\\n")
def hup(*_):
    say("Hangup (SIGHUP)"); say("Link terminated.")
    if "owner" not in script: sys.exit(5)
def term(*_):
    say("Terminating on signal 15"); sys.exit(5)
signal.signal(signal.SIGHUP, hup); signal.signal(signal.SIGTERM, term)
for one in script:
    if one.startswith("exit "): sys.exit(int(one[5:]))
    elif one == "owner": pass
    elif one: say(one)
while True: time.sleep(1)
"""
ATTACHED = "Using interface ppp0\nConnect: ppp0 <--> /dev/pts/3\nLink attached to ppp0"
FIRST = "Using interface ppp0\nNew bundle ppp0 created\nlocal  IP address 10.0.0.1\nremote IP address 10.0.0.2"


class World:
    """A back end with the pppd above, in a folder."""

    def __init__(self, folder: Path) -> None:
        lines = (*(Line(name, "/dev/ttyS0", "hayes", number="1") for name in "ab"), Line("c", "/dev/ttyS1", "hayes", "answer"))
        self.folder, self.interfaces = folder, folder / "net"
        (self.interfaces / "ppp0").mkdir(parents=True)
        self.flags = self.interfaces / "ppp0" / "flags"
        self.flags.write_text("0x10d1\n")
        program = folder / "pppd"
        program.write_text(PPPD.format(python=sys.executable))
        program.chmod(0o755)
        bundle = Bundle("camp", lines, 3, user="camp", journal=folder / "camp.journal")
        self.back_end = PppdBackEnd(
            bundle,
            Secrets("canary-secret"),
            folder=folder,
            secrets_folder=folder,
            program=str(program),
            interfaces=self.interfaces,
        )
        self.back_end.prepare()
        self.said: list[Any] = []
        self.tty = os.open("/dev/null", os.O_RDWR)

    async def start(self, line: str, script: str) -> Any:
        (self.folder / f"camp@{line}.script").write_text(script)
        return await self.back_end.start(line, self.tty, self.said.append)

    async def until(self, condition: Callable[[], bool]) -> None:
        end = time.monotonic() + PATIENCE_S
        while not condition():
            assert time.monotonic() < end, self.said
            await asyncio.sleep(0.01)

    def running(self) -> list[int]:
        return list(orphans.find({str(self.folder / f"camp@{line}.options") for line in "ab"}))


@pytest.fixture
def play(tmp_path: Path) -> Callable[[Callable[[World], Awaitable[None]]], World]:
    def run(act: Callable[[World], Awaitable[None]]) -> World:
        world = World(tmp_path)

        async def whole() -> None:
            try:
                await act(world)
            finally:
                await world.back_end.tear_down()
                os.close(world.tty)

        asyncio.run(whole())
        assert world.running() == [], "nothing is left"
        return world

    return run


@pytest.mark.parametrize("script", [ATTACHED, FIRST])
def test_a_link_is_up_when_it_is_attached_or_has_addresses(play, script):
    async def act(world: World) -> None:
        await world.start("a", script)
        await world.until(lambda: Up() in world.said)

    play(act)


def test_an_attached_link_is_up_only_when_the_bundle_has_its_addresses(play):
    async def act(world: World) -> None:
        world.flags.write_text("0x1090\n")
        await world.start("a", f"{ATTACHED}\nPAP authentication succeeded")
        log = world.folder / "camp@a.log"
        await world.until(lambda: log.exists() and "PAP" in log.read_text())
        await asyncio.sleep(0.3)
        assert world.said == []
        world.flags.write_text("0x10d1\n")
        await world.until(lambda: world.said == [Up()])

    play(act)


@pytest.mark.parametrize("script", ["Using interface ppp0\nConnect: ppp0 <--> /dev/pts/3", "CHAP authentication succeeded"])
def test_a_process_and_an_interface_are_no_link(play, script):
    async def act(world: World) -> None:
        await world.start("a", f"{script}\nSent 1 bytes, received 2 bytes.")
        await world.until(lambda: Carried(2, 1) in world.said)

    assert Up() not in play(act).said


@pytest.mark.parametrize(
    ("end", "cause"),
    [
        ("Modem hangup\nConnection terminated.\nexit 16", "Modem hangup"),
        ("exit 16", "the modem hung up"),
        ("No response to 3 echo-requests\nSerial link appears to be disconnected.\nexit 15", "No response to 3 echo-requests"),
        ("exit 19", "the far end refused the authentication"),
        ("exit 77", "pppd ended with 77"),
    ],
)
def test_a_lost_link_is_told_once_with_its_cause(play, end, cause):
    async def act(world: World) -> None:
        await world.start("a", f"{ATTACHED}\n{end}")
        await world.until(lambda: not world.running() and bool(world.said) and world.said[-1] == Down(cause))
        await asyncio.sleep(0.1)

    assert [one for one in play(act).said if isinstance(one, Down)] == [Down(cause)]


def test_the_owner_of_the_bundle_lives_on_without_its_link(play):
    """First link lost: its pppd lives, and the link is down all the same; a fresh one starts on that line."""

    async def act(world: World) -> None:
        await world.start("a", f"owner\n{FIRST}\nModem hangup\nConnection terminated.")
        await world.until(lambda: Down("Modem hangup") in world.said)
        assert len(world.running()) == 1
        await world.start("a", ATTACHED)
        await world.until(lambda: len(world.running()) == 2 and world.said[-1] == Up())

    play(act)


def test_one_link_is_hung_up_by_sighup_and_the_owner_is_left(play):
    async def act(world: World) -> None:
        link = await world.start("a", f"owner\n{FIRST}")
        await world.until(lambda: Up() in world.said)
        await link.hang_up()
        assert len(world.running()) == 1, "SIGTERM would have ended the whole bundle"
        assert [one for one in world.said if isinstance(one, Down)]

    play(act)


def test_a_bundle_whose_interface_is_gone_is_noticed_and_torn_down(play):
    """SIGKILL of the owner: ppp0 is gone, the other pppds live, their links carry nothing."""

    async def act(world: World) -> None:
        owner = await world.start("a", FIRST)
        await world.start("b", ATTACHED)
        await world.until(lambda: world.said.count(Up()) >= 2)
        assert not world.back_end.is_bundle_lost()
        owner._process.send(signal.SIGKILL)
        shutil.rmtree(world.interfaces / "ppp0")
        await world.until(lambda: len(world.running()) == 1)
        assert world.back_end.is_bundle_lost()
        await world.back_end.tear_down()
        assert world.running() == []
        assert not world.back_end.is_bundle_lost()

    play(act)


def test_a_pppd_that_ignores_signals_is_killed(play, monkeypatch):
    monkeypatch.setattr("farlink.operator.backend.pppd._SPARE_S", -7.9)
    monkeypatch.setattr("farlink.operator.backend.process.Process.end.__kwdefaults__", {"within_s": 0.3})

    async def act(world: World) -> None:
        program = world.folder / "pppd"
        stubborn = "for one in (1, 15): signal.signal(one, signal.SIG_IGN)\nfor one in script:"
        program.write_text(program.read_text().replace("for one in script:", stubborn))
        for script in (FIRST, ATTACHED):
            link = await world.start("a", script)
            await world.until(lambda: world.said[-1:] == [Up()])
            await link.hang_up()
            assert world.running() == []

    play(act)


def test_what_a_link_alone_has_carried_is_told_before_its_end(play):
    async def act(world: World) -> None:
        end = "Modem hangup\nConnect time 1.0 minutes.\nSent 10 bytes, received 20 bytes.\nConnection terminated."
        await world.start("a", f"local  IP address 10.0.0.1\nremote IP address 10.0.0.2\n{end}\nexit 16")
        await world.until(lambda: world.said[-2:] == [Carried(20, 10), Down("Modem hangup")])
        await world.start("b", f"owner\n{FIRST}\n{end}")
        await world.until(lambda: world.said[-2:] == [Up(), Down("Modem hangup")])

    play(act)


def test_a_dead_link_is_told_before_pppd_is_done_with_it_and_its_tty_is_waited_for(play):
    """pppd asks a far end that is gone for the end of the link, for seconds."""

    async def act(world: World) -> None:
        link = await world.start("a", f"{ATTACHED}\nNo response to 3 echo-requests\nSerial link appears to be disconnected.")
        await world.until(lambda: world.said[-1:] == [Down("No response to 3 echo-requests")])
        assert len(world.running()) == 1
        await link.hang_up()
        assert world.running() == []

    play(act)


def test_only_the_end_that_dials_waits_before_its_first_request(tmp_path):
    world = World(tmp_path)
    os.close(world.tty)
    assert world.back_end.delay_s("a") == 1.0
    assert world.back_end.delay_s("c") == 0.0


def test_messages_are_kept_without_secrets_and_within_bounds(play, monkeypatch):
    monkeypatch.setattr("farlink.operator.backend.kept_log._MOST_BYTES", 500)

    async def act(world: World) -> None:
        text = "\n".join(f"message {number} of canary-secret" for number in range(40))
        await world.start("a", f"{text}\nexit 5")
        await world.until(lambda: bool(world.said) and isinstance(world.said[-1], Down))

    world = play(act)
    logs = [world.folder / "camp@a.log", world.folder / "camp@a.log.1"]
    assert "message 39 of ***" in logs[0].read_text()
    assert all("canary-secret" not in log.read_text() and log.stat().st_size < 600 for log in logs)


def test_options_of_each_line_and_secrets_are_written(play):
    async def act(_world: World) -> None:
        return

    world = play(act)
    assert "nopersist" in (world.folder / "camp@a.options").read_text()
    assert (world.folder / "chap-secrets").stat().st_mode & 0o777 == 0o600


def test_without_root_pppd_gets_what_root_has_installed(tmp_path):
    world = World(tmp_path)
    os.close(world.tty)
    before = sorted(path.name for path in tmp_path.iterdir())
    bundle = world.back_end._bundle
    back_end = PppdBackEnd(bundle, Secrets("canary-secret"), folder=tmp_path / "own", secrets_folder=tmp_path, is_root=False)
    assert back_end.prepare() == []
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([*before, "own"]), "no secret is written"
    assert back_end._options["a"] == ("call", "farlink-camp@a")


def test_what_a_killed_operator_left_behind_is_ended(tmp_path):
    world = World(tmp_path)
    os.close(world.tty)
    (tmp_path / "camp@a.script").write_text(ATTACHED)
    left = subprocess.Popen([tmp_path / "pppd", "file", tmp_path / "camp@a.options", "logfd", "1"], stdout=subprocess.DEVNULL)
    editor = "import time; time.sleep(100)"
    other = subprocess.Popen([sys.executable, "-c", editor, tmp_path / "camp@a.options"])
    try:
        end = time.monotonic() + PATIENCE_S
        while not world.running():
            assert time.monotonic() < end
        assert world.back_end.prepare() == [str(tmp_path / "camp@a.options")]
        assert left.wait(PATIENCE_S) != 0
        assert other.poll() is None, "nobody else's process is ended"
    finally:
        for process in (left, other):
            process.kill()
            process.wait()


def test_the_pppds_of_an_operator_that_runs_are_not_taken_for_left_behind(tmp_path):
    """A copy of bundle.toml in another folder has a journal, and a lock, of its own."""
    first = World(tmp_path)
    os.close(first.tty)
    bundle = Bundle("camp", (Line("a", "/dev/ttyS0", "hayes", number="1"),), 1, journal=tmp_path / "copy" / "camp.journal")
    with pytest.raises(JournalError, match=f"in use by process {os.getpid()}"):
        PppdBackEnd(bundle, Secrets(), folder=tmp_path, secrets_folder=tmp_path).prepare()


def stand_in(folder: Path, **ppp: int) -> StandIn:
    from farlink.operator.config import Ppp

    lines = tuple(Line(name, "/dev/ttyS0", "hayes", number="1") for name in ("a", "b"))
    return StandIn(Bundle("camp", lines, 2, journal=folder / "camp.journal", ppp=Ppp(**ppp)))


def test_stand_ins_are_up_when_both_hear_each_other_and_down_when_one_hangs_up(tmp_path):
    async def act() -> None:
        back_end = stand_in(tmp_path, echo_interval_s=1)
        master, slave = os.openpty()
        said: dict[str, list[Any]] = {"a": [], "b": []}
        link = await back_end.start("a", master, said["a"].append)
        await back_end.start("b", slave, said["b"].append)
        await until(lambda: Up() in said["a"] and Up() in said["b"])
        await until(lambda: Probe(is_answered=True) in said["a"])
        await link.hang_up()
        os.close(master)
        await until(lambda: said["b"][-1] == Down("the modem hung up"))
        assert any(isinstance(one, Carried) and one.bytes_in > 0 for one in said["b"])
        os.close(slave)

    asyncio.run(act())


def test_a_stand_in_alone_never_is_up_and_one_that_is_not_answered_any_more_gives_up(tmp_path):
    async def act() -> None:
        back_end = stand_in(tmp_path, echo_interval_s=1, echo_failures=2, lcp_restart_s=1, lcp_tries=1)
        master, slave = os.openpty()
        said: list[Any] = []
        await back_end.start("a", slave, said.append)
        await until(lambda: said == [Down("the far end does not answer")])
        said.clear()
        await back_end.start("a", slave, said.append)
        await until(lambda: Up() in said or not answered(master))
        await until(lambda: said[-1:] == [Down("the far end answers no probes any more")])
        assert said.count(Probe(is_answered=False)) == 2
        os.close(master)
        os.close(slave)

    def answered(master: int) -> bool:
        while select.select([master], [], [], 0)[0]:
            os.write(master, os.read(master, 100).replace(b"P", b"A"))
        return True

    asyncio.run(act())


@pytest.mark.parametrize("text", ["", "upp", "probe", "probe found", "carried", "carried 1 x", "carried -1 2", "\0"])
def test_nothing_else_means_anything(text):
    assert stand_ins.said_of(text) is None


async def until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < end
        await asyncio.sleep(0.01)

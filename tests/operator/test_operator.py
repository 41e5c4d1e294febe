"""The operator as a user runs it, at both ends of a bank: it dials, answers, redials, blocks, holds and injects drops."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import random
import re
import select
import shlex
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest

from farlink.errors import OperatorError
from farlink.operator.journal import flat
from farlink.operator.journal.rows import OBSERVATIONS
from farlink.operator.live import ask
from tests.conftest import ROOT
from tests.operator.live_world import CANARY, FARLINK, PATIENCE_S, Running, World, until, world_in
from tests.warm import Programs

# `make soak` kills more often.
KILLS = int(os.environ.get("FARLINK_KILLS", "3"))
EIGHT = 8
CHANGES = ("waiting", "connecting", "connected", "dropped", "ended", "failed", "blocked", "held")


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory, programs: Programs):
    """Sixteen modems. The eighth near line dials a number that nobody has, the seventh loses its calls."""
    with world_in(tmp_path_factory.mktemp("operators"), programs=programs) as made:
        made.bank(EIGHT, modem={7: "mean_up_s = 2"})
        made.near = made.start(made.configure("near", EIGHT, number=lambda at: "999" if at == EIGHT else f"{200 + at}"))
        made.far = made.start(made.configure("far", EIGHT))
        yield made


@pytest.fixture
def quick_world(tmp_path: Path, programs: Programs) -> contextlib.AbstractContextManager[World]:
    """A world whose programs start with their imports."""
    return world_in(tmp_path, programs=programs)


def all_up(world: World) -> None:
    def count() -> bool:
        return all(world.near.state(f"near-{at}") == "connected" == world.far.state(f"far-{at}") for at in range(1, EIGHT - 1))

    until(count, lambda: world.near.log[-3000:] + world.far.log[-3000:])


@pytest.fixture(scope="module")
def farlink(programs: Programs) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run `farlink bundle ARGUMENTS`, as a process that has its imports already."""

    def run(*arguments: object, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
        command = ["-m", "farlink.cli", "bundle", *map(str, arguments)]
        done = programs.run(command, cwd=cwd, timeout=PATIENCE_S)
        return subprocess.CompletedProcess(command, done.returncode, done.stdout.decode(), done.stderr.decode())

    return run


def test_all_lines_are_dialled_at_one_end_and_answered_at_the_other(world, farlink):
    all_up(world)
    assert [one.state for one in world.near.of("near-1", *CHANGES)][:2] == ["connecting", "connected"]
    assert [one.state for one in world.far.of("far-1", *CHANGES)][:3] == ["waiting", "connecting", "connected"]
    status = json.loads(farlink("status", world.near.config, "--json").stdout)
    lines = {one["line"]: one for one in status["lines"]}
    assert lines["near-1"]["is_up"]
    assert lines[status["primary"]]["is_primary"]
    assert world.near.history.connections[0].primary is not None


def test_a_line_that_fails_too_often_is_blocked_and_says_until_when(world):
    until(lambda: world.near.state(f"near-{EIGHT}") == "blocked", lambda: world.near.log)
    line = world.near.lines()[f"near-{EIGHT}"]
    assert line["reason"] == "attempts"
    assert 2000 < line["ends_in_s"] < 4400, "an hour, more or less by a fifth"
    found = [(one.state, one.cause, one.attempt) for one in world.near.of(f"near-{EIGHT}", "failed", "blocked")]
    assert [one[:2] for one in found[:5]] == [("failed", "NO CARRIER")] * 4 + [("blocked", "NO CARRIER")]
    assert [one[2] for one in found[:5]] == [1, 2, 3, 4, 5]
    assert "alert: near-8: blocked" in world.near.log


def test_calls_that_the_network_drops_are_dialled_again(world):
    def drops() -> int:
        return len(world.near.of("near-7", "dropped"))

    until(lambda: drops() >= 2, lambda: world.near.log[-3000:])
    until(lambda: len(world.near.of("near-7", "connected")) >= 3)
    assert not any(one.is_injected for one in world.near.of("near-7", "dropped"))
    assert all(one.bytes_in is not None for one in world.near.of("near-7", "dropped")[:2])


def test_a_link_that_dies_is_a_drop_and_the_others_live_on(world):
    all_up(world)
    before = world.near.lines()["near-1"]["call"]
    mark = next(mark for mark in set_of_marks(world.far) if ":far-1:" in mark)
    from farlink.operator.backend import orphans

    (victim,) = orphans.find({mark})
    os.kill(victim, signal.SIGKILL)
    until(lambda: world.near.lines()["near-1"]["call"] > before and world.near.state("near-1") == "connected")
    assert world.far.of("far-1", "dropped")[-1].cause == "the stand-in ended with -9"
    assert len(world.near.of("near-2", "connected")) == 1


def set_of_marks(running: Running) -> set[str]:
    from farlink.operator.backend import StandIn

    return set(StandIn(running.bundle)._marks.values())


def test_a_held_line_stays_down_until_it_is_released(world, farlink):
    all_up(world)
    done = farlink("hold", world.near.config, "near-2", "--why", "antenna is repaired")
    assert done.returncode == 0, done.stderr
    until(lambda: world.near.state("near-2") == "held")
    until(lambda: world.far.state("far-2") == "waiting", lambda: world.far.log[-2000:])
    assert world.near.lines()["near-2"]["ends_in_s"] is None, "no time ends it"
    held = world.near.of("near-2")[-2:]
    assert [one.state for one in held] == ["ended", "held"]
    assert held[1].cause == "antenna is repaired"
    assert farlink("release", world.near.config, "near-2").returncode == 0
    until(lambda: world.near.state("near-2") == "connected", lambda: world.near.log[-2000:])


def test_orders_that_do_nothing_say_so(world, farlink):
    all_up(world)
    done = farlink("release", world.near.config, "near-2")
    assert (done.returncode, "release: near-2 is not held" in done.stderr) == (2, True)
    assert farlink("hold", world.near.config, "near-2").returncode == 0
    done = farlink("redial", world.near.config, "near-2")
    assert (done.returncode, "redial: near-2 is held" in done.stderr) == (2, True)
    done = farlink("inject", world.near.config, "--now", "--line", "near-2", "--line", "near-5")
    assert done.stderr == "drops are injected: near-5\nnothing is done to: near-2, which is not up\n"
    assert farlink("release", world.near.config, "near-2").returncode == 0
    done = farlink("redial", world.near.config, "--try-pin")
    assert (done.returncode, "name the line whose PIN is to be tried" in done.stderr) == (2, True)
    done = farlink("redial", world.near.config, "near-2", "--try-pin")
    assert (done.returncode, "near-2 has no PIN" in done.stderr) == (2, True)


def test_injected_drops_are_marked_and_left_out_of_fits(world, tmp_path, farlink):
    all_up(world)
    done = farlink("inject", world.near.config, "--now", "--line", "near-3")
    assert done.returncode == 0, done.stderr
    until(lambda: world.near.of("near-3", "dropped"))
    assert world.near.of("near-3", "dropped")[0].is_injected
    until(lambda: world.near.state("near-3") == "connected")
    flat.write_jsonl(world.near.history, tmp_path / "near.jsonl")
    rows = [json.loads(line) for line in (tmp_path / "near.jsonl").read_text().splitlines()[1:]]
    events = [(row["event"], row.get("injected")) for row in rows if row["link"] == "near-3" and row["state"] == "dropped"]
    assert events == [("ended", True)]


def test_drops_are_injected_at_a_rate_until_they_are_switched_off(world, farlink):
    all_up(world)
    assert farlink("inject", world.near.config, "--rate", "2/s", "--line", "near-4", "--seed", "5").returncode == 0
    until(lambda: len(world.near.of("near-4", "dropped")) >= 2, lambda: world.near.log[-2000:])
    assert "drops are injected" in farlink("status", world.near.config).stdout
    assert farlink("inject", world.near.config, "--off").returncode == 0
    assert all(one.is_injected for one in world.near.of("near-4", "dropped"))
    until(lambda: world.near.state("near-4") == "connected")


def test_a_blocked_line_is_dialled_by_hand(world, farlink):
    until(lambda: world.near.state(f"near-{EIGHT}") == "blocked")
    before = len(world.near.of(f"near-{EIGHT}", "connecting"))
    assert farlink("redial", world.near.config, f"near-{EIGHT}").returncode == 0
    until(lambda: len(world.near.of(f"near-{EIGHT}", "connecting")) > before, lambda: world.near.log[-2000:])


def test_a_second_operator_is_refused(world, farlink):
    done = farlink("up", world.near.config)
    assert done.returncode == 2
    assert f"is in use by process {world.near.process.pid}" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("hold", "{}", "nebraska"), "has no line 'nebraska'"),
        (("hold", "{}", "near-11"), "did you mean 'near-1'"),
        (("inject", "{}"), "needs one of --rate, --now and --off"),
        (("inject", "{}", "--rate", "often"), "is no rate of drops"),
        (("status", "nowhere.toml"), "cannot read nowhere.toml"),
    ],
)
def test_wrong_commands_are_refused(world, arguments, said, farlink):
    done = farlink(*(str(one).format(world.near.config) for one in arguments))
    assert done.returncode == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_a_table_shows_each_line(world, farlink):
    shown = farlink("status", world.near.config, "--once").stdout
    assert all(f"near-{at}" in shown for at in range(1, EIGHT + 1))
    assert "of 8 lines up" in shown


def test_on_a_terminal_the_table_is_live(world):
    master, slave = os.openpty()
    watching = subprocess.Popen([*FARLINK, "bundle", "status", world.near.config], stdout=slave, stderr=slave)
    os.close(slave)
    shown = b""
    try:
        end = time.monotonic() + PATIENCE_S
        # The table is drawn anew each second.
        while shown.count(b"near-1") < 3:
            assert time.monotonic() < end, shown
            if select.select([master], [], [], 0.5)[0]:
                shown += os.read(master, 65536)
        watching.send_signal(signal.SIGINT)
        assert watching.wait(PATIENCE_S) == 130
    finally:
        watching.kill()
        watching.wait()
        os.close(master)
    assert world.near.process.poll() is None


def test_no_secret_is_in_a_log_an_export_or_a_process(world, tmp_path):
    processes = b"".join(
        path.read_bytes() for process in (world.near.process.pid, *world.near.children()) for path in files_of(process)
    )
    assert b"stand_in_child" in processes
    assert CANARY.encode() not in processes
    flat.write_csv(world.near.history, tmp_path / "near.csv")
    found = [
        path for path in (*world.folder.iterdir(), tmp_path / "near.csv") if path.is_file() and path.name != "secrets.toml"
    ]
    assert len(found) > 5
    assert [path.name for path in found if CANARY.encode() in path.read_bytes()] == []


def files_of(process: int) -> list[Path]:
    return [Path(f"/proc/{process}/{name}") for name in ("cmdline", "environ")]


def test_down_hangs_up_and_leaves_nothing(world, farlink):
    all_up(world)
    with socket.socket(socket.AF_UNIX) as silent:  # and nobody waits for it
        silent.connect(f"{world.near.bundle.journal}.sock")
        done = farlink("down", world.near.config)
    assert done.returncode == 0, done.stderr
    assert world.near.process.wait(PATIENCE_S) == 0
    assert "Traceback" not in world.near.log
    assert world.near.children() == []
    assert world.near.history.connections[-1].end_s is not None
    assert [one.state for one in world.near.of("near-1")][-2] == "ended"
    until(lambda: world.far.ups() == 0)
    done = farlink("status", world.near.config)
    assert (done.returncode, "no operator of bundle near is running" in done.stderr) == (2, True)
    assert world.far.end(signal.SIGTERM) == 0
    assert world.far.children() == []


def _calls(told: list[tuple[str, str]]) -> int:
    return sum(state == "connected" for _, state in told)


def test_killed_operators_leave_no_process_and_lose_no_transition(quick_world):
    rng = random.Random(int(os.environ.get("SEED", "1")))
    with quick_world as made:
        made.bank(2, modem={1: "mean_up_s = 1.5"})
        far = made.start(made.configure("far", 2))
        config = made.configure("near", 2)
        told: list[tuple[str, str]] = []
        for number in range(KILLS):
            near = made.start(config)
            until(near.lines, lambda near=near: near.log)
            if number % 2:  # with a call, however long it takes on a busy machine
                before = _calls(told)
                until(lambda near=near, before=before: _calls(near.told()) > before, lambda near=near: near.log)
            time.sleep(rng.uniform(0.0, 1.5))
            near.end(signal.SIGKILL)
            until(lambda near=near: not near.children(), near.children, 5.0)
            told = near.told()
            recorded = [(one.modem, one.state) for one in near.history.transitions]
            assert is_within(told, recorded), "each transition that was told is recorded, in order"
        assert _calls(told) >= KILLS // 2
        # Who comes after it takes up the work.
        near = made.start(config)
        until(lambda: near.state("near-2") == "connected", lambda: near.log[-2000:])
        assert near.end() == 0
        assert far.end() == 0
        for running in (near, far):
            history = running.history
            assert all(one.end_s is not None for one in history.connections)
            for line in ("near-1", "near-2", "far-1", "far-2"):
                states = [one.state for one in history.transitions if one.modem == line and one.state not in OBSERVATIONS]
                behind = [after for state, after in pairwise(states) if state == "connected"]
                assert set(behind) <= {"dropped", "ended"}, "each call has its end"


def is_within(some: list[tuple[str, str]], all_of_them: list[tuple[str, str]]) -> bool:
    rest = iter(all_of_them)
    return all(one in rest for one in some)


def test_a_modem_that_answers_nonsense_fails_with_its_last_words_in_the_journal(quick_world):
    with quick_world as made:
        made.bank(1)
        master, slave = os.openpty()
        port = made.folder / "modems" / "noisy"
        port.symlink_to(os.ttyname(slave))
        (made.folder / "hasty.toml").write_text('title = "Hasty"\ninit = ["ATZ"]\ncommand_limit_s = 0.5\n')
        config = made.configure("near", 1, profile="hasty.toml")
        config.write_text(config.read_text().replace(str(made.folder / "modems" / "near-1"), str(port)))
        # Without digits: a line of one is an answer of modems that are told to answer by numbers (V.250, 5.7.1).
        noise_of = "bytes(one for one in random.randbytes(700) if not 48 <= one < 58)"
        talker = f"import os, random, time\nwhile True: os.write({master}, {noise_of}); time.sleep(0.05)"
        noise = subprocess.Popen([sys.executable, "-c", talker], pass_fds=[master])
        try:
            near = made.start(config)
            (failed, *_) = until(lambda: near.bundle.journal.exists() and near.of("near-1", "failed"), lambda: near.log)
            assert "was not answered within 0.5 s, 3 times" in failed.cause
            assert len(failed.nonsense) == 4096
            assert "alert: near-1: modem-failed" in near.log
            assert near.lines()["near-1"]["modem_failure"]
            assert near.end() == 0
        finally:
            noise.kill()
            noise.wait()
            os.close(master)
            os.close(slave)


def test_only_listed_callers_are_answered_and_the_journal_keeps_who_called(quick_world):
    with quick_world as made:
        made.bank(2, profile="iridium-9522b", ring_limit_s=2)
        config = made.configure("far", 2, profile="iridium-9522b")
        config.write_text(config.read_text().replace('role = "answer"', 'role = "answer"\ncallers = ["00102"]'))
        far = made.start(config)
        near = made.start(made.configure("near", 2, profile="iridium-9522b"))
        until(lambda: near.state("near-2") == "connected", lambda: near.log)
        until(lambda: near.of("near-1", "failed"), lambda: near.log)
        (answered, *_) = far.of("far-2", "connecting")
        assert (answered.cause, answered.caller) == ("answering", "102")
        assert "far-2: connecting (answering 102)" in far.log
        assert far.lines()["far-2"]["number"] == "102"
        assert far.of("far-1", "connecting") == []
        refused = ("a call is not answered: the caller is none of the line's callers", "101")
        assert refused in [(one.cause, one.caller) for one in far.of("far-1", "alive")]
        assert near.of("near-1", "failed")[0].cause == "NO ANSWER"
        assert (near.end(), far.end()) == (0, 0)


@pytest.mark.parametrize("kind", ["full disk", "nobody reads"])
def test_what_cannot_be_told_stops_no_line(quick_world, kind):
    with quick_world as made:
        made.bank(1)
        far = made.start(made.configure("far", 1))
        reads, writes = os.pipe()
        fcntl.fcntl(writes, fcntl.F_SETPIPE_SZ, 4096)
        stderr = os.open("/dev/full", os.O_WRONLY) if kind == "full disk" else writes
        near = made.start(made.configure("near", 1), stderr=stderr)
        until(lambda: near.state("near-1") == "connected")
        if kind == "nobody reads":
            # Far more than a pipe holds.
            for _ in range(20):
                assert [near.ask(do=what, cause="x" * 200)["lines"] for what in ("hold", "release")] == [["near-1"]] * 2
            assert len(near.of("near-1", "held")) == 20
        assert (near.end(), far.end()) == (0, 0)
        for file in {reads, writes, stderr}:
            os.close(file)


def test_a_port_that_is_missing_is_waited_for(quick_world):
    with quick_world as made:
        made.bank(1)
        port = made.folder / "plugged-in-later"
        config = made.configure("near", 1)
        config.write_text(config.read_text().replace(str(made.folder / "modems" / "near-1"), str(port)))
        far = made.start(made.configure("far", 1))
        near = made.start(config)
        until(lambda: near.lines().get("near-1", {}).get("reason") == "port-gone", lambda: near.log)
        assert "no such file" in near.log
        assert near.ask(do="redial")["waits"] == {"near-1": "port-gone; until the port is back"}
        port.symlink_to(made.folder / "modems" / "near-1")
        until(lambda: near.state("near-1") == "connected", lambda: near.log)
        assert near.end() == 0
        assert far.end() == 0


def test_a_port_that_another_operator_has_is_not_shared(quick_world):
    with quick_world as made:
        made.bank(1)
        first = made.start(made.configure("near", 1))
        until(first.lines)
        other = made.folder / "other.toml"
        other.write_text(first.config.read_text().replace('name = "near"', 'name = "other"'))
        second = made.start(other)
        until(lambda: second.lines().get("near-1", {}).get("reason") == "port-gone", lambda: second.log)
        assert "in use by another process" in second.log
        assert (second.end(), first.end()) == (0, 0)


def test_a_wrong_pin_is_sent_once_over_restarts(quick_world):
    with quick_world as made:
        made.bank(1, modem={1: 'pin = "4711"'}, profile="sim7600")
        config = made.configure("near", 1, profile="sim7600", number=lambda _: "*99#")
        secrets = made.folder / "secrets.toml"
        secrets.write_text(f'password = "{CANARY}"\n[pin]\nnear-1 = "8265"\n')
        for _ in range(2):
            near = made.start(config)
            until(lambda near=near: near.lines().get("near-1", {}).get("modem_failure"), lambda near=near: near.log)
            assert near.end() == 0
        made.prefix = ("env", "--default-signal=HUP")  # the tests themselves may run below `nohup`
        near = made.start(config)
        until(lambda: near.lines().get("near-1", {}).get("modem_failure"), lambda: near.log)
        # Who has corrected it means the new one, and the operator has the old one.
        secrets.write_text(f'password = "{CANARY}"\n[pin]\nnear-1 = "4711"\n')
        with pytest.raises(OperatorError, match="is not the one that the operator has read"):
            near.ask(do="redial", lines=["near-1"], try_pin=True)
        assert near.end(signal.SIGHUP) == 0
        near = made.start(config)
        until(lambda: near.lines().get("near-1", {}).get("modem_failure"), lambda: near.log)
        near.ask(do="redial", lines=["near-1"], try_pin=True)
        until(lambda: near.lines()["near-1"]["modem"] in ("ready", "dialling"), lambda: near.log)
        assert near.end() == 0
        assert near.log.count("the SIM has refused its PIN, which is not tried again") >= 1
        assert near.log.count("has refused its PIN before") >= 2
        for pin in ("8265", "4711"):
            assert pin not in near.log
            assert pin.encode() not in near.bundle.journal.read_bytes()
        assert "AT+CPIN" not in near.log


def test_without_kernel_ppp_the_operator_says_so(tmp_path, farlink):
    with world_in(tmp_path) as made:
        (made.folder / "modems").mkdir()
        config = made.configure("near", 1)
        config.write_text(config.read_text().replace('back_end = "stand-in"\n', ""))
        if Path("/dev/ppp").exists():
            pytest.skip("this kernel has PPP: tests/qemu runs the operator with it")
        done = farlink("up", config)
        assert done.returncode == 2
        assert "/dev/ppp is missing" in done.stderr or "pppd is not installed" in done.stderr


def test_a_line_with_a_low_signal_is_not_dialled_before_it_is_better(quick_world):
    with quick_world as made:
        made.bank(1, modem={1: "signal = 2"}, profile="iridium-9522b")
        far = made.start(made.configure("far", 1, profile="iridium-9522b"))
        near = made.start(made.configure("near", 1, profile="iridium-9522b"))
        until(lambda: near.lines().get("near-1", {}).get("reason") == "signal", lambda: near.log)
        # Nor is it when its port was gone, and is back.
        for signal_now, reason in (("2", "signal"), ("4", "up")):
            made.unplug()
            until(lambda: near.lines()["near-1"]["reason"] == "port-gone", lambda: near.log)
            assert near.of("near-1", "connecting") == []
            made.bank(1, modem={1: f"signal = {signal_now}"}, profile="iridium-9522b")
            until(lambda reason=reason: near.lines()["near-1"]["reason"] == reason, lambda: f"{near.log}\nfar:\n{far.log}")
        assert near.of("near-1", "connecting")[0].bars == 4
        assert (near.end(), far.end()) == (0, 0)


@pytest.mark.slow
def test_the_commands_of_the_guide_do_what_it_says(tmp_path, farlink, programs):
    guide = (
        (ROOT / "docs" / "guides" / "bundle-operator.md")
        .read_text(encoding="utf-8")
        .replace("/tmp/modems", f"{tmp_path}/modems")
    )
    for name, text in re.findall(r"^```toml (\S+)\n(.*?)^```$", guide, flags=re.MULTILINE | re.DOTALL):
        # Pauses are not what is tested here. The far end listens again before the near one dials.
        limits = f"[ppp]\nconnect_delay_s = 0.1\n[limits]\ndropped_s = {0.1 if name == 'far.toml' else 0.5}\nfailed_s = 1\n"
        (tmp_path / name).write_text(f"{text}\n{limits}" if "[limits]" not in text else text)
    blocks = re.findall(r"^```console\n(.*?)^```$", guide, flags=re.MULTILINE | re.DOTALL)
    services, commands = (re.findall(r"^\$ farlink (.*)$", block, flags=re.MULTILINE) for block in blocks[:2])
    running = []
    with (tmp_path / "all.log").open("w") as log:
        try:
            for service in services:
                command = ["-m", "farlink.cli", *shlex.split(service)]
                running.append(programs.start(command, cwd=tmp_path, stdout=log.fileno(), stderr=log.fileno()))
                until(lambda: (tmp_path / "modems" / "modem-4").is_symlink(), (tmp_path / "all.log").read_text)
            until(lambda: states_of(tmp_path) == {"kansas": "connected", "iowa": "connected"}, (tmp_path / "all.log").read_text)
            printed = {}
            for command in commands:
                if "inject" in command:
                    until(lambda: states_of(tmp_path).get("kansas") == "connected")
                done = farlink(*shlex.split(command)[1:], cwd=tmp_path)
                assert done.returncode == 0, f"{command}: {done.stderr}"
                printed[command] = done.stdout
            assert "2 of 2 lines up" in printed["bundle status near.toml"]
            held = {one["line"]: one["state"] for one in json.loads(printed["bundle status near.toml --json"])["lines"]}
            assert held == {"kansas": "connected", "iowa": "held"}
            assert "antenna is repaired" in printed["bundle log near.journal"]
            assert "injected" in printed["bundle log near.journal"]
            assert [one.wait(PATIENCE_S) for one in running[1:]] == [0, 0]
        finally:
            for one in running:
                one.kill()
                one.wait()


def states_of(folder: Path) -> dict[str, str]:
    try:
        status = ask(folder / "near.journal", {"do": "status"}, bundle="near")
    except OperatorError:
        return {}
    return {one["line"]: one["state"] for one in status["lines"]}

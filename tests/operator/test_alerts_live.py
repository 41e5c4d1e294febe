"""Alerts of operators that run: each cause reaches a receiver within 10 s, once, and clears."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from farlink.operator.backend import StandIn, orphans
from tests.operator import live_world
from tests.operator.live_world import Running, World, until, world_in
from tests.operator.receiver import Receiver

# What the tests want: raised and at the receiver.
WITHIN_S = 10.0
SECRET = "canary-url-77aa"


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as made:
        yield made


@contextlib.contextmanager
def quick_world(folder: Path, monkeypatch: pytest.MonkeyPatch, pairs: int, **bank: object) -> Iterator[World]:
    """A bank whose modems give up ringing soon."""
    monkeypatch.setattr(live_world, "BANK", live_world.BANK.replace("ring_limit_s = 5", "ring_limit_s = 0.4"))
    with world_in(folder) as made:
        made.bank(pairs, **bank)
        yield made


def configured(
    world: World,
    receiver: Receiver,
    pairs: int,
    *,
    alerts: str = "",
    limits: str = "",
    top: str = "",
    more: str = "",
    after_s: float = 1.0,
    profile: str = "hayes",
) -> Path:
    """A near end whose alerts go to the receiver."""
    config = world.configure("near", pairs, more=top, profile=profile)
    text = config.read_text().replace("flaps = 1000\n", limits or "flaps = 1000\n")
    table = f'[alerts]\nurls_from = "urls.toml"\nafter_s = {after_s}\nclear_s = 0.5\n{alerts}'
    config.write_text(f"{text}\n{table}\n{more}")
    urls = world.folder / "urls.toml"
    url = receiver.url.replace("127.0.0.1", f"user:{SECRET}@127.0.0.1").replace("alerts", SECRET)
    urls.write_text(f'[alerts]\noffice = "{url}"\n')
    urls.chmod(0o600)
    return config


def raised(running: Running) -> set[str]:
    return {one["alert"] for one in running.ask(do="status")["alerts"]}


def test_a_bundle_that_is_down_is_told_once_and_cleared_once(tmp_path, monkeypatch, receiver):
    with quick_world(tmp_path, monkeypatch, 2) as world:
        near = world.start(configured(world, receiver, 2))
        until(near.lines)
        began = time.monotonic()
        for words in ("bundle is down", "near-1 is down", "near-2 is down"):
            assert receiver.wait(words, WITHIN_S) - began < WITHIN_S
        for line in ("near-1", "near-2"):
            until(lambda line=line: near.state(line) == "blocked", lambda: near.log)
            receiver.wait(f"{line} is blocked", WITHIN_S)
        assert raised(near) == {"bundle-down", "line-down", "blocked"}
        status = near.ask(do="status")["alerts"]
        assert all(set(one) == {"alert", "line", "severity", "since_unix_s", "for_s", "cause", "words"} for one in status)
        far = world.start(world.configure("far", 2))
        until(far.lines)
        near.ask(do="redial")
        until(lambda: near.ups() == 2, lambda: near.log[-2000:])
        until(lambda: not raised(near), lambda: near.log[-2000:])
        for words in ("bundle is down", "near-1 is down", "near-2 is down", "near-1 is blocked", "near-2 is blocked"):
            receiver.wait(f"cleared: {words}", WITHIN_S)
            assert [line.startswith("cleared") for line in receiver.about(words)] == [False, True], receiver.lines()
        assert (near.end(), far.end()) == (0, 0)
        rows = near.history.alerts
        assert sorted((one.alert, one.line) for one in rows) == [
            ("blocked", "near-1"),
            ("blocked", "near-2"),
            ("bundle-down", None),
            ("line-down", "near-1"),
            ("line-down", "near-2"),
        ]
        assert all(one.raised_s < one.cleared_s for one in rows)


class Told:
    """Does something to a bundle, and wants it told once, soon, and cleared once."""

    def __init__(self, near: Running, receiver: Receiver) -> None:
        self.near, self.receiver = near, receiver

    def raised(self, words: str, began: float) -> None:
        assert self.receiver.wait(words, WITHIN_S) - began < WITHIN_S

    def cleared(self, words: str) -> None:
        self.receiver.wait(f"cleared: {words}", WITHIN_S)
        assert [line.startswith("cleared") for line in self.receiver.about(words)] == [False, True], self.receiver.lines()

    def drop(self) -> None:
        """Drop a call of near-1; returns when it is dialled again and up, or damped."""
        near = self.near
        until(lambda: near.state("near-1") == "connected", lambda: near.log[-2000:])
        before = near.lines()["near-1"]["call"]
        # Not injected: those drops are no flaps.
        (mark,) = (one for one in StandIn(near.bundle)._marks.values() if ":near-1:" in one)
        for process in orphans.find({mark}):
            os.kill(process, signal.SIGKILL)
        until(lambda: near.lines()["near-1"]["reason"] == "flapping" or near.lines()["near-1"]["call"] > before)


def test_flapping_and_what_tells_people_are_told_too(tmp_path, monkeypatch, receiver):
    hook = tmp_path / "hook"
    hook.write_text(f"#!/bin/sh\necho $FARLINK_EVENT $FARLINK_ALERT >> {tmp_path}/told\n[ ! -e {tmp_path}/broken ]\n")
    hook.chmod(0o755)
    with quick_world(tmp_path, monkeypatch, 2) as world, Receiver() as second:
        # However slow the machine is: three drops are within the window, and no line counts as down meanwhile.
        limits = "flaps = 3\nflap_window_s = 600\n"
        config = configured(world, receiver, 2, limits=limits, top=f'hook = "{hook}"', after_s=300)
        urls = tmp_path / "urls.toml"
        urls.write_text(f'{urls.read_text()}second = "{second.url}"\n')
        far, near = world.start(world.configure("far", 2)), world.start(config)
        until(lambda: near.ups() == 2, lambda: near.log)
        told = Told(near, receiver)

        # Two drops within the window are within the damping: nobody is told.
        told.drop()
        told.drop()
        until(lambda: near.state("near-1") == "connected")
        assert receiver.lines() == []
        assert raised(near) == set()
        (tmp_path / "broken").touch()
        second.status = 500
        began = time.monotonic()
        told.drop()
        told.raised("near-1 drops too often", began)
        told.raised("hook fails", began)
        # Of what the second service refuses, the first one tells.
        told.raised("alerts are not delivered", began)
        assert "second: the service answers with HTTP status 500" in receiver.about("alerts are not delivered")[0]
        (tmp_path / "broken").unlink()
        second.status = 200
        # The hook is started with the next change; who pauses tries at once when a line comes up; a held line flaps no more.
        near.ask(do="hold", lines=["near-1", "near-2"])
        near.ask(do="release", lines=["near-2"])
        for words in ("near-1 drops too often", "hook fails", "alerts are not delivered"):
            told.cleared(words)
        until(lambda: near.ups() == 1, lambda: near.log[-2000:])
        # The second one has missed nothing, and got nothing twice.
        until(lambda: sorted(second.lines()) == sorted(receiver.lines()), second.lines)
        assert (near.end(), far.end()) == (0, 0)
        assert {"raised flapping", "cleared flapping"} <= set((tmp_path / "told").read_text().splitlines())


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 4 MB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    if os.geteuid() != 0 or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", folder], check=False).returncode:
        pytest.skip("a small disk needs root and mount")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", folder], check=True)


def test_a_full_disk_is_told_and_cleared(tmp_path, monkeypatch, receiver, small_disk):
    with quick_world(tmp_path, monkeypatch, 1) as world:
        config = configured(world, receiver, 1, alerts="free_bytes = 1e6", top=f'journal = "{small_disk}/near.journal"')
        far, near = world.start(world.configure("far", 1)), world.start(config)
        until(lambda: near.ups() == 1, lambda: near.log)
        told = Told(near, receiver)
        fill(small_disk / "most", leave_bytes=600_000)
        began = time.monotonic()
        told.raised("disk of the journal is nearly full", began)
        fill(small_disk / "rest", leave_bytes=0)
        began = time.monotonic()
        # What the write-ahead log has room for is written all the same.
        until(lambda: near.ask(do="hold") and near.ask(do="release") and near.ask(do="status")["journal"]["failure"])
        told.raised("journal cannot be written", began)
        until(lambda: near.ups() == 1, lambda: near.log)
        for name in ("most", "rest"):
            (small_disk / name).unlink()
        told.cleared("journal cannot be written")
        told.cleared("disk of the journal is nearly full")
        until(lambda: not raised(near))
        assert (near.end(), far.end()) == (0, 0)
        # The alert that the journal could not take at first is in it, with the time when it was raised.
        rows = [one for one in near.history.alerts if one.alert == "journal"]
        assert len(rows) == 1
        assert rows[0].raised_s < rows[0].cleared_s


def fill(file: Path, *, leave_bytes: int) -> None:
    found = os.statvfs(file.parent)
    with contextlib.suppress(OSError), file.open("wb") as out:
        out.write(bytes(max(0, found.f_bavail * found.f_frsize - leave_bytes)))


def test_locked_sims_ports_and_budgets_are_told_and_a_restart_tells_nothing_twice(tmp_path, monkeypatch, receiver):
    with quick_world(tmp_path, monkeypatch, 3, modem={1: 'profile = "sim7600"\npin = "4711"'}) as world:
        budget = "[budget]\nairtime_s_per_day = 60\n"
        config = configured(world, receiver, 3, more=budget)
        port = tmp_path / "plugged-in-later"
        text = config.read_text().replace(f"{tmp_path}/modems/near-2", str(port))
        config.write_text(text.replace('profile = "hayes"', 'profile = "sim7600"', 1))
        far, near = world.start(world.configure("far", 3)), world.start(config)
        until(near.lines)
        began = time.monotonic()
        told = Told(near, receiver)
        told.raised("near-1: SIM cannot be used", began)
        told.raised("near-2: port is gone", began)
        # On a slow machine near-3 may count as down until its call is up.
        alerts = [one for one in near.ask(do="status")["alerts"] if one["alert"] not in {"line-down", "bundle-down"}]
        assert {one["line"] for one in alerts} == {"near-1", "near-2"}
        port.symlink_to(tmp_path / "modems" / "near-2")
        told.cleared("near-2: port is gone")
        until(lambda: near.ups() == 2, lambda: near.log[-2000:])
        assert near.end() == 0

        # The budget is nearly spent now: 60 s of the day, of which a minute is kept for a call.
        secrets = tmp_path / "secrets.toml"
        secrets.write_text(f'{secrets.read_text()}[pin]\nnear-1 = "4711"\n')
        config.write_text(config.read_text().replace("airtime_s_per_day = 60", "airtime_s_per_day = 1"))
        near = told.near = world.start(config)
        until(near.lines)
        began = time.monotonic()
        told.raised("near-2: budget is used up", began)
        told.cleared("near-1: SIM cannot be used")
        assert near.end() == 0
        config.write_text(config.read_text().replace("airtime_s_per_day = 1\n", "airtime_s_per_day = 80000\n"))
        near = told.near = world.start(config)
        told.cleared("near-2: budget is used up")
        until(lambda: not raised(near), lambda: near.log[-3000:])
        assert (near.end(), far.end()) == (0, 0)
        assert all(one.cleared_s for one in near.history.alerts)


STANDBY = """
[alerts.standby]
way = "{way}"
port = "{folder}/modems/near-2"
profile = "sim7600"
number = "202"
after_s = 1.5
"""


def test_a_short_message_goes_out_while_nothing_else_does_and_no_secret_shows(tmp_path, monkeypatch, receiver, programs):
    with quick_world(tmp_path, monkeypatch, 2, profile="sim7600") as world:
        receiver.status = 500
        standby = STANDBY.format(way="sms", folder=tmp_path)
        config = configured(world, receiver, 1, more=standby, profile="sim7600")
        urls = tmp_path / "urls.toml"
        urls.write_text(
            f'{urls.read_text()}closed = "json://u:{SECRET}@127.0.0.1:9/{SECRET}"\n'
            f'unknown = "nosuch://{SECRET}"\nmail = "mailto://u:{SECRET}@localhost:9?smtp=127.0.0.1&to={SECRET}@b.org"\n'
        )
        near = world.start(config)
        until(near.lines)
        began = time.monotonic()
        bank = tmp_path / "bank.log"
        until(lambda: "near-2 sends a short message to far-2: near " in bank.read_text(), bank.read_text, WITHIN_S)
        assert time.monotonic() - began < WITHIN_S
        (sent,) = sms_in(bank)
        assert SECRET not in sent
        until(lambda: all(one["failures"] for one in near.ask(do="status")["delivery"]["routes"]), lambda: near.log)
        refuse_secrets_in_processes(near)
        done = programs.run(["-m", "farlink.cli", "bundle", "status", str(config)], cwd=tmp_path, timeout=60)
        shown = f"{near.ask(do='status')}{done.stdout!r}{done.stderr!r}"
        assert "messages wait for office: the service answers with HTTP status 500" in shown
        assert SECRET not in shown
        assert "bundle is down" in sent
        assert "near-1 is down" in sent
        assert near.ask(do="status")["delivery"]["standby"]["used_today"] == 1
        receiver.status = 200
        far = world.start(world.configure("far", 1, profile="sim7600"))
        until(far.lines)
        near.ask(do="redial")
        until(lambda: near.ups() == 1, lambda: near.log[-2000:])
        # Now the URL has all of it, with the times when it happened, so no short message says it again.
        receiver.wait("cleared: bundle is down", WITHIN_S)
        receiver.wait("cleared: near-1 is down", WITHIN_S)
        until(lambda: near.ask(do="status")["delivery"]["standby"]["waiting"] == 0, lambda: near.ask(do="status")["delivery"])
        assert len(sms_in(bank)) == 1
        assert (near.end(), far.end()) == (0, 0)
        for path in tmp_path.rglob("*"):
            if path.is_file() and path != urls:
                assert SECRET.encode() not in path.read_bytes(), path


def sms_in(bank: Path) -> list[str]:
    return [line for line in bank.read_text().splitlines() if "sends a short message" in line]


def test_a_call_by_the_stand_by_line_carries_what_waits(tmp_path, monkeypatch, receiver):
    with quick_world(tmp_path, monkeypatch, 2, profile="sim7600") as world:
        receiver.status = 500
        config = configured(world, receiver, 1, more=STANDBY.format(way="call", folder=tmp_path), profile="sim7600")
        # The far end of the stand-by line: an operator that answers it.
        answering = world.configure("far", 2, profile="sim7600")
        text = answering.read_text()
        first, second = text.index("[[line]]"), text.rindex("[[line]]")
        answering.write_text(text[:first] + text[second:])
        far, near = world.start(answering), world.start(config)
        until(lambda: far.state("far-2") == "connected", lambda: f"{near.log}\n{far.log}")
        # While the call is up, messages are tried; one that was delivered ends it.
        receiver.status = 200
        receiver.wait("bundle is down", 2 * WITHIN_S)
        until(lambda: far.state("far-2") == "waiting", lambda: far.log)
        until(lambda: near.ask(do="status")["delivery"]["standby"]["is_busy"] is False)
        status = near.ask(do="status")["delivery"]["standby"]
        assert (status["used_today"], status["why"]) == (1, "")
        assert (near.end(), far.end()) == (0, 0)


def refuse_secrets_in_processes(near: Running) -> None:
    parent = str(near.process.pid)
    processes = [one for one in Path("/proc").glob("[0-9]*") if parent in (one.name, parent_of(one))]
    assert len(processes) >= 2, "the operator, and the process that sends"
    for process in processes:
        for name in ("cmdline", "environ"):
            with contextlib.suppress(PermissionError, FileNotFoundError):
                assert SECRET not in (process / name).read_text(errors="replace")


def parent_of(process: Path) -> str:
    try:
        return (process / "stat").read_text().rpartition(")")[2].split()[1]
    except OSError:
        return ""


def test_a_test_message_says_what_came_of_each_url(tmp_path, monkeypatch, receiver, programs):
    with quick_world(tmp_path, monkeypatch, 2, profile="sim7600") as world:
        config = configured(world, receiver, 1, more=STANDBY.format(way="sms", folder=tmp_path), profile="sim7600")

        def run(*more: str) -> tuple[int, str, str]:
            command = ["-m", "farlink.cli", "bundle", "alert-test", str(config), *more]
            done = programs.run(command, cwd=tmp_path, timeout=60)
            return done.returncode, done.stdout.decode(), done.stderr.decode()

        status, out, _ = run("--standby")
        assert status == 0
        assert re.search(r"^office +sent$", out, re.MULTILINE), out
        assert re.search(r"^standby +sent$", out, re.MULTILINE), out
        assert receiver.lines() == ["this is a test: nothing is wrong"]
        assert "this is a test" in sms_in(tmp_path / "bank.log")[0]
        urls = tmp_path / "urls.toml"
        urls.write_text(f'{urls.read_text()}closed = "json://u:{SECRET}@127.0.0.1:9/{SECRET}"\n')
        status, out, err = run()
        assert status == 1
        assert re.search(r"^closed +not sent: no connection to the service$", out, re.MULTILINE), out
        assert SECRET not in out + err
        config.write_text(config.read_text().replace('urls_from = "urls.toml"', ""))
        status, out, err = run()
        assert (status, "has no URL for alerts" in err) == (2, True)

"""What a killed operator leaves behind: what its calls had cost is known, and its connections have an end."""

from __future__ import annotations

import asyncio
import contextlib
import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from farlink.errors import FarlinkError
from farlink.operator.backend import StandIn
from farlink.operator.config import Bundle, Secrets
from farlink.operator.config.bundle import Line
from farlink.operator.journal import Journal, Transition
from farlink.operator.journal.left_open import CAUSE
from farlink.operator.journal.sign_of_life import Life, SignOfLife, life_of
from farlink.operator.live import loop
from farlink.operator.live.kept_costs import KeptCosts
from farlink.operator.live.loop import Operator
from farlink.operator.live.recorder import Recorder
from tests.operator.live_world import Running, until, world_in


def test_a_killed_operator_has_charged_its_calls_and_its_connections_end(tmp_path, programs):
    with world_in(tmp_path, programs=programs) as made:
        made.bank(1)
        far = made.start(made.configure("far", 1))
        config = made.configure("near", 1)
        near = made.start(config)
        until(lambda: near.state("near-1") == "connected", lambda: near.log)
        # Nothing durable is written before a minute has passed.
        airtime_s = until(lambda: (found := charged_s(near)) > 1.0 and found)
        near.end(signal.SIGKILL)
        killed_s = time.monotonic()
        (open_one,) = near.history.connections
        assert open_one.end_s is None
        until(lambda: far.state("far-1") == "waiting", lambda: far.log)

        near = made.start(config)
        until(near.lines, lambda: near.log)
        first, *_ = near.history.connections
        end = next(one for one in near.history.transitions if one.state == "ended")
        dialled = next(one for one in near.history.transitions if one.state == "connecting")
        assert (end.cause, end.connection, end.time_s) == (CAUSE, 1, first.end_s)
        assert dialled.monotonic_s + airtime_s <= end.monotonic_s <= killed_s
        assert near.lines()["near-1"]["airtime_s_today"] >= airtime_s - 1e-6  # rounded in the file
        # Once: a start that finds all in order adds nothing.
        assert near.end() == 0
        near = made.start(config)
        until(near.lines, lambda: near.log)
        assert [one.cause for one in near.history.transitions].count(CAUSE) == 1
        assert (near.end(), far.end()) == (0, 0)


def charged_s(running: Running) -> float:
    """Airtime of all days, by the last sign of life."""
    life = SignOfLife(running.bundle.journal).read()
    return 0.0 if life is None else sum(spent["airtime_s"] for _, spent in json.loads(life.history)["bundle"]["days"])


def a(state: str, at_s: float, *, connection: int = 1, modem: str = "kansas", boot: str = "b") -> Transition:
    return Transition(connection, modem, state, 1.78e9 + at_s, at_s, boot)


@pytest.mark.parametrize(
    ("life", "end_s"),
    [
        (Life(1, 1.78e9 + 90.0, 90.0, "b", ""), 90.0),
        (None, 50.0),
        (Life(1, 1.78e9 + 20.0, 20.0, "b", ""), 50.0),  # of an earlier start
        (Life(1, 1.78e9 + 90.0, 90.0, "another start of the machine", ""), 50.0),
    ],
    ids=["sign", "none", "old", "boot"],
)
def test_lines_that_were_up_have_ended_at_the_last_sign_of_life(tmp_path, life, end_s):
    with Journal(tmp_path / "j") as journal:
        journal.begin(1.78e9, {"kansas": 1, "iowa": 2})
        for one in (a("connected", 10.0), a("connected", 12.0, modem="iowa"), a("dropped", 13.0, modem="iowa")):
            journal.record(one)
        journal.record(a("alive", 50.0))
        assert journal.end_left_open(life) == 1
        assert journal.end_left_open(life) == 0
        history = journal.history()
    assert history.connections[0].end_s == 1.78e9 + end_s
    (end,) = history.transitions[4:]
    assert (end.modem, end.state, end.cause, end.monotonic_s) == ("kansas", "ended", CAUSE, end_s)


def test_connections_that_earlier_versions_left_open_get_an_end_and_no_transition(tmp_path):
    with Journal(tmp_path / "j") as journal:
        for number in (1, 2, 3):
            journal.begin(1.78e9 + 100 * number, {"kansas": 1})
        journal.record(a("connected", 110.0))
        journal.record(a("connecting", 310.0, connection=3))
        assert journal.end_left_open(None) == 3
        history = journal.history()
    assert [one.end_s for one in history.connections] == [1.78e9 + at for at in (110.0, 200.0, 310.0)]
    assert len(history.transitions) == 2


def test_what_a_full_disk_refuses_ends_later_and_before_the_next_connection(tmp_path):
    with Journal(tmp_path / "j") as journal:
        journal.begin(1.78e9, {"kansas": 1})
        journal.record(a("connected", 10.0))
        pages = journal._database.execute("PRAGMA page_count").fetchone()[0]
        journal._database.execute(f"PRAGMA max_page_count = {pages}")
        with pytest.raises(FarlinkError, match="full"):  # noqa: PT012 (when it is full is SQLite's affair)
            for _ in range(1000):
                journal.record(a("connected", 11.0, modem="x" * 200))
        recorder = Recorder(journal, lambda _: None)
        recorder.end_left_open(None)
        recorder.begin(["kansas"])
        recorder.note("kansas", "alive", "y" * 300)
        journal._database.execute("PRAGMA max_page_count = 1000000")
        recorder.retry(10.0)
        history = journal.history()
    assert recorder.waiting == 0
    assert [one.end_s is None for one in history.connections] == [False, True]
    assert history.transitions[-1].connection == 2
    assert history.transitions[-2].cause == CAUSE


def test_a_sign_that_is_cut_off_or_damaged_leaves_the_one_before(tmp_path):
    sign = SignOfLife(tmp_path / "j")
    assert sign.read() is None
    for number in range(1, 6):
        sign.write(Life(number, 1.0, 2.0, "b", f'{{"history": {number}}}'))
        assert sign.read() == Life(number, 1.0, 2.0, "b", f'{{"history": {number}}}')
    path = tmp_path / "j.alive"
    whole = path.read_bytes()
    for at in (0, 5, 9, 20, 60):  # in the place of the odd ones, the newest
        place = whole.index(b'"number": 5') + at - 9
        path.write_bytes(whole[:place] + b"\x00" + whole[place + 1 :])
        assert sign.read().number == 4
    for nonsense in (b"", b"\xff" * 3000, b"[" * 5000, whole[:10]):
        path.write_bytes(nonsense)
        assert sign.read() is None
    path.unlink()
    path.mkdir()
    sign.close()
    sign.write(Life(6, 1.0, 2.0, "b", ""))
    assert sign.read() is None


@pytest.mark.parametrize("text", ["", "[]", "{}", "[" * 5000, '{"number": 1}', Life(1, float("inf"), 0, "", "").text()])
def test_what_is_no_sign_is_none(text):
    assert life_of(text) is None


def test_the_newest_of_what_is_durable_and_of_what_is_not_counts(tmp_path):
    with Journal(tmp_path / "j") as journal:
        recorder = Recorder(journal, lambda _: None)
        journal.keep("history", "of an earlier version")
        costs = KeptCosts(recorder, journal.path)
        assert costs.histories() == ["of an earlier version"]
        for act, newest in ((costs.keep, "1"), (costs.sign, "2"), (costs.sign, "3"), (costs.keep, "4")):
            act(newest)
            assert KeptCosts(recorder, journal.path).histories()[0] == newest
        costs.close()


def test_a_damaged_sign_falls_back_to_the_journal(tmp_path):
    line = Line("kansas", str(tmp_path / "none"), "hayes", number="12")
    bundle = Bundle("camp", (line,), 1, journal=tmp_path / "camp.journal", back_end="stand-in")
    with Journal(bundle.journal) as journal:
        recorder = Recorder(journal, lambda _: None)
        costs = KeptCosts(recorder, journal.path)
        drops = {
            "farlink_history": 2,
            "bundle": None,
            "lines": {"kansas": {"connected_s": 7, "drops": 5, "days": [], "months": []}},
        }
        costs.keep(json.dumps(drops))
        costs.sign("nonsense")
        costs.close()
        told: list[str] = []
        operator = Operator(bundle, Secrets(), journal, StandIn(bundle), folder=tmp_path, tell=told.append)
        assert json.loads(operator._dialler.history())["lines"]["kansas"]["drops"] == 5
        assert told == []


def test_a_hold_that_cannot_be_kept_says_so_and_is_kept_later(tmp_path, monkeypatch):
    line = Line("kansas", str(tmp_path / "none"), "hayes", number="12")
    bundle = Bundle("camp", (line,), 1, journal=tmp_path / "camp.journal", back_end="stand-in")
    monkeypatch.setattr(loop, "_LOOK_S", 0.02)

    async def act() -> None:
        operator = Operator(bundle, Secrets(), journal, StandIn(bundle), folder=tmp_path, tell=lambda _: None)
        task = asyncio.create_task(operator.run())
        while operator.status()["lines"][0]["reason"] == "not-started":
            await asyncio.sleep(0.01)
        assert (await operator._asked({"do": "hold"}))["warning"] == ""
        await operator._asked({"do": "release"})
        journal._database.execute("PRAGMA query_only = ON")
        done = await operator._asked({"do": "hold", "cause": "antenna"})
        assert done["lines"] == ["kansas"]
        assert done["warning"].startswith("hold of kansas is not in the journal")
        assert "readonly" in done["warning"]
        assert operator.status()["lines"][0]["state"] == "held"
        journal._database.execute("PRAGMA query_only = OFF")
        while operator.status()["journal"]["failure"]:
            await asyncio.sleep(0.01)
        assert journal.kept("held of kansas") == "antenna"
        operator.stop()
        await task

    with Journal(bundle.journal) as journal:
        asyncio.run(asyncio.wait_for(act(), 60))


def test_a_killed_operator_takes_its_hooks_with_it_and_what_they_have_started(tmp_path):
    program = tmp_path / "hook"
    program.write_text(
        f"#!/bin/sh\nsleep 1000 & echo $! $$ $PPID > {tmp_path}/new\nmv {tmp_path}/new {tmp_path}/started\nwait\n"
    )
    program.chmod(0o755)
    code = (
        "import asyncio, pathlib, sys; from farlink.operator.live.hooks import Hooks\n"
        "async def act():\n"
        "    hooks = Hooks(pathlib.Path(sys.argv[1])); hooks.tell({'line': 'a'}); await asyncio.sleep(1000)\n"
        "asyncio.run(act())\n"
    )
    operator = subprocess.Popen([sys.executable, "-c", code, program])
    processes = until((tmp_path / "started").exists) and (tmp_path / "started").read_text().split()
    assert all(is_alive(process) for process in processes)
    operator.kill()
    operator.wait()
    until(lambda: not any(map(is_alive, processes)), lambda: processes)


def is_alive(process: str) -> bool:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False

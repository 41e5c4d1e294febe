"""Parts of the live operator: injected drops, hooks, systemd's messages, the control socket, the recorder, PINs."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import stat
import statistics
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from farlink.errors import ArgumentError, JournalError, OperatorError, OutputError
from farlink.operator.alerts import Raised
from farlink.operator.backend import StandIn
from farlink.operator.config import Bundle, Line, Secrets
from farlink.operator.journal import Journal, Transition, flat
from farlink.operator.lines import Report
from farlink.operator.live import Operator, Teller, control, systemd
from farlink.operator.live.hooks import Hooks
from farlink.operator.live.injector import Injector, rate_hz
from farlink.operator.live.recorder import JournalPins, Recorder


@pytest.mark.parametrize("text", ["", "0/h", "1/0h", "1/20", "x/h", "-1/h", "1e9/s", "1/h/h", "nan/h"])
def test_only_rates_are_rates(text):
    with pytest.raises(ArgumentError, match="no rate of drops"):
        rate_hz(text)


def test_injected_drops_are_a_poisson_process_of_each_line():
    injector = Injector(rate_hz("1/20min"), ["a", "b"], seed=3)
    times: dict[str, list[float]] = {"a": [], "b": []}
    for _ in range(2000):
        for line, found in times.items():
            injector.up(line, 0.0)
            found.append(injector._drops_at[line])
    # The mean of 2000 exponential times has a standard error of 1/sqrt(2000), 2.2 %.
    for found in times.values():
        assert statistics.mean(found) == pytest.approx(1200, rel=0.09)
        assert statistics.stdev(found) == pytest.approx(1200, rel=0.09)
    assert abs(statistics.correlation(times["a"], times["b"])) < 0.09


def test_a_line_that_is_down_is_not_dropped_and_each_draw_drops_once():
    injector = Injector(1.0, ["a", "b"], seed=1)
    injector.up("a", 0.0)
    injector.up("b", 0.0)
    injector.up("nobody", 0.0)
    injector.down("b")
    assert injector.due(1e6) == ["a"]
    assert injector.due(1e9) == []
    assert injector.next_at is None


def test_hooks_get_what_happened_and_hung_ones_do_not_stop_the_others(tmp_path, monkeypatch):
    monkeypatch.setattr("farlink.operator.live.hooks._LIMIT_S", 0.5)
    program = tmp_path / "hook"
    program.write_text(f'#!/bin/sh\n[ "$FARLINK_LINE" = hung ] && exec sleep 100\nenv > {tmp_path}/$FARLINK_LINE\n')
    program.chmod(0o755)
    monkeypatch.setenv("CANARY", "secret")

    async def act() -> Hooks:
        hooks = Hooks(program)
        for line in ("hung", "a", "b"):
            hooks.tell({"line": line, "state": "connected", "alert": None, "cause": "x\0y"})
        await hooks.close(within_s=20)
        return hooks

    hooks = asyncio.run(act())
    given = (tmp_path / "a").read_text()
    assert "FARLINK_STATE=connected" in given
    assert "FARLINK_CAUSE=xy" in given
    assert "CANARY" not in given, "a hook gets nothing of the operator's own"
    assert (tmp_path / "b").exists()
    assert hooks.failures == 1


def test_a_hung_hook_is_ended_with_all_that_it_has_started(tmp_path, monkeypatch):
    monkeypatch.setattr("farlink.operator.live.hooks._LIMIT_S", 0.5)
    program = tmp_path / "hook"
    program.write_text(f"#!/bin/sh\nsleep 100 & echo $! > {tmp_path}/child\nwait\n")
    program.chmod(0o755)

    async def act() -> None:
        hooks = Hooks(program)
        hooks.tell({"line": "a"})
        await hooks.close(within_s=20)

    asyncio.run(act())
    status = Path(f"/proc/{(tmp_path / 'child').read_text().strip()}/stat")
    until = time.monotonic() + 10
    while status.exists() and status.read_text().rpartition(")")[2].split()[0] != "Z":
        assert time.monotonic() < until
        time.sleep(0.01)


def test_a_hook_that_is_missing_is_counted(tmp_path):
    async def act() -> int:
        hooks = Hooks(tmp_path / "none")
        hooks.tell({"line": "a"})
        await hooks.close(within_s=10)
        return hooks.failures

    assert asyncio.run(act()) == 1


@pytest.mark.parametrize("is_abstract", [False, True])
def test_systemd_is_told(tmp_path, monkeypatch, is_abstract):
    name = f"@farlink-test-{os.getpid()}" if is_abstract else str(tmp_path / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener:
        listener.bind("\0" + name[1:] if is_abstract else name)
        monkeypatch.setenv("NOTIFY_SOCKET", name)
        systemd.notify("READY=1")
        assert listener.recv(100) == b"READY=1"


def test_without_systemd_nothing_is_told(monkeypatch, tmp_path):
    monkeypatch.delenv("NOTIFY_SOCKET", raising=False)
    systemd.notify("READY=1")
    monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "gone"))
    systemd.notify("READY=1")


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, None),
        ({"WATCHDOG_USEC": "3000000"}, 1.5),
        ({"WATCHDOG_USEC": "3000000", "WATCHDOG_PID": "1"}, None),
        ({"WATCHDOG_USEC": "x"}, None),
    ],
)
def test_the_watchdog_is_fed_at_half_its_limit(monkeypatch, given, expected):
    for key in ("WATCHDOG_USEC", "WATCHDOG_PID"):
        monkeypatch.delenv(key, raising=False)
    for key, value in given.items():
        monkeypatch.setenv(key, value)
    assert systemd.watchdog_s() == expected


class Answering:
    """A server in a thread."""

    def __init__(self, journal: Path) -> None:
        self.journal = journal
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._server = control.Server(control.socket_of(journal), self._handle)

    async def _handle(self, request: dict[str, Any]) -> dict[str, Any]:
        if request.get("do") == "refuse":
            raise OperatorError("no", "ask otherwise")
        return {"got": request}

    def __enter__(self) -> Answering:
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._server.start(), self._loop).result(10)
        return self

    def __exit__(self, *_: object) -> None:
        asyncio.run_coroutine_threadsafe(self._server.close(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)


def test_commands_are_answered_in_a_folder_of_any_name(tmp_path):
    folder = tmp_path / ("long" * 30)
    folder.mkdir()
    with Answering(folder / "camp.journal") as server:
        path = control.socket_of(server.journal)
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert control.ask(server.journal, {"do": "x", "lines": ["a"]}, bundle="camp") == {"got": {"do": "x", "lines": ["a"]}}
        with pytest.raises(OperatorError, match=r"^no$"):
            control.ask(server.journal, {"do": "refuse"}, bundle="camp")
    assert not path.exists()


@pytest.mark.parametrize("sent", [b"", b"\n", b"[]\n", b"{\n", b"\xff\n", b"[" * 5000 + b"\n", b"{" * 200_000])
def test_nonsense_at_the_socket_harms_nobody(tmp_path, sent):
    with Answering(tmp_path / "camp.journal") as server:
        with socket.socket(socket.AF_UNIX) as rude:
            rude.connect(str(control.socket_of(server.journal)))
            rude.settimeout(20)
            try:
                rude.sendall(sent)
                rude.shutdown(socket.SHUT_WR)
                assert b"no JSON object" in rude.recv(1000) or len(sent) > 65536
            except (BrokenPipeError, ConnectionResetError):
                assert len(sent) > 65536
        assert control.ask(server.journal, {}, bundle="camp") == {"got": {}}


def test_an_operator_that_does_not_run_is_said(tmp_path):
    with pytest.raises(OperatorError, match="no operator of bundle camp is running"):
        control.ask(tmp_path / "camp.journal", {"do": "status"}, bundle="camp")
    left = socket.socket(socket.AF_UNIX)
    left.bind(str(tmp_path / "camp.journal.sock"))
    left.close()
    with pytest.raises(OperatorError, match="no operator of bundle camp is running"):
        control.ask(tmp_path / "camp.journal", {"do": "status"}, bundle="camp")
    with Answering(tmp_path / "camp.journal"):
        pass


def test_a_file_in_the_sockets_place_is_left_alone(tmp_path):
    (tmp_path / "camp.journal.sock").write_text("mine")
    with pytest.raises(OutputError, match="is no socket"):
        asyncio.run(control.Server(tmp_path / "camp.journal.sock", None).start())
    assert (tmp_path / "camp.journal.sock").read_text() == "mine"


def action(state: str, *, line: str = "a", reason: str = "", cause: str = "", attempt: int = 1) -> dict[str, Any]:
    return {"action": "state", "line": line, "state": state, "reason": reason, "cause": cause, "attempt": attempt}


class Full:
    """A journal on a disk that can be full."""

    def __init__(self, journal: Journal) -> None:
        self._journal, self.is_full = journal, False

    def __getattr__(self, name: str) -> Any:
        if self.is_full and name in ("record", "begin", "finish", "index", "keep", "forget"):
            return self._refuse
        return getattr(self._journal, name)

    def _refuse(self, *_: object) -> None:
        raise OutputError("journal: database or disk is full", "free some space")


@pytest.fixture
def disk(tmp_path: Path) -> Any:
    with Journal(tmp_path / "camp.journal") as journal:
        yield Full(journal)


def states(journal: Any) -> list[tuple[int, str, str]]:
    return [(one.connection, one.modem, one.state) for one in journal.history().transitions]


def test_a_full_disk_stops_nothing_and_loses_no_transition(disk):
    told: list[str] = []
    recorder = Recorder(disk, told.append)
    disk.is_full = True
    recorder.begin(["a", "b"])
    recorder.state(action("connecting"))
    recorder.begin(["a", "b"])
    recorder.state(action("connected"))
    recorder.primary("b")
    recorder.state(action("dropped", reason="injected"))
    recorder.finish()
    assert recorder.waiting == 6
    assert recorder.connection is None
    disk.is_full = False
    recorder.retry(60.0)

    assert states(disk) == [(1, "a", "connecting"), (1, "a", "connected"), (1, "a", "dropped")]
    history = disk.history()
    assert history.connections[0].primary == "b"
    assert history.connections[0].end_s is not None
    assert history.transitions[-1].is_injected
    assert told == ["journal: database or disk is full", ""]
    assert recorder.waiting == 0


def test_a_full_disk_is_told_once_while_it_lasts(disk):
    told: list[str] = []
    recorder = Recorder(disk, told.append)
    disk.is_full = True
    for _ in range(5):
        assert not recorder.keep("history", "x")
        recorder.retry()
    assert len(told) == 1
    disk.is_full = False
    recorder.retry(60.0)
    assert told[1:] == [""]
    assert recorder.waiting == 0


def test_what_has_waited_is_written_a_little_at_a_time(disk, monkeypatch):
    """Ten thousand transitions on a slow disk would stop all lines, and the watchdog would end the operator."""
    told: list[str] = []
    recorder = Recorder(disk, told.append)
    disk.is_full = True
    recorder.begin(["a"])
    for attempt in range(50):
        recorder.state(action("failed", cause=f"{attempt}"))
    disk.is_full = False
    record = disk._journal.record
    monkeypatch.setattr(disk._journal, "record", lambda one: (time.sleep(0.02), record(one)))
    begin = time.monotonic()
    recorder.retry(0.1)
    assert time.monotonic() - begin < 1.0
    assert 0 < recorder.waiting < 50
    assert recorder.refusal
    recorder.state(action("failed", cause="50"))
    recorder.retry(30.0)
    assert [one.cause for one in disk.history().transitions] == [f"{attempt}" for attempt in range(51)]
    assert (told[1:], recorder.refusal) == ([""], "")


@pytest.mark.parametrize("is_full", [False, True], ids=["at once", "after a full disk"])
def test_what_no_journal_takes_keeps_nothing_else_out_of_it(disk, is_full):
    """A time before 1970, say, of a clock that was set back: no space that is freed makes the journal take it."""
    told: list[str] = []
    recorder = Recorder(disk, told.append)
    recorder.begin(["a"])
    disk.is_full = is_full
    recorder.raised(Raised("bundle-down", None, "critical", "", -115.0))
    recorder.state(action("failed", cause="BUSY"))
    disk.is_full = False
    recorder.retry(60.0)
    assert states(disk) == [(1, "a", "failed")]
    assert (recorder.waiting, recorder.left_out, recorder.refusal) == (0, 1, "")
    assert told == (["journal: database or disk is full", ""] if is_full else [])


def test_a_connection_whose_beginning_had_to_be_left_out_begins_later(disk, monkeypatch):
    monkeypatch.setattr("farlink.operator.live.recorder._MOST_WAITING", 3)
    recorder = Recorder(disk, lambda _: None)
    disk.is_full = True
    recorder.begin(["b", "a"])
    for _ in range(5):
        recorder.state(action("failed"))
    disk.is_full = False
    recorder.retry(60.0)
    assert [one[0] for one in states(disk)] == [1, 1, 1]
    assert disk.history().connections[0].indices == {"b": 1, "a": 2}


def test_a_journal_that_stays_full_forgets_the_oldest_within_bounds(disk, monkeypatch):
    monkeypatch.setattr("farlink.operator.live.recorder._MOST_WAITING", 10)
    recorder = Recorder(disk, lambda _: None)
    recorder.begin(["a"])
    disk.is_full = True
    for attempt in range(30):
        recorder.state(action("failed", cause=f"{attempt}"))
    assert (recorder.waiting, recorder.left_out) == (10, 20)
    disk.is_full = False
    recorder.retry(60.0)
    assert [one.cause for one in disk.history().transitions] == [f"{attempt}" for attempt in range(20, 30)]


def test_a_call_that_is_closed_on_purpose_has_ended_and_not_dropped(disk):
    recorder = Recorder(disk, lambda _: None)
    recorder.begin(["a"])
    for state, reason in (("connecting", "dialling"), ("connected", "up"), ("held", "by-hand")):
        recorder.state(action(state, reason=reason))
    assert [one[2] for one in states(disk)] == ["connecting", "connected", "ended", "held"]
    assert [row["event"] for row in flat.rows(disk.history())] == ["connecting", "connected", "ended", "blocked"]


@pytest.mark.parametrize("reason", ["by-hand", "bundle-ended"])
def test_a_call_that_the_operator_ends_is_no_drop_of_the_network(disk, reason):
    recorder = Recorder(disk, lambda _: None)
    recorder.begin(["a"])
    for state, why in (("connecting", "dialling"), ("connected", "up"), ("dropped", reason), ("connecting", "dialling")):
        recorder.state(action(state, reason=why))
    assert [one[2] for one in states(disk)] == ["connecting", "connected", "ended", "connecting"]


def test_what_goes_with_a_transition_is_in_it(disk):
    recorder = Recorder(disk, lambda _: None)
    recorder.begin(["a"])
    recorder.observe(Report("a", "signal", level=18), 31)
    recorder.observe(Report("a", "modem-failed", said=b"\xffnonsense"), 31)
    recorder.state(action("failed", cause="ATZ was not answered"))
    recorder.state(action("connecting", reason="dialling", attempt=2))
    recorder.state(action("connected", reason="up"))
    recorder.observe(Report("a", "dropped", bytes_in=10, bytes_out=20), 31)
    recorder.state(action("dropped", cause="NO CARRIER"))

    failed, connecting, _, dropped = disk.history().transitions
    assert (failed.cause, failed.nonsense, failed.bars) == ("ATZ was not answered", b"\xffnonsense", 3)
    assert (connecting.attempt, connecting.nonsense) == (2, b"")
    assert (dropped.bytes_in, dropped.bytes_out, dropped.cause) == (10, 20, "NO CARRIER")


def test_the_signal_is_recorded_when_it_changes_or_after_a_while(disk):
    recorder = Recorder(disk, lambda _: None)
    recorder.begin(["a"])
    for level in (3, 3, 3, 4, 4, None, None):
        recorder.observe(Report("a", "signal", level=level), 5)
        recorder.signal("a", 1000.0)
    recorder.signal("a", 0.0)
    assert [one.bars for one in disk.history().transitions] == [3, 4, None, None]


def test_a_pin_is_tried_once_over_restarts_too(disk):
    recorder = Recorder(disk, lambda _: None)
    pins = JournalPins(recorder, is_journal_damaged=False)
    assert pins.may_try("a")
    assert pins.note_tried("a")
    # Killed here, or refused: nobody saw the outcome.
    for _ in range(2):
        assert not JournalPins(recorder, is_journal_damaged=False).may_try("a")
        pins.note_outcome("a", "refused")
    assert JournalPins(recorder, is_journal_damaged=False).may_try("b")
    assert pins.allow("a")
    assert pins.may_try("a")
    assert pins.note_tried("a")
    pins.note_outcome("a", "accepted")
    assert JournalPins(recorder, is_journal_damaged=False).may_try("a"), "an accepted one is right"


def test_a_pin_is_not_tried_if_that_cannot_be_noted_or_may_have_been_forgotten(disk):
    recorder = Recorder(disk, lambda _: None)
    assert not JournalPins(recorder, is_journal_damaged=True).may_try("a")
    assert not JournalPins(recorder, is_journal_damaged=False).may_try("a"), "the next start has a whole journal"
    disk.is_full = True
    assert not JournalPins(recorder, is_journal_damaged=False).note_tried("a")


def test_facts_survive_migration_and_damage(tmp_path):
    with Journal(tmp_path / "j") as journal:
        assert journal.kept("history") is None
        journal.keep("history", "one")
        journal.keep("history", '{"kansas": 1234}')
        for at in range(200):
            journal.record(Transition(1, "a", "failed", time.time(), float(at), "b", cause="x" * 100))
    with Journal(tmp_path / "j") as journal:
        assert journal.kept("history") == '{"kansas": 1234}'
    data = (tmp_path / "j").read_bytes()
    (tmp_path / "j").write_bytes(data[: len(data) - 4096])
    with Journal(tmp_path / "j") as journal:
        assert journal.loss is not None
        assert journal.kept("history") == '{"kansas": 1234}'


def test_a_last_number_that_cannot_be_written_neither_ends_the_operator_nor_doubles_a_transition(tmp_path, monkeypatch):
    """A disk that fails, or one that writes each block anew and is full."""
    with Journal(tmp_path / "j") as journal:
        recorder = Recorder(journal, lambda _: None)
        recorder.begin(["a"])

        def fail(_number: int) -> None:
            raise OSError(5, "Input/output error")

        with monkeypatch.context() as patch:
            patch.setattr(journal._last, "write", fail)
            recorder.state(action("connecting"))
        recorder.state(action("connected"))
        recorder.retry()
        assert states(journal) == [(1, "a", "connecting"), (1, "a", "connected")]
    with Journal(tmp_path / "j") as journal:
        assert journal.loss is None


def test_an_index_of_modems_that_changes_is_read_back(tmp_path):
    with Journal(tmp_path / "j") as journal:
        number = journal.begin(1.0, {"a": 1, "b": 2})
        journal.index(number, {"b": 1, "a": 2})
        assert journal.history().connections[0].indices == {"b": 1, "a": 2}


def test_a_second_journal_is_refused(tmp_path):
    with Journal(tmp_path / "j"), pytest.raises(JournalError, match=f"in use by process {os.getpid()}"):
        Journal(tmp_path / "j")


def test_status_is_json(tmp_path):
    with Answering(tmp_path / "camp.journal") as server:
        assert json.loads(json.dumps(control.ask(server.journal, {"n": 1}, bundle="camp"))) == {"got": {"n": 1}}


def test_a_failure_has_the_number_of_the_attempt_that_failed(disk):
    recorder = Recorder(disk, lambda _: None)
    recorder.begin(["a"])
    for state, attempt in (
        ("connecting", 1),
        ("failed", 2),
        ("connecting", 2),
        ("blocked", 1),
        ("connecting", 1),
        ("connected", 1),
    ):
        recorder.state(action(state, attempt=attempt))
    recorder.state(action("dropped"))
    assert [one.attempt for one in disk.history().transitions] == [1, 1, 2, 2, 1, 1, None]


def test_what_happens_before_the_first_connection_is_recorded(disk):
    recorder = Recorder(disk, lambda _: None)
    recorder.begin(["a"], is_try=False)
    recorder.state(action("failed", cause="ATZ was not answered"))
    recorder.finish()
    recorder.begin(["a"], is_try=False)
    recorder.state(action("failed"))
    recorder.begin(["a"])
    recorder.state(action("connecting"))
    assert [one[0] for one in states(disk)] == [1, 1, 2]


def operator_in(folder: Path, journal: Journal, told: list[str]) -> Operator:
    line = Line("kansas", str(folder / "none"), "iridium-9522b", number="12")
    bundle = Bundle("camp", (line,), 1, journal=folder / "camp.journal", back_end="stand-in")
    return Operator(bundle, Secrets(), journal, StandIn(bundle), folder=folder, tell=told.append)


def test_a_signal_that_is_told_late_is_a_handover(tmp_path):
    with Journal(tmp_path / "camp.journal") as journal:
        operator = operator_in(tmp_path, journal, [])
        operator._handle("start")
        for took_s in (1.0, 9.7, 1.0):
            operator._reported(Report("kansas", "signal", level=4, took_s=took_s))
        found = [one.cause for one in journal.history().transitions if one.state == "handover"]
    assert found == ["the signal was told after 9.7 s"]


def test_a_fault_of_a_line_is_told_recorded_and_tried_again(tmp_path, monkeypatch):
    monkeypatch.setattr("farlink.operator.live.loop._RESTART_S", 0.01)
    told: list[str] = []
    runs = 0

    async def faulty() -> None:
        nonlocal runs
        runs += 1
        if runs > 2:
            await asyncio.sleep(100)
        raise ValueError("a fault of the program")

    async def act() -> None:
        operator._handle("start")
        task = asyncio.create_task(operator._guarded(operator._lines["kansas"]))
        while runs < 3:
            await asyncio.sleep(0.01)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    with Journal(tmp_path / "camp.journal") as journal:
        operator = operator_in(tmp_path, journal, told)
        operator._lines["kansas"].run = faulty
        asyncio.run(act())
        assert "internal error: ValueError" in journal.history().transitions[1].cause
    assert sum("internal error" in one and "alert" not in one for one in told) >= 2


def test_a_command_that_meets_a_fault_is_answered(tmp_path):
    async def handle(_request: dict[str, Any]) -> dict[str, Any]:
        raise KeyError("x")

    answer = asyncio.run(control.Server(tmp_path / "s", handle)._answer(b"{}"))
    assert answer["error"] == "internal error of the operator: KeyError('x')"


def test_who_does_not_read_stops_nobody():
    """As a terminal that is stopped by Ctrl-S, or a pipe whose reader hangs."""
    is_stopped, goes_on, said = threading.Event(), threading.Event(), []

    def out(text: str) -> None:
        is_stopped.set()
        goes_on.wait(30)
        said.append(text)

    teller = Teller(out)
    with teller as tell:
        begin = time.monotonic()
        tell("0")
        assert is_stopped.wait(30)
        for at in range(1, 1500):
            tell(f"{at}")
        assert time.monotonic() - begin < 5
        goes_on.set()
        while len(said) < 1001:
            time.sleep(0.01)
        tell("last")
    assert said[:2] == ["0\n", "1\n"]
    assert said[-1] == "(499 messages are left out: nobody read them)\nlast\n"


def test_what_cannot_be_written_is_left_out():
    def full(_text: str) -> None:
        raise OSError(28, "No space left on device")

    with Teller(full) as tell:
        tell("one")
        tell("two")


@pytest.mark.parametrize(
    "history", ["nonsense", '{"farlink_history": 9, "lines": {}}', '{"farlink_history": 1, "lines": {"kansas": 1}}']
)
def test_a_damaged_history_does_not_keep_the_operator_from_its_work(tmp_path, history):
    told: list[str] = []
    with Journal(tmp_path / "camp.journal") as journal:
        journal.keep("history", history)
        operator = operator_in(tmp_path, journal, told)
        operator._handle("start")
        operator._keep_history()
        assert operator.status()["lines"][0]["state"] == "connecting"
        assert "is forgotten" in told[0]
        operator_in(tmp_path, journal, told := [])
        assert told == []


def test_a_held_line_is_held_over_restarts(tmp_path):
    async def begun(operator: Operator) -> str:
        task = asyncio.create_task(operator.run())
        while operator.status()["lines"][0]["reason"] == "not-started":
            await asyncio.sleep(0.01)
        state = str(operator.status()["lines"][0]["state"])
        await operator._asked({"do": "hold", "cause": "antenna is repaired"} if state != "held" else {"do": "release"})
        operator.stop()
        await task
        return state

    with Journal(tmp_path / "camp.journal") as journal:
        found = [asyncio.run(begun(operator_in(tmp_path, journal, []))) for _ in range(3)]
        assert [found[0] != "held", found[1], found[2] != "held"] == [True, "held", True]
        held = [one.cause for one in journal.history().transitions if one.state == "held"]
    assert held == ["antenna is repaired"] * 3


def test_a_bundle_that_is_lost_leaves_the_line_that_is_dialled(tmp_path):
    """Its dial has nothing of the bundle; cut off unsaid, the dialler would wait for it in vain, and count a failure."""

    class Spy:
        def __init__(self) -> None:
            self.orders: list[str] = []

        def __getattr__(self, name: str) -> Any:
            return lambda *_, **__: self.orders.append(name)

    async def act() -> None:
        operator._handle("start")
        operator._handle("carrier", "a", call=1)
        operator._handle("link-up", "a", call=1)
        operator._handle("bundle-lost")
        await asyncio.gather(*operator._tasks)

    lines = tuple(Line(name, str(tmp_path / name), "hayes", number="12") for name in "ab")
    bundle = Bundle("camp", lines, 2, journal=tmp_path / "camp.journal", back_end="stand-in")
    with Journal(tmp_path / "camp.journal") as journal:
        operator = Operator(bundle, Secrets(), journal, StandIn(bundle), folder=tmp_path, tell=lambda _: None)
        operator._lines = {"a": Spy(), "b": Spy()}
        asyncio.run(act())
    assert operator._lines["b"].orders == ["dial"]
    assert "hang_up" in operator._lines["a"].orders


def test_an_operator_that_is_ended_while_it_begins_dials_nothing(tmp_path):
    with Journal(tmp_path / "camp.journal") as journal:
        operator = operator_in(tmp_path, journal, [])
        operator.stop()
        asyncio.run(operator.run())
        assert {one.state for one in journal.history().transitions} <= {"waiting"}


def test_a_zone_that_changes_is_noticed(tmp_path, monkeypatch):
    told: list[float] = []
    with Journal(tmp_path / "camp.journal") as journal:
        operator = operator_in(tmp_path, journal, [])
        operator._handle = lambda _event, **details: told.append(details["zone_s"])
        try:
            for zone in ("UTC", "Asia/Tokyo"):
                monkeypatch.setenv("TZ", zone)
                operator._tell_time()
        finally:
            monkeypatch.undo()
            time.tzset()
    assert told == [0.0, 32400.0]


def test_a_line_that_is_named_twice_is_meant_once(tmp_path):
    async def act() -> None:
        operator._handle("start")
        for what in ("hold", "release"):
            assert (await operator._asked({"do": what, "lines": ["kansas", "kansas"]}))["lines"] == ["kansas"]
        with pytest.raises(OperatorError, match="lines '5'"):
            await operator._asked({"do": "hold", "lines": 5})

    with Journal(tmp_path / "camp.journal") as journal:
        operator = operator_in(tmp_path, journal, [])
        asyncio.run(act())

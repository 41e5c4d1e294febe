"""Alerts in the journal: raised, cleared, kept over damage, forgotten; and what an operator makes of them."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from farlink.operator.backend import StandIn
from farlink.operator.config import Bundle, Line, Secrets
from farlink.operator.config.alerts import AlertRules
from farlink.operator.journal import AlertRow, Journal, Transition, read
from farlink.operator.live import Operator
from farlink.operator.live.alerting import Alerting
from farlink.operator.live.hooks import Hooks
from farlink.operator.live.recorder import JournalPins, Recorder

ROW = AlertRow("blocked", "kansas", "warning", 1e9, "BUSY")


def test_alerts_are_recorded_raised_and_cleared(tmp_path):
    with Journal(tmp_path / "j", secrets=["4711"]) as journal:
        assert journal.raise_alert(ROW) == 1
        assert journal.raise_alert(replace(ROW, alert="bundle-down", line=None, cause="PIN 4711\x1b[31m")) == 2
        journal.clear_alert(1, 1e9 + 60.0004)
        journal.clear_alert(1, 5e9)  # it is cleared already
        journal.clear_alert(99, 1e9)
        second = AlertRow("bundle-down", None, "warning", 1e9, "PIN ***[31m", number=2)
        assert journal.raised_alerts() == [second]
    history, loss = read(tmp_path / "j")
    assert loss is None
    assert history.alerts == (replace(ROW, cleared_s=1e9 + 60, number=1), second)


def test_old_alerts_are_forgotten_unless_they_are_raised(tmp_path):
    with Journal(tmp_path / "j") as journal:
        for cleared_s in (1e9 + 1, 2e9, None):
            number = journal.raise_alert(ROW)
            if cleared_s:
                journal.clear_alert(number, cleared_s)
        for time_s, monotonic_s in ((1e9, 0.0), (1.5e9, 100.0)):
            journal.record(Transition(1, "kansas", "failed", time_s, monotonic_s, "b"))
        assert journal.forget(200.0, boot_id="b", monotonic_s=110.0) == 0
        assert len(journal.history().alerts) == 3
        assert journal.forget(50.0, boot_id="b", monotonic_s=110.0) == 1
        assert [one.number for one in journal.history().alerts] == [2, 3]


def test_a_journal_without_alerts_gets_their_table(tmp_path):
    with Journal(tmp_path / "j") as journal:
        journal.record(Transition(1, "kansas", "connected", 1e9, 5.0, "b"))
    old = sqlite3.connect(tmp_path / "j")
    old.executescript("DROP TABLE alert; ALTER TABLE transition DROP COLUMN caller; PRAGMA user_version = 3;")
    old.close()
    assert read(tmp_path / "j")[0].alerts == ()
    with Journal(tmp_path / "j") as journal:
        assert journal.loss is None
        assert journal.raise_alert(ROW) == 1


def test_alerts_of_a_damaged_journal_are_kept(tmp_path):
    path = tmp_path / "j"
    with Journal(path) as journal:
        for at in range(50):
            journal.record(Transition(1, "kansas", "connected", 1e9 + at, 5.0, "b"))
        journal.raise_alert(ROW)
    damaged = sqlite3.connect(path)
    damaged.execute("UPDATE transition SET cause = 'x' WHERE number = 7")  # its CRC is wrong now
    damaged.execute("INSERT INTO alert VALUES (7, 'a', NULL, 'b', 'no time', NULL, 'c')")
    damaged.commit()
    damaged.close()
    with Journal(path) as journal:
        assert journal.loss is not None
        assert journal.loss.missing == ((7, 7),)
        assert journal.raised_alerts() == [replace(ROW, number=1)]


def bundle_in(folder: Path) -> Bundle:
    lines = (Line("kansas", str(folder / "none"), "hayes", number="123"),)
    rules = AlertRules(after_s=0.0, clear_s=0.0, free_bytes=0.0)
    return Bundle("camp", lines, 1, journal=folder / "j", back_end="stand-in", alerts=rules)


STATUS: dict[str, Any] = {
    "up": 0,
    "costs": {},
    "bundle_budget": {},
    "journal": {"failure": ""},
    "lines": [{"line": "kansas", "state": "blocked", "reason": "attempts", "cause": "BUSY", "modem_failure": ""}],
}


def alerting(folder: Path, act: Callable[[Alerting, list[str]], Any], urls: dict[str, str] | None = None) -> list[str]:
    """Let something be done with the alerts of an operator; what it has told."""
    told: list[str] = []

    async def main() -> None:
        bundle, secrets = bundle_in(folder), Secrets(alert_urls=urls or {})
        with Journal(bundle.journal) as journal:
            recorder = Recorder(journal, told.append)
            made = Alerting(
                bundle,
                journal.raised_alerts(),
                secrets=secrets,
                pins=JournalPins(recorder, is_journal_damaged=False),
                folder=folder,
                recorder=recorder,
                hooks=Hooks(None),
                tell=told.append,
            )
            try:
                await asyncio.sleep(0)
                found = act(made, told)
                if asyncio.iscoroutine(found):
                    await found
            finally:
                await made.close()

    asyncio.run(main())
    return told


def test_a_fault_in_the_alerts_is_told_once_and_raises_nothing(tmp_path):
    def act(made: Alerting, _: list[str]) -> None:
        for _ in range(3):
            made.look({"lines": 5})
        assert "TypeError" in str(made.delivery()["fault"])

    assert len([one for one in alerting(tmp_path, act) if "internal error" in one]) == 1
    assert [one.alert for one in read(tmp_path / "j")[0].alerts] == ["alerts-failing"]


def test_messages_that_nobody_took_are_sent_by_the_next_operator(tmp_path):
    urls = {"office": "nosuch://x"}

    def waits(made: Alerting, _: list[str]) -> None:
        made.look(STATUS)

    told = alerting(tmp_path, waits, urls)
    assert "raised: kansas is blocked: BUSY" in told

    def act(made: Alerting, _: list[str]) -> None:
        (route,) = made.delivery()["routes"]
        assert route["waiting"] == 2, "blocked and the bundle that is down"
        made.look(STATUS)
        (route,) = made.delivery()["routes"]
        assert route["waiting"] == 2, "nothing is raised anew"

    assert alerting(tmp_path, act, urls) == []


def test_an_alert_of_a_severity_that_nobody_knows_hides_no_other(tmp_path):
    """Of a journal that was damaged, or of a newer version."""
    with Journal(tmp_path / "j") as journal:
        for alert in ("of a newer farlink", "hook-failing"):
            journal.raise_alert(AlertRow(alert, None, "dire", 1e9, ""))

    def act(made: Alerting, told: list[str]) -> None:
        made.look(STATUS)
        assert "raised: kansas is blocked: BUSY" in told
        assert made.delivery()["fault"] == ""

    alerting(tmp_path, act)
    assert [one.alert for one in read(tmp_path / "j")[0].alerts if one.cleared_s is None] == ["blocked", "bundle-down"]


def test_an_operator_whose_alerts_are_broken_runs(tmp_path, monkeypatch):
    def broken(*_: object) -> None:
        raise RuntimeError("broken")

    monkeypatch.setattr("farlink.operator.alerts.raised.Alerts.observe", broken)
    bundle, told = bundle_in(tmp_path), []

    async def main() -> dict[str, Any]:
        with Journal(bundle.journal) as journal:
            operator = Operator(bundle, Secrets(), journal, StandIn(bundle), folder=tmp_path, tell=told.append)
            running = asyncio.create_task(operator.run())
            until = time.monotonic() + 20
            while not (status := operator.status())["delivery"]["fault"]:
                assert time.monotonic() < until
                await asyncio.sleep(0.01)
            assert not running.done()
            operator.stop()
            await running
            return status

    assert asyncio.run(main())["delivery"]["fault"] == "internal error: RuntimeError('broken')"

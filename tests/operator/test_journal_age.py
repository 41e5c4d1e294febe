"""Retention goes by time of running: no clock that is set wrong empties a journal, and none keeps it for ever."""

from __future__ import annotations

import time

import pytest

from farlink.operator.journal import Journal, Transition
from farlink.operator.live import recorder as recorder_module
from farlink.operator.live.recorder import Recorder

DAY_S = 86400.0
YEARS_S = 50 * 365 * DAY_S


def recorded(journal: Journal, boot: str, days: range, clock_s: float = 1.78e9) -> None:
    """A transition each day of running."""
    for day in days:
        journal.record(Transition(1, "kansas", "failed", clock_s + day * DAY_S, day * DAY_S, boot))


def numbers(journal: Journal) -> list[int]:
    return [one.number for one in journal.history().transitions]


@pytest.mark.parametrize("ahead_s", [YEARS_S, -YEARS_S, 0.0])
def test_a_clock_that_is_wrong_by_fifty_years_and_set_right_deletes_nothing_young(tmp_path, monkeypatch, ahead_s):
    wall_s = 1.78e9
    monkeypatch.setattr(recorder_module, "boot_id", lambda: "b")
    monkeypatch.setattr(time, "time", lambda: wall_s)
    with Journal(tmp_path / "j") as journal:
        recorded(journal, "b", range(10))
        recorder = Recorder(journal, lambda _: None)
        monkeypatch.setattr(time, "monotonic", lambda: 9 * DAY_S)
        for clock_s in (1.78e9 + ahead_s, 1.78e9):
            wall_s = clock_s
            recorder.forget(366)
            recorder.forget(20)
            journal.record(Transition(1, "kansas", "failed", clock_s, 9 * DAY_S, "b"))
        assert numbers(journal) == list(range(1, 13))
        recorder.forget(4.5)
        assert numbers(journal) == list(range(6, 13)), "of days 5 on"


def test_days_of_several_starts_add_up_and_pauses_between_them_do_not_count(tmp_path):
    with Journal(tmp_path / "j") as journal:
        recorded(journal, "first", range(5))
        recorded(journal, "second", range(5), clock_s=1.78e9 + YEARS_S)
        now = {"boot_id": "third", "monotonic_s": DAY_S}
        assert journal.forget(8.5 * DAY_S, **now) == 0, "of which 8 have been seen"
        assert journal.forget(7.5 * DAY_S, **now) == 1
        assert journal.forget(3.5 * DAY_S, **now) == 5, "what has run before the second start is older than all of it"
        assert numbers(journal) == list(range(7, 11))


def test_what_was_recorded_late_makes_nothing_older(tmp_path):
    """The end of a call of a killed operator stands behind transitions that came later."""
    with Journal(tmp_path / "j") as journal:
        for at_s in (10.0, 100.0, 90.0, 110.0, 20.0):
            journal.record(Transition(1, "kansas", "failed", 1.78e9, at_s, "b"))
        assert journal.forget(100.5, boot_id="b", monotonic_s=110.0) == 0
        assert journal.forget(99.5, boot_id="b", monotonic_s=110.0) == 1


def test_a_long_journal_is_looked_at_in_steps(tmp_path, monkeypatch):
    from farlink.operator.journal import age

    monkeypatch.setattr(age, "_SAMPLES", 10)
    with Journal(tmp_path / "j") as journal:
        recorded(journal, "b", range(200))
        assert journal.forget(50.5 * DAY_S, boot_id="b", monotonic_s=199 * DAY_S) in range(150 - 20, 150)
        left = numbers(journal)
        assert left == list(range(left[0], 201))
        assert left[0] <= 150


def test_an_empty_journal_has_nothing_to_forget(tmp_path):
    with Journal(tmp_path / "j") as journal:
        assert journal.forget(0.0, boot_id="b", monotonic_s=1.0) == 0

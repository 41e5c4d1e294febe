"""The calls of the last 30 days, at the edges of these: what began before, what grows too old, what is too much."""

from __future__ import annotations

from pathlib import Path

import pytest

from farlink.operator.journal import Journal, Transition, read
from farlink.web.data import calls
from farlink.web.data.calls import WINDOW_S, CallReader, drops
from farlink.web.data.journal_file import JournalFile

START_S, DAY_S = 1_795_000_000.0, 86_400.0


def written(path: Path, rows: list[tuple[float, str, str]]) -> CallReader:
    """A journal with lines that get states, each at a time in days, and a reader of it."""
    with Journal(path) as journal:
        connection = journal.begin(START_S, {"kansas": 1, "iowa": 2})
        for at_days, line, state in rows:
            at_s = at_days * DAY_S
            journal.record(Transition(connection, line, state, START_S + at_s, 1000 + at_s, "boot"))
    return CallReader(JournalFile(path))


def days(reader: CallReader, until_days: float, line: str) -> list[tuple[str, float]]:
    """States of a line, and how long each was, in days."""
    found = reader.calls(START_S + until_days * DAY_S).of(line)
    return [(span.state, round(span.length_s / DAY_S, 6)) for span in found]


def test_a_line_that_is_up_for_longer_than_the_window_is_up(tmp_path):
    rows = [(0, "kansas", "connected"), (1, "iowa", "held"), (2, "iowa", "ended"), (35, "iowa", "connecting")]
    reader = written(tmp_path / "a.journal", rows)
    for one in (reader, CallReader(reader.journal), reader):
        assert days(one, 40, "kansas") == [("connected", 40)]
        assert days(one, 40, "iowa") == [("connecting", 5)], "what had ended before is not told"


def test_what_grows_too_old_is_counted_no_more_though_nothing_new_happens(tmp_path):
    rows = [(0, "kansas", "connected"), (1, "kansas", "dropped"), (2, "kansas", "connected")]
    reader = written(tmp_path / "a.journal", rows)
    assert drops(reader.calls(START_S + 10 * DAY_S).of("kansas")) == 1
    for one in (reader, CallReader(reader.journal)):
        assert drops(one.calls(START_S + 2.5 * DAY_S + WINDOW_S).of("kansas")) == 0
        assert days(one, 32.5, "kansas") == [("connected", 30.5)]


@pytest.fixture
def few(monkeypatch):
    monkeypatch.setattr(calls, "MOST_CHANGES", 10)


def ups(count: int, first_day: float = 0, every_days: float = 1) -> list[tuple[float, str, str]]:
    return [(first_day + at * every_days, "kansas", ("connected", "dropped")[at % 2]) for at in range(count)]


@pytest.mark.usefixtures("few")
def test_what_is_too_old_is_not_said_to_be_left_out(tmp_path):
    """Nine changes a month, for years."""
    path = tmp_path / "a.journal"
    rows = ups(40, every_days=4)
    with Journal(path) as journal:
        connection = journal.begin(START_S, {"kansas": 1})
        reader = CallReader(JournalFile(path))
        for at_days, line, state in rows:
            at_s = at_days * DAY_S
            journal.record(Transition(connection, line, state, START_S + at_s, 1000 + at_s, "boot"))
            assert reader.calls(START_S + at_s + 1).warning == ""


@pytest.mark.usefixtures("few")
def test_what_is_left_out_is_said_until_it_is_too_old(tmp_path):
    reader = written(tmp_path / "a.journal", ups(14))
    for _ in range(2):
        assert reader.calls(START_S + 14 * DAY_S).warning == "4 older changes of state are left out"
    assert reader.calls(START_S + 36 * DAY_S).warning == ""


@pytest.mark.usefixtures("few")
def test_of_a_damaged_journal_the_same_is_left_out_each_time(tmp_path, monkeypatch):
    reader = written(tmp_path / "a.journal", ups(14))
    monkeypatch.setattr(JournalFile, "_is_cut_off", lambda *_: True)
    monkeypatch.setattr(JournalFile, "_whole", lambda one: (read(one.path)[0], "a page is lost"))
    for _ in range(3):
        warning = reader.calls(START_S + 14 * DAY_S).warning
        assert warning == "a page is lost; 4 older changes of state are left out"

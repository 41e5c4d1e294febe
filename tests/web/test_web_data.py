"""What the dashboard shows is what operators answer and journals hold, whatever state they are in."""

from __future__ import annotations

import json
import os
import shutil
import socket
import stat
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from farlink.channels.calls.study import study
from farlink.errors import ArgumentError, FarlinkError, JournalError, OperatorError, OutputError
from farlink.operator.journal import Journal, Transition, flat, read
from farlink.operator.journal.words import cause_words
from farlink.operator.live.control import socket_of
from farlink.web.data import editing
from farlink.web.data.bundles import Bundles, Watched, found_in
from farlink.web.data.calls import CallReader, drops, mean_up, spans_of, throughput_bps, up_times
from farlink.web.data.journal_file import JournalFile
from farlink.web.data.line_rows import alert_words, line_rows, mean_words
from farlink.web.data.programs import Programs, last_lines
from farlink.web.data.search import PAGE, search_of
from farlink.web.data.survival import survival_of
from tests.operator.live_world import until
from tests.web.journals import BUNDLE, write_bundle, write_calls


@pytest.fixture(scope="module")
def journal(tmp_path_factory):
    path = tmp_path_factory.mktemp("journal") / "old.journal"
    write_calls(path, calls=80)
    return path


def test_calls_are_those_of_bundle_fit(journal, tmp_path):
    calls = CallReader(JournalFile(journal)).calls(time.time())
    flat.write_jsonl(read(journal)[0], tmp_path / "old.jsonl")
    found = study([tmp_path / "old.jsonl"], replicates=39)

    for line in ("kansas", "iowa"):
        part = next(part for part in found.parts if part.name == line)
        assert drops(calls.of(line)) == part.drops > 10
        fit = part.times["up"].of("exponential").fit
        # Exports have times to the millisecond.
        assert mean_up(calls.of(line)).mean_s == pytest.approx(fit.mean_s, rel=1e-5)
        assert mean_up(calls.of(line)).mean_ci_s == pytest.approx(fit.mean_ci_s, rel=1e-5)
    every = [span for line in calls.spans for span in calls.of(line)]
    whole = next(part for part in found.parts if part.name == "all links").times["up"]
    survival = survival_of(every)
    assert (survival.calls, survival.drops) == (whole.sample.times_s.size, whole.sample.events)
    for one in whole.judged:
        at_s, share = survival.fitted[one.fit.distribution][50]
        assert share == pytest.approx(float(one.fit.survival(np.array([at_s]))[0]), rel=1e-3)
    assert throughput_bps(every) == pytest.approx(8 * 40_000 * survival.calls / whole.sample.exposure_s, rel=1e-5)


def transition(at_s: float, state: str, *, monotonic_s: float | None = None, boot: str = "a", **more) -> Transition:
    return Transition(1, "kansas", state, at_s, at_s if monotonic_s is None else monotonic_s, boot, **more)


def test_a_clock_that_is_set_changes_no_up_time():
    rows = [transition(1e9, "connected", monotonic_s=50), transition(1e9 - 5000, "dropped", monotonic_s=170)]
    (call, _) = spans_of(rows, 1e9)["kansas"]
    assert call.length_s == 120
    assert call.end_s >= call.start_s


def test_a_call_of_a_killed_operator_is_no_drop():
    rows = [
        transition(1000, "connected"),
        transition(1600, "connecting", monotonic_s=3, boot="b"),
        transition(1610, "connected"),
    ]
    spans = spans_of(rows, 1700)["kansas"]
    sample = up_times(spans)
    assert sample.times_s.tolist() == [600, 90]
    assert sample.is_observed.tolist() == [False, False]
    assert mean_words(spans).startswith("above ")


def test_reading_leaves_a_journal_and_its_folder_as_they_are(tmp_path):
    path = tmp_path / "old.journal"
    write_calls(path, calls=4)
    before = {one.name: one.read_bytes() for one in tmp_path.iterdir()}
    JournalFile(path).transitions(most=5)
    CallReader(JournalFile(path)).calls(time.time())
    assert {one.name: one.read_bytes() for one in tmp_path.iterdir()} == before


def test_a_journal_is_read_while_an_operator_writes(tmp_path):
    path = tmp_path / "a.journal"
    with Journal(path) as writing:
        connection = writing.begin(1e9, {"kansas": 1})
        reader = CallReader(JournalFile(path))
        for at in range(30):
            writing.record(Transition(connection, "kansas", ("connected", "dropped")[at % 2], 1e9 + at, at, "boot"))
            assert JournalFile(path).transitions(most=1).transitions[0].number == at + 1
            assert len(reader.calls(1e9 + 40).of("kansas")) == at + 1, "what is new is read"
        assert reader.calls(1e9 + 40).of("kansas") == CallReader(JournalFile(path)).calls(1e9 + 40).of("kansas")
        assert reader.calls(1e9 + 90).of("kansas") == CallReader(JournalFile(path)).calls(1e9 + 90).of("kansas"), "no news"
        assert reader.calls(1e9 + 40, is_operated=False).of("kansas")[-1].end_s == 1e9 + 29
        assert JournalFile(path).modems() == ["kansas"]


@pytest.mark.parametrize("how", ["cut", "zeros", "noise"])
def test_of_a_damaged_journal_what_is_whole_is_shown(journal, tmp_path, how):
    path = tmp_path / "old.journal"
    shutil.copy(journal.with_name("old.journal.last"), tmp_path)
    data = bytearray(journal.read_bytes())
    middle = len(data) // 2
    if how == "cut":
        data = data[: len(data) * 4 // 5]
    else:
        data[middle : middle + 9000] = bytes(9000) if how == "zeros" else os.urandom(9000)
    path.write_bytes(data)
    file = JournalFile(path)

    pages = [search_of({"page": str(page)}).found(file) for page in (1, 2)]
    calls = CallReader(file).calls(time.time())

    assert any("damaged" in one.warning for one in pages) or "damaged" in calls.warning
    assert any(calls.of(line) for line in ("kansas", "iowa"))


def test_what_is_written_into_a_damaged_journal_is_shown(tmp_path, monkeypatch):
    """It is in the write-ahead log, while the file itself stays as it is."""
    monkeypatch.setattr(JournalFile, "_is_cut_off", lambda *_: True)
    with Journal(tmp_path / "a.journal") as journal:
        connection = journal.begin(1e9, {"kansas": 1})
        file = JournalFile(tmp_path / "a.journal")
        for at in range(3):
            journal.record(Transition(connection, "kansas", "connecting", 1e9 + at, at, "boot"))
            assert file.transitions(most=5).count == at + 1


def test_a_row_that_was_changed_is_damage(journal, tmp_path):
    path = tmp_path / "old.journal"
    shutil.copy(journal.with_name("old.journal.last"), tmp_path)
    path.write_bytes(journal.read_bytes().replace(b"NO CARRIER", b"NO CARRIES", 1))
    found = CallReader(JournalFile(path)).calls(time.time())
    assert "1 lost" in found.warning
    assert found.of("kansas")


def test_what_a_cut_write_ahead_log_has_lost_is_told(tmp_path):
    path = tmp_path / "a.journal"
    with Journal(path) as writing:
        connection = writing.begin(1e9, {"kansas": 1})
        for at in range(50):
            writing.record(Transition(connection, "kansas", "connecting", 1e9 + at, at, "boot"))
        copy = tmp_path / "b.journal"
        for suffix in ("", "-wal", ".last"):
            copy.with_name(copy.name + suffix).write_bytes(path.with_name(path.name + suffix).read_bytes())
    log = copy.with_name("b.journal-wal")
    log.write_bytes(log.read_bytes()[: log.stat().st_size // 2])

    found = JournalFile(copy).transitions(most=100)

    assert 0 < len(found.transitions) < 50
    assert "damaged" in found.warning


@pytest.mark.parametrize(("data", "said"), [(None, "there is no journal yet"), (b"no journal at all" * 99, "not a journal")])
def test_what_is_no_journal_is_refused(tmp_path, data, said):
    path = tmp_path / "a.journal"
    if data is not None:
        path.write_bytes(data)
    with pytest.raises(JournalError, match=said):
        JournalFile(path).transitions(most=1)
    assert JournalFile(path).modems() == []


@given(
    st.sampled_from(["", "NO", "no carrier", "%", "_", "up", "\\"]),
    st.sampled_from(["", "kansas", "iowa", "ohio"]),
    st.sampled_from(["", "dropped", "connected", "ended"]),
    st.one_of(st.none(), st.floats(0, 1)),
    st.one_of(st.none(), st.floats(0, 1)),
)
def test_a_search_finds_what_a_look_at_each_row_finds(journal, text, line, state, since, until_part):
    rows = read(journal)[0].transitions
    first_s, last_s = rows[0].time_s, rows[-1].time_s
    times = [None if part is None else first_s + part * (last_s - first_s) for part in (since, until_part)]
    fields = {"text": text, "line": line, "state": state}
    for name, at_s in zip(("since", "until"), times, strict=True):
        if at_s is not None:
            fields[name] = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(at_s))
            at = times.index(at_s)
            times[at] = float(int(at_s))
    expected = [
        one.number
        for one in rows
        if text.lower() in one.cause.lower()
        and line in ("", one.modem)
        and state in ("", one.state)
        and (times[0] is None or one.time_s >= times[0])
        and (times[1] is None or one.time_s < times[1])
    ]

    found = [search_of({**fields, "page": str(page)}).found(JournalFile(journal)) for page in (1, 2, 3)]

    assert found[0].count == len(expected)
    pages = [one.number for page in reversed(found) for one in page.transitions]
    assert pages == expected[-3 * PAGE :]


def test_who_called_is_found_and_told(tmp_path):
    with Journal(tmp_path / "a.journal") as journal:
        connection = journal.begin(1e9, {"kansas": 1})
        for at, caller in enumerate(("881600005001 camp", None)):
            journal.record(Transition(connection, "kansas", "connecting", 1e9 + at, at, "boot", "answering", caller=caller))
    found = search_of({"text": "5001 CAMP"}).found(JournalFile(tmp_path / "a.journal"))
    assert [cause_words(one) for one in found.transitions] == ["answering (from 881600005001 camp)"]
    assert search_of({"text": "answering"}).found(JournalFile(tmp_path / "a.journal")).count == 2


@given(
    st.dictionaries(st.sampled_from(["text", "line", "state", "since", "until", "observations", "page"]), st.text(max_size=30))
)
def test_any_fields_of_a_form_are_a_search_or_are_refused(journal, fields):
    try:
        search = search_of(fields)
    except ArgumentError:
        return
    search.found(JournalFile(journal))


def answering(path: Path, answer: bytes | None) -> socket.socket:
    """An operator that answers this, or nothing ever."""
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(str(path))
    listening.listen()
    kept = []

    def serve() -> None:
        while True:
            try:
                one, _ = listening.accept()
            except OSError:
                return
            kept.append(one)
            if answer is not None:
                one.recv(65536)
                one.sendall(answer)
                one.close()

    threading.Thread(target=serve, daemon=True).start()
    return listening


NONSENSE = (
    *(b"", b"{}\n", b"[]\n", b"7\n", b"not JSON\n", b'{"answer": []}\n', b'{"answer": {"lines": 7}}\n', b'{"error": 1}\n'),
    *(b'{"answer": {"lines": []}}\n', b'{"answer": {"bundle": "old", "lines": [{"line": "a"}]}}\n', b"[" * 50_000 + b"\n"),
)


@pytest.mark.parametrize("answer", NONSENSE)
def test_an_operator_that_answers_nonsense_is_away(tmp_path, answer):
    watched = Watched(write_bundle(tmp_path), "old")
    with answering(socket_of(tmp_path / "old.journal"), answer):
        view = watched.view()
    assert view.status is None
    assert view.away
    assert [row.state for row in line_rows(view, None)] == ["unknown", "unknown"]


def test_pages_do_not_wait_for_an_operator_that_hangs(tmp_path, monkeypatch):
    monkeypatch.setattr("farlink.web.data.bundles._ANSWER_S", 0.3)
    watched = Watched(write_bundle(tmp_path), "old")
    with answering(socket_of(tmp_path / "old.journal"), None):
        assert "does not answer" in watched.view().away
        watched.forget()
        threads = [threading.Thread(target=watched.view) for _ in range(3)]
        begin = time.monotonic()
        threads[0].start()
        until(watched._lock.locked)
        watched.view()
        assert time.monotonic() - begin < 0.25, "the others get what was known before"
        threads[0].join()


def status_of(**more):
    line = {
        "line": "kansas",
        "state": "connected",
        "is_primary": True,
        "signal": 3,
        "most_signal": 5,
        "for_s": 61.0,
        "role": "dial",
    }
    line |= {"reason": "up", "cause": "", "number": "", "ends": "a drop", "ends_in_s": None, "attempt": 1, "drops": 2.0}
    line |= {"expected_up_s": 100.0, "airtime_s_today": 7.0, "call": 1, "bytes_in": 1000, "bytes_out": 0}
    status = {"bundle": "old", "up": 1, "use": 1, "running_s": 61.0, "injected_per_s": None, "injected_lines": []}
    return {**status, "journal": {"failure": ""}, "costs": {}, "bundle_budget": {}, "lines": [{**line, **more}]}


@pytest.mark.parametrize(
    "alerts", [None, [], "odd", [7, {"alert": "blocked", "words": "kansas is blocked", "since_unix_s": 60}]]
)
def test_alerts_may_be_missing_or_odd(tmp_path, alerts):
    status = status_of() if alerts is None else {**status_of(), "alerts": alerts}
    watched = Watched(write_bundle(tmp_path), "old")
    with answering(socket_of(tmp_path / "old.journal"), json.dumps({"answer": status}).encode() + b"\n"):
        view = watched.view()
    assert view.status is not None, view.away
    assert [alert_words(one) for one in view.alerts] == (
        ["kansas is blocked, since 1970-01-01 00:01:00 UTC"] if alerts != "odd" and alerts else []
    )
    (row,) = line_rows(view, None)
    assert (row.state, row.since, row.signal, row.is_primary) == ("connected", "1 min 01 s", "3 of 5", True)


def test_the_rate_of_a_call_is_that_of_its_last_seconds(tmp_path):
    watched = Watched(write_bundle(tmp_path), "old")
    assert watched._rates(status_of()) == {}
    time.sleep(0.01)
    assert watched._rates(status_of(bytes_in=3000))["kansas"] > 0
    assert watched._rates(status_of(bytes_in=5, call=2)) == {}, "another call counts from 0"
    assert watched._rates(status_of(bytes_in=None)) == {}


def test_a_file_with_mistakes_is_shown_and_its_operator_still_asked(tmp_path):
    path = write_bundle(tmp_path)
    watched = Watched(path, "old")
    assert "no operator of bundle old is running" in watched.view().away
    path.write_text("nmae = 1\n")
    watched.forget()
    assert watched.view().mistakes
    with pytest.raises(OperatorError, match="no operator of bundle old"):
        watched.order("hold", ["kansas"])
    assert Watched(path, "x").view().away.startswith("line 1, column 1")
    with pytest.raises(OperatorError, match="has mistakes"):
        Watched(path, "x").journal()


def test_bundles_have_names_of_their_own(tmp_path):
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        write_bundle(tmp_path / folder)
    bundles = Bundles([tmp_path / "a/old.toml", tmp_path / "b/old.toml", tmp_path / "a/old.toml"], tmp_path)
    assert [one.key for one in bundles] == ["old", "old-2"]
    with pytest.raises(ArgumentError, match=r"no bundle '\.\./etc'"):
        bundles.get("../etc")
    (tmp_path / "a/other.toml").write_text('title = "x"')
    (tmp_path / "a/.hidden.toml").write_text(BUNDLE.format(name="x"))
    assert found_in(tmp_path / "a") == [tmp_path / "a/old.toml"]


class TestEditing:
    """Files are looked through before they are saved."""

    def test_mistakes_are_named_with_their_place_and_nothing_is_saved(self, tmp_path):
        path = write_bundle(tmp_path)
        file = editing.opened(path)
        mistakes = editing.save_bundle(path, file.text.replace("kansas", "kan sas").replace("number", "numbre"), file.stamp)
        assert [(one.line, one.column) for one in mistakes] == [(5, 8), (8, 1), (13, 1)] or len(mistakes) >= 3
        assert path.read_text() == file.text
        assert sorted(one.name for one in tmp_path.iterdir()) == ["old.toml"], "no draft is left"

    def test_the_old_file_and_the_rights_are_kept(self, tmp_path):
        path = write_bundle(tmp_path)
        path.chmod(0o640)
        file = editing.opened(path)
        assert editing.save_bundle(path, file.text + "# new\r\n", file.stamp) == ()
        assert path.read_text() == file.text + "# new\n"
        assert path.with_name("old.toml.old").read_text() == file.text
        assert stat.S_IMODE(path.stat().st_mode) == 0o640

    def test_what_somebody_else_has_saved_is_not_lost(self, tmp_path):
        path = write_bundle(tmp_path)
        file = editing.opened(path)
        path.write_text(file.text + "# theirs\n")
        with pytest.raises(OutputError, match="changed by somebody else"):
            editing.save_bundle(path, file.text, file.stamp)
        with pytest.raises(OutputError, match="changed by somebody else"):
            editing.save_bundle(path, file.text, "")
        assert path.read_text().endswith("# theirs\n")

    def test_names_and_lengths_are_checked(self, tmp_path):
        write_bundle(tmp_path)
        for name in ("", "../x", "a/b", ".x", "x" * 40, "a b"):
            with pytest.raises(OperatorError, match="is no name"):
                editing.new_file(tmp_path, name)
        with pytest.raises(OperatorError, match="exists already"):
            editing.new_file(tmp_path, "old")
        with pytest.raises(OutputError, match="too many"):
            editing.mistakes_of_bundle(tmp_path / "new.toml", "x" * 300_000)

    def test_no_secret_is_shown(self, tmp_path):
        secrets = tmp_path / "secrets.toml"
        secrets.write_text('password = "canary-77\n')
        secrets.chmod(0o600)
        text = BUNDLE.format(name="old").replace("back_end", 'user = "me"\nsecrets = "secrets.toml"\nback_end')
        mistakes = editing.mistakes_of_bundle(tmp_path / "old.toml", text)
        assert mistakes
        assert "canary" not in repr(mistakes)
        assert secrets not in editing.own_profiles([tmp_path])

    def test_a_profile_is_checked_by_its_own_rules(self, tmp_path):
        path = tmp_path / "mine.toml"
        (mistake,) = editing.save_profile(path, 'titel = "x"\ninit = ["ls"]\n', "")
        assert "did you mean 'title'" in mistake.remedy
        assert ".farlink" not in mistake.message
        assert "mine.toml" in mistake.message
        (mistake,) = editing.mistakes_of_profile(path, "title = [\n\n x")
        assert mistake.line == 3
        assert not path.exists()
        assert editing.save_profile(path, 'title = "x"\ninit = ["ATZ"]\n', "") == ()
        assert editing.own_profiles([tmp_path]) == [path]

    @given(text=st.text(max_size=200))
    def test_any_text_has_mistakes_or_none(self, text, tmp_path_factory):
        folder = tmp_path_factory.getbasetemp()
        try:
            editing.mistakes_of_bundle(folder / "a.toml", text)
            editing.mistakes_of_profile(folder / "a.toml", text)
        except FarlinkError:
            pass
        assert not list(folder.glob(".farlink.*"))


def test_what_a_program_that_fails_has_told_is_known(tmp_path):
    programs = Programs()
    config = tmp_path / "bad.toml"
    config.write_text("name = 7\n")
    (tmp_path / "farlink.py").write_text("raise RuntimeError('not this one')\n")
    assert programs.told(config) is None
    programs.up(config)
    told = until(lambda: (found := programs.told(config)) and not found.is_running and found)
    assert told.status == 2
    assert any("bad.toml, line 1" in line for line in told.lines)
    with pytest.raises(OperatorError, match="no bank"):
        programs.end_bank()
    assert last_lines(tmp_path / "none") == ()

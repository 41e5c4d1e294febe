"""Who called has a column of its own, which journals of version 3 get when they are opened."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from farlink.operator.journal import Journal, Transition, connection_xml, read
from farlink.operator.journal.schema import crc_of
from farlink.operator.watch import answers

FIELDS = (
    "connection, modem, state, time_s, monotonic_s, boot_id, cause, snr_db, bars, attempt, bytes_in, bytes_out, is_injected"
)
COUNT = 60


def version_3(path: Path) -> Path:
    """A file as version 3 wrote it, with the CRCs of its columns."""
    old = sqlite3.connect(path)
    old.executescript("""
        PRAGMA application_id = 1179404878; PRAGMA user_version = 3;
        CREATE TABLE connection (number INTEGER PRIMARY KEY AUTOINCREMENT, start_s REAL NOT NULL, end_s REAL);
        CREATE TABLE member (connection INTEGER NOT NULL, modem TEXT NOT NULL, position INTEGER NOT NULL,
            UNIQUE (connection, modem));
        CREATE TABLE transition (number INTEGER PRIMARY KEY AUTOINCREMENT, connection INTEGER NOT NULL, modem TEXT NOT NULL,
            state TEXT NOT NULL, time_s REAL NOT NULL, monotonic_s REAL NOT NULL, boot_id TEXT NOT NULL, cause TEXT NOT NULL,
            snr_db REAL, bars INTEGER, attempt INTEGER, bytes_in INTEGER, bytes_out INTEGER,
            is_injected INTEGER NOT NULL DEFAULT 0, crc INTEGER);
        CREATE TABLE nonsense (transition_number INTEGER PRIMARY KEY, crc INTEGER NOT NULL, said BLOB NOT NULL);
        CREATE TABLE gap (first_number INTEGER NOT NULL, last_number INTEGER NOT NULL, reason TEXT NOT NULL);
        CREATE TABLE fact (name TEXT PRIMARY KEY, content TEXT NOT NULL);
        INSERT INTO connection VALUES (1, 1e9, NULL);
        INSERT INTO member VALUES (1, 'kansas', 1);
    """)
    for at in range(COUNT):
        fields = [1, "kansas", "connecting", 1e9 + at, float(at), "b", "answering 102", None, 3, 1, None, None, 0]
        crc = crc_of([*fields, None])
        marks = ", ".join("?" * (len(fields) + 1))
        old.execute(f"INSERT INTO transition ({FIELDS}, crc) VALUES ({marks})", (*fields, crc))
    old.commit()
    old.close()
    return path


def expected(at: int) -> Transition:
    return Transition(1, "kansas", "connecting", 1e9 + at, float(at), "b", "answering 102", bars=3, attempt=1, number=at + 1)


def test_the_crc_of_a_row_without_a_caller_is_that_of_version_3():
    """Computed by version 3 for this row, so that no whole journal is taken for damaged."""
    fields = [1, "kansas", "connected", 1e9, 5.0, "b", "up", None, 3, 1, 10, 20, False]
    assert crc_of([*fields, None]) == 0x4D2DA2A7
    assert crc_of([*fields, "102"]) != crc_of([*fields, None])


def test_version_3_is_whole_and_gets_callers(tmp_path):
    path = version_3(tmp_path / "j")
    history, loss = read(path)
    assert loss is None
    assert history.transitions == tuple(expected(at) for at in range(COUNT))
    called = Transition(1, "kansas", "connecting", 2e9, 500.0, "b", "answering", caller="881600005001 (glacier)")
    with Journal(path) as journal:
        assert journal.loss is None
        assert journal.record(called) == COUNT + 1
        assert journal.history().transitions[-1].caller == "881600005001 (glacier)"
    with Journal(path) as journal:
        assert journal.loss is None


def test_a_damaged_version_3_keeps_what_is_whole(tmp_path):
    path = version_3(tmp_path / "j")
    content = bytearray(path.read_bytes())
    at = content.rindex(b"answering 102")
    content[at : at + 9] = b"ANSWERING"
    path.write_bytes(content)
    _, seen = read(path)
    with Journal(path) as journal:
        assert journal.loss is not None
        assert (journal.loss.kept, seen.kept) == (COUNT - 1, COUNT - 1)
        kept = journal.history().transitions
    assert set(kept) < {expected(at) for at in range(COUNT)}


def test_a_caller_that_is_damaged_on_the_disk_is_noticed(tmp_path):
    with Journal(tmp_path / "j") as journal:
        for at in range(3):
            journal.record(Transition(1, "a", "connecting", 1e9, float(at), "b", "answering", caller=f"88160000500{at}"))
    content = (tmp_path / "j").read_bytes()
    (tmp_path / "j").write_bytes(content.replace(b"881600005001", b"881600009999"))
    with Journal(tmp_path / "j") as journal:
        assert journal.loss.missing == ((2, 2),)
        assert [one.caller for one in journal.history().transitions] == ["881600005000", "881600005002"]


def test_the_schema_of_the_xml_has_the_caller(tmp_path):
    with Journal(tmp_path / "j") as journal:
        journal.record(Transition(1, "a", "connecting", 1e9, 0.0, "b", "answering", caller="+88 1<&\x1b[2J"))
        history = journal.history()
    assert '<xs:attribute name="caller" type="xs:string" />' in connection_xml.schema()
    text = connection_xml.xml_text(history)
    assert 'caller="+88 1&lt;&amp;' in text
    assert "\x1b" not in text


def test_the_api_tells_who_called_and_its_description_says_so():
    rung = Transition(1, "kansas", "connecting", 1e9, 0.0, "b", "answering", caller="881600005001")
    assert answers.TransitionAnswer(**answers.transition_answer(rung)).caller == "881600005001"

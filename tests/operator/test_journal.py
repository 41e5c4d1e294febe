"""The operator's journal: durable, locked, migrated, opened when it is damaged, exported and read back."""

from __future__ import annotations

import random
import shutil
import sqlite3
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from farlink.channels.calls import logs
from farlink.channels.calls.study import study
from farlink.errors import JournalError, OutputError
from farlink.operator.journal import STATES, Connection, History, Journal, Transition, connection_xml, flat, read

START_S = 1_783_166_400.0
EXPORTS = {
    "csv": (flat.write_csv, flat.read_csv),
    "jsonl": (flat.write_jsonl, flat.read_jsonl),
    "parquet": (flat.write_parquet, flat.read_parquet),
    "xml": (connection_xml.write_xml, connection_xml.read_xml),
}


def transition(state: str, at_s: float, **given: object) -> Transition:
    return Transition(
        **{"connection": 1, "modem": "kansas", "boot_id": "b", **given}, state=state, time_s=START_S + at_s, monotonic_s=at_s
    )


def filled(path: Path, count: int = 300) -> Path:
    """A journal of some transitions, every fiftieth with nonsense."""
    with Journal(path) as journal:
        journal.begin(START_S, {"kansas": 1, "iowa": 2})
        for at in range(count):
            modem = ("kansas", "iowa")[at % 2]
            said = bytes([at % 256]) * 4000 if at % 50 == 0 else b""
            journal.record(transition("failed", at, modem=modem, cause=f"NO CARRIER {at}", attempt=at, nonsense=said))
    return path


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    return filled(tmp_path_factory.mktemp("whole") / "bundle.journal")


def copied(path: Path, folder: Path) -> Path:
    folder.mkdir(exist_ok=True)
    for file in path.parent.iterdir():
        shutil.copy(file, folder)
    return folder / path.name


def test_what_is_recorded_is_read(tmp_path):
    with Journal(tmp_path / "j") as journal:
        assert journal.begin(START_S, {"kansas": 1, "iowa": 2}) == 1
        one = transition("connecting", 0, attempt=1, bars=4)
        two = transition("dropped", 60, cause="NO CARRIER", snr_db=-1.5, bytes_in=10, bytes_out=20, is_injected=True)
        assert [journal.record(one), journal.record(two)] == [1, 2]
        journal.finish(1, START_S + 60)

        expected = History(
            (Connection(1, START_S, START_S + 60, {"kansas": 1, "iowa": 2}),), (replace(one, number=1), replace(two, number=2))
        )
        assert journal.history() == expected
        assert read(tmp_path / "j") == (expected, None), "a reader needs no lock"
    assert read(tmp_path / "j") == (expected, None)
    assert expected.connections[0].primary == "kansas"


def test_a_transition_of_a_connection_that_nobody_began_is_exported(tmp_path):
    with Journal(tmp_path / "j") as journal:
        journal.record(transition("connecting", 0, connection=7))
        assert [row["connection"] for row in flat.rows(journal.history())] == [7]


def test_a_journal_that_cannot_be_read_is_refused_in_words():
    with pytest.raises(OutputError, match="/proc/self/mem"):
        read("/proc/self/mem")


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (transition("conected", 0), "did you mean 'connected'"),
        (transition("failed", 0, bars=6), "bars: 6"),
        (transition("failed", 0, attempt=-1), "attempt: -1"),
        (transition("failed", -2 * START_S), "not between 1970 and 9999"),
        (transition("failed", 0, modem="a\nb"), "not a name"),
        (transition("snr", 0), "snr without snr_db"),
        (transition("failed", 0, snr_db=float("nan")), "snr_db: nan"),
    ],
)
def test_wrong_transitions_are_refused(tmp_path, wrong, said):
    with Journal(tmp_path / "j") as journal, pytest.raises(JournalError) as refused:
        journal.record(wrong)

    assert said in f"{refused.value.message} {refused.value.remedy}"


def test_the_last_4_kb_of_nonsense_are_kept(tmp_path):
    with Journal(tmp_path / "j") as journal:
        journal.record(transition("failed", 0, nonsense=b"a" * 5000 + b"z" * 4000))

    assert read(tmp_path / "j")[0].transitions[0].nonsense == b"a" * 96 + b"z" * 4000


def test_no_secret_is_written(tmp_path):
    with Journal(tmp_path / "j", secrets=["1234", "canary-secret"]) as journal:
        journal.record(transition("failed", 0, cause="AT+CPIN=1234: ERROR", nonsense=b"\xffcanary-secret"))
        for file in tmp_path.iterdir():
            assert b"canary-secret" not in file.read_bytes()
            assert b"CPIN=1234" not in file.read_bytes()
        found = journal.history().transitions[0]

    assert (found.cause, found.nonsense) == ("AT+CPIN=***: ERROR", b"\xff***")


def test_a_second_process_is_refused_and_a_dead_one_does_not_lock(tmp_path):
    code = (
        "import sys; from farlink.operator.journal import Journal\n"
        "journal = Journal(sys.argv[1]); print('in', flush=True); sys.stdin.read()"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "j")]
    holder = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert holder.stdout.readline() == "in\n"
        with pytest.raises(JournalError, match=f"in use by process {holder.pid}"):
            Journal(tmp_path / "j")
    finally:
        holder.kill()
        holder.communicate()

    Journal(tmp_path / "j").close()


WRITER = """
import sys
from farlink.operator.journal import Journal, Transition
journal = Journal(sys.argv[1])
for at in range(10**6):
    print(journal.record(Transition(1, "kansas", "failed", 1e9, at, "b", nonsense=b"?" * 4000)), flush=True)
"""


def test_kill_at_random_instants_loses_no_recorded_transition(tmp_path):
    """One journal, killed ten times: what was told to be recorded is there, and numbers go on."""
    generator = random.Random(25)
    told: list[int] = []
    for _ in range(10):
        writer = subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path / "j")], stdout=subprocess.PIPE, text=True)
        told += [int(writer.stdout.readline())]
        time.sleep(generator.uniform(0, 0.2))
        writer.kill()
        told += [int(line) for line in writer.communicate()[0].splitlines() if line]

        with Journal(tmp_path / "j") as journal:
            assert journal.loss is None
            numbers = [one.number for one in journal.history().transitions]
        assert numbers == list(range(1, len(numbers) + 1))
        assert set(told) <= set(numbers)
    assert len(told) > 50


def test_a_reader_beside_a_writer_never_takes_its_journal_for_damaged(tmp_path):
    """The write-ahead log is moved into the file every 1,000 pages, which a reader's copy may fall into."""
    writer = subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path / "j")], stdout=subprocess.PIPE, text=True)
    try:
        before = 0
        writer.stdout.readline()
        threading.Thread(target=writer.stdout.read, daemon=True).start()  # so that the pipe does not fill up
        end_s = time.monotonic() + 60
        while before < 1200:  # of three pages each
            assert time.monotonic() < end_s, f"{before} in a minute"
            history, loss = read(tmp_path / "j")
            assert loss is None, str(loss)
            assert before <= len(history.transitions)
            before = len(history.transitions)
    finally:
        writer.kill()
        writer.wait()


def test_version_1_is_migrated(tmp_path):
    """A file as the first version wrote it: no injected drops, nonsense, gaps and CRCs."""
    old = sqlite3.connect(tmp_path / "j")
    old.executescript("""
        PRAGMA application_id = 1179404878; PRAGMA user_version = 1;
        CREATE TABLE connection (number INTEGER PRIMARY KEY AUTOINCREMENT, start_s REAL NOT NULL, end_s REAL);
        CREATE TABLE member (connection INTEGER NOT NULL, modem TEXT NOT NULL, position INTEGER NOT NULL,
            UNIQUE (connection, modem));
        CREATE TABLE transition (number INTEGER PRIMARY KEY AUTOINCREMENT, connection INTEGER NOT NULL, modem TEXT NOT NULL,
            state TEXT NOT NULL, time_s REAL NOT NULL, monotonic_s REAL NOT NULL, boot_id TEXT NOT NULL, cause TEXT NOT NULL,
            snr_db REAL, bars INTEGER, attempt INTEGER, bytes_in INTEGER, bytes_out INTEGER);
        INSERT INTO connection VALUES (1, 1e9, NULL);
        INSERT INTO member VALUES (1, 'kansas', 1);
        INSERT INTO transition VALUES (1, 1, 'kansas', 'connected', 1e9, 5.0, 'b', '', NULL, 3, 1, NULL, NULL);
    """)
    old.close()
    first = Transition(1, "kansas", "connected", 1e9, 5.0, "b", bars=3, attempt=1, number=1)

    assert read(tmp_path / "j")[0].transitions == (first,)
    with Journal(tmp_path / "j") as journal:
        assert journal.loss is None
        assert journal.record(replace(first, state="dropped", is_injected=True, nonsense=b"?")) == 2
        assert journal.history().transitions == (
            first,
            replace(first, state="dropped", is_injected=True, nonsense=b"?", number=2),
        )


def test_other_files_are_refused_and_stay(tmp_path):
    (tmp_path / "text").write_text("not a database, but long enough")
    (tmp_path / "text").chmod(0o644)
    other = sqlite3.connect(tmp_path / "other")
    other.execute("CREATE TABLE a (b)")
    other.close()
    newer = sqlite3.connect(tmp_path / "newer")
    newer.executescript("PRAGMA application_id = 1179404878; PRAGMA user_version = 99; CREATE TABLE a (b)")
    newer.close()
    for name, said in (("text", "not a journal"), ("other", "another program"), ("newer", "version 99")):
        before = (tmp_path / name).read_bytes()
        for opened in (Journal, read):
            with pytest.raises(JournalError, match=said):
                opened(tmp_path / name)
        assert (tmp_path / name).read_bytes()[100:] == before[100:]
    with pytest.raises(JournalError, match="no such journal"):
        read(tmp_path / "none")
    with pytest.raises(OutputError):
        Journal(tmp_path / "no" / "folder")


@settings(max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(share=st.floats(0, 1, exclude_max=True))
def test_a_journal_truncated_at_any_byte_opens_with_the_loss_named(whole, tmp_path_factory, share):
    path = copied(whole, tmp_path_factory.mktemp("cut"))
    cut = path.read_bytes()[: int(share * path.stat().st_size)]
    path.write_bytes(cut)
    expected = {one.number: one for one in read(whole)[0].transitions}

    seen, loss_seen = read(path)
    assert path.read_bytes() == cut
    with Journal(path) as journal:
        loss, history = journal.loss, journal.history()
        assert journal.record(transition("connected", 1000)) == 301, "numbers of lost transitions are not given again"

    assert seen == history
    assert loss.set_aside.read_bytes() == cut
    kept = {one.number: one for one in history.transitions}
    lost = {number for first, last in loss.missing for number in range(first, last + 1)}
    assert kept.keys() | lost == expected.keys()
    assert not kept.keys() & lost
    assert (loss.kept, loss.is_end_known, loss_seen.missing) == (len(kept), True, loss.missing)
    # What a row says is what was recorded, but for nonsense that is cut off.
    for number, one in kept.items():
        assert one in (expected[number], replace(expected[number], nonsense=b""))
    with Journal(path) as journal:
        assert journal.loss is None, "a loss is told once"


def test_most_is_kept_when_the_last_page_is_cut_off(whole, tmp_path):
    path = copied(whole, tmp_path / "cut")
    path.write_bytes(path.read_bytes()[:-4096])

    with Journal(path) as journal:
        assert journal.loss.kept > 200
        assert "transitions kept, " in str(journal.loss)
        assert str(journal.loss.set_aside) in str(journal.loss)


@pytest.mark.parametrize("keep", [0, 31, 32, 5000, -1, -4120, -9000])
def test_a_truncated_write_ahead_log_is_named(tmp_path, keep):
    """SQLite takes a shorter log for a whole one, so the number of the last transition stands in a file of its own."""
    code = (
        "import os, sys; from farlink.operator.journal import Journal, Transition\n"
        "journal = Journal(sys.argv[1]); journal.begin(1e9, {'kansas': 1})\n"
        "for at in range(40): journal.record(Transition(1, 'kansas', 'failed', 1e9, at, 'b'))\n"
        "os._exit(0)\n"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path / "j")], check=True, timeout=60)
    log = tmp_path / "j-wal"
    log.write_bytes(log.read_bytes()[:keep])

    with Journal(tmp_path / "j") as journal:
        kept = [one.number for one in journal.history().transitions]
        assert journal.loss.missing == ((len(kept) + 1, 40),)
    assert kept == list(range(1, len(kept) + 1))


def test_a_damaged_page_in_the_middle_costs_its_rows_only(whole, tmp_path):
    path = copied(whole, tmp_path / "hit")
    content = bytearray(path.read_bytes())
    at = content.index(b"NO CARRIER 149") // 4096 * 4096
    content[at : at + 4096] = bytes(4096)
    path.write_bytes(content)

    with Journal(path) as journal:
        (first, last), *others = journal.loss.missing
        assert first <= 150 <= last
        assert not others
        assert journal.loss.kept == 300 - (last - first + 1) > 200


def test_damage_without_the_last_number_says_so(whole, tmp_path):
    path = copied(whole, tmp_path / "cut")
    path.write_bytes(path.read_bytes()[:-5000])
    path.with_name(f"{path.name}.last").unlink()

    with Journal(path) as journal:
        assert not journal.loss.is_end_known
        assert "perhaps more at its end" in str(journal.loss)


def test_retention(tmp_path):
    path = filled(tmp_path / "j", 100)
    with Journal(path) as journal:
        journal.finish(1, START_S + 100)
        now = {"boot_id": "b", "monotonic_s": 100.0}
        assert journal.forget(100.5, **now) == 0
        assert journal.forget(60.5, **now) == 40
        assert journal.forget(1e9, **now, most=10) == 50
        assert [one.number for one in journal.history().transitions] == list(range(91, 101))
        assert len(journal.history().connections) == 1
    with Journal(path) as journal:
        assert journal.loss is None
    # What was forgotten is no loss when the file is damaged later.
    path.write_bytes(path.read_bytes()[:-1])
    with Journal(path) as journal:
        assert journal.loss.set_aside is not None
        assert all(first > 90 for first, _ in journal.loss.missing)
        assert journal.forget(0.0, **now) > 0
        assert journal.history() == History((), ())


def test_a_full_disk_is_said(tmp_path):
    with Journal(tmp_path / "j") as journal:
        journal._database.execute("PRAGMA max_page_count = 1")
        with pytest.raises(OutputError, match="full"):  # noqa: PT012 (when it is full is SQLite's affair)
            for at in range(1000):
                journal.record(transition("failed", at, nonsense=b"x" * 4096))
        journal._database.execute("PRAGMA max_page_count = 100000")
        assert journal.record(transition("failed", 1)) == len(journal.history().transitions)


NAMES = st.text(st.characters(categories=["L", "N"], include_characters="-_."), min_size=1, max_size=8)
TIMES = st.integers(0, 4_000_000_000_000).map(lambda thousandths: thousandths / 1000)
COUNTS = st.none() | st.integers(0, 2**63 - 1)


@st.composite
def histories(draw):
    modems = draw(st.lists(NAMES, min_size=1, max_size=3, unique=True))
    indices = {modem: at for at, modem in enumerate(modems, start=1)}
    connections = [
        Connection(at, draw(TIMES), draw(st.none() | TIMES), dict(indices)) for at in range(1, draw(st.integers(1, 3)) + 1)
    ]
    # Each modem of each connection has a transition: rows have no place for one without.
    pairs = draw(st.permutations([(one.number, modem) for one in connections for modem in modems] * 2))
    found = []
    for number, (connection, modem) in enumerate(pairs, start=1):
        state = draw(st.sampled_from(sorted(STATES)))
        snr = draw(st.floats(-50, 50)) if state == "snr" else draw(st.none() | st.floats(-50, 50))
        found.append(
            Transition(
                connection,
                modem,
                state,
                draw(TIMES),
                draw(st.integers(0, 10**12)) / 1e6,
                draw(st.just("") | NAMES),
                cause=draw(st.text(max_size=20)),
                snr_db=snr,
                bars=draw(st.none() | st.integers(0, 5)),
                attempt=draw(COUNTS),
                bytes_in=draw(COUNTS),
                bytes_out=draw(COUNTS),
                is_injected=draw(st.booleans()),
                caller=draw(st.none() | st.text(max_size=20)),
                nonsense=draw(st.binary(max_size=40)),
                number=number,
            )
        )
    return connections, found


@settings(max_examples=40)
@given(drawn=histories())
def test_each_export_is_read_back_whole(tmp_path_factory, drawn):
    folder = tmp_path_factory.mktemp("exports")
    connections, found = drawn
    with Journal(folder / "j") as journal:
        for one in connections:
            journal.begin(one.start_s, one.indices)
            if one.end_s is not None:
                journal.finish(one.number, one.end_s)
        for one in found:
            journal.record(one)
        history = journal.history()
    assert len(history.transitions) == len(found)

    for suffix, (write, back) in EXPORTS.items():
        write(history, folder / f"j.{suffix}")
        assert back(folder / f"j.{suffix}") == history, suffix


def test_fit_reads_the_lines_and_takes_injected_drops_for_no_drops(tmp_path):
    with Journal(tmp_path / "j") as journal:
        journal.begin(START_S, {"kansas": 1})
        for call in range(60):
            at = call * 1000.0
            journal.record(transition("connecting", at))
            journal.record(transition("connected", at + 50))
            journal.record(transition("dropped", at + 900, cause="NO CARRIER", is_injected=call % 3 == 0))
        flat.write_jsonl(journal.history(), tmp_path / "j.jsonl")

    kinds = [event.kind for event in logs.read(tmp_path / "j.jsonl").events]
    assert (kinds.count("dropped"), kinds.count("ended")) == (40, 20)
    assert study([tmp_path / "j.jsonl"], replicates=39).whole.drops == 40


@pytest.mark.published("Zaghloul, figure 7.4")
def test_the_xml_has_the_elements_of_figure_7_4(tmp_path):
    with Journal(tmp_path / "j") as journal:
        journal.begin(START_S, {"kansas": 1, "iowa": 2})
        for state in ("connecting", "connected", "dropped", "connecting", "failed"):
            journal.record(transition(state, 0, cause="a < b & c"))
        text = connection_xml.xml_text(journal.history())
    for element in (
        "<modem_name>kansas<",
        "<modem_index>1<",
        "<connection_time>2026-07-04T12:00:00Z<",
        "<entry_id>2<",
        "<time>2026",
    ):
        assert element in text
    assert text.count("<connection ") == 2, "a modem without a transition has its element, too"
    (tmp_path / "j.xml").write_text(text)
    (tmp_path / "connection.xsd").write_text(connection_xml.schema())
    assert connection_xml.read_xml(tmp_path / "j.xml") == read(tmp_path / "j")[0]
    xmllint = shutil.which("xmllint")
    if xmllint is None:
        pytest.skip("xmllint is not installed, so the schema itself was not tried: apt install libxml2-utils")
    command = [xmllint, "--noout", "--schema", tmp_path / "connection.xsd", tmp_path / "j.xml"]
    subprocess.run(command, check=True, capture_output=True)
    (tmp_path / "j.xml").write_text(text.replace("modem_name", "modem"))
    assert subprocess.run(command, check=False, capture_output=True).returncode != 0


def test_xml_with_the_elements_of_the_figure_only_is_read(tmp_path):
    (tmp_path / "j.xml").write_text(
        "<connection><modem_name>kansas</modem_name><modem_index>1</modem_index><connection_time/>"
        "<entry><entry_id>1</entry_id><event><state>connected</state><time>2004-07-01T12:00:00Z</time></event></entry></connection>"
    )
    history = connection_xml.read_xml(tmp_path / "j.xml")

    assert [(one.modem, one.state, one.time_s) for one in history.transitions] == [("kansas", "connected", 1088683200.0)]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.xml", '<!DOCTYPE a [<!ENTITY b "cc">]><connection_database/>'),
        ("b.xml", "<connection_database><connection/></connection_database>"),
        ("c.xml", "<other/>"),
        ("d.xml", "<connection_database>"),
        ("e.jsonl", "[1]"),
        ("f.jsonl", '{"time": 1}'),
        ("g.jsonl", "{"),
        ("h.csv", "time,link\n2026-07-04T12:00:00Z,a\n"),
        ("i.csv", 'a\n"b'),
        ("j.parquet", "PAR1"),
    ],
)
def test_other_exports_are_refused(tmp_path, name, content):
    (tmp_path / name).write_text(content)
    with pytest.raises(JournalError):
        EXPORTS[name.partition(".")[2]][1](tmp_path / name)

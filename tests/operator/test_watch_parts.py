"""Parts of what watches an operator: tokens, queries of the journal, metrics and alert rules, reports of connections."""

from __future__ import annotations

import json
import re
import socket
import sqlite3
import subprocess
import threading
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from farlink.errors import ArgumentError, FarlinkError, JournalError, OperatorError
from farlink.operator.journal import Journal, read
from farlink.operator.journal.rows import Connection, Transition
from farlink.operator.journal.view import Filter, View
from farlink.operator.watch import metrics
from farlink.operator.watch.dashboard import dashboard
from farlink.operator.watch.listen import ListenError, Place, listener_of, listening, place_of
from farlink.operator.watch.monitoring import rules, write
from farlink.operator.watch.report import report_of
from farlink.operator.watch.report_words import markdown
from farlink.operator.watch.tokens import Tokens
from tests.operator.watched import LINES, START_S, Recorded, Told, bundle_in, promtool, status_of

PROMTOOL = promtool()
needs_promtool = pytest.mark.skipif(PROMTOOL is None, reason="promtool is missing")


# Tokens.


@pytest.fixture
def tokens(tmp_path):
    return Tokens(tmp_path / "camp.journal.tokens")


def test_a_token_is_known_by_its_hash_and_gone_when_it_is_revoked(tokens):
    made = tokens.add("dashboard", "read")
    assert re.fullmatch(r"flk1_[0-9a-f]{12}_[\w-]{43}", made)
    assert tokens.path.stat().st_mode & 0o777 == 0o600
    secret = made.split("_", 2)[2]
    assert secret not in tokens.path.read_text()
    found = tokens.of(made)
    assert (found.name, found.right) == ("dashboard", "read")
    assert secret not in repr(found)
    assert "sha256" not in repr(found)

    Tokens(tokens.path).revoke("dashboard")  # another process
    assert tokens.of(made) is None


@pytest.mark.parametrize(
    "change", [lambda t: t[:-1], lambda t: t + "A", lambda t: t.swapcase(), lambda _: "", lambda _: "x" * 9999]
)
def test_what_is_nearly_a_token_is_none(tokens, change):
    made = tokens.add("dashboard", "read")
    assert tokens.of(change(made)) is None
    other = tokens.add("other", "change")
    assert tokens.of(f"{made[:17]}_{other[18:]}") is None, "the secret of another token"


def test_names_and_rights_are_checked(tokens):
    tokens.add("one", "read")
    for name, right in (("one", "read"), ("", "read"), ("a b", "read"), ("x" * 41, "read"), ("two", "write"), ("two", "")):
        with pytest.raises(ArgumentError):
            tokens.add(name, right)
    with pytest.raises(ArgumentError, match="no token 'nobody'"):
        tokens.revoke("nobody")
    assert [one.name for one in tokens.all()] == ["one"]


def test_a_file_that_others_may_read_is_refused(tokens):
    made = tokens.add("one", "read")
    tokens.path.chmod(0o640)
    with pytest.raises(OperatorError, match="others may read"):
        tokens.of(made)


@given(
    data=st.binary(max_size=300)
    | st.recursive(st.none() | st.integers() | st.text(), st.lists).map(lambda v: json.dumps(v).encode())
)
@settings(max_examples=60)
def test_a_file_of_tokens_with_anything_in_it_is_refused(tmp_path_factory, data):
    path = tmp_path_factory.mktemp("t") / "tokens"
    path.touch(0o600)
    path.write_bytes(data)
    with pytest.raises(FarlinkError):
        Tokens(path).all()


@pytest.mark.parametrize("wrong", [{"id": []}, {"id": "x"}, {"made_s": "x"}, {"made_s": 1e99}, {"made_s": None}])
def test_a_token_with_anything_in_it_is_refused(tokens, wrong):
    tokens.add("dashboard", "read")
    content = json.loads(tokens.path.read_text())
    content["tokens"][0].update(wrong)
    tokens.path.write_text(json.dumps(content))
    with pytest.raises(OperatorError, match="is no file of tokens"):
        Tokens(tokens.path).all()


def test_tokens_that_are_made_at_the_same_time_are_all_kept(tokens):
    threads = [threading.Thread(target=Tokens(tokens.path).add, args=(f"t{at}", "read")) for at in range(8)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert len(tokens.all()) == 8


# Where it listens.


@pytest.mark.parametrize(
    "text",
    ["", "80", "x:80", "127.0.0.1", "127.0.0.1:x", "127.0.0.1:70000", "127.0.0.1:-1", "0.0.0.0:80", "[::]:80", "1.2.3.4:80"],
)
def test_addresses_that_are_none_or_remote_are_refused(text):
    with pytest.raises(ArgumentError, match="--listen"):
        place_of(text, allow_remote=False)


def test_loopback_is_local_and_the_rest_is_remote():
    assert place_of("[::1]:80", allow_remote=False) == Place(host="::1", port=80)
    assert place_of("localhost:0", allow_remote=False) == Place(host="127.0.0.1", port=0)
    assert place_of("0.0.0.0:80", allow_remote=True).is_remote


def test_the_socket_of_another_process_stays(tmp_path):
    """One that was started while this one ended."""
    place = Place(path=tmp_path / "camp.journal.http")
    with listening(place) as listener:
        listener.close()
        other = listener_of(place)
    with other, socket.socket(socket.AF_UNIX) as asking:
        asking.connect(str(place.path))
    with listening(place):
        assert place.path.is_socket()
    assert not place.path.exists()


def test_a_place_that_is_taken_is_named(tmp_path):
    with listener_of(Place(host="127.0.0.1", port=0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ListenError, match=f"127.0.0.1 port {port}: address already in use") as caught:
            listener_of(Place(host="127.0.0.1", port=port))
        assert caught.value.exit_code == 1
    path = tmp_path / ("long-" * 30) / "s"
    path.parent.mkdir()
    with listener_of(Place(path=path)):
        assert path.stat().st_mode & 0o777 == 0o600
        with pytest.raises(ListenError, match="another process does"):
            listener_of(Place(path=path))
    listener_of(Place(path=path)).close()  # left over from a killed process
    path.unlink()
    path.write_text("mine")
    with pytest.raises(ListenError, match="is no socket"):
        listener_of(Place(path=path))
    assert path.read_text() == "mine"


# Queries of the journal.


def filled(path: Path, connections: int = 3, rounds: int = 4) -> None:
    with Journal(path) as journal:
        for at in range(connections):
            number = journal.begin(START_S + 1000 * at, {"kansas": 1, "iowa": 2})
            recorded = Recorded(journal, number)
            recorded.at_s = 1000.0 * at
            for _ in range(rounds):
                for line in LINES:
                    recorded.add(1, line, "connecting", attempt=1)
                    recorded.add(5, line, "connected", bars=3)
                    recorded.add(
                        60, line, "dropped", cause="NO CARRIER", bytes_in=100, bytes_out=50, is_injected=line == "iowa"
                    )
            journal.finish(number, START_S + recorded.at_s)


@pytest.fixture(params=["as it is", "being written", "version 2", "damaged"])
def journal(request, tmp_path):
    path = tmp_path / "camp.journal"
    filled(path)
    if request.param == "being written":
        with Journal(path):
            yield path
        return
    if request.param == "version 2":
        with sqlite3.connect(path) as database:
            database.executescript("DROP TABLE fact; DROP TABLE alert; ALTER TABLE transition DROP COLUMN caller;")
            database.executescript("PRAGMA user_version = 2; PRAGMA journal_mode = DELETE;")
    if request.param == "damaged":
        path.write_bytes(path.read_bytes()[:-4096])
    yield path


def test_queries_give_what_reading_all_of_it_gives(journal):
    history, _ = read(journal)
    assert history.transitions
    view = View(journal)
    assert tuple(view.transitions(Filter(), limit=1000)) == history.transitions
    assert tuple(reversed(view.connections())) == history.connections
    assert view.history(since_s=0, most=10**6) == history
    counts, last = view.counts(0)
    assert last == len(history.transitions)
    assert sum(counts.values()) == len(history.transitions)
    connection, rows, left_out = view.connection()
    assert left_out == 0
    assert connection == history.connections[-1]
    assert rows == [one for one in history.transitions if one.connection == connection.number]
    only = view.transitions(Filter("iowa", "dropped", 2, START_S + 1000, START_S + 1500), limit=1000)
    assert {(one.modem, one.state, one.connection) for one in only} == {("iowa", "dropped", 2)}


def test_pages_hold_each_transition_once(tmp_path):
    path = tmp_path / "camp.journal"
    filled(path)
    view, found, after = View(path), [], 0
    while page := view.transitions(Filter(), after=after, limit=7):
        found += page
        after = page[-1].number
    assert [one.number for one in found] == list(range(1, 73))
    newest = view.transitions(Filter(), before=10, limit=3, newest_first=True)
    assert [one.number for one in newest] == [9, 8, 7]


def test_a_reader_leaves_the_journal_as_it_is_and_keeps_nobody_from_writing(tmp_path):
    path = tmp_path / "camp.journal"
    filled(path)
    before = {one.name: one.read_bytes() for one in tmp_path.iterdir()}
    View(path).transitions(Filter())
    assert {one.name: one.read_bytes() for one in tmp_path.iterdir()} == before
    with Journal(path) as journal:
        view = View(path)
        for at in range(20):
            journal.record(Transition(3, "kansas", "failed", START_S + 9000 + at, 1.0, "boot"))
            assert view.transitions(Filter(), newest_first=True, limit=1)[0].number == 73 + at


def test_a_transition_whose_row_was_cut_off_is_left_out(tmp_path):
    path = tmp_path / "camp.journal"
    filled(path)
    with sqlite3.connect(path) as database:
        database.execute("UPDATE transition SET cause = 'x' WHERE number = 5")
    database.close()
    assert 5 not in [one.number for one in View(path).transitions(Filter())]


def test_without_a_journal_or_a_connection_it_says_so(tmp_path):
    with pytest.raises(JournalError, match=r"cannot read .*: File name too long"):
        View(tmp_path / ("x" * 300)).connection()
    with pytest.raises(JournalError, match="there is no journal yet"):
        View(tmp_path / "none").transitions(Filter())
    with Journal(tmp_path / "empty"):
        assert View(tmp_path / "empty").transitions(Filter()) == []
        with pytest.raises(JournalError, match="no connection yet"):
            View(tmp_path / "empty").connection()
    (tmp_path / "text").write_text("not a journal, but long enough to be taken for one")
    with pytest.raises(FarlinkError):
        View(tmp_path / "text").transitions(Filter())


# Reports.


def report_from(tmp_path, steps, *, end: bool = True, lasts_s: float | None = None, most: int = 500_000):
    path = tmp_path / "camp.journal"
    with Journal(path) as journal:
        number = journal.begin(START_S, {"kansas": 1, "iowa": 2})
        recorded = Recorded(journal, number)
        for after_s, line, state, more in steps:
            recorded.add(after_s, line, state, **more)
        if end:
            journal.finish(number, START_S + recorded.at_s)
    connection, rows, left_out = View(path).connection(most=most)
    return report_of(connection, rows, bundle="camp", lasts_s=lasts_s, left_out=left_out)


def test_a_report_has_shares_drops_bytes_and_causes(tmp_path):
    found = report_from(
        tmp_path,
        [
            (0, "kansas", "connecting", {}),
            (0, "iowa", "connecting", {}),
            (10, "kansas", "connected", {"bars": 4}),
            (10, "iowa", "connected", {"bars": 2}),  # both are up from 20 s
            (60, "kansas", "dropped", {"cause": "NO CARRIER", "bytes_in": 3000, "bytes_out": 600}),  # until 80 s
            (10, "kansas", "connecting", {}),
            (0, "kansas", "failed", {"cause": "BUSY"}),
            (10, "iowa", "dropped", {"cause": "injected", "is_injected": True, "bytes_in": 1000, "bytes_out": 0}),  # 100 s
        ],
    )
    assert (found["length_s"], found["is_over"], found["primary"]) == (100.0, True, "kansas")
    assert (found["share_all_up"], found["share_any_up"], found["mean_lines_up"]) == (0.6, 0.9, 1.5)
    assert (found["drops"], found["injected_drops"]) == (1, 1)
    assert (found["bytes_in"], found["throughput_in_bps"], found["throughput_out_bps"]) == (4000, 320.0, 48.0)
    assert found["causes"] == [{"cause": "NO CARRIER", "count": 1}, {"cause": "BUSY", "count": 1}]
    kansas, iowa = found["lines"]
    assert (kansas["line"], kansas["index"], kansas["up_s"], kansas["drops"], kansas["failures"]) == ("kansas", 1, 70.0, 1, 1)
    assert iowa["ups"] == [{"begin_s": 20.0, "end_s": 100.0, "outcome": "injected"}]
    assert iowa["mean_up"]["drops"] == 0, "an injected drop is none of the network"
    assert found["share_by_lines_up"] == pytest.approx([0.1, 0.3, 0.6])
    assert "| kansas | 1 |" in markdown(found)
    assert "all lines up: 60.00 %" in markdown(found)


def test_a_mean_up_time_has_the_interval_of_an_exponential(tmp_path):
    steps = []
    for up_s in (600.0, 1200.0, 3000.0, 7200.0):
        steps += [(1, "kansas", "connecting", {}), (0, "kansas", "connected", {}), (up_s, "kansas", "dropped", {})]
    found = report_from(tmp_path, steps)["lines"][0]["mean_up"]
    # The same times as in the example of `farlink.channels.calls.fits.fit`.
    assert (round(found["mean_s"]), round(found["low_s"]), round(found["high_s"])) == (3000, 1369, 11011)


def test_a_connection_that_lasts_ends_now_and_a_lost_one_with_its_last_transition(tmp_path):
    steps = [(0, "kansas", "connecting", {}), (10, "kansas", "connected", {}), (10, "kansas", "alive", {})]
    lasting = report_from(tmp_path / "a", steps, end=False, lasts_s=80.0) if (tmp_path / "a").mkdir() is None else None
    assert (lasting["length_s"], lasting["share_any_up"], lasting["lines"][0]["ups"][0]["outcome"]) == (100.0, 0.9, "open")
    killed = report_from(tmp_path / "b", steps, end=False) if (tmp_path / "b").mkdir() is None else None
    assert (killed["length_s"], killed["share_any_up"]) == (20.0, 0.5)
    assert (lasting["is_over"], killed["is_over"]) == (False, True)
    assert "- end: it lasts\n" in markdown(lasting)
    assert "- end: unknown\n" in markdown(killed), "nobody saw it end, and no operator says that it lasts"


def test_a_report_says_what_it_leaves_out(tmp_path):
    steps = [(10, "kansas", state, {}) for _ in range(20) for state in ("connecting", "connected", "dropped")]
    whole = report_from(tmp_path / "a", steps) if (tmp_path / "a").mkdir() is None else None
    cut = report_from(tmp_path / "b", steps, most=31) if (tmp_path / "b").mkdir() is None else None
    assert (whole["transitions_left_out"], cut["transitions_left_out"]) == (0, 29)
    assert (whole["drops"], cut["drops"]) == (20, 10)
    assert "left out" not in markdown(whole)
    assert "- left out: the last 29 transitions" in markdown(cut)


def test_only_its_operator_can_say_that_a_connection_lasts(source):
    (open_one,) = source.journal.connections(limit=1)
    lasting = Connection(open_one.number, START_S, None, open_one.indices)
    source.said = status_of(connection=open_one.number)
    assert source.lasts_s(lasting, []) > 0
    source.changed()
    source.said = status_of(connection=open_one.number + 1)
    assert source.lasts_s(lasting, []) is None
    source.changed()
    source.said = None
    assert source.lasts_s(lasting, []) is None


def test_lengths_are_those_of_the_clock_that_is_never_set():
    """The time of day is set back by an hour while a line is up; later the machine starts anew, and its clock at 0."""
    rows = [
        Transition(1, "kansas", "connected", START_S, 500.0, "boot-1"),
        Transition(1, "kansas", "dropped", START_S - 3600 + 60, 560.0, "boot-1"),
        Transition(1, "kansas", "connected", START_S - 3600 + 100, 40.0, "boot-2"),
        Transition(1, "kansas", "dropped", START_S - 3600 + 200, 140.0, "boot-2"),
    ]
    found = report_of(Connection(1, START_S, None, {"kansas": 1}), rows, bundle="camp")
    assert (found["length_s"], found["lines"][0]["up_s"]) == (200.0, 160.0)


STEP = st.tuples(
    st.floats(0, 1e5),
    st.sampled_from([*LINES, "stranger"]),
    st.sampled_from(
        ["connecting", "connected", "dropped", "ended", "failed", "blocked", "held", "waiting", "alive", "handover"]
    ),
    st.booleans(),
    st.none() | st.integers(0, 2**62),
    st.integers(-100_000, 100_000),
    st.sampled_from(["boot-1", "boot-2"]),
)


@given(steps=st.lists(STEP, max_size=40), is_over=st.booleans())
@settings(max_examples=100)
def test_a_report_of_anything_is_a_report(steps, is_over):
    """Clocks that jump, starts of the machine, states in any order: shares stay shares, and JSON can say it."""
    now_s, rows = START_S, []
    for after_s, line, state, injected, count, jump_s, boot in steps:
        now_s += after_s
        rows.append(
            Transition(
                1,
                line,
                state,
                now_s + jump_s,
                now_s - START_S,
                boot,
                bytes_in=count,
                is_injected=injected,
                number=len(rows) + 1,
            )
        )
    found = report_of(Connection(1, START_S, now_s if is_over else None, {"kansas": 1}), rows, bundle="camp")
    json.dumps(found, allow_nan=False)
    markdown(found)
    for share in (found["share_all_up"], found["share_any_up"], *(one["share_up"] for one in found["lines"])):
        assert share is None or -1e-6 <= share <= 1 + 1e-6
    if found["length_s"]:
        assert sum(found["share_by_lines_up"]) == pytest.approx(1, abs=1e-4)


# Metrics.


@pytest.fixture
def source(tmp_path):
    filled(tmp_path / "camp.journal")
    made = Told(bundle_in(tmp_path), ["canary-9c1f"])
    made.said = status_of()
    return made


def samples(*sources) -> dict[str, float]:
    text = metrics.text_of(metrics.registry_of(sources)).decode()
    return {line.rpartition(" ")[0]: float(line.rpartition(" ")[2]) for line in text.splitlines() if line[:1] != "#"}


def test_metrics_say_what_the_operator_says(source):
    found = samples(source)
    assert found['farlink_line_up{bundle="camp",line="kansas"}'] == 1
    assert found['farlink_line_signal_bars{bundle="camp",line="iowa"}'] == 3
    assert found['farlink_line_budget_used_ratio{budget="airtime_day",bundle="camp",line="iowa"}'] == 0.95
    assert found['farlink_line_budget_used_ratio{budget="money_month",bundle="camp",line="iowa"}'] == 1.2
    assert found['farlink_bundle_budget_used_ratio{budget="airtime_day",bundle="camp"}'] == pytest.approx(1900 / 1500)
    assert found['farlink_hook_failures_total{bundle="camp"}'] == 3
    assert found['farlink_bundle_connections_total{bundle="camp"}'] == 3
    assert sum(value for name, value in found.items() if name.startswith("farlink_line_state{")) == 2


def test_counters_count_what_the_journal_gets_from_now_on(source):
    registry = metrics.registry_of([source])
    labels = {"bundle": "camp", "line": "kansas"}
    assert registry.get_sample_value("farlink_line_drops_total", labels) == 0
    with Journal(source.bundle.journal) as journal:
        recorded = Recorded(journal, 3)
        recorded.at_s = 5000
        for injected in (False, False, True):
            recorded.add(1, "kansas", "connected")
            recorded.add(1, "kansas", "dropped", is_injected=injected)
        assert registry.get_sample_value("farlink_line_drops_total", labels) == 2
        assert registry.get_sample_value("farlink_line_injected_drops_total", labels) == 1
        journal.forget(0.0, boot_id="", monotonic_s=0.0)  # what a journal forgets has happened all the same
        assert registry.get_sample_value("farlink_line_drops_total", labels) == 2


def test_a_journal_that_begins_later_or_anew_is_counted_from_its_beginning(tmp_path):
    source = Told(bundle_in(tmp_path))
    registry = metrics.registry_of([source])
    labels = {"bundle": "camp", "line": "kansas"}
    filled(source.bundle.journal)
    assert registry.get_sample_value("farlink_line_drops_total", labels) == 12
    for one in list(tmp_path.iterdir()):
        one.unlink()
    filled(source.bundle.journal, connections=1)
    assert registry.get_sample_value("farlink_line_drops_total", labels) == 16


def test_a_journal_that_cannot_be_read_at_first_is_counted_from_when_it_can(tmp_path):
    """All that it holds would look as if it had happened within a second, and raise alerts."""
    path = tmp_path / "camp.journal"
    filled(path)
    whole = path.read_bytes()
    path.write_bytes(b"no journal")
    registry = metrics.registry_of([Told(bundle_in(tmp_path))])
    metrics.text_of(registry)
    path.write_bytes(whole)
    for _ in range(2):
        assert 'farlink_line_drops_total{bundle="camp",line="kansas"} 0.0' in metrics.text_of(registry).decode()


def test_alerts_of_the_same_label_are_one_sample(source):
    """Prometheus refuses two samples of the same labels."""
    source.said = status_of(alerts=[{"alert": "a" * 41}, {"alert": "a" * 42}])
    assert sum(name.startswith("farlink_alert_raised") for name in metrics_lines(source)) == 1


def metrics_lines(source: Told) -> list[str]:
    return metrics.text_of(metrics.registry_of([source])).decode().splitlines()


def test_an_operator_that_is_away_is_said_and_nothing_is_made_up(source):
    source.said = None
    found = samples(source)
    assert found['farlink_operator_reachable{bundle="camp"}'] == 0
    assert not [name for name in found if name.startswith(("farlink_line_up", "farlink_bundle_up", "farlink_alerts"))]


def test_alerts_are_metrics_without_their_causes_and_callers_are_none(source):
    alert = {
        "alert": "dead-line",
        "line": "iowa",
        "severity": "critical",
        "since_unix_s": 1.0,
        "for_s": 2.0,
        "cause": "x",
        "words": "y",
    }
    source.said = status_of(alerts=[alert, {**alert, "cause": "another"}, {"alert": "bundle-down", "line": None}])
    source.said["lines"][0]["number"] = "881600005001"
    found = samples(source)
    raised = [name for name in found if name.startswith("farlink_alert_raised")]
    assert sorted(raised) == [
        'farlink_alert_raised{alert="bundle-down",bundle="camp",line="",severity=""}',
        'farlink_alert_raised{alert="dead-line",bundle="camp",line="iowa",severity="critical"}',
    ]
    assert "881600005001" not in str(found)


JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(max_size=8),
    lambda x: st.lists(x, max_size=3) | st.dictionaries(st.text(max_size=5), x, max_size=3),
    max_leaves=5,
)


@given(data=st.data())
@settings(max_examples=60)
def test_an_operator_that_says_anything_ends_no_metrics(tmp_path_factory, data):
    """As one of another version does: keys are missing, and values are of other types."""
    source = Told(bundle_in(tmp_path_factory.mktemp("m")))
    said = status_of(alerts=[])
    for part in (said, *said["lines"], said["journal"], said["hooks"], said["costs"]):
        for key in data.draw(st.lists(st.sampled_from(sorted(part)), max_size=3)):
            part[key] = data.draw(JSON)
    source.said = json.loads(json.dumps(said))
    source.said["bundle"] = "camp"
    assert 'farlink_operator_reachable{bundle="camp"}' in samples(source)


def every_metric(source: Told) -> set[str]:
    route = {"route": "mail", "waiting": 2, "sent": 5, "left_out": 0, "failures": 1, "why": "refused"}
    alert = {"alert": "dead-line", "line": "iowa", "severity": "warning"}
    source.said = status_of(alerts=[alert], delivery={"fault": "", "routes": [route], "standby": None})
    return {re.split(r"[{ ]", name)[0] for name in samples(source)}


def test_the_dashboard_and_the_rules_use_metrics_that_exist(source):
    known = every_metric(source)
    used = set(re.findall(r"\bfarlink_\w+", json.dumps(dashboard())))
    assert len(used) >= 20
    assert used <= known
    assert set(re.findall(r"\bfarlink_\w+", rules())) <= known


@needs_promtool
def test_promtool_accepts_the_metrics(source):
    assert len(every_metric(source)) > 45
    text = metrics.text_of(metrics.registry_of([source]))
    done = subprocess.run([PROMTOOL, "check", "metrics"], input=text, capture_output=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


@needs_promtool
def test_the_rules_are_right_and_do_what_they_say(tmp_path):
    _, path = write(tmp_path / "monitoring")
    assert subprocess.run([PROMTOOL, "check", "rules", path], capture_output=True, check=False).returncode == 0
    text = (Path(__file__).parent / "rules_test.yaml").read_text().replace("RULES", str(path))
    (tmp_path / "test.yaml").write_text(text)
    done = subprocess.run([PROMTOOL, "test", "rules", tmp_path / "test.yaml"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@needs_promtool
def test_prometheus_understands_what_the_dashboard_asks(tmp_path):
    asked = [target["expr"] for panel in dashboard()["panels"] for target in panel["targets"]]
    asked = [one.replace("$bundle", ".*").replace("$__rate_interval", "1m") for one in asked]
    made = [{"record": f"asked:{at}", "expr": one} for at, one in enumerate(asked)]
    (tmp_path / "rules.json").write_text(json.dumps({"groups": [{"name": "dashboard", "rules": made}]}))
    done = subprocess.run([PROMTOOL, "check", "rules", tmp_path / "rules.json"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert f"{len(asked)} rules found" in done.stdout


def test_every_rule_is_tried():
    tried = set(re.findall(r"alertname: (\w+)", (Path(__file__).parent / "rules_test.yaml").read_text()))
    assert tried == set(re.findall(r"alert: (\w+)", rules()))


def test_the_dashboard_is_written_as_json_with_panels_that_do_not_overlap(tmp_path):
    path, _ = write(tmp_path / "new" / "folder")
    found = json.loads(path.read_text())
    cells = [
        (x, y)
        for panel in found["panels"]
        for x in range(panel["gridPos"]["x"], panel["gridPos"]["x"] + panel["gridPos"]["w"])
        for y in range(panel["gridPos"]["y"], panel["gridPos"]["y"] + panel["gridPos"]["h"])
    ]
    assert len(cells) == len(set(cells))
    assert max(x for x, _ in cells) == 23


def test_who_asks_at_the_same_time_is_answered_by_one_question(source):
    threads = [threading.Thread(target=source.status) for _ in range(20)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert len(source.asked) == 1


def test_secrets_that_a_modem_echoes_are_hidden(source):
    """Wherever they are, but for names: a line whose name is a PIN keeps it."""
    source.said["lines"][0].update(
        cause="ERROR: canary-9c1f", details={"cell": ["canary-9c1f canary-9c1f"]}, line="canary-9c1f"
    )
    found = source.status()["lines"][0]
    assert (found["cause"], found["details"], found["line"]) == ("ERROR: ***", {"cell": ["*** ***"]}, "canary-9c1f")

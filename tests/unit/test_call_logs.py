"""Logs of calls: the contents of each format, and refusals with the line."""

from __future__ import annotations

import gzip
import json
import math
import os
from collections import Counter
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farlink.channels.calls import journal, logs
from farlink.channels.calls.journal import Event
from farlink.channels.calls.links import links_of, merged
from farlink.channels.calls.samples import redial_times, up_times
from farlink.errors import JournalError

DATA = Path(os.environ.get("FARLINK_DATA") or Path(__file__).parents[3] / "shared" / "data")

JOURNAL = """{"farlink_journal": 1, "bundle": "synthetic"}
{"time": "2026-07-04T12:00:00Z", "link": "m1", "event": "connecting", "attempt": 1}
{"time": "2026-07-04T12:00:20Z", "link": "m1", "event": "connected", "bars": 4, "snr_db": 6.5}

{"time": "2026-07-04T12:50:20Z", "link": "m1", "event": "dropped", "cause": "NO CARRIER"}
{"time": "2026-07-04T12:51:00Z", "link": "m1", "event": "failed"}
{"time": "2026-07-04T12:52:20Z", "link": "m1", "event": "connected"}
{"time": "2026-07-04T13:52:20Z", "link": "m1", "event": "ended"}
"""

# Invented, in the format of a base station: a call that ends; one that breaks off in a transfer, which only shows when the next
# call comes; the end of the former at that time; one that never logs in; and one that is lost without a time.
COMM_LOG = """Connected at Sun May 20 09:00:00 PDT 2018
logged in
0:0:3:0:25:680:-2:484:1908:551:-45.9:-0.03:14.78:14.89:8.16:39.5 GPS,200518,155043
Iridium bars: 5 geolocation: 5820.964,-2328.606,200518,160100
Sun May 20 09:00:43 2018 [sg999] Sending 142 bytes of cmdfile
Sun May 20 09:00:43 2018 [sg999] Sent 142 bytes of cmdfile
0:0:3:0:25:680:1 logout
Disconnected at Sun May 20 09:02:00 PDT 2018 (normal)


Connected at Sun May 20 10:00:00 PDT 2018
logged in
Iridium bars: 4 geolocation: 5820.964,-2328.606,200518,160100
Sun May 20 10:01:00 2018 [sg999] Receiving 8192 bytes of sg0001dz.x00
Sun May 20 10:01:30 2018 [sg999] Received 900 bytes of sg0001dz.x00 (30.0 Bps)
Reconnected at Sun May 20 10:04:30 PDT 2018
logged in
Sun May 20 10:05:00 2018 [sg999] Receiving 100 bytes of sg0001dz.x00
Disconnected at Sun May 20 10:05:02 PDT 2018 (automatic)


Sun May 20 10:05:10 2018 [sg999] Received 100 bytes of sg0001dz.x00 (330.0 Bps)
0:0:4:0:25:680:1 logout
Disconnected at Sun May 20 11:06:00 MDT 2018 (normal)


Connected at Sun May 20 12:00:00 PDT 2018
Disconnected at 2018-05-20T19:00:12Z (hangup)


Connected at Sun May 20 13:00:00 PDT 2018
logged in
Connected at Sun May 20 13:03:00 PDT 2018
logged in
Sun May 20 13:04:00 2018 [sg999] ready to receive sg0002lz.x00
"""

SLOCUM = """glider_sn, 77
deployment_number, 1
log file,open time,disconnect,in-mission,data transfer drop,flight xfer drop
a.log,2023-12-13T19:43:31,False,True,True,False
b.log,2023-12-13T19:45:00,False,True,False,False
c.log,2023-12-13T19:49:03,True,True,False,False
"""


def read(tmp_path, text, name="log.jsonl", **how):
    path = tmp_path / name
    path.write_text(text)
    return logs.read(path, **how)


def row(time, event, link="m1", **more):
    return json.dumps({"time": time, "link": link, "event": event, **more}) + "\n"


def test_journal(tmp_path):
    log = read(tmp_path, JOURNAL)

    assert (log.format, log.lines, len(log.events)) == ("journal", 8, 6)
    (link,) = links_of(log.events)
    assert [(call.up_s, call.outcome, call.cause) for call in link.calls] == [
        (3000, "dropped", "NO CARRIER"),
        (3600, "ended", ""),
    ]
    assert (link.calls[0].bars, link.dials, link.failed) == (4, 1, 1)
    assert log.events[1].snr_db == 6.5
    assert redial_times([link]).times_s.tolist() == [120]


def test_csv_with_other_columns_comments_and_semicolons(tmp_path):
    text = "# by hand\nEvent;Link;Time;SNR_dB;who\nconnected;m1;1e9;5.5;me\ndropped;m1;1000000060;;me\n"

    log = read(tmp_path, text, "calls.txt")

    assert log.format == "csv"
    assert [event.kind for event in log.events] == ["connected", "dropped"]
    assert log.events[0].snr_db == 5.5
    assert math.isnan(log.events[1].snr_db)
    assert log.events[1].source == "calls.txt, line 4"


def test_seaglider_calls_without_logout_are_drops(tmp_path):
    log = read(tmp_path, COMM_LOG, "comm.log")
    (link,) = links_of(log.events)

    assert (log.format, link.name) == ("seaglider", "sg999")
    found = [(call.outcome, call.up_s, call.cause, call.bars) for call in link.calls]
    assert found[0] == ("ended", 120, "", 5)
    assert found[1] == ("dropped", 90, "during a transfer", 4)
    assert found[2] == ("ended", 90, "", None)  # in another zone; the older call's end is not its own
    assert found[3] == ("dropped", 12, "before login", None)
    assert found[4][0] == "dropped"
    assert math.isnan(found[4][1])
    assert found[5] == ("dropped", 60, "outside a transfer", None)
    assert link.calls[4].source == "comm.log, line 31"


def test_calls_that_end_on_purpose_are_censored(tmp_path):
    (link,) = links_of(read(tmp_path, COMM_LOG, "comm.log").events)

    sample = up_times([link])

    assert sample.times_s.tolist() == [120, 90, 90, 12, 60]
    assert sample.is_observed.tolist() == [False, True, False, True, True]
    assert sample.note == "1 drops without a known time are left out"


def test_slocum_calls_have_no_ends(tmp_path):
    (link,) = links_of(read(tmp_path, SLOCUM, "77-1.csv").events)

    assert link.name == "slocum-77"
    assert [call.outcome for call in link.calls] == ["dropped", "dropped", "ended"]
    assert [call.cause for call in link.drops] == ["during a transfer", "outside a transfer"]
    assert up_times([link]).times_s.size == 0
    assert redial_times([link]).times_s.tolist() == [89, 243]
    assert "from the beginning of its call" in redial_times([link]).note


@pytest.mark.parametrize(
    ("text", "name"), [(COMM_LOG, "x"), (SLOCUM, "x"), (JOURNAL, "x"), ("time,link,event\n1e9,a,connected\n", "x")]
)
def test_formats_are_recognised_by_their_content_compressed_or_not(tmp_path, text, name):
    path = tmp_path / name
    path.write_bytes(gzip.compress(text.encode()))

    assert logs.read(path).events == read(tmp_path, text, name).events


def test_only_newlines_end_a_line(tmp_path):
    """A cause may contain other line separators; lines may end as on Windows."""
    text = (
        row(1e9, "connected").replace("\n", "\r\n")
        + '{"time": 1000000009, "link": "m1", "event": "dropped", "cause": "a\u2028b"}\n'
    )

    log = read(tmp_path, text)

    assert (log.lines, log.events[1].cause) == (2, "a\u2028b")


def test_a_link_in_two_logs_is_one_link(tmp_path):
    first = links_of(read(tmp_path, row(1e9, "connected") + row(1e9 + 60, "dropped"), "a.jsonl").events)
    second = links_of(read(tmp_path, row(1e9 + 100, "connected") + row(1e9 + 160, "dropped"), "b.jsonl").events)

    (link,) = merged([second, first])

    assert [call.start_s for call in link.calls] == [1e9, 1e9 + 100]
    with pytest.raises(JournalError, match=r"two logs have the link m1 at 2001-09-09T01:46:40Z"):
        merged([first, first])


def test_a_link_that_is_up_when_the_log_ends_is_censored(tmp_path):
    text = row(1e9, "connected") + row(1e9, "connected", "m2") + row(1e9 + 500, "dropped", "m2")

    first, _ = links_of(read(tmp_path, text).events)

    assert (first.calls[0].outcome, first.calls[0].up_s) == ("open", 500)


BAD = {
    "drop before connect": (row(1e9, "dropped"), "log.jsonl, line 1: m1 is dropped and was not connected"),
    "ended before connect": (row(1e9, "failed") + row(1e9, "ended"), "line 2: m1 is ended and was not connected"),
    "connected twice": (
        row(1e9, "connected") + row(1e9 + 9, "connected"),
        "line 2: m1 is connected and was connected before (log.jsonl, line 1)",
    ),
    "dialled while up": (row(1e9, "connected") + row(1e9 + 9, "connecting"), "line 2: m1 is connecting and was connected"),
    "clock goes back": (row(1e9, "connected") + row(1e9 - 30, "dropped"), "line 2: the clock jumps back by 30 s"),
    "clock goes back between links": (
        row(1e9, "connected") + row(1e9 - 30, "connected", "m2"),
        "line 2: the clock jumps back by 30 s, to 2001-09-09T01:46:10Z",
    ),
    "clock goes far ahead": (row(1e9, "connected") + row(1.1e9, "dropped"), "line 2: the clock jumps ahead by 1157 days"),
    "clock was not set": (row(60, "connected"), "line 1: time: 60 is not between 1990 and 2200: the clock jumps"),
    "clock parts from the steady one": (
        row(1e9, "connected", monotonic_s=5) + row(1e9 + 3600, "dropped", monotonic_s=65),
        "line 2: the clock jumps by +3540 s against monotonic_s",
    ),
    "no such event": (row(1e9, "lost"), "line 1: there is no event 'lost'"),
    "no time": ('{"link": "a", "event": "connected"}\n', "line 1: time is missing"),
    "time of no kind": (row("yesterday", "connected"), "line 1: time: 'yesterday' is no time"),
    "time that is no number": (row("nan", "connected"), "line 1: time: nan is not between"),
    "no link": (row(1e9, "connected", link=""), "line 1: link is missing"),
    "snr without its value": (row(1e9, "snr"), "line 1: event snr without snr_db"),
    "snr that is text": (row(1e9, "connected", snr_db="good"), "line 1: snr_db: 'good' is no number"),
    "snr without end": (row(1e9, "connected", snr_db=math.inf), "line 1: snr_db: 'inf' is no number"),
    "bars out of range": (row(1e9, "connected", bars=9), "line 1: bars: 9 is not one of 0 to 5"),
    "not JSON": (row(1e9, "connected") + "{oops\n", "line 2: not JSON: {oops"),
    "JSON of another kind": (row(1e9, "connected") + "[1, 2]\n", "line 2: not a JSON object"),
    "nested without end": ("{" * 5 + "\n" + "[" * 100_000, "line 1: not JSON"),
}


@pytest.mark.parametrize(("text", "message"), BAD.values(), ids=BAD)
def test_bad_journals_are_refused_with_their_line(tmp_path, text, message):
    with pytest.raises(JournalError) as error:
        links_of(read(tmp_path, text).events)

    assert message in error.value.message
    assert error.value.remedy


BAD_FILES = {
    "empty": ("a.jsonl", b"\n\n", "the file is empty"),
    "unknown": ("a.txt", b"hello\nworld\n", "no known log of calls"),
    "no events": ("a.jsonl", b'{"farlink_journal": 1}\n', "no event in 1 lines"),
    "not text": ("a.csv", b"time,link,event\n1e9,\xff\xfe,up\n", "a.csv, line 2: not text"),
    "broken gzip": ("a.gz", b"\x1f\x8b\x08\x00abc", "not a complete gzip file"),
    "csv with a cell too many": ("a.csv", b"time,link,event\n1e9,a,connected,x\n", "a.csv, line 2: 4 cells in 3 columns"),
    "csv with a cell too few": ("a.csv", b"time,link,event\n1e9,a\n", "a.csv, line 2: event is missing"),
    "seaglider end without a beginning": (
        "comm.log",
        b"Disconnected at Sun May 20 09:07:59 PDT 2018 (normal)\n",
        "comm.log, line 1: disconnected without being connected",
    ),
    "seaglider zone": ("c", b"Connected at Sun May 20 09:07:59 XYZ 2018\n", "c, line 1: time zone XYZ is not known"),
    "seaglider day": ("c", b"Connected at Sun May 35 09:07:59 PDT 2018\n", "c, line 1: May 35 09:07:59 2018 is no time"),
    "seaglider words": ("c", b"Connected at noon\n", "c, line 1: 'noon' is no time"),
    "slocum truth": ("s.csv", SLOCUM.replace("True,True,F", "Perhaps,True,F").encode(), "line 6: disconnect: 'Perhaps'"),
    "slocum row": ("s.csv", (SLOCUM + "d.log,2023-12-14T00:00:00\n").encode(), "s.csv, line 7: 2 cells in 6 columns"),
}


@pytest.mark.parametrize(("name", "content", "message"), BAD_FILES.values(), ids=BAD_FILES)
def test_bad_files_are_refused(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)

    with pytest.raises(JournalError) as error:
        logs.read(tmp_path / name)

    assert message in error.value.message


def test_missing_file_directory_and_unknown_format_are_refused(tmp_path):
    with pytest.raises(JournalError, match="No such file"):
        logs.read(tmp_path / "none.jsonl")
    with pytest.raises(JournalError, match="is a directory"):
        logs.read(tmp_path)
    with pytest.raises(JournalError, match="no format of logs 'seeglider'") as error:
        logs.read(tmp_path, "seeglider")
    assert "did you mean 'seaglider'?" in error.value.remedy
    with pytest.raises(JournalError, match="no column time"):
        read(tmp_path, "a,b\n1,2\n", format="csv")
    with pytest.raises(JournalError, match="no column 'log file'"):
        read(tmp_path, "a,b\n1,2\n", format="slocum")


events = st.builds(
    Event,
    time_s=st.integers(800_000_000_000, 4_000_000_000_000).map(lambda ms: ms / 1000),
    link=st.text("abcæ-1 ", min_size=1).map(str.strip).filter(bool),
    kind=st.sampled_from([kind for kind in journal.KINDS if kind != "snr"]),
    cause=st.text(max_size=20),
    snr_db=st.floats(-30, 30),
    bars=st.none() | st.integers(0, 5),
    monotonic_s=st.floats(0, 1e9),
)


@given(events)
def test_a_written_journal_is_read_back(event):
    found = journal.parse_line(journal.line_of(event), "")

    assert found == event


@given(st.text())
def test_no_line_crashes_the_reader(text):
    for module in logs.FORMATS.values():
        with suppress(JournalError):
            list(module.events(["Connected at 2023-05-03T16:36:07Z", *text.split("\n")], "x"))


def test_writing_a_journal(tmp_path):
    written = [Event(1e9, "a", "connected", bars=3), Event(1e9 + 0.5, "a", "dropped", "NO CARRIER")]

    path = journal.write(written, tmp_path / "j.jsonl")

    assert json.loads(path.read_text().splitlines()[0]) == {"farlink_journal": 1}
    found = logs.read(path).events
    assert [(event.time_s, event.kind, event.cause, event.bars) for event in found] == [
        (1e9, "connected", "", 3),
        (1e9 + 0.5, "dropped", "NO CARRIER", None),
    ]


SEAGLIDERS = {
    "sg124": (284, 13),
    "sg178": (216, 5),
    "sg179": (498, 14),
    "sg236": (183, 7),
    "sg272": (514, 24),
    "sg512": (161, 7),
    "sg677": (866, 126),
}


@pytest.mark.parametrize(("glider", "counts"), SEAGLIDERS.items(), ids=SEAGLIDERS)
def test_measured_seaglider_logs(glider, counts):
    """Counts of `Connected at` and `Reconnected at`, and of calls without a logout, taken from the files by hand (grep)."""
    found = sorted((DATA / "iridium-seaglider-commlog").glob(f"{glider}_*.gz"))
    if not found:
        pytest.skip(f"{DATA}/iridium-seaglider-commlog is missing: set FARLINK_DATA to the directory of the measured data")
    log = logs.read(found[0])
    (link,) = links_of(log.events)

    lines = gzip.decompress(found[0].read_bytes()).decode().splitlines()
    begun = sum(line.startswith(("Connected at", "Reconnected at")) for line in lines)
    logouts = sum(line.endswith(" logout") for line in lines)
    assert link.name == glider
    assert (len(link.calls), len(link.drops)) == (begun, begun - logouts) == counts
    known = [call.up_s for call in link.calls if not math.isnan(call.up_s)]
    assert min(known) >= 0
    assert max(known) < 1500  # a call of a Seaglider takes minutes


def test_measured_slocum_log():
    """The counts of the author's own summary beside the table."""
    path = DATA / "iridium-slocum-disconnects" / "1012-3.csv"
    if not path.is_file():
        pytest.skip(f"{path} is missing: set FARLINK_DATA to the directory of the measured data")
    summary = json.loads(path.with_suffix(".json").read_text())

    (link,) = links_of(logs.read(path).events)

    assert len(link.calls) == summary["N total calls"] == 603
    assert len(link.drops) == summary["N drops"]
    causes = Counter(call.cause for call in link.drops)
    assert causes["during a transfer"] == summary["N data transfer drops"]

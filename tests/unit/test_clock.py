"""Times of logs, with a zone and without, and around changes of the clock."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farlink.channels.calls import logs
from farlink.channels.calls.clock import Clock
from farlink.channels.calls.links import links_of
from farlink.errors import JournalError


def test_a_time_without_a_zone_is_refused():
    with pytest.raises(JournalError, match="'2026-07-04 12:00' has no zone") as caught:
        Clock().seconds("2026-07-04 12:00", "a.csv, line 2")

    assert "--zone" in caught.value.remedy


@pytest.mark.parametrize(
    ("zone", "text", "utc"),
    [
        ("UTC", "7/16/2004 13:51", "2004-07-16T13:51:00"),
        ("+02:00", "7/16/2004 13:51:09", "2004-07-16T11:51:09"),
        ("-0330", "2004-07-16T13:51", "2004-07-16T17:21:00"),
        ("Europe/Berlin", "2026-03-29 01:59:59", "2026-03-29T00:59:59"),
        ("Europe/Berlin", "2026-03-29 03:00:00", "2026-03-29T01:00:00"),
        ("Europe/Berlin", "2026-07-04T12:00:00Z", "2026-07-04T12:00:00"),
        (None, "2026-07-04T12:00:00+02:00", "2026-07-04T10:00:00"),
        (None, "1089985860", "2004-07-16T13:51:00"),
    ],
)
def test_times_are_read_in_their_zone(zone, text, utc):
    assert Clock(zone).seconds(text, "") == datetime.fromisoformat(utc).replace(tzinfo=UTC).timestamp()


@pytest.mark.parametrize("text", ["16/7/2004 13:51", "7/16/2004", "7/16/04 13:51", "2/30/2004 1:00", "7/16/2004 24:01"])
def test_invalid_times_are_refused(text):
    with pytest.raises(JournalError, match=r"is no time|has no zone"):
        Clock().seconds(text, "a.csv, line 2")


def test_a_missing_time_is_refused():
    with pytest.raises(JournalError, match="was left out in Europe/Berlin"):
        Clock("Europe/Berlin").seconds("2026-03-29 02:30", "a.csv, line 2")


@pytest.mark.parametrize("zone", ["Europa/Berlin", "../etc/passwd", "", "+25:00", "\0", "a" * 5000])
def test_an_unknown_zone_is_refused(zone):
    with pytest.raises(JournalError, match="is not known"):
        Clock(zone)


@given(
    start=st.datetimes(datetime(2024, 10, 1), datetime(2024, 11, 30)),
    steps=st.lists(st.integers(0, 1800), min_size=1, max_size=200),
    zone=st.sampled_from(["Europe/Berlin", "America/Denver", "Australia/Lord_Howe", "UTC"]),
)
def test_no_hour_is_lost_when_clocks_are_set_back(start, steps, zone):
    """A log with an event every half hour, written in local time and read back, keeps every time."""
    clock, now, begun = Clock(zone), start.replace(tzinfo=UTC), False
    for step in steps:
        now += timedelta(seconds=step)
        wall = now.astimezone(ZoneInfo(zone))
        # Only the second of two equal hours is ambiguous at the first line of a log.
        if not begun and wall.fold:
            continue
        begun = True
        assert clock.seconds(wall.replace(tzinfo=None).isoformat(), "") == now.timestamp()


def test_a_call_over_the_change_of_clocks_keeps_its_length(tmp_path: Path):
    rows = ["time,link,event", "10/27/2024 1:30,m1,connected", "10/27/2024 2:40,m1,dropped", "10/27/2024 2:10,m1,connected",
            "10/27/2024 3:30,m1,dropped"]  # fmt: skip
    path = tmp_path / "log.csv"
    path.write_text("\n".join(rows) + "\n")

    (link,) = links_of(logs.read(path, zone="Europe/Berlin").events)

    assert [call.end_s - call.start_s for call in link.calls] == [4200.0, 4800.0]

"""Logs of links that report every second: 5G modems and a Starlink dish, handovers, and refusals with the row."""

from __future__ import annotations

import io
import itertools
import json
import os
import tomllib
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.conftest import assert_refused

from farlink.channels.calls import causes, logs, replay, samples
from farlink.channels.calls.handovers import interrupted
from farlink.channels.calls.links import Call, Link, links_of
from farlink.channels.calls.study import load, study
from farlink.errors import ArgumentError, JournalError
from farlink.plot import call_drops

pytest.importorskip("scipy.stats")
pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

DATA = Path(os.environ.get("FARLINK_DATA") or Path(__file__).parents[3] / "shared" / "data") / "starlink-5g-fjordlink"
BEGIN = datetime(2025, 3, 27, 9, 0, tzinfo=UTC)


def stamp(time_s):
    return (BEGIN + timedelta(seconds=time_s)).isoformat()


def modem_rows(cells, *, link="m1", begin_s=0.0, sinr=5.0):
    """A reading a second; `cells` maps its number to the cell from then on."""
    rows, cell = [], ""
    for second in range(max(cells) + 1):
        cell = cells.get(second, cell)
        ratio = "" if not cell else str(sinr)
        rows.append({"identity": link, "@timestamp": stamp(begin_s + second), "lte.lCurrentCellid": cell, "lte.lSinr": ratio})
    return rows


def write(path, rows):
    pq.write_table(pa.Table.from_pylist(rows), path)
    return path


# Up on cell 1 from 0, cell 2 from 20, none from 30 to 33, cell 2 again, cell 3 from 50, the log ends at 60.
FIRST = modem_rows({0: "1", 20: "2", 30: "", 33: "2", 50: "3", 60: "3"})


def test_a_change_of_cell_is_a_handover_and_loss_of_cell_a_drop(tmp_path):
    log = logs.read(write(tmp_path / "a.parquet", FIRST))
    (link,) = links_of(log.events)

    assert (log.format, log.lines, link.name) == ("fjordlink-5g", 61, "m1")
    begin_s = BEGIN.timestamp()
    assert [time_s - begin_s for time_s in link.handovers_s] == [20, 50]
    assert [(call.start_s - begin_s, call.end_s - begin_s, call.outcome) for call in link.calls] == [
        (0, 30, "dropped"),
        (33, 60, "open"),
    ]
    assert link.drops[0].cause == "no serving cell"
    assert len(link.snr) == 58
    assert replay.down_times([link])[0].outages == [(30, 33)]


def test_a_call_continues_in_the_next_file(tmp_path):
    first = write(tmp_path / "a.parquet", FIRST)
    second = write(tmp_path / "b.parquet", modem_rows({0: "3", 30: "4", 40: "4"}, begin_s=61.0))

    _, (link,) = load([second, first])

    begin_s = BEGIN.timestamp()
    assert [(call.start_s - begin_s, call.end_s - begin_s) for call in link.calls] == [(0, 30), (33, 101)]
    sample = samples.handover_times([link])
    # From 20 to the drop at 30, censored; from 50 to 91; from 91 to the end at 101, censored.
    assert sample.times_s.tolist() == [10, 41, 10]
    assert sample.is_observed.tolist() == [False, True, False]


def test_state_is_unknown_after_missing_readings(tmp_path):
    rows = [*modem_rows({0: "1", 9: "1"}), *modem_rows({0: "2", 9: "2"}, begin_s=100.0)]

    (link,) = links_of(logs.read(write(tmp_path / "a.parquet", rows)).events)

    assert [(call.up_s, call.outcome) for call in link.calls] == [(9, "ended"), (9, "open")]
    assert link.handovers_s == []


def test_modems_whose_readings_interleave(tmp_path):
    rows = modem_rows({0: "1", 40: "2", 60: "2"}) + modem_rows({0: "7", 55: "8", 60: "8"}, link="m2", begin_s=0.4)

    one, two = links_of(logs.read(write(tmp_path / "a.parquet", rows)).events)

    assert [len(link.handovers_s) for link in (one, two)] == [1, 1]
    assert replay.down_times([one, two])[1].outages == []


def test_handovers_without_a_drop_are_studied(tmp_path):
    rng = np.random.default_rng(3)
    cells = dict(enumerate(np.cumsum(rng.integers(5, 60, 40)).tolist()))
    rows = modem_rows({0: "0", **{second: str(number + 1) for number, second in cells.items()}})

    found = study([write(tmp_path / "a.parquet", rows)], replicates=49)

    times = found.whole.times["handover"]
    assert times.sample.events == 39
    assert times.of("weibull").fit.parameters["shape"] > 1.3  # nearly uniform from 5 s on
    assert found.whole.drops == 0
    assert json.dumps(found.to_dict())
    assert len(found.to_dict()["handovers"]["m1"]) == 40
    pytest.importorskip("matplotlib")
    drawn = call_drops.figure(found)
    titles = [panel.get_title(loc="left") for panel in drawn.axes]
    assert "Density of the time between handovers" in titles
    assert "Not yet handed over after" in titles


def test_bundle_fit_reads_a_log_of_handovers(farlink, tmp_path):
    cells = {0: "a", **{20 * number + 7 * (number % 3): str(number) for number in range(1, 30)}}
    write(tmp_path / "modem.parquet", modem_rows(cells))

    done = farlink("bundle", "fit", "modem.parquet", "--replicates", "49", "--replay", "r.toml")

    assert done.returncode == 0, done.stderr
    assert "29 handovers" in done.stdout
    assert "Time from handover to handover" in done.stdout
    # Without drops there is no process to fit and nothing to replay.
    assert "[link.channel]" not in done.stdout
    assert "schedule = [\n]" in (tmp_path / "r.toml").read_text()
    refused = farlink("bundle", "fit", "modem.parquet", "--replicates", "49", "-o", "p.toml")
    assert_refused(refused, ["neither up nor redial times can be fitted", "needs 2 drops, there are 0"])


def test_reported_handovers_are_matched_with_drops(tmp_path):
    (link,) = links_of(logs.read(write(tmp_path / "a.parquet", FIRST)).events)

    (cause,) = [one for one in causes.causes([link], match_s=12) if "handover" in one.name]

    assert (cause.drops, cause.of) == (1, 1)
    assert all(one.is_observed for one in causes.handovers(link))


def test_a_handover_interrupts_for_the_given_time(tmp_path):
    (link,) = links_of(logs.read(write(tmp_path / "a.parquet", FIRST)).events)

    (short,) = replay.down_times([link], handover_s=0.2)
    (long,) = replay.down_times([link], handover_s=12)

    assert short.outages == [(20, 20.2), (30, 33), (50, 50.2)]
    # From the handover at 20 into the drop from 30 to 33; from the handover at 50 beyond the end of the log.
    assert long.outages == [(20, 33), (50, 60)]
    assert replay.scenario_text([link], handover_s=0.2).splitlines()[0].endswith("0.2 s after each of 2 handovers are assumed.")
    for wrong_s in (0, 61, -1):
        with pytest.raises(JournalError, match="out of range"):
            replay.down_times([link], handover_s=wrong_s)
    with pytest.raises(ArgumentError, match="handover_s must be a number, not nan"):
        replay.down_times([link], handover_s=float("nan"))


@given(
    st.lists(st.floats(0, 100), max_size=12).map(sorted),
    st.lists(st.floats(0, 100), min_size=2, max_size=6, unique=True).map(sorted),
    st.floats(0.001, 30),
)
def test_a_link_is_up_except_during_drops_and_handovers(handovers_s, bounds, handover_s):
    calls = [Call(begin, end, "dropped") for begin, end in zip(bounds[::2], bounds[1::2], strict=False)]
    kept = [time_s for time_s in handovers_s if any(call.start_s <= time_s <= call.end_s for call in calls)]
    link = Link("m", calls, handovers_s=kept, first_s=0, last_s=100)

    cut = interrupted(link, handover_s)

    for time_s in np.linspace(0, 100, 401):
        was_up = [call for call in calls if call.start_s < time_s < call.end_s]
        # A handover affects its own call only.
        just = any(one <= time_s < one + handover_s for call in was_up for one in kept if call.start_s <= one <= call.end_s)
        near = [abs(time_s - edge) for edge in (*bounds, *kept, *(one + handover_s for one in kept))]
        if min(near, default=1.0) > 1e-9:
            assert any(call.start_s < time_s < call.end_s for call in cut.calls) == (bool(was_up) and not just)


def test_bundle_fit_takes_the_length_of_handovers(farlink, tmp_path):
    write(tmp_path / "modem.parquet", FIRST)
    fit = ("bundle", "fit", "modem.parquet", "--replicates", "49")

    done = farlink(*fit, "--replay", "-", "--handover-s", "0.2")

    assert done.returncode == 0, done.stderr
    assert tomllib.loads(done.stdout)["link"]["channel"]["schedule"] == [[20, 20.2], [30, 33], [50, 50.2]]
    assert_refused(farlink(*fit, "--handover-s", "0.2"), ["--handover-s changes what --replay writes", "--replay FILE"])
    assert_refused(farlink(*fit, "--replay", "-", "--handover-s", "99"), ["--handover-s: 99 is out of range", "0.001 to 60"])
    (tmp_path / "still.csv").write_text("time,link,event\n1e9,m,connected\n1000000005,m,dropped\n1000000009,m,connected\n")
    still = farlink("bundle", "fit", "still.csv", "--replicates", "49", "--replay", "-", "--handover-s", "1")
    assert_refused(still, ["the log has no handovers"])


def test_a_handover_of_a_link_that_is_down_is_refused(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("time,link,event\n1e9,m,connected\n1000000005,m,dropped\n1000000009,m,handover\n")

    with pytest.raises(JournalError, match=r"a\.csv, line 4: m has a handover and was not connected"):
        links_of(logs.read(path).events)


def dish_rows(states, lost=None, count=60):
    rows, state = [], "CONNECTED"
    for second in range(count):
        state = states.get(second, state)
        share = (lost or {}).get(second, 0.0)
        rows.append({"@timestamp": stamp(second), "dish_status.state": state, "dish_status.pop_ping_drop_rate": share})
    return rows


def test_a_dish_drops_when_disconnected_or_when_all_pings_are_lost(tmp_path):
    rows = dish_rows({10: "SEARCHING", 14: "CONNECTED"}, {30: 0.9, 40: 1.0, 41: 1.0})

    log = logs.read(write(tmp_path / "dish.parquet", rows))
    (link,) = links_of(log.events)

    assert log.format == "fjordlink-starlink"
    begin_s = BEGIN.timestamp()
    assert [(call.start_s - begin_s, call.end_s - begin_s, call.cause) for call in link.calls] == [
        (0, 10, "state SEARCHING"),
        (14, 40, "all pings lost"),
        (42, 59, ""),
    ]


def without(rows, number, key, value):
    changed = [dict(row) for row in rows]
    changed[number][key] = value
    return changed


BAD = {
    "another table": ([{"a": 1}], "no known table of calls"),
    "no time": (without(FIRST, 3, "@timestamp", "noon"), "row 4: time: 'noon' is no time"),
    "no zone": (without(FIRST, 3, "@timestamp", "2025-03-27T10:00:00"), "row 4: time"),
    "clock back": (without(FIRST, 3, "@timestamp", stamp(-9)), "row 4: the clock of m1 jumps back by 11 s"),
    "no modem": (without(FIRST, 3, "identity", ""), "row 4: identity is missing"),
    "signal": (without(FIRST, 3, "lte.lSinr", "good"), "row 4: lte.lSinr: 'good' is no number"),
    "share of pings": (dish_rows({}, {7: 1.5}), "row 8: dish_status.pop_ping_drop_rate: '1.5' is no share"),
    "signal missing": (
        [{key: value for key, value in row.items() if "Sinr" not in key} for row in FIRST],
        "no column lte.lSinr",
    ),
}


@pytest.mark.parametrize(("rows", "said"), BAD.values(), ids=BAD)
def test_bad_tables_are_refused_with_their_row(tmp_path, rows, said):
    with pytest.raises(JournalError, match=said) as error:
        logs.read(write(tmp_path / "a.parquet", rows))
    assert error.value.remedy


def test_text_and_table_formats_are_distinguished(tmp_path):
    table, text = write(tmp_path / "a.parquet", FIRST), tmp_path / "a.csv"
    text.write_text("time,link,event\n1e9,m,connected\n")

    assert logs.read(table, "fjordlink-5g").format == "fjordlink-5g"
    with pytest.raises(JournalError, match=r"a table .* as csv is"):
        logs.read(table, "csv")
    with pytest.raises(JournalError, match=r"no table .* as fjordlink-5g is"):
        logs.read(text, "fjordlink-5g")
    cut = tmp_path / "cut.parquet"
    cut.write_bytes(table.read_bytes()[:-40])
    with pytest.raises(JournalError, match="not a complete Parquet file"):
        logs.read(cut)


# Changes of the cell, and periods without a cell, counted directly from the columns.
MEASURED = {"5G-D2-WAVELAB": 3, "5G-DTAG-WAVELAB": 1, "CAU-0C": 1, "CAU-4329": 2}


def test_measured_5g_modems():
    paths = sorted((DATA / "5g-router").glob("*.gzip"))
    if not paths:
        pytest.skip(f"{DATA} is missing: set FARLINK_DATA to the directory of the measured data")
    _, links = load(paths)

    assert {link.name: len(link.drops) for link in links} == MEASURED
    columns = pa.concat_tables(
        [pq.read_table(io.BytesIO(path.read_bytes()), columns=["identity", "lte.lCurrentCellid"]) for path in paths]
    ).to_pydict()
    for link in links:
        cells = [
            cell for name, cell in zip(columns["identity"], columns["lte.lCurrentCellid"], strict=True) if name == link.name
        ]
        changes = sum(a != b and bool(a) and bool(b) for a, b in itertools.pairwise(cells))
        # A change between two files shows in neither of them.
        assert 0 <= changes - len(link.handovers_s) <= 4
        assert len(link.calls) == len(link.drops) + 1
        assert link.connected_s > 17_800


def test_a_measured_dish_never_drops():
    paths = sorted((DATA / "starlink").glob("*.gzip"))
    if not paths:
        pytest.skip(f"{DATA} is missing: set FARLINK_DATA to the directory of the measured data")
    _, (link,) = load(paths)

    assert link.drops == []
    assert link.connected_s == pytest.approx(8 * 3620, abs=150)
    with pytest.raises(JournalError, match="no drop in lines 1 to 28800") as error:
        study(paths)
    assert "above 2.69 h" in error.value.remedy

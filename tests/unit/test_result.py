"""Results and their output formats."""

from __future__ import annotations

import io
import json
import math
import os
import signal
import threading
import time
from dataclasses import replace

import pytest

import farlink
import farlink.engines
from farlink.errors import FarlinkError, MissingExtraError, OutputError, ScenarioError
from farlink.output import whole_file
from farlink.report.page import render_report
from farlink.result import Result
from farlink.scenario import from_data


@pytest.fixture(scope="module")
def result(tmp_path_factory):
    from tests.conftest import SMALL

    path = tmp_path_factory.mktemp("scenario") / "small.toml"
    path.write_text(SMALL)
    return farlink.run(path)


SHOWN = [
    "goodput_bps", "goodput_fraction", "delay_mean_s", "delay_p99_s", "loss_fraction", "timeouts", "transfer_time_mean_s",
]  # fmt: skip


def made(**columns: list[float]) -> Result:
    """A result of one run with chosen values."""
    head = {"engine": ["packet"], "flow": ["all"], "transport": ["sack"]}
    return Result(
        scenario=from_data({"title": "<b>"}),
        version="1.2.3",
        seed=1,
        points=[{}],
        columns={"point": [0], **head, "run": [0], "seed": [9], "status": ["ok"], "reason": [""], **columns},
        summary_columns={"point": [0], **head, "runs": [1], **columns, **{f"{name}_ci95": [math.nan] for name in columns}},
    )


def test_bundle_statistics_are_printed_for_each_point():
    scenario = {
        "link": {"rate_bps": 1e4, "delay_s": 0.1, "bundle": {"lines": 2, "calls": {"schedule": [[[10, 20]], []]}}},
        "transport": {"udp": {"kind": "udp"}},
        "flow": {"data": {"transport": "udp", "traffic": {"kind": "cbr", "rate_bps": 1e3, "payload_bytes": 100}}},
        "duration_s": 40,
        "runs": 2,
        "grid": {"link.bundle.on_drop": ["lose", "requeue"]},
    }

    sentences = farlink.run(scenario).bundles()

    said = "all lines up 75 % of the time, at least one 100 %; 1 drops a run at link.bundle.on_drop = "
    assert sentences == [said + "lose", said + "requeue"]
    del scenario["link"]["bundle"], scenario["grid"]
    assert farlink.run(scenario).bundles() == []


def test_a_flow_that_cannot_finish_is_named_with_the_time_of_its_last_progress():
    dead = {
        "link": {"rate_bps": 1e6, "delay_s": 0.1, "channel": {"kind": "loss", "loss": 0.0}},
        "transport": {"tcp": {"kind": "tcp"}},
        "flow": {"file": {"transport": "tcp", "traffic": {"kind": "file", "bytes": 1e4}}},
        "runs": 2,
        "grid": {"link.channel.loss": [0.0, 1.0]},
    }

    (sentence,) = farlink.run(dead).stalls()

    assert sentence.startswith("file in 2 of 2 runs at link.channel.loss = 1.0: stalled since 0 s")


def test_a_file_still_arriving_is_unfinished_and_not_stalled():
    long = {
        "duration_s": 10,
        "runs": 2,
        "link": {"rate_bps": 1e6, "delay_s": 0.1},
        "transport": {"tcp": {"kind": "tcp"}},
        "flow": {"file": {"transport": "tcp", "traffic": {"kind": "file", "bytes": 1e9}}},
    }

    result = farlink.run(long)
    (sentence,) = result.unfinished()

    assert result.stalls() == []
    assert sentence.startswith("file in 2 of 2 runs: ")
    assert "bytes of 1 transfers were not delivered when the run ended at 10 s; the last that came" in sentence
    assert result.rows["status"] == ["unfinished"] * 4
    assert "Unfinished: file in 2 of 2 runs" in render_report(result)


def test_stalls_are_counted_per_engine():
    packet = farlink.run(
        {
            "duration_s": 20,
            "runs": 3,
            "engines": ["packet", "fluid"],
            "fluid": {"max_time_s": 20},
            "link": {"rate_bps": 1e6, "delay_s": 0.1, "queue_packets": 20, "channel": {"kind": "loss", "loss": 0.999}},
            "transport": {"tcp": {"kind": "tcp", "variant": "sack"}},
            "flow": {"bulk": {"transport": "tcp", "traffic": {"kind": "bulk"}}},
        }
    )

    (sentence,) = packet.stalls()

    assert sentence.startswith("bulk in 3 of 3 runs: stalled since 0 s")
    assert packet.finished_runs == 4


def test_rows_are_kept_only_on_request():
    scenario = {**LINK, **TRANSPORTS, "flow": {"file": BULK}, "runs": 5, "grid": {"seed": [1, 2]}}
    whole, lean = (farlink.run(scenario, rows=rows) for rows in (True, False))

    assert lean.summary() == whole.summary()
    assert lean.grid_paths == whole.grid_paths == ["grid.seed"]
    assert lean.finished_runs == whole.finished_runs == 10
    assert [str(cell) for cell in lean.cells()] == [str(cell) for cell in whole.cells()]
    assert lean._repr_html_() == whole._repr_html_()
    for ask in (lambda: lean.rows, lean.to_json, lambda: lean.to_csv(io.StringIO()), lean.to_dict):
        with pytest.raises(FarlinkError, match="rows of single runs were not kept"):
            ask()


class Counted(list):
    """A list that counts accesses to its items."""

    looks = 0

    def __iter__(self):
        for item in super().__iter__():
            self.looks += 1
            yield item


def test_work_per_point_does_not_grow_with_their_number(result):
    count = 2000
    points = Counted({"link.delay_s": 0.001 * i, "link.channel.ber": 1e-6} for i in range(count))

    def column(values):
        return [value for point in range(count) for value in ([point] * 3 if values is None else values[:3])]

    large = replace(
        result,
        points=points,
        columns={name: column(None if name == "point" else list(values)) for name, values in result.columns.items()},
        summary_columns={
            name: column(None if name == "point" else list(values)) for name, values in result.summary_columns.items()
        },
    )
    entries = large.summary()

    assert [entry["link.delay_s"] for entry in entries[::3]] == [0.001 * i for i in range(count)]
    assert len(large.rows["link.delay_s"]) == 3 * count
    assert large.table().row_count > 0
    assert large.bundles() == []
    assert points.looks <= 3 * count


def test_columns_come_in_the_order_of_the_design(result):
    head = ["engine", "flow", "transport", "run", "seed", "link.channel.ber", "flow.bulk.transport", "status", "reason"]

    assert list(result.rows)[: len(head)] == head
    assert {len(values) for values in result.rows.values()} == {6 * 2 * 3}


def test_summary_is_the_mean_of_the_rows(result):
    entry = result.summary()[-1]
    rows = result.rows
    values = [
        rows["goodput_bps"][i]
        for i in range(len(rows["run"]))
        if all(rows[key][i] == entry[key] for key in ("flow", "transport", "link.channel.ber", "flow.bulk.transport"))
    ]

    assert len(values) == entry["runs"] == 3
    assert entry["goodput_bps"]["mean"] == pytest.approx(sum(values) / 3)


def test_unknown_values_are_null_in_every_format(tmp_path):
    unknown = made(goodput_bps=[math.nan], delay_mean_s=[math.nan], timeouts=[0.0])

    assert json.loads(unknown.to_json())["rows"][0]["goodput_bps"] is None
    assert json.loads(unknown.to_json())["summary"][0]["goodput_bps"] == {"mean": None, "ci95": None}
    text = io.StringIO()
    unknown.to_csv(text)
    assert text.getvalue().splitlines()[1] == "packet,all,sack,0,9,ok,,,,0.0"
    unknown.to_parquet(tmp_path / "r.parquet")
    assert unknown.to_polars()["goodput_bps"].null_count() == 1


def test_parquet_and_pandas_hold_the_rows(result, tmp_path):
    import pyarrow.parquet as parquet

    result.to_parquet(tmp_path / "r.parquet")

    table = parquet.read_table(tmp_path / "r.parquet")
    assert table.to_pydict() == result.rows
    assert table.schema.metadata[b"farlink"].decode() == farlink.__version__
    assert json.loads(table.schema.metadata[b"scenario"])["title"] == "Small"
    assert list(result.to_pandas().columns) == list(result.rows)
    assert result.to_polars().height == len(result.rows["run"])


def test_grid_of_tables_fits_flat_files(tmp_path):
    point = {"link.channel": {"kind": "loss", "loss": 0.1}}
    one = made(**{name: [0.5] for name in SHOWN})
    gridded = Result(**{**vars(one), "points": [point]})

    gridded.to_parquet(tmp_path / "r.parquet")
    text = io.StringIO()
    gridded.to_csv(text)

    assert '{""kind"": ""loss""' in text.getvalue()
    assert gridded.table().row_count == 1


def test_notebook_shows_the_table_escaped(result):
    assert result._repr_html_().count("<tr>") == 7
    one = made(**{name: [0.5] for name in SHOWN})
    assert "<b>" not in one._repr_html_()


def test_narrow_table_drops_columns_from_the_right(result):
    wide, narrow = result.table(), result.table(width=60)

    assert len(narrow.columns) < len(wide.columns)
    assert "goodput" in str(narrow.columns[3].header)


def test_missing_extra_is_named(result, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pandas", None)

    with pytest.raises(MissingExtraError) as caught:
        result.to_pandas()

    assert "farlink[pandas]" in caught.value.remedy


def test_a_varied_duration_does_not_hide_the_measured_one():
    done = farlink.run(
        {
            "runs": 2,
            "link": {"rate_bps": 1e6, "delay_s": 0.1},
            "transport": {"t": {"kind": "tcp"}},
            "flow": {"f": {"transport": "t", "traffic": {"kind": "bulk"}, "start_s": 1}},
            "grid": {"duration_s": [10, 20]},
        }
    )

    assert done.grid_paths == ["grid.duration_s"]
    assert done.rows["grid.duration_s"] == [10] * 4 + [20] * 4
    assert done.rows["duration_s"][0] == 9
    entry = done.summary()[-1]
    assert (entry["grid.duration_s"], entry["duration_s"]["mean"]) == (20, 19)
    headings, body = done.cells()
    assert headings[0] == ("duration\ns", True)
    assert [row[0] for row in body] == ["10", "20"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_a_pipe_is_written_to_and_not_replaced(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)

    with whole_file(pipe) as temporary:
        temporary.write_text("rows")

    assert os.read(reader, 100) == b"rows"
    os.close(reader)
    assert pipe.is_fifo()


def test_the_target_of_a_symbolic_link_is_replaced(tmp_path):
    (tmp_path / "link.txt").symlink_to("target.txt")

    with whole_file(tmp_path / "link.txt") as temporary:
        temporary.write_text("rows")

    assert (tmp_path / "link.txt").is_symlink()
    assert (tmp_path / "target.txt").read_text() == "rows"


def test_file_appears_whole_or_not_at_all(tmp_path):
    target = tmp_path / "r.txt"
    target.write_text("old")

    def fail_halfway():
        with whole_file(target) as temporary:
            temporary.write_text("half")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail_halfway()

    assert target.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["r.txt"]
    with pytest.raises(OutputError), whole_file(tmp_path / "none" / "r.txt"):
        pass


def test_interrupting_a_traced_run_ends_it_soon(small):
    threading.Timer(1, os.kill, (os.getpid(), signal.SIGINT)).start()
    begun = time.monotonic()

    with pytest.raises(KeyboardInterrupt):
        farlink.trace_run(small, set={"duration_s": 1e7, "link.rate_bps": 1e8}, quantities=["cwnd"])

    assert time.monotonic() - begun < 10


def test_settings_may_be_a_single_string(small):
    assert farlink.load(small).with_overrides(["runs=1"]).data == farlink.engines.prepare(small, set="runs=1").data


def test_none_is_not_a_setting(small):
    with pytest.raises(ScenarioError, match="None"):
        farlink.run(small, set={"link.channel.ber": None})


def test_a_requested_engine_replaces_those_in_the_scenario(small):
    settings = {"engines": ["ns-4", "packet"], "runs": 1}
    with pytest.raises(ScenarioError, match="ns-4"):
        farlink.run(small, set=settings)

    done = farlink.run(small, set=settings, engine="packet")

    assert set(done.rows["engine"]) == {"packet"}
    assert done.scenario.data["engines"] == ["packet"]


@pytest.mark.parametrize(
    ("ask", "known"),
    [
        (lambda observed, _: observed.plot("rtt"), "round-trip"),
        (lambda observed, _: observed.plot("window", flow="bluk"), "bulk"),
        (lambda _, result: result.table("bluk"), "bulk"),
    ],
)
def test_a_nonexistent_flow_or_run_cannot_be_shown(ask, known, small, result):
    with pytest.raises(ValueError, match="there is no") as caught:
        ask(farlink.trace_run(small), result)

    assert known in caught.value.remedy


def test_trace_run_repeats_the_run(small):
    first = farlink.trace_run(small, point=2, run=1)
    again = farlink.trace_run(small, point=2, run=1)

    assert first.values == {"link.channel.ber": 1e-6, "flow.bulk.transport": "reno"}
    assert first.time_s.tolist() == again.time_s.tolist()
    assert first.value.tolist() == again.value.tolist()
    for quantity in ("cwnd", "rtt", "sent_sequence", "acknowledged"):
        time, _ = first.select(quantity)
        assert len(time) > 0
        assert (time[1:] >= time[:-1]).all()


def test_sequence_numbers_count_from_the_first_byte(small):
    run = farlink.trace_run(small, point=5)
    sent, again = run.select("sent_sequence")[1], run.select("retransmitted_sequence")[1]
    acknowledged = run.select("acknowledged")[1]

    assert sent[0] == 0
    assert (sent[1:] > sent[:-1]).all()
    assert set(again) <= set(sent)
    assert 0 < acknowledged[-1] <= sent[-1] + 1460 + 1


def test_keys_ignored_by_an_engine_are_named(small, monkeypatch, capsys):
    from farlink import _core
    from farlink.cli import app

    expand = _core.expand
    left_out = {"engine": "packet", "path": "link.channel.ber"}
    monkeypatch.setattr(
        _core, "expand", lambda *asked: json.dumps({**json.loads(expand(*asked)), "approximations": [left_out]})
    )

    app(["run", str(small), "--json", "-"], standalone_mode=False)

    said = capsys.readouterr()
    assert said.err == "note: the packet engine ran without link.channel.ber\n"
    assert json.loads(said.out)["approximations"] == [left_out]


LINK = {"duration_s": 20, "runs": 1, "link": {"rate_bps": 1e6, "delay_s": 0.05}}
TRANSPORTS = {"transport": {"tcp": {"kind": "tcp"}, "udp": {"kind": "udp"}}}
BULK = {"transport": "tcp", "start_s": 10, "traffic": {"kind": "bulk"}}
TELEMETRY = {"transport": "udp", "traffic": {"kind": "cbr", "rate_bps": 1e5, "payload_bytes": 500}}
PAGES = {"transport": "tcp", "traffic": {"kind": "transfers", "list": [{"at_s": 0, "bytes": 1e4}, {"at_s": 15, "bytes": 1e4}]}}


@pytest.mark.parametrize(
    ("flows", "start_s"),
    [
        ({"telemetry": TELEMETRY, "file": BULK}, {"file": 10}),
        ({"pages": PAGES, "file": BULK}, {"pages.1": 0, "pages.2": 15, "file": 10}),
    ],
)
def test_series_belong_to_the_flow_that_they_name(flows, start_s):
    run = farlink.trace_run({**LINK, **TRANSPORTS, "flow": flows})

    found = {flow: run.select("cwnd", flow)[0].min() for flow in run.flows()}
    assert found == pytest.approx(start_s)


def test_transfers_of_the_warm_up_do_not_count():
    scenario = {**LINK, **TRANSPORTS, "flow": {"pages": PAGES}}

    done, late = (farlink.run(scenario, set={"measure.warmup_s": s}).summary()[0]["transfers_done"]["mean"] for s in (0, 10))
    assert (done, late) == (2, 1)


def test_peak_of_a_queue_belongs_to_the_path():
    all_flows, flow = (row for row in reversed(farlink.run({**LINK, **TRANSPORTS, "flow": {"file": BULK}}).summary()))

    assert all_flows["peak_queue_bytes"]["mean"] > 0
    assert flow["peak_queue_bytes"]["mean"] is None

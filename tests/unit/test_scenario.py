"""Scenario files, overrides and the files that a scenario names."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.conftest import ROOT

import farlink
from farlink.engines import prepare
from farlink.errors import FarlinkError, ScenarioError, TraceError
from farlink.scenario import Scenario, find_data_file, from_data, load, parse_override

SCENARIOS = sorted((ROOT / "scenarios").glob("*.toml"))


@pytest.mark.parametrize(
    ("override", "keys", "value"),
    [
        ("runs=20", ["runs"], 20),
        ("link.channel.ber = 1e-7", ["link", "channel", "ber"], 1e-7),
        ("title=two words", ["title"], "two words"),
        ('title="quoted"', ["title"], "quoted"),
        ("grid.link.delay_s=[0.1, 0.2]", ["grid", "link.delay_s"], [0.1, 0.2]),
        ('grid."link.delay_s"=[0.1]', ["grid", "link.delay_s"], [0.1]),
        ('link.channel={kind="loss", loss=0.1}', ["link", "channel"], {"kind": "loss", "loss": 0.1}),
        ("transport.sack.delayed_ack=false", ["transport", "sack", "delayed_ack"], False),
        ('link.channel.file="a=b.npz"', ["link", "channel", "file"], "a=b.npz"),
        ("link.channel.file=traces/a.npz", ["link", "channel", "file"], "traces/a.npz"),
    ],
)
def test_override_is_parsed(override, keys, value):
    assert parse_override(override) == (keys, value)


@pytest.mark.parametrize("override", ["", "=", "runs", "runs=", "runs=[1", "a..b=1", 'title="open', "runs=nan", "a b=1"])
def test_bad_override_is_refused(override):
    with pytest.raises(ScenarioError, match=r"--set|finite"):
        parse_override(override)


@given(st.dictionaries(st.from_regex(r"[a-z_]{1,8}", fullmatch=True), st.integers() | st.booleans() | st.text(), min_size=1))
def test_mapping_of_settings_equals_the_same_data(settings):
    assert prepare({}, set=settings).data == settings


def test_fixing_one_key_of_a_zip_keeps_the_others():
    scenario = from_data({"link": {}, "grid_zip": [{"link.delay_s": [1, 2], "link.rate_bps": [3, 4]}]})

    assert scenario.with_overrides(["link.delay_s=5"]).data == {"link": {"delay_s": 5}, "grid_zip": [{"link.rate_bps": [3, 4]}]}


def test_quotes_around_a_grid_path_are_optional():
    assert from_data({"grid": {"link": {"channel": {"ber": [1e-7]}}}}).data == {"grid": {"link.channel.ber": [1e-7]}}


def test_overrides_leave_the_original_alone():
    scenario = from_data({"link": {"rate_bps": 1e6}})

    scenario.with_overrides(["link.rate_bps=2e6"])

    assert scenario.data == {"link": {"rate_bps": 1e6}}


def test_setting_runs_replaces_a_precision_rule():
    assert prepare({"precision": {"ci": 0.01}}, runs=4).data == {"runs": 4}


def test_data_files_are_found(tmp_path, monkeypatch):
    monkeypatch.setenv("FARLINK_DATA", "/measured")
    assert find_data_file("$FARLINK_DATA/a.gz", base=tmp_path) == Path("/measured/a.gz")
    assert find_data_file("${FARLINK_DATA}/a.gz", base=tmp_path) == Path("/measured/a.gz")
    assert find_data_file("traces/a.npz", base=tmp_path) == tmp_path / "traces/a.npz"
    assert find_data_file("/b.npz", base=tmp_path) == Path("/b.npz")

    monkeypatch.delenv("FARLINK_DATA")
    (tmp_path / "shared/data").mkdir(parents=True)
    (tmp_path / "checkout/scenarios").mkdir(parents=True)
    (tmp_path / "checkout/pyproject.toml").touch()
    assert find_data_file("$FARLINK_DATA/a.gz", base=tmp_path / "checkout/scenarios") == tmp_path / "shared/data/a.gz"


def test_missing_trace_names_its_key(tmp_path):
    scenario = Scenario({"link": {"channel": {"kind": "packet-trace", "file": "none.npz"}}}, tmp_path)

    with pytest.raises(TraceError, match=r"link\.channel\.file: .*none\.npz: no such file"):
        scenario.to_json()


def test_flow_named_file_is_not_a_trace():
    data = {"flow": {"file": {"transport": "sack"}}, "link": {"channel": {"file": 3}}}

    assert json.loads(from_data(data).to_json()) == data


def test_toml_of_a_mapping_reads_back():
    import tomllib

    data = {"title": "t", "link": {"rate_bps": 1e6}, "grid": {"link.delay_s": [0.1, 0.2]}}

    assert tomllib.loads(from_data(data).to_toml()) == data


def test_toml_of_a_file_is_the_text_of_the_file(small):
    scenario = load(small).with_overrides(["link.rate_bps=2e6"])

    assert small.read_text().strip() in scenario.to_toml()
    assert "# --set link.rate_bps=2e6" in scenario.to_toml()


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_shipped_scenario_expands_and_runs(path):
    scenario = load(path)
    if "$FARLINK_DATA" in path.read_text() and not find_data_file("$FARLINK_DATA", base=scenario.base).is_dir():
        pytest.skip("FARLINK_DATA: the measured data is not here")
    settings = ["duration_s=15", "measure.warmup_s=0"] if "duration_s" in scenario.data else []

    result = farlink.run(scenario, set=settings, runs=1)

    assert len(result.points) == len(scenario.points())
    assert set(result.rows["status"]) <= {"ok", "unfinished", "stalled"}
    assert sum(value or 0 for value in result.rows["delivered_bytes"]) > 0


def test_errors_can_be_pickled():
    import pickle

    error = pickle.loads(pickle.dumps(TraceError("what", "how")))

    assert (type(error), error.message, error.remedy) == (TraceError, "what", "how")
    assert isinstance(error, FarlinkError)


def test_traces_keep_the_names_used_in_the_scenario(tmp_path, monkeypatch):
    pytest.importorskip("scipy")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    names = ["synthetic:testbed?duration_s=1", "synthetic:fasolt?duration_s=1"]
    link = {"rate_bps": 1e8, "delay_s": 1e-5, "channel": {"kind": "fading", "file": names[0], "ber": 1e-6}}
    scenario = from_data(
        {
            "duration_s": 2,
            "runs": 1,
            "link": link,
            "transport": {"t": {"kind": "arq", "rto": {"minimum_s": 1e-3}}},
            "flow": {"f": {"transport": "t", "traffic": {"kind": "file", "bytes": 1e4}}},
            "grid": {"link.channel.file": names},
        }
    )

    result = farlink.run(scenario)

    assert [point["link.channel.file"] for point in scenario.points()] == names
    assert [row["link.channel.file"] for row in result.summary() if row["flow"] == "all"] == names
    assert f"{names[1]} is 1 s long and a run is 2 s long: the recording starts over" in result.notes
    with pytest.raises(ScenarioError, match=re.escape(names[0])):
        farlink.run(scenario.with_overrides([f'link.channel.file="{names[0]}"', "link.channel.at_end=refuse"]))

"""`farlink trace adapt`, as a user types it."""

from __future__ import annotations

import json

import numpy as np
import pytest
from tests import tuning
from tests.conftest import ROOT, assert_refused

pytest.importorskip("pydantic")

import farlink as package
from farlink.channels.trace import Trace
from farlink.channels.trace_file import read, write
from farlink.tune import files
from farlink.tune.table import tune

ONE = {"shares": [1.0], "flows": [1], "cn0_step_db": 2}
PLAY = ("trace", "adapt", "cn0.npz", "--table", "table.json", "--modem", "modem.toml")


@pytest.fixture
def folder(tmp_path):
    tuning.write(tmp_path, study=ONE)
    files.write(tune(tuning.study(**ONE), tuning.modem()), tmp_path / "table.json")
    times = 10.0 * np.arange(6)
    trace = Trace("cn0", {"time_s": times, "cn0_dbhz": [76, 76, 66, 60, 66, 76]}, {"duration_s": 60.0, "title": "A shower"})
    write(trace, tmp_path / "cn0.npz")
    return tmp_path


def test_adapted_traces_can_be_replayed_by_a_link(farlink, folder):
    done = farlink(*PLAY, "--detection-s", "5", "-o", "a")

    assert done.returncode == 0, done.stderr
    assert "Title             adaptive 5 s after a change: A shower\n" in done.stdout
    assert "Duration          60 s, in steps of 5 s\n" in done.stdout
    assert "No transmission   16.7 % of the time\n" in done.stdout
    rate, ber = read(folder / "a-rate.npz"), read(folder / "a-ber.npz")
    assert (rate.kind, ber.kind, ber["ber"].size) == ("rate", "ber", 12)
    result = package.run(
        {
            "duration_s": 60,
            "link": {
                "rate_bps": {"kind": "rate-trace", "file": str(folder / "a-rate.npz")},
                "delay_s": 0.01,
                "channel": {"kind": "ber-trace", "file": str(folder / "a-ber.npz")},
            },
            "transport": {"sack": {"kind": "tcp", "variant": "sack", "segment_bytes": 512}},
            "flow": {"bulk": {"transport": "sack", "traffic": {"kind": "bulk"}}},
        }
    )
    assert result.rows["goodput_bps"][0] > 1e5


@pytest.mark.usefixtures("folder")
def test_each_policy_reports_its_settings(farlink):
    ideal, best, named = (
        farlink(*PLAY, "--policy", *more) for more in (["ideal"], ["fixed"], ["fixed", "--setting", "BPSK,  uncoded"])
    )

    assert ideal.returncode == best.returncode == named.returncode == 0, named.stderr
    assert "Switches          0 per hour" in best.stdout
    assert "Set to            bpsk uncoded, 512 bytes: 100 % of the time" in named.stdout


def test_help_has_an_example(farlink):
    shown = " ".join(farlink("trace", "adapt", "--help").stdout.split())

    assert "farlink trace adapt rain.npz --table table.json" in shown


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--policy", "fixed", "--setting", "bpsk, uncodet"], ["no setting 'bpsk, uncodet'", "did you mean 'bpsk uncoded'?"]),
        (["--policy", "idael"], ["there is none called 'idael'", "did you mean 'ideal'?"]),
        (["--detection-s", "-1"], ["detection_s is -1", "at least 0"]),
        (["--table", "table.csv"], ["table.csv: a table as CSV", "-o table.json"]),
        (["--table", "study.toml"], ["study.toml is no look-up table", "farlink tune STUDY.toml"]),
    ],
)
@pytest.mark.usefixtures("folder")
def test_invalid_arguments_are_refused(farlink, more, said):
    assert_refused(farlink(*PLAY, *more), said)


def test_another_modem_and_another_trace_are_refused(farlink, folder):
    made = json.loads((folder / "table.json").read_text())
    for row in made["rows"]:
        row["code"] = "RS(9,8)" if row["status"] == "ok" else None
    (folder / "other.json").write_text(json.dumps(made))
    write(Trace("rate", {"time_s": [0.0], "rate_bps": [1e6]}, {"duration_s": 1.0}), folder / "rate.npz")

    assert_refused(farlink(*PLAY, "--table", "other.json"), ["no setting", "RS(9,8)", "the modem that the table was made for"])
    assert_refused(farlink("trace", "adapt", "rate.npz", "--table", "table.json", "--modem", "modem.toml"), ["rate.npz", "cn0"])


def test_the_shipped_day_matches_its_scenario():
    folder = ROOT / "scenarios" / "rain-geo"
    traces = {path.stem: read(path) for path in sorted(folder.glob("*.npz"))}

    assert sorted(traces) == sorted(
        ["cn0", *(f"{way}-{what}" for way in ("adaptive", "ideal", "fixed") for what in ("rate", "ber"))]
    )
    assert all(trace.meta["synthetic"] and trace.duration_s == 86_400 for trace in traces.values())
    assert sum(path.stat().st_size for path in folder.glob("*")) < 400_000

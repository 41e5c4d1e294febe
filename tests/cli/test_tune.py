"""`farlink tune`, as a user types it."""

from __future__ import annotations

import csv
import json
import signal
import time
import tomllib

import pytest
from tests import tuning
from tests.conftest import ROOT, assert_refused

pytest.importorskip("pydantic")

ONE = {"shares": [1.0], "flows": [1], "cn0_step_db": 2}


def test_table_is_written_in_every_format(farlink, tmp_path):
    tuning.write(tmp_path, study=ONE)

    done = farlink("tune", "study.toml", "-o", "t.csv", "-o", "t.json", "-o", "t.toml")

    assert done.returncode == 0, done.stderr
    assert "share 1, 1 flow\n" in done.stdout
    assert "qpsk" in done.stdout
    assert "goodput by relation" in done.stdout
    assert "no transmission: every setting loses more than 0.3 of the segments" in done.stderr
    rows = list(csv.DictReader((tmp_path / "t.csv").open()))
    made = json.loads((tmp_path / "t.json").read_text())
    assert [float(row["cn0_dbhz"]) for row in rows] == [row["cn0_dbhz"] for row in made["rows"]] == list(range(60, 77, 2))
    assert (rows[0]["status"], rows[0]["modulation"], rows[0]["goodput_bps"]) == ("no transmission", "", "")
    assert made["kind"] == "tuning table"
    assert made["is_monotone"] is True
    assert made["findings"] == []
    assert made["modem"]["title"] == "Small modem"
    assert made["study"]["cn0_step_db"] == 2
    assert tomllib.loads((tmp_path / "t.toml").read_text())["rows"][-1] == made["rows"][-1]


def test_pictures(farlink, tmp_path):
    pytest.importorskip("matplotlib")
    tuning.write(tmp_path, study=ONE)

    plots = [f"{kind}={kind}.svg" for kind in ("staircase", "goodput", "envelopes")]
    done = farlink("tune", "study.toml", *[word for plot in plots for word in ("--plot", plot)], "--at", "68")

    assert done.returncode == 0, done.stderr
    assert "best goodput" in (tmp_path / "staircase.svg").read_text()
    assert "goodput (Mb/s)" in (tmp_path / "goodput.svg").read_text()
    assert "<!-- ER -->" in (tmp_path / "envelopes.svg").read_text()
    assert done.stderr.count("picture: ") == 3


def test_points_of_each_condition(farlink, tmp_path):
    tuning.write(tmp_path, study={**ONE, "flows": [1, 8]})

    done = farlink("tune", "study.toml", "--points", "points.csv", "-o", "t.json")

    assert done.returncode == 0, done.stderr
    assert "points: points.csv" in done.stderr
    rows = list(csv.DictReader((tmp_path / "points.csv").open()))
    table = json.loads((tmp_path / "t.json").read_text())["rows"]
    for condition in table:
        here = [
            row for row in rows if (int(row["flows"]), float(row["cn0_dbhz"])) == (condition["flows"], condition["cn0_dbhz"])
        ]
        best = [row for row in here if row["is_best"] == "1"]
        assert len(best) == 1
        assert float(best[0]["goodput_bps"]) == max(float(row["goodput_bps"]) for row in here)
        if condition["status"] == "ok":
            assert condition["goodput_bps"] >= 0.995 * float(best[0]["goodput_bps"])
        steps = [row for row in here if row["is_on_staircase"] == "1"]
        assert [float(row["ber"]) for row in steps] == sorted(float(row["ber"]) for row in steps)


def test_goodput_uses_the_requested_model(farlink, tmp_path):
    tuning.write(tmp_path, study=ONE)

    done = farlink("tune", "study.toml", "--goodput", "padhye", "-o", "t.json")

    assert done.returncode == 0, done.stderr
    assert json.loads((tmp_path / "t.json").read_text())["study"]["goodput"] == "padhye"
    assert "goodput by padhye" in done.stdout


def test_output_is_reproducible(farlink, tmp_path):
    tuning.write(tmp_path, study=ONE)

    texts = set()
    for _ in range(2):
        assert farlink("tune", "study.toml", "-o", "t.json").returncode == 0
        texts.add((tmp_path / "t.json").read_text())
    assert len(texts) == 1


def test_the_shipped_study_is_valid(farlink, tmp_path):
    study = (ROOT / "studies" / "celandroni" / "tune.toml").read_text()
    # Two conditions and two families need few error events.
    study = study.replace("cn0_to_dbhz = 78", "cn0_to_dbhz = 67") + "\n"
    (tmp_path / "tune.toml").write_text('families = ["none", "RS"]\n' + study)
    (tmp_path / "modem.toml").write_text((ROOT / "studies" / "celandroni" / "modem.toml").read_text())

    done = farlink("tune", "tune.toml")

    assert done.returncode == 0, done.stderr
    assert "bpsk" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("none.toml",), ["cannot read study none.toml", "TOML file"]),
        (("study.toml", "-o", "t.xlsx"), ["no look-up table has the suffix '.xlsx'", ".csv, .json, .toml"]),
        (("study.toml", "-o", "none/t.csv"), ["directory none does not exist", "mkdir"]),
        (("study.toml", "--goodput", "relatoin"), ["no model or engine 'relatoin'", "did you mean 'relation'?"]),
        (("study.toml", "--plot", "envelopes.svg"), ["not of the form KIND=PICTURE", "envelopes=envelopes.svg"]),
        (("study.toml", "--plot", "envelope=e.svg"), ["no picture 'envelope'", "did you mean 'envelopes'?"]),
        (("study.toml", "--plot", "envelopes=e.gif"), ["no picture has the suffix '.gif'", ".png"]),
        (("study.toml", "-o", "t.csv", "-o", "t.csv"), ["-o t.csv would overwrite -o", "a name of its own"]),
    ],
)
def test_bad_input_is_refused(farlink, tmp_path, arguments, said):
    tuning.write(tmp_path, study=ONE)

    assert_refused(farlink("tune", *arguments), said)
    assert not (tmp_path / "t.csv").exists()


def test_a_bad_modem_is_refused_by_its_key(farlink, tmp_path):
    tuning.write(tmp_path, modem={"modulation": ["bpsk"]}, study=ONE)

    said = ["modem.toml: modulation: there is no such key", "did you mean 'modulations'?"]
    assert_refused(farlink("tune", "study.toml"), said)


def test_a_failed_run_leaves_the_old_table(farlink, tmp_path):
    tuning.write(tmp_path, study={**ONE, "shares": [0]})
    (tmp_path / "t.csv").write_text("kept")

    assert farlink("tune", "study.toml", "-o", "t.csv").returncode == 2
    assert (tmp_path / "t.csv").read_text() == "kept"


def test_help_has_examples(farlink):
    done = farlink("tune", "--help")

    assert done.returncode == 0
    assert "farlink tune studies/celandroni/tune.toml" in done.stdout
    assert "[impairment]" in done.stdout


IMPAIRED = {
    **ONE,
    "cn0_from_dbhz": 70,
    "cn0_to_dbhz": 74,
    "families": ["none", "RS"],
    "round_trip_s": 0.1,
    "impairment": {"kind": "gilbert-elliott", "per": "bit", "ber_bad": 0.5, "p_good_to_bad": 1e-5, "p_bad_to_good": 0.02},
}


def test_an_impaired_link_is_said_wherever_there_is_room(farlink, tmp_path):
    pytest.importorskip("matplotlib")
    tuning.write(tmp_path, modem={"symbol_rates_hz": [1e5], "modulations": ["qpsk"]}, study=IMPAIRED)

    plots = [word for kind in ("staircase", "goodput", "envelopes") for word in ("--plot", f"{kind}={kind}.svg")]
    done = farlink("tune", "study.toml", "-o", "t.csv", "-o", "t.json", "--points", "points.csv", *plots, "--at", "74")

    assert done.returncode == 0, done.stderr
    assert "goodput by packet" in done.stdout
    assert "impaired by gilbert-elliott, per bit, ber_bad 0.5" in done.stdout
    assert "t.csv has rows only, which do not say that the link is impaired" in done.stderr
    table = json.loads((tmp_path / "t.json").read_text())
    assert table["study"]["impairment"] == IMPAIRED["impairment"]
    # Bursts of 50 bits defeat no Reed-Solomon code, and uncoded segments as often as they come.
    assert {row["family"] for row in table["rows"]} == {"RS"}
    points = list(csv.DictReader((tmp_path / "points.csv").open()))
    uncoded = [float(row["loss"]) for row in points if row["family"] == "none"]
    assert uncoded == pytest.approx([0.043] * len(uncoded), rel=0.3)
    assert all((tmp_path / f"{kind}.svg").exists() for kind in ("staircase", "goodput", "envelopes"))


def test_a_model_of_independent_losses_is_refused_over_an_impairment(farlink, tmp_path):
    tuning.write(tmp_path, study=IMPAIRED)

    said = ["'fluid' takes losses to be independent of each other", "'gilbert-elliott' are not", 'give goodput = "packet"']
    assert_refused(farlink("tune", "study.toml", "--goodput", "fluid", "-o", "t.csv"), said)
    assert not (tmp_path / "t.csv").exists()


def test_an_interrupted_study_goes_on_where_it_was(started, farlink, tmp_path, monkeypatch):
    monkeypatch.setenv("FARLINK_CACHE", str(tmp_path / "cache"))
    slow = {
        **IMPAIRED,
        "cn0_from_dbhz": 66,
        "cn0_to_dbhz": 80,
        "families": ["none", "RS", "ER"],
        "round_trip_s": 1.0,
        "tolerance": 1.0,
    }
    tuning.write(tmp_path, modem={"symbol_rates_hz": [4e6], "modulations": ["qpsk"]}, study={**slow, "shares": [0.5]})
    kept = tmp_path / "cache" / "goodput"
    process = started("tune", "study.toml", "-o", "t.json")
    for _ in range(3000):
        if kept.is_dir() and any(kept.glob("*.json")):
            break
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    stdout, stderr = process.communicate(timeout=60)

    assert (process.returncode, stdout) == (130, "")
    assert stderr.endswith("interrupted\n")
    assert not (tmp_path / "t.json").exists()
    before = {path.name: path.stat().st_mtime_ns for path in kept.glob("*.json")}
    assert before
    assert farlink("tune", "study.toml", "-o", "t.json").returncode == 0
    after = {path.name: path.stat().st_mtime_ns for path in kept.glob("*.json")}
    assert before.items() < after.items()

"""Wrong input gives exit status 2, one line with the error, one line with the remedy, and no output files."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from tests.conftest import SMALL


def edited(old: str, new: str) -> str:
    assert old in SMALL
    return SMALL.replace(old, new)


BAD = {
    "unknown key": (edited("rate_bps = 1e6", "rate_bsp = 1e6"), ["link", "rate_bsp", "rate_bps"]),
    "unknown table": (edited("[transport.reno]", "[transprot.reno]"), ["transprot", "transport"]),
    "wrong type": (edited("rate_bps = 1e6", 'rate_bps = "fast"'), ["link.rate_bps"]),
    "negative rate": (edited("rate_bps = 1e6", "rate_bps = -1e6"), ["link.rate_bps", "-1"]),
    "probability above 1": (
        edited("ber = 1e-6", "ber = 1.5").replace('"link.channel.ber" = [1e-7, 1e-6, 1e-5]', ""),
        ["link.channel.ber", "1.5"],
    ),
    "probability above 1 in the grid": (edited("1e-7, 1e-6, 1e-5", "1e-7, 2.0"), ["link.channel.ber", "2"]),
    "missing trace file": (
        edited('kind = "ber"\nber = 1e-6', 'kind = "packet-trace"\nfile = "none.npz"').replace(
            '"link.channel.ber" = [1e-7, 1e-6, 1e-5]', ""
        ),
        ["link.channel.file", "none.npz", "no such file"],
    ),
    "grid path that does not exist": (edited('"link.channel.ber"', '"link.chanel.ber"'), ["link.chanel.ber"]),
    "grid without values": (edited("[1e-7, 1e-6, 1e-5]", "[]"), ["link.channel.ber"]),
    "no flow": (
        edited('[flow.bulk]\ntransport = "sack"\ntraffic = { kind = "bulk" }', "").replace(
            '"flow.bulk.transport" = ["reno", "sack"]', ""
        ),
        ["flow"],
    ),
    "flow of an unknown transport": (edited('["reno", "sack"]', '["reno", "sak"]'), ["sak", "sack"]),
    "congestion control for a variant": (edited('variant = "sack"', 'variant = "cubic"'), ["variant", "congestion_control"]),
    "variant for a congestion control": (
        edited('variant = "sack"', 'congestion_control = "newreno"'),
        ["congestion_control", 'variant = "newreno"'],
    ),
    "marks without a reaction": (
        edited('variant = "sack"', 'variant = "sack"\necn = true\ncongestion_control = "none"'),
        ["transport.sack.ecn", "congestion_control"],
    ),
    "threshold of marking that a full queue never reaches": (
        edited("queue_packets = 50", "queue_packets = 50\necn_threshold_packets = 50"),
        ["link.ecn_threshold_packets", "less than 50"],
    ),
    "two thresholds of marking": (
        edited("queue_packets = 50", "ecn_threshold_bytes = 5\necn_threshold_packets = 5"),
        ["link", "ecn_threshold_bytes", "keep one"],
    ),
    "window that does not fit its field": (
        edited('variant = "sack"', 'variant = "sack"\nwindow_scaling = false\nreceive_window_segments = 45'),
        ["transport.sack.receive_window_segments", "65700", "at most 44"],
    ),
    "no retransmission at all": (
        edited('variant = "sack"', 'variant = "sack"\nmax_retransmissions = 0'),
        ["transport.sack.max_retransmissions", "0"],
    ),
    "patience beside a duration": (
        edited("duration_s = 20", "duration_s = 20\ngive_up_after_s = 10"),
        ["give_up_after_s", "duration_s"],
    ),
    "duration of 0": (edited("duration_s = 20", "duration_s = 0"), ["duration_s", "0"]),
    "infinite rate": (edited("rate_bps = 1e6", "rate_bps = inf"), ["link.rate_bps", "inf"]),
    "date": (edited("duration_s = 20", "duration_s = 2024-01-01"), ["duration_s"]),
    "not TOML": (edited("[link]", "[link"), ["not valid TOML", "line"]),
    "empty file": ("", []),
    "tables nested without end": (f"a = {'[' * 3000}{']' * 3000}", ["TOML"]),
    "number of 5000 digits": (edited("rate_bps = 1e6", f"rate_bps = 1{'0' * 5000}"), ["TOML", "digits"]),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_scenario_is_refused(case, farlink, tmp_path):
    text, said = BAD[case]
    path = tmp_path / "bad.toml"
    path.write_text(text)

    done = farlink("run", path, "--json", "out.json", "--csv", "out.csv", "--report", "out.html", "--pcap", "captures")

    assert_refused(done, said)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["bad.toml"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["none.toml"], ["none.toml"]),
        (["."], ["directory"]),
        (["small.toml", "--set", "link.rate_bps"], ["path=value"]),
        (["small.toml", "--set", "=1"], ["path=value"]),
        (["small.toml", "--set", "link.rate_bps=[1"], ["link.rate_bps=[1"]),
        (["small.toml", "--set", "link.rate_bps.x=1"], ["link.rate_bps", "not a table"]),
        (["small.toml", "--set", "link.rate_bps=-5"], ["link.rate_bps", "-5"]),
        (["small.toml", "--set", "grid.link.chanel.ber=[1e-7]"], ["link.chanel.ber"]),
        (["small.toml", "--engine", "paket"], ["paket", "packet"]),
        (["small.toml", "--engine", "packet,modle"], ["'modle' is not known", "did you mean 'model'?"]),
        (["small.toml", "--engine", "packet,"], ["engine '' is not known", "packet, fluid, live, model"]),
        (["small.toml", "--engine", "packet,packet"], ["engines[1]", "named twice"]),
        (["small.toml", "--engine", "model", "--set", "transport.sack.variant=tahoe"], ["transport.sack.variant", '"reno"']),
        (["small.toml", "--runs", "0"], ["runs", "0"]),
        (["small.toml", "--threads", "0"], ["threads", "0"]),
        (["small.toml", "--json", "no/such/directory.json"], ["no/such"]),
        (["small.toml", "--report", "."], ["directory"]),
        (["small.toml", "--pcap", "captures", "--point", "6"], ["--point 6", "0 to 5"]),
        (["small.toml", "--json", "-", "--csv", "-"], ["standard output"]),
        (["small.toml", "--set", "title='a\nb'"], ["TOML value"]),
        (["small.toml", "--set", f"runs=1{'0' * 5000}"], ["TOML value"]),
        (["small.toml", "--threads", "1000000"], ["threads", "1000000"]),
        (["small.toml", "--threads", f"1{'0' * 30}"], ["threads"]),
        (["small.toml", "--json", ""], ["directory"]),
        (["small.toml", "--json", "x" * 300], ["cannot write"]),
        (["small.toml", "--json", "small.toml"], ["no JSON file has the suffix '.toml'", "use .json"]),
        (["small.toml", "--json", "a.json", "--csv", "a.json"], ["no CSV file has the suffix '.json'", "use .csv or .txt"]),
        (["small.toml", "--parquet", "x.csv"], ["no Parquet file has the suffix '.csv'", "use .parquet or .pq"]),
        (["small.toml", "--report", "x.pdf"], ["no report has the suffix '.pdf'", "use .html or .htm"]),
        (["small.toml", "--series", "x.json"], ["no series has the suffix '.json'", ".csv, .txt or .parquet"]),
        (["small.toml", "--series", "x.csv", "--csv", "x.csv"], ["--series x.csv would overwrite --csv"]),
        (["small.toml", "--json", "out", "--csv", "out"], ["overwrite --json"]),
        (["small.toml", "--report", "small.toml/out.html"], ["small.toml"]),
        (["small.toml", "--pcap", "small.toml"], ["small.toml", "not a directory"]),
        (["small.toml", "--pcap", "small.toml/captures"], ["small.toml", "not a directory"]),
        (["small.toml", "--pcap", "captures", "--point", "\N{SUPERSCRIPT TWO}"], ["--point"]),
        (["small.toml", "--point", "1"], ["--point", "--pcap"]),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
@pytest.mark.usefixtures("small")
def test_bad_arguments_are_refused(arguments, said, farlink, tmp_path):
    done = farlink("run", *arguments)

    assert_refused(done, said)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["small.toml"]


@pytest.mark.skipif(not Path("/dev/full").is_char_device(), reason="this system has no /dev/full")
def test_a_full_disk_is_an_error_of_two_lines(farlink, small):
    done = farlink("run", small, "--json", "/dev/full")

    assert done.returncode == 2
    assert done.stderr.splitlines() == [
        "error: cannot write /dev/full: No space left on device",
        "hint: free some space, or choose another place",
    ]
    assert Path("/dev/full").is_char_device()


@pytest.mark.skipif(not Path("/dev/full").is_char_device(), reason="this system has no /dev/full")
@pytest.mark.parametrize("arguments", [["run", "small.toml"], ["run", "small.toml", "--json", "-"], ["schema"]])
@pytest.mark.usefixtures("small")
def test_a_full_disk_behind_standard_output_is_an_error_of_two_lines(arguments, tmp_path):
    with Path("/dev/full").open("w") as full:
        command = [sys.executable, "-m", "farlink.cli", *arguments]
        done = subprocess.run(command, cwd=tmp_path, stdout=full, stderr=subprocess.PIPE, text=True, check=False)

    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 2
    assert "cannot write standard output" in done.stderr


def test_empty_trace_is_refused(farlink, small, tmp_path):
    (tmp_path / "empty.npz").write_bytes(b"")

    done = farlink("run", small, "--set", replayed("empty.npz"))

    assert_refused(done, ["empty.npz"])


def test_truncated_trace_is_refused(farlink, small, tmp_path):
    meta = {"farlink_trace": 1, "kind": "packet-loss", "title": "t", "source": "s", "licence": "l", "units": {}}
    whole = tmp_path / "whole.npz"
    np.savez(whole, lost=np.zeros(1000, np.uint8), meta=np.array(json.dumps(meta)))
    for kept in (10, 600, whole.stat().st_size - 30):
        (tmp_path / "cut.npz").write_bytes(whole.read_bytes()[:kept])

        done = farlink("run", small, "--set", replayed("cut.npz"))

        assert_refused(done, ["cut.npz"])


def replayed(file: str) -> str:
    return f'link.channel={{kind="packet-trace", file="{file}"}}'


def test_missing_measured_data_says_which_variable_to_set(farlink, small, tmp_path):
    override = 'link.rate_bps={kind="rate-trace", file="$FARLINK_DATA/none.gz"}'

    done = farlink("run", small, "--set", override, FARLINK_DATA=str(tmp_path / "nowhere"))

    assert_refused(done, ["none.gz", "FARLINK_DATA"])


def assert_refused(done, said):
    assert done.returncode == 2, done
    assert done.stdout == ""
    lines = done.stderr.splitlines()
    assert len(lines) == 2, done.stderr
    assert lines[0].startswith("error: ")
    assert lines[1].startswith("hint: ")
    assert len(lines[1]) > len("hint: ") + 3
    for word in said:
        assert word in done.stderr

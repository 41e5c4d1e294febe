"""`farlink run` as a user types it."""

from __future__ import annotations

import csv
import io
import json
import re
import signal
import subprocess
import sys
import time

import pytest

import farlink as package


def test_table_goes_to_standard_output(farlink, small):
    done = farlink("run", small)

    assert done.returncode == 0, done.stderr
    assert "goodput" in done.stdout
    assert done.stdout.count("sack") == 3
    assert "±" in done.stdout
    assert done.stderr == ""


def test_several_engines_stand_in_one_table(farlink, small):
    done = farlink("run", small, "--engine", "model,fluid,packet", "--set", "link.channel.ber=1e-7", "--report", "out.html")

    assert done.returncode == 0, done.stderr
    for engine in ("model", "fluid", "packet"):
        assert re.search(rf"\b{engine}\b", done.stdout)
    assert "note: model: " in done.stderr
    assert "Lakshman" in done.stderr
    content = json.loads(
        farlink("run", small, "--engine", "model,packet", "--set", "link.channel.ber=1e-7", "--json", "-").stdout
    )
    assert content["scenario"]["engines"] == ["model", "packet"]
    assert {row["engine"] for row in content["rows"]} == {"model", "packet"}
    assert all(row["reason"] for row in content["rows"] if row["engine"] == "model")


def test_json_has_the_documented_keys(farlink, small):
    done = farlink("run", small, "--json", "-")

    content = json.loads(done.stdout)
    assert list(content) == ["farlink", "build", "scenario", "rows", "summary"]
    assert content["farlink"] == package.__version__
    assert content["build"] == package.build_name()
    assert content["scenario"]["seed"] == 7
    assert len(content["summary"]) == 6 * 2
    assert len(content["rows"]) == 6 * 2 * 3
    row = next(row for row in content["rows"] if row["flow"] == "all")
    assert row["link.channel.ber"] == 1e-7
    assert row["status"] == "ok"
    goodput = content["summary"][-1]["goodput_bps"]
    assert set(goodput) == {"mean", "ci95"}
    assert goodput["mean"] > 0
    assert goodput["ci95"] > 0


def test_interval_of_a_single_run_is_null(farlink, small):
    content = json.loads(farlink("run", small, "--runs", 1, "--json", "-").stdout)

    assert all(entry["goodput_bps"]["ci95"] is None for entry in content["summary"])
    assert all(entry["runs"] == 1 for entry in content["summary"])


def test_same_seed_gives_the_same_bytes(farlink, small):
    first, again, other = (farlink("run", small, "--json", "-", "--seed", seed).stdout for seed in (3, 3, 4))

    assert first == again
    assert first != other


def test_setting_a_key_of_the_grid_fixes_it(farlink, small):
    content = json.loads(farlink("run", small, "--set", "link.channel.ber=1e-8", "--json", "-").stdout)

    assert {row["flow.bulk.transport"] for row in content["rows"]} == {"reno", "sack"}
    assert "link.channel.ber" not in content["rows"][0]
    assert content["scenario"]["link"]["channel"]["ber"] == 1e-8


def test_a_closed_pipe_loses_only_the_table(small, tmp_path):
    command = f"{sys.executable} -m farlink.cli run {small} --csv rows.csv --report r.html | head -n 1"

    done = subprocess.run(command, shell=True, cwd=tmp_path, capture_output=True, text=True, check=True)

    assert done.stdout == "Small\n"
    assert "Broken" not in done.stderr
    assert (tmp_path / "rows.csv").exists()
    assert (tmp_path / "r.html").exists()


def test_csv_has_a_line_per_row(farlink, small):
    done = farlink("run", small, "--csv", "-")

    rows = list(csv.DictReader(io.StringIO(done.stdout)))
    assert len(rows) == 6 * 2 * 3
    assert float(rows[0]["goodput_bps"]) > 0


def test_every_output_at_once(farlink, small, tmp_path):
    outputs = ["--json", "r.json", "--csv", "r.csv", "--parquet", "r.parquet", "--report", "r.html"]

    done = farlink("run", small, *outputs, "--series", "s.csv", "--pcap", "captures", "--point", 1, "--point", 4)

    assert done.returncode == 0, done.stderr
    assert sorted(p.name for p in tmp_path.iterdir()) == [
        "captures", "r.csv", "r.html", "r.json", "r.parquet", "s.csv", "small.toml",
    ]  # fmt: skip
    assert sorted(p.name for p in (tmp_path / "captures").iterdir()) == ["point-001-run-0.pcapng", "point-004-run-0.pcapng"]
    assert (tmp_path / "captures" / "point-001-run-0.pcapng").read_bytes()[:4] == b"\x0a\x0d\x0d\x0a"
    with (tmp_path / "s.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert {row["link.channel.ber"] for row in rows} == {"1e-07", "1e-05"}
    assert {"cwnd", "ssthresh", "rtt", "in_flight"} <= {row["quantity"] for row in rows}


def test_report_needs_no_network(farlink, small, tmp_path):
    farlink("run", small, "--report", "r.html")

    page = (tmp_path / "r.html").read_text()
    assert page.count("<svg ") >= 4
    assert "farlink run" in page
    loaded = re.findall(r"(?:src|href)=\"(?!#|data:)([^\"]*)\"|url\((?!#|data:)([^)]*)\)|@import", page)
    assert [reference for reference in loaded if not reference[0].startswith("#")] == []


def test_version_and_help(farlink):
    version, build = farlink("--version").stdout.splitlines()
    assert version == f"farlink {package.__version__}"
    assert re.fullmatch(rf"build {package.build_name()[:12]}, SIMD (Portable|Avx2|Avx512Gfni), cores \d+", build)
    assert "--set" in farlink("run", "--help").stdout
    assert "Examples" in farlink("run", "--help").stdout


def test_schema_is_json_schema(farlink):
    schema = json.loads(farlink("schema").stdout)

    assert "link" in json.dumps(schema)


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
def test_interrupt_keeps_the_finished_runs(name, small, started, tmp_path):
    long = ["--set", "duration_s=2000", "--set", "link.rate_bps=1e8", "--set", "runs=1000", "--json", "out.json"]
    process = started("run", small, *long)
    time.sleep(4)
    if process.poll() is not None:
        pytest.fail("the run was over before it could be interrupted")
    process.send_signal(getattr(signal, name))
    stdout, stderr = process.communicate(timeout=60)

    assert process.returncode == 130
    assert "finished runs kept" in stderr
    assert "Traceback" not in stderr
    assert "goodput" in stdout
    content = json.loads((tmp_path / "out.json").read_text())
    assert content["interrupted"] is True
    assert 0 < len(content["rows"]) < 1000 * 6 * 2

"""C/N0 on the command line: imported, synthetic, from a measured attenuation, shown."""

from __future__ import annotations

import numpy as np
import pytest
from tests.conftest import assert_refused

from farlink.channels.trace_file import read

BEACON = "time_s,attenuation_db\n" + "".join(f"{60 * k},{max(0, 6 - abs(k - 30)):g}\n" for k in range(120))


def test_cn0_is_imported_with_its_gaps_named(farlink, tmp_path):
    (tmp_path / "modem.csv").write_text("time_s,cn0_dbhz\n0,80\n1,\n2,79\n")

    refused = farlink("trace", "import", "modem.csv")
    done = farlink("trace", "import", "modem.csv", "--gaps", "outage", "-o", "modem.npz")
    assert_refused(refused, ["missing for 1.0 s in 1 gap: 1.0 to 2.0 s", "--gaps outage (no signal)"])
    assert done.returncode == 0, done.stderr
    assert "No signal                33.3 % of the time" in done.stdout
    assert read(tmp_path / "modem.npz")["cn0_dbhz"].tolist() == [80, -np.inf, 79]


def test_measured_attenuation_becomes_cn0_and_a_picture(farlink, tmp_path):
    (tmp_path / "beacon.csv").write_text(BEACON)

    done = farlink("trace", "rain", "beacon.csv", "-o", "b.parquet", "--set", "clear_sky_dbhz=90", "--set", "scale=none")
    assert done.returncode == 0, done.stderr
    assert "Highest C/N0             90.00 dBHz" in done.stdout
    assert "attenuation as measured" in done.stdout
    trace = read(tmp_path / "b.parquet")
    assert (trace["cn0_dbhz"].min(), trace.duration_s) == (84, 7200)
    shown = farlink("trace", "show", "b.parquet", "-o", "b.svg")
    assert shown.returncode == 0, shown.stderr
    assert "Fades that last longer than this" in (tmp_path / "b.svg").read_text()


def test_rain_is_synthesized_and_labelled(farlink, tmp_path):
    pytest.importorskip("itur", reason="the extra 'rain' is not installed")
    site = ("latitude_deg=50.67", "longitude_deg=4.61", "elevation_deg=30", "frequency_hz=19.7e9", "clear_sky_dbhz=95")

    settings = [part for text in (*site, "step_s=60") for part in ("--set", text)]
    done = farlink("trace", "synthesize", "rain", "-o", "r.npz", "--seed", "7", *settings)
    assert done.returncode == 0, done.stderr
    assert "Title                    rain at 19.7 GHz, seed 7 (synthetic)" in done.stdout
    assert "Synthetic                preset rain, seed 7" in done.stdout
    assert read(tmp_path / "r.npz").duration_s == 30 * 86_400


def test_parameters_are_listed(farlink):
    assert "latitude_deg" in farlink("trace", "synthesize", "rain", "--list").stdout
    assert "measured_length_m" in farlink("trace", "rain", "--list").stdout


@pytest.mark.parametrize("command", ["rain", "synthesize", "import"])
def test_help_has_an_example(farlink, command):
    shown = farlink("trace", command, "--help").stdout

    assert {"rain": "one_cml.h5", "synthesize": "synthesize rain -o rain.npz", "import": "modem.csv"}[command] in shown


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], ["no measured file is given", "farlink trace rain --list"]),
        (["beacon.csv"], ["no output is given", "-o rain.npz"]),
        (["beacon.csv", "-o", "b.csv"], ["'.csv'", "use .npz or .parquet"]),
        (["none.csv", "-o", "b.npz"], ["none.csv: no such file"]),
        (["beacon.csv", "-o", "b.npz"], ["no C/N0 is given", "clear_sky_dbhz=..."]),
        (["beacon.csv", "-o", "b.npz", "--set", "clear_sky_dbhz=90"], ["the file does not say carrier", "scale=none"]),
        (["beacon.csv", "-o", "b.npz", "--set", "scale"], ["--set scale: not KEY=VALUE"]),
        (["beacon.csv", "-o", "b.npz", "--gaps", "fill", "--set", "clear_sky_dbhz=90"], ["gaps 'fill' is not one of"]),
        (["beacon.csv", "-o", "b.npz", "--column", "rain"], ["no column rain"]),
    ],
)
def test_invalid_input_is_refused(farlink, tmp_path, arguments, said):
    (tmp_path / "beacon.csv").write_text(BEACON)

    assert_refused(farlink("trace", "rain", *arguments), said)

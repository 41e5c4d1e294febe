"""`farlink trace synthesize`, and scenarios that name a synthetic trace."""

from __future__ import annotations

import json

import numpy as np
import pytest
from tests.conftest import assert_refused

from farlink.channels.synthesis import PARAMETERS, PRESETS, synthesize
from farlink.channels.synthesis.text import SERIES
from farlink.channels.trace_file import read


def test_presets_and_their_parameters_are_listed(farlink):
    presets = farlink("trace", "synthesize", "--list")
    parameters = farlink("trace", "synthesize", "kiodo", "--list")

    assert [line.split()[0] for line in presets.stdout.splitlines()] == [*PRESETS, *SERIES]
    named = [line[2:].split()[0] for line in parameters.stdout.splitlines() if line.startswith(("  ", "* "))]
    assert named == list(PARAMETERS)
    assert any(line.startswith("* jitter_rad") for line in parameters.stdout.splitlines())
    assert presets.returncode == parameters.returncode == 0


def test_trace_is_written_and_labelled(farlink, tmp_path):
    done = farlink(
        "trace", "synthesize", "kiodo", "-o", "k.npz", "--duration-s", "3", "--seed", "5",
        "--set", "zenith_loss_db=1", "--delay", "d.npz",
    )  # fmt: skip

    assert done.returncode == 0, done.stderr
    assert "Title                KIODO, seed 5 (synthetic)" in done.stdout
    assert "not measured" in done.stdout
    trace, delay = read(tmp_path / "k.npz"), read(tmp_path / "d.npz")
    np.testing.assert_array_equal(trace["power_w"], synthesize("kiodo", duration_s=3, seed=5, zenith_loss_db=1)["power_w"])
    assert delay.kind == "delay"
    assert (trace.duration_s, delay.duration_s) == (3.0, 3.0)


@pytest.mark.parametrize("name", SERIES)
def test_parameters_of_what_is_no_power_are_listed(farlink, name):
    done = farlink("trace", "synthesize", name, "--list")
    title, parameters = SERIES[name]

    assert done.stdout.splitlines()[0] == f"{name}: {title}"
    assert [line.split()[0] for line in done.stdout.splitlines()[1:]] == list(parameters)


def test_a_drive_is_written_and_a_scenario_replays_it(farlink, tmp_path):
    done = farlink("trace", "synthesize", "vehicle", "-o", "v.npz", "--duration-s", "3", "--set", "distance_m=3e6")
    (tmp_path / "s.toml").write_text(
        """
duration_s = 3
runs = 1
link = { rate_bps = 1e6, delay_s = { kind = "delay-trace", file = "synthetic:vehicle?duration_s=3&distance_m=3e6" } }
transport.udp.kind = "udp"
flow.f = { transport = "udp", traffic = { kind = "cbr", rate_bps = 1e5, payload_bytes = 100 } }
"""
    )
    by_name = farlink("run", "s.toml", "--json", "-")
    by_file = farlink("run", "s.toml", "--json", "-", "--set", "link.delay_s.file=v.npz")

    assert done.returncode == by_name.returncode == by_file.returncode == 0, done.stderr + by_name.stderr + by_file.stderr
    assert "Synthetic" in done.stdout
    named, filed = (json.loads(one.stdout)["rows"][0] for one in (by_name, by_file))
    assert named == filed
    # 3000 km, and 128 bytes at 1 Mb/s.
    assert named["delay_mean_s"] == pytest.approx(3e6 / 299_792_458 + 128 * 8e-6, rel=1e-3)


def test_help_has_an_example(farlink):
    shown = farlink("trace", "synthesize", "--help").stdout

    assert "farlink trace synthesize kiodo -o kiodo.npz" in shown


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["kidoo", "-o", "x.npz"], ["'kidoo' is no preset", "did you mean 'kiodo'?"]),
        (["kidoo", "--list"], ["'kidoo' is no preset", "did you mean 'kiodo'?"]),
        (["vehcle", "-o", "x.npz"], ["'vehcle' is no preset", "did you mean 'vehicle'?"]),
        (["vehicle", "-o", "x.npz", "--delay", "y.npz"], ["the trace of a vehicle is its delay", "leave --delay out"]),
        (["vehicle", "-o", "x.npz", "--set", "stretch_m=9e3"], ["stretch_m: 9000 is not below", "less than 2800"]),
        ([], ["no preset is given", "--list"]),
        (["kiodo"], ["no file is given", "-o kiodo.npz"]),
        (["kiodo", "-o", "x.csv"], ["'.csv'", "use .npz or .parquet"]),
        (["kiodo", "-o", "x.npz", "--delay", "x.npz"], ["--delay x.npz would overwrite -o"]),
        (["kiodo", "-o", "x.npz", "--set", "order=1"], ["order: 1 is a first-order process", "order=2"]),
        (["kiodo", "-o", "x.npz", "--set", "order"], ["--set order: not KEY=VALUE"]),
        (["kiodo", "-o", "x.npz", "--set", "oder=3"], ["'oder' is no parameter", "did you mean 'order'?"]),
        (["testbed", "-o", "x.npz", "--delay", "y.npz"], ["testbed has no pass"]),
        (["testbed", "-o", "x.npz", "--duration-s", "0"], ["duration_s: 0 is not above 0"]),
        (["testbed", "-o", "x.npz", "--seed", "-1"], ["seed: -1 is not a whole number from 0"]),
        (["testbed", "-o", "no/x.npz"], ["no"]),
    ],
)
def test_refused(farlink, tmp_path, arguments, said):
    assert_refused(farlink("trace", "synthesize", *arguments), said)
    assert not list(tmp_path.glob("*.npz"))


SCENARIO = """
title = "Over light"
duration_s = 1
seed = 1

[link]
rate_bps = 1e7
delay_s = 0.001
queue_packets = 50

[link.channel]
kind = "fading"
file = "synthetic:testbed?seed=7&duration_s=5"
receiver = { characteristic_power_w = 1.35e-9, form_factor = 0.8, rate_bps = 1e7 }

[transport.sack]
kind = "tcp"
variant = "sack"

[flow.bulk]
transport = "sack"
traffic = { kind = "bulk" }
"""


def test_scenario_names_a_synthetic_trace(farlink, tmp_path):
    (tmp_path / "s.toml").write_text(SCENARIO)
    (tmp_path / "t.toml").write_text(SCENARIO.replace("synthetic:testbed", "synthetic:testbet"))

    done = farlink("run", "s.toml", "--json", "-")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["summary"]
    assert_refused(farlink("run", "t.toml"), ["link.channel.file: 'testbet' is no preset", "did you mean 'testbed'?"])

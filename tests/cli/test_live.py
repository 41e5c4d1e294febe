"""The engine `live` as a user runs it: real flows over the emulated path. As root."""

from __future__ import annotations

import json
import shutil

import pytest
from tests.cli.test_emulate import as_root, assert_nothing_is_left, namespaces
from tests.conftest import assert_refused
from typer.testing import CliRunner

from farlink.cli.commands import app
from farlink.engines import live
from farlink.errors import FarlinkError
from farlink.namespaces import DeviceGoneError, _unread
from farlink.scenario import load

SCENARIO = """
duration_s = 5
runs = 1
measure.warmup_s = 1
engines = ["packet", "live"]
link = { rate_bps = 10e6, delay_s = 0.02, queue_packets = 40 }
transport.cubic = { kind = "tcp", variant = "rack", congestion_control = "cubic" }
transport.aerotp = { kind = "aerotp", mode = "reliable", rate_bps = 2e6, packet_bytes = 1500 }
transport.udp = { kind = "udp" }
flow.bulk = { transport = "cubic", traffic = { kind = "bulk" } }
flow.file = { transport = "aerotp", start_s = 1, traffic = { kind = "file", bytes = 250_000 } }
flow.voice = { transport = "udp", traffic = { kind = "cbr", rate_bps = 64e3, payload_bytes = 160 } }
"""


@pytest.fixture
def scenario(tmp_path):
    (tmp_path / "live.toml").write_text(SCENARIO)
    return "live.toml"


@as_root
def test_simulated_and_measured_flows_stand_in_one_table(farlink, scenario):
    done = farlink("run", scenario, "--json", "-")

    assert done.returncode == 0, done.stderr
    assert "1 live run of real time: up to 5 s" in done.stderr
    rows = {(row["engine"], row["flow"]): row for row in json.loads(done.stdout)["rows"]}
    for flow in ("bulk", "file", "voice", "all"):
        simulated, measured = rows["packet", flow], rows["live", flow]
        assert measured.keys() == simulated.keys()
        assert measured["status"] == "ok"
        # Coarse, as a busy machine may be late: `docs/validation/live.md` has the figures of an idle one.
        assert measured["goodput_bps"] == pytest.approx(simulated["goodput_bps"], rel=0.3)
        assert measured["arrival_delay_mean_s"] >= 0.02
    assert rows["live", "bulk"]["retransmitted_bytes"] is not None
    assert rows["live", "voice"]["delay_mean_s"] >= 0.02
    assert rows["live", "file"]["transfer_time_mean_s"] == pytest.approx(1.0, rel=0.3)


@as_root
def test_damage_and_loss_are_counted(farlink, scenario):
    done = farlink("run", scenario, "--engine", "live", "--set", "link.channel={kind='ber', ber=1e-5}", "--json", "-")

    rows = {row["flow"]: row for row in json.loads(done.stdout)["rows"]}
    assert rows["bulk"]["loss_fraction"] == pytest.approx(0.11, abs=0.05)
    assert rows["file"]["status"] == "ok"


@pytest.mark.parametrize(
    ("setting", "wrong", "remedy"),
    [
        ("transport.cubic.variant=tahoe", "transport.cubic.variant", "rack"),
        ("transport.cubic.congestion_control=vegas", "not vegas", "engine packet"),
        ("transport.cubic.initial_window_segments=4", "transport.cubic.initial_window_segments", "approximate"),
        ("flow.bulk.start_spread_s=1", "flow.bulk.start_spread_s", "approximate"),
        ("flow.voice.traffic.payload_bytes=9000", "9000", "between"),
    ],
)
@pytest.mark.usefixtures("scenario")
def test_what_no_socket_plays_is_refused_by_name(farlink, setting, wrong, remedy):
    assert_refused(farlink("run", "live.toml", "--engine", "live", "--set", setting), [wrong, remedy])


def test_what_cannot_be_played_is_said_before_others_simulate(farlink, scenario, monkeypatch):
    """Without `ip`, as without root, there is no stage. A hundred thousand simulated runs would take hours."""
    monkeypatch.setenv("PATH", "/nonexistent")
    done = farlink("run", scenario, "--runs", "100000")

    assert done.returncode == 2
    assert done.stdout == ""
    assert "error: " in done.stderr
    assert "hint: " in done.stderr


@as_root
def test_a_check_leaves_nothing_behind(scenario, tmp_path):
    before = namespaces()
    live.check(load(tmp_path / scenario))

    assert_nothing_is_left(before)


def test_finished_studies_stay_when_a_later_engine_fails(scenario, tmp_path, monkeypatch):
    def fail(*_: object, **__: object) -> None:
        raise FarlinkError("the stage fell down", "build another one")

    monkeypatch.setattr(live, "run", fail)
    monkeypatch.setattr(live, "check", lambda _, __: None)
    done = CliRunner().invoke(app, ["run", str(tmp_path / scenario)])

    assert done.exit_code == 2
    assert "mean ± half-width" in done.stdout, "the table is there"
    assert "ended early: 1 finished runs kept" in done.stderr
    assert done.stderr.endswith("error: the stage fell down\nhint: build another one\n")


def test_a_device_that_is_gone_has_no_count():
    if shutil.which("ip") is None:
        pytest.skip("ip is not installed")
    with pytest.raises(DeviceGoneError, match="farlink-none is gone") as raised:
        _unread("farlink-none")
    assert raised.value.exit_code == 1

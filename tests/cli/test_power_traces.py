"""`farlink trace import`, `calibrate`, `fades` and `show` of a received power, as a user types them."""

from __future__ import annotations

import json
import warnings

import numpy as np
import pytest
from tests.conftest import assert_refused
from typer.testing import CliRunner

from farlink.channels import fades, power, trace_file
from farlink.channels.receiver import Receiver
from farlink.channels.trace import Trace
from farlink.cli.trace import app

RATE_HZ = 1000.0


@pytest.fixture
def measured(tmp_path):
    """A vehicle's link of 20 s in dBm: fading, two blockages, a gap in the clock."""
    rng = np.random.default_rng(5)
    spectrum = rng.standard_normal(10_001) + 1j * rng.standard_normal(10_001)
    spectrum[400:] = 0
    gauss = np.fft.irfft(spectrum)
    dbm = -43 + 1.5 * gauss / gauss.std()
    dbm[3000:3200] -= 30
    dbm[9000:11_000] -= 30
    kept = np.ones(dbm.size, bool)
    kept[15_000:15_010] = False
    rows = zip(np.arange(dbm.size)[kept] / RATE_HZ, dbm[kept], strict=True)
    path = tmp_path / "vehicle.csv"
    path.write_text("time_s,power_dbm\n" + "".join(f"{t:.3f},{p:.3f}\n" for t, p in rows))
    return path


@pytest.fixture
def link(tmp_path):
    """A calm link as a trace: 5 s with a fade of 20 ms in every second."""
    power_w = np.full(5000, 40e-9)
    for start in range(500, 5000, 1000):
        power_w[start : start + 20] = 15e-9
    return trace_file.write(Trace("power", {"power_w": power_w}, {"duration_s": 5.0, "title": "calm"}), tmp_path / "calm.npz")


def test_from_measurement_to_a_calibrated_link(farlink, measured, tmp_path):
    assert_refused(farlink("trace", "import", measured), ["10 samples missing in 1 gap", "at sample 15000", "--gaps"])
    done = farlink("trace", "import", measured, "--gaps", "hold", "-o", "vehicle.npz")
    assert done.returncode == 0, done.stderr
    assert "1000 Hz" in done.stdout
    assert "10 samples missing in 1 gap, filled with the power before" in done.stdout

    done = farlink(
        "trace", "calibrate", "vehicle.npz", "-o", "link.npz", "--ber", "1e-6", "--find-blockages", "--block", "18-18.5"
    )
    assert done.returncode == 0, done.stderr
    assert "1e-06, blockages left out" in done.stdout
    found = trace_file.read(tmp_path / "link.npz")
    mask = power.blocked(found)
    assert mask.sum() == 200 + 2000 + 500
    receiver = Receiver.named("frm5w621")
    assert fades.long_term_ber(found["power_w"], receiver, blocked=mask) == pytest.approx(1e-6, rel=1e-9)
    # The blockages are back, 30 dB below the mean as measured.
    assert 10 * np.log10(found["power_w"][~mask].mean() / found["power_w"][9000:11_000].mean()) == pytest.approx(30, abs=1)


def test_cut_resampled_and_reversed(farlink, link, tmp_path):
    done = farlink(
        "trace", "calibrate", link, "-o", "back.npz", "--from-s", 1, "--to-s", 4, "--sample-rate-hz", 100, "--reverse"
    )

    assert done.returncode == 0, done.stderr
    found = trace_file.read(tmp_path / "back.npz")
    expected = trace_file.read(link)["power_w"][1000:4000].reshape(-1, 10).mean(axis=1)[::-1]
    np.testing.assert_allclose(found["power_w"], expected)
    assert found.duration_s == 3


def test_fades_as_a_table_and_as_json(farlink, link):
    table = farlink("trace", "fades", link, "--threshold-db", "-3,-10")
    assert table.returncode == 0, table.stderr
    row = next(line for line in table.stdout.splitlines() if line.strip().startswith("-3 dB"))
    assert row.split()[2:4] == ["5", "1.00"]
    assert "20" in row

    found = json.loads(farlink("trace", "fades", link, "--threshold-db", "-3,-10", "--json", "-").stdout)
    first, second = found["fades"]
    assert (first["fades"], first["rate_per_s"], first["time_below"]) == (5, 1.0, 0.02)
    assert first["mean_s"] == first["max_s"] == pytest.approx(0.02)
    assert (second["fades"], second["mean_s"]) == (0, None)
    receiver = Receiver.named("frm5w621")
    assert found["time_of_half_the_errors"] == pytest.approx(0.01, abs=0.0003)  # half of the fades
    assert found["ber"] == pytest.approx(0.02 * receiver.ber(15e-9) + 0.98 * receiver.ber(40e-9))


def test_another_receiver_gives_another_rate(farlink, link):
    one = json.loads(farlink("trace", "fades", link, "--json", "-").stdout)["ber"]
    other = json.loads(farlink("trace", "fades", link, "--json", "-", "--receiver", "2e-9,0.8").stdout)["ber"]

    assert other == pytest.approx(0.02 * Receiver("", 2e-9, 0.8).ber(15e-9) + 0.98 * Receiver("", 2e-9, 0.8).ber(40e-9))
    assert other > one


@pytest.mark.parametrize(
    ("power_w", "meta", "blocked", "suffix"),
    [
        (np.full(5000, 40e-9), {}, None, ".png"),
        (np.array([40e-9]), {}, None, ".png"),
        (np.array([0.0, 40e-9, 0.0]), {}, [0, 0, 1], ".svg"),
        (np.geomspace(1e-12, 1e-6, 30_000), {"synthetic": True, "preset": "kiodo", "seed": 1}, None, ".html"),
        (np.array([0.5, 1.0, 1.5] * 400), {"relative_power": True}, None, ".pdf"),
    ],
    ids=["constant", "one sample", "no power", "slope", "relative"],
)
def test_every_received_power_can_be_drawn(tmp_path, monkeypatch, power_w, meta, blocked, suffix):
    pytest.importorskip("matplotlib")
    monkeypatch.chdir(tmp_path)
    arrays = {"power_w": power_w} | ({} if blocked is None else {"blocked": np.array(blocked)})
    trace_file.write(Trace("power", arrays, {"duration_s": power_w.size / RATE_HZ, **meta}), tmp_path / "a.npz")
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        done = CliRunner().invoke(app, ["show", "a.npz", "-o", f"a{suffix}"])

    assert done.exit_code == 0, (done.stderr, done.exception)
    assert (tmp_path / f"a{suffix}").stat().st_size > 10_000
    if meta.get("synthetic"):
        assert "Synthetic" in done.stdout
        assert "kiodo" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["calibrate", "LINK", "-o", "out.npz"], ["nothing to do", "--ber"]),
        (["calibrate", "LINK", "-o", "out.npz", "--ber", "0.7"], ["error rate of 0.7 cannot be reached"]),
        (["calibrate", "LINK", "-o", "out.npz", "--ber", "1e-6", "--block", "0-5"], ["all 5000 samples are blocked"]),
        (["calibrate", "LINK", "-o", "out.npz", "--ber", "1e-6", "--block", "seven"], ["--block seven: not an interval"]),
        (["calibrate", "LINK", "-o", "out.npz", "--block", "7-9"], ["blockage from 7 s to 9 s", "from 0 s to 5 s"]),
        (["calibrate", "LINK", "-o", "out.npz", "--ber", "1e-6", "--receiver", "frm5w612"], ["did you mean 'frm5w621'?"]),
        (["calibrate", "LINK", "-o", "out.npz", "--from-s", "6"], ["nothing to cut from 6 s to 5 s"]),
        (["calibrate", "LINK", "-o", "out.csv", "--ber", "1e-6"], ["no trace has the suffix '.csv'"]),
        (["calibrate", "LINK", "-o", "LINK", "--ber", "1e-6"], ["is the file to calibrate"]),
        (["calibrate", "loss.npz", "-o", "out.npz", "--ber", "1e-6"], ["a packet-loss trace, where received power is wanted"]),
        (["calibrate", "dark.npz", "-o", "out.npz", "--ber", "1e-6"], ["cannot be reached", "the first is sample 1"]),
        (["fades", "loss.npz"], ["a packet-loss trace, where received power is wanted"]),
        (["fades", "dark.npz", "--threshold-db", "-3;-6"], ["--threshold-db -3;-6: not numbers"]),
        (["fades", "none.npz"], ["no such file"]),
        (["fades", "zero.npz"], ["the power is 0 throughout"]),
        (["calibrate", "zero.npz", "-o", "out.npz", "--from-s", "0.5"], ["the power is 0 throughout"]),
        (["import", "zero.csv", "--unit", "W", "-o", "out.npz"], ["power is 0 throughout"]),
        (["show", "zero.npz", "-o", "a.png"], ["the power is 0 throughout"]),
        (["receivers", "frm"], ["there is no receiver 'frm'"]),
        (["receivers", "--ber", "0.6"], ["a bit error rate of 0.6"]),
        (["receivers", "--plot", "a.gif"], ["no picture has the suffix '.gif'"]),
        (["import", "power.csv"], ["the unit of power is not known", "--unit"]),
    ],
)  # fmt: skip
def test_refused_commands_write_nothing(link, tmp_path, monkeypatch, arguments, said):
    monkeypatch.chdir(tmp_path)
    trace_file.write(Trace("packet-loss", {"lost": [0, 1]}), tmp_path / "loss.npz")
    trace_file.write(Trace("power", {"power_w": [1e-8, 0.0]}, {"duration_s": 1.0}), tmp_path / "dark.npz")
    trace_file.write(Trace("power", {"power_w": [0.0, 0.0]}, {"duration_s": 1.0}), tmp_path / "zero.npz")
    (tmp_path / "power.csv").write_text("time_s,power\n0,1\n1,2\n")
    (tmp_path / "zero.csv").write_text("time_s,power\n0,0\n1,0\n")
    before = sorted(tmp_path.iterdir())
    done = CliRunner().invoke(app, [str(link) if one == "LINK" else one for one in arguments])

    assert (done.exit_code, done.stdout) == (2, ""), done.stderr
    assert [line.split(":")[0] for line in done.stderr.splitlines()] == ["error", "hint"]
    for words in said:
        assert words in done.stderr
    assert sorted(tmp_path.iterdir()) == before


def test_receivers_are_listed_with_their_sensitivity(tmp_path, monkeypatch):
    pytest.importorskip("matplotlib")
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(app, ["receivers", "--ber", "1e-6"])
    assert done.exit_code == 0, done.stderr
    assert "frm5w621" in done.stdout
    assert "-44.29 dBm" in done.stdout

    done = CliRunner().invoke(app, ["receivers", "frm5w621", "2.7e-9,0.8", "--ber", "1e-6", "--plot", "a.svg"])
    assert "-41.28 dBm" in done.stdout  # twice the power: 3.01 dB
    assert (tmp_path / "a.svg").stat().st_size > 5000


@pytest.mark.parametrize("command", ["calibrate", "fades", "import", "receivers"])
def test_help_has_an_example(farlink, command):
    done = farlink("trace", command, "--help")

    assert done.returncode == 0
    assert f"farlink trace {command}" in done.stdout.replace("Usage: farlink trace", "")

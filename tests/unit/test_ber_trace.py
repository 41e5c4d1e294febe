"""Recorded bit error rates: allowed values, summary, picture and replay."""

from __future__ import annotations

import numpy as np
import pytest

import farlink
from farlink.channels.describe import describe
from farlink.channels.summary import summary
from farlink.channels.trace import Trace
from farlink.channels.trace_file import read, write
from farlink.errors import TraceError

STEPS = [0.0, 1e-5, 1e-3, 0.0]


def trace(ber=STEPS, duration_s=40.0):
    return Trace("ber", {"ber": np.asarray(ber, dtype=float)}, {"duration_s": duration_s, "title": "Steps"})


@pytest.mark.parametrize(
    ("ber", "duration_s", "said"),
    [
        ([], 1.0, "empty"),
        ([0.1, -1e-9], 1.0, "sample 1"),
        ([0.6], 1.0, "0.6"),
        ([np.nan], 1.0, "not finite"),
        ([0.1], 0.0, "duration_s"),
    ],
)
def test_invalid_error_rates_are_refused(ber, duration_s, said):
    with pytest.raises(TraceError, match=said):
        trace(ber, duration_s)


def test_summary_of_a_ber_trace():
    found = summary(trace())

    assert found["ber"] == pytest.approx((1e-5 + 1e-3) / 4)
    assert (found["ber_max"], found["time_above_1e-06"], found["time_above_0.0001"]) == (1e-3, 0.5, 0.25)
    assert any("25 % of the time" in line for line in map(str, describe(trace())))


@pytest.mark.parametrize("ber", [STEPS, [0.0, 0.0]])
def test_a_ber_trace_is_drawn(ber, tmp_path):
    pytest.importorskip("matplotlib")
    from farlink.plot import trace as plots

    assert plots.save(trace(ber), tmp_path / "ber.svg").stat().st_size > 1000


def test_the_engine_replays_a_ber_trace(tmp_path):
    """Ten seconds without errors, ten at 1e-5 and so on: losses of 1000-bit datagrams follow the bit error rate."""
    path = write(trace(), tmp_path / "ber.npz")
    assert read(path).kind == "ber"
    result = farlink.run(
        {
            "duration_s": 40,
            "runs": 4,
            "link": {"rate_bps": 1e6, "delay_s": 0.01, "channel": {"kind": "ber-trace", "file": str(path)}},
            "transport": {"udp": {"kind": "udp", "header_bytes": 28}},
            "flow": {"data": {"transport": "udp", "traffic": {"kind": "cbr", "rate_bps": 5e5, "payload_bytes": 97}}},
        }
    )
    (found,) = {row["loss_fraction"]["mean"] for row in result.summary() if row["flow"] == "data"}
    expected = np.mean([1 - (1 - ber) ** 1000 for ber in STEPS])
    assert found == pytest.approx(expected, rel=0.03)


def test_other_traces_are_refused(tmp_path):
    path = write(Trace("packet-loss", {"lost": [0, 1]}), tmp_path / "loss.npz")
    scenario = {
        "duration_s": 1,
        "link": {"rate_bps": 1e6, "delay_s": 0.01, "channel": {"kind": "ber-trace", "file": str(path)}},
        "transport": {"udp": {"kind": "udp"}},
        "flow": {"data": {"transport": "udp", "traffic": {"kind": "cbr", "rate_bps": 5e5, "payload_bytes": 97}}},
    }
    with pytest.raises(farlink.FarlinkError, match="ber"):
        farlink.run(scenario)


def test_summary_has_shares_of_time_at_five_levels():
    # One sample just above each level, and one on the highest, which is not above it.
    found = summary(trace([1.1e-7, 1.1e-6, 1.1e-5, 1.1e-4, 1e-3, 1.1e-3, 0.0, 0.0]))

    shares = {name: value for name, value in found.items() if name.startswith("time_above_")}
    assert shares == {
        "time_above_1e-07": 6 / 8,
        "time_above_1e-06": 5 / 8,
        "time_above_1e-05": 4 / 8,
        "time_above_0.0001": 3 / 8,
        "time_above_0.001": 1 / 8,
    }

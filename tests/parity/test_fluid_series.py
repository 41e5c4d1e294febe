"""The fluid engine beside the packet engine over an error rate that changes."""

import numpy as np
import pytest

import farlink
from farlink.channels.trace import Trace
from farlink.channels.trace_file import write


def scenario(tmp_path, **channel):
    """Five minutes each of few errors, of many, and of no detected frames; the rate is lower in the second half."""
    ber = np.repeat([1e-7, 2e-6, 0.5, 1e-6], 30)
    write(Trace("ber", {"ber": ber}, {"duration_s": 1200.0}), tmp_path / "ber.npz")
    rate = Trace("rate", {"time_s": [0.0, 600.0], "rate_bps": [2e6, 1e6]}, {"duration_s": 1200.0})
    write(rate, tmp_path / "rate.npz")
    return {
        "engines": ["packet", "fluid"],
        "duration_s": 4800,
        "runs": 8,
        "link": {
            "rate_bps": {"kind": "rate-trace", "file": str(tmp_path / "rate.npz")},
            "delay_s": 0.1,
            "queue_packets": 50,
            "channel": {"kind": "ber-trace", "file": str(tmp_path / "ber.npz"), **channel},
            "return": {"rate_bps": 1e6},
        },
        "transport": {"tcp": {"kind": "tcp", "segment_bytes": 960, "delayed_ack": False}},
        "flow": {"bulk": {"transport": "tcp", "count": 2, "traffic": {"kind": "bulk"}}},
    }


def test_goodput_matches_the_packet_engine(tmp_path):
    found = farlink.run(scenario(tmp_path)).summary()
    packet, fluid = [entry["goodput_bps"] for entry in found if entry["flow"] == "all"]

    assert packet["ci95"] < 0.03 * packet["mean"]
    assert fluid["mean"] == pytest.approx(packet["mean"], rel=0.05)


def test_an_offset_into_a_series_needs_the_packet_engine(tmp_path):
    with pytest.raises(farlink.FarlinkError, match="offset_s"):
        farlink.run(scenario(tmp_path, offset_s=10), engine="fluid")

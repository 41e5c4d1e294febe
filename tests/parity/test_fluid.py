"""The fluid engine beside the packet engine, at points where losses, the buffer or both limit the flows."""

import pytest

import farlink

# Rate in segments per second, round trip in s, queue, loss rate, flows, and changes to the SACK transport.
POINTS = {
    "losses": (1000, 0.2, 100, 3e-3, 2, {}),
    "small buffer": (500, 0.2, 20, 1e-5, 3, {}),
    "both": (1000, 0.15, 60, 1e-3, 8, {}),
    "newreno": (1000, 0.2, 100, 3e-3, 2, {"variant": "newreno"}),
    "rack": (1000, 0.2, 100, 8e-3, 2, {"variant": "rack"}),
    "delayed acknowledgements": (1000, 0.2, 100, 1e-3, 4, {"delayed_ack": True}),
    "cubic": (2000, 0.2, 100, 1e-4, 2, {"congestion_control": "cubic"}),
    "a window that limits": (1000, 0.2, 100, 1e-4, 3, {"max_window_segments": 30}),
}


@pytest.mark.parametrize("name", POINTS)
def test_goodput_matches_the_packet_engine(name):
    rate, round_trip_s, queue, loss, flows, transport = POINTS[name]
    scenario = {
        "engines": ["packet", "fluid"],
        "duration_s": 2000 * round_trip_s,
        "runs": 16,
        "measure": {"warmup_s": 200 * round_trip_s},
        "link": {
            "rate_bps": rate * 8000,
            "delay_s": (round_trip_s - 1.04 / rate) / 2,
            "queue_packets": queue,
            "channel": {"kind": "loss", "loss": loss},
        },
        "transport": {"tcp": {"kind": "tcp", "segment_bytes": 960, "delayed_ack": False, **transport}},
        "flow": {"bulk": {"transport": "tcp", "count": flows, "traffic": {"kind": "bulk"}}},
    }

    packet, fluid = [entry["goodput_bps"] for entry in farlink.run(scenario).summary() if entry["flow"] == "all"]

    assert packet["ci95"] < 0.03 * packet["mean"]
    assert fluid["mean"] == pytest.approx(packet["mean"], rel=0.05)

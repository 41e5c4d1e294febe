"""Closed-form goodput of a window over lines: its bounds, and comparison with the packet engine."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import farlink
from farlink.models.multilink import go_back_n, loaded_bundle
from farlink.models.multilink.fading import FrameErrors
from farlink.models.multilink.windowed_bundle import (
    Repetition,
    WindowedBundle,
    goodput_bps,
    line_bytes,
    packet_rate_hz,
    packet_time_deviation_s,
    packet_time_s,
    rtt_s,
    unloaded_rtt_s,
)
from farlink.models.multilink.windowed_bundle import _mean_largest as mean_largest
from farlink.scenario import from_data

ARQ = Repetition(frame_bytes=25, window_frames=6, loss=0.03, loss_again=0.1)
IRIDIUM = WindowedBundle(lines=8, rate_bps=2400, packet_bytes=1500, window_packets=33, delay_s=0.5, arq=ARQ)


def test_results_have_the_broadcast_shape():
    bundle = replace(IRIDIUM, lines=[1, 2, 8], window_packets=[[4.5], [33]], arq=Repetition(25, 6, [[[0.0]], [[0.1]]]))

    for quantity in (packet_rate_hz, rtt_s, goodput_bps):
        assert quantity(bundle).shape == (2, 2, 3)
    assert unloaded_rtt_s(bundle).shape == (2, 2, 3)


def test_frame_repetition_is_go_back_n():
    bundle = replace(IRIDIUM, arq=Repetition(25, 6, 0.03))
    arq = go_back_n.GoBackN(np.ceil(line_bytes(1500) / 25), 6, 25 * 8 / 2400, FrameErrors(0.03, 0.03))

    assert packet_time_s(bundle) == pytest.approx(go_back_n.rtt_mean_s(arq))
    assert packet_time_deviation_s(bundle) == pytest.approx(go_back_n.rtt_deviation_s(arq))


def test_header_and_escapes_are_those_of_the_line():
    assert line_bytes(1500, header="long") - line_bytes(1500, header="short") == 2
    assert line_bytes(256 - 8) == 1 + 256 + 2


@given(
    lines=st.integers(1, 12),
    line_packets=st.integers(1, 8),
    packet_bytes=st.integers(60, 1500),
    window=st.floats(1, 200),
    loss=st.floats(0, 0.2),
    delay_s=st.floats(0, 5),
)
def test_goodput_is_bounded_by_window_and_lines(lines, line_packets, packet_bytes, window, loss, delay_s):
    bundle = WindowedBundle(
        lines, 2400, packet_bytes, window, line_packets=line_packets, delay_s=delay_s, arq=Repetition(25, 6, loss)
    )
    rate, time = float(packet_rate_hz(bundle)), float(packet_time_s(bundle))

    assert 0 < rate <= lines / time * (1 + 1e-9)
    assert rtt_s(bundle) >= unloaded_rtt_s(bundle) * (1 - 1e-9)
    assert rate * rtt_s(bundle) == pytest.approx(window)
    assert packet_rate_hz(replace(bundle, window_packets=1.1 * window)) >= rate * (1 - 1e-9)
    # A line that holds more packets only makes another one wait.
    assert packet_rate_hz(replace(bundle, line_packets=line_packets + 1)) <= rate * (1 + 1e-9)


def test_round_trip_is_that_of_the_thesis_when_the_window_fills_the_lines():
    lines = np.array([1, 2, 4, 8])
    bundle = replace(IRIDIUM, lines=lines, window_packets=3 * lines, arq=None)

    thesis = loaded_bundle.rtt_mean_s(3, modem_time_s=packet_time_s(bundle))
    assert rtt_s(bundle) == pytest.approx(np.full(4, thesis))


@pytest.mark.parametrize("lines", [1, 8])
@pytest.mark.parametrize("packet_bytes", [300, 1500])
@pytest.mark.parametrize("repeats", [False, True])
@pytest.mark.parametrize(("window", "tolerance"), [("line", 0.05), ("fixed", 0.01)])
def test_engine_agrees_with_the_closed_form(lines, packet_bytes, repeats, window, tolerance):
    packets = lines if window == "line" else 33
    arq = {"arq": {"frame_bytes": 25, "window_frames": 6, "loss": 0.03, "loss_again": 0.1}} if repeats else {}
    data = {
        "duration_s": 7200,
        "runs": 4,
        "measure": {"warmup_s": 600},
        "link": {"rate_bps": 2400, "delay_s": 0.5, "bundle": {"lines": lines, **arq}},
        "transport": {
            "one": {
                "kind": "tcp",
                "segment_bytes": packet_bytes - 52,
                "timestamps": True,
                "max_window_segments": packets,
                "rto": {"minimum_s": 300, "initial_s": 300, "maximum_s": 600},
            }
        },
        "flow": {"data": {"transport": "one", "traffic": {"kind": "bulk"}}},
    }
    rows = farlink.run(from_data(data)).rows
    found = [rows["goodput_bps"][place] for place, flow in enumerate(rows["flow"]) if flow == "all"]

    bundle = WindowedBundle(lines, 2400, packet_bytes, packets, delay_s=0.5, arq=ARQ if repeats else None)
    assert float(goodput_bps(bundle)) == pytest.approx(np.mean(found), rel=tolerance)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"lines": 0}, "lines must be a whole number of at least 1, not 0"),
        ({"rate_bps": -1}, "rate_bps must be positive"),
        ({"packet_bytes": 0}, "packet_bytes must be a whole number"),
        ({"window_packets": 0.5}, "window_packets must be at least 1"),
        ({"line_packets": 1.5}, "line_packets must be a whole number"),
        ({"delay_s": -0.1}, "delay_s must be at least 0"),
        ({"header": "none"}, "header must be 'long' or 'short', not 'none'"),
        ({"arq": replace(ARQ, loss=1.0)}, "loss must be from 0 to below 1"),
        ({"arq": replace(ARQ, loss_again=1.0)}, "loss_again must be from 0 to below 1"),
        ({"arq": replace(ARQ, frame_bytes=0)}, "frame_bytes must be a whole number"),
        ({"packet_bytes": 52}, "header_bytes must be below packet_bytes, not 52"),
    ],
)
def test_values_out_of_range_are_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        goodput_bps(replace(IRIDIUM, **changes))


def test_expected_maximum_of_normal_values_is_linear_between_integers():
    # Blom's approximation: of one 0, of two 0.589, of three 0.869; their running means.
    one, two, three = 0.0, 0.5894558 / 2, (0.5894558 + 0.8694238) / 3

    assert mean_largest(np.array([1.0])) == pytest.approx([one], abs=1e-6)
    assert mean_largest(np.array([2.0])) == pytest.approx([two], abs=1e-6)
    assert mean_largest(np.array([2.5])) == pytest.approx([(two + three) / 2], abs=1e-6)
    assert mean_largest(np.array([3.0])) == pytest.approx([three], abs=1e-6)
    # How many others are asked for changes nothing.
    assert mean_largest(np.array([2.5, 40.0]))[0] == pytest.approx(float(mean_largest(np.array([2.5]))[0]))

"""Numbers formatted for users."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farlink import units
from farlink.units import Scale


@pytest.mark.parametrize(
    ("mean", "half_width", "shown"),
    [
        (473.218, 4.321, "473.2 ± 4.3"),
        (3877.2, 23.4, "3877 ± 23"),
        (258.632, 0.0371, "258.63 ± 0.04"),
        (0.70, 0.4812, "0.70 ± 0.48"),
        (0.0, 0.5, "0.00 ± 0.50"),
        (5.0, 0.0, "5 ± 0"),
        (5.0, 4e-17, "5 ± 0"),
        (5.0, math.nan, "5"),
        (math.nan, 1.0, "–"),
        (1e-7, 2.2e-8, "1e-7 ± 2.2e-8"),
        (123456.0, 1234.0, "123456 ± 1234"),
    ],
)
def test_interval(mean, half_width, shown):
    assert Scale(1.0, "").interval(mean, half_width) == shown


@given(st.floats(1e-2, 1e6), st.floats(1e-3, 1.0))
def test_interval_loses_less_than_a_tenth_of_itself(mean, relative):
    half_width = mean * relative

    shown_mean, shown_half_width = map(float, Scale(1.0, "").interval(mean, half_width).split(" ± "))

    assert shown_half_width == pytest.approx(half_width, rel=0.5)
    assert abs(shown_mean - mean) <= half_width * 0.51


@pytest.mark.parametrize(
    ("value", "key", "shown"),
    [
        (1e-9, "link.channel.ber", "1e-9"),
        (1e6, "link.rate_bps", "1 Mb/s"),
        (0.25, "link.delay_s", "250 ms"),
        (2000, "duration_s", "2000 s"),
        (250_000, "link.queue_bytes", "250 kB"),
        (10, "hop.radio.queue_packets", "10 packets"),
        (True, "transport.sack.delayed_ack", "true"),
        ({"kind": "loss", "loss": 0.1}, "link.channel", "loss"),
        ({"weights": ["strict", 3, 1]}, "link.service", "weights strict, 3, 1"),
        ({"kind": "rate-trace", "file": "$D/a.gz"}, "link.rate_bps", "rate-trace a.gz"),
    ],
)
def test_grid_value(value, key, shown):
    assert units.show(value, key) == shown


def test_labels_are_distinguishable():
    assert units.labels(["hop.a.rate_bps", "hop.b.rate_bps", "link.delay_s"]) == {
        "hop.a.rate_bps": "hop.a rate",
        "hop.b.rate_bps": "hop.b rate",
        "link.delay_s": "one-way delay",
    }

"""Imported measured files have the figures stated in their descriptions."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from farlink.channels import cache
from farlink.channels.summary import gaps_s, summary, windowed_rate_bps

DATA = Path(os.environ.get("FARLINK_DATA") or Path(__file__).parents[3] / "shared" / "data")


def measured(name):
    path = DATA / name
    if not path.exists():
        pytest.skip(f"{path} is missing: set FARLINK_DATA to the directory of the measured data")
    return path


def autocorrelation(values, lag):
    """Autocorrelation at a lag, with the mean and variance of the whole series."""
    centred = values - values.mean()
    return np.mean(centred[:-lag] * centred[lag:]) / np.mean(centred**2)


def percent_bps(rates, *percents):
    return [np.percentile(rates, percent) / 1e6 for percent in percents]


@pytest.mark.parametrize(
    ("name", "duration_s", "mean_mbps", "rates_mbps", "in_gaps", "longest_s"),
    [
        ("ATT-LTE-driving-2016.down", 120, 4.56, (0.58, 3.74, 11.1), 0.12, 1.1),
        ("ATT-LTE-driving-2016.up", 120, 1.91, (0.03, 1.57, 4.8), 0.21, 4.1),
        ("TMobile-UMTS-driving.down", 928, 2.02, (0.02, 1.89, 5.35), 0.14, 5.8),
        ("TMobile-UMTS-driving.up", 931, 0.94, None, 0.11, 5.8),
        ("Verizon-EVDO-driving.down", 1062, 0.52, (0.01, 0.41, 1.45), 0.40, 11.6),
        ("Verizon-EVDO-driving.up", 1065, 0.84, None, 0.17, 11.2),
        ("Verizon-LTE-short.down", 140, 5.03, None, 0.03, 1.4),
        ("Verizon-LTE-short.up", 140, 5.95, None, 0.03, 1.7),
    ],
)
def test_cellular_traces_have_the_stated_rates_and_gaps(name, duration_s, mean_mbps, rates_mbps, in_gaps, longest_s):
    trace = cache.import_file(measured(f"cellular-mahimahi/{name}.gz"))
    found = summary(trace)

    assert trace.duration_s == pytest.approx(duration_s, abs=0.5)
    assert found["rate_mean_bps"] / 1e6 == pytest.approx(mean_mbps, abs=0.0051)
    assert found["time_in_gaps"] == pytest.approx(in_gaps, abs=0.0051)
    assert found["longest_gap_s"] == pytest.approx(longest_s, abs=0.051)
    if rates_mbps:
        for found_mbps, stated in zip(percent_bps(windowed_rate_bps(trace, 1.0), 5, 50, 95), rates_mbps, strict=True):
            assert found_mbps == pytest.approx(stated, abs=0.051 if stated > 4 else 0.0051)


def test_starlink_capacity_has_the_stated_percentiles():
    trace = cache.import_file(measured("starlink-leocc-example/bw_example.txt.gz"))
    rates = windowed_rate_bps(trace, 0.1)

    assert trace.duration_s == pytest.approx(120.05, abs=0.005)
    assert summary(trace)["rate_mean_bps"] / 1e6 == pytest.approx(48.7, abs=0.051)
    assert percent_bps(rates, 1, 5, 50, 95, 99) == pytest.approx([20.9, 33.6, 48.7, 66.5, 74.0], abs=0.051)
    assert np.mean(windowed_rate_bps(trace, 0.01) == 0) == pytest.approx(0.008, abs=0.0005)
    for lag, stated in ((1, 0.79), (10, 0.56), (50, 0.24), (150, 0.23)):
        assert autocorrelation(rates, lag) == pytest.approx(stated, abs=0.01)


def test_starlink_delay_has_the_stated_percentiles():
    trace = cache.import_file(measured("starlink-leocc-example/delay_example.txt"))

    assert trace.duration_s == pytest.approx(119.99)
    assert np.percentile(trace["delay_s"] * 1000, [1, 50, 99]) == pytest.approx([8, 11, 14])
    for lag, stated in ((1, 0.72), (10, 0.12), (100, 0.10), (1500, 0.33)):
        assert autocorrelation(trace["delay_s"], lag) == pytest.approx(stated, abs=0.01)


def test_all_802_11_links_have_the_stated_receptions_and_bursts():
    trace = cache.import_file(measured("wifi-rutgers-noise/data.tar.gz"), member="*")
    found = summary(trace)

    assert found["links"] == 4060
    assert found["frames"] == 4060 * 300
    assert found["links_below_5_percent"] == pytest.approx(0.32, abs=0.005)
    assert found["links_above_95_percent"] == pytest.approx(0.60, abs=0.005)
    assert found["links_with_nothing"] == pytest.approx(0.24, abs=0.006)
    assert found["links_with_everything"] == pytest.approx(0.53, abs=0.005)
    assert found["intermediate_links"] == 322
    assert found["intermediate_burst_mean_frames"] == pytest.approx(3.46, abs=0.005)
    assert found["intermediate_burst_median_frames"] == 2
    assert found["intermediate_burst_p95_frames"] == 12
    assert found["intermediate_burst_max_frames"] == 100
    assert found["intermediate_good_run_mean_frames"] == pytest.approx(3.06, abs=0.005)
    assert found["intermediate_losses_in_bursts_of_5"] == pytest.approx(0.61, abs=0.005)


def test_one_802_11_link_is_read_out_of_its_archive():
    archive = measured("wifi-rutgers-noise/data.tar.gz")
    member = "data/dbm-10/Results_node1-2_DailyTest_Sat-Oct-15-03_06_34-2005/sdec6-1"

    through_option = cache.import_file(archive, member=member)
    through_path = cache.import_file(archive / member)

    assert through_option.to_bytes() == through_path.to_bytes()
    assert through_path["lost"].sum() == 151


def test_dish_telemetry_becomes_half_the_ping_latency():
    pytest.importorskip("pyarrow")
    files = sorted(measured("starlink-5g-fjordlink/starlink").glob("*.gzip"))
    traces = [cache.import_file(file) for file in files]
    loss = np.concatenate([trace["drop_rate"] for trace in traces])
    latency_ms = 2000 * np.concatenate([trace["delay_s"] for trace in traces])

    for trace in traces:
        steps = np.diff(trace["time_s"])
        assert trace["time_s"].size == 3600
        assert np.median(steps) == pytest.approx(1.0, abs=0.005)
        assert np.sum(steps > 6) == 4
    # The description covers 61 hours; these are 8 of them, chosen from low to high loss.
    assert 0.0003 < loss.mean() < 0.005
    assert np.percentile(latency_ms, [1, 50, 99]) == pytest.approx([20.6, 27.6, 54.6], rel=0.15)
    assert autocorrelation(latency_ms[:3600], 1) == pytest.approx(0.99, abs=0.02)


def test_gaps_of_a_rate_series_are_its_outages(tmp_path):
    file = tmp_path / "rates.csv"
    file.write_text("time_s,rate_bps\n0,1e6\n1,0\n2,0\n3,2e6\n4,0\n")
    trace = cache.import_file(file)

    assert gaps_s(trace).tolist() == [2, 1]
    assert summary(trace)["rate_mean_bps"] == pytest.approx(3e6 / 5)

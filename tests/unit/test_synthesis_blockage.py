"""Synthetic fading: pointing jitter and blockages."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from scipy import stats

from farlink.channels.synthesis import synthesize
from farlink.channels.synthesis.blockage import Renewal, tracking_losses, transmission
from farlink.channels.synthesis.pointing import jitter, jitter_index
from farlink.channels.synthesis.streams import stream

RATE_HZ = 10_000.0


def test_jitter_has_mean_1_its_index_and_its_speed():
    factor = jitter(4_000_000, RATE_HZ, 1, jitter_rad=1e-6, beam_radius_rad=4e-6, cutoff_hz=50.0)

    assert factor.mean() == pytest.approx(1, abs=0.01)
    assert factor.var() == pytest.approx(jitter_index(1e-6, 4e-6), rel=0.1)
    # To the power 1 / k it is uniform.
    k = 4.0
    uniform = (factor * k / (k + 1)) ** k
    assert stats.kstest(uniform[::400], "uniform").pvalue > 0.01
    slow = jitter(400_000, RATE_HZ, 1, jitter_rad=1e-6, beam_radius_rad=4e-6, cutoff_hz=10.0)
    assert np.abs(np.diff(slow)).mean() < 0.3 * np.abs(np.diff(factor)).mean()


RENEWAL = Renewal(10.0, 0.6, (0.02, 0.2), (0.5, 4.0), (0.01, 0.05), (0.2, 2.0), 0.3)


def test_blockages_match_the_table():
    blocks = list(RENEWAL.blocks(100_000.0, stream(1, "blocks")))
    dark_s = np.array([block.dark_s for block in blocks])
    clear_s = np.array([b.start_s - a.end_s for a, b in pairwise(blocks)])
    short = dark_s <= 0.2

    assert short.mean() == pytest.approx(0.6, abs=0.02)
    assert stats.kstest(clear_s, stats.expon(scale=10.0).cdf).pvalue > 0.01
    assert stats.kstest(dark_s[short], stats.loguniform(0.02, 0.2).cdf).pvalue > 0.01
    assert stats.kstest(dark_s[~short], stats.loguniform(0.5, 4.0).cdf).pvalue > 0.01
    for block in blocks:
        assert 0.01 <= block.fall_s <= 0.05
        assert 0.01 <= block.rise_s <= 0.05
        assert (0.2 <= block.search_s <= 2.0) if block.dark_s > 0.3 else block.search_s == 0


def test_blocked_share_is_stationary_from_the_first_second():
    mean_short, mean_long = (0.2 - 0.02) / math.log(10), (4 - 0.5) / math.log(8)
    each = 0.6 * mean_short + 0.4 * (mean_long + 1.1) + 0.06
    expected = each / (each + 10)

    shares, first = [], []
    for seed in range(1, 301):
        blocks = RENEWAL.blocks(100.0, stream(seed, "share"))
        blocked = transmission(blocks, 10_000, 100.0, 1e-4)[1]
        shares.append(blocked.mean())
        first.append(blocked[:100].mean())
    assert np.mean(shares) == pytest.approx(expected, rel=0.1)
    assert np.mean(first) == pytest.approx(expected, rel=0.45)


def test_edges_are_smooth_and_inside_the_mask():
    blocks = list(RENEWAL.blocks(200.0, stream(1, "edges")))
    passed, blocked = transmission(iter(blocks), 2_000_000, RATE_HZ, 1e-4)

    assert np.all(passed[~blocked] == 1)
    assert passed.min() == pytest.approx(1e-4)
    # The steepest cosine edge, of 10 ms, moves by pi / 2 / 100 a sample.
    assert np.abs(np.diff(passed)).max() <= 0.0158
    for block in blocks:
        if block.start_s > 0 and block.end_s < 200:
            dark = slice(
                math.ceil((block.start_s + block.fall_s) * RATE_HZ),
                int((block.start_s + block.fall_s + block.dark_s) * RATE_HZ),
            )
            assert passed[dark].max() < 2e-4


def test_kiodo_loses_tracking_at_about_30_60_and_90_s():
    trace = synthesize("kiodo", seed=9)
    starts = np.flatnonzero(np.diff(trace["blocked"].astype(int)) == 1) / RATE_HZ

    assert starts == pytest.approx([30, 60, 90], abs=1.1)
    assert 0.15 < trace["blocked"].mean() * 100 < 0.55
    lengths = [b.dark_s for b in tracking_losses(30_000.0, 30.0, 0.1, stream(1, "t"))]
    assert np.mean(lengths) == pytest.approx(0.1, rel=0.05)
    assert len(lengths) == pytest.approx(1000, abs=1)


def test_traces_without_blockage_have_no_mask():
    assert "blocked" not in synthesize("fasolt", duration_s=5).arrays
    assert "blocked" in synthesize("atenaa", duration_s=1).arrays

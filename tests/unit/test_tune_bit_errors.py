"""Bursts and independent errors in windows, blocks and codewords: closed forms against simulation."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from farlink.tune.bit_errors import Bursts, Independent

EVENTS = [[0], [0, 1, 3], [0, 2, 3, 5, 9, 10], [0, 1, 2, 4, 7, 8, 12, 15, 16, 20]]


def bursts(gap_mean_bits: float, gap_min_bits: float = 35.0) -> Bursts:
    start = np.cumsum([0] + [len(event) for event in EVENTS])
    return Bursts(np.concatenate([np.array(event) for event in EVENTS]), start, gap_min_bits, gap_mean_bits)


def played(errors: Bursts, cycles: int, seed: int = 1) -> np.ndarray:
    """For each bit of a stream with these bursts, whether it is wrong."""
    rng = np.random.default_rng(seed)
    free = errors.gap_mean_bits - errors.gap_min_bits
    at, wrong = 0, []
    for kind, gap in zip(rng.integers(0, len(EVENTS), cycles), rng.geometric(1 / (1 + free), cycles) - 1, strict=True):
        wrong.append(at + np.array(EVENTS[kind]))
        at += EVENTS[kind][-1] + 1 + int(errors.gap_min_bits) + int(gap)
    stream = np.zeros(at, dtype=bool)
    stream[np.concatenate(wrong)] = True
    return stream


STREAM = played(bursts(300.0), 60_000)


def test_rate_of_wrong_bits():
    assert bursts(300.0).ber == pytest.approx(STREAM.mean(), rel=0.02)


@pytest.mark.parametrize("bits", [100, 184, 500, 1000])
def test_share_of_windows_with_errors_matches_a_simulated_stream(bits):
    windows = STREAM[: STREAM.size // bits * bits].reshape(-1, bits)

    assert bursts(300.0).hit(bits) == pytest.approx(windows.any(axis=1).mean(), abs=0.01)


def test_distribution_of_bad_blocks_matches_a_simulated_stream():
    bits, count = 184, 12
    blocks = STREAM[: STREAM.size // (bits * count) * bits * count].reshape(-1, count, bits).any(axis=2).sum(axis=1)
    seen = np.bincount(blocks, minlength=count + 1) / blocks.size

    chance = bursts(300.0).bad_blocks(bits, count)
    assert chance.sum() == pytest.approx(1)
    assert chance == pytest.approx(seen, abs=0.02)


@pytest.mark.parametrize(("depth", "mends"), [(1, 16), (1, 24), (3, 16), (5, 16)])
def test_codeword_failures_match_a_simulated_stream(depth, mends):
    length = 200
    whole = STREAM.size // (8 * length * depth) * length * depth
    stream = STREAM[: 8 * whole].reshape(-1, 8).any(axis=1)
    wrong = stream.reshape(-1, length, depth).sum(axis=1).ravel()
    fails = (wrong > mends).mean()

    word = bursts(300.0).word(length, mends, depth)
    assert word.loss == pytest.approx(fails, rel=0.15, abs=0.01)
    assert word.left == pytest.approx(wrong[wrong > mends].sum() / wrong.sum(), rel=0.15, abs=0.01)


def test_interleaving_helps_against_bursts():
    rare = bursts(2000.0)

    losses = [rare.word(200, 16, depth).loss for depth in (1, 2, 4)]
    assert losses == sorted(losses, reverse=True)
    assert losses[-1] < 1e-3 * losses[0]


@given(st.floats(1e-6, 0.05), st.integers(8, 4000))
def test_single_errors_without_a_least_gap_are_independent(ber, bits):
    single = Bursts(np.array([0]), np.array([0, 1]), 0.0, 1 / ber - 1)

    assert single.ber == pytest.approx(ber)
    assert single.hit(bits) == pytest.approx(Independent(ber).hit(bits), rel=1e-6)
    assert single.bad_blocks(bits, 5) == pytest.approx(Independent(ber).bad_blocks(bits, 5), rel=1e-6, abs=1e-12)


@given(st.floats(1e-300, 1.0), st.integers(1, 24), st.integers(0, 24))
def test_probabilities_are_probabilities(ber, count, mends):
    errors = Independent(ber)

    chance = errors.bad_blocks(184, count)
    assert np.all(chance >= 0)
    assert chance.sum() == pytest.approx(1)
    word = errors.word(64, mends, 1)
    assert 0 <= word.loss <= 1
    assert 0 <= word.left <= 1


@given(st.floats(60.0, 1e12))
def test_probabilities_of_bursts_are_probabilities(gap_mean_bits):
    errors = bursts(gap_mean_bits)

    assert 0 <= errors.hit(4416) <= 1
    chance = errors.bad_blocks(184, 30)
    assert np.all(chance >= 0)
    assert chance.sum() == pytest.approx(1)
    word = errors.word(60, 8, 2)
    assert 0 <= word.loss <= 1
    assert 0 <= word.left <= 1


@given(st.floats(60.0, 1e9), st.floats(1.01, 10.0))
def test_rarer_bursts_damage_fewer_windows(gap_mean_bits, more):
    often, seldom = bursts(gap_mean_bits), bursts(more * gap_mean_bits)

    assert seldom.hit(1000) <= often.hit(1000)
    assert seldom.word(60, 8, 1).loss <= often.word(60, 8, 1).loss * (1 + 1e-9)


def test_without_correct_bits_nothing_is_intact():
    errors = Bursts(np.array([0, 1]), np.array([0, 2]), 0.0, 0.0)

    assert errors.hit(100) == 1
    assert errors.word(20, 2, 1).loss == 1

"""The codes of the page on erasure codes under bursts: beside plain models, and beside a decoder that runs."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.conftest import program_of_docs

pytest.importorskip("scipy")

from farlink import _core
from farlink.tune.impaired.viterbi import Trellis

BYTES = 552
POSITIONS = st.lists(st.integers(0, 26 * 8 * 700), max_size=60, unique=True).map(sorted)
# Bursts: some wrong bits close to each other, as they are needed to defeat a code.
BURSTS = st.lists(st.tuples(st.integers(0, 26 * 8 * 650), st.integers(1, 9000), st.integers(1, 40)), max_size=4).map(
    lambda each: sorted({begin + at for begin, length, step in each for at in range(0, length, step)})
)


@pytest.fixture(scope="module")
def codes():
    return program_of_docs("impaired_codes")


def lost(code, wrong):
    return code.lost(np.array(wrong, dtype=np.int64), 1).tolist()


@given(wrong=POSITIONS | BURSTS)
@settings(max_examples=60, deadline=None)
def test_blocks_of_a_segment_are_lost_with_more_bad_ones_than_parity(codes, wrong):
    for block_bytes, parity in ((46, 1), (23, 2), (23, 4)):
        blocks, bits = BYTES // block_bytes + parity, 8 * (block_bytes + 2)
        bad: dict[int, set[int]] = {}
        for bit in wrong:
            bad.setdefault(bit // (bits * blocks), set()).add(bit // bits)

        expected = sorted(segment for segment, each in bad.items() if len(each) > parity)
        assert lost(codes.erasure(block_bytes, parity), wrong) == expected


@given(wrong=POSITIONS | BURSTS, segments=st.sampled_from([1, 3, 20]))
@settings(max_examples=60, deadline=None)
def test_a_codeword_corrects_sixteen_wrong_bytes(codes, wrong, segments):
    words = 3 * segments
    bytes_of: dict[tuple[int, int], set[int]] = {}
    for byte in {bit // 8 for bit in wrong}:
        frame, place = divmod(byte, 216 * words)
        bytes_of.setdefault((frame, place % words), set()).add(place)

    expected = {
        frame * segments + place // BYTES
        for (frame, _), places in bytes_of.items()
        if len(places) > 16
        for place in places
        if place < BYTES * segments
    }
    assert lost(codes.reed_solomon(segments), wrong) == sorted(expected)


@given(wrong=POSITIONS | BURSTS)
@settings(max_examples=60, deadline=None)
def test_segments_as_blocks_are_lost_with_more_than_three_bad_ones(codes, wrong):
    bad = sorted({bit // (8 * 554) for bit in wrong})
    counts = {block // 23: sum(other // 23 == block // 23 for other in bad) for block in bad}

    expected = [block // 23 * 20 + block % 23 for block in bad if counts[block // 23] > 3 and block % 23 < 20]
    assert lost(codes.erasure_across(), wrong) == expected


def test_rates_are_those_of_the_modem(codes):
    from farlink.papers.celandroni.setting import modem

    rates = {one.code_name: one.bits_per_symbol / 2 for one in modem().settings() if one.modulation == "qpsk"}
    each = (codes.uncoded(), codes.erasure(46, 1), codes.erasure(23, 2), codes.reed_solomon())
    coded = (codes.convolutional("8/9", "11111111/10000000"), codes.convolutional("4/5", "11111111/10001000"))
    for code in (*each, *coded):
        assert code.rate == pytest.approx(rates[code.name], rel=1e-12)


@given(st.lists(st.floats(0, 1), min_size=23, max_size=23))
@settings(max_examples=30, deadline=None)
def test_losses_across_segments_are_those_of_all_patterns(codes, loss):
    """Beside a polynomial whose coefficients are the probabilities of each number of bad blocks."""
    found = codes.across(np.array([loss]))[0]
    for own in (0, 7, 19):
        counts = np.array([1.0])
        for other, bad in enumerate(loss):
            if other != own:
                counts = np.convolve(counts, [1 - bad, bad])
        assert found[own] == pytest.approx(loss[own] * counts[3:].sum(), abs=1e-12)


def test_single_wrong_bits_are_corrected(codes):
    trellis = Trellis((0o133, 0o171), "11111111/10001000")

    assert codes.decoded(np.arange(0, 200_000, 1009), trellis, 1).size == 0
    assert codes.decoded(np.array([], dtype=np.int64), trellis, 1).size == 0
    # Noise over all of a burst is not.
    assert codes.decoded(np.flatnonzero(np.random.default_rng(1).random(300) < 0.5) + 5000, trellis, 1).size > 20


@pytest.mark.parametrize(
    ("puncture", "ebn0_db", "bits"), [("11111111/10001000", 7.2, 8_000_000), ("11111111/10000000", 7.8, 8_000_000)]
)
def test_over_white_noise_the_windows_leave_the_errors_of_a_decoder_that_runs(codes, puncture, ebn0_db, bits):
    trellis = Trellis((0o133, 0o171), puncture)
    rate = trellis.rate
    p = 0.5 * math.erfc(math.sqrt(10 ** (ebn0_db / 10) * rate))
    wrong = np.flatnonzero(np.random.default_rng(1).random(bits) < p)

    left = codes.decoded(wrong, trellis, 1)
    coding = {"kind": "convolutional", "generators": "133,171", "puncture": puncture, "traceback_bits": 100}
    text = json.dumps({"modulation": "bpsk", "decision": "hard", "code": coding})
    value, low, high = _core.error_rate(text, ebn0_db, max_bits=30_000_000)["bit_error_rate"]
    events = 1 + np.count_nonzero(np.diff(left) > 30)
    assert events > 30
    # Three standard deviations of the number of events, whose lengths vary as much again.
    assert left.size / (bits * rate) == pytest.approx(value, rel=3 * math.sqrt(2 / events), abs=high - low)


def test_bursts_have_the_lengths_and_the_distance_that_are_asked_for(codes):
    bits, every, mean = 20_000_000, 20_000.0, 400.0
    wrong = codes.bursts(bits, every_bits=every, mean_bits=mean, seed=3)

    assert np.all(np.diff(wrong) > 0)
    # Of 980 bursts a standard deviation is 3 %.
    assert wrong.size == pytest.approx(0.5 * bits * mean / (every + mean), rel=0.15)
    assert 1 + np.count_nonzero(np.diff(wrong) > 100) == pytest.approx(bits / (every + mean), rel=0.12)


def test_an_outage_of_three_segments_is_repaired_and_a_longer_one_is_not():
    program = program_of_docs("erasure_bursts")
    across = program.CODES[-1]
    segment_s = 8 * 554 / 2e6

    assert program.repaired(across, [(1.0, 1.0 + 1.9 * segment_s)]) == []
    # Two groups share an outage of five.
    left = program.repaired(across, [(1.0, 1.0 + 12 * segment_s)])
    assert 0 < sum(end - begin for begin, end in left) < 13 * segment_s
    whole = program.repaired(across, [(10.0, 11.0)])
    assert whole[0][0] == pytest.approx(10.0, abs=0.07)
    assert whole[-1][1] == pytest.approx(11.0, abs=0.07)

"""Which segments are lost behind a code if bits of the channel are wrong, for `docs/erasure_bursts.py`: hard decisions.

Segments of 552 bytes follow each other without gaps. A code is a `Code`: where wrong bits of the channel lose which segments.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

Whole = NDArray[np.int64]

SEGMENT_BYTES = 552
# Segments that a code across segments spans, and what it adds.
GROUP, GROUP_PARITY = 20, 3
# Reed-Solomon codewords of 184 + 32 bytes, shortened from (255, 223).
_DATA, _CORRECTS, _WORD = 184, 16, 216
_CRC_BYTES = 2


@dataclass(frozen=True)
class Code:
    """A code on the channel.

    Attributes
    ----------
    name
        For people.
    rate
        Bits of segments for each bit of the channel.
    lost
        Given the ascending positions of wrong bits on the channel and a seed, the ascending numbers of lost segments.
    group
        Segments that wait for each other before they are decoded.
    """

    name: str
    rate: float
    lost: Callable[[Whole, int], Whole]
    group: int = 1


def uncoded() -> Code:
    """Any wrong bit loses a segment."""
    return Code("uncoded", 1.0, lambda wrong, _seed: np.unique(wrong // (8 * SEGMENT_BYTES)))


def erasure(block_bytes: int, parity: int) -> Code:
    """Blocks of a segment with a CRC-16 each, of which `parity` are more than needed: lost with more bad blocks than that.

    Errors that the CRC misses are left out.
    """
    data = SEGMENT_BYTES // block_bytes
    blocks, bits = data + parity, 8 * (block_bytes + _CRC_BYTES)

    def lost(wrong: Whole, _seed: int) -> Whole:
        segment, bad = np.unique(np.unique(wrong // bits) // blocks, return_counts=True)
        return segment[bad > parity]

    return Code(f"ER{block_bytes}({blocks},{data})", SEGMENT_BYTES * 8 / (blocks * bits), lost)


def reed_solomon(segments: int = 1) -> Code:
    """Codewords of 184 + 32 bytes, interleaved byte by byte over one or several segments; data first, then parity.

    A codeword with more than 16 wrong bytes is left as it is, and loses the segments of its wrong bytes.
    """
    words = segments * SEGMENT_BYTES // _DATA

    def lost(wrong: Whole, _seed: int) -> Whole:
        byte = np.unique(wrong // 8)
        frame, place = np.divmod(byte, words * _WORD)
        word = frame * words + place % words
        names, inverse, count = np.unique(word, return_inverse=True, return_counts=True)
        del names
        bad = (count[inverse] > _CORRECTS) & (place < segments * SEGMENT_BYTES)
        return np.unique(frame[bad] * segments + place[bad] // SEGMENT_BYTES)

    name = "RS(216,184)" if segments == 1 else f"RS(216,184) over {segments} segments"
    return Code(name, _DATA / _WORD, lost, segments)


def erasure_across() -> Code:
    """Whole segments with a CRC-16 each as blocks: 3 more for every 20. With more than 3 bad ones, the bad ones are lost."""
    bits, blocks = 8 * (SEGMENT_BYTES + _CRC_BYTES), GROUP + GROUP_PARITY

    def lost(wrong: Whole, _seed: int) -> Whole:
        return _unrepaired(np.unique(wrong // bits))

    return Code(f"ER over {GROUP} segments", SEGMENT_BYTES * 8 * GROUP / (blocks * bits), lost, GROUP)


def _unrepaired(bad: Whole) -> Whole:
    """Segments that stay lost, of blocks on the channel that are bad."""
    group, place = np.divmod(bad, GROUP + GROUP_PARITY)
    _, inverse, count = np.unique(group, return_inverse=True, return_counts=True)
    kept = (count[inverse] > GROUP_PARITY) & (place < GROUP)
    return np.asarray(group[kept] * GROUP + place[kept], dtype=np.int64)


def convolutional(name: str, pattern: str) -> Code:
    """A punctured code of K = 7 (133, 171) with a Viterbi decoder; any wrong bit that it leaves loses a segment."""
    rows = [np.array([int(bit) for bit in row]) for row in pattern.split("/")]
    kept = np.stack(rows, axis=1)
    rate = kept.shape[0] / kept.sum()
    return Code(f"CV {name}", float(rate), lambda wrong, seed: np.unique(decoded(wrong, kept, seed) // (8 * SEGMENT_BYTES)))


def across(loss: NDArray[np.float64]) -> NDArray[np.float64]:
    """Probability that a segment stays lost behind `erasure_across`: it is bad, and so are three or more others of its group.

    Parameters
    ----------
    loss
        Probability of each block on the channel that it is bad, independently of the others. Shape ``(groups, 23)``.

    Returns
    -------
    ndarray
        Of the segments of each group. Shape ``(groups, 20)``.

    Examples
    --------
    >>> bool(abs(across(np.full((1, 23), 0.01))[0, 0] / 1.31e-5 - 1) < 0.01)
    True
    """
    found = np.empty((loss.shape[0], GROUP))
    for own in range(GROUP):
        # Probabilities of 0, 1 and 2 bad ones among the others.
        few = np.zeros((GROUP_PARITY, loss.shape[0]))
        few[0] = 1.0
        for other in range(GROUP + GROUP_PARITY):
            if other != own:
                bad = loss[:, other]
                few[1:] = few[1:] * (1 - bad) + few[:-1] * bad
                few[0] *= 1 - bad
        found[:, own] = loss[:, own] * np.maximum(0.0, 1 - few.sum(axis=0))
    return found


# Wrong bits of the channel further apart than this are decoded separately; so far a path runs that they begin.
_APART, _MARGIN = 160, 104
# Lengths of clusters that are decoded together. Longer ones are hopeless at these rates: all data under them counts as wrong.
_SPANS = (0, 80, 320, 1280)


def decoded(wrong: Whole, kept: Whole, seed: int) -> Whole:
    """Positions of wrong data bits that a Viterbi decoder leaves of wrong bits on the channel.

    Decoded are windows around clusters of wrong bits, from and to the all-zero state: the code is linear, and zeros are sent.
    Under clusters of more than 1280 bits all data bits count as wrong.

    Parameters
    ----------
    wrong
        Ascending positions on the channel.
    kept
        Puncturing: for each data bit of the period, whether each of the two outputs is sent.
    seed
        Decides between paths of equal metric.
    """
    if wrong.size == 0:
        return wrong
    period, sent = kept.shape[0], int(kept.sum())
    begins = np.flatnonzero(np.concatenate(([True], np.diff(wrong) > _APART)))
    ends = np.concatenate((begins[1:], [wrong.size])) - 1
    first, last = wrong[begins], wrong[ends]
    span, to_data = last - first, period / sent
    is_long = span > _SPANS[-1]
    found = [np.arange(int(a * to_data), int(b * to_data) + 1) for a, b in zip(first[is_long], last[is_long], strict=True)]
    start = np.maximum(0, first // sent - _MARGIN // period) * period
    # Data bit of a period, and which of its outputs, at each place of the channel.
    bit_at, output_at = np.nonzero(kept)
    cluster = np.repeat(np.arange(begins.size), ends + 1 - begins)
    cycle, inside = np.divmod(wrong - start[cluster] // period * sent, sent)
    bit = cycle * period + bit_at[inside]
    for low, high in pairwise(_SPANS):
        width = 2 * _MARGIN + period * (int(high * to_data) // period + 2)
        which = np.flatnonzero((span >= low) & (span < high + (high == _SPANS[-1])))
        for at in range(0, which.size, 1000):
            part = which[at : at + 1000]
            number = np.full(begins.size, -1)
            number[part] = np.arange(part.size)
            mine = number[cluster] >= 0
            received = np.zeros((part.size, width, 2), dtype=bool)
            received[number[cluster[mine]], bit[mine], output_at[inside[mine]]] = True
            frame, place = np.nonzero(viterbi(received, np.tile(kept > 0, (width // period, 1)), seed + at + high))
            found.append(start[part[frame]] + place)
    return np.unique(np.concatenate(found)).astype(np.int64)


def viterbi(received: NDArray[np.bool_], sent: NDArray[np.bool_], seed: int) -> NDArray[np.bool_]:
    """Decode frames that begin and end in state 0; equal metrics are decided at random.

    Parameters
    ----------
    received
        Hard decisions. Shape ``(frames, bits, 2)``.
    sent
        Which of the outputs were sent. Shape ``(bits, 2)``.
    seed
        Of the random decisions.

    Returns
    -------
    ndarray
        Data bits, ``(frames, bits)``.
    """
    rng = np.random.default_rng(seed)
    frames, bits, _ = received.shape
    state = np.arange(64)
    # The newest bit is the highest of seven. A state is the last six; each is reached from two.
    before = np.stack([(state << 1) & 63, ((state << 1) & 63) | 1])
    word = np.stack([(state << 1) | 0, (state << 1) | 1])
    outputs = np.stack([[[_parity(int(w) & taps) for w in row] for row in word] for taps in (0o133, 0o171)], axis=-1)
    metric = np.full((frames, 64), 1e6)
    metric[:, 0] = 0.0
    came = np.empty((bits, frames, 64), dtype=bool)
    for at in range(bits):
        cost = np.zeros((frames, 2, 64))
        for output in (0, 1):
            if sent[at, output]:
                cost += received[:, at, output, None, None] != outputs[None, :, :, output]
        both = metric[:, before] + cost
        came[at] = both[:, 1] + 1e-3 * (rng.random((frames, 64)) - 0.5) < both[:, 0]
        metric = np.where(came[at], both[:, 1], both[:, 0])
    now = np.zeros(frames, dtype=np.int64)
    data = np.empty((frames, bits), dtype=bool)
    each = np.arange(frames)
    for at in range(bits - 1, -1, -1):
        data[:, at] = now >> 5
        now = before[came[at, each, now].astype(np.int64), now]
    return data


def _parity(word: int) -> int:
    return word.bit_count() & 1


def bursts(bits: int, *, every_bits: float, mean_bits: float, seed: int) -> Whole:
    """Wrong bits of a channel of Gilbert's kind: half of the bits are wrong in the bad state, none in the good one.

    Parameters
    ----------
    bits
        Length of the channel.
    every_bits, mean_bits
        Mean length of the good and of the bad state; both geometric.
    seed
        Of all that is random.
    """
    rng = np.random.default_rng(seed)
    count = int(1.2 * bits / (every_bits + mean_bits)) + 100
    good, bad = (rng.geometric(min(1.0, 1 / mean), count) for mean in (every_bits, mean_bits))
    begins = np.cumsum(good + bad) - bad
    inside = begins < bits
    begins, bad = begins[inside], bad[inside]
    place = np.repeat(begins - (np.cumsum(bad) - bad), bad) + np.arange(bad.sum())
    return np.asarray(place[(rng.random(place.size) < 0.5) & (place < bits)], dtype=np.int64)

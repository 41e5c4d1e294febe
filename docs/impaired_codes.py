"""Which segments are lost behind a code if bits of the channel are wrong, for `docs/erasure_bursts.py`: hard decisions.

Segments of 552 bytes follow each other without gaps. A code is a `Code`: where wrong bits of the channel lose which segments.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from farlink.tune.codes.erasure import ErasureOfSegments
from farlink.tune.impaired.viterbi import Trellis, decoded

Whole = NDArray[np.int64]

SEGMENT_BYTES = 552
# Segments that a code across segments spans, and what it adds.
GROUP, GROUP_PARITY = 20, 3
# Reed-Solomon codewords of 184 + 32 bytes, shortened from (255, 223).
_DATA, _CORRECTS, _WORD = 184, 16, 216
_CRC_BYTES = 2
_ACROSS = ErasureOfSegments("ER", GROUP, GROUP_PARITY, "crc-16")


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
    trellis = Trellis((0o133, 0o171), pattern)
    return Code(f"CV {name}", trellis.rate, lambda wrong, seed: np.unique(decoded(wrong, trellis, seed) // (8 * SEGMENT_BYTES)))


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
    >>> print(f"{across(np.full((1, 23), 0.01))[0, 0]:.3e}")
    1.336e-05
    """
    return _ACROSS.stays_lost(loss)


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

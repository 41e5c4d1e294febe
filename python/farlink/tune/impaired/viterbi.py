"""Errors behind a Viterbi decoder if wrong bits come in clusters: hard decisions, without an interleaver.

The code is linear, so that zeros are sent, and only windows around clusters of wrong bits are decoded.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

Whole = NDArray[np.int64]

# Wrong bits of the channel that are further apart than this are decoded separately.
_APART = 160
# Constraint lengths for which a path of an error event lasts, so that a window has room for its begin and its end.
_PATH = 15
# Lengths of clusters that are decoded together. All data bits under longer ones count as wrong: punctured codes are lost there.
_SPANS = (0, 80, 320, 1280)
_FRAMES = 1000

# Usual patterns of the code 171, 133: Yasuda, Kashiki, Hirata, IEEE Trans. Commun. COM-32 (1984); ETSI EN 300 421, table 2.
USUAL = {"1/2": "1/1", "2/3": "10/11", "3/4": "101/110", "5/6": "10101/11010", "7/8": "1000101/1111010"}


@dataclass(frozen=True)
class Trellis:
    """A convolutional code with its puncturing.

    Attributes
    ----------
    generators
        Taps; the highest bit belongs to the newest bit of the data.
    pattern
        A row for each generator, with 1 where its bit is sent, and slashes between rows.

    Examples
    --------
    >>> Trellis((0o171, 0o133), "101/110").rate
    0.75
    """

    generators: tuple[int, ...]
    pattern: str

    @classmethod
    def of(cls, generators: str, pattern: str) -> Trellis:
        """From generators in octal with commas between them."""
        return cls(tuple(int(one, 8) for one in generators.split(",")), pattern)

    @property
    def constraint_length(self) -> int:
        """Bits of the data that decide a coded bit."""
        return max(one.bit_length() for one in self.generators)

    @cached_property
    def kept(self) -> NDArray[np.bool_]:
        """For each data bit of the period, which outputs are sent."""
        rows = [[bit == "1" for bit in row] for row in self.pattern.split("/")]
        return np.array(rows, dtype=bool).T

    @property
    def rate(self) -> float:
        """Data bits for each bit of the channel."""
        return float(self.kept.shape[0] / self.kept.sum())


def decoded(wrong: Whole, trellis: Trellis, seed: int) -> Whole:
    """Positions of wrong data bits that a Viterbi decoder leaves of wrong bits on the channel.

    Windows around clusters of wrong bits are decoded, from and to the all-zero state. Under clusters of more than 1280 bits all
    data bits count as wrong.

    Parameters
    ----------
    wrong
        Ascending positions on the channel.
    trellis
        The code.
    seed
        Decides between paths of equal metric.
    """
    if wrong.size == 0:
        return wrong
    kept = trellis.kept
    period, sent = kept.shape[0], int(kept.sum())
    margin = max(1, round(_PATH * trellis.constraint_length / period)) * period
    begins = np.flatnonzero(np.concatenate(([True], np.diff(wrong) > _APART)))
    ends = np.concatenate((begins[1:], [wrong.size])) - 1
    first, last = wrong[begins], wrong[ends]
    span, to_data = last - first, period / sent
    is_long = span > _SPANS[-1]
    found = [np.arange(int(a * to_data), int(b * to_data) + 1) for a, b in zip(first[is_long], last[is_long], strict=True)]
    start = np.maximum(0, first // sent - margin // period) * period
    # Data bit of a period, and which of its outputs, at each place of the channel.
    bit_at, output_at = np.nonzero(kept)
    cluster = np.repeat(np.arange(begins.size), ends + 1 - begins)
    cycle, inside = np.divmod(wrong - start[cluster] // period * sent, sent)
    bit = cycle * period + bit_at[inside]
    for low, high in pairwise(_SPANS):
        width = 2 * margin + period * (int(high * to_data) // period + 2)
        which = np.flatnonzero((span >= low) & (span < high + (high == _SPANS[-1])))
        for at in range(0, which.size, _FRAMES):
            part = which[at : at + _FRAMES]
            number = np.full(begins.size, -1)
            number[part] = np.arange(part.size)
            mine = number[cluster] >= 0
            received = np.zeros((part.size, width, kept.shape[1]), dtype=bool)
            received[number[cluster[mine]], bit[mine], output_at[inside[mine]]] = True
            frame, place = np.nonzero(viterbi(received, trellis, seed + at + high))
            found.append(start[part[frame]] + place)
    return np.unique(np.concatenate(found)).astype(np.int64)


def viterbi(received: NDArray[np.bool_], trellis: Trellis, seed: int) -> NDArray[np.bool_]:
    """Decode frames that begin and end in state 0; equal metrics are decided at random.

    Parameters
    ----------
    received
        Hard decisions. Shape ``(frames, bits, outputs)``; whole periods of the puncturing.
    trellis
        The code.
    seed
        Of the random decisions.

    Returns
    -------
    ndarray
        Data bits, ``(frames, bits)``.
    """
    rng = np.random.default_rng(seed)
    frames, bits, count = received.shape
    memory = trellis.constraint_length - 1
    states = 1 << memory
    state = np.arange(states)
    # The newest bit is the highest of a word. A state is the rest; each is reached from two.
    before = np.stack([(state << 1) & (states - 1), ((state << 1) & (states - 1)) | 1])
    word = np.stack([(state << 1) | 0, (state << 1) | 1])
    outputs = np.stack([[[_parity(int(w) & taps) for w in row] for row in word] for taps in trellis.generators], axis=-1)
    metric = np.full((frames, states), 1e6)
    metric[:, 0] = 0.0
    came = np.empty((bits, frames, states), dtype=bool)
    for at in range(bits):
        cost = np.zeros((frames, 2, states))
        for output in range(count):
            if trellis.kept[at % trellis.kept.shape[0], output]:
                cost += received[:, at, output, None, None] != outputs[None, :, :, output]
        both = metric[:, before] + cost
        came[at] = both[:, 1] + 1e-3 * (rng.random((frames, states)) - 0.5) < both[:, 0]
        metric = np.where(came[at], both[:, 1], both[:, 0])
    now = np.zeros(frames, dtype=np.int64)
    data = np.empty((frames, bits), dtype=bool)
    each = np.arange(frames)
    for at in range(bits - 1, -1, -1):
        data[:, at] = now >> (memory - 1)
        now = before[came[at, each, now].astype(np.int64), now]
    return data


def _parity(word: int) -> int:
    return word.bit_count() & 1

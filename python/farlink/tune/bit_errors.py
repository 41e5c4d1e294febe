r"""Wrong bits of a stream, and the windows, blocks and codewords that they affect.

Two kinds: bits wrong independently of each other, and the bursts of a Viterbi decoder. Of bursts farlink's channels assume that
they are drawn at random from those that were collected, with a least number of right bits between them and a geometric number
beyond (docs/design/error-events.md); the same is computed here instead of played.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from farlink.models.arq import packet_loss
from farlink.models.bounds import packets_arrive
from farlink.tune.ascending import distinct

Floats = NDArray[np.float64]

# Largest counted number of wrong bytes beyond those that a codeword corrects; more count as this many.
_BEYOND = 16
# Bursts of more bytes than this, if they are more than such a share, leave no codeword whole; and how many are looked at.
_LONGEST_BYTES, _TOO_LONG = 96, 1e-3
_MOST_EVENTS = 2000


@dataclass(frozen=True)
class WordErrors:
    """Error rates of codewords that correct a number of wrong bytes.

    Attributes
    ----------
    loss
        Probability that a codeword is not corrected.
    left
        Share of the wrong bytes in such codewords, which are not corrected.
    """

    loss: float
    left: float


class BitErrors(Protocol):
    """Wrong bits of a stream."""

    @property
    def ber(self) -> float:
        """Share of wrong bits."""
        ...

    def hit(self, bits: int) -> float:
        """Probability that any bit of a window is wrong."""
        ...

    def bad_blocks(self, bits: int, count: int) -> Floats:
        """Probability of 0, 1, ... `count` blocks with any wrong bit among `count` neighbouring blocks of equal length."""
        ...

    def word(self, length_bytes: int, mends: int, depth: int) -> WordErrors:
        """Codewords of `length_bytes` bytes that correct `mends` wrong ones; `depth` of them are interleaved byte by byte."""
        ...

    def draw(self, bits: int, rng: np.random.Generator) -> NDArray[np.int64]:
        """Ascending positions of the wrong bits among `bits`, at random."""
        ...


@dataclass(frozen=True)
class Independent:
    """Bits that are wrong independently of each other.

    Attributes
    ----------
    ber
        Share of wrong bits, in [0, 1].

    Examples
    --------
    >>> round(Independent(1e-4).hit(8000), 4)
    0.5507
    >>> Independent(1e-3).bad_blocks(184, 2).round(4)
    array([0.692 , 0.2797, 0.0283])
    """

    ber: float

    def hit(self, bits: int) -> float:
        """See `BitErrors`."""
        return float(packet_loss(self.ber, packet_bytes=bits / 8))

    def bad_blocks(self, bits: int, count: int) -> Floats:
        """See `BitErrors`."""
        bad = self.hit(bits)
        return _chain(bad, bad, count)

    def word(self, length_bytes: int, mends: int, depth: int) -> WordErrors:  # noqa: ARG002 (order changes nothing)
        """See `BitErrors`."""
        right = 1 - self.hit(8)
        # Those "arrive" that are wrong. Mean of the wrong bytes in unmended words: n p P(X' >= t), X' of n - 1 bytes.
        loss = packets_arrive(length_bytes, needed=mends + 1, loss_rate=right)
        return WordErrors(float(loss), float(packets_arrive(length_bytes - 1, needed=mends, loss_rate=right)))

    def draw(self, bits: int, rng: np.random.Generator) -> NDArray[np.int64]:
        """See `BitErrors`."""
        return distinct(np.sort(rng.integers(0, bits, rng.binomial(bits, min(1.0, -math.log1p(-min(self.ber, 0.5)))))))


@dataclass(frozen=True)
class Bursts:
    """Bursts of a decoder: each is one of those collected, with correct bits between them.

    Attributes
    ----------
    position
        Positions of the wrong bits of all bursts after each other; in each they begin with 0.
    start
        Where each begins in `position`, and the end of the last.
    gap_min_bits, gap_mean_bits
        Right bits between two bursts, at least and on average.
    """

    position: NDArray[np.int64]
    start: NDArray[np.int64]
    gap_min_bits: float
    gap_mean_bits: float

    @property
    def ber(self) -> float:
        """See `BitErrors`."""
        return float(self.position.size / (self.cycle_bits * self.spans.size))

    @cached_property
    def spans(self) -> NDArray[np.int64]:
        """Bits of each burst from its first to its last wrong one."""
        return np.asarray(self.position[self.start[1:] - 1] + 1)

    @cached_property
    def cycle_bits(self) -> float:
        """Mean number of bits from the beginning of a burst to that of the next."""
        return float(self.spans.mean()) + self.gap_mean_bits

    @property
    def _free_bits(self) -> float:
        """Mean of the geometric part of a gap."""
        return self.gap_mean_bits - self.gap_min_bits

    def hit(self, bits: int) -> float:
        """See `BitErrors`: the probability that the window is not within a gap. Gaps are geometric beyond their minimum."""
        if self._free_bits <= 0:
            return 1.0
        beyond = bits - self.gap_min_bits
        if beyond <= 0:
            return (self.cycle_bits - 1 - self._free_bits + beyond) / self.cycle_bits
        # Probability of the first bit and of those after it, by logarithms, to avoid differences of large numbers.
        busy = (self.cycle_bits - 1 - self._free_bits) / self.cycle_bits
        return -math.expm1(math.log1p(-busy) - beyond * math.log1p(1 / self._free_bits))

    def bad_blocks(self, bits: int, count: int) -> Floats:
        """See `BitErrors`; after an intact block, the probability for the next one does not depend on earlier blocks."""
        turns_bad = -math.expm1(-bits * math.log1p(1 / self._free_bits)) if self._free_bits > 0 else 1.0
        return _chain(turns_bad, self.hit(bits), count)

    def word(self, length_bytes: int, mends: int, depth: int) -> WordErrors:
        """See `BitErrors`.

        Bytes are passed one after the other with the probability of every number of wrong ones so far: where no burst is, one
        begins with a constant probability, wherever in its byte; it leaves as many wrong bytes in this codeword as fall on its
        turns. A burst that runs past the end counts in full, for those that have run in at the beginning.
        """
        most = mends + _BEYOND
        counts, lengths = self._bursts_in_bytes(depth, most)
        if counts is None:
            return WordErrors(1.0, 1.0)
        gap = max(0, round(self.gap_min_bits / 8))
        free = self.cycle_bits / 8 - float(lengths @ np.arange(lengths.size)) - gap
        if free <= 0:
            return WordErrors(1.0, 1.0)
        begins = 1 / (1 + free)
        total = _wrong_bytes(counts, lengths, gap, begins, length_bytes * depth, most)
        wrong = np.arange(most + 1)
        # The mean of all, for the share: small numbers are not taken as differences of large ones.
        return WordErrors(
            float(min(1.0, total[mends + 1 :].sum())),
            float(min(1.0, (wrong * total)[mends + 1 :].sum() / max((wrong * total).sum(), 1e-300))),
        )

    def draw(self, bits: int, rng: np.random.Generator) -> NDArray[np.int64]:
        """See `BitErrors`; it begins within a gap."""
        count = int(1.1 * bits / self.cycle_bits) + 20
        event = rng.integers(0, self.spans.size, count)
        free = rng.geometric(min(1.0, 1 / (1 + max(0.0, self._free_bits))), count) - 1
        gaps = round(self.gap_min_bits) + free
        begins = np.cumsum(gaps) + np.cumsum(self.spans[event]) - self.spans[event]
        event, begins = event[begins < bits], begins[begins < bits]
        sizes = (self.start[1:] - self.start[:-1])[event]
        within = np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        found = np.repeat(begins, sizes) + self.position[np.repeat(self.start[event], sizes) + within]
        return np.asarray(found[found < bits], dtype=np.int64)

    def _bursts_in_bytes(self, depth: int, most: int) -> tuple[Floats | None, Floats]:
        """Probability of the bytes of a burst and of the wrong ones among them, for each byte modulo `depth` that it begins in.

        Returns None for bursts too long to be of use, and the probability of each number of bytes from first to last wrong bit.
        """
        counts = np.zeros((depth, _LONGEST_BYTES + 1, most + 1))
        lengths = np.zeros(_LONGEST_BYTES + 1)
        if self._bytes_of_bursts is None:
            return None, lengths
        for burst, byte, length in self._bytes_of_bursts:
            weight = 1 / (8 * length.size)
            np.add.at(lengths, length, weight)
            for turn in range(depth):
                count = np.bincount(burst[(byte + turn) % depth == 0], minlength=length.size)
                np.add.at(counts[turn], (length, np.minimum(count, most)), weight)
        return counts, lengths

    @cached_property
    def _bytes_of_bursts(self) -> list[tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]] | None:
        """Wrong bytes of bursts that begin at each bit of a byte: the burst, the byte, and the length of each burst in bytes.

        None if too many are too long to be of use.
        """
        chosen = np.unique(np.linspace(0, self.spans.size - 1, min(self.spans.size, _MOST_EVENTS)).astype(np.int64))
        sizes = (self.start[1:] - self.start[:-1])[chosen]
        if float((self.spans[chosen] > 8 * (_LONGEST_BYTES - 1)).mean()) > _TOO_LONG:
            return None
        picked = np.concatenate([self.position[self.start[at] : self.start[at + 1]] for at in chosen])
        burst = np.repeat(np.arange(chosen.size), sizes)
        found = []
        for phase in range(8):
            byte = (picked + phase) // 8
            # Positions ascend, so that those of the same byte follow each other.
            is_first = np.concatenate([[True], (np.diff(byte) != 0) | (np.diff(burst) != 0)])
            last = byte[np.cumsum(sizes) - 1]
            found.append((burst[is_first], byte[is_first], np.minimum(last + 1, _LONGEST_BYTES)))
        return found


def _wrong_bytes(counts: Floats, lengths: Floats, gap: int, begins: float, bytes_: int, most: int) -> Floats:
    """Probability of each number of wrong bytes among those of one codeword in `bytes_` of the stream."""
    depth = counts.shape[0]
    longest, largest = int(np.flatnonzero(lengths)[-1]), int(np.flatnonzero(counts.sum(axis=(0, 1)))[-1])
    counts = counts[:, : longest + 1, : largest + 1]
    state = np.zeros((bytes_ + longest + gap + 1, most + 1))
    cycle = float(lengths @ np.arange(lengths.size)) + gap + (1 - begins) / begins
    # Start of the window: between bursts, or a number of bytes before the least gap after one ends.
    state[0, 0] = 1 / begins / cycle
    beyond = 1 - np.cumsum(lengths[: longest + 1])
    busy = np.concatenate([np.ones(gap), np.maximum(beyond, 0)])[1:]
    state[1 : busy.size + 1, 0] += np.maximum(busy, 0) / cycle
    shift = np.arange(most + 1)[None, :] - np.arange(largest + 1)[:, None]
    is_more, earlier = shift >= 0, np.maximum(shift, 0)
    for at in range(bytes_):
        here = state[at]
        state[at + 1] += (1 - begins) * here
        # Row c: the effect of c more wrong bytes; the last number also represents all larger ones.
        after = np.where(is_more, here[earlier], 0.0)
        after[:, most] = np.cumsum(here[::-1][: largest + 1])
        state[at + gap : at + gap + longest + 1] += begins * (counts[at % depth] @ after)
    return np.asarray(state[bytes_:].sum(axis=0))


def _chain(turns_bad: float, bad: float, count: int) -> Floats:
    """Probability of each number of bad ones among `count` of a chain: how often they are bad, and after a good one."""
    turns_good = min(1.0, (1 - bad) * turns_bad / bad) if bad > 0 else 1.0
    last_good, last_bad = np.zeros(count + 1), np.zeros(count + 1)
    last_good[0], last_bad[1] = 1 - bad, bad
    for _ in range(count - 1):
        next_good = (1 - turns_bad) * last_good + turns_good * last_bad
        next_bad = turns_bad * last_good + (1 - turns_good) * last_bad
        last_good, last_bad = next_good, np.concatenate([[0.0], next_bad[:-1]])
    return last_good + last_bad

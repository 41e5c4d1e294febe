"""Wrong bits of an impaired channel, at random from a seed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from farlink.tune.ascending import Whole, merged


@dataclass(frozen=True)
class Chain:
    """A Gilbert-Elliott chain, as a scenario's channel of that kind; its steps are bits or frames.

    Attributes
    ----------
    p_good_to_bad, p_bad_to_good
        Probability of leaving a state, per step.
    good, bad
        Probability of an error in each, per step.
    """

    p_good_to_bad: float
    p_bad_to_good: float
    good: float
    bad: float

    @property
    def cycle(self) -> float:
        """Mean steps from the beginning of a burst to that of the next; infinite if there is no other."""
        return sum(1 / p if p > 0 else np.inf for p in (self.p_good_to_bad, self.p_bad_to_good))

    @property
    def share_bad(self) -> float:
        """Share of the steps that are in the bad state."""
        either = self.p_good_to_bad + self.p_bad_to_good
        return self.p_good_to_bad / either if either > 0 else 0.0

    def draw(self, steps: int, rng: np.random.Generator) -> Whole:
        """Steps with an error, ascending; the first state is a random one.

        Examples
        --------
        >>> wrong = Chain(1e-4, 1e-2, 0.0, 0.5).draw(1_000_000, np.random.default_rng(1))
        >>> bool(abs(wrong.size / 4950 - 1) < 0.2)
        True
        """
        begins, lengths = self._bad(steps, rng)
        inside = np.repeat(begins - (np.cumsum(lengths) - lengths), lengths) + np.arange(lengths.sum())
        wrong = inside[rng.random(inside.size) < self.bad]
        if self.good > 0:
            few = rng.integers(0, steps, rng.binomial(steps, min(1.0, -np.log1p(-min(self.good, 0.999)))))
            at = np.searchsorted(begins, few, side="right") - 1
            is_bad = (
                (at >= 0) & (few < (begins + lengths)[np.maximum(at, 0)]) if begins.size else np.zeros(few.size, dtype=bool)
            )
            wrong = merged(wrong, np.sort(few[~is_bad]))
        return np.asarray(wrong, dtype=np.int64)

    def _bad(self, steps: int, rng: np.random.Generator) -> tuple[Whole, Whole]:
        """Where bad states begin, and their lengths."""
        if self.share_bad == 0:
            return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
        if self.p_bad_to_good == 0:
            return np.zeros(1, dtype=np.int64), np.full(1, steps)
        count = int(1.2 * steps / self.cycle) + 100
        good, bad = (np.minimum(rng.geometric(p, count), steps) for p in (self.p_good_to_bad, self.p_bad_to_good))
        if rng.random() < self.share_bad:
            good[0] = 0
        begins = np.cumsum(good + bad) - bad
        there = begins < steps
        return begins[there], np.minimum(bad[there], steps - begins[there])


def within(intervals: Sequence[tuple[int, int]], rng: np.random.Generator) -> Whole:
    """Bits within intervals that do not overlap, half of them at random: what is received while nothing is sent."""
    if not intervals:
        return np.zeros(0, dtype=np.int64)
    bits = np.concatenate([np.arange(first, end, dtype=np.int64) for first, end in intervals])
    return bits[rng.random(bits.size) < 0.5]

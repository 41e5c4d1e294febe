"""Blocked line of sight and lost tracking: the share of the power that passes, and a mask of these times."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Block:
    """One interruption.

    Parameters
    ----------
    start_s
        When the power begins to fall, in s.
    fall_s, dark_s, search_s, rise_s
        How long the power falls, the line is blocked, the tracker searches, and the power rises, in s.
    """

    start_s: float
    fall_s: float
    dark_s: float
    search_s: float
    rise_s: float

    @property
    def end_s(self) -> float:
        """When all of the power is back, in s."""
        return self.start_s + self.fall_s + self.dark_s + self.search_s + self.rise_s


@dataclass(frozen=True)
class Renewal:
    """Times of clear sight, exponential, between blocks of two classes of length, each log-uniform.

    Parameters
    ----------
    clear_mean_s
        Mean time between blocks, in s.
    short_share
        Fraction of blocks in the short class.
    short_s, long_s
        Shortest and longest length of each class, in s.
    edge_s
        Shortest and longest duration of an edge (uniform), in s.
    reacquisition_s
        Shortest and longest duration of the search after a long block (uniform), in s.
    reacquisition_after_s
        Blocks longer than this lose the tracker, in s.
    """

    clear_mean_s: float
    short_share: float
    short_s: tuple[float, float]
    long_s: tuple[float, float]
    edge_s: tuple[float, float]
    reacquisition_s: tuple[float, float]
    reacquisition_after_s: float

    def blocks(self, duration_s: float, rng: np.random.Generator) -> Iterator[Block]:
        """Draw the blocks that touch the time from 0 to `duration_s`.

        Parameters
        ----------
        duration_s
            How long, in s.
        rng
            Source of randomness.
        """
        # Begun so long before 0 that 0 is no special time.
        time_s = -30 * (self.clear_mean_s + self.long_s[1] + self.reacquisition_s[1])
        while True:
            time_s += rng.exponential(self.clear_mean_s)
            low, high = self.short_s if rng.random() < self.short_share else self.long_s
            dark_s = low * (high / low) ** rng.random()
            fall_s, rise_s = rng.uniform(*self.edge_s, 2)
            search_s = rng.uniform(*self.reacquisition_s)
            block = Block(time_s, fall_s, dark_s, search_s if dark_s > self.reacquisition_after_s else 0.0, rise_s)
            time_s = block.end_s
            if block.start_s >= duration_s:
                return
            if time_s > 0:
                yield block


def tracking_losses(duration_s: float, every_s: float, length_s: float, rng: np.random.Generator) -> Iterator[Block]:
    """Draw short losses of tracking at about every multiple of a time.

    Parameters
    ----------
    duration_s
        How long, in s.
    every_s
        The interval, in s. Each loss is at most a thirtieth of it early or late.
    length_s
        Mean length, in s; lengths are uniform from half to one and a half of it.
    rng
        Source of randomness.
    """
    edge_s = length_s / 10
    for count in range(1, int(duration_s / every_s) + 2):
        start_s = (count + rng.uniform(-1, 1) / 30) * every_s
        dark_s = length_s * rng.uniform(0.5, 1.5)
        if start_s < duration_s:
            yield Block(start_s, edge_s, dark_s, 0.0, edge_s)


def transmission(
    blocks: Iterator[Block], samples: int, sample_rate_hz: float, floor: float
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Share of the power that passes at each sample, and whether a blockage affects it.

    Parameters
    ----------
    blocks
        The blocks, which may overlap.
    samples
        How many samples.
    sample_rate_hz
        Their rate, in Hz.
    floor
        Fraction of the power that passes when blocked.
    """
    passed = np.ones(samples)
    blocked = np.zeros(samples, dtype=bool)
    for block in blocks:
        first = max(int(np.ceil(block.start_s * sample_rate_hz)), 0)
        last = min(int(np.ceil(block.end_s * sample_rate_hz)), samples)
        if first >= last:
            continue
        into_s = np.arange(first, last) / sample_rate_hz - block.start_s
        left_s = block.end_s - block.start_s - into_s
        # Edges are half a period of a cosine.
        openness = np.maximum(
            0.5 + 0.5 * np.cos(np.pi * np.clip(into_s / block.fall_s, 0, 1)),
            0.5 + 0.5 * np.cos(np.pi * np.clip(left_s / block.rise_s, 0, 1)),
        )
        passed[first:last] = np.minimum(passed[first:last], floor + (1 - floor) * openness)
        blocked[first:last] = True
    return passed, blocked

"""Erasure codes over the blocks of a segment."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from farlink.errors import TuneError
from farlink.tune.ascending import Whole, distinct, merged, occurrences
from farlink.tune.bit_errors import BitErrors
from farlink.tune.codes.code import Code, ModemKeys, Outer
from farlink.tune.description import Count, Description, Field, Some, Text, model_validator
from farlink.tune.inner import Inner

Floats = NDArray[np.float64]

# Check of a block -> bytes that it adds to each block, and the share of bad blocks that it misses.
CHECKS = {"crc-32": (4, 2.0**-32), "crc-16": (2, 2.0**-16), "crc-8": (1, 2.0**-8), "decoder": (0, 0.0)}
_MOST_BLOCKS = 256


class ErasureFamily(Description):
    """Blocks of a segment with parity blocks: any blocks, as many as the segment has, recover it.

    With `segments` the blocks are whole segments: any of a group, as many as `segments`, recover all of them.

    Attributes
    ----------
    block_bytes
        Bytes of a block, its check not counted; not with `segments`.
    segments
        Segments of a group, each of which is a block.
    parity_blocks
        Parity blocks of a segment, or of a group.
    check
        What finds a bad block: a check in each (``"crc-32"``, ``"crc-16"``, ``"crc-8"``), or ``"decoder"``, the code below,
        which is then taken to find all of them at no cost.
    """

    kind: Literal["erasure"]
    block_bytes: Count | None = None
    segments: Count | None = None
    parity_blocks: tuple[Some, ...] = Field(min_length=1)
    check: Literal["crc-32", "crc-16", "crc-8", "decoder"] = "crc-32"
    name: Text = Field(default="ER")

    @model_validator(mode="after")
    def _one_size(self) -> ErasureFamily:
        if self.block_bytes is None and self.segments is None:
            raise ValueError("neither block_bytes nor segments is given; give the bytes of a block, or the segments of a group")
        if self.block_bytes is not None and self.segments is not None:
            raise ValueError(
                f"block_bytes = {self.block_bytes} and segments = {self.segments} are both given; keep one: over segments each "
                "of them is a block"
            )
        return self

    def outers(self, packet_bytes: int) -> list[Outer]:
        """One for each number of parity blocks."""
        if self.block_bytes is None:
            return self._groups(self.segments or 1)
        data = -(-packet_bytes // self.block_bytes)
        for parity in self.parity_blocks:
            if data + parity > _MOST_BLOCKS:
                message = f"{self.name}: {data} blocks of {self.block_bytes} bytes and {parity} of parity"
                raise TuneError(f"{message} are more than {_MOST_BLOCKS}", "make blocks larger, or give fewer parity blocks")
        return [Erasure(self.name, self.block_bytes, parity, self.check) for parity in self.parity_blocks]

    def _groups(self, segments: int) -> list[Outer]:
        for parity in self.parity_blocks:
            if segments + parity > _MOST_BLOCKS:
                message = f"{self.name}: {segments} segments and {parity} of parity"
                raise TuneError(f"{message} are more than {_MOST_BLOCKS}", "give fewer segments, or fewer parity blocks")
        return [ErasureOfSegments(self.name, segments, parity, self.check) for parity in self.parity_blocks]

    def codes(self, packet_bytes: int, modem: ModemKeys) -> list[Code]:  # noqa: ARG002
        """One for each number of parity blocks."""
        return [Code(Inner.uncoded(), outer) for outer in self.outers(packet_bytes)]


@dataclass(frozen=True)
class Erasure:
    """A number of parity blocks for a segment.

    Attributes
    ----------
    label
        Its name.
    block_bytes
        Bytes of a block without its check.
    parity_blocks
        For each segment.
    check
        What finds a bad block.
    """

    label: str
    block_bytes: int
    parity_blocks: int
    check: str

    segments = 1

    def name(self, packet_bytes: int) -> str:
        """See `Outer`."""
        data = self._data(packet_bytes)
        return f"{self.label}{self.block_bytes}({data + self.parity_blocks},{data})"

    def sent_bytes(self, packet_bytes: int) -> int:
        """See `Outer`."""
        return (self._data(packet_bytes) + self.parity_blocks) * (self.block_bytes + CHECKS[self.check][0])

    def residue(self, errors: BitErrors, packet_bytes: int) -> tuple[float, float]:
        """See `Outer`; a bad block that is not found spoils the segment, which TCP's own checksum finds."""
        check_bytes, missed = CHECKS[self.check]
        count = self._data(packet_bytes) + self.parity_blocks
        chance = errors.bad_blocks(8 * (self.block_bytes + check_bytes), count)
        bad = np.arange(count + 1)
        lost = np.where(bad > self.parity_blocks, 1.0, -np.expm1(bad * np.log1p(-missed)))
        mean = float(bad @ chance)
        left = float((bad * chance)[self.parity_blocks + 1 :].sum()) / mean if mean > 0 else 0.0
        return errors.ber * min(1.0, left + missed), min(1.0, float(lost @ chance))

    def lost(self, wrong: Whole, packet_bytes: int, rng: np.random.Generator) -> Whole:
        """See `Outer`."""
        check_bytes, missed = CHECKS[self.check]
        blocks = self._data(packet_bytes) + self.parity_blocks
        bad = distinct(wrong // (8 * (self.block_bytes + check_bytes)))
        segment, count = occurrences(bad // blocks)
        return merged(segment[count > self.parity_blocks], _missed(bad, missed, rng) // blocks)

    def _data(self, packet_bytes: int) -> int:
        return -(-packet_bytes // self.block_bytes)


@dataclass(frozen=True)
class ErasureOfSegments:
    """A number of parity blocks for a group of segments, each of which is a block.

    Attributes
    ----------
    label
        Its name.
    segments
        Of a group.
    parity_blocks
        As long as a segment, for each group.
    check
        What finds a bad segment.
    """

    label: str
    segments: int
    parity_blocks: int
    check: str

    def name(self, packet_bytes: int) -> str:  # noqa: ARG002 (of any length)
        """See `Outer`."""
        return f"{self.label}({self.segments + self.parity_blocks},{self.segments}) of segments"

    def sent_bytes(self, packet_bytes: int) -> float:
        """See `Outer`."""
        return self.block_bytes(packet_bytes) * (self.segments + self.parity_blocks) / self.segments

    def residue(self, errors: BitErrors, packet_bytes: int) -> tuple[float, float]:
        """See `Outer`: bad segments are lost if the group has more than parity blocks, and wherever they are not found."""
        missed = CHECKS[self.check][1]
        blocks = self.segments + self.parity_blocks
        chance = errors.bad_blocks(8 * self.block_bytes(packet_bytes), blocks)
        bad = np.arange(blocks + 1)
        mean = float(bad @ chance)
        kept = float((bad * chance)[self.parity_blocks + 1 :].sum())
        left = kept / mean if mean > 0 else 0.0
        return errors.ber * min(1.0, left + missed), min(1.0, (kept + missed * (mean - kept)) / blocks)

    def lost(self, wrong: Whole, packet_bytes: int, rng: np.random.Generator) -> Whole:
        """See `Outer`."""
        return self.unrepaired(distinct(wrong // (8 * self.block_bytes(packet_bytes))), rng)

    def unrepaired(self, bad: Whole, rng: np.random.Generator) -> Whole:
        """Segments that stay lost, of the ascending numbers of blocks on the channel that are bad."""
        blocks = self.segments + self.parity_blocks
        group, place = np.divmod(bad, blocks)
        _, count = occurrences(group)
        left = bad[(np.repeat(count, count) > self.parity_blocks) & (place < self.segments)]
        group, place = np.divmod(merged(left, _missed(bad[place < self.segments], CHECKS[self.check][1], rng)), blocks)
        return np.asarray(group * self.segments + place, dtype=np.int64)

    def block_bytes(self, packet_bytes: int) -> int:
        """A segment with its check."""
        return packet_bytes + CHECKS[self.check][0]

    def stays_lost(self, loss: Floats) -> Floats:
        """Probability that a segment stays lost: it is bad, and so are as many others of its group as there are parity blocks.

        Parameters
        ----------
        loss
            Probability of each block on the channel that it is bad, independently of the others, parity last. Shape
            ``(groups, segments + parity_blocks)``.

        Returns
        -------
        ndarray
            Of the segments of each group. Shape ``(groups, segments)``.

        Examples
        --------
        >>> code = ErasureOfSegments("ER", 20, 3, "crc-16")
        >>> print(f"{code.stays_lost(np.full((1, 23), 0.01))[0, 0]:.3e}")
        1.336e-05
        """
        found: Floats = np.empty((loss.shape[0], self.segments))
        if self.parity_blocks == 0:
            found[:] = loss[:, : self.segments]
            return found
        for own in range(self.segments):
            # Probabilities of fewer bad ones among the others.
            few = np.zeros((self.parity_blocks, loss.shape[0]))
            few[0] = 1.0
            for other in range(loss.shape[1]):
                if other != own:
                    bad = loss[:, other]
                    few[1:] = few[1:] * (1 - bad) + few[:-1] * bad
                    few[0] *= 1 - bad
            found[:, own] = loss[:, own] * np.maximum(0.0, 1 - few.sum(axis=0))
        return found


def _missed(bad: Whole, share: float, rng: np.random.Generator) -> Whole:
    """Those of the bad blocks whose check is right by chance."""
    return bad[rng.random(bad.size) < share] if share > 0 else bad[:0]

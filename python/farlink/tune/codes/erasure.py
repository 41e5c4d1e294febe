"""Erasure codes over the blocks of a segment."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from farlink.errors import TuneError
from farlink.tune.bit_errors import BitErrors
from farlink.tune.codes.code import Code, ModemKeys, Outer
from farlink.tune.description import Count, Description, Field, Some, Text
from farlink.tune.inner import Inner

# Check of a block -> bytes that it adds to each block, and the share of bad blocks that it misses.
CHECKS = {"crc-32": (4, 2.0**-32), "crc-16": (2, 2.0**-16), "crc-8": (1, 2.0**-8), "decoder": (0, 0.0)}
_MOST_BLOCKS = 256


class ErasureFamily(Description):
    """Blocks of a segment with parity blocks: any blocks, as many as the segment has, recover it.

    Attributes
    ----------
    block_bytes
        Bytes of a block, its check not counted.
    parity_blocks
        Parity blocks of a segment.
    check
        What finds a bad block: a check in each (``"crc-32"``, ``"crc-16"``, ``"crc-8"``), or ``"decoder"``, the code below,
        which is then taken to find all of them at no cost.
    """

    kind: Literal["erasure"]
    block_bytes: Count
    parity_blocks: tuple[Some, ...] = Field(min_length=1)
    check: Literal["crc-32", "crc-16", "crc-8", "decoder"] = "crc-32"
    name: Text = Field(default="ER")

    def outers(self, packet_bytes: int) -> list[Outer]:
        """One for each number of parity blocks."""
        data = -(-packet_bytes // self.block_bytes)
        for parity in self.parity_blocks:
            if data + parity > _MOST_BLOCKS:
                message = f"{self.name}: {data} blocks of {self.block_bytes} bytes and {parity} of parity"
                raise TuneError(f"{message} are more than {_MOST_BLOCKS}", "make blocks larger, or give fewer parity blocks")
        return [Erasure(self.name, self.block_bytes, parity, self.check) for parity in self.parity_blocks]

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

    def _data(self, packet_bytes: int) -> int:
        return -(-packet_bytes // self.block_bytes)

"""Reed-Solomon codes, shortened so that a whole number of codewords is a segment."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from farlink.tune.bit_errors import BitErrors
from farlink.tune.codes.code import Code, ModemKeys, Outer
from farlink.tune.description import Count, Description, Field, Switch, Text, model_validator
from farlink.tune.inner import Inner


class ReedSolomonFamily(Description):
    """A shortened code (n, k) over bytes: a segment is cut into codewords of equal length, each with n - k bytes of parity.

    Attributes
    ----------
    n, k
        Before it is shortened.
    data_bytes
        Data of a codeword at most, up to k: a segment is as many codewords as that takes, all as long as each other. Fewer
        protect better.
    interleaved
        Whether the codewords of a segment are sent in turns, byte by byte.
    """

    kind: Literal["reed-solomon"]
    n: Count
    k: Count
    data_bytes: tuple[Count, ...] = Field(min_length=1)
    interleaved: Switch = True
    name: Text = Field(default="RS")

    @model_validator(mode="after")
    def _fits(self) -> ReedSolomonFamily:
        if not self.k < self.n <= 255:
            raise ValueError(f"n = {self.n} and k = {self.k} are no code over bytes; give k below n, and n up to 255")
        if max(self.data_bytes) > self.k:
            raise ValueError(
                f"data_bytes of {max(self.data_bytes)} are more than k = {self.k}; codes are shortened, not lengthened"
            )
        return self

    def outers(self, packet_bytes: int) -> list[Outer]:
        """One for each length."""
        counts = dict.fromkeys(-(-packet_bytes // data) for data in self.data_bytes)
        return [ReedSolomon(self.name, self.n - self.k, count, self.interleaved) for count in counts]

    def codes(self, packet_bytes: int, modem: ModemKeys) -> list[Code]:  # noqa: ARG002
        """One for each length."""
        return [Code(Inner.uncoded(), outer) for outer in self.outers(packet_bytes)]


@dataclass(frozen=True)
class ReedSolomon:
    """A number of codewords for a segment.

    Attributes
    ----------
    label
        Its name.
    parity_bytes
        Parity of each codeword: half as many wrong bytes are corrected.
    codewords
        For each segment.
    is_interleaved
        Whether they are sent in turns.
    """

    label: str
    parity_bytes: int
    codewords: int
    is_interleaved: bool

    def name(self, packet_bytes: int) -> str:
        """See `Outer`."""
        data = self._data(packet_bytes)
        return f"{self.label}({data + self.parity_bytes},{data})"

    def sent_bytes(self, packet_bytes: int) -> int:
        """See `Outer`; the last codewords may be a byte shorter."""
        return packet_bytes + self.codewords * self.parity_bytes

    def residue(self, errors: BitErrors, packet_bytes: int) -> tuple[float, float]:
        """See `Outer`; codewords of a segment fail as if they did so independently of each other."""
        depth = self.codewords if self.is_interleaved else 1
        word = errors.word(self._data(packet_bytes) + self.parity_bytes, self.parity_bytes // 2, depth)
        return errors.ber * word.left, 1 - (1 - word.loss) ** self.codewords if word.loss > 1e-9 else self.codewords * word.loss

    def _data(self, packet_bytes: int) -> int:
        return -(-packet_bytes // self.codewords)

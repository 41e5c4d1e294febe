"""Reed-Solomon codes, shortened so that a whole number of codewords is a segment."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from farlink.tune.ascending import Whole, distinct, is_first
from farlink.tune.bit_errors import BitErrors
from farlink.tune.codes.code import Code, ModemKeys, Outer
from farlink.tune.description import Count, Description, Field, Switch, Text, model_validator
from farlink.tune.inner import Inner

# Codewords that take turns over more segments wait longer than a connection does.
MOST_SEGMENTS = 256


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
    segments
        Segments whose codewords are interleaved together: long bursts are spread, and a segment waits for the others.
    """

    kind: Literal["reed-solomon"]
    n: Count
    k: Count
    data_bytes: tuple[Count, ...] = Field(min_length=1)
    interleaved: Switch = True
    segments: Count = 1
    name: Text = Field(default="RS")

    @model_validator(mode="after")
    def _fits(self) -> ReedSolomonFamily:
        if not self.k < self.n <= 255:
            raise ValueError(f"n = {self.n} and k = {self.k} are no code over bytes; give k below n, and n up to 255")
        if max(self.data_bytes) > self.k:
            raise ValueError(
                f"data_bytes of {max(self.data_bytes)} are more than k = {self.k}; codes are shortened, not lengthened"
            )
        if self.segments > 1 and not self.interleaved:
            raise ValueError(f"segments = {self.segments} without interleaving does nothing; leave one of the two out")
        if self.segments > MOST_SEGMENTS:
            raise ValueError(f"segments = {self.segments} are more than {MOST_SEGMENTS}; give fewer")
        return self

    def outers(self, packet_bytes: int) -> list[Outer]:
        """One for each length."""
        counts = dict.fromkeys(-(-packet_bytes // data) for data in self.data_bytes)
        return [ReedSolomon(self.name, self.n - self.k, count, self.interleaved, self.segments) for count in counts]

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
    segments
        Segments whose codewords take turns.
    """

    label: str
    parity_bytes: int
    codewords: int
    is_interleaved: bool
    segments: int = 1

    def name(self, packet_bytes: int) -> str:
        """See `Outer`."""
        data = self._data(packet_bytes)
        over = f" over {self.segments} segments" if self.segments > 1 else ""
        return f"{self.label}({data + self.parity_bytes},{data}){over}"

    def sent_bytes(self, packet_bytes: int) -> int:
        """See `Outer`; the last codewords may be a byte shorter."""
        return packet_bytes + self.codewords * self.parity_bytes

    def residue(self, errors: BitErrors, packet_bytes: int) -> tuple[float, float]:
        """See `Outer`; codewords of a segment fail as if they did so independently of each other.

        Over several segments a codeword that fails loses those of its wrong bytes, of which there is at least one more than is
        corrected.
        """
        depth = self.codewords * self.segments if self.is_interleaved else 1
        data, corrects = self._data(packet_bytes), self.parity_bytes // 2
        word = errors.word(data + self.parity_bytes, corrects, depth)
        fails = word.loss
        if self.segments > 1:
            own = min(1.0, data / self.segments / (data + self.parity_bytes))
            fails *= 1 - (1 - own) ** (corrects + 1)
        words = self.codewords * self.segments
        return errors.ber * word.left, 1 - (1 - fails) ** words if fails > 1e-9 else words * fails

    def lost(self, wrong: Whole, packet_bytes: int, rng: np.random.Generator) -> Whole:  # noqa: ARG002 (nothing is random)
        """See `Outer`; a codeword with too many wrong bytes is left as it is, and loses the segments of its wrong data.

        Data first, then parity, of the segments that take turns.
        """
        words, data = self.codewords * self.segments, packet_bytes * self.segments
        frame, place = np.divmod(distinct(wrong // 8), self.sent_bytes(packet_bytes) * self.segments)
        if self.is_interleaved:
            word, is_data = np.where(place < data, place, place - data) % words, place < data
            segment = place // packet_bytes
        else:
            word, inside = np.divmod(place, self._data(packet_bytes) + self.parity_bytes)
            is_data, segment = inside < self._data(packet_bytes), np.zeros_like(place)
        if wrong.size == 0:
            return wrong
        # Frames with a wrong byte are numbered anew, so that there are few words to count.
        number = (np.cumsum(is_first(frame)) - 1) * words + word
        count = np.bincount(number)[number]
        bad = (count > self.parity_bytes // 2) & is_data
        return distinct(np.sort(frame[bad] * self.segments + segment[bad]))

    def _data(self, packet_bytes: int) -> int:
        return -(-packet_bytes // self.codewords)

"""A code of a modem: one next to the channel, and perhaps one around it that works on segments."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from farlink.tune.ascending import Whole, distinct
from farlink.tune.bit_errors import BitErrors
from farlink.tune.inner import Inner


@dataclass(frozen=True)
class Residue:
    """Residual errors of a code.

    Attributes
    ----------
    ber
        Share of wrong bits of the data.
    loss
        Probability that a segment is lost.
    """

    ber: float
    loss: float


@dataclass(frozen=True)
class ModemKeys:
    """Context of a family of codes.

    Attributes
    ----------
    decision
        What a Viterbi decoder sees.
    families
        All families of the modem, by name.
    symbol_rates_hz
        Symbols per second of a carrier.
    modulations
        bpsk, qpsk, 8psk, 16qam.
    """

    decision: str
    families: Mapping[str, Any]
    symbol_rates_hz: tuple[float, ...]
    modulations: tuple[str, ...]


class Outer(Protocol):
    """A code around another one, over the bytes of a segment with its headers, or of several segments."""

    @property
    def segments(self) -> int:
        """Segments that it spans, which wait for each other before they are decoded."""
        ...

    def name(self, packet_bytes: int) -> str:
        """For people."""
        ...

    def sent_bytes(self, packet_bytes: int) -> float:
        """Bytes that a segment becomes; its part of the parity if that is of several."""
        ...

    def residue(self, errors: BitErrors, packet_bytes: int) -> tuple[float, float]:
        """Residual bit error rate and segment loss for a stream's errors."""
        ...

    def lost(self, wrong: Whole, packet_bytes: int, rng: np.random.Generator) -> Whole:
        """Numbers of the lost segments, ascending, if bits at these ascending positions of what is sent are wrong."""
        ...


@dataclass(frozen=True)
class Code:
    """The codes that a segment passes through.

    Attributes
    ----------
    inner
        Next to the channel.
    outer
        Around it, or None.
    """

    inner: Inner
    outer: Outer | None = None

    # The modem's loss against theory comes on top, and the errors are computed at any Es/N0.
    has_losses = False
    known_to_esn0_db = math.inf

    def suits(self, symbol_rate_hz: float, modulation: str) -> bool:  # noqa: ARG002
        """Whether it is used at that symbol rate and modulation: at all of them."""
        return True

    @property
    def segments(self) -> int:
        """Segments that wait for each other before they are decoded."""
        return self.outer.segments if self.outer else 1

    def name(self, packet_bytes: int) -> str:
        """For people: the outer code first."""
        parts = [self.outer.name(packet_bytes)] if self.outer else []
        return "+".join([*parts, *([self.inner.name] if self.inner.name else [])]) or "uncoded"

    def rate(self, packet_bytes: int) -> float:
        """Bits of a segment for each bit of the channel."""
        return self.inner.rate * packet_bytes / self.sent_bytes(packet_bytes)

    def sent_bytes(self, packet_bytes: int) -> float:
        """Bytes that a segment becomes before the code next to the channel."""
        return self.outer.sent_bytes(packet_bytes) if self.outer else packet_bytes

    def lost(self, wrong: Whole, packet_bytes: int, rng: np.random.Generator) -> Whole:
        """Numbers of the lost segments, ascending, if the code next to the channel leaves these ascending wrong bits."""
        if self.outer is None:
            return distinct(wrong // (8 * packet_bytes))
        return self.outer.lost(wrong, packet_bytes, rng)

    def residue(self, modulation: str, esn0_db: float, *, packet_bytes: int, errors: str) -> Residue:
        """Residual errors of segments with their headers.

        Parameters
        ----------
        modulation
            bpsk, qpsk, 8psk or 16qam.
        esn0_db
            Energy of a symbol over noise density, in dB.
        packet_bytes
            A segment with its headers, in bytes.
        errors
            Distribution of wrong bits after the inner code: ``"bursts"`` or ``"independent"``.
        """
        left = self.inner.rates(modulation, esn0_db, errors, _Left(self.outer, packet_bytes))
        return Residue(*left)


@dataclass(frozen=True)
class _Left:
    """Residual errors of a stream."""

    outer: Outer | None
    packet_bytes: int

    def __call__(self, found: BitErrors) -> tuple[float, ...]:
        if self.outer is None:
            return found.ber, found.hit(8 * self.packet_bytes)
        return self.outer.residue(found, self.packet_bytes)

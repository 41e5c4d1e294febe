"""Convolutional codes with Viterbi decoding, punctured to several rates."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, Literal

from farlink.errors import TuneError
from farlink.tune.codes.code import Code, ModemKeys
from farlink.tune.description import Count, Description, Text, model_validator
from farlink.tune.inner import Inner


class ConvolutionalFamily(Description):
    """A convolutional code at some rates; by the usual patterns, or by patterns of one's own.

    Attributes
    ----------
    generators
        As in ``[link.coding]``: octal, with commas between them.
    rates
        Rates after puncturing in the usual way, ``"1/2"`` to ``"7/8"``.
    patterns
        Own patterns, as `puncture` of a scenario's code; rate-compatible ones for example.
    traceback_bits
        How many bits later the decoder decides; 5 K unless given.
    """

    kind: Literal["convolutional"]
    generators: Text
    rates: tuple[Text, ...] = ()
    patterns: tuple[Text, ...] = ()
    traceback_bits: Count | None = None
    name: Text = "CV"

    @model_validator(mode="after")
    def _some(self) -> ConvolutionalFamily:
        if not self.rates and not self.patterns:
            raise ValueError('no rate and no pattern is given; give rates = ["1/2", "3/4"]')
        return self

    def inners(self, decision: str) -> list[Inner]:
        """One for each rate."""
        common: dict[str, Any] = {"generators": self.generators}
        if self.traceback_bits is not None:
            common["traceback_bits"] = self.traceback_bits
        by_rate = [Inner.convolutional({**common, "rate": rate}, f"{self.name} {rate}", decision) for rate in self.rates]
        by_pattern = [
            Inner.convolutional({**common, "puncture": pattern}, f"{self.name} {_rate(pattern)}", decision)
            for pattern in self.patterns
        ]
        names = [inner.name for inner in by_rate + by_pattern]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise TuneError(f"{twice} occurs twice", "keep one code of each rate")
        return by_rate + by_pattern

    def codes(self, packet_bytes: int, modem: ModemKeys) -> list[Code]:  # noqa: ARG002
        """One for each rate."""
        return [Code(inner) for inner in self.inners(modem.decision)]


def _rate(pattern: str) -> str:
    """Rate of a puncturing pattern, as a fraction; the text itself if it is not a pattern."""
    sent, period = pattern.count("1"), len(pattern.partition("/")[0])
    return str(Fraction(period, sent)) if sent else pattern

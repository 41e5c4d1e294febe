"""Measurements of a modem: its bit error rate at some values of C/N0, for each rate that it can be set to."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated, Any, Literal

import numpy as np

from farlink.errors import TuneError
from farlink.tune.codes.code import ModemKeys, Residue
from farlink.tune.description import Bytes, Description, Field, Number, Positive, Text, model_validator
from farlink.tune.inner import BITS, between
from farlink.units import show

BitErrorRate = Annotated[float, Field(strict=True, allow_inf_nan=False, gt=0, le=0.5)]
Loss = Annotated[float, Field(strict=True, allow_inf_nan=False, gt=0, le=1)]


class MeasuredPoint(Description):
    """A measurement.

    Attributes
    ----------
    cn0_dbhz
        Carrier power over noise density, in dBHz, at the input of the modem.
    rate_bps
        Bits per second after decoding, on the whole carrier.
    ber
        Share of wrong bits among them, above 0 and up to 0.5.
    loss
        Share of lost packets of `MeasuredFamily.loss_bytes` bytes, above 0 and up to 1; None if it was not measured.
    modulation
        bpsk, qpsk, 8psk or 16qam; the modem's, unless it has several.
    symbol_rate_hz
        Symbols per second; the modem's, unless it has several.
    code
        For people and for the modem; the rate unless given.
    """

    cn0_dbhz: Number
    rate_bps: Positive
    ber: BitErrorRate
    loss: Loss | None = None
    modulation: Text | None = None
    symbol_rate_hz: Positive | None = None
    code: Text | None = None

    @property
    def of(self) -> tuple[float | None, str | None, str]:
        """Symbol rate, modulation and name of the setting that it is of."""
        return self.symbol_rate_hz, self.modulation, self.code or show(self.rate_bps, "rate_bps")


class MeasuredFamily(Description):
    r"""Measured points; those of the same symbol rate, modulation and code are a setting of the modem.

    Between two points the logarithm of the bit error rate is a straight line over C/N0 in dB:

    .. math:: \ln p = (1 - x) \ln p_1 + x \ln p_2, \quad x = \frac{c - c_1}{c_2 - c_1}

    Below the lowest point the setting is not used. Above the highest one its bit error rate holds, which a table says.

    Attributes
    ----------
    file
        CSV file of the points, relative to that of the modem.
    points
        Or the points themselves; of each setting with ascending C/N0.
    loss_bytes
        Bytes of the packets whose loss was measured, headers included.
    name
        Stands before the code.
    """

    kind: Literal["measured"]
    file: Text | None = None
    points: tuple[MeasuredPoint, ...] = ()
    loss_bytes: Bytes | None = None
    name: Text = "measured"

    @model_validator(mode="after")
    def _in_order(self) -> MeasuredFamily:
        for where, found in self._curves().items():
            words = _words(where)
            if len({point.rate_bps for point in found}) > 1:
                rates = " and ".join(f"{rate:.10g}" for rate in sorted({point.rate_bps for point in found})[:2])
                raise ValueError(f"{words} has rate_bps of {rates}; a setting has one rate: give each a code of its own")
            if len({point.loss is None for point in found}) > 1:
                raise ValueError(f"{words} has a loss at some points only; give it at all of them, or at none")
            if found[0].loss is not None and self.loss_bytes is None:
                raise ValueError(f"{words} has a loss, and loss_bytes is missing; give the bytes of a packet that was lost")
            for one, following in pairwise(found):
                low, high = one.cn0_dbhz, following.cn0_dbhz
                if high == low:
                    raise ValueError(f"{words}: C/N0 of {low:.10g} dBHz occurs twice; keep one point, the mean for example")
                if high < low:
                    raise ValueError(f"{words}: C/N0 of {high:.10g} dBHz after {low:.10g}; sort its points by C/N0, ascending")
        return self

    def codes(self, packet_bytes: int, modem: ModemKeys) -> list[MeasuredCode]:  # noqa: ARG002
        """One for each setting.

        Raises
        ------
        TuneError
            If there is no point, or one that does not belong to the modem.
        """
        if not self.points:
            has_file = self.file is not None
            message = f"the points of {self.file} have not been read" if has_file else "no point is given"
            remedy = "read the modem with farlink.tune.modem.load" if has_file else "give points, or a file of them"
            raise TuneError(message, remedy)
        found = {}
        for (symbol_rate_hz, modulation, name), curve in self._curves().items():
            words = _words((symbol_rate_hz, modulation, name))
            rate_hz = _of_modem(symbol_rate_hz, modem.symbol_rates_hz, "symbol_rate_hz", words)
            kind = _of_modem(modulation, modem.modulations, "modulation", words)
            most_bps = rate_hz * BITS[kind]
            if curve[0].rate_bps > most_bps * (1 + 1e-9):
                message = f"{words} has rate_bps = {curve[0].rate_bps:.10g}, above the {most_bps:.10g} that {kind} carries"
                raise TuneError(message, "give the rate after decoding, or the modulation that was measured")
            if (rate_hz, kind, name) in found:
                raise TuneError(f"{words} is given with and without its modulation or symbol rate", "give them at all points")
            found[rate_hz, kind, name] = _code(f"{self.name} {name}", rate_hz, kind, curve, self.loss_bytes)
        return list(found.values())

    def _curves(self) -> dict[tuple[float | None, str | None, str], list[MeasuredPoint]]:
        """The points of each setting, in their order."""
        found: dict[tuple[float | None, str | None, str], list[MeasuredPoint]] = {}
        for point in self.points:
            found.setdefault(point.of, []).append(point)
        return found


@dataclass(frozen=True)
class MeasuredCode:
    """A setting with its measured bit error rates.

    Attributes
    ----------
    label
        For people and for the modem.
    symbol_rate_hz, modulation
        At which it was measured.
    information_bps
        Bits per second after decoding, on the whole carrier.
    esn0_db
        Of the points, ascending, with what the modem loses against theory.
    ber
        At each of them.
    loss
        Likewise of packets of `loss_bytes` bytes; empty if it was not measured.
    loss_bytes
        Length of these packets.
    """

    label: str
    symbol_rate_hz: float
    modulation: str
    information_bps: float
    esn0_db: tuple[float, ...]
    ber: tuple[float, ...]
    loss: tuple[float, ...]
    loss_bytes: int

    # The modem's loss against theory was measured, too.
    has_losses = True
    segments = 1

    def suits(self, symbol_rate_hz: float, modulation: str) -> bool:
        """Whether it was measured at that symbol rate and modulation."""
        return (symbol_rate_hz, modulation) == (self.symbol_rate_hz, self.modulation)

    def name(self, packet_bytes: int) -> str:  # noqa: ARG002
        """For people and for the modem."""
        return self.label

    def rate(self, packet_bytes: int) -> float:  # noqa: ARG002
        """Bits of a segment for each bit of the channel."""
        return self.information_bps / (self.symbol_rate_hz * BITS[self.modulation])

    def residue(self, modulation: str, esn0_db: float, *, packet_bytes: int, errors: str) -> Residue | None:  # noqa: ARG002
        """Residual errors of segments with their headers; None below what was measured.

        Without a measured loss, wrong bits count as independent of each other. With one, packets of other lengths are lost as
        if each byte of them had the same chance.
        """
        if esn0_db < self.esn0_db[0] - _ROUNDING_DB:
            return None
        ber = math.exp(float(np.interp(esn0_db, self.esn0_db, np.log(self.ber))))
        if not self.loss:
            return Residue(ber, -math.expm1(8 * packet_bytes * math.log1p(-ber)))
        loss = self._loss(esn0_db)
        if packet_bytes != self.loss_bytes and loss < 1:
            loss = -math.expm1(packet_bytes / self.loss_bytes * math.log1p(-loss))
        return Residue(ber, loss)

    def _loss(self, esn0_db: float) -> float:
        """Loss between the points, straight like the bit error rate; near 1 the logarithm of -ln(1 - loss) is."""
        at = bisect_left(self.esn0_db, esn0_db)
        if at in (0, len(self.esn0_db)):
            return self.loss[min(at, len(self.esn0_db) - 1)]
        share = (esn0_db - self.esn0_db[at - 1]) / (self.esn0_db[at] - self.esn0_db[at - 1])
        return between(self.loss[at - 1], self.loss[at], share)

    @property
    def known_to_esn0_db(self) -> float:
        """The highest Es/N0 at which it was measured, in dB."""
        return self.esn0_db[-1]


# C/N0 and Es/N0 are converted there and back.
_ROUNDING_DB = 1e-9


def _of_modem(value: Any, known: Sequence[Any], name: str, words: str) -> Any:
    """A key of a setting, the modem's unless given."""
    if value is None:
        if len(known) > 1:
            several = ", ".join(str(one) for one in known)
            raise TuneError(f"{words} has no {name}, and the modem has several: {several}", f"give each point its {name}")
        return known[0]
    if value not in known:
        several = ", ".join(str(one) for one in known)
        raise TuneError(f"{words}: {name} of {value} is none of the modem's: {several}", "give one of these, or add it there")
    return value


def _code(label: str, rate_hz: float, modulation: str, curve: Sequence[MeasuredPoint], loss_bytes: int | None) -> MeasuredCode:
    shift_db = 10 * math.log10(rate_hz)
    return MeasuredCode(
        label,
        rate_hz,
        modulation,
        curve[0].rate_bps,
        tuple(point.cn0_dbhz - shift_db for point in curve),
        tuple(point.ber for point in curve),
        tuple(point.loss for point in curve if point.loss is not None),
        loss_bytes or 1,
    )


def _words(where: tuple[float | None, str | None, str]) -> str:
    symbol_rate_hz, modulation, name = where
    rate = None if symbol_rate_hz is None else f"{symbol_rate_hz:g} symbol/s"
    return ", ".join(part for part in (modulation, name, rate) if part)

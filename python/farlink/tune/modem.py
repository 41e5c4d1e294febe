"""Settings of a modem: symbol rates, modulations, codes, sizes of segments."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from farlink.errors import FarlinkError, TuneError
from farlink.tune.codes import Code, Family, MeasuredCode, ModemKeys
from farlink.tune.codes.measured_file import read_points
from farlink.tune.description import (
    Bytes,
    Description,
    Field,
    Headers,
    NotNegative,
    Number,
    Positive,
    Text,
    read_toml,
    validated,
)
from farlink.tune.inner import BITS

Modulation = Literal["bpsk", "qpsk", "8psk", "16qam"]


@dataclass(frozen=True)
class Setting:
    """One thing that a modem can be set to.

    Attributes
    ----------
    symbol_rate_hz
        Symbols per second of the carrier.
    modulation
        bpsk, qpsk, 8psk or 16qam.
    family
        Family of the code.
    code
        The code.
    segment_bytes, header_bytes
        Data of a segment, and the headers on top.
    """

    symbol_rate_hz: float
    modulation: str
    family: str
    code: Code | MeasuredCode
    segment_bytes: int
    header_bytes: int

    @property
    def packet_bytes(self) -> int:
        """A segment with its headers."""
        return self.segment_bytes + self.header_bytes

    @cached_property
    def code_name(self) -> str:
        """The code, for people and for modems."""
        return self.code.name(self.packet_bytes)

    @cached_property
    def bits_per_symbol(self) -> float:
        """Bits of segments that a symbol carries."""
        return BITS[self.modulation] * self.code.rate(self.packet_bytes)


class Modem(Description):
    """A modem.

    Attributes
    ----------
    title
        For people.
    access
        ``"tdma"``: connections have a share of the carrier's time, and its C/N0. ``"scpc"``: they have a carrier of their own,
        whose symbol rate is that share of `symbol_rates_hz`, and whose C/N0 is what is measured.
    symbol_rates_hz
        Symbols per second of a carrier.
    modulations
        bpsk, qpsk, 8psk, 16qam.
    implementation_loss_db
        What the modem is worse than theory, in dB of Es/N0; measured codes have it in them.
    lowest_esn0_db
        Es/N0 below which the demodulator does not work; None if it always does.
    segment_bytes
        Data of a segment; several to choose from.
    header_bytes
        Headers on top of it.
    errors
        Distribution of wrong bits after a Viterbi decoder: ``"bursts"``, or ``"independent"`` as many analyses have it.
    decision
        What the Viterbi decoder sees.
    code
        Families of codes by name.
    """

    title: Text = "Modem"
    access: Literal["tdma", "scpc"] = "tdma"
    symbol_rates_hz: tuple[Positive, ...] = Field(min_length=1)
    modulations: tuple[Modulation, ...] = Field(min_length=1)
    implementation_loss_db: NotNegative = 0.0
    lowest_esn0_db: Number | None = None
    segment_bytes: tuple[Bytes, ...] = Field(min_length=1)
    header_bytes: Headers = 40
    errors: Literal["bursts", "independent"] = "bursts"
    decision: Literal["soft", "hard"] = "soft"
    code: dict[str, Family] = Field(min_length=1)

    def settings(self) -> list[Setting]:
        """All its settings.

        Raises
        ------
        TuneError
            If a family has no codes for the segments.
        """
        keys = ModemKeys(self.decision, self.code, self.symbol_rates_hz, self.modulations)
        settings: list[Setting] = []
        for size in self.segment_bytes:
            for name, family in self.code.items():
                try:
                    codes = family.codes(size + self.header_bytes, keys)
                except FarlinkError as error:
                    raise TuneError(f"code.{name}: {error.message}", error.remedy) from error
                settings += [
                    Setting(rate, modulation, name, code, size, self.header_bytes)
                    for rate in self.symbol_rates_hz
                    for modulation in self.modulations
                    for code in codes
                    if code.suits(rate, modulation)
                ]
        self._refuse_twice(settings)
        return settings

    @staticmethod
    def _refuse_twice(settings: Sequence[Setting]) -> None:
        """Two measurements that a table could not tell apart."""
        seen: set[tuple[float, str, str, int]] = set()
        for one in settings:
            key = (one.symbol_rate_hz, one.modulation, one.code_name, one.segment_bytes)
            if key in seen and one.code.has_losses:
                raise TuneError(
                    f"code.{one.family}: {one.modulation} {one.code_name} is measured in two families", "give one another name"
                )
            seen.add(key)

    def known_to_dbhz(self, setting: Setting, *, share: float) -> float:
        """The highest C/N0 at which the errors of a setting were measured, in dBHz; infinite if they are computed."""
        return setting.code.known_to_esn0_db + self._symbol_rate_db(setting.symbol_rate_hz, share)

    def _symbol_rate_db(self, symbol_rate_hz: float, share: float) -> float:
        return 10 * math.log10(symbol_rate_hz * (share if self.access == "scpc" else 1))

    def esn0_db(self, cn0_dbhz: float, *, symbol_rate_hz: float, share: float, has_losses: bool = False) -> float:
        """Energy of a symbol over noise density, in dB, the modem's own loss taken off.

        Parameters
        ----------
        cn0_dbhz
            Carrier power over noise density, in dBHz.
        symbol_rate_hz
            Of the whole carrier.
        share
            Of it, in (0, 1].
        has_losses
            Whether the loss is in the error rates already, and not to be taken off.
        """
        loss_db = 0.0 if has_losses else self.implementation_loss_db
        return cn0_dbhz - self._symbol_rate_db(symbol_rate_hz, share) - loss_db


def load(path: str | Path) -> Modem:
    """Read the description of a modem.

    Parameters
    ----------
    path
        TOML file.

    Raises
    ------
    TuneError
        If it, or a file of measured points, cannot be read, or a key is missing, unknown or has a value that is not allowed.
    """
    path = Path(path)
    modem = validated(Modem, _with_files(path, read_toml(path, what="modem")), where=str(path))
    try:
        modem.settings()
    except TuneError as error:
        raise TuneError(f"{path}: {error.message}", error.remedy) from error
    return modem


def _with_files(path: Path, data: dict[str, Any]) -> dict[str, Any]:
    """The tables of a modem, with the measured points of the files that they name."""
    families = data.get("code")
    if not isinstance(families, dict):
        return data
    read = dict(families)
    for name, family in families.items():
        if not isinstance(family, dict) or family.get("kind") != "measured" or not isinstance(family.get("file"), str):
            continue
        if "points" in family:
            raise TuneError(f"{path}: code.{name} has a file and points", "give one of them")
        read[name] = {**family, "points": read_points(path.parent / family["file"])}
    return {**data, "code": read}

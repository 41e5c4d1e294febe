"""Operating points: every setting of a modem at a C/N0."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

from farlink.tune.modem import Modem, Setting

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Point:
    """A setting at a condition.

    Attributes
    ----------
    setting
        What the modem is set to.
    cn0_dbhz
        Carrier power over noise density.
    share
        Share of the carrier.
    esn0_db
        Energy of a symbol over noise density, the modem's loss taken off; of measured codes at its input.
    ber
        Bit error rate of the delivered bits.
    loss
        Probability that a segment is lost; where an impairment was played, its losses included.
    errors
        Distribution of wrong bits after a Viterbi decoder, as of the modem.
    """

    setting: Setting
    cn0_dbhz: float
    share: float
    esn0_db: float
    ber: float
    loss: float
    errors: str = "bursts"

    @cached_property
    def information_bps(self) -> float:
        """Bits of segments, headers included, that the share of the carrier takes."""
        return self.share * self.setting.symbol_rate_hz * self.setting.bits_per_symbol

    @property
    def ebn0_db(self) -> float:
        """Energy of a bit of segments over noise density."""
        return self.esn0_db - 10 * math.log10(self.setting.bits_per_symbol)

    @property
    def rate_segments_per_s(self) -> float:
        """Segments that the share of the carrier takes."""
        return self.information_bps / (8 * self.setting.packet_bytes)

    @property
    def wait_segments(self) -> int:
        """Segments that one waits for before it is decoded."""
        return self.setting.code.segments - 1

    @property
    def payload_bps(self) -> float:
        """Data that the share of the carrier takes."""
        return self.rate_segments_per_s * 8 * self.setting.segment_bytes


def points(
    modem: Modem,
    cn0_dbhz: Sequence[float],
    *,
    share: float = 1.0,
    families: Sequence[str] | None = None,
    progress: Progress | None = None,
) -> list[list[Point]]:
    """Every setting at every C/N0, less those at which the demodulator does not work, and below what was measured.

    Error events of convolutional codes that are not kept on disk are collected, a quarter of a second for each code and quarter
    of a dB.

    Parameters
    ----------
    modem
        Its settings.
    cn0_dbhz
        Carrier power over noise density.
    share
        Share of the carrier, in (0, 1].
    families
        Families of codes; all by default.
    progress
        Called with the points done and planned.

    Returns
    -------
    list of list of Point
        For each C/N0.
    """
    settings = [one for one in modem.settings() if families is None or one.family in families]
    found = []
    for at, cn0 in enumerate(cn0_dbhz):
        row = []
        for number, setting in enumerate(settings):
            one = point(modem, setting, cn0, share=share)
            if one is not None:
                row.append(one)
            if progress is not None:
                progress(at * len(settings) + number + 1, len(cn0_dbhz) * len(settings))
        found.append(row)
    return found


def point(modem: Modem, setting: Setting, cn0_dbhz: float, *, share: float = 1.0) -> Point | None:
    """A setting at a C/N0; None if the demodulator does not work there, or it was only measured above. See `points`."""
    has_losses = setting.code.has_losses
    esn0_db = modem.esn0_db(cn0_dbhz, symbol_rate_hz=setting.symbol_rate_hz, share=share, has_losses=has_losses)
    if modem.lowest_esn0_db is not None and esn0_db < modem.lowest_esn0_db:
        return None
    left = setting.code.residue(setting.modulation, esn0_db, packet_bytes=setting.packet_bytes, errors=modem.errors)
    if left is None:
        return None
    return Point(setting, cn0_dbhz, share, esn0_db, left.ber, left.loss, modem.errors)

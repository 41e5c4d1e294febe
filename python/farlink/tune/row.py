"""A row of a look-up table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from farlink.tune.evaluate import Rated
    from farlink.tune.modem import Setting

OK, NO_TRANSMISSION = "ok", "no transmission"


@dataclass(frozen=True)
class Row:
    """A modem's setting at a condition.

    Attributes
    ----------
    share
        Share of the carrier.
    flows
        TCP connections that the share is divided among.
    cn0_dbhz
        Carrier power over noise density.
    status
        ``"ok"``, or ``"no transmission"``: then everything that a setting has is None.
    step
        Neighbouring rows of the same setting have the same number, from 0.
    down_dbhz, up_dbhz
        C/N0 below which the modem leaves this step, and at which it enters it; None for the lowest step.
    symbol_rate_hz, modulation, family, code
        The setting.
    segment_bytes
        Data of a segment.
    information_bps
        Bits of segments, headers included, that the share of the carrier takes.
    ber
        Bit error rate after decoding.
    loss
        Probability that a segment is lost.
    goodput_bps
        Data that all connections together deliver.
    goodput_half_width_bps
        Of its interval; 0 if it is by a closed form.
    access
        ``"tdma"`` or ``"scpc"``.
    reason
        Why there is no transmission; empty otherwise.
    """

    share: float
    flows: int
    cn0_dbhz: float
    status: str
    step: int = 0
    down_dbhz: float | None = None
    up_dbhz: float | None = None
    symbol_rate_hz: float | None = None
    modulation: str | None = None
    family: str | None = None
    code: str | None = None
    segment_bytes: int | None = None
    information_bps: float | None = None
    ber: float | None = None
    loss: float | None = None
    goodput_bps: float | None = None
    goodput_half_width_bps: float | None = None
    access: str = "tdma"
    reason: str = ""

    @classmethod
    def of(cls, rated: Rated, flows: int, access: str) -> Row:
        """The row of a point."""
        point, setting = rated.point, rated.point.setting
        return cls(
            share=point.share,
            flows=flows,
            cn0_dbhz=point.cn0_dbhz,
            status=OK,
            symbol_rate_hz=setting.symbol_rate_hz,
            modulation=setting.modulation,
            family=setting.family,
            code=setting.code_name,
            segment_bytes=setting.segment_bytes,
            information_bps=point.information_bps,
            ber=point.ber,
            loss=point.loss,
            goodput_bps=rated.goodput_bps,
            goodput_half_width_bps=rated.half_width_bps,
            access=access,
        )

    @classmethod
    def of_nothing(cls, cn0_dbhz: float, share: float, flows: int, access: str, reason: str) -> Row:
        """The row of a condition at which nothing is sent."""
        return cls(share, flows, cn0_dbhz, NO_TRANSMISSION, access=access, reason=reason)

    @property
    def _key(self) -> tuple[object, ...]:
        return self.status, self.symbol_rate_hz, self.modulation, self.code, self.segment_bytes

    def differs_from(self, other: Row) -> bool:
        """Whether the modem is set otherwise there."""
        return self._key != other._key

    def is_set_as(self, setting: Setting) -> bool:
        """Whether this is the row's setting."""
        key = (OK, setting.symbol_rate_hz, setting.modulation, setting.code_name, setting.segment_bytes)
        return self._key == key

    @property
    def name(self) -> str:
        """The setting in a few words."""
        return f"{self.modulation} {self.code}, {self.segment_bytes} bytes" if self.status == OK else self.status

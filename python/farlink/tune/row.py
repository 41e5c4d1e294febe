"""A row of a look-up table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from farlink.tune.evaluate import Rated
    from farlink.tune.modem import Setting

OK, NO_TRANSMISSION, CANDIDATE = "ok", "no transmission", "candidate"


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
        ``"ok"``, or ``"no transmission"``: then everything that a setting has is None. Of tables over several paths also
        ``"candidate"``: a setting that may be used here and is set at this C/N0 on another path; readers interpolate it.
    step
        Neighbouring rows of the same setting have the same number, from 0; -1 of a candidate.
    down_dbhz, up_dbhz
        C/N0 below which the modem leaves this step, and at which it enters it; None for the lowest step. Of a candidate: of a
        step that would begin here.
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
    round_trip_s, buffer_bdp
        The path that it is for, as in `farlink.tune.offered.Path`; None in a table of one path.
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
    round_trip_s: float | None = None
    buffer_bdp: float | None = None

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
    def path(self) -> tuple[float, float] | None:
        """Round trip in s and buffer in bandwidth-delay products, if the table has several paths."""
        return None if self.round_trip_s is None or self.buffer_bdp is None else (self.round_trip_s, self.buffer_bdp)

    @property
    def entry(self) -> tuple[float, int, tuple[float, float]]:
        """Share, number of connections and path: rows that are alike in them are one list over C/N0."""
        return self.share, self.flows, self.path or (0.0, 0.0)

    @property
    def place(self) -> str:
        """Share, number of connections and path in words."""
        on = f", round trip {self.round_trip_s:g} s, buffer {self.buffer_bdp:g} BDP" if self.path else ""
        return f"share {self.share:g}, {self.flows} {'flow' if self.flows == 1 else 'flows'}{on}"

    @property
    def setting(self) -> tuple[object, ...]:
        """Setting of the modem."""
        return self.symbol_rate_hz, self.modulation, self.code, self.segment_bytes

    @property
    def _key(self) -> tuple[object, ...]:
        return self.status, *self.setting

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

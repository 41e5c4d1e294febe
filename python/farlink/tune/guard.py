"""Checks whether a look-up table is monotone, so that more signal never means less goodput, and if not, why."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise

from farlink.tune.row import CANDIDATE, NO_TRANSMISSION, Row


@dataclass(frozen=True)
class Finding:
    """A point at which a table is not monotone.

    Attributes
    ----------
    share, flows, cn0_dbhz
        The row.
    what
        What falls there: ``"goodput_bps"``, ``"information_bps"`` or ``"status"``; ``"setting"`` where one comes back.
    before, after
        Its value in the row below and in this one, or the setting's name.
    reason
        Why.
    is_harmless
        Whether the reason is one that a table may have: goodput does not fall beyond what is known of it.
    round_trip_s, buffer_bdp
        Path of the row, in a table of several.
    """

    share: float
    flows: int
    cn0_dbhz: float
    what: str
    before: float | str
    after: float | str
    reason: str
    is_harmless: bool
    round_trip_s: float | None = None
    buffer_bdp: float | None = None

    def __str__(self) -> str:
        """In one sentence."""
        values = f"{_shown(self.before)} to {_shown(self.after)}"
        path = "" if self.round_trip_s is None else f", round trip {self.round_trip_s:g} s, buffer {self.buffer_bdp:g} BDP"
        where = f"share {self.share:g}, {self.flows} flows{path}, {self.cn0_dbhz:g} dBHz"
        return f"{where}: {self.what} from {values}: {self.reason}"


def guard(rows: Sequence[Row]) -> list[Finding]:
    """Every point at which a table is not monotone.

    Parameters
    ----------
    rows
        By share, number of connections, path and C/N0, ascending; candidates are passed over.
    """
    findings: list[Finding] = []
    for _, entry in groupby(rows, key=lambda row: row.entry):
        findings += _guard_entry([row for row in entry if row.status != CANDIDATE])
    return findings


def _guard_entry(rows: Sequence[Row]) -> list[Finding]:
    findings = [finding for below, row in pairwise(rows) for finding in _falls(below, row)]
    seen: dict[tuple[object, ...], int] = {}
    for row in rows:
        key = (row.status, row.symbol_rate_hz, row.modulation, row.code, row.segment_bytes)
        if row.step - seen.get(key, row.step) > 0:
            between = next(one for one in rows if one.step == row.step - 1)
            reason = "the setting in between was the best over a short range only"
            findings.append(_finding(row, "setting", between.name, row.name, reason, is_harmless=True))
        seen[key] = row.step
    return findings


def _falls(below: Row, row: Row) -> list[Finding]:
    if row.status == NO_TRANSMISSION:
        if below.status == NO_TRANSMISSION:
            return []
        return [_finding(row, "status", below.status, row.status, row.reason, is_harmless=False)]
    if below.goodput_bps is None or row.goodput_bps is None or below.information_bps is None or row.information_bps is None:
        return []
    findings = []
    if row.goodput_bps < below.goodput_bps:
        reason, is_harmless = _why_less(below, row)
        findings.append(_finding(row, "goodput_bps", below.goodput_bps, row.goodput_bps, reason, is_harmless=is_harmless))
    if row.information_bps < below.information_bps:
        reason = (
            f"{row.name} carries less than {below.name} and loses less: {row.loss:.2g} of the segments, not {below.loss:.2g}"
        )
        values = (below.information_bps, row.information_bps)
        is_less = (row.loss or 0.0) <= (below.loss or 0.0)
        reason = reason if is_less else "the setting carries less and loses more"
        findings.append(_finding(row, "information_bps", *values, reason, is_harmless=is_less))
    return findings


def _why_less(below: Row, row: Row) -> tuple[str, bool]:
    """Why goodput falls, and whether that may be."""
    fall = (below.goodput_bps or 0.0) - (row.goodput_bps or 0.0)
    unsure = (below.goodput_half_width_bps or 0.0) + (row.goodput_half_width_bps or 0.0)
    if fall <= unsure:
        return f"within the intervals, {unsure:.3g} b/s together", True
    if not row.differs_from(below) and (row.loss or 0.0) > (below.loss or 0.0):
        return f"the loss of {row.name} is not known better: {row.loss:.3g} after {below.loss:.3g}", False
    return "no reason is known: look at the points on either side", False


def _finding(row: Row, what: str, before: float | str, after: float | str, reason: str, *, is_harmless: bool) -> Finding:
    path = (row.round_trip_s, row.buffer_bdp)
    return Finding(row.share, row.flows, row.cn0_dbhz, what, before, after, reason, is_harmless, *path)


def _shown(value: float | str) -> str:
    return value if isinstance(value, str) else f"{value:.4g}"

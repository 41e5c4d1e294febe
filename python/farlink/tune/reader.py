"""The setting for a condition, from a look-up table: small, and the same as the reader in Rust (`farlink_core::tuning`)."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby, pairwise
from pathlib import Path

from farlink.errors import TuneError
from farlink.tune.row import OK, Row


class TuningWarning(UserWarning):
    """A condition lies outside a look-up table."""


@dataclass(frozen=True)
class Pick:
    """The setting picked for a modem.

    Attributes
    ----------
    row
        The row of the table: that of the C/N0, or the nearest of the step at which the modem stays.
    warnings
        What was outside the table, a sentence each.
    """

    row: Row
    warnings: tuple[str, ...] = ()

    def frame_bytes(self, *, header_bytes: int, least_bytes: int = 1, most_bytes: int = 65_535) -> int | None:
        """The data of a frame at which selective-repeat ARQ over this setting has the highest goodput.

        Equation (11) of Epple at the row's bit error rate, whose errors it takes to be independent: behind a Viterbi decoder
        they come in bursts, and longer frames are better.

        Parameters
        ----------
        header_bytes
            Header of a frame, above 0.
        least_bytes, most_bytes
            Limits of the length.

        Returns
        -------
        int or None
            Whole bytes; `most_bytes` if there are no errors, None if nothing is sent.

        Raises
        ------
        TuneError
            If the header has no length, or the limits are invalid.
        """
        from farlink.models.arq import best_payload_bytes

        if header_bytes <= 0 or not 1 <= least_bytes <= most_bytes:
            message = f"a header of {header_bytes} bytes, and frames of {least_bytes} to {most_bytes} bytes"
            raise TuneError(message, "give a header above 0 bytes, and limits of at least 1 byte that ascend")
        if self.row.status != OK or self.row.ber is None:
            return None
        if self.row.ber <= 0:
            return most_bytes
        best = float(best_payload_bytes(self.row.ber, header_bytes=header_bytes))
        return int(min(max(round(best), least_bytes), most_bytes))


class LookUp:
    """A look-up table to pick from.

    Parameters
    ----------
    rows
        Of a table, in any order.

    Raises
    ------
    TuneError
        If there are none, a condition occurs twice, or they are of several paths.
    """

    def __init__(self, rows: Iterable[Row]) -> None:
        ordered = sorted(rows, key=lambda row: (row.share, row.flows, row.cn0_dbhz))
        if len({row.path for row in ordered}) > 1:
            remedy = "read it with farlink.tune.path_reader.PathLookUp, and pick from its on_path(...).lookup"
            raise TuneError("a look-up table over several round trips or buffers", remedy)
        self._entries = {key: list(entry) for key, entry in groupby(ordered, key=lambda row: (row.share, row.flows))}
        if not self._entries:
            raise TuneError("a look-up table without rows", "make one with: farlink tune STUDY.toml -o table.csv")
        for (share, flows), entry in self._entries.items():
            if len({row.cn0_dbhz for row in entry}) < len(entry):
                raise TuneError(f"share {share:g}, {flows} flows: a C/N0 occurs twice", "keep one row for each condition")
            if any(later.step < row.step for row, later in pairwise(entry)):
                raise TuneError(
                    f"share {share:g}, {flows} flows: steps do not ascend with C/N0", "write the table again with farlink tune"
                )

    @classmethod
    def load(cls, path: str | Path) -> LookUp:
        """Read a table from a file: CSV, JSON or TOML.

        Raises
        ------
        TuneError
            If it cannot be read, or is no look-up table.
        """
        from farlink.tune.files import read_rows

        return cls(read_rows(path))

    def pick(
        self,
        cn0_dbhz: float,
        *,
        share: float | None = None,
        bandwidth_hz: float | None = None,
        flows: int = 1,
        current: Pick | None = None,
    ) -> Pick:
        """The setting for a condition.

        A modem that has no setting yet takes the highest step whose `down_dbhz` is reached. One that has stays at it until C/N0
        falls below its `down_dbhz`, or reaches the `up_dbhz` of a higher one.

        Parameters
        ----------
        cn0_dbhz
            Carrier power over noise density. Outside the table its ends hold, with a warning.
        share
            Share of the carrier, 1 unless given; the nearest in ratio of the table is taken.
        bandwidth_hz
            Or the allotted bandwidth, in symbols per second: a share of the table's symbol rate. Of a carrier with a roll-off
            `a` it is the occupied bandwidth over 1 + `a`. Celandroni's section V enters the table so.
        flows
            TCP connections. If the table has no such number and the carrier is shared in time, one connection on so much
            smaller a share stands for them, as Celandroni's section V has it; otherwise the nearest number in ratio.
        current
            What was picked before: of another share, number of connections or path it does not count.

        Raises
        ------
        TuneError
            If a value is not a number, or a share, bandwidth or number of connections is not positive; if a share and a
            bandwidth are given, or a bandwidth for a table with several symbol rates.

        Warns
        -----
        TuningWarning
            If a condition lies outside the table.
        """
        share = self._share(share, bandwidth_hz)
        if math.isnan(cn0_dbhz) or not (0 < share < math.inf) or not (1 <= flows < math.inf):
            message = f"C/N0 of {cn0_dbhz:g} dBHz, share {share:g}, {flows:g} flows"
            raise TuneError(f"{message}: not a condition", "give a C/N0 in dBHz, a share above 0, and 1 or more flows")
        said: list[str] = []
        entry = self._entry(share, flows, said)
        at = self._clamped(cn0_dbhz, entry, said)
        known = current.row.step if current is not None and _is_of(current.row, entry) else None
        step = _step(at, entry, known)
        nearest = min((row for row in entry if row.step == step), key=lambda row: (_distance(row, at), row.cn0_dbhz))
        for sentence in said:
            warnings.warn(sentence, TuningWarning, stacklevel=2)
        return Pick(nearest, tuple(said))

    def rows(self, *, share: float | None = None, bandwidth_hz: float | None = None, flows: int = 1) -> tuple[Row, ...]:
        """The rows from which `pick` takes one for a share or a bandwidth and a number of connections, by C/N0."""
        return tuple(self._entry(self._share(share, bandwidth_hz), flows, []))

    def _share(self, share: float | None, bandwidth_hz: float | None) -> float:
        """The share of the carrier that is asked for."""
        if bandwidth_hz is None:
            return 1.0 if share is None else share
        if share is not None:
            raise TuneError(f"share {share:g} and bandwidth_hz {bandwidth_hz:g}: both are given", "give one of them")
        if not 0 < bandwidth_hz < math.inf:
            raise TuneError(f"bandwidth_hz is {bandwidth_hz:g}", "give symbols per second, above 0")
        rates = {row.symbol_rate_hz for entry in self._entries.values() for row in entry if row.symbol_rate_hz is not None}
        if len(rates) != 1:
            known = ", ".join(f"{rate:g}" for rate in sorted(rates)) or "no symbol rate"
            raise TuneError(f"bandwidth_hz: the table has settings of {known}, not of one symbol rate", "give a share")
        return bandwidth_hz / rates.pop()

    def _entry(self, share: float, flows: int, said: list[str]) -> list[Row]:
        numbers = {number for _, number in self._entries}
        is_shared_in_time = next(iter(self._entries.values()))[0].access == "tdma"
        if flows not in numbers and 1 in numbers and is_shared_in_time:
            share, flows = share / flows, 1
        number = _nearest(flows, numbers)
        if number != flows:
            said.append(f"{flows} flows are not in the table: {number} are used")
        shares = {one for one, of in self._entries if of == number}
        if not min(shares) * (1 - 1e-9) <= share <= max(shares) * (1 + 1e-9):
            said.append(f"a share of {share:g} is outside the table, {min(shares):g} to {max(shares):g}")
        return self._entries[_nearest(share, shares), number]

    @staticmethod
    def _clamped(cn0_dbhz: float, entry: list[Row], said: list[str]) -> float:
        low, high = entry[0].cn0_dbhz, entry[-1].cn0_dbhz
        if not low <= cn0_dbhz <= high:
            said.append(f"C/N0 of {cn0_dbhz:g} dBHz is outside the table, {low:g} to {high:g} dBHz")
        return min(max(cn0_dbhz, low), high)


def _nearest(value: float, known: Iterable[float]) -> float:
    """The nearest in ratio, of two as near the smaller one."""
    return min(known, key=lambda one: (round(abs(math.log(one / value)), 9), one))


def _step(at: float, entry: list[Row], known: int | None) -> int:
    held = max(row.step for row in entry if row.down_dbhz is None or at >= row.down_dbhz)
    if known is None:
        return held
    entered = max(row.step for row in entry if row.up_dbhz is None or at >= row.up_dbhz)
    return max(entered, min(known, held))


def _is_of(row: Row, entry: list[Row]) -> bool:
    return row.entry == entry[0].entry


def _distance(row: Row, at: float) -> float:
    """Distance of a row, with those above C/N0 last, because their goodput is not reached yet."""
    return at - row.cn0_dbhz if row.cn0_dbhz <= at else 1e6 + row.cn0_dbhz - at

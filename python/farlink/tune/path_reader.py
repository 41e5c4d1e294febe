"""The table of a path, from a look-up table over several: the same as in Rust (`farlink_core::tuning::PathTable`)."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path

from farlink.errors import TuneError
from farlink.tune.reader import LookUp, TuningWarning
from farlink.tune.row import CANDIDATE, NO_TRANSMISSION, OK, Row

# Logarithms of goodput that differ by less count as equal, and so do round trips and buffers that differ by less in ratio.
_CLOSE = 1e-9
_REMEDY = "write the table again with farlink tune"


@dataclass(frozen=True)
class OnPath:
    """The look-up table of one path.

    Attributes
    ----------
    lookup
        To pick from. `Row.path` of its rows is the path.
    warnings
        What was outside the table, a sentence each.
    """

    lookup: LookUp
    warnings: tuple[str, ...] = ()


class PathLookUp:
    """A look-up table over several round trips and buffers.

    Parameters
    ----------
    rows
        Of a table, in any order.

    Raises
    ------
    TuneError
        If there are none, they are of one path, a path lacks a condition that another one has, or they are no table.
    """

    def __init__(self, rows: Iterable[Row]) -> None:
        ordered = sorted(rows, key=lambda row: (row.share, row.flows, row.path or (), row.cn0_dbhz, row.status == CANDIDATE))
        if not ordered or any(row.path is None for row in ordered):
            raise TuneError("a look-up table of one path", "read it with farlink.tune.reader.LookUp")
        for row in ordered:
            _check(row)
        # By share and number of connections, then by path.
        self._entries = {
            key: {path: list(of_path) for path, of_path in groupby(rows, key=lambda row: row.path or (0.0, 0.0))}
            for key, rows in groupby(ordered, key=lambda row: (row.share, row.flows))
        }
        first = next(iter(self._entries.values()))
        self.round_trips_s = tuple(sorted({round_trip_s for round_trip_s, _ in first}))
        self.buffers_bdp = tuple(sorted({buffer_bdp for _, buffer_bdp in first}))
        self._check_grid()

    @classmethod
    def load(cls, path: str | Path) -> PathLookUp:
        """Read a table from a file: CSV, JSON or TOML.

        Raises
        ------
        TuneError
            If it cannot be read, or is no look-up table over several paths.
        """
        from farlink.tune.files import read_rows

        return cls(read_rows(path))

    def on_path(self, *, round_trip_s: float | None = None, buffer_bdp: float | None = None) -> OnPath:
        """The look-up table of a path.

        On a path of the table these are its rows. Between paths, at each C/N0, the logarithm of a setting's goodput is a
        straight line over the logarithms of round trip and buffer between the two or four paths around, and the setting of the
        highest goodput is taken: only a setting that is usable on each of those paths.

        Parameters
        ----------
        round_trip_s
            Round trip without the time that a segment takes to be sent, in s. Outside the table the nearest end is used, with a
            warning. May be left out if the table has one.
        buffer_bdp
            Room in the queue in bandwidth-delay products; likewise.

        Raises
        ------
        TuneError
            If a value is not positive, or is left out and the table has several.

        Warns
        -----
        TuningWarning
            If the path lies outside the table.

        Notes
        -----
        Exact where goodput is a power of the round trip. Where it bends, from limited by losses to a full link, it comes out
        too low. The nearer the paths of a table, the better; docs/guides/tuning.md has measured errors.
        """
        said: list[str] = []
        place = (
            _asked("round trip", "s", round_trip_s, self.round_trips_s, said),
            _asked("buffer", "BDP", buffer_bdp, self.buffers_bdp, said),
        )
        around = [(at, weight) for at, weight in self._around(place) if weight > 0]
        found: list[Row] = []
        for of_paths in self._entries.values():
            if len(around) == 1:
                ((path, _),) = around
                found += [row for row in of_paths[path] if row.status != CANDIDATE]
            else:
                found += _between(place, of_paths, around)
        for sentence in said:
            warnings.warn(sentence, TuningWarning, stacklevel=2)
        return OnPath(LookUp(found), tuple(said))

    def _around(self, place: tuple[float, float]) -> list[tuple[tuple[float, float], float]]:
        """The four paths around a place, and their weights."""
        rows, columns = (_pair(one, axis) for one, axis in zip(place, (self.round_trips_s, self.buffers_bdp), strict=True))
        return [((a, b), weight_a * weight_b) for a, weight_a in rows for b, weight_b in columns]

    def _check_grid(self) -> None:
        grid = {(a, b) for a in self.round_trips_s for b in self.buffers_bdp}
        for of_paths in self._entries.values():
            lists = {tuple(row.cn0_dbhz for row in rows if row.status != CANDIDATE) for rows in of_paths.values()}
            place = next(iter(of_paths.values()))[0].place.partition(", round")[0]
            if set(of_paths) != grid or len(lists) != 1:
                raise TuneError(f"{place}: a path lacks a condition that another one has", _REMEDY)
            for path, rows in of_paths.items():
                settings = [(row.cn0_dbhz, row.setting) for row in rows if row.status != NO_TRANSMISSION]
                if len(set(settings)) < len(settings):
                    raise TuneError(f"{place}, round trip {path[0]:g} s: a setting occurs twice", _REMEDY)
                # Checks the rest.
                LookUp([row for row in rows if row.status != CANDIDATE])


def _check(row: Row) -> None:
    """Refuse a row that cannot be interpolated."""
    numbers = (row.share, row.cn0_dbhz, *(row.path or ()))
    if not all(math.isfinite(one) for one in numbers) or min(row.share, *(row.path or ())) <= 0 or row.flows < 1:
        raise TuneError(f"{row.place}, {row.cn0_dbhz:g} dBHz: not a condition", "give finite numbers above 0")
    if row.status != NO_TRANSMISSION and not (row.goodput_bps is not None and 0 < row.goodput_bps < math.inf):
        raise TuneError(f"{row.place}, {row.cn0_dbhz:g} dBHz: a setting without a goodput above 0", _REMEDY)


def _asked(what: str, unit: str, value: float | None, axis: Sequence[float], said: list[str]) -> float:
    """A round trip or a buffer of the table's range."""
    known = f"{axis[0]:g} {unit}" if len(axis) == 1 else f"{axis[0]:g} to {axis[-1]:g} {unit}"
    if value is None:
        if len(axis) > 1:
            raise TuneError(f"the table is entered by the {what}, {known}, which is not given", "give it")
        return axis[0]
    if not 0 < value < math.inf:
        raise TuneError(f"{what} is {value:g} {unit}", "give a number above 0")
    if not axis[0] * (1 - _CLOSE) <= value <= axis[-1] * (1 + _CLOSE):
        said.append(f"a {what} of {value:g} {unit} is outside the table, {known}")
    return min(max(value, axis[0]), axis[-1])


def _pair(value: float, axis: Sequence[float]) -> list[tuple[float, float]]:
    """The values of the table around one, and their weights; one value if that is in the table."""
    for one in axis:
        if abs(value / one - 1) <= _CLOSE:
            return [(one, 1.0)]
    above = next(at for at, one in enumerate(axis) if one > value)
    low, high = axis[above - 1], axis[above]
    share = math.log(value / low) / math.log(high / low)
    return [(low, 1 - share), (high, share)]


def _between(
    place: tuple[float, float],
    of_paths: dict[tuple[float, float], list[Row]],
    around: Sequence[tuple[tuple[float, float], float]],
) -> list[Row]:
    """Rows of one share and number of connections on a path between those of the table."""
    ends = _ends(of_paths)
    at_cn0 = [
        [[*rows] for _, rows in groupby((row for row in of_paths[path]), key=lambda row: row.cn0_dbhz)] for path, _ in around
    ]
    weights = [weight for _, weight in around]
    found: list[Row] = []
    for corners in zip(*at_cn0, strict=True):
        row = _best(weights, corners)
        is_same = bool(found) and not row.differs_from(found[-1])
        step = 0 if not found else found[-1].step + (not is_same)
        down, up = (found[-1].down_dbhz, found[-1].up_dbhz) if is_same else ends.get(row.cn0_dbhz, (None, None))
        if not found:
            down, up = None, None
        elif not is_same and down is None:
            raise TuneError(f"{row.place}, {row.cn0_dbhz:g} dBHz: a step begins there that has no thresholds", _REMEDY)
        found.append(replace(row, step=step, down_dbhz=down, up_dbhz=up, round_trip_s=place[0], buffer_bdp=place[1]))
    return found


def _best(weights: Sequence[float], corners: Sequence[Sequence[Row]]) -> Row:
    """The row of the highest goodput among the settings that every path around has at a C/N0."""
    settings = [{row.setting: row for row in rows if row.status != NO_TRANSMISSION} for rows in corners]
    shared = [row for setting, row in settings[0].items() if all(setting in other for other in settings[1:])]
    best: tuple[float, float, Row] | None = None
    for row in sorted(shared, key=_order):
        each = [of_path[row.setting] for of_path in settings]
        value = sum(weight * math.log(one.goodput_bps or 1.0) for weight, one in zip(weights, each, strict=True))
        if best is None or value > best[0] + _CLOSE:
            half = sum(weight * (one.goodput_half_width_bps or 0.0) for weight, one in zip(weights, each, strict=True))
            best = (value, half, row)
    if best is None:
        silent = next((row for rows in corners for row in rows if row.status == NO_TRANSMISSION), corners[0][0])
        why = silent.reason or "no setting is usable on all paths of the table around this one"
        return Row.of_nothing(silent.cn0_dbhz, silent.share, silent.flows, silent.access, why)
    value, half, row = best
    return replace(row, status=OK, goodput_bps=math.exp(value), goodput_half_width_bps=half)


def _order(row: Row) -> tuple[float, float, str, str, int]:
    """Of equal goodputs the fewest losses come first."""
    return row.loss or 0.0, row.symbol_rate_hz or 0.0, row.modulation or "", row.code or "", row.segment_bytes or 0


def _ends(of_paths: dict[tuple[float, float], list[Row]]) -> dict[float, tuple[float | None, float | None]]:
    """Thresholds of a step that begins at a C/N0: of a candidate there, or of a step that begins there on any path."""
    found: dict[float, tuple[float | None, float | None]] = {}
    for rows in of_paths.values():
        step: int | None = None
        for row in rows:
            if row.status == CANDIDATE or (step is not None and row.step != step):
                found.setdefault(row.cn0_dbhz, (row.down_dbhz, row.up_dbhz))
            step = step if row.status == CANDIDATE else row.step
    return found

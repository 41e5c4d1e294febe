"""Measured received power from any file: converts units, times and gaps to a uniformly sampled series in W."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from farlink.channels.importers.clock import check_clock
from farlink.channels.importers.recording import Hints, Recording
from farlink.channels.trace import Trace
from farlink.errors import TraceError
from farlink.shown import counted
from farlink.untrusted import MOST_VALUES, printable

Series = NDArray[np.float64]

GAPS = ("refuse", "hold", "blocked")
RELATIVE = "linear"

# Factor to W; decibels by their reference, in W.
_LINEAR = {"w": 1.0, "mw": 1e-3, "uw": 1e-6, "µw": 1e-6, "μw": 1e-6, "nw": 1e-9, "pw": 1e-12, RELATIVE: 1.0}
_DECIBEL = {"dbm": 1e-3, "dbw": 1.0}
_OTHER_NAMES = {
    "normalised": RELATIVE, "normalized": RELATIVE, "relative": RELATIVE, "watt": "w", "watts": "w", "milliwatt": "mw",
    "microwatt": "uw", "nanowatt": "nw",
}  # fmt: skip
UNITS = ("W", "mW", "uW", "nW", "pW", "dBm", "dBW", RELATIVE)

_SECONDS = {
    "s": 1.0, "sec": 1.0, "second": 1.0, "seconds": 1.0, "ms": 1e-3, "milliseconds": 1e-3, "us": 1e-6, "µs": 1e-6,
    "microseconds": 1e-6, "ns": 1e-9, "nanoseconds": 1e-9, "minutes": 60.0, "hours": 3600.0, "days": 86400.0,
}  # fmt: skip
_TIME_NAME = re.compile(r"(?:.*/)?(?:time|times|timestamp|t|seconds)(?:[ _]?[\[(]?(s|ms|us|µs|ns)[\])]?)?$", re.IGNORECASE)
_BRACKET = re.compile(r"[\[(]\s*([^\])]*?)\s*[\])]\s*$")

# A step of time this many sample intervals long is a gap, one this short means that samples are not taken at a rate.
_GAP, _CROWDED = 1.5, 0.5
_MOST_SAMPLES = MOST_VALUES

# The command that takes the options named in remedies; others, and scenarios, read the trace that it writes.
_IMPORT = "farlink trace import FILE"


@dataclass(frozen=True)
class Table:
    """Contents of a file of measurements.

    Attributes
    ----------
    units
        Names of its columns in order, and the unit that the file states for each.
    load
        The values of a column; what is missing is NaN. Times as a number.
    sample_rate_hz
        Sampling rate that the file states.
    """

    units: Mapping[str, str | None]
    load: Callable[[str], Series]
    sample_rate_hz: float | None = None


def series_trace(recording: Recording, table: Table) -> Trace:
    """The power trace in a table.

    Parameters
    ----------
    recording
        The measured file, for messages and for what the user says of it.
    table
        What it holds.

    Raises
    ------
    TraceError
        If the column, its unit or the sampling rate is not known, a power is negative or infinite, the clock goes backwards,
        or samples are missing and nothing is said of them; names the sample, counted from 0.
    """
    hints, where = recording.hints, recording.where
    if hints.gaps is not None and hints.gaps not in GAPS:
        raise TraceError(
            f"gaps {hints.gaps!r} is not one of {', '.join(GAPS)}", "hold keeps the last power, blocked marks a blockage"
        )
    if hints.sample_rate_hz is not None and not 0 < hints.sample_rate_hz < np.inf:
        raise TraceError(f"a sampling rate of {hints.sample_rate_hz:g} Hz", "it is above 0 Hz")
    time_name = time_column(hints, list(table.units), where)
    name = _power_column(hints, table, time_name, where)
    unit = _unit(hints, table, name, where)
    power_w = _watts(table.load(name), unit, name, where)
    if power_w.size == 0:
        raise TraceError(f"{where}: {name} is empty", "fetch or record it again")
    if not np.any(power_w > 0) and not np.all(np.isnan(power_w)):
        raise TraceError(f"{where}: {name} is 0 throughout", "check the column and its unit")
    # A rate that the user states comes first, then times, then what the file states.
    if hints.sample_rate_hz is None and time_name is not None:
        seconds = seconds_per_unit(time_name, table.units[time_name])
        time_s = table.load(time_name) * seconds
        if time_s.size != power_w.size:
            raise TraceError(
                f"{where}: {power_w.size} samples and {time_s.size} times", "give the column of the times with --time-column"
            )
        interval_s, place = _on_a_grid(time_s, where)
    else:
        rate_hz = hints.sample_rate_hz or table.sample_rate_hz
        if rate_hz is None or not 0 < rate_hz < np.inf:
            raise TraceError(f"{where}: no times and no sampling rate", f"{_IMPORT} --sample-rate-hz HZ, or --time-column NAME")
        interval_s, place = 1 / rate_hz, np.arange(power_w.size)
    whole = np.full(int(place[-1]) + 1, np.nan)
    whole[place] = power_w
    arrays, note = _filled(whole, place, hints.gaps or "refuse", where)
    meta: dict[str, Any] = {
        "title": recording.name,
        "source": f"{recording.name}, {name} in {unit}",
        "duration_s": float(whole.size * interval_s),
    }
    notes = [note] if note else []
    if unit == RELATIVE:
        meta["relative_power"] = True
        notes.append("power without a unit: calibrate it before a bit error rate is taken from it")
    if notes:
        meta["notes"] = "; ".join(notes)
    return Trace("power", arrays, meta)


def unit_in(name: str) -> str | None:
    """The unit of power in a column's name, as in ``power_dbm`` or ``Power [nW]``; None without one.

    Examples
    --------
    >>> unit_in("rx_power_dbm"), unit_in("Power [nW]"), unit_in("power"), unit_in("rate_bps")
    ('dBm', 'nW', None, None)
    """
    bracket = _BRACKET.search(name)
    word = bracket[1] if bracket else name.rpartition("_")[2] if "_" in name else ""
    key = word.strip().lower()
    return None if key == RELATIVE and not bracket else _spelled(key)


def is_power(name: str) -> bool:
    """Whether a column's name speaks of power."""
    return unit_in(name) is not None or re.search(r"power|irradiance|intensity", name, re.IGNORECASE) is not None


def is_time(name: str) -> bool:
    """Whether a column's name speaks of time."""
    return _TIME_NAME.match(name.strip()) is not None


def named_column(said: str, option: str, names: list[str], where: str) -> str:
    """The column that a user means by a name, the end of a path, or a number from 1.

    Parameters
    ----------
    said
        What the user gave.
    option
        With which option, for messages.
    names
        Names of the columns.
    where
        Name of the file, for messages.

    Raises
    ------
    TraceError
        If there is no such column, or several.
    """
    if said in names:
        return said
    if said.isascii() and said.isdigit() and len(said) < 10 and 1 <= int(said) <= len(names):
        return names[int(said) - 1]
    ends = [name for name in names if name.rpartition("/")[2] == said]
    if len(ends) == 1:
        return ends[0]
    raise TraceError(f"{where}: no column {said}", f"{option} is one of: {_listed(names)}; or a number from 1")


def time_column(hints: Hints, names: list[str], where: str) -> str | None:
    """The column of the times: the user's choice, else by its name; None if there is none.

    Raises
    ------
    TraceError
        If the user names a column that does not exist.
    """
    if hints.time_column is not None:
        return named_column(hints.time_column, "--time-column", names, where)
    return next((name for name in names if is_time(name)), None)


def seconds_per_unit(name: str, stated: str | None = None) -> float:
    """Seconds per unit of a column of times, by what the file states or by the column's name, as in ``time_ms``.

    Examples
    --------
    >>> seconds_per_unit("time_ms"), seconds_per_unit("time", "hours since 2016-10-08"), seconds_per_unit("t")
    (0.001, 3600.0, 1.0)
    """
    word = (stated or "").split(" since ")[0].strip().lower()
    if word in _SECONDS:
        return _SECONDS[word]
    match = _TIME_NAME.match(name.strip())
    return _SECONDS[(match[1] or "s").lower() if match else "s"]


def _spelled(word: str) -> str | None:
    key = _OTHER_NAMES.get(word.strip().lower(), word.strip().lower()).replace("µ", "u").replace("μ", "u")
    return next((unit for unit in UNITS if unit.lower() == key), None)


def _power_column(hints: Hints, table: Table, time_name: str | None, where: str) -> str:
    if hints.column is not None:
        return named_column(hints.column, "--column", list(table.units), where)
    names = [name for name in table.units if name != time_name]
    stated = [name for name in names if unit_in(name) or _spelled(table.units[name] or "")]
    for found in (stated, names, [name for name in names if is_power(name)]):
        if len(found) == 1:
            return found[0]
    what = f"several columns: {_listed(names)}" if names else "no column of numbers"
    raise TraceError(f"{where}: {what}", f"say which holds the power: {_IMPORT} --column NAME")


def _unit(hints: Hints, table: Table, name: str, where: str) -> str:
    if hints.unit is not None:
        unit = _spelled(hints.unit)
        if unit is None:
            raise TraceError(f"{hints.unit!r} is no unit of power", f"--unit is one of: {', '.join(UNITS)}")
        return unit
    unit = _spelled(table.units[name] or "") or unit_in(name)
    if unit is None:
        raise TraceError(
            f"{where}: the unit of {name} is not known",
            f"give it: {_IMPORT} --unit dBm, or another of {', '.join(UNITS)}",
        )
    return unit


def _watts(values: Series, unit: str, name: str, where: str) -> Series:
    """Power in W; NaN if it is missing."""
    key = unit.lower()
    is_decibel = key in _DECIBEL
    infinite = np.isposinf(values) if is_decibel else np.isinf(values)
    bad = np.flatnonzero(infinite | (np.zeros_like(infinite) if is_decibel else values < 0))
    if bad.size:
        rule = "remove what was not measured" if infinite[bad[0]] else "subtract the dark level before; power is at least 0"
        if infinite[bad[0]] or not is_decibel:
            rule += "; if these are decibels, --unit dBm" if values[bad[0]] < 0 and not is_decibel else ""
        raise TraceError(f"{where}: {name} is {values[bad[0]]:g} {unit} at sample {bad[0]}", rule)
    if is_decibel:
        with np.errstate(over="ignore"):
            watts: Series = _DECIBEL[key] * 10 ** (values / 10)
    else:
        watts = values * _LINEAR[key]
    huge = np.flatnonzero(np.isinf(watts))
    if huge.size:
        raise TraceError(f"{where}: {name} is {values[huge[0]]:g} {unit} at sample {huge[0]}", "check the unit")
    return watts


def _on_a_grid(time_s: Series, where: str) -> tuple[float, NDArray[np.int64]]:
    """Sample interval in s, and the place of each sample on a grid of that interval."""
    remedy = "sort the samples, remove what was recorded twice, or give --sample-rate-hz HZ"
    check_clock(time_s, where, entry="sample", first=0, remedy=remedy)
    if time_s.size < 2:
        raise TraceError(f"{where}: one sample has no sampling rate", f"{_IMPORT} --sample-rate-hz HZ")
    steps = np.diff(time_s)
    usual = float(np.median(steps))
    is_gap = steps > _GAP * usual
    # The mean of the usual steps: times are printed rounded, their median too.
    interval_s = float(steps[~is_gap].mean())
    crowded = np.flatnonzero(steps < _CROWDED * usual)
    if crowded.size:
        at = int(crowded[0]) + 1
        raise TraceError(
            f"{where}: sample {at} comes {steps[at - 1]:.4g} s after the one before, usual are {usual:.4g} s",
            "resample the measurement at a fixed rate, or give --sample-rate-hz HZ",
        )
    strides = np.where(is_gap, np.maximum(np.rint(steps / interval_s), 2), 1)
    total = float(strides.sum()) + 1
    if not total <= _MOST_SAMPLES:
        at = int(np.argmax(steps)) + 1
        raise TraceError(f"{where}: {total:,.6g} samples with the gap before sample {at}", "cut the record at its long gaps")
    place = np.concatenate(([0], np.cumsum(strides.astype(np.int64))))
    return interval_s, place


def _filled(whole: Series, place: NDArray[np.int64], gaps: str, where: str) -> tuple[dict[str, NDArray[Any]], str | None]:
    """The arrays of the trace, and its notes."""
    missing = np.isnan(whole)
    if not missing.any():
        return {"power_w": whole}, None
    if missing.all():
        raise TraceError(f"{where}: no sample is a number", "check the column")
    edges = np.flatnonzero(np.diff(np.concatenate(([False], missing, [False])).astype(np.int8)))
    starts, lengths = edges[::2], edges[1::2] - edges[::2]
    said = f"{counted(int(missing.sum()), 'sample')} missing in {counted(starts.size, 'gap')}"
    if gaps == "refuse":
        first = int(np.searchsorted(place, starts[0]))
        raise TraceError(
            f"{where}: {said}, the first of {lengths[0]:,} at sample {first}",
            f"say what they are: {_IMPORT} --gaps hold (as the power before) or --gaps blocked (a blocked line of sight)",
        )
    if gaps == "blocked":
        return {"power_w": np.where(missing, 0.0, whole), "blocked": missing.astype(np.uint8)}, f"{said}, taken as blocked"
    last = np.maximum.accumulate(np.where(missing, -1, np.arange(whole.size)))
    last[last < 0] = int(np.argmin(missing))
    return {"power_w": whole[last]}, f"{said}, filled with the power before"


def _listed(names: list[str]) -> str:
    return ", ".join(printable(name, 40) for name in names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")


def with_rate(table: Table, scalars: Mapping[str, float]) -> Table:
    """A table with the sampling rate that one of its scalars states.

    Parameters
    ----------
    table
        The table.
    scalars
        Names and values of scalars in the file.
    """
    for name, value in scalars.items():
        key = re.sub(r"[^a-z]", "", name.rpartition("/")[2].lower())
        if value > 0 and key in (
            "fs",
            "fshz",
            "samplerate",
            "sampleratehz",
            "samplingrate",
            "samplingratehz",
            "samplingfrequency",
        ):
            return replace(table, sample_rate_hz=float(value))
        if value > 0 and key in ("dt", "dts", "sampleinterval", "sampleintervals", "samplinginterval", "samplingintervals"):
            return replace(table, sample_rate_hz=1 / float(value))
    return table


def columns_of(name: str, values: NDArray[Any]) -> dict[str, NDArray[Any]]:
    """A vector as a column, a matrix of at most 32 vectors as several, ``name:1`` and so on; nothing for other arrays."""
    flat = np.squeeze(values)
    if flat.dtype.kind not in "biuf":
        return {}
    if flat.ndim == 1:
        return {name: flat}
    if flat.ndim == 2 and min(flat.shape) <= 32:
        columns = flat if flat.shape[0] > flat.shape[1] else flat.T
        return {f"{name}:{number + 1}": columns[:, number] for number in range(columns.shape[1])}
    return {}

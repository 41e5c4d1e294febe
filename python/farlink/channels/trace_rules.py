"""Rules of traces: the kinds, their arrays, and allowed values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from farlink.errors import TraceError
from farlink.untrusted import printable

# C/N0 above this is a ratio, not dBHz.
_LEAST_DBHZ, _MOST_DBHZ = -1000.0, 200.0

# Durations in s: from the smallest distinct times to those that a double holds to a microsecond.
_SHORTEST_S, _LONGEST_S = 1e-6, 1e10
# Beyond these no link goes; the engine refuses them too.
_MOST = {"rate_bps": 1e13, "delay_s": 1e7, "drop_rate": 1.0}
_MOST_W, _MOST_RELATIVE, _CLOSEST_S = 1e6, 1e100, 1e-9


@dataclass(frozen=True)
class Kind:
    """Arrays of a kind of trace.

    Attributes
    ----------
    arrays
        Required arrays and their types.
    units
        Unit of each array, optional ones too.
    use
        The place in a scenario where it may be named.
    """

    arrays: Mapping[str, str]
    units: Mapping[str, str]
    use: str


KINDS: dict[str, Kind] = {
    "delivery": Kind(
        {"opportunity_s": "<f8", "bytes_per_opportunity": "<u4"},
        {"opportunity_s": "s", "bytes_per_opportunity": "bytes"},
        'rate_bps = { kind = "rate-trace", file = ... }',
    ),
    "rate": Kind(
        {"time_s": "<f8", "rate_bps": "<f8"},
        {"time_s": "s", "rate_bps": "bit/s"},
        'rate_bps = { kind = "rate-trace", file = ... }',
    ),
    "delay": Kind(
        {"time_s": "<f8", "delay_s": "<f8"},
        {"time_s": "s", "delay_s": "s", "drop_rate": "1"},
        'delay_s = { kind = "delay-trace", file = ... }',
    ),
    "power": Kind(
        {"power_w": "<f8"},
        {"power_w": "W", "blocked": "1"},
        'channel = { kind = "fading", file = ... }',
    ),
    "cn0": Kind(
        {"time_s": "<f8", "cn0_dbhz": "<f8"},
        {"time_s": "s", "cn0_dbhz": "dBHz"},
        "farlink trace adapt makes a rate and a bit error rate of it",
    ),
    "ber": Kind(
        {"ber": "<f8"},
        {"ber": "1"},
        'channel = { kind = "ber-trace", file = ... }',
    ),
    "packet-loss": Kind(
        {"lost": "|u1"},
        {"lost": "1", "segment_start": "frame"},
        'channel = { kind = "packet-trace", file = ... }',
    ),
    "bit-errors": Kind(
        {"position": "<u8", "bits": "<u8"},
        {"position": "bit", "bits": "bit"},
        'channel = { kind = "bit-trace", file = ... }',
    ),
}

# Optional arrays and their types.
_OPTIONAL = {"drop_rate": "<f8", "segment_start": "<u8", "blocked": "|u1"}


def typed(kind: str, arrays: Mapping[str, Any]) -> dict[str, NDArray[Any]]:
    """The arrays of a trace in the types of its kind.

    Parameters
    ----------
    kind
        One of `KINDS`.
    arrays
        By name.

    Raises
    ------
    TraceError
        If one is missing, unknown, or does not hold such numbers.
    """
    if kind not in KINDS:
        raise TraceError(f"kind {kind!r} of trace", f"choose one of: {', '.join(KINDS)}")
    types = {**KINDS[kind].arrays, **{name: _OPTIONAL[name] for name in _OPTIONAL if name in KINDS[kind].units}}
    missing = [name for name in KINDS[kind].arrays if name not in arrays]
    if missing:
        raise TraceError(f"a {kind} trace needs {', '.join(missing)}", f"its arrays are: {', '.join(types)}")
    unknown = [name for name in arrays if name not in types]
    if unknown:
        raise TraceError(f"{printable(unknown[0], 40)} is no array of a {kind} trace", f"its arrays are: {', '.join(types)}")
    return {name: _converted(name, array, types[name]) for name, array in arrays.items()}


def _converted(name: str, array: Any, dtype: str) -> NDArray[Any]:
    given = np.asarray(array)
    remedy = "check the measurement it was made from"
    if given.dtype.kind not in "bifu":
        raise TraceError(f"{name} holds {given.dtype}, not numbers", remedy)
    wanted = np.dtype(dtype)
    scalar = name in ("bytes_per_opportunity", "bits")
    if given.ndim != (0 if scalar else 1):
        raise TraceError(f"{name} has {given.ndim} dimensions", "scalars have none, series one")
    allowed = np.isfinite(given) | (np.isneginf(given) & (name == "cn0_dbhz")) if given.dtype.kind == "f" else True
    if not np.all(allowed):
        raise TraceError(f"{name} holds a value that is not finite", remedy)
    if wanted.kind == "u" and given.dtype != wanted:
        limits = np.iinfo(wanted)
        if np.any(given < 0) or np.any(given > limits.max) or np.any(given != np.floor(given)):
            raise TraceError(f"{name} holds values that are not whole numbers from 0 to {limits.max}", remedy)
    return np.ascontiguousarray(given.astype(wanted)) if given.ndim else given.astype(wanted)


def check(kind: str, arrays: Mapping[str, NDArray[Any]], meta: Mapping[str, Any]) -> None:
    """Refuse values that a trace cannot have.

    Parameters
    ----------
    kind
        One of `KINDS`.
    arrays
        By name, of the types of that kind.
    meta
        What is known of it.

    Raises
    ------
    TraceError
        If one cannot be; names it and its place.
    """
    remedy = "check the measurement it was made from"
    duration_s = 0.0
    if kind in ("delivery", "rate", "delay", "power", "cn0", "ber"):
        duration_s = _duration_s(meta.get("duration_s"))
    if kind == "power":
        _check_power(arrays, duration_s, is_relative=bool(meta.get("relative_power")))
    elif kind == "ber":
        _check_ber(arrays["ber"], duration_s)
    elif kind in ("delivery", "rate", "delay", "cn0"):
        times = arrays["opportunity_s" if kind == "delivery" else "time_s"]
        if times.size == 0:
            raise TraceError("the trace is empty", remedy)
        is_back = times[1:] < times[:-1] if kind == "delivery" else times[1:] <= times[:-1]
        if np.any(is_back):
            raise TraceError(f"time goes back at entry {int(np.argmax(is_back)) + 1}", remedy)
        if times[0] < 0 or times[-1] > duration_s or (kind != "delivery" and times[-1] == duration_s):
            raise TraceError(f"times from {times[0]:g} s to {times[-1]:g} s lie outside its {duration_s:g} s", remedy)
        if kind == "delivery" and arrays["bytes_per_opportunity"] == 0:
            raise TraceError("bytes_per_opportunity is 0", "give the bytes that may cross at each opportunity")
        for name in ("rate_bps", "delay_s", "drop_rate", "cn0_dbhz"):
            if name in arrays:
                _check_series(name, arrays[name], times)
        if kind != "delivery" and times[0] != 0:
            raise TraceError(f"the first time is {times[0]:g} s", "a series starts at 0 s")
    elif kind == "packet-loss":
        lost = arrays["lost"]
        if lost.size == 0:
            raise TraceError("the trace is empty", remedy)
        if np.any(lost > 1):
            raise TraceError(f"lost holds {int(lost.max())}", "0 is received, 1 is lost")
        if "segment_start" in arrays:
            starts = arrays["segment_start"].astype(np.int64)
            if starts.size == 0 or starts[0] != 0 or np.any(np.diff(starts) <= 0) or starts[-1] >= lost.size:
                raise TraceError("segment_start is not an ascending list of frames that begins with 0", remedy)
    else:
        position, bits = arrays["position"], int(arrays["bits"])
        if bits == 0:
            raise TraceError("the trace is empty", remedy)
        if np.any(position[1:] <= position[:-1]):
            raise TraceError("positions of wrong bits do not ascend", remedy)
        if position.size and int(position[-1]) >= bits:
            raise TraceError(f"wrong bit {int(position[-1])} lies beyond the {bits} bits", remedy)


def _check_ber(ber: NDArray[Any], duration_s: float) -> None:
    if ber.size == 0:
        raise TraceError("the trace is empty", "give a bit error rate for each sample")
    _check_distance(ber.size, duration_s)
    bad = np.flatnonzero((ber < 0) | (ber > 0.5))
    if bad.size:
        raise TraceError(f"ber is {ber[bad[0]]:g} at sample {bad[0]}", "a bit error rate is from 0 to 0.5")


def _check_power(arrays: Mapping[str, NDArray[Any]], duration_s: float, *, is_relative: bool) -> None:
    power_w = arrays["power_w"]
    if power_w.size == 0:
        raise TraceError("the trace is empty", "check the measurement it was made from")
    if np.any(power_w < 0):
        at = int(np.argmax(power_w < 0))
        raise TraceError(f"power_w is {power_w[at]:g} W at sample {at}", "power is at least 0; is its unit dBm?")
    most = _MOST_RELATIVE if is_relative else _MOST_W
    if power_w.max() > most:
        at = int(power_w.argmax())
        raise TraceError(f"power_w is {power_w[at]:g} W at sample {at}", f"power is at most {most:g} W; check its unit")
    _check_distance(power_w.size, duration_s)
    if "blocked" in arrays:
        blocked = arrays["blocked"]
        if blocked.size != power_w.size:
            raise TraceError(f"{blocked.size} values of blocked for {power_w.size} samples", "give one value for each sample")
        if np.any(blocked > 1):
            raise TraceError(f"blocked is {int(blocked.max())}", "0 is clear, 1 is blocked")


def _check_series(name: str, values: NDArray[Any], times: NDArray[Any]) -> None:
    if values.size != times.size:
        raise TraceError(f"{values.size} values of {name} for {times.size} times", "give one value for each time")
    if name == "cn0_dbhz":
        _check_cn0(values, times)
        return
    if np.any(values < 0):
        raise TraceError(f"{name} is {values.min():g} at entry {int(np.argmin(values))}", "it is at least 0")
    if values.max() > _MOST[name]:
        remedy = "it is a fraction, from 0 to 1" if name == "drop_rate" else f"it is at most {_MOST[name]:g}; check its unit"
        raise TraceError(f"{name} is {values.max():g} at entry {int(np.argmax(values))}", remedy)
    if name == "rate_bps" and not np.any(values > 0):
        raise TraceError("the rate is 0 throughout", "nothing could ever cross such a link")


def _check_cn0(values: NDArray[Any], times: NDArray[Any]) -> None:
    if np.all(np.isneginf(values)):
        raise TraceError("there is no signal throughout", "check the column")
    low = np.flatnonzero((values < _LEAST_DBHZ) & np.isfinite(values))
    if low.size:
        what = f"cn0_dbhz is {values[low[0]]:g} at {times[low[0]]:.9g} s"
        raise TraceError(what, f"it is at least {_LEAST_DBHZ:g}, or -inf where there is no signal")
    bad = np.flatnonzero(values > _MOST_DBHZ)
    if bad.size:
        raise TraceError(
            f"cn0_dbhz is {values[bad[0]]:g} at {times[bad[0]]:.9g} s",
            f"C/N0 in dBHz is at most {_MOST_DBHZ:g}; take ten times the logarithm of a ratio",
        )


def _check_distance(samples: int, duration_s: float) -> None:
    if duration_s / samples < _CLOSEST_S:
        raise TraceError(f"{samples} samples in {duration_s:g} s", f"they are at least {_CLOSEST_S:g} s apart")


def _duration_s(given: Any) -> float:
    is_number = isinstance(given, int | float) and not isinstance(given, bool)
    if not is_number or not 0 < given <= _LONGEST_S:
        shown = printable(repr(given), 40)
        raise TraceError(f"duration_s is {shown}", "a trace lasts a number of seconds above 0, up to 1e10")
    if given < _SHORTEST_S:
        raise TraceError(f"duration_s is {given:g}", f"a trace lasts at least {_SHORTEST_S:g} s")
    return float(given)

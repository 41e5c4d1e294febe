"""Processing of received power: cut, resample, reverse in time, scale to a bit error rate."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from farlink.arguments import checked_arguments
from farlink.channels.receiver import Receiver
from farlink.channels.trace import Trace
from farlink.errors import ScenarioError, TraceError, core_errors
from farlink.extras import require

_MOST_SAMPLES = 500_000_000
# Numerators and denominators of a ratio of sampling rates that a polyphase filter is made for.
_LARGEST_RATIO_TERM = 1000


class CalibrationError(TraceError):
    """No transmit power gives the requested bit error rate."""


def is_relative(trace: Trace) -> bool:
    """Whether a power trace has no unit, so that only calibrated it gives a bit error rate."""
    return bool(trace.meta.get("relative_power"))


@checked_arguments
def sample_rate_hz(trace: Trace) -> float:
    """Sampling rate of a power trace, in Hz.

    Raises
    ------
    TraceError
        If it is a trace of another kind.

    Examples
    --------
    >>> sample_rate_hz(Trace("power", {"power_w": [1e-9, 2e-9]}, {"duration_s": 0.002}))
    1000.0
    """
    if trace.kind != "power":
        raise TraceError(f"a {trace.kind} trace, where power is wanted", "give a record of received power")
    return float(trace["power_w"].size / trace.meta["duration_s"])


def blocked(trace: Trace) -> NDArray[np.bool_]:
    """True at the samples of a power trace that are marked as blocked."""
    if "blocked" not in trace.arrays:
        return np.zeros(trace["power_w"].size, dtype=bool)
    return trace["blocked"].astype(bool)


def with_blocked(trace: Trace, mask: NDArray[np.bool_]) -> Trace:
    """A power trace with more samples marked as blocked."""
    return _changed(trace, trace["power_w"], blocked(trace) | mask)


@checked_arguments
def cut(trace: Trace, from_s: float | None = None, to_s: float | None = None) -> Trace:
    """The part of a power trace between two times, in s from its beginning.

    Raises
    ------
    TraceError
        If the part is empty or lies outside the trace.

    Examples
    --------
    >>> cut(Trace("power", {"power_w": [1.0, 2.0, 3.0, 4.0]}, {"duration_s": 4.0}), 1, 3)["power_w"]
    array([2., 3.])
    """
    rate_hz, duration_s = sample_rate_hz(trace), float(trace.meta["duration_s"])
    start_s = 0.0 if from_s is None else from_s
    end_s = duration_s if to_s is None else to_s
    first, last = round(start_s * rate_hz), round(min(end_s, duration_s) * rate_hz)
    if not 0 <= start_s < end_s or first >= last or end_s > duration_s * (1 + 1e-9):
        raise TraceError(f"nothing to cut from {start_s:g} s to {end_s:g} s", f"the record lasts from 0 s to {duration_s:g} s")
    return _changed(trace, trace["power_w"][first:last], blocked(trace)[first:last], duration_s=(last - first) / rate_hz)


@checked_arguments
def reverse(trace: Trace) -> Trace:
    """A power trace backwards in time: a rising pass of a satellite becomes a falling one.

    Examples
    --------
    >>> reverse(Trace("power", {"power_w": [1.0, 2.0]}, {"duration_s": 2.0}))["power_w"]
    array([2., 1.])
    """
    sample_rate_hz(trace)
    return _changed(trace, trace["power_w"][::-1], blocked(trace)[::-1])


def resample(trace: Trace, rate_hz: float) -> Trace:
    """A power trace at another sampling rate.

    Parameters
    ----------
    trace
        A trace of kind ``"power"``.
    rate_hz
        Sampling rate wanted, in Hz. A whole fraction of the rate averages, which keeps the mean power; any other rate
        goes through a polyphase filter, below which power that overshoots under 0 is set to 0.

    Returns
    -------
    Trace
        It is blocked if half of its samples were. Samples at the end that do not fill a new one are left out.

    Raises
    ------
    TraceError
        If the rate is out of range.
    MissingExtraError
        If SciPy is needed and not installed.
    """
    own_hz, power_w, mask = sample_rate_hz(trace), trace["power_w"], blocked(trace)
    wanted = power_w.size / own_hz * rate_hz
    if not np.isfinite(rate_hz) or rate_hz <= 0 or not 1 <= wanted * (1 + 1e-9) <= _MOST_SAMPLES:
        raise TraceError(f"{rate_hz:g} Hz gives {wanted:.3g} samples", f"its own rate is {own_hz:g} Hz")
    ratio = Fraction(rate_hz / own_hz).limit_denominator(_LARGEST_RATIO_TERM)
    if ratio == 1:
        return trace
    if ratio == 0 or ratio.numerator > _LARGEST_RATIO_TERM or abs(float(ratio) * own_hz / rate_hz - 1) > 1e-6:
        raise TraceError(f"no filter takes {own_hz:g} Hz to {rate_hz:g} Hz", "choose a rate in a simpler ratio to its own")
    if ratio.numerator == 1:
        step = ratio.denominator
        whole = power_w.size // step * step
        power_w = power_w[:whole].reshape(-1, step).mean(axis=1)
        mask = mask[:whole].reshape(-1, step).mean(axis=1) >= 0.5
    else:
        signal = require("scipy.signal", "resampling")
        size = int(power_w.size * ratio + Fraction(1, 10**9))
        # A filter that knows the level at the ends does not ring there.
        power_w = np.maximum(signal.resample_poly(power_w, ratio.numerator, ratio.denominator, padtype="line")[:size], 0.0)
        mask = mask[np.minimum((np.arange(size) / float(ratio)).astype(np.int64), mask.size - 1)]
    return _changed(trace, power_w, mask, duration_s=power_w.size / rate_hz)


def calibrate(trace: Trace, receiver: Receiver, ber: float) -> Trace:
    """Scale a received power to a requested long-term bit error rate of a receiver.

    Blocked samples are cut before and put back, scaled like the others.

    Parameters
    ----------
    trace
        A trace of kind ``"power"``.
    receiver
        The receiver.
    ber
        Bit error rate, between 0 and 0.5: the mean of the short-term bit error rate over the samples that are not blocked.

    Raises
    ------
    CalibrationError
        If no power gives that bit error rate.

    References
    ----------
    Epple, section 2.3.
    """
    from farlink import _core

    sample_rate_hz(trace)
    power_w, mask = trace["power_w"], blocked(trace)
    try:
        with core_errors():
            gain = _core.calibrate(
                power_w, mask if mask.any() else None, receiver.characteristic_power_w, receiver.form_factor, ber
            )
    except ScenarioError as error:
        raise CalibrationError(error.message, error.remedy) from error
    done = {"receiver": receiver.name, "ber": ber, "gain_db": float(10 * np.log10(gain))}
    return _changed(trace, power_w * gain, mask, calibration=done, relative_power=None)


def _changed(trace: Trace, power_w: NDArray[np.float64], mask: NDArray[np.bool_], **meta: Any) -> Trace:
    arrays: dict[str, NDArray[Any]] = {"power_w": power_w}
    if mask.any():
        arrays["blocked"] = mask.astype(np.uint8)
    said = {**trace.meta, **meta}
    return Trace("power", arrays, {key: value for key, value in said.items() if value is not None})

"""C/N0 over time from an attenuation over time, as a trace."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from farlink.arguments import checked_arguments
from farlink.channels.rain.budget import ClearSky
from farlink.channels.trace import Trace
from farlink.errors import TraceError

Series = NDArray[np.float64]


@checked_arguments
def cn0_trace(
    time_s: Series, attenuation_db: Series, clear_sky: ClearSky, *, duration_s: float, meta: Mapping[str, Any]
) -> Trace:
    """C/N0 under an attenuation, a trace of kind ``cn0`` that has an entry wherever C/N0 changes.

    Parameters
    ----------
    time_s
        Times, in s, the first 0; each value holds until the next. Shape ``(n,)``.
    attenuation_db
        Attenuation by rain, in dB, at least 0; infinite is no signal. Shape ``(n,)``.
    clear_sky
        The link without rain.
    duration_s
        When the trace starts over, in s.
    meta
        Title, source and the like of the trace.

    Raises
    ------
    TraceError
        If an attenuation is negative or not a number, naming its time.

    Examples
    --------
    >>> steps = np.arange(4.0)
    >>> cn0_trace(steps, np.array([0.0, 0, 3, 0]), ClearSky(80.0), duration_s=4, meta={})["cn0_dbhz"]
    array([80., 77., 80.])
    """
    bad = np.flatnonzero(~(attenuation_db >= 0))
    if bad.size:
        raise TraceError(
            f"an attenuation of {attenuation_db[bad[0]]:g} dB at {time_s[bad[0]]:.9g} s",
            "it is at least 0 dB; take the level of the clear sky off before, and fill gaps",
        )
    cn0_dbhz = clear_sky.under(attenuation_db)
    changes = np.concatenate(([True], cn0_dbhz[1:] != cn0_dbhz[:-1]))
    said = {**meta, "duration_s": float(duration_s), "clear_sky_dbhz": float(clear_sky.cn0_dbhz)}
    return Trace("cn0", {"time_s": time_s[changes], "cn0_dbhz": cn0_dbhz[changes]}, said)


@checked_arguments
def time_below(trace: Trace, cn0_dbhz: Series) -> Series:
    """Share of the time for which a C/N0 trace is below each level, as a ratio.

    Parameters
    ----------
    trace
        A trace of kind ``cn0``.
    cn0_dbhz
        Levels, in dBHz. Shape ``(n,)``.

    Returns
    -------
    ndarray
        From 0 to 1. Shape ``(n,)``.

    Examples
    --------
    >>> trace = Trace("cn0", {"time_s": [0.0, 9.0], "cn0_dbhz": [80.0, 70.0]}, {"duration_s": 10.0})
    >>> time_below(trace, np.array([70.0, 75.0, 90.0]))
    array([0. , 0.1, 1. ])
    """
    order = np.argsort(trace["cn0_dbhz"], kind="stable")
    held_s = spans_s(trace)[order]
    before = np.concatenate(([0.0], np.cumsum(held_s))) / held_s.sum()
    found: Series = before[np.searchsorted(trace["cn0_dbhz"][order], cn0_dbhz, side="left")]
    return found


@checked_arguments
def quantiles_dbhz(trace: Trace, share: Series) -> Series:
    """C/N0 that a trace is at or below for a share of the time.

    Parameters
    ----------
    trace
        A trace of kind ``cn0``.
    share
        Shares, from 0 to 1. Shape ``(n,)``.

    Returns
    -------
    ndarray
        In dBHz; ``-inf`` where there is no signal. Shape ``(n,)``.

    Examples
    --------
    >>> trace = Trace("cn0", {"time_s": [0.0, 9.0], "cn0_dbhz": [80.0, 70.0]}, {"duration_s": 10.0})
    >>> quantiles_dbhz(trace, np.array([0.05, 0.1, 0.5]))
    array([70., 70., 80.])
    """
    order = np.argsort(trace["cn0_dbhz"], kind="stable")
    reached = np.cumsum(spans_s(trace)[order])
    at = np.searchsorted(reached, np.asarray(share) * reached[-1] * (1 - 1e-12), side="left")
    found: Series = trace["cn0_dbhz"][order][np.minimum(at, order.size - 1)]
    return found


def spans_s(trace: Trace) -> Series:
    """How long each value of a C/N0 trace holds, in s."""
    found: Series = np.diff(np.append(trace["time_s"], float(trace.meta["duration_s"])))
    return found


@checked_arguments
def fades_s(trace: Trace, cn0_dbhz: float) -> Series:
    """Length of each time that a C/N0 trace is below a level, in s.

    Parameters
    ----------
    trace
        A trace of kind ``cn0``.
    cn0_dbhz
        The level, in dBHz.

    Returns
    -------
    ndarray
        Shape ``(fades,)``. Fades at the beginning and the end count as long as they are seen.

    Examples
    --------
    >>> trace = Trace("cn0", {"time_s": [0.0, 2.0, 3.0, 4.5], "cn0_dbhz": [80.0, 70.0, 65.0, 80.0]}, {"duration_s": 10.0})
    >>> fades_s(trace, 75.0)
    array([2.5])
    """
    edges = np.flatnonzero(np.diff(np.concatenate(([False], trace["cn0_dbhz"] < cn0_dbhz, [False])).astype(np.int8)))
    found: Series = np.diff(np.append(trace["time_s"], float(trace.meta["duration_s"]))[edges].reshape(-1, 2), axis=1)[:, 0]
    return found

"""Fading, or any bit error rate that varies over time, behind the decoders of a modem.

The bit error rate of the channel at each instant is that of the recording and of the modem's noise together. A code loses at
that instant what it loses over white noise with as many wrong bits. A code over several segments sees the instants of all.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from farlink.channels import power, trace_file
from farlink.channels.receiver import Receiver
from farlink.channels.trace import Trace
from farlink.tune.bit_errors import Independent
from farlink.tune.codes.code import Code
from farlink.tune.codes.erasure import ErasureOfSegments
from farlink.tune.equivalent_ber import ber_of
from farlink.tune.impaired.impairment import Impairment
from farlink.tune.inner import Inner
from farlink.tune.packet_goodput import SEGMENT_BITS
from farlink.tune.points import Point

Floats = NDArray[np.float64]

_STEP_DB, _LOWEST_DB, _HIGHEST_DB = 0.1, -10.0, 35.0
_LEAST = 1e-300
# Above this nothing is decoded any more.
_HOPELESS = 1 - 1e-9


def played(point: Point, code: Code, impairment: Impairment) -> tuple[float, dict[str, Any], Trace]:
    """Share of lost segments, a channel, and the trace that the channel names as its file."""
    table = impairment.table
    channel_ber, step_s = _recorded(impairment)
    noise = Inner.uncoded().ber(point.setting.modulation, point.esn0_db, "independent")
    both = channel_ber + noise - 2 * channel_ber * noise
    gone = channel_ber > float(table.get("lost_above_ber", 0.5))
    esn0_db = _esn0_db(point.setting.modulation, both)
    if code.segments > 1:
        loss, step_s = _of_groups(point, code, esn0_db, gone, step_s)
    else:
        loss = np.where(gone, 1.0, _loss_curve(point, code, esn0_db, point.setting.packet_bytes))
    trace = Trace("ber", {"ber": ber_of(loss, SEGMENT_BITS)}, {"title": "impaired", "duration_s": loss.size * step_s})
    # A frame that is lost for certain has a rate of 1/2.
    channel = {"kind": "ber-trace", "offset_s": table.get("offset_s", 0.0), "lost_above_ber": 0.49}
    return float(loss.mean()), channel, trace


@lru_cache(maxsize=4)
def _recorded(impairment: Impairment) -> tuple[Floats, float]:
    """Bit error rate of the channel of a recording, and the time of a sample."""
    table = impairment.table
    trace = trace_file.read(Path(table["file"]))
    if impairment.kind == "ber-trace":
        ber = np.asarray(trace["ber"], dtype=np.float64)
    else:
        receiver = _receiver(table["receiver"])
        if table.get("ber") is not None:
            trace = power.calibrate(trace, receiver, float(table["ber"]))
        ber = np.asarray(receiver.ber(trace["power_w"]), dtype=np.float64)
    return ber, float(trace.meta["duration_s"]) / ber.size


def _receiver(said: Any) -> Receiver:
    if isinstance(said, str):
        return Receiver.named(said)
    return Receiver("of the study", float(said["characteristic_power_w"]), float(said["form_factor"]))


@lru_cache(maxsize=8)
def _grid(modulation: str) -> tuple[Floats, Floats]:
    """Es/N0 in dB, descending, and the bit error rate of the channel there, ascending."""
    esn0_db = np.arange(_HIGHEST_DB, _LOWEST_DB - _STEP_DB / 2, -_STEP_DB)
    inner = Inner.uncoded()
    ber = [inner.ber(modulation, float(one), "independent") for one in esn0_db]
    return esn0_db, np.maximum(np.array(ber), _LEAST)


def _esn0_db(modulation: str, ber: Floats) -> Floats:
    """Es/N0 at which white noise makes as many bits of the channel wrong."""
    esn0_db, of = _grid(modulation)
    found: Floats = np.interp(np.log(np.maximum(ber, _LEAST)), np.log(of), esn0_db)
    return found


def _curve(esn0_db: Floats, rate_at: Callable[[float], float]) -> Floats:
    """A rate over Es/N0, computed at steps of 0.1 dB from the top down to where it is 1, and interpolated in -ln(1 - rate)."""
    low, high = math.floor(float(esn0_db.min()) / _STEP_DB), math.ceil(float(esn0_db.max()) / _STEP_DB)
    at = _STEP_DB * np.arange(low, high + 1)
    rate = np.ones(at.size)
    for number in range(at.size - 1, -1, -1):
        rate[number] = rate_at(float(round(at[number], 6)))
        if rate[number] > _HOPELESS:
            break
    hazard = np.log(np.maximum(-np.log1p(-np.minimum(rate, 1 - 1e-15)), _LEAST))
    found: Floats = -np.expm1(-np.exp(np.interp(esn0_db, at, hazard)))
    found[found < 1e-290] = 0.0
    return found


def _loss_curve(point: Point, code: Code, esn0_db: Floats, packet_bytes: int) -> Floats:
    modulation, errors = point.setting.modulation, point.errors
    return _curve(esn0_db, lambda at: code.residue(modulation, at, packet_bytes=packet_bytes, errors=errors).loss)


def _of_groups(point: Point, code: Code, esn0_db: Floats, gone: NDArray[np.bool_], step_s: float) -> tuple[Floats, float]:
    """Loss of each segment of a code over several, and the time of one."""
    outer, packet_bytes, segment_s = code.outer, point.setting.packet_bytes, 1 / point.rate_segments_per_s
    assert outer is not None
    group_s = segment_s * code.segments
    groups = max(1, int(esn0_db.size * step_s / group_s))
    if isinstance(outer, ErasureOfSegments):
        blocks = outer.segments + outer.parity_blocks
        block_bytes = outer.block_bytes(packet_bytes)
        loss = np.where(gone, 1.0, _loss_curve(point, Code(code.inner), esn0_db, block_bytes))
        begins = group_s / blocks * np.arange(groups * blocks)
        at = np.minimum((begins / step_s).astype(np.int64), loss.size - 1)
        return outer.stays_lost(loss[at].reshape(groups, blocks)).reshape(-1), segment_s
    # Codewords that take turns see the mean of the group.
    inner_ber = _curve(esn0_db, lambda at: code.inner.ber(point.setting.modulation, at, point.errors))
    inner_ber = np.where(gone, 0.5, np.minimum(inner_ber, 0.5))
    total = np.concatenate([[0.0], np.cumsum(inner_ber)])
    ends = np.interp(group_s / step_s * np.arange(groups + 1), np.arange(total.size), total)
    mean = np.diff(ends) * step_s / group_s
    known = np.unique(np.round(np.log(np.maximum(mean, _LEAST)), 3))
    loss_of = np.array([outer.residue(Independent(float(np.exp(one))), packet_bytes)[1] for one in known])
    loss = loss_of[np.searchsorted(known, np.round(np.log(np.maximum(mean, _LEAST)), 3))]
    return np.repeat(loss, code.segments), segment_s

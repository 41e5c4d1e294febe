"""Losses and goodput of settings of a modem as curves over C/N0."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from farlink.tune.equivalent_ber import MOST_BER, ber_of, lost_of
from farlink.tune.evaluate import rated
from farlink.tune.modem import Modem, Setting
from farlink.tune.offered import Path
from farlink.tune.points import Point, Progress, point

Floats = NDArray[np.float64]
Whole = NDArray[np.int64]

__all__ = ["MOST_BER", "STEP_DB", "Curves", "ber_of", "curves", "lost_of"]

STEP_DB = 0.1
# Below this nothing is ever lost, and a logarithm needs something.
_LEAST_BER = 1e-30


@dataclass(frozen=True)
class Curves:
    """Loss and goodput of settings over C/N0.

    Attributes
    ----------
    settings
        Of a modem.
    information_bps
        Bits of segments, headers included, that the share of the carrier takes of each. Shape ``(settings,)``.
    cn0_dbhz
        Points of the curves. Shape ``(n,)``.
    log_ber
        Natural logarithm of the equivalent bit error rate. Shape ``(settings, n)``.
    goodput_bps
        Data that all connections together deliver. Shape ``(settings, n)``.
    """

    settings: tuple[Setting, ...]
    information_bps: Floats
    cn0_dbhz: Floats
    log_ber: Floats
    goodput_bps: Floats

    def ber(self, setting: int, cn0_dbhz: Floats) -> Floats:
        """Equivalent bit error rate of a setting, up to 0.5: interpolated in its logarithm; 0.5 below the curve."""
        found: Floats = np.exp(np.interp(cn0_dbhz, self.cn0_dbhz, self.log_ber[setting]))
        found[found <= _LEAST_BER * 1.01] = 0.0
        found[cn0_dbhz < self.cn0_dbhz[0]] = MOST_BER
        return found

    def loss(self, setting: int, cn0_dbhz: Floats) -> Floats:
        """Probability that a segment of a setting is lost."""
        return lost_of(self.ber(setting, cn0_dbhz), 8 * self.settings[setting].packet_bytes)

    def goodput(self, setting: int, cn0_dbhz: Floats) -> Floats:
        """Goodput of a setting, in bit/s, interpolated; 0 below the curve."""
        return np.asarray(np.interp(cn0_dbhz, self.cn0_dbhz, self.goodput_bps[setting], left=0.0), dtype=np.float64)


def curves(
    modem: Modem,
    settings: Sequence[Setting],
    cn0_dbhz: Floats,
    *,
    share: float,
    flows: int,
    goodput: str,
    path: Path,
    progress: Progress | None = None,
) -> Curves:
    """Curves of settings that reach over a series of C/N0.

    Parameters
    ----------
    modem
        Whose settings they are.
    settings
        Which of them.
    cn0_dbhz
        The series; values that are not finite are left out. Any shape.
    share
        Share of the carrier, in (0, 1].
    flows
        Connections that share the link.
    goodput
        Model of goodput; see `farlink.tune.goodput`.
    path
        The path of connections other than the link.
    progress
        Called with the settings done and planned.
    """
    finite = cn0_dbhz[np.isfinite(cn0_dbhz)]
    first, last = math.floor(finite.min() / STEP_DB), math.ceil(finite.max() / STEP_DB)
    grid = STEP_DB * np.arange(first, max(last, first + 1) + 1)
    log_ber = np.full((len(settings), grid.size), math.log(MOST_BER))
    delivered = np.zeros_like(log_ber)
    for number, setting in enumerate(settings):
        found = _from_the_top(modem, setting, grid, share)
        start = grid.size - len(found)
        loss = np.array([one.loss for one in found])
        log_ber[number, start:] = np.log(np.maximum(ber_of(loss, 8 * setting.packet_bytes), _LEAST_BER))
        judged = rated(found, name=goodput, flows=flows, path=path)
        delivered[number, start:] = [one.goodput_bps for one in judged]
        if progress is not None:
            progress(number + 1, len(settings))
    information = np.array([share * one.symbol_rate_hz * one.bits_per_symbol for one in settings])
    return Curves(tuple(settings), information, grid, log_ber, delivered)


def _from_the_top(modem: Modem, setting: Setting, grid: Floats, share: float) -> list[Point]:
    """A setting from the highest C/N0 down to where nothing arrives any more, in ascending order."""
    found: list[Point] = []
    for cn0 in grid[::-1]:
        one = point(modem, setting, float(cn0), share=share)
        if one is None:
            break
        found.append(one)
        if one.loss > 1 - 1e-9:
            break
    return found[::-1]

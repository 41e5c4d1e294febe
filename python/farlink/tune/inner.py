"""Bit errors after the demodulator, or after a Viterbi decoder.

Without a code the bit error rate is a closed form. Behind a Viterbi decoder it is that of the error events which farlink's
channels play (`farlink.channels.coding`), collected once on a grid of Eb/N0 and kept on disk; between two points of the grid,
logarithms of rates are straight lines. Where the union bound says that errors are rarer than anything that matters, the bound
stands for them.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from farlink.channels import coding
from farlink.errors import core_errors
from farlink.tune.bit_errors import BitErrors, Bursts, Independent

BITS = {"bpsk": 1, "qpsk": 2, "8psk": 3, "16qam": 4}

# Grid of Eb/N0 in dB, and its ends: below, practically every second bit is wrong.
_STEP_DB, _LOWEST_DB, _HIGHEST_DB = 0.25, -4.0, 40.0
# Lower, the core knows none.
_NOTHING_DB = -10.0
# Bit error rate below which the union bound is used for the decoder: one wrong bit in a week at 10 Mb/s.
_NEGLIGIBLE = 1e-13
# Without importance sampling, rare events are not waited for.
_MOST_BITS = 3e7
# The upper end of a 95 % interval if nothing is seen.
_NONE_SEEN = 3.0
_HOPELESS = 0.5

# Gives rates that bit errors cause, each above 0; equal ones give the same.
Rates = Callable[[BitErrors], tuple[float, ...]]


@dataclass(frozen=True)
class Inner:
    """The code next to the channel.

    Attributes
    ----------
    name
        For people; empty without a code.
    rate
        Data bits for each coded one.
    code
        As in ``[link.coding]``.
    decision
        What the decoder sees.
    """

    name: str
    rate: float
    code: str
    decision: str

    @classmethod
    def uncoded(cls) -> Inner:
        """No code."""
        return cls("", 1.0, json.dumps({"kind": "uncoded"}), "hard")

    @classmethod
    def convolutional(cls, code: dict[str, Any], name: str, decision: str) -> Inner:
        """A convolutional code, which is checked.

        Raises
        ------
        ScenarioError
            If there is no such code.
        """
        known = coding.spectrum({"code": {"kind": "convolutional", **code}}, 1)
        return cls(name, known["rate"], json.dumps({"kind": "convolutional", **code}, sort_keys=True), decision)

    def rates(self, modulation: str, esn0_db: float, errors: str, of: Rates) -> tuple[float, ...]:
        """Rates of a stream's errors, each above 0.

        Parameters
        ----------
        modulation
            bpsk, qpsk, 8psk or 16qam.
        esn0_db
            Energy of a symbol over noise density, in dB.
        errors
            ``"bursts"`` or ``"independent"``.
        of
            Which rates of the errors at the decoder's output.
        """
        ebn0_db = esn0_db - 10 * math.log10(BITS[modulation] * self.rate)
        if not self.name:
            return of(Independent(_channel_ber(modulation, round(min(max(ebn0_db, _NOTHING_DB), _HIGHEST_DB), 6))))
        # As good as each other at the same Eb/N0.
        alike = "bpsk" if modulation == "qpsk" else modulation
        at = min(max(ebn0_db, _LOWEST_DB), _HIGHEST_DB) / _STEP_DB
        below = math.floor(at)
        first = _rates(alike, self.decision, self.code, below, errors, of)
        if at == below:
            return first
        second = _rates(alike, self.decision, self.code, below + 1, errors, of)
        return tuple(between(low, high, at - below) for low, high in zip(first, second, strict=True))

    def ber(self, modulation: str, esn0_db: float, errors: str) -> float:
        """Share of wrong bits; see `rates`."""
        return self.rates(modulation, esn0_db, errors, _ber)[0]

    def stream(self, modulation: str, esn0_db: float, errors: str) -> BitErrors:
        """The errors themselves; behind a Viterbi decoder the bursts of the nearest point of the grid, as often as is right.

        Parameters
        ----------
        modulation, esn0_db, errors
            As of `rates`.
        """
        ebn0_db = esn0_db - 10 * math.log10(BITS[modulation] * self.rate)
        if not self.name:
            return Independent(_channel_ber(modulation, round(min(max(ebn0_db, _NOTHING_DB), _HIGHEST_DB), 6)))
        ber = self.ber(modulation, esn0_db, errors)
        alike = "bpsk" if modulation == "qpsk" else modulation
        step = round(min(max(ebn0_db, _LOWEST_DB), _HIGHEST_DB) / _STEP_DB)
        near = _decoded(alike, self.decision, self.code, step, errors)
        if not isinstance(near, Bursts) or ber <= 0:
            return Independent(ber)
        # As many wrong bits in each burst, at another distance.
        cycle_bits = near.cycle_bits * near.ber / ber
        return replace(near, gap_mean_bits=max(near.gap_min_bits + 1, cycle_bits - float(near.spans.mean())))


def _ber(found: BitErrors) -> tuple[float, ...]:
    return (found.ber,)


def between(low: float, high: float, share: float) -> float:
    """Between two rates, straight in the logarithm of -log(1 - rate), which is that of the rate where it is small."""
    if low <= 0 or high <= 0:
        return (1 - share) * low + share * high
    ends = [math.log(-math.log1p(-min(rate, 1 - 1e-15))) for rate in (low, high)]
    return -math.expm1(-math.exp((1 - share) * ends[0] + share * ends[1]))


@lru_cache(maxsize=1 << 16)
def _rates(modulation: str, decision: str, code: str, step: int, errors: str, of: Rates) -> tuple[float, ...]:
    return of(_decoded(modulation, decision, code, step, errors))


@lru_cache(maxsize=4096)
def _channel_ber(modulation: str, ebn0_db: float) -> float:
    from farlink import _core

    table = {"modulation": modulation, "decision": "hard", "code": {"kind": "uncoded"}}
    with core_errors():
        return _core.channel_ber(json.dumps(table), ebn0_db)


@lru_cache(maxsize=4096)
def _decoded(modulation: str, decision: str, code: str, step: int, errors: str) -> BitErrors:
    """Errors of a Viterbi decoder at a point of the grid."""
    ebn0_db = step * _STEP_DB
    table = {"modulation": modulation, "decision": decision, "code": json.loads(code)}
    bound = coding.union_bound(table, ebn0_db)
    if ebn0_db <= _LOWEST_DB:
        return Independent(_HOPELESS)
    if bound is not None and bound < _NEGLIGIBLE:
        return Independent(bound)
    return _collected(modulation, decision, code, ebn0_db, errors)


@lru_cache(maxsize=256)
def _collected(modulation: str, decision: str, code: str, ebn0_db: float, errors: str) -> BitErrors:
    from farlink import _core

    table: dict[str, Any] = {"modulation": modulation, "decision": decision, "code": json.loads(code)}
    if modulation not in ("bpsk", "qpsk"):
        table["effort"] = {"max_bits": _MOST_BITS}
    with core_errors():
        found = _core.error_events(json.dumps(table), ebn0_db)
    if len(found["start"]) == 1:
        return Independent(_NONE_SEEN / _MOST_BITS)
    if errors == "independent":
        return Independent(found["bit_error_rate"])
    position, start = (found[key].astype(np.int64) for key in ("position", "start"))
    return Bursts(position, start, found["gap_min_bits"], found["gap_mean_bits"])

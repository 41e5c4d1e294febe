"""A link's modulation and coding: error rate as a function of Eb/N0 and its inverse, and positions of wrong bits.

A coding is the table ``[link.coding]`` of a scenario, less ``ebn0_db`` and ``errors``.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from farlink.arguments import check_range, checked_arguments
from farlink.channels.kept_rates import KEPT
from farlink.channels.trace import Trace
from farlink.errors import ScenarioError, core_errors
from farlink.limits import check_seed, check_threads

if TYPE_CHECKING:
    from farlink._core import CodeSpectrum

Progress = Callable[[int, int], None]

# Range of the search for Eb/N0, in dB, and its start if there is no bound.
_LOWEST_DB, _HIGHEST_DB, _USUAL_DB = -5.0, 40.0, 4.0
_HALVINGS = 16
_BOUND_TERMS = 12
# Slope of the logarithm of the bit error rate to begin with, the least that is believed, and how far a step goes.
_SLOPE_PER_DB, _LEAST_SLOPE_PER_DB, _WIDEST_STEP_DB = -3.0, 0.5, 2.0
_MOST_STEPS, _APART_DB = 12, 0.1
# Differences of logarithms: so near ends the search; so near will do where chance keeps it from coming nearer.
_NEAR, _NEAR_ENOUGH = 0.1, 0.3
_SEARCH_EVENTS = 400
_SEARCH_BITS = 10_000_000


@dataclass(frozen=True)
class Rate:
    """An error rate with the ends of its 95 % interval."""

    value: float
    low: float
    high: float

    @property
    def half_width(self) -> float:
        """Half of the interval."""
        return (self.high - self.low) / 2


@dataclass(frozen=True)
class ErrorRate:
    """Error rates at a decoder's output, by simulation.

    Attributes
    ----------
    ebn0_db
        Energy per information bit over noise density, in dB.
    bits, wrong_bits, events
        What was decoded and seen.
    ber
        Bit error rate.
    packet_bits, packets, wrong_packets
        Length of a packet, and how many there were.
    per
        Packet error rate.
    is_interrupted
        Whether Ctrl-C ended it.
    is_reached
        Whether the requested number of events was reached.
    """

    ebn0_db: float
    bits: int
    wrong_bits: int
    events: int
    ber: Rate
    packet_bits: int
    packets: int
    wrong_packets: int
    per: Rate
    is_interrupted: bool
    is_reached: bool


def error_rate(
    coding: Mapping[str, Any],
    ebn0_db: float,
    *,
    seed: int = 1,
    events: int = 400,
    max_bits: int = 10**9,
    packet_bits: int = 8000,
    threads: int | None = None,
    progress: Progress | None = None,
) -> ErrorRate:
    """Simulate the error rates of a coding; results are cached (`FARLINK_CACHE`).

    Parameters
    ----------
    coding
        Table as in ``[link.coding]``.
    ebn0_db
        Energy per information bit over noise density, in dB.
    seed
        Seed of data and noise.
    events
        Error events to see before it ends.
    max_bits
        Bits to decode at most.
    packet_bits
        Length of a packet for the packet error rate, in bits.
    threads
        Threads to run on; all cores by default. The result does not depend on it.
    progress
        Called with the bits done and planned.

    Raises
    ------
    ScenarioError
        If there is no such coding.
    """
    from farlink import _core

    check_threads(threads)
    check_seed(seed)
    effort = {"seed": seed, "events": events, "max_bits": max_bits, "packet_bits": packet_bits}
    key = {"coding": dict(coding), "ebn0_db": ebn0_db, **effort}
    found = KEPT.read(key)
    if found is None:
        with core_errors():
            found = dict(_core.error_rate(json.dumps(coding), ebn0_db, **effort, threads=threads, progress=progress))
        if not found["interrupted"]:
            KEPT.write(key, found)
    return ErrorRate(
        ebn0_db=ebn0_db,
        bits=found["bits"],
        wrong_bits=found["wrong_bits"],
        events=found["events"],
        ber=Rate(*found["bit_error_rate"]),
        packet_bits=found["packet_bits"],
        packets=found["packets"],
        wrong_packets=found["wrong_packets"],
        per=Rate(*found["packet_error_rate"]),
        is_interrupted=found["interrupted"],
        is_reached=found["reached"],
    )


def error_trace(
    coding: Mapping[str, Any],
    ebn0_db: float,
    bits: int,
    *,
    seed: int = 1,
    threads: int | None = None,
    progress: Progress | None = None,
) -> tuple[Trace, bool]:
    """Decode random data and store the positions of all wrong bits in memory; `burst_run.run` stores none.

    Parameters
    ----------
    coding, ebn0_db, seed, threads, progress
        As for `error_rate`.
    bits
        Bits to decode.

    Returns
    -------
    Trace
        A trace of kind ``"bit-errors"`` of the decoded bits.
    bool
        Whether Ctrl-C ended it.

    Raises
    ------
    ScenarioError
        If there is no such coding.
    """
    from farlink import _core

    check_threads(threads)
    check_seed(seed)
    with core_errors():
        found = _core.error_trace(json.dumps(coding), ebn0_db, bits, seed=seed, threads=threads, progress=progress)
    if found["interrupted"] and not found["bits"]:
        raise KeyboardInterrupt
    arrays: dict[str, Any] = {"position": found["position"], "bits": found["bits"]}
    return Trace("bit-errors", arrays, error_trace_meta(coding, ebn0_db, seed)), found["interrupted"]


def error_trace_meta(coding: Mapping[str, Any], ebn0_db: float, seed: int) -> dict[str, Any]:
    """Statistics of a trace of wrong bits.

    Parameters
    ----------
    coding, ebn0_db, seed
        As for `error_rate`.
    """
    return {
        "title": f"Wrong bits of {describe(coding)} at {ebn0_db:g} dB",
        "source": f"farlink, simulated with seed {seed}",
        "coding": dict(coding),
        "ebn0_db": ebn0_db,
        "seed": seed,
    }


def ebn0_for_ber(coding: Mapping[str, Any], ber: float) -> float:
    """Eb/N0 at which a coding has about a given bit error rate, in dB, to a hundredth.

    Found by the secant method on the logarithm of the rate of the events that a decoder leaves (`played_ber`), with few of
    them, from where the union bound has that rate. It ends near the rate, not exactly there: measure what it came to.

    Parameters
    ----------
    coding
        Table as in ``[link.coding]``, without ``effort``.
    ber
        The rate, between 0 and 0.5.

    Raises
    ------
    ScenarioError
        If there is no such coding, or it does not have that rate.
    """
    if not 0 < ber < 0.5:
        raise ScenarioError(f"bit error rate {ber:g}", "give one between 0 and 0.5")
    text = json.dumps(coding, sort_keys=True)
    level = math.log(ber)
    at = _bound_ebn0_db(text, ber)
    slope = _SLOPE_PER_DB
    before: tuple[float, float] | None = None
    seen: dict[float, float] = {}
    for _ in range(_MOST_STEPS):
        off = seen[at] = _log_ber(text, at) - level
        if abs(off) <= _NEAR:
            return at
        # Points close by differ by chance.
        if before is not None and abs(before[0] - at) >= _APART_DB:
            slope = min((off - before[1]) / (at - before[0]), -_LEAST_SLOPE_PER_DB)
        before = (at, off)
        at = round(min(max(at - min(max(off / slope, -_WIDEST_STEP_DB), _WIDEST_STEP_DB), _LOWEST_DB), _HIGHEST_DB), 2)
        if at in seen:
            break
    nearest = min(seen, key=lambda value: abs(seen[value]))
    if abs(seen[nearest]) <= _NEAR_ENOUGH:
        return nearest
    raise ScenarioError(f"{describe(coding)}: no Eb/N0 gives a bit error rate of {ber:g}", "ask for another rate")


def played_ber(coding: Mapping[str, Any], ebn0_db: float) -> float:
    """Bit error rate of the error events that the scenario's channel plays for this coding and its ``effort``."""
    from farlink import _core

    with core_errors():
        return float(_core.error_events(json.dumps(coding), ebn0_db)["bit_error_rate"])


def spectrum(coding: Mapping[str, Any], terms: int) -> CodeSpectrum:
    """Constraint length, rate, free distance and distance spectrum of a convolutional code.

    Raises
    ------
    ScenarioError
        If there is no such code, or it is not convolutional.
    """
    from farlink import _core

    with core_errors():
        return _core.code_spectrum(json.dumps(coding), terms)


def union_bound(coding: Mapping[str, Any], ebn0_db: float) -> float | None:
    """Union bound on the bit error rate of a convolutional code; None for modulations that it is not known for.

    References
    ----------
    A. J. Viterbi, "Convolutional codes and their performance in communication systems", IEEE Trans. Commun. Technol. 19, 1971.
    """
    from farlink import _core

    with core_errors():
        return _core.union_bound(json.dumps(coding), ebn0_db, _BOUND_TERMS)


@checked_arguments
def memory_bits(coding: Mapping[str, Any]) -> int:
    """Right bits after which errors have little to do with those before.

    Of a convolutional code K - 1, the information bits that a coded bit depends on besides the newest, and of a concatenation
    that of the inner code; of others 8, a byte.

    Examples
    --------
    >>> memory_bits({"code": {"kind": "convolutional", "generators": "171,133"}})
    6
    """
    check_range(isinstance(coding.get("code"), Mapping), "coding", 'hold a table "code"', coding)
    code = coding["code"]
    while (within := code.get("inner", code.get("over"))) is not None:
        code = within
    if code.get("kind") != "convolutional":
        return 8
    return spectrum({"code": dict(code)}, 1)["constraint_length"] - 1


@checked_arguments
def describe(coding: Mapping[str, Any]) -> str:
    """A coding in a few words.

    Examples
    --------
    >>> describe({"code": {"kind": "convolutional", "generators": "171,133", "rate": "3/4"}, "decision": "hard"})
    'convolutional 171,133 rate 3/4, bpsk, hard decisions'
    >>> outer, inner = {"kind": "reed-solomon", "n": 255, "k": 223}, {"kind": "convolutional", "generators": "171,133"}
    >>> describe({"code": {"kind": "concatenated", "outer": outer, "inner": inner}})
    'reed-solomon n 255 k 223 over convolutional 171,133, bpsk, soft decisions'
    """
    code = _describe_code(coding.get("code", {}))
    return f"{code}, {coding.get('modulation', 'bpsk')}, {coding.get('decision', 'soft')} decisions"


def _describe_code(code: Mapping[str, Any]) -> str:
    """A short description of a code; of a concatenation, its parts in order."""
    parts = [_describe_code(value) for value in code.values() if isinstance(value, Mapping)]
    words = [str(code.get("kind", "no code")), *([str(code["generators"])] if "generators" in code else [])]
    simple = {name: value for name, value in code.items() if not isinstance(value, Mapping)}
    words += [f"{name.replace('_', ' ')} {value}" for name, value in simple.items() if name not in ("kind", "generators")]
    own = " ".join(words)
    if code.get("kind") == "concatenated":
        return " over ".join(parts)
    return " over ".join([own, *parts])


def _bound_ebn0_db(coding_json: str, ber: float) -> float:
    """Eb/N0 in dB at which the union bound has a bit error rate; a usual value for codes without a bound."""
    from farlink import _core

    low, high = _LOWEST_DB, _HIGHEST_DB
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        try:
            with core_errors():
                bound = _core.union_bound(coding_json, middle, _BOUND_TERMS)
        except ScenarioError:
            bound = None
        if bound is None:
            return _USUAL_DB
        low, high = (middle, high) if bound > ber else (low, middle)
    return round(low, 2)


@cache
def _log_ber(coding_json: str, ebn0_db: float) -> float:
    effort = {"events": _SEARCH_EVENTS, "max_bits": _SEARCH_BITS}
    found = played_ber({**json.loads(coding_json), "effort": effort}, ebn0_db)
    return math.log(found) if found > 0 else -math.inf

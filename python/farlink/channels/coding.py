"""A link's modulation and coding: its error rate against Eb/N0, the other way round, and where its wrong bits lie.

A coding is the table ``[link.coding]`` of a scenario, less ``ebn0_db`` and ``errors``.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from farlink.channels.trace import Trace
from farlink.errors import ScenarioError, core_errors

Progress = Callable[[int, int], None]

# Where Eb/N0 is looked for, in dB, and how far apart the points of the curve lie.
_LOWEST_DB, _HIGHEST_DB = -10.0, 40.0
_STEP_DB = 0.5
# Events for a point of the curve, and bits to see them in.
_CURVE_EVENTS = 300
_CURVE_BITS = 200_000_000


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
        Whether there were as many events as were asked for.
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
    """Simulate the error rates of a coding.

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

    with core_errors():
        found = _core.error_rate(
            json.dumps(coding),
            ebn0_db,
            seed=seed,
            events=events,
            max_bits=max_bits,
            packet_bits=packet_bits,
            threads=threads,
            progress=progress,
        )
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
    """Decode random data and note where the wrong bits are.

    Parameters
    ----------
    coding, ebn0_db, seed, threads, progress
        As for `error_rate`.
    bits
        Bits to decode.

    Returns
    -------
    Trace
        Of kind ``"bit-errors"``, of what was decoded.
    bool
        Whether Ctrl-C ended it.

    Raises
    ------
    ScenarioError
        If there is no such coding.
    """
    from farlink import _core

    with core_errors():
        found = _core.error_trace(json.dumps(coding), ebn0_db, bits, seed=seed, threads=threads, progress=progress)
    meta = {
        "title": f"Wrong bits of {describe(coding)} at {ebn0_db:g} dB",
        "source": f"farlink, simulated with seed {seed}",
        "coding": dict(coding),
        "ebn0_db": ebn0_db,
        "seed": seed,
    }
    return Trace("bit-errors", {"position": found["position"], "bits": found["bits"]}, meta), found["interrupted"]


def ebn0_for_ber(coding: Mapping[str, Any], ber: float) -> float:
    """Eb/N0 at which a coding has about a given bit error rate, in dB, to a hundredth.

    The logarithm of the bit error rate is nearly a straight line against Eb/N0 as a ratio, as the union bound tells. The
    points of that curve are simulated once, and only down to rates that take a moment; the line is followed beyond them. What
    it leads to is near the rate, not exactly there: measure it with `error_rate`.

    Raises
    ------
    ScenarioError
        If there is no such coding, or it does not have that rate anywhere between -10 and 40 dB.
    """
    if not 0 < ber < 0.5:
        raise ScenarioError(f"bit error rate {ber:g}", "give one between 0 and 0.5")
    text = json.dumps(coding, sort_keys=True)
    before: tuple[float, float] | None = None
    for step in range(int((_HIGHEST_DB - _LOWEST_DB) / _STEP_DB) + 1):
        ebn0_db = _LOWEST_DB + _STEP_DB * step
        point = (10 ** (ebn0_db / 10), _log_ber(text, ebn0_db))
        is_past = point[1] <= math.log(ber)
        if before is not None and math.isfinite(before[1]) and (is_past or not _is_measurable(text, ebn0_db + _STEP_DB)):
            ratio = _on_line(before, point, math.log(ber))
            if ratio is not None:
                return round(10 * math.log10(ratio), 2)
        before = point
    raise ScenarioError(f"{describe(coding)} has no bit error rate of {ber:g} below {_HIGHEST_DB:g} dB", "ask for a higher one")


def played_ber(coding: Mapping[str, Any], ebn0_db: float) -> float:
    """Bit error rate of the error events that the scenario's channel plays for this coding and its ``effort``."""
    from farlink import _core

    with core_errors():
        return float(_core.error_events(json.dumps(coding), ebn0_db)["bit_error_rate"])


def memory_bits(coding: Mapping[str, Any]) -> int:
    """Information bits that a coded bit depends on besides the newest: K - 1; so many right ones end an error event.

    Examples
    --------
    >>> memory_bits({"code": {"kind": "convolutional", "generators": "171,133"}})
    6
    """
    code = coding["code"]
    longest = max(int(text, 8).bit_length() for text in str(code["generators"]).split(","))
    return max(int(code.get("constraint_length", longest)) - 1, 1)


def describe(coding: Mapping[str, Any]) -> str:
    """A coding in a few words.

    Examples
    --------
    >>> describe({"code": {"kind": "convolutional", "generators": "171,133", "rate": "3/4"}, "decision": "hard"})
    'convolutional 171,133 rate 3/4, bpsk, hard decisions'
    """
    code = dict(coding.get("code", {}))
    words = [str(code.pop("kind", "no code"))]
    words += [str(code.pop("generators"))] if "generators" in code else []
    words += [f"{name.replace('_', ' ')} {value}" for name, value in code.items() if not isinstance(value, Mapping)]
    return f"{' '.join(words)}, {coding.get('modulation', 'bpsk')}, {coding.get('decision', 'soft')} decisions"


def _on_line(first: tuple[float, float], second: tuple[float, float], level: float) -> float | None:
    (x, y), (next_x, next_y) = first, second
    if not next_y < y:
        return None
    return x + (y - level) / (y - next_y) * (next_x - x)


@cache
def _log_ber(coding_json: str, ebn0_db: float) -> float:
    found = error_rate(json.loads(coding_json), ebn0_db, events=_CURVE_EVENTS, max_bits=_CURVE_BITS)
    return math.log(found.ber.value) if found.ber.value > 0 else -math.inf


@cache
def _is_measurable(coding_json: str, ebn0_db: float) -> bool:
    """Whether the curve's effort shows enough events for a point."""
    return error_rate(json.loads(coding_json), ebn0_db, events=_CURVE_EVENTS, max_bits=_CURVE_BITS).is_reached

"""Table I: mean burst length at the output of five Viterbi decoders.

The paper says neither what ends a burst, nor at which bit error rate the lengths were taken, nor whether the decoder saw hard
or soft decisions ("a module that introduces random errors" speaks for hard ones). So every code is measured under each of
several definitions, the same for all codes, and the one that comes closest to the whole table is the one that is compared.
The decoder decides each bit exactly five constraint lengths later, as the paper says: it matters, most at rate 3/4, where such
a trace-back is so short that single wrong bits outnumber the code's own bursts.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from farlink.channels import coding
from farlink.channels.bit_bursts import burst_statistics
from farlink.papers.brodbekier.link import power
from farlink.papers.check import Check, Verdict, number
from farlink.papers.estimate import Estimate
from farlink.papers.item import Drawing, Workbench
from farlink.plot.printed import Measured, beside_printed


@dataclass(frozen=True)
class Row:
    """A row of the table."""

    generators: str
    rate: str
    constraint_length: int
    printed: str

    @property
    def name(self) -> str:
        """The code in a few words."""
        return f"({self.generators.replace(',', ', ')}), K = {self.constraint_length}, rate {self.rate}"

    def coding(self, decision: str, decoder: str = "serial") -> dict[str, Any]:
        """The code as a scenario names it."""
        code = {"kind": "convolutional", "generators": self.generators, "decoder": decoder}
        punctured = {"rate": self.rate} if self.rate == "3/4" else {}
        return {"modulation": "bpsk", "decision": decision, "code": {**code, **punctured}}


ROWS = (
    Row("15,13", "1/2", 4, "2.7"),
    Row("171,133", "3/4", 7, "5.0"),
    Row("171,133", "1/2", 7, "5.4"),
    Row("171,133,145", "1/3", 7, "5.7"),
    Row("4335,5723", "1/2", 12, "16.1"),
)

# Ends of a burst: name of the rule -> right bits for a constraint length.
GAPS: dict[str, Callable[[int], int]] = {
    "2": lambda _: 2,
    "3": lambda _: 3,
    "K - 1": lambda k: k - 1,
    "K": lambda k: k,
    "5 K": lambda k: 5 * k,
}
BERS = (1e-4, 3e-4, 1e-3, 3e-3)
DECISIONS = ("hard", "soft")

# Wrong bits in a trace: more than a thousand bursts.
_WRONG_BITS = 6_000
# Most work of decoding for that: bits times states of the decoder. For K = 12 at 1e-4, half of the wrong bits.
_MOST_WORK = 6e10
# Above this, the Eb/N0 is looked for with the fast decoder, whose bit error rate differs by some tens of percent.
_LONGEST_SEARCHED = 9
# The rest that the paper leaves open, and the length of its traces, show in lengths that cannot be computed twice.
_TOLERANCE = 0.1


@dataclass(frozen=True)
class Definition:
    """Parameters of a burst length."""

    decision: str
    ber: float
    gap: str

    def __str__(self) -> str:
        """In words."""
        return f"{self.decision} decisions, BER {power(self.ber)}, a burst ends with {self.gap} right bits"


Lengths = Mapping[Definition, Mapping[Row, Estimate]]


def table_1(bench: Workbench) -> tuple[list[Check], list[Drawing]]:
    """Mean burst length of the five codes under every definition, and under the one that fits best."""
    lengths = _measure(bench)
    best = min(lengths, key=lambda definition: misfit(lengths[definition]))
    checks = []
    for row in ROWS:
        ours = lengths[best][row]
        verdict = number(ours, row.printed, relative=_TOLERANCE)
        found = [at[row].mean for at in lengths.values() if math.isfinite(at[row].mean)]
        note = (
            f"within {_TOLERANCE:.0%}; {best}, the definition of {len(lengths)} that fits the whole table best; off by "
            f"{ours.mean / float(row.printed) - 1:+.0%}"
        )
        if verdict is Verdict.DIFFERS:
            note += (
                f"; all definitions give {min(found):.1f} to {max(found):.1f}, nearest "
                f"{_nearest(lengths, row)}: no single one reproduces the whole table, and the paper states none"
            )
        cell = f"mean burst length of {row.name}, bits"
        check = Check("table-1", cell, float(row.printed), "monte-carlo", ours, verdict, note)
        checks.append(check.fitted("what ends a burst, the bit error rate and the decision were chosen on this table"))
    return checks, [_drawing(lengths, best)]


def misfit(lengths: Mapping[Row, Estimate]) -> float:
    """Root of the mean squared logarithm of ours over printed; infinite if a length is unknown."""
    ratios = [at.mean / float(row.printed) for row, at in lengths.items()]
    if not all(math.isfinite(ratio) and ratio > 0 for ratio in ratios):
        return math.inf
    return math.sqrt(sum(math.log(ratio) ** 2 for ratio in ratios) / len(ratios))


def _measure(bench: Workbench) -> Lengths:
    found: dict[Definition, dict[Row, Estimate]] = {}
    for row in ROWS:
        most_bits = _MOST_WORK / 2 ** (row.constraint_length - 1)
        searched = "serial" if row.constraint_length <= _LONGEST_SEARCHED else "parallel"
        for decision in DECISIONS:
            for ber in BERS:
                bits = int(bench.share(1) * min(_WRONG_BITS / ber, most_bits))
                ebn0_db = coding.ebn0_for_ber(row.coding(decision, searched), ber)
                trace = bench.bit_errors(row.coding(decision), ebn0_db, bits)
                for gap, rule in GAPS.items():
                    bursts = burst_statistics(trace, rule(row.constraint_length))
                    mean = Estimate(bursts.length_mean_bits, bursts.length_ci95_bits)
                    found.setdefault(Definition(decision, ber, gap), {})[row] = mean
    return found


def _nearest(lengths: Lengths, row: Row) -> str:
    def off(definition: Definition) -> float:
        mean = lengths[definition][row].mean
        return abs(math.log(mean / float(row.printed))) if mean > 0 else math.inf

    nearest = min(lengths, key=off)
    return f"{lengths[nearest][row].mean:.1f} with {nearest}"


def _drawing(lengths: Lengths, best: Definition) -> Drawing:
    measured = [
        Measured(
            row.name,
            float(row.printed),
            (lengths[best][row].mean, lengths[best][row].half_width),
            [at[row].mean for at in lengths.values()],
        )
        for row in ROWS
    ]

    return Drawing(
        "table-1",
        "Mean burst length of five codes, printed and ours",
        f"Filled: {best}. Bars: from the shortest to the longest of {len(lengths)} definitions.",
        lambda: beside_printed(measured, x_label="mean burst length (bits)"),
    )

"""Printed numbers and claims beside ours, and the verdicts on them."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from decimal import Decimal
from enum import StrEnum
from typing import Any

from farlink.papers.estimate import Estimate
from farlink.units import Scale


class Verdict(StrEnum):
    """Outcome of a check."""

    AGREES = "agrees"
    """The 95 % interval reaches into the stated tolerance of what is printed, and is narrow beside it."""
    FITTED = "fitted"
    """As close as `AGREES`, but a setting, a definition or the tolerance was chosen on the numbers compared: no proof."""
    DIFFERS = "differs"
    """The whole 95 % interval lies outside the tolerance; the note names the cause as far as it is known."""
    UNDECIDED = "undecided"
    """The 95 % interval is too wide to tell: more runs are needed."""
    MISPRINT = "misprint"
    """The printed number contradicts the paper's own equation, and the note says which number it is instead."""

    @property
    def is_settled(self) -> bool:
        """Whether nothing is left to be explained."""
        return self in (Verdict.AGREES, Verdict.FITTED, Verdict.MISPRINT)


@dataclass(frozen=True)
class Check:
    """One printed number or claim.

    Attributes
    ----------
    item
        Key of the table or figure, for example ``"table-1"``.
    cell
        Which number of it, with the unit if it has one.
    printed
        The number as printed, or the claim in the paper's words.
    engine
        What ours comes from: an engine (``"model"``, ``"fluid"``, ``"packet"``), ``"monte-carlo"`` for decoders alone,
        ``"measured"`` for logs, ``"ns-3"`` for that simulator.
    value
        Ours.
    verdict
        By the rule that `note` states.
    note
        The rule, and the cause if it differs.
    """

    item: str
    cell: str
    printed: float | str
    engine: str
    value: Estimate
    verdict: Verdict
    note: str

    def fitted(self, what: str) -> Check:
        """The same check, where a choice was made on the numbers that it compares: ``fitted`` instead of ``agrees``.

        Parameters
        ----------
        what
            What was chosen, and on which numbers; it goes into the note, whatever the verdict.

        Examples
        --------
        >>> check = Check("table-1", "K = 4", 2.7, "packet", Estimate(2.7, 0.01), Verdict.AGREES, "within 10 %")
        >>> check.fitted("the timer was chosen on this column").note
        'within 10 %; fitted: the timer was chosen on this column'
        """
        verdict = Verdict.FITTED if self.verdict is Verdict.AGREES else self.verdict
        return replace(self, verdict=verdict, note=f"{self.note}; fitted: {what}")

    @property
    def ci95(self) -> float | None:
        """Half-width of the 95 % interval; None where there is none: closed forms, and what is made of fluids without one."""
        return None if self.engine in ("model", "fluid") and not self.value.half_width else self.value.ci95

    @property
    def shown(self) -> str:
        """Ours with its interval, for people."""
        return Scale(1.0, "").interval(self.value.mean, self.ci95 or math.nan)

    def to_dict(self, paper: str) -> dict[str, Any]:
        """The check as JSON knows it; what is unknown is None."""
        mean = self.value.mean
        return {
            "paper": paper,
            "item": self.item,
            "cell": self.cell,
            "printed": self.printed,
            "engine": self.engine,
            "value": mean if math.isfinite(mean) else None,
            "ci95": self.ci95,
            "verdict": str(self.verdict),
            "note": self.note,
        }


def claimed(
    item: str,
    cell: str,
    printed: str,
    value: Estimate,
    *,
    rule: str,
    at_least: float = -math.inf,
    at_most: float = math.inf,
    cause: str = "",
) -> Check:
    """A check of a claim by the packet engine, put as bounds on a number.

    Parameters
    ----------
    item, cell, printed, value
        As in `Check`.
    rule
        The bounds in words, and why they stand for the claim.
    at_least, at_most
        The bounds; see `claim`.
    cause
        Why it differs, if it does.
    """
    verdict = claim(value, at_least=at_least, at_most=at_most)
    note = f"{rule}; {cause}" if cause and verdict is Verdict.DIFFERS else rule
    return Check(item, cell, printed, "packet", value, verdict, note)


def claim(value: Estimate, *, at_least: float = -math.inf, at_most: float = math.inf) -> Verdict:
    """Judge a claim that was put as bounds on a number.

    It agrees if the whole 95 % interval lies within the bounds, differs if all of it lies outside, and is undecided if it
    holds a bound, or if the number or its interval is unknown.

    Examples
    --------
    >>> str(claim(Estimate(1.3, 0.1), at_least=1)), str(claim(Estimate(1.3, 0.4), at_least=1))
    ('agrees', 'undecided')
    >>> str(claim(Estimate(0.8, 0.1), at_least=1))
    'differs'
    """
    if not (math.isfinite(value.mean) and math.isfinite(value.half_width)):
        return Verdict.UNDECIDED
    if value.low >= at_least and value.high <= at_most:
        return Verdict.AGREES
    if value.high < at_least or value.low > at_most:
        return Verdict.DIFFERS
    return Verdict.UNDECIDED


def number(value: Estimate, printed: str, *, relative: float = 0.0) -> Verdict:
    """Judge a number against a printed one.

    The printed digits stand for half a unit of the last of them on either side, `relative` adds that share of the number: both
    together are the tolerance. It differs if the whole 95 % interval lies outside the tolerance. It agrees if the interval
    reaches into the tolerance and its half-width is at most half of the tolerance; otherwise it is undecided.

    Parameters
    ----------
    value
        Ours.
    printed
        The number with the digits that are printed.
    relative
        Tolerance beyond rounding, as a share of the printed number.

    Examples
    --------
    >>> str(number(Estimate(2.74, 0.02), "2.7")), str(number(Estimate(2.8, 0.02), "2.7"))
    ('agrees', 'differs')
    >>> str(number(Estimate(2.7, 0.04), "2.7")), str(number(Estimate(2.7, 0.02), "2.7"))
    ('undecided', 'agrees')
    """
    centre = float(printed)
    tolerance = rounding(printed) + relative * abs(centre)
    # Decimal fractions are not exact: 2.75 is within half a tenth of 2.7.
    slack = 1e-12 * abs(centre)
    if not (math.isfinite(value.mean) and math.isfinite(value.half_width)):
        return Verdict.UNDECIDED
    if abs(value.mean - centre) > tolerance + value.half_width + slack:
        return Verdict.DIFFERS
    return Verdict.AGREES if value.half_width <= tolerance / 2 + slack else Verdict.UNDECIDED


def rounding(printed: str) -> float:
    """Half a unit of the last printed digit.

    Examples
    --------
    >>> rounding("16.1"), rounding("0.45")
    (0.05, 0.005)
    """
    exponent = Decimal(printed).as_tuple().exponent
    assert isinstance(exponent, int)
    return float(Decimal(1).scaleb(exponent) / 2)

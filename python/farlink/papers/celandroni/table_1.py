"""Table I: goodput of five connections. Its columns of relation (1)."""

from __future__ import annotations

import math

from farlink.models.tcp_goodput import celandroni
from farlink.papers.check import Check, Verdict, number, rounding
from farlink.papers.estimate import Estimate
from farlink.papers.item import Drawing, Workbench

FLOWS = 5
RATE_SEGMENTS_PER_S = 455.0
# With it all eight cells agree: 0.50632 to 0.50636 s do.
RTT_S = 0.50634
# Timeout in s, loss, and the cell.
RELATION_1 = (
    (2.0, 1e-4, "2.656"),
    (2.0, 1e-3, "0.8345"),
    (2.0, 1e-2, "0.2478"),
    (2.0, 1e-1, "0.0429"),
    (1.0, 1e-4, "2.657"),
    (1.0, 1e-3, "0.8375"),
    (1.0, 1e-2, "0.2565"),
    (1.0, 1e-1, "0.0568"),
)
# Simulated goodput of the connections at a loss of 1e-2, and of all of them.
NS_2_AT_1E_2 = ("0.0469", "0.0471", "0.470", "0.0466", "0.0468")
NS_2_TOTAL = "0.234"


def table_1(_bench: Workbench) -> tuple[list[Check], list[Drawing]]:
    """The eight cells, the formula as printed, and a misprint among the simulated goodputs."""
    checks = [_cell(timeout_s, loss, printed) for timeout_s, loss, printed in RELATION_1]
    return [*checks, _as_printed(), _third_connection()], []


def total(timeout_s: float, loss: float) -> float:
    """Goodput of the five connections over the rate of the link, by relation (1)."""
    link = {"rtt_s": RTT_S, "rate_segments_per_s": RATE_SEGMENTS_PER_S}
    return FLOWS * float(celandroni.relation_1(loss, timeout_s=timeout_s, **link))


def _cell(timeout_s: float, loss: float, printed: str) -> Check:
    ours = Estimate(total(timeout_s, loss))
    cell = f"relation (1), timeout {timeout_s:g} s, loss {loss:g}: goodput of five over the rate"
    note = f"within the printed digits; T = {RTT_S:g} s, not τ + 1/μ = 0.5022 s as the text has it"
    check = Check("table-1", cell, float(printed), "model", ours, number(ours, printed), note)
    return check.fitted("T was chosen on these eight cells; 0.50632 to 0.50636 s meet all of them")


def _as_printed() -> Check:
    timeout_s, loss, printed = RELATION_1[2]
    waits = timeout_s * min(1.0, math.sqrt(3 * loss / 8)) * loss * (1 + 32 * loss**2)
    ours = Estimate(FLOWS * math.sqrt(1.5) / (RATE_SEGMENTS_PER_S * (math.sqrt(loss * RTT_S) + waits)))
    verdict = number(ours, printed)
    if verdict is Verdict.DIFFERS and number(Estimate(total(timeout_s, loss)), printed) is Verdict.AGREES:
        verdict = Verdict.MISPRINT
    note = "with T beside the root and a factor 3 in the probability of a timeout, as in Padhye's eq. (33), the table agrees"
    return Check("table-1", f"eq. (1) as printed, loss {loss:g}", float(printed), "model", ours, verdict, note)


def _third_connection() -> Check:
    printed, others = NS_2_AT_1E_2[2], [float(value) for place, value in enumerate(NS_2_AT_1E_2) if place != 2]
    rest = float(NS_2_TOTAL) - math.fsum(others)
    # Of the total's last digit and of the others'.
    unsure = rounding(NS_2_TOTAL) + sum(rounding(value) for value in NS_2_AT_1E_2 if value != printed)
    is_tenth = abs(float(printed) / 10 - rest) <= unsure
    verdict = Verdict.MISPRINT if is_tenth else number(Estimate(rest, unsure), printed)
    note = "the printed total less the four other connections: a misprint if that is a tenth of what is printed"
    cell = "ns-2, loss 1e-2: goodput of the third connection over the rate"
    return Check("table-1", cell, float(printed), "model", Estimate(rest), verdict, note)

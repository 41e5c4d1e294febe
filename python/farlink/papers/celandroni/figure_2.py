"""Figure 2: goodput of convolutional and Reed-Solomon codes, and what the text says beside it."""

from __future__ import annotations

from farlink.papers.celandroni.setting import (
    CN0,
    CODES_IN_WORDS,
    GOODPUT,
    HALF,
    PATH,
    SENSIBLY,
    all_points,
    drawn,
    envelopes,
    over,
    told,
)
from farlink.papers.check import Check
from farlink.papers.item import Drawing, Workbench

# Bit error rates that are usual as limits.
_LIMITS = (1e-5, 1e-6, 1e-7, 1e-8)
# Its reference [4], where that is shown, has convolutional codes only.
_OF_REFERENCE_4 = ("none", "CV")
# Where erasure codes alone carry anything, and more than one parity block is of use.
_ERASURES = tuple(cn0 for cn0 in CN0 if 70 <= cn0 <= 76)
_CONCATENATED = tuple(cn0 for cn0 in CN0 if cn0 <= 72)


def figure_2(bench: Workbench) -> tuple[list[Check], list[Drawing]]:
    """Envelopes of the two, of the block lengths of erasure codes, and goodput by a limit on the bit error rate."""
    found = envelopes(bench)
    together = over(found, "ER46+CV", "ER23+CV", _CONCATENATED)
    checks = [
        *(_by_limit(bench, limit) for limit in _LIMITS),
        told(
            "figure-2",
            "goodput with blocks of 23 bytes over that with 46, erasure codes alone, least over C/N0 of 70 to 76 dBHz",
            "the erasure code relative to 23-byte blocks performs better than the 46-byte one if the code is used alone",
            min(over(found, "ER23", "ER46", _ERASURES)),
            at_least=1.0,
            rule="agrees above 1; below 70 dBHz next to nothing arrives, above 76 dBHz one parity block is enough for both",
        ),
        told(
            "figure-2",
            "goodput with blocks of 46 bytes over that with 23, erasure codes with CV, mean over C/N0 of 66 to 72 dBHz",
            "when the code is concatenated with the CV one, the 46-byte code performs slightly better than the 23-byte one",
            sum(together) / len(together),
            at_least=1.0,
            rule=f"agrees above 1; {min(together):.2f} to {max(together):.2f} over C/N0, and alike above",
            cause="which is better depends on what finds a bad block and on how many parity blocks there are to choose from, "
            "both of which the paper leaves open",
        ),
    ]
    lines = {name: found[name] for name in ("CV", "RS")}
    caption = (
        f"{CODES_IN_WORDS} "
        "One connection on half of the carrier, the best rate of each family at each C/N0, by the rule of the paper."
    )
    drawing = Drawing("figure-2", "Goodput of convolutional and Reed-Solomon codes", caption, lambda: drawn(lines))
    return checks, [drawing]


def _by_limit(bench: Workbench, limit: float) -> Check:
    """Goodput of the fastest setting whose bit error rate is below a limit, over the best."""
    from farlink.tune.evaluate import best, rated

    shares = []
    for every in all_points(bench, HALF):
        row = [point for point in every if point.setting.family in _OF_REFERENCE_4]
        judged = rated(row, name=GOODPUT, flows=1, path=PATH)
        top = best(judged)
        allowed = [one for one in judged if one.point.ber <= limit]
        fastest = max(allowed, key=lambda one: one.point.information_bps, default=None)
        assert top is not None
        shares.append(fastest.goodput_bps / top.goodput_bps if fastest is not None else 0.0)
    return told(
        "figure-2",
        f"CV: goodput of the fastest setting with a bit error rate below {limit:g} over the best, least over C/N0",
        "imposing the BER below a certain threshold produces results that may sensibly differ from optimality",
        min(shares),
        at_most=1 - SENSIBLY,
        rule=f"agrees below {1 - SENSIBLY:g}; {', '.join(f'{share:.2f}' for share in shares)} from 66 to 78 dBHz",
    )

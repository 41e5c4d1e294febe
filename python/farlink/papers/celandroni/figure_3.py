"""Figure 3: the best goodput of each family of codes."""

from __future__ import annotations

from farlink.papers.celandroni.setting import CN0, CODES_IN_WORDS, HIGH, LOW, Envelopes, drawn, envelopes, over, told
from farlink.papers.check import Check
from farlink.papers.item import Drawing, Workbench

_ALONE = ("CV", "RS", "ER23", "ER46")
_CONCATENATED = ("RS+CV", "ER23+CV", "ER46+CV")
_PHYSICAL = ("CV", "RS")


def figure_3(bench: Workbench) -> tuple[list[Check], list[Drawing]]:
    """Concatenations first, erasure codes last, and where Reed-Solomon codes are better than convolutional ones."""
    found = envelopes(bench)
    best_printed = "the best performance is achieved by using concatenated codes, in particular by using RS plus CV ones"
    order_printed = "RS code outperforms the CV one only at high C/N0 values, while its performance is worse at low C/N0 values"
    checks = [
        told(
            "figure-3",
            f"goodput of RS+CV over that of the best other family, least over C/N0 of {where[0]:g} to {where[-1]:g} dBHz",
            best_printed,
            _worst(found, where),
            at_least=1.0,
            rule="agrees above 1",
            cause="from 72 dBHz up a code alone is enough, and a second one costs rate; the concatenation is then without its "
            "convolutional code, which is RS",
        )
        for where in (LOW, HIGH)
    ]
    checks += [
        told(
            "figure-3",
            "goodput of RS over that of CV, most over C/N0 of 66 to 70 dBHz",
            order_printed,
            max(over(found, "RS", "CV", LOW)),
            at_most=1.0,
            rule="agrees below 1",
        ),
        told(
            "figure-3",
            "goodput of RS over that of CV, most over C/N0 of 72 to 78 dBHz",
            order_printed,
            max(over(found, "RS", "CV", HIGH)),
            at_least=1.0,
            rule="agrees above 1 somewhere; RS is better at "
            + ", ".join(f"{cn0:g}" for cn0, ratio in zip(CN0, over(found, "RS", "CV", CN0), strict=True) if ratio > 1)
            + " dBHz",
        ),
        told(
            "figure-3",
            "goodput of the better erasure code over that of the worse of RS and CV, most over C/N0",
            "ER codes exhibit the worst performance",
            max(
                max(found[name][at] for name in ("ER23", "ER46")) / min(found[name][at] for name in _PHYSICAL)
                for at in range(len(CN0))
                if min(found[name][at] for name in _PHYSICAL) > 0
            ),
            at_most=1.0,
            rule="agrees below 1 everywhere",
            cause="where one parity block is enough, from 77 dBHz up, an erasure code costs less rate than a Reed-Solomon code "
            "of 32 bytes of parity, which all are that are shortened from (255, 223)",
        ),
    ]
    caption = (
        f"{CODES_IN_WORDS} "
        "One connection on half of the carrier, by the rule of the paper. Solid: a code alone; dashed: concatenations."
    )
    alone, both = ({name: found[name] for name in names} for names in (_ALONE, _CONCATENATED))
    drawing = Drawing("figure-3", "Best goodput of each family of codes", caption, lambda: drawn(alone, dashed=both))
    return checks, [drawing]


def _worst(found: Envelopes, where: tuple[float, ...]) -> float:
    others = [name for name in found if name != "RS+CV"]
    return min(found["RS+CV"][CN0.index(cn0)] / max(found[name][CN0.index(cn0)] for name in others) for cn0 in where)

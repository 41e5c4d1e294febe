"""Section IV: a carrier of one's own instead of a share in time."""

from __future__ import annotations

from farlink.papers.celandroni.setting import CN0, GOODPUT, HALF, PATH, SENSIBLY, modem, told
from farlink.papers.check import Check
from farlink.papers.item import Drawing, Workbench

_SHIFT_DB = 3.0
_FAMILIES = ("none", "RS", "ER23")


def section_4(_bench: Workbench) -> tuple[list[Check], list[Drawing]]:
    """Goodput of half of the carrier's time, and of a carrier of half the symbol rate at 3 dB less."""
    from farlink.tune.evaluate import best, rated
    from farlink.tune.points import points

    def goodputs(access: str, shift_db: float) -> list[float]:
        rows = points(modem(access=access), [cn0 - shift_db for cn0 in CN0], share=HALF, families=_FAMILIES)
        found = [best(rated(row, name=GOODPUT, flows=1, path=PATH)) for row in rows]
        return [0.0 if one is None else one.goodput_bps for one in found]

    shared, own = goodputs("tdma", 0.0), goodputs("scpc", _SHIFT_DB)
    apart = max(abs(one / other - 1) for one, other in zip(own, shared, strict=True) if other > 1e3)
    check = told(
        "section-4",
        "goodput of a carrier of 1 Msymbol/s at C/N0 less 3 dB over that of half of 2 Msymbol/s, largest difference",
        "the results are still valid if we decrement by 3 dB the range of C/N0 ratio (63-75)",
        apart,
        at_most=SENSIBLY,
        rule=f"agrees below {SENSIBLY:.0%}: 3 dB are not quite a factor of 2, and Reed-Solomon codes are steep; families "
        f"{', '.join(_FAMILIES)}",
    )
    return [check], []

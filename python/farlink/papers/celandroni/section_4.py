"""Section IV: a carrier of one's own instead of a share in time."""

from __future__ import annotations

import math
from collections.abc import Sequence

from farlink.papers.celandroni.setting import CN0, GOODPUT, HALF, PATH, SENSIBLY, Envelopes, modem, told
from farlink.papers.check import Check
from farlink.papers.item import Drawing, Workbench

_SHIFT_DB = 3.0
# Half the symbols need half the power.
_EXACT_DB = 10 * math.log10(2)
# Below it, in b/s, nothing is worth sending, and quotients say nothing.
_LEAST_BPS = 1e3
_CAUSE = "3 dB are 0.01 dB less than a factor of 2, and the goodput of this family falls steeply at that C/N0"


def section_4(bench: Workbench) -> tuple[list[Check], list[Drawing]]:
    """Goodput of half of the carrier's time, and of a carrier of half the symbol rate at 3 dB less, by family of codes."""
    shared, own, exact = (
        _envelopes(bench, access, shift_db) for access, shift_db in (("tdma", 0.0), ("scpc", _SHIFT_DB), ("scpc", _EXACT_DB))
    )
    return [_check(name, shared[name], own[name], exact[name]) for name in shared], []


def _envelopes(bench: Workbench, access: str, shift_db: float) -> Envelopes:
    """Best goodput of each family of codes at so much less C/N0; sending without a code belongs to all of them."""
    from farlink.tune import envelope
    from farlink.tune.points import points

    used = modem(access=access)
    families = [name for name, family in used.code.items() if family.kind != "uncoded"]
    with bench.watch(f"operating points, {access}, {shift_db:.4g} dB less") as progress:
        rows = points(used, [cn0 - shift_db for cn0 in CN0], share=HALF, progress=progress)
    found = envelope.envelopes(rows, families, name=GOODPUT, flows=1, path=PATH)
    return {name: tuple(0.0 if one is None else one.goodput_bps for one in row) for name, row in found.items()}


def _check(name: str, shared: Sequence[float], own: Sequence[float], exact: Sequence[float]) -> Check:
    (apart, where), (left, _) = _apart(shared, own), _apart(shared, exact)
    return told(
        "section-4",
        f"{name}: goodput of a carrier of 1 Msymbol/s at C/N0 less 3 dB over that of half of 2 Msymbol/s, largest difference",
        "the results are still valid if we decrement by 3 dB the range of C/N0 ratio (63-75)",
        apart,
        at_most=SENSIBLY,
        rule=f"agrees below {SENSIBLY:.0%}; largest at {where:g} dBHz; {left:.1g} with {_EXACT_DB:.4f} dB",
        cause=_CAUSE,
    )


def _apart(shared: Sequence[float], own: Sequence[float]) -> tuple[float, float]:
    """Largest difference, as a share, and the C/N0 of the shared carrier where it is."""
    found = zip(shared, own, CN0, strict=True)
    return max((abs(one / other - 1), cn0) for other, one, cn0 in found if other > _LEAST_BPS)

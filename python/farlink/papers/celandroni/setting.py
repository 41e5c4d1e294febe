"""The modem of section IV and the conditions of its figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import TYPE_CHECKING

import numpy as np

from farlink.papers.check import Check, claim
from farlink.papers.estimate import Estimate
from farlink.papers.item import Workbench
from farlink.tune.offered import Path
from farlink.units import scale_for

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from farlink.tune.modem import Modem
    from farlink.tune.points import Point

# C/N0 in dBHz.
CN0 = tuple(float(cn0) for cn0 in range(66, 79))
# Where codes are needed, and where they hardly are: "low" and "high C/N0".
LOW, HIGH = tuple(cn0 for cn0 in CN0 if cn0 <= 70), tuple(cn0 for cn0 in CN0 if cn0 >= 72)
HALF = 0.5
# "Sensibly" different: by more than a tenth.
SENSIBLY = 0.1

GOODPUT = "selection"
PATH = Path(round_trip_s=0.5, buffer_bdp=1.0, segments_per_ack=1)

# Best goodput of each family in b/s, in the order of the conditions; 0 where nothing is sent.
Envelopes = Mapping[str, Sequence[float]]


def modem(**changes: object) -> Modem:
    """The modem, with other keys than its file has."""
    import tomllib

    from farlink.tune.description import validated
    from farlink.tune.modem import Modem

    described = tomllib.loads(files(__package__).joinpath("modem.toml").read_text(encoding="utf-8"))
    return validated(Modem, {**described, **changes}, where="the modem")


def all_points(bench: Workbench, share: float, cn0_dbhz: Sequence[float] = CN0) -> list[list[Point]]:
    """Every setting of the modem at every condition."""
    from farlink.tune.points import points

    with bench.watch(f"operating points, share {share:g}") as progress:
        return points(modem(), cn0_dbhz, share=share, progress=progress)


def envelopes(bench: Workbench, share: float = HALF, flows: int = 1, path: Path = PATH) -> Envelopes:
    """Best goodput of each family of codes."""
    from farlink.tune import envelope

    families = [name for name, family in modem().code.items() if family.kind != "uncoded"]
    found = envelope.envelopes(all_points(bench, share), families, name=GOODPUT, flows=flows, path=path)
    return {name: tuple(0.0 if one is None else one.goodput_bps for one in row) for name, row in found.items()}


def over(envelope: Envelopes, above: str, below: str, where: Sequence[float]) -> list[float]:
    """Goodput of the one family over that of the other, at some conditions; infinite where the other has none."""
    pairs = ((envelope[above][CN0.index(cn0)], envelope[below][CN0.index(cn0)]) for cn0 in where)
    return [one / other if other else np.inf for one, other in pairs]


def told(
    item: str,
    cell: str,
    printed: str,
    value: float,
    *,
    rule: str,
    at_least: float = -np.inf,
    at_most: float = np.inf,
    cause: str = "",
) -> Check:
    """A check of a claim by goodputs of `GOODPUT`, put as bounds on a number; `cause` is said if it differs.

    Goodputs are relation (1) below half of the rate and the fluid engine's above; their intervals are not carried through.
    """
    found = Estimate(value)
    verdict = claim(found, at_least=at_least, at_most=at_most)
    note = f"{rule}; {cause}" if cause and not verdict.is_settled else rule
    return Check(item, cell, printed, "fluid", found, verdict, note)


CODES_IN_WORDS = (
    "CV: convolutional code; RS: Reed-Solomon code; ER23 and ER46: erasure code over blocks of 23 and 46 bytes; A+B: coded by "
    "A, then by B."
)


def drawn(lines: Mapping[str, Sequence[float]], *, dashed: Mapping[str, Sequence[float]] | None = None) -> Figure:
    """Curves of goodput against C/N0; those dashed share their colours."""
    from farlink.plot.curves import Line
    from farlink.plot.lines import lines as picture

    scale = scale_for("goodput_bps", [value for row in lines.values() for value in row])

    def places(row: Sequence[float]) -> list[tuple[float, float, float]]:
        return [(cn0, value * scale.factor, 0.0) for cn0, value in zip(CN0, row, strict=True)]

    solid = [Line(name, places(row), look) for look, (name, row) in enumerate(lines.items())]
    second = [Line(name, places(row), look, True) for look, (name, row) in enumerate((dashed or {}).items())]
    return picture([*solid, *second], x_label="C/N0 (dBHz)", y_label=f"best goodput ({scale.unit})")

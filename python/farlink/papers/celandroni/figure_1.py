"""Figure 1: minimum bit error rate against information rate at 67 dBHz."""

from __future__ import annotations

from typing import TYPE_CHECKING

from farlink.papers.celandroni.setting import CODES_IN_WORDS, GOODPUT, HALF, PATH, all_points, told
from farlink.papers.check import Check
from farlink.papers.item import Drawing, Workbench

if TYPE_CHECKING:
    from matplotlib.figure import Figure

AT_DBHZ = 67.0


def figure_1(bench: Workbench) -> tuple[list[Check], list[Drawing]]:
    """The staircase, and the setting of the best goodput on it."""
    from farlink.plot import staircase as picture
    from farlink.tune.evaluate import best, rated
    from farlink.tune.staircase import staircase

    (row,) = all_points(bench, HALF, [AT_DBHZ])
    steps = staircase(row)
    judged = {id(one.point): one for one in rated(row, name=GOODPUT, flows=1, path=PATH)}
    top, on_steps = best(list(judged.values())), best([judged[id(point)] for point in steps])
    assert top is not None
    assert on_steps is not None
    checks = [
        told(
            "figure-1",
            f"{AT_DBHZ:g} dBHz: best goodput of all {len(row)} settings over that of the {len(steps)} on the staircase",
            "the optimum operating point is chosen from the circled points on the graph",
            top.goodput_bps / on_steps.goodput_bps,
            at_most=1.001,
            rule=f"agrees if no other setting is better: the best is {top.point.setting.modulation} "
            f"{top.point.setting.code_name} with {top.goodput_bps / 1e6:.3f} Mb/s",
        )
    ]

    def draw() -> Figure:
        settings: dict[str, list[tuple[float, float]]] = {}
        for point in row:
            settings.setdefault(point.setting.family, []).append((point.information_bps, point.ber))
        minimum = [(point.information_bps, point.ber) for point in steps]
        return picture.staircase(settings, minimum, chosen=(top.point.information_bps, top.point.ber))

    caption = (
        f"{CODES_IN_WORDS} "
        "Half of the carrier. Circles: minimum bit error rate at an information rate; star: best goodput, by its rule."
    )
    return checks, [Drawing("figure-1", f"Minimum bit error rate against information rate at {AT_DBHZ:g} dBHz", caption, draw)]

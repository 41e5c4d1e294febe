"""Write the table of `docs/guides/tuning.md` on paths between those of a look-up table: `make papers`. Takes some minutes.

Tables of several grids of round trips and buffers are read at random paths, beside a direct evaluation of every setting there.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import page
from numpy.typing import NDArray

from farlink.tune import modem, study, table
from farlink.tune.evaluate import Rated, rated
from farlink.tune.offered import Path, Precision
from farlink.tune.path_reader import PathLookUp
from farlink.tune.points import Point, points
from farlink.tune.row import Row
from farlink.tune.staircase import candidates

MODEM = modem.load(page.ROOT / "studies" / "celandroni" / "modem.toml")
CN0_DBHZ = tuple(float(cn0) for cn0 in range(66, 79))
SHARE = 0.5
ROUND_TRIPS_S, BUFFERS_BDP = (0.02, 0.64), (0.25, 2.0)
# Round trips and buffers of the tables, by the model of goodput.
GRIDS = {
    "relation": ((2, 2), (3, 2), (5, 3), (11, 7)),
    "padhye": ((2, 2), (3, 2), (5, 3), (11, 7)),
    "fluid": ((3, 2), (5, 3)),
}
PRECISION = Precision(0.01, 0.99)
PLACES = 20
SEED = 1

Values = NDArray[np.float64]
Place = tuple[float, float]


@dataclass(frozen=True)
class Direct:
    """Goodput of every setting at every C/N0 of one path, evaluated there."""

    place: Place
    rated: list[list[Rated]]


def main() -> None:
    """Read the tables at the random paths, and write the rows of the guide."""
    page.start(__doc__)
    usable = study.Usable().loss
    at_cn0 = [candidates([point for point in row if point.loss <= usable]) for row in points(MODEM, CN0_DBHZ, share=SHARE)]
    head = [
        "| model | round trips, buffers | goodput of the table: lowest, median, highest error | lost by its setting: mean, "
        "most | by the nearest path's: mean, most |",
        "|---|---|---|---|---|",
    ]
    rows = [line for model in GRIDS for line in lines(model, evaluated(model, at_cn0))]
    page.write("../guides/tuning.md", {}, paths_between="\n".join([*head, *rows]))


def evaluated(model: str, at_cn0: list[list[Point]]) -> list[Direct]:
    """Evaluate all settings at random paths."""
    rng = np.random.default_rng(SEED)
    found = []
    for _ in range(PLACES):
        round_trip_s, buffer_bdp = (
            math.exp(rng.uniform(math.log(low), math.log(high))) for low, high in (ROUND_TRIPS_S, BUFFERS_BDP)
        )
        flat = [point for row in at_cn0 for point in row]
        each = iter(rated(flat, name=model, flows=1, path=Path(round_trip_s, buffer_bdp), precision=PRECISION))
        found.append(Direct((round_trip_s, buffer_bdp), [[next(each) for _ in row] for row in at_cn0]))
    return found


def lines(model: str, direct: Sequence[Direct]) -> Iterator[str]:
    """Rows of the table for one model of goodput."""
    words = f"`{model}`" + (", ± 1 %" if model == "fluid" else "")
    for count, grid in enumerate(GRIDS[model]):
        errors, lost, lost_near = compared(model, grid, direct)
        error = ", ".join(percent(value) for value in (errors.min(), np.median(errors), errors.max()))
        costs = [f"{percent(values.mean(), 2)}, {percent(values.max())}" for values in (lost, lost_near)]
        yield f"| {words if count == 0 else ''} | {grid[0]}, {grid[1]} | {error} | {costs[0]} | {costs[1]} |"


def compared(model: str, grid: tuple[int, int], direct: Sequence[Direct]) -> tuple[Values, Values, Values]:
    """Errors of a table's goodput, and what its settings and those of the nearest path lose, at every C/N0 and path."""
    round_trips_s, buffers_bdp = (
        tuple(map(float, np.geomspace(*ends, count))) for ends, count in zip((ROUND_TRIPS_S, BUFFERS_BDP), grid, strict=True)
    )
    asked = study.Study(
        modem="modem.toml",
        cn0_from_dbhz=CN0_DBHZ[0],
        cn0_to_dbhz=CN0_DBHZ[-1],
        shares=(SHARE,),
        round_trip_s=round_trips_s,
        buffer_bdp=buffers_bdp,
        goodput=model,
    )
    reader = PathLookUp(table.tune(asked, MODEM).rows)
    errors, lost, lost_near = [], [], []
    for one in direct:
        near = nearest(round_trips_s, one.place[0]), nearest(buffers_bdp, one.place[1])
        for row, near_row, settings in zip(read(reader, one.place), read(reader, near), one.rated, strict=True):
            best = max(setting.goodput_bps for setting in settings)
            reached, reached_near = (goodput_of(choice, settings) for choice in (row, near_row))
            errors.append(row.goodput_bps / reached - 1)
            lost.append(1 - reached / best)
            lost_near.append(1 - reached_near / best)
    return np.array(errors), np.array(lost), np.array(lost_near)


def nearest(axis: Sequence[float], wanted: float) -> float:
    """The value that is nearest in ratio."""
    return min(axis, key=lambda at: abs(math.log(at / wanted)))


def read(reader: PathLookUp, place: Place) -> list[Row]:
    """The choices of a table for a path, by C/N0."""
    return list(reader.on_path(round_trip_s=place[0], buffer_bdp=place[1]).lookup.rows(share=SHARE))


def goodput_of(choice: Row, settings: Sequence[Rated]) -> float:
    """What a choice reaches by direct evaluation."""
    (own,) = (setting for setting in settings if choice.is_set_as(setting.point.setting))
    return own.goodput_bps


def percent(share: float, digits: int = 1) -> str:
    """A share for a cell of the table."""
    shown = f"{100 * share:.{digits}f}"
    return "0" if float(shown) == 0 else f"{shown} %"


if __name__ == "__main__":
    main()

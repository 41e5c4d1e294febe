"""Figures of a study: the staircase at a C/N0, goodput of its table, envelopes of families of codes. One more is a line."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from farlink.intervals import percent
from farlink.plot.curves import Line
from farlink.plot.lines import lines
from farlink.tune.envelope import envelopes
from farlink.tune.evaluate import best, rated, worth_a_look
from farlink.tune.modem import Modem
from farlink.tune.points import points
from farlink.tune.staircase import staircase
from farlink.tune.study import Study
from farlink.tune.table import Table
from farlink.units import scale_for

if TYPE_CHECKING:
    from matplotlib.figure import Figure

X_LABEL = "C/N0 (dBHz)"


@dataclass(frozen=True)
class Tuned:
    """The subject of a figure.

    Attributes
    ----------
    study, modem, table
        What was tuned.
    at_dbhz
        The C/N0 of a figure that is of one.
    """

    study: Study
    modem: Modem
    table: Table
    at_dbhz: float

    @property
    def name(self) -> str:
        """Model of goodput."""
        return str(self.table.study["goodput"])


def draw(kind: str, tuned: Tuned) -> Figure:
    """A figure of a study; `kind` is a key of `FIGURES`."""
    return FIGURES[kind](tuned)


def _staircase(tuned: Tuned) -> Figure:
    from farlink.plot import staircase as picture

    study = tuned.study
    (row,) = points(tuned.modem, [tuned.at_dbhz], share=_last_share(tuned), families=study.families)
    usable = worth_a_look([point for point in row if point.loss <= study.usable.loss], study.over)
    judged = rated(
        usable,
        name=tuned.name,
        flows=study.flows[0],
        path=study.path,
        precision=study.simulated,
        impairment=study.over,
        tolerance=0.0,
        most_loss=study.usable.loss,
    )
    top = best([one for one in judged if not one.is_left_out])
    settings: dict[str, list[tuple[float, float]]] = {}
    for point in row:
        settings.setdefault(point.setting.family, []).append((point.information_bps, point.ber))
    return picture.staircase(
        settings,
        [(point.information_bps, point.ber) for point in staircase(row)],
        chosen=None if top is None else (top.point.information_bps, top.point.ber),
    )


def _last_share(tuned: Tuned) -> float:
    """The last share of the study, or its largest bandwidth."""
    study = tuned.study
    return study.shares[-1] if study.bandwidths_hz is None else study.shares_of(tuned.modem)[-1]


def _goodput(tuned: Tuned) -> Figure:
    scale = scale_for("goodput_bps", [row.goodput_bps or 0.0 for row in tuned.table.rows])
    drawn = []
    for place, rows in tuned.table.chosen():
        places = [
            (row.cn0_dbhz, (row.goodput_bps or 0.0) * scale.factor, (row.goodput_half_width_bps or 0.0) * scale.factor)
            for row in rows
        ]
        drawn.append(Line(place, places))
    has_intervals = any(row.goodput_half_width_bps for row in tuned.table.rows)
    intervals = f", {percent(tuned.study.precision.level)} intervals" if has_intervals else ""
    return lines(drawn, x_label=X_LABEL, y_label=f"goodput ({scale.unit}){intervals}")


def _envelopes(tuned: Tuned) -> Figure:
    study = tuned.study
    share, flows = max(study.shares_of(tuned.modem)), min(study.flows)
    rows = points(tuned.modem, study.cn0_dbhz, share=share, families=study.families)
    families = [name for name, family in tuned.modem.code.items() if family.kind != "uncoded"]
    kept = [name for name in families if study.families is None or name in study.families]
    if study.over is not None:
        # As many wrong bits as the others have by noise alone are not played.
        rows = [[point for point in row if point.loss <= study.usable.loss] for row in rows]
    found = envelopes(
        rows, kept, name=tuned.name, flows=flows, path=study.path, precision=study.simulated, impairment=study.over
    )
    return envelope_lines(
        {name: [None if one is None else one.goodput_bps for one in row] for name, row in found.items()}, study.cn0_dbhz
    )


def envelope_lines(found: dict[str, list[float | None]], cn0_dbhz: Sequence[float]) -> Figure:
    """Curves of the best goodput of families of codes against C/N0.

    Parameters
    ----------
    found
        For each family the best goodput in b/s at each C/N0, or None.
    cn0_dbhz
        The conditions.
    """
    scale = scale_for("goodput_bps", [value or 0.0 for row in found.values() for value in row])
    drawn = [
        Line(name, [(cn0, (value or 0.0) * scale.factor, 0.0) for cn0, value in zip(cn0_dbhz, row, strict=True)])
        for name, row in found.items()
    ]
    return lines(drawn, x_label=X_LABEL, y_label=f"best goodput ({scale.unit})")


FIGURES: dict[str, Callable[[Tuned], Figure]] = {
    "staircase": _staircase,
    "goodput": _goodput,
    "envelopes": _envelopes,
}

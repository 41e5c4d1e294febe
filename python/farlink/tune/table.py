"""Look-up tables: the modem's setting for each C/N0, share of the carrier and number of connections."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass, replace
from typing import Any

from farlink.tune.evaluate import Rated, best, rated
from farlink.tune.guard import Finding, guard
from farlink.tune.modem import Modem
from farlink.tune.points import Point, points
from farlink.tune.row import NO_TRANSMISSION, OK, Row
from farlink.tune.staircase import candidates
from farlink.tune.study import Study, Thresholds

Told = Callable[[int, int], None]
# Called with a title; returns a context whose value is called with the work done and planned.
Watch = Callable[[str], AbstractContextManager[Told]]


@dataclass(frozen=True)
class Table:
    """A look-up table.

    Attributes
    ----------
    title
        For people.
    study
        Its conditions, as in its file.
    modem
        Likewise.
    rows
        By share, number of connections and C/N0, in this order and ascending.
    findings
        The points at which it is not monotone, and why.
    remarks
        What else is to be known of its rows, a sentence each.
    """

    title: str
    study: dict[str, Any]
    modem: dict[str, Any]
    rows: list[Row]
    findings: list[Finding]
    remarks: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """The table as JSON knows it; what is unknown is None."""
        from farlink import __version__

        return {
            "farlink": __version__,
            "kind": "tuning table",
            "format": 1,
            "title": self.title,
            "study": self.study,
            "modem": self.modem,
            "is_monotone": not self.findings,
            "findings": [asdict(one) for one in self.findings],
            "remarks": list(self.remarks),
            "rows": [asdict(row) for row in self.rows],
        }


def tune(
    study: Study,
    modem: Modem,
    *,
    goodput: str | None = None,
    watch: Watch = lambda _title: nullcontext(lambda _done, _total: None),
) -> Table:
    """Make the look-up table of a study.

    Parameters
    ----------
    study
        Conditions and connections.
    modem
        What is to be set.
    goodput
        Model of goodput, instead of the study's.
    watch
        Called with the progress.

    Raises
    ------
    TuneError
        If there is no such model or engine.
    """
    rows: list[Row] = []
    remarks: list[str] = []
    name = goodput or study.goodput
    for share in study.shares_of(modem):
        with watch(f"operating points, share {share:g}") as progress:
            found = points(modem, study.cn0_dbhz, share=share, families=study.families, progress=progress)
        usable = [candidates([one for one in row if one.loss <= study.usable.loss]) for row in found]
        flat = [point for row in usable for point in row]
        for flows in sorted(study.flows):
            with watch(f"goodput by {name}, {flows} flows, share {share:g}") as progress:
                judged = rated(flat, name=name, flows=flows, path=study.path, precision=study.simulated, progress=progress)
            values = {id(one.point): one for one in judged}
            kept = [[values[id(point)] for point in row] for row in usable]
            entry, chosen = _entry(study, modem, share, flows, found, kept)
            rows += entry
            remarks += _beyond(modem, chosen, share, flows)
    # Of shares and bandwidths what the study has.
    described = study.model_dump(mode="json", exclude={"shares" if study.bandwidths_hz else "bandwidths_hz"})
    return Table(study.title, {**described, "goodput": name}, modem.model_dump(mode="json"), rows, guard(rows), tuple(remarks))


def _entry(
    study: Study, modem: Modem, share: float, flows: int, found: Sequence[Sequence[Point]], judged: Sequence[Sequence[Rated]]
) -> tuple[list[Row], list[Point]]:
    """The rows of a share and a number of connections, and the points in them."""
    rows: list[Row] = []
    used: list[Point] = []
    for cn0, every, row in zip(study.cn0_dbhz, found, judged, strict=True):
        chosen = _chosen(row, rows[-1] if rows else None, study.tolerance)
        if chosen is None or chosen.goodput_bps <= study.usable.goodput_bps:
            nothing = Row.of_nothing(cn0, share, flows, modem.access, _why(study, modem, every, chosen))
            rows.append(nothing)
        else:
            rows.append(Row.of(chosen, flows, modem.access))
            used.append(chosen.point)
    return _with_thresholds(rows, study.thresholds), used


def _beyond(modem: Modem, used: Sequence[Point], share: float, flows: int) -> list[str]:
    """Which rows are above what was measured of their setting."""
    above: dict[str, tuple[float, list[float]]] = {}
    for point in used:
        setting, end = point.setting, modem.known_to_dbhz(point.setting, share=share)
        if point.cn0_dbhz > end + 1e-6:
            name = f"{setting.modulation} {setting.code_name}, {setting.segment_bytes} bytes"
            above.setdefault(name, (end, []))[1].append(point.cn0_dbhz)
    where = f"share {share:g}, {flows} {'flow' if flows == 1 else 'flows'}"
    return [
        f"{where}, {_span(cn0)} dBHz: {name} was measured up to {end:.6g} dBHz only; its error rate there is used above"
        for name, (end, cn0) in above.items()
    ]


def _span(cn0_dbhz: Sequence[float]) -> str:
    return f"{cn0_dbhz[0]:g}" if len(cn0_dbhz) == 1 else f"{cn0_dbhz[0]:g} to {cn0_dbhz[-1]:g}"


def _chosen(row: Sequence[Rated], before: Row | None, tolerance: float) -> Rated | None:
    """The best setting, or that of the next lower C/N0 if it is nearly as good."""
    highest = best(row)
    if highest is None or before is None:
        return highest
    kept = next((one for one in row if before.is_set_as(one.point.setting)), None)
    return kept if kept is not None and kept.goodput_bps >= (1 - tolerance) * highest.goodput_bps else highest


def _why(study: Study, modem: Modem, every: Sequence[Point], chosen: Rated | None) -> str:
    """Why nothing is sent."""
    if not every:
        is_measured = any(family.kind == "measured" for family in modem.code.values())
        return f"the demodulator works with no setting{', or none was measured there' if is_measured else ''}"
    if chosen is None:
        least = min(one.loss for one in every)
        return f"every setting loses more than {study.usable.loss:g} of the segments; at best {least:.2g}"
    return f"no setting has a goodput above {study.usable.goodput_bps:g} b/s; at best {chosen.goodput_bps:.3g} b/s"


def _with_thresholds(rows: list[Row], thresholds: Thresholds) -> list[Row]:
    """The rows with the number of their step and the start and end of the step."""
    numbered: list[Row] = []
    step, down, up = 0, None, None
    for at, row in enumerate(rows):
        if at and row.differs_from(rows[at - 1]):
            step += 1
            down = round(row.cn0_dbhz + thresholds.margin_db, 9)
            up = round(down + thresholds.hysteresis_db, 9)
        numbered.append(replace(row, step=step, down_dbhz=down, up_dbhz=up))
    return numbered


__all__ = ["NO_TRANSMISSION", "OK", "Row", "Table", "tune"]

"""Look-up tables: the modem's setting for each C/N0, share of the carrier and number of connections."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass, replace
from itertools import groupby
from typing import Any

from farlink.tune.evaluate import Rated, best, rated, worth_a_look
from farlink.tune.goodput import GOODPUT
from farlink.tune.guard import Finding, guard
from farlink.tune.modem import Modem
from farlink.tune.offered import Path
from farlink.tune.points import Point, points
from farlink.tune.row import CANDIDATE, NO_TRANSMISSION, OK, Row
from farlink.tune.study import Study, Thresholds

Told = Callable[[int, int], None]
# Called with a title; returns a context whose value is called with the work done and planned.
Watch = Callable[[str], AbstractContextManager[Told]]
# Columns of tables over several paths only.
PATH_COLUMNS = ("round_trip_s", "buffer_bdp")


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
        By share, number of connections, path and C/N0, in this order and ascending; candidates after the row of their C/N0.
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
            "format": 1 if self.rows[0].path is None else 2,
            "title": self.title,
            "study": self.study,
            "modem": self.modem,
            "is_monotone": not self.findings,
            "findings": [_of_one_path(asdict(one)) for one in self.findings],
            "remarks": list(self.remarks),
            "rows": [_of_one_path(asdict(row)) for row in self.rows],
        }

    def chosen(self) -> list[tuple[str, list[Row]]]:
        """Each share, number of connections and path in words, with its rows over C/N0 less the candidates."""
        each = groupby(self.rows, key=lambda row: row.entry)
        lists = [[row for row in entry if row.status != CANDIDATE] for _, entry in each]
        return [(entry[0].place, entry) for entry in lists]


def _of_one_path(data: dict[str, Any]) -> dict[str, Any]:
    """Without the path, if it is not said: such files are as they were before tables had several."""
    return data if data["round_trip_s"] is not None else {name: data[name] for name in data if name not in PATH_COLUMNS}


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
    name, over = study.model_of(goodput), study.over
    # Between paths a reader needs the goodput of settings that are the best on another one.
    tolerance = study.tolerance if len(study.paths) == 1 else None
    for share in study.shares_of(modem):
        with watch(f"operating points, share {share:g}") as progress:
            found = points(modem, study.cn0_dbhz, share=share, families=study.families, progress=progress)
        usable = [worth_a_look([one for one in row if one.loss <= study.usable.loss], over) for row in found]
        flat = [point for row in usable for point in row]
        for flows in sorted(study.flows):
            judged = []
            with watch(f"goodput by {name}, {flows} flows, share {share:g}") as progress:
                for at, path in enumerate(study.paths):
                    part = _part(progress, at, len(study.paths))
                    every = rated(
                        flat,
                        name=name,
                        flows=flows,
                        path=path,
                        precision=study.simulated,
                        progress=part,
                        impairment=over,
                        tolerance=tolerance,
                        most_loss=study.usable.loss,
                    )
                    each = iter(every)
                    judged.append([[next(each) for _ in row] for row in usable])
            entries = [_entry(study, modem, share, flows, found, kept) for kept in judged]
            remarks += _beyond(modem, [point for _, chosen in entries for point in chosen], share, flows)
            rows += entries[0][0] if len(study.paths) == 1 else _over_paths(study, modem, judged, [one for one, _ in entries])
    remarks += _alike(study, name)
    # Of shares and bandwidths what the study has; of an impairment only if there is one.
    without = {"shares" if study.bandwidths_hz else "bandwidths_hz"} | ({"impairment", "seed"} if over is None else set())
    described = study.model_dump(mode="json", exclude=without)
    return Table(study.title, {**described, "goodput": name}, modem.model_dump(mode="json"), rows, guard(rows), tuple(remarks))


def _part(progress: Told, at: int, count: int) -> Told:
    """Progress of one of several equal parts."""
    return lambda done, total: progress(at * total + done, count * total)


def _alike(study: Study, name: str) -> list[str]:
    if len({path.buffer_bdp for path in study.paths}) == 1 or GOODPUT[name].uses_buffer:
        return []
    return [f"goodput by {name} does not depend on the buffer: rows of all buffers are alike"]


def _over_paths(
    study: Study, modem: Modem, judged: Sequence[Sequence[Sequence[Rated]]], entries: Sequence[Sequence[Row]]
) -> list[Row]:
    """Rows of all paths with their candidates: what is set at a C/N0 on any path, wherever it may be used.

    A reader needs the goodput of a setting on all paths around its own, also on those where another one is set.
    """
    at_cn0 = zip(*entries, strict=True)
    wanted = [{row.setting for row in rows if row.status == OK} for rows in at_cn0]
    found: list[Row] = []
    for path, kept, entry in zip(study.paths, judged, entries, strict=True):
        for settings, every, row in zip(wanted, kept, entry, strict=True):
            down, up = _ends(row.cn0_dbhz, study.thresholds)
            allowed = [one for one in every if one.goodput_bps > study.usable.goodput_bps and not one.is_left_out]
            others = [Row.of(one, row.flows, modem.access) for one in allowed]
            is_wanted = [one for one in others if one.setting in settings and one.setting != row.setting]
            candidates_here = [replace(one, status=CANDIDATE, step=-1, down_dbhz=down, up_dbhz=up) for one in is_wanted]
            found += [_on(one, path) for one in (row, *candidates_here)]
    return found


def _on(row: Row, path: Path) -> Row:
    return replace(row, round_trip_s=path.round_trip_s, buffer_bdp=path.buffer_bdp)


def _entry(
    study: Study, modem: Modem, share: float, flows: int, found: Sequence[Sequence[Point]], judged: Sequence[Sequence[Rated]]
) -> tuple[list[Row], list[Point]]:
    """The rows of a share and a number of connections, and the points in them."""
    rows: list[Row] = []
    used: list[Point] = []
    for cn0, every, row in zip(study.cn0_dbhz, found, judged, strict=True):
        # Over an impairment more is lost than by noise.
        lost = [one.point for one in row if one.is_left_out] if all(one.is_left_out for one in row) else []
        chosen = _chosen([one for one in row if not one.is_left_out], rows[-1] if rows else None, study.tolerance)
        if chosen is None or chosen.goodput_bps <= study.usable.goodput_bps:
            nothing = Row.of_nothing(cn0, share, flows, modem.access, _why(study, modem, lost or every, chosen))
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
            places = above.setdefault(name, (end, []))[1]
            if point.cn0_dbhz not in places:
                places.append(point.cn0_dbhz)
    where = f"share {share:g}, {flows} {'flow' if flows == 1 else 'flows'}"
    return [
        f"{where}, {_span(cn0)} dBHz: {name} was measured up to {end:.6g} dBHz only; its error rate there is used above"
        for name, (end, cn0) in ((name, (end, sorted(cn0))) for name, (end, cn0) in above.items())
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
            down, up = _ends(row.cn0_dbhz, thresholds)
        numbered.append(replace(row, step=step, down_dbhz=down, up_dbhz=up))
    return numbered


def _ends(cn0_dbhz: float, thresholds: Thresholds) -> tuple[float, float]:
    """C/N0 below which a step that begins here is left, and at which it is entered."""
    down = round(cn0_dbhz + thresholds.margin_db, 9)
    return down, round(down + thresholds.hysteresis_db, 9)


__all__ = ["NO_TRANSMISSION", "OK", "Row", "Table", "tune"]

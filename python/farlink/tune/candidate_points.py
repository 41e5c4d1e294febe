"""The candidate points of each condition with their goodput: those on the staircase, and those that can be the best."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from itertools import product
from typing import Any

from farlink.tune.evaluate import Rated, best, rated, worth_a_look
from farlink.tune.modem import Modem
from farlink.tune.points import Point, points
from farlink.tune.staircase import staircase
from farlink.tune.study import Study

Told = Callable[[int, int], None]
Watch = Callable[[str], AbstractContextManager[Told]]

COLUMNS = (
    "share", "flows", "cn0_dbhz", "symbol_rate_hz", "modulation", "family", "code", "segment_bytes", "esn0_db", "ebn0_db",
    "information_bps", "ber", "loss", "goodput_bps", "goodput_half_width_bps", "goodput_level", "is_on_staircase", "is_best",
)  # fmt: skip


def candidate_points(
    study: Study,
    modem: Modem,
    *,
    goodput: str | None = None,
    watch: Watch = lambda _title: nullcontext(lambda _done, _total: None),
) -> list[dict[str, Any]]:
    """A row for each candidate point, at each share, number of connections and C/N0.

    Parameters
    ----------
    study, modem
        Conditions, and the modem whose settings are chosen.
    goodput
        Model of goodput, instead of the study's.
    watch
        Called with a title; returns a context whose value is called with the work done and planned.

    Returns
    -------
    list of dict
        With the keys `COLUMNS`, and of a study of several paths `round_trip_s` and `buffer_bdp`; from the slowest to the
        fastest point of a condition. Over an impairment all that noise leaves usable, with the losses of both.
    """
    rows = []
    name, over = study.model_of(goodput), study.over
    for share in study.shares_of(modem):
        with watch(f"operating points, share {share:g}") as progress:
            found = points(modem, study.cn0_dbhz, share=share, families=study.families, progress=progress)
        steps = [{id(point) for point in staircase(every)} for every in found]
        kept = [_kept(every, on, study) for every, on in zip(found, steps, strict=True)]
        for flows, path in product(sorted(study.flows), study.paths):
            with watch(f"goodput, {flows} flows, share {share:g}") as progress:
                judged = rated(
                    [point for row in kept for point in row],
                    name=name,
                    flows=flows,
                    path=path,
                    precision=study.simulated,
                    progress=progress,
                    impairment=over,
                )
            each = iter(judged)
            where = {"round_trip_s": path.round_trip_s, "buffer_bdp": path.buffer_bdp} if len(study.paths) > 1 else {}
            for row, on in zip(kept, steps, strict=True):
                reached = [next(each) for _ in row]
                steps_here = [id(point) in on for point in row]
                top = best(reached)
                rows += [
                    {
                        **_cells(one, flows, study.precision.level),
                        "is_on_staircase": is_step,
                        "is_best": one is top,
                        **where,
                    }
                    for one, is_step in zip(reached, steps_here, strict=True)
                ]
    return rows


def to_csv(rows: Sequence[dict[str, Any]]) -> str:
    """The rows as CSV, with 1 for true and 0 for false."""
    page = io.StringIO()
    writer = csv.DictWriter(page, list(rows[0]) if rows else COLUMNS, lineterminator="\n")
    writer.writeheader()
    for row in rows:
        writer.writerow({name: int(value) if isinstance(value, bool) else value for name, value in row.items()})
    return page.getvalue()


def _cells(one: Rated, flows: int, level: float) -> dict[str, Any]:
    point, setting = one.point, one.point.setting
    return {
        "share": point.share,
        "flows": flows,
        "cn0_dbhz": point.cn0_dbhz,
        "symbol_rate_hz": setting.symbol_rate_hz,
        "modulation": setting.modulation,
        "family": setting.family,
        "code": setting.code_name,
        "segment_bytes": setting.segment_bytes,
        "esn0_db": point.esn0_db,
        "ebn0_db": point.ebn0_db,
        "information_bps": point.information_bps,
        "ber": point.ber,
        "loss": point.loss,
        "goodput_bps": one.goodput_bps,
        "goodput_half_width_bps": one.half_width_bps,
        "goodput_level": level,
    }


def _kept(every: Sequence[Point], on_staircase: set[int], study: Study) -> list[Point]:
    can_be_best = {id(point) for point in worth_a_look(every, study.over)}
    kept = [point for point in every if id(point) in on_staircase or id(point) in can_be_best]
    if study.over is not None:
        # Noise alone makes the others useless, and as many wrong bits as they have are not played.
        kept = [point for point in kept if point.loss <= study.usable.loss]
    return sorted(kept, key=lambda point: point.information_bps)

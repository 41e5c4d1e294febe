"""One result from those of pieces: points numbered anew, rows in order, the summary made from them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from farlink.build import SHOWN
from farlink.columns import Columns
from farlink.errors import ArgumentError
from farlink.scenario import Point, Scenario

if TYPE_CHECKING:
    from farlink.result import Result

Table = Mapping[str, Any]

# What scenarios of pieces may differ in; the seed is compared by itself, as a scenario need not name it.
_GRID = ("grid", "grid_zip")
_VARIES = (*_GRID, "title", "engines", "runs", "precision", "seed")


def concatenated(pieces: Sequence[Result]) -> dict[str, Any]:
    """The fields of the result of pieces that differ from those of the first; see `Result.concat`.

    Raises
    ------
    ArgumentError
        If there is no piece, one has no rows or is of another build or scenario, or a run of a point occurs twice.
    """
    _check_alike(pieces)
    places, points, numbers, scenario = _renumbered(pieces)
    rows = stacked([_moved(piece.columns, place) for piece, place in zip(pieces, places, strict=True)])
    summary = stacked([_moved(piece.summary_columns, place) for piece, place in zip(pieces, places, strict=True)])
    columns, summary_columns = by_engine(rows, summary, _engines(scenario, rows["engine"]))
    return {
        "scenario": scenario,
        "points": points,
        "columns": columns,
        "summary_columns": summary_columns,
        "interrupted": any(piece.interrupted for piece in pieces),
        "approximations": list(dict.fromkeys(one for piece in pieces for one in piece.approximations)),
        "notes": list(dict.fromkeys(note for piece in pieces for note in piece.notes)),
        "failure": next((piece.failure for piece in pieces if piece.failure is not None), None),
        "numbers": numbers,
    }


def stacked(tables: Sequence[Table]) -> dict[str, Any]:
    """The rows of tables with the same columns, one after the other: numbers as arrays, texts as lists."""
    columns: dict[str, Any] = {}
    for name in tables[0] if tables else ():
        parts = [table[name] for table in tables]
        is_text = any(isinstance(part, list) for part in parts)
        columns[name] = [value for part in parts for value in part] if is_text else np.concatenate(parts)
    return columns


def in_order(columns: Table, *keys: str) -> dict[str, Any]:
    """Rows sorted by these columns; rows with equal keys keep their order."""
    return chosen(columns, np.lexsort([columns[key] for key in reversed(keys)]))


def chosen(columns: Table, rows: Sequence[int] | np.ndarray[Any, Any]) -> dict[str, Any]:
    """Some rows, by their numbers."""
    return {
        name: [values[row] for row in rows] if isinstance(values, list) else values[rows] for name, values in columns.items()
    }


def by_engine(rows: Table, summary: Table, engines: Sequence[str]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Rows sorted by engine, point and run, and the summary that belongs to them, made anew where it follows from the rows.

    Parameters
    ----------
    rows, summary
        Those of all pieces.
    engines
        In the order of the table.

    Raises
    ------
    ArgumentError
        If a run occurs twice, or rows are incomplete.
    """
    all_rows, all_summary = [], []
    for engine in engines:
        own = in_order(_of(rows, engine), "point", "run")
        all_rows.append(own)
        all_summary.append(_summary(engine, own, summary))
    return stacked(all_rows), stacked(all_summary)


def refused(error: ValueError) -> ArgumentError:
    """What the extension says of rows that it cannot use."""
    message, _, remedy = str(error).partition("; ")
    return ArgumentError(message, remedy)


def _summary(engine: str, rows: Table, summary: Table) -> dict[str, Any]:
    if engine == "packet":
        from farlink import _core

        try:
            return dict(Columns(_core.summarise(rows)))
        except ValueError as error:
            raise refused(error) from error
    # The intervals of the other engines come from within a run.
    ordered = in_order(_of(summary, engine), "point")
    points = [int(point) for point, flow in zip(ordered["point"], ordered["flow"], strict=True) if flow == "all"]
    for one, other in pairwise(points):
        if one == other:
            raise ArgumentError(f"rows: run 0 of point {one} occurs twice", "give each run once")
    return ordered


def _of(columns: Table, engine: str) -> dict[str, Any]:
    return chosen(columns, [row for row, of in enumerate(columns["engine"]) if of == engine])


def _moved(columns: Table, numbers: Sequence[int]) -> dict[str, Any]:
    """The same rows with other numbers of points: point ``i`` becomes ``numbers[i]``."""
    return {**columns, "point": np.asarray(numbers, dtype=np.uint64)[columns["point"].astype(np.intp)]}


def _check_alike(pieces: Sequence[Result]) -> None:
    """Refuse pieces that do not belong together."""
    if not pieces:
        raise ArgumentError("results: there is no piece", "give at least one result")
    for number, piece in enumerate(pieces):
        if not piece.columns:
            raise ArgumentError(f"results: entry {number} has no rows", "run it with rows=True")
        if piece.build != pieces[0].build:
            message = f"results: entry {number} is of build {piece.build[:SHOWN]}, entry 0 of {pieces[0].build[:SHOWN]}"
            raise ArgumentError(message, "run both with the same build: rows of two need not be alike")
        for key in sorted({*_common(piece), *_common(pieces[0])}):
            if _common(piece).get(key) != _common(pieces[0]).get(key):
                message = f"results: entry {number} is of another scenario than entry 0: they differ in {key}"
                raise ArgumentError(message, "vary it in the grid of one scenario")


def _common(piece: Result) -> dict[str, Any]:
    """What pieces must have in common."""
    return {"seed": piece.seed} | {key: value for key, value in piece.scenario.data.items() if key not in _VARIES}


def _renumbered(pieces: Sequence[Result]) -> tuple[list[list[int]], list[Point], list[int] | None, Scenario]:
    """The new numbers of each piece's points, all points, their numbers in the grid, and the scenario."""
    scenario = pieces[0].scenario
    if all(piece.scenario.data.get(key) == scenario.data.get(key) for piece in pieces for key in _GRID):
        known: dict[int, Point] = {}
        for piece in pieces:
            known |= dict(zip(_numbers(piece), piece.points, strict=True))
        order = {number: place for place, number in enumerate(sorted(known))}
        places = [[order[number] for number in _numbers(piece)] for piece in pieces]
        is_whole = any(piece.numbers is None for piece in pieces)
        return places, [known[number] for number in order], None if is_whole else list(order), scenario
    placed: dict[str, int] = {}
    points: list[Point] = []
    places = []
    for piece in pieces:
        texts = [json.dumps(point, sort_keys=True) for point in piece.points]
        for text, point in zip(texts, piece.points, strict=True):
            if text not in placed:
                placed[text] = len(points)
                points.append(point)
        places.append([placed[text] for text in texts])
    return places, points, None, _listed(pieces, points)


def _listed(pieces: Sequence[Result], points: Sequence[Point]) -> Scenario:
    """A scenario with exactly these points."""
    for point in points:
        if point.keys() != points[0].keys():
            message = f"results: one varies {', '.join(points[0]) or 'nothing'}, another {', '.join(point) or 'nothing'}"
            raise ArgumentError(message, "vary the same keys in all of them; a grid may have lists of one value")
    first = pieces[0].scenario
    data = {key: value for key, value in first.data.items() if key not in ("grid", "grid_zip")}
    if points[0]:
        data["grid_zip"] = [{path: [point[path] for point in points] for path in points[0]}]
    engines = list(dict.fromkeys(name for piece in pieces for name in piece.scenario.data.get("engines", ["packet"])))
    return Scenario({**data, "engines": engines}, first.base)


def _numbers(piece: Result) -> Sequence[int]:
    return range(len(piece.points)) if piece.numbers is None else piece.numbers


def _engines(scenario: Scenario, found: Sequence[str]) -> list[str]:
    """The engines of rows, in the order in which the scenario names them."""
    named = [name for name in scenario.data.get("engines", ()) if name in found]
    return list(dict.fromkeys([*named, *found]))

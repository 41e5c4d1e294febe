"""The basis of a look-up table: its rows, and the model and path of its study."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from farlink.errors import TuneError
from farlink.tune import files
from farlink.tune.offered import Path as NetworkPath
from farlink.tune.path_reader import PathLookUp
from farlink.tune.reader import LookUp
from farlink.tune.row import OK, Row
from farlink.untrusted import read_text, toml_tables

_REMEDY = "make one with: farlink tune STUDY.toml -o table.json"
_PARSE: dict[str, Callable[[str], dict[str, Any]]] = {".json": json.loads, ".toml": toml_tables}


@dataclass(frozen=True)
class Basis:
    """A look-up table with its model of goodput.

    Attributes
    ----------
    lookup
        The table.
    goodput
        Model or engine.
    path
        The path of connections other than the link.
    usable_loss
        Largest loss that the study allows.
    warnings
        What was outside the table, a sentence each.
    """

    lookup: LookUp
    goodput: str
    path: NetworkPath
    usable_loss: float
    warnings: tuple[str, ...] = ()


def basis(path: str | Path, *, round_trip_s: float | None = None, buffer_bdp: float | None = None) -> Basis:
    """Read a table with its study.

    Parameters
    ----------
    path
        A table as JSON or TOML; as CSV it has no study.
    round_trip_s, buffer_bdp
        Path to enter a table over several paths with, in s and in bandwidth-delay products; see `PathLookUp.on_path`.

    Raises
    ------
    TuneError
        If it cannot be read, is not a look-up table, or does not say what it was made for; if the path that is given does not
        go with those of the table.

    Warns
    -----
    TuningWarning
        If the path lies outside the table.
    """
    path = Path(path)
    if path.suffix == ".csv":
        raise TuneError(f"{path}: a table as CSV does not say what its goodput is by", _REMEDY)
    rows = files.read_rows(path)
    study: Any = _PARSE[path.suffix](read_text(path, TuneError)).get("study")
    if isinstance(study, dict) and study.get("impairment") is not None:
        raise TuneError(
            f"{path}: the table is for a link with an impairment ({study['impairment'].get('kind')}), which a series of C/N0 "
            "does not have",
            "make a table without [impairment]",
        )
    asked = {"round_trip_s": round_trip_s, "buffer_bdp": buffer_bdp}
    lookup, said = _lookup(path, rows, asked)
    try:
        ends = {name: _one(study[name]) if value is None else value for name, value in asked.items()}
        network = NetworkPath(ends["round_trip_s"], ends["buffer_bdp"], int(study["segments_per_ack"]))
        found = Basis(lookup, str(study["goodput"]), network, float(study["usable"]["loss"]), said)
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise TuneError(f"{path}: the table does not say what study it is of", _REMEDY) from error
    if all(row.status != OK for row in rows):
        raise TuneError(f"{path}: nothing is sent at any C/N0 of the table", "make one up to a higher C/N0")
    return found


def _lookup(path: Path, rows: list[Row], asked: dict[str, float | None]) -> tuple[LookUp, tuple[str, ...]]:
    """Settings to choose from on the path that is asked for, and what was outside the table."""
    if all(row.path is None for row in rows):
        given = [name for name, value in asked.items() if value is not None]
        if given:
            remedy = f"leave it out, or tune a study with several: {given[0]} = [...]"
            raise TuneError(f"{given[0]} is given, and {path} is a table of one path", remedy)
        return LookUp(rows), ()
    found = PathLookUp(rows).on_path(**asked)
    return found.lookup, found.warnings


def _one(value: Any) -> float:
    """A key of the study that has one value, as a number or as a list."""
    (only,) = value if isinstance(value, list) else (value,)
    return float(only)

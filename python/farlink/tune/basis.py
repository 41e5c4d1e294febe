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
from farlink.tune.reader import LookUp
from farlink.tune.row import OK
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
    """

    lookup: LookUp
    goodput: str
    path: NetworkPath
    usable_loss: float


def basis(path: str | Path) -> Basis:
    """Read a table with its study.

    Parameters
    ----------
    path
        A table as JSON or TOML; as CSV it has no study.

    Raises
    ------
    TuneError
        If it cannot be read, is not a look-up table, or does not say what it was made for.
    """
    path = Path(path)
    if path.suffix == ".csv":
        raise TuneError(f"{path}: a table as CSV does not say what its goodput is by", _REMEDY)
    rows = files.read_rows(path)
    study: Any = _PARSE[path.suffix](read_text(path, TuneError)).get("study")
    try:
        network = NetworkPath(float(study["round_trip_s"]), float(study["buffer_bdp"]), int(study["segments_per_ack"]))
        found = Basis(LookUp(rows), str(study["goodput"]), network, float(study["usable"]["loss"]))
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise TuneError(f"{path}: the table does not say what study it is of", _REMEDY) from error
    if all(row.status != OK for row in rows):
        raise TuneError(f"{path}: nothing is sent at any C/N0 of the table", "make one up to a higher C/N0")
    return found

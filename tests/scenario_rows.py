"""Every column of the rows of scenarios, with all digits that tell numbers apart, so that machines can be compared.

Usage:  python tests/scenario_rows.py FOLDER FILE...     writes FOLDER/NAME.rows

A FILE is a scenario, of which one run is computed, of `geo-tcp` all; or random scenarios, one of JSON a line (`NAME.jsonl`). It
needs an installed farlink, and no other file of the project.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import farlink

WHOLE = "geo-tcp"


def rows_of(scenario: Path | Mapping[str, Any], runs: int | None) -> str:
    """Columns of the rows, one a line; where the scenario cannot be run, why."""
    try:
        rows = farlink.run(scenario, runs=runs).rows
    except farlink.FarlinkError as error:
        return f"refused: {error}\n"
    return "".join(f"{name}: {values!r}\n" for name, values in rows.items())


def main() -> None:
    """Run what is asked for."""
    folder, *files = map(Path, sys.argv[1:])
    folder.mkdir(parents=True, exist_ok=True)
    for path in files:
        if path.suffix == ".jsonl":
            lines = path.read_text(encoding="utf-8").splitlines()
            text = "".join(rows_of(json.loads(line), 1) for line in lines)
        else:
            text = rows_of(path, None if path.stem == WHOLE else 1)
        (folder / path.with_suffix(".rows").name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()

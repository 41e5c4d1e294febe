"""Studies: in pieces, in any order (`Study`), and in a folder that outlives processes and machines (`open`).

- `pieces`: any runs of any grid point, with the rows of the whole study
- `plan`: what a study in a folder consists of: units of work, each with a key
- `store`: the folder, with a file for each finished unit
- `execute`: does one unit; `local` and `cluster` say where
- `coordinate`: gives units out until all are done
- `progress`: how far it is
- `sample`: points that are drawn, in place of a grid; `indices`: how much each parameter of them matters
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from farlink.study.pieces import Study

if TYPE_CHECKING:
    from pathlib import Path

    from farlink.study.opened import OpenedStudy

__all__ = ["Study", "open"]


def open(folder: str | Path) -> OpenedStudy:
    """Open the folder of `farlink sweep`, also while it runs.

    Parameters
    ----------
    folder
        What ``-o`` has named.

    Returns
    -------
    OpenedStudy
        Its ``status()`` and ``result()``.

    Raises
    ------
    StudyError
        If no study lies there, or it is of another build or version of the format.
    """
    from farlink.study.opened import OpenedStudy

    return OpenedStudy.at(folder)

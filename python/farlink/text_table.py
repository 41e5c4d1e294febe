"""Tables of plain text, as wide as the terminal that they are printed to at most."""

from __future__ import annotations

import textwrap
from collections.abc import Collection, Sequence

from farlink.shown import WIDTH

_LEAST_TEXT = 20


def table(head: Sequence[str], rows: Sequence[Sequence[str]], *, texts: Collection[str] = ()) -> str:
    """Columns side by side, the first left-aligned and the others right-aligned if all are short.

    Columns that do not fit `farlink.shown.WIDTH` continue below, next to the first column again.

    Parameters
    ----------
    head
        Names of the columns.
    rows
        Cells of each row.
    texts
        Names of columns of words, such as a source: left-aligned, and wrapped if they are too wide.

    Examples
    --------
    >>> print(table(("link", "calls"), [("m1", "12"), ("modem-2", "7")]))
    link     calls
    m1          12
    modem-2      7
    >>> print(table(("code", "K", "source"), [("7,5", "3", "Odenwalder 1970")], texts=("source",)))
    code  K  source
    7,5   3  Odenwalder 1970
    """
    width = WIDTH.get()
    if width is not None and len(head) > 1:
        parts = _parts(head, rows, width) if len(head) > 2 else [[0, 1]]
        chosen = [[[row[number] for number in part] for row in (head, *rows)] for part in parts]
        return "\n\n".join(_side_by_side(first, others, texts, width) for first, *others in chosen)
    return _side_by_side(head, rows, texts, None)


def _parts(head: Sequence[str], rows: Sequence[Sequence[str]], width: int) -> list[list[int]]:
    """The columns next to the first one in each part, so that each part fits `width`."""
    widths = [max(len(row[index]) for row in (head, *rows)) + 2 for index in range(len(head))]
    if sum(widths) - 2 <= width:
        return [list(range(len(head)))]
    parts: list[list[int]] = []
    for number in range(1, len(head)):
        if not parts or sum(widths[at] for at in parts[-1]) + widths[number] - 2 > width:
            parts.append([0])
        parts[-1].append(number)
    return parts


def _side_by_side(head: Sequence[str], rows: Sequence[Sequence[str]], texts: Collection[str], width: int | None) -> str:
    # A last cell before empty ones may run on over them.
    widths = [
        max(len(row[index]) for row in (head, *rows) if index == 0 or _is_filled(row, index)) for index in range(len(head))
    ]
    lines = []
    for row in (head, *rows):
        cells = [row[0].ljust(widths[0])]
        folded: list[str] = []
        for index in range(1, len(row)):
            if head[index] in texts:
                before = sum(widths[:index]) + 2 * index
                if width is not None and index == len(row) - 1:
                    room = max(_LEAST_TEXT, width - before)
                    first, *folded = textwrap.wrap(row[index], room) or [""]
                    folded = [" " * before + line for line in folded]
                    cells.append(first)
                else:
                    cells.append(row[index].ljust(widths[index]))
                continue
            is_run_on = not any(row[index + 1 :]) and len(row[index]) > widths[index]
            cells.append(row[index] if is_run_on else row[index].rjust(widths[index]))
        lines += ["  ".join(cells).rstrip(), *folded]
    return "\n".join(lines)


def _is_filled(row: Sequence[str], index: int) -> bool:
    """Whether a cell has its column to itself: the row has something after it, or it is the last."""
    return index + 1 == len(row) or any(row[index + 1 :])

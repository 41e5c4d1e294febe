"""Short tables, by which objects of any size are shown in a console."""

from __future__ import annotations

from collections.abc import Sequence
from contextvars import ContextVar

from farlink.untrusted import printable

# How wide tables of text may be; None for as wide as they are.
WIDTH: ContextVar[int | None] = ContextVar("WIDTH", default=None)

_MOST_ROWS = 8
_MOST_COLUMNS = 7
_MOST_CELL = 24
_MOST_TITLE = 160


def counted(count: int, name: str) -> str:
    """How many of something.

    Examples
    --------
    >>> counted(1, "flow"), counted(2, "more row")
    ('1 flow', '2 more rows')
    """
    return f"{count:,} {name}{'' if count == 1 else 's'}"


def short_table(title: str, head: Sequence[str], rows: Sequence[Sequence[str]], remedy: str) -> str:
    """A title and the first rows and columns of a table, in less than 2,000 characters.

    Parameters
    ----------
    title
        The first line.
    head
        Names of the columns.
    rows
        Cells of each row.
    remedy
        Where to find the rest.

    Examples
    --------
    >>> print(short_table("Two", ["flow", "goodput"], [["a", "1 ± 0.1"], ["b", "2"]], "rows has all"))
    Two
    flow  goodput
    a     1 ± 0.1
    b     2
    """
    shown = [head, *rows[:_MOST_ROWS]]
    texts = [[printable(cell, _MOST_CELL) for cell in row[:_MOST_COLUMNS]] for row in shown]
    widths = [max(map(len, column)) for column in zip(*texts, strict=True)]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in texts]
    left = []
    if len(rows) > _MOST_ROWS:
        left.append(counted(len(rows) - _MOST_ROWS, "more row"))
    if len(head) > _MOST_COLUMNS:
        left.append(counted(len(head) - _MOST_COLUMNS, "more column"))
    if left:
        lines.append(f"{' and '.join(left)}; {remedy}")
    return "\n".join([printable(title, _MOST_TITLE), *lines])


def fitting(widths: Sequence[int], width: int, keep: int) -> list[int] | None:
    """Numbers of the columns that stand side by side in a width: those that are kept, and of the others as many as fit.

    Parameters
    ----------
    widths
        Of each column, with the space around it.
    width
        What there is.
    keep
        So many of the first columns are always shown.

    Returns
    -------
    list of int or None
        None if not even those fit.

    Examples
    --------
    >>> fitting([10, 10, 30, 10], 35, 2)
    [0, 1, 3]
    """
    left = width - sum(widths[:keep])
    if left < 0:
        return None
    chosen = list(range(keep))
    for number in range(keep, len(widths)):
        if widths[number] <= left:
            chosen.append(number)
            left -= widths[number]
    return chosen

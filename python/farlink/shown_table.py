"""Tables that fit the width they are printed in: no figure is cut, and every column that is left out is named."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table
from rich.text import Text

from farlink.shown import fitting

Headings = Sequence[tuple[str, bool]]

# Between two columns: a space on either side, and the box's own.
_AROUND = 3


class _Fitting(Table):
    """A table that is laid out for the present width of the console."""

    def __init__(self, headings: Headings, body: Sequence[Sequence[str]], keep: int, **look: Any) -> None:
        super().__init__(**look)
        self._cells = headings, body, keep

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        headings, body, keep = self._cells
        if sum(_widths(headings, body)) > options.max_width:
            yield from console.render(fitted(headings, body, keep=keep, width=options.max_width), options)
        else:
            yield from super().__rich_console__(console, options)


def fitted(headings: Headings, body: Sequence[Sequence[str]], *, keep: int, width: int | None = None) -> Table:
    """A table of text.

    Parameters
    ----------
    headings
        Of each column, and whether it is of numbers.
    body
        Cells of each row.
    keep
        So many of the first columns are never left out.
    width
        How wide it may be; by default as wide as the console that it is printed on.
    """
    look: dict[str, Any] = {"box": SIMPLE_HEAD, "header_style": "bold", "pad_edge": False}
    if width is None:
        return _filled(_Fitting(headings, body, keep, **look), headings, body, range(len(headings)))
    shown = fitting(_widths(headings, body), width, keep)
    if shown is None:
        return _listed(headings, body)
    table = _filled(Table(**look), headings, body, shown)
    left = [headings[number][0].partition("\n")[0] for number in range(len(headings)) if number not in shown]
    if left:
        table.caption = Text(f"left out at this width: {', '.join(left)}")
        table.caption_justify = "left"
    return table


def _widths(headings: Headings, body: Sequence[Sequence[str]]) -> list[int]:
    columns = zip(headings, *body, strict=True)
    return [max(map(len, [*heading.split("\n"), *cells])) + _AROUND for (heading, _), *cells in columns]


def _filled(table: Table, headings: Headings, body: Sequence[Sequence[str]], shown: Sequence[int]) -> Table:
    for number in shown:
        heading, is_number = headings[number]
        table.add_column(heading, justify="right" if is_number else "left", no_wrap=True, vertical="bottom")
    for row, ends_group in _grouped(body):
        table.add_row(*(Text(row[number]) for number in shown), end_section=ends_group)
    return table


def _listed(headings: Headings, body: Sequence[Sequence[str]]) -> Table:
    """Each row as a list: name, value and unit."""
    table = Table(box=SIMPLE_HEAD, show_header=False, pad_edge=False)
    table.add_column(overflow="fold")
    table.add_column(overflow="fold")
    for row in body:
        for number, ((heading, _), cell) in enumerate(zip(headings, row, strict=True), start=1):
            name, _, unit = heading.partition("\n")
            table.add_row(Text(name), Text(f"{cell} {unit}".rstrip()), end_section=number == len(row))
    return table


def _grouped(body: Sequence[Sequence[str]]) -> Iterator[tuple[Sequence[str], bool]]:
    """Rows, each with whether a new value of the first column follows it."""
    has_groups = len({row[0] for row in body}) < len(body)
    for i, row in enumerate(body, start=1):
        yield row, has_groups and i < len(body) and body[i][0] != row[0]

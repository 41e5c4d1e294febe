"""The page of a connection of a bundle: facts, when which line was up, tables. One file that needs no network."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from farlink import __version__
from farlink.report.page import filled

_WIDTH, _ROW, _LABEL = 720, 26, 110
# Outcome -> colour, and what is drawn at its end, so that colour alone tells nothing.
_LOOKS = {
    "dropped": ("#0072b2", "×"),
    "injected": ("#56b4e9", "i"),
    "ended": ("#009e73", ""),
    "open": ("#009e73", "→"),
}


@dataclass(frozen=True)
class Bar:
    """A time in which a line was up.

    Attributes
    ----------
    begin, end
        Parts of the whole time, 0 to 1.
    outcome
        ``dropped``, ``injected``, ``ended`` or ``open``.
    words
        What a reader sees who points at it.
    """

    begin: float
    end: float
    outcome: str
    words: str


Table = tuple[str, Sequence[str], Iterable[Sequence[str]]]


def connection_page(
    title: str, facts: Iterable[tuple[str, str]], bars: Sequence[tuple[str, Sequence[Bar]]], tables: Iterable[Table]
) -> str:
    """The page as HTML.

    Parameters
    ----------
    title
        Of the page.
    facts
        Names and values.
    bars
        Lines, and when each was up.
    tables
        Heading, head and rows of each table; one without rows is left out.
    """
    return filled(
        "connection.html",
        title=_text(title),
        facts="".join(f"<div><dt>{_text(name)}</dt><dd>{_text(value)}</dd></div>" for name, value in facts),
        timeline=_timeline(bars),
        tables="".join(_table(*table) for table in tables),
        version=_text(__version__),
    )


def _timeline(bars: Sequence[tuple[str, Sequence[Bar]]]) -> str:
    height = _ROW * len(bars)
    shapes = []
    for at, (name, found) in enumerate(bars):
        y = _ROW * at
        shapes.append(f'<text x="0" y="{y + 17}">{_text(name)}</text>')
        shapes.append(f'<rect x="{_LABEL}" y="{y + 4}" width="{_WIDTH - _LABEL}" height="18" fill="#e8ecf0"/>')
        shapes += [_bar(y, one) for one in found]
    svg = (
        f'<svg viewBox="0 0 {_WIDTH + 12} {height}" role="img" aria-label="When each line was up" '
        f'style="min-width: 30rem; font-size: 13px">{"".join(shapes)}</svg>'
    )
    caption = "From begin to end of the connection. Coloured: up; × dropped by the network, i by an injected drop, → still up."
    return (
        f'<figure><h3>When each line was up</h3><div class="scroll">{svg}</div><figcaption>{caption}</figcaption></figure>'
        if bars
        else ""
    )


def _bar(y: int, one: Bar) -> str:
    colour, mark = _LOOKS.get(one.outcome, _LOOKS["ended"])
    span = _WIDTH - _LABEL
    x, end = _LABEL + span * one.begin, _LABEL + span * one.end
    words = f"<title>{_text(one.words)}</title>"
    shape = f'<rect x="{x:.1f}" y="{y + 4}" width="{max(end - x, 0.8):.1f}" height="18" fill="{colour}">{words}</rect>'
    return shape + (f'<text x="{end - 1:.1f}" y="{y + 17}" fill="#a53a00" font-weight="700">{mark}</text>' if mark else "")


def _table(heading: str, head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    body = "".join("<tr>" + "".join(f"<td>{_text(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    if not body:
        return ""
    cells = "".join(f'<th scope="col">{_text(cell)}</th>' for cell in head)
    table = f"<table><thead><tr>{cells}</tr></thead><tbody>{body}</tbody></table>"
    return f'<h2>{_text(heading)}</h2><div class="scroll">{table}</div>'


def _text(text: str) -> str:
    return html.escape(text)

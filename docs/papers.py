"""Write the validation page and the pictures of every paper: `make papers`, or `python docs/papers.py KEY ...` for some.

A page is `docs/validation/KEY.md`; its pictures are `docs/pictures/KEY-ITEM.svg`.
"""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path

import paper_verdict

from farlink import papers
from farlink.cli.progress import progress_bar
from farlink.papers.check import Check, Verdict
from farlink.papers.item import Outcome, Paper, Workbench
from farlink.plot.style import picture_svg

ROOT = Path(__file__).resolve().parent.parent
PICTURES = ROOT / "docs" / "pictures"


def main(keys: list[str]) -> None:
    """Compute the papers and write their pages."""
    for key in keys or list(papers.PAPERS):
        paper = papers.load(key)
        outcomes = list(Workbench(watch=progress_bar).outcomes(papers.ready_items(paper)))
        for name, text in pages_of(paper, outcomes).items():
            page = ROOT / "docs" / "validation" / name
            page.parent.mkdir(exist_ok=True)
            page.write_text(text, encoding="utf-8")
            print(page.relative_to(ROOT))
        for outcome in outcomes:
            for drawing in outcome.drawings:
                picture = PICTURES / picture_name(paper, drawing.name)
                svg = picture_svg(drawing.draw(), drawing.name)
                picture.write_text(svg, encoding="utf-8")
                print(picture.relative_to(ROOT))


def picture_name(paper: Paper, drawing: str) -> str:
    """File of a picture."""
    return f"{paper.key}-{drawing}.svg"


def pages_of(paper: Paper, outcomes: list[Outcome]) -> dict[str, str]:
    """The page of a paper, and the appendices of a long one, by their names in `docs/validation`."""
    sections = {outcome.item.key: "\n".join(section(paper, outcome)) for outcome in outcomes}
    lines = [
        f"<!-- Written by docs/papers.py (`make papers`) from `farlink papers {paper.key}`. -->",
        f"# {paper.title}",
        "",
        paper_verdict.verdict(sections),
        "",
        wrapped(f"{paper.authors}."),
        "",
        f"    farlink papers {paper.key} --report {paper.key}.html",
        "",
        wrapped(
            "± is the half-width of the 95 % interval. The tolerance of a number is half a unit of its last printed digit, "
            "and what its rule adds. A number differs if its whole interval lies outside the tolerance; it agrees if the "
            "interval reaches into the tolerance and its half-width is at most half of the tolerance; otherwise it is "
            "undecided. A claim in words is put as bounds on a number, and agrees if the whole interval lies within them. "
            "Fitted means as close as that, but a setting, a definition or the tolerance was chosen on the numbers "
            "compared: that confirms nothing, and the rule says what was chosen."
        ),
        "",
        "## What the paper leaves open",
        "",
        *(wrapped(f"- {sentence}", "  ") for sentence in paper.setting),
        "",
    ]
    left = [f"- {item.key}, {item.title}: {item.not_yet}" for item in paper.items if item.not_yet]
    tail = "\n".join(["## Not yet", "", *left]) if left else ""
    return paper_verdict.arranged(paper.key, "\n".join(lines), sections, tail)


def section(paper: Paper, outcome: Outcome) -> Iterator[str]:
    """Tables and pictures of an item."""
    yield f"## {outcome.item.key}"
    yield ""
    yield f"{outcome.item.title}."
    yield ""
    for drawing in outcome.drawings:
        yield f"![{drawing.heading}](../pictures/{picture_name(paper, drawing.name)})"
        yield ""
        yield wrapped(drawing.caption)
        yield ""
        if drawing.table:
            yield from numbers(drawing.table)
            yield ""
    yield "| what | printed | farlink | verdict |"
    yield "|---|---|--:|---|"
    yield from map(row, outcome.checks)
    yield ""
    rules = dict.fromkeys(check.note for check in outcome.checks)
    yield from (wrapped(f"- {rule}", "  ") for rule in rules)
    yield ""


def numbers(table: Sequence[Sequence[str]]) -> Iterator[str]:
    """The numbers of a picture as a table, the first column on the left."""
    head, *rest = table
    yield f"| {' | '.join(head)} |"
    yield f"|---|{'--:|' * (len(head) - 1)}"
    yield from (f"| {' | '.join(cells)} |" for cells in rest)


def row(check: Check) -> str:
    """A line of the table."""
    verdict = str(check.verdict) if check.verdict is Verdict.AGREES else f"**{check.verdict}**"
    return f"| {check.cell} | {check.printed} | {check.shown} | {verdict} |"


def wrapped(text: str, indent: str = "") -> str:
    """Text in lines of at most 128 characters."""
    return textwrap.fill(text, 128, subsequent_indent=indent, break_on_hyphens=False, break_long_words=False)


if __name__ == "__main__":
    main(sys.argv[1:])

"""The report of a paper: printed and computed values side by side, with figures and the scenarios that were run."""

from __future__ import annotations

import html
from collections.abc import Sequence
from pathlib import Path

from farlink.output import whole_file
from farlink.papers.check import Check, Verdict
from farlink.papers.item import Outcome, Paper
from farlink.report.page import figure_element, filled

_CLASS = {
    Verdict.AGREES: "agrees",
    Verdict.FITTED: "fitted",
    Verdict.DIFFERS: "differs",
    Verdict.UNDECIDED: "undecided",
    Verdict.MISPRINT: "misprint",
}


def write_paper(paper: Paper, outcomes: Sequence[Outcome], path: str | Path, *, command: str) -> None:
    """Write the report of a paper as one HTML file that needs no network.

    Parameters
    ----------
    paper
        Which paper.
    outcomes
        Its items, as they were computed.
    path
        The file; it appears whole or not at all.
    command
        The command that computed them, to print in the report.
    """
    text = render_paper(paper, outcomes, command=command)
    with whole_file(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def render_paper(paper: Paper, outcomes: Sequence[Outcome], *, command: str) -> str:
    """The report's HTML; see `write_paper`."""
    from farlink import __version__

    checks = [check for outcome in outcomes for check in outcome.checks]
    counts = [(str(verdict), sum(check.verdict is verdict for check in checks)) for verdict in Verdict]
    seeds = sorted({str(scenario.data["seed"]) for outcome in outcomes for scenario in outcome.scenarios.values()})
    return filled(
        "paper.html",
        title=_text(paper.title),
        lead=_text(f"{paper.authors}. What is printed, beside what farlink computes, ± the half-width of the 95 % interval."),
        facts="".join(f"<div><dt>{_text(name)}</dt><dd>{count}</dd></div>" for name, count in counts if count),
        setting="".join(f"<p>{_text(sentence)}</p>" for sentence in paper.setting),
        items="".join(map(_item, outcomes)),
        scenarios="".join(
            f"<details><summary>Scenario {_text(name)}</summary><pre>{_text(scenario.to_toml())}</pre></details>"
            for outcome in outcomes
            for name, scenario in outcome.scenarios.items()
        ),
        command=_text(command),
        version=_text(__version__),
        seed=", ".join(seeds) or "–",
    )


def _item(outcome: Outcome) -> str:
    heading = f"{outcome.item.key}: {outcome.item.title}"
    figures = "".join(
        figure_element(drawing.draw(), drawing.name, drawing.heading, drawing.caption) + _numbers(drawing.table)
        for drawing in outcome.drawings
    )
    head = "<th>what</th><th>printed</th><th class='n'>farlink</th><th>verdict</th><th>rule and remarks</th>"
    rows = "".join(map(_row, outcome.checks))
    table = f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>'
    return f"<h2>{_text(heading)}</h2>{figures}{table}"


def _numbers(table: Sequence[Sequence[str]]) -> str:
    if not table:
        return ""
    lines = [
        "".join(_cell("td" if place else "th", cell, column) for column, cell in enumerate(cells))
        for place, cells in enumerate(table)
    ]
    body = "".join(f"<tr>{line}</tr>" for line in lines[1:])
    return f'<div class="scroll"><table><thead><tr>{lines[0]}</tr></thead><tbody>{body}</tbody></table></div>'


def _cell(name: str, text: str, column: int) -> str:
    """A cell of a table of numbers: all but the first column on the right."""
    look = ' class="n"' if column else ""
    return f"<{name}{look}>{_text(text)}</{name}>"


def _row(check: Check) -> str:
    return (
        f'<tr><td class="wrap">{_text(check.cell)}</td><td class="wrap">{_text(str(check.printed))}</td>'
        f'<td class="n">{_text(check.shown)}</td><td class="{_CLASS[check.verdict]}">{_text(str(check.verdict))}</td>'
        f'<td class="wrap">{_text(check.note)}</td></tr>'
    )


def _text(text: str) -> str:
    return html.escape(text)

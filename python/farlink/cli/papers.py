"""`farlink papers`."""

from __future__ import annotations

import io
import json as json_text
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from farlink.cli.messages import data, note, user_errors
from farlink.cli.progress import progress_bar

if TYPE_CHECKING:
    from rich.console import RenderableType

    from farlink.papers.item import Outcome, Paper

EXAMPLES = """
[bold]Examples[/bold]

farlink papers

farlink papers brodbekier

farlink papers brodbekier --item figure-2 --report figure-2.html

farlink papers brodbekier --json - | jq '.[] | select(.verdict != "agrees")'

farlink papers brodbekier --item figure-2 --scenarios mine && farlink run mine/figure-2.toml --set link.delay_s=0.3
"""


def papers(
    paper: Annotated[
        str | None, typer.Argument(metavar="[PAPER]", help="Which paper; without it, the list of papers.", show_default=False)
    ] = None,
    item: Annotated[
        list[str] | None,
        typer.Option(metavar="KEY", help="Table or figure, such as figure-2. Repeatable.", show_default="all that are ready"),
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Fewer runs: less precise, some verdicts undecided.")] = False,
    runs: Annotated[int | None, typer.Option(help="Runs per grid point.", show_default="each item's own")] = None,
    seed: Annotated[int, typer.Option(help="Seed of every random stream.")] = 1,
    threads: Annotated[int | None, typer.Option(help="Threads to run on.", show_default="every core")] = None,
    json: Annotated[str | None, typer.Option(metavar="FILE|-", help="Write the checks as JSON; - is standard output.")] = None,
    report: Annotated[
        Path | None, typer.Option(metavar="FILE.html", help="Write a report with figures, in one file that needs no network.")
    ] = None,
    figures: Annotated[Path | None, typer.Option(metavar="DIR", help="Write the figures as PNG.")] = None,
    scenarios: Annotated[Path | None, typer.Option(metavar="DIR", help="Write the scenarios that were run as TOML.")] = None,
) -> None:
    """Compute tables and figures of published papers and compare them with what is printed.

    Exit status 0: everything agrees or was fitted. 1: something differs, or stays undecided. 2: the input is wrong.
    """
    with user_errors():
        from farlink import papers as library
        from farlink.papers.item import Interrupted, Workbench

        if paper is None:
            _list([library.load(key) for key in library.PAPERS], is_alone=not (item or json or report or figures or scenarios))
            return
        chosen = library.load(paper)
        items = library.chosen_items(chosen, item or [])
        _check_numbers(runs=runs, seed=seed, threads=threads)
        _check_destinations(json, report, figures, scenarios)
        if not item:
            for left in (one for one in chosen.items if one.not_yet):
                note(f"note: {left.key} is left out: {left.not_yet}")

        bench = Workbench(runs=runs, seed=seed, quick=quick, threads=threads, watch=progress_bar)
        outcomes: list[Outcome] = []
        is_interrupted = False
        try:
            for outcome in bench.outcomes(items):
                outcomes.append(outcome)
                if json != "-":
                    _print_outcome(outcome)
                _write_pieces(outcome, figures, scenarios)
        except (Interrupted, KeyboardInterrupt):
            is_interrupted = True
            note(f"interrupted: {len(outcomes)} of {len(items)} items finished and kept")
        _write(chosen, outcomes, json, report)
        if is_interrupted:
            raise typer.Exit(130)
        raise typer.Exit(_conclude(outcomes))


def _list(papers: list[Paper], *, is_alone: bool) -> None:
    from rich.table import Table

    from farlink.errors import FarlinkError

    if not is_alone:
        raise FarlinkError("no paper is named", f"for example: farlink papers {papers[0].key}")
    for paper in papers:
        table = Table.grid(padding=(0, 2))
        for item in paper.items:
            table.add_row(f"  {item.key}", item.title, f"not yet: {item.not_yet}" if item.not_yet else _duration(item.takes_s))
        _print(f"{paper.key}: {paper.authors}: {paper.title}", table)


def _duration(time_s: float) -> str:
    return f"about {time_s:g} s" if time_s < 100 else f"about {time_s / 60:.0f} min"


def _print_outcome(outcome: Outcome) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    from farlink.papers.check import Verdict

    looks = {
        Verdict.AGREES: "green",
        Verdict.FITTED: "cyan",
        Verdict.DIFFERS: "bold red",
        Verdict.UNDECIDED: "yellow",
        Verdict.MISPRINT: "magenta",
    }
    table = Table(box=SIMPLE_HEAD, header_style="bold", pad_edge=False)
    table.add_column("what", ratio=5)
    table.add_column("printed", ratio=4)
    table.add_column("farlink", justify="right", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    for check in outcome.checks:
        table.add_row(check.cell, str(check.printed), check.shown, f"[{looks[check.verdict]}]{check.verdict}[/]")
    numbers = [_numbers(drawing.table) for drawing in outcome.drawings if drawing.table]
    remarks = dict.fromkeys(check.note for check in outcome.checks if check.verdict is not Verdict.AGREES)
    _print(f"{outcome.item.key}: {outcome.item.title}", *numbers, table, *(f"  {remark}" for remark in remarks))


def _numbers(cells: tuple[tuple[str, ...], ...]) -> RenderableType:
    """The numbers of a figure."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    head, *rest = cells
    table = Table(box=SIMPLE_HEAD, header_style="bold", pad_edge=False)
    for place, name in enumerate(head):
        table.add_column(name, justify="right" if place else "left")
    for row in rest:
        table.add_row(*map(Text, row))
    return table


def _print(title: str, *parts: RenderableType) -> None:
    from rich.console import Console

    is_terminal = sys.stdout is not None and sys.stdout.isatty()
    page = io.StringIO()
    console = Console(file=page, force_terminal=is_terminal, width=None if is_terminal else 140, highlight=False)
    console.print(title, style="bold", markup=False)
    for part in parts:
        console.print(part, markup=False) if isinstance(part, str) else console.print(part)
    console.print()
    text = page.getvalue()
    data(text if is_terminal else "".join(f"{line.rstrip()}\n" for line in text.splitlines()))


def _write_pieces(outcome: Outcome, figures: Path | None, scenarios: Path | None) -> None:
    """Write the outputs of an item as soon as they exist."""
    from farlink.output import whole_file

    if figures is not None:
        figures.mkdir(parents=True, exist_ok=True)
        for drawing in outcome.drawings:
            path = figures / f"{drawing.name}.png"
            with whole_file(path) as temporary:
                drawing.draw().savefig(temporary, format="png", dpi=150)
            note(f"figure: {path}")
    if scenarios is not None:
        scenarios.mkdir(parents=True, exist_ok=True)
        for name, scenario in outcome.scenarios.items():
            path = scenarios / f"{name}.toml"
            with whole_file(path) as temporary:
                temporary.write_text(scenario.to_toml(), encoding="utf-8")
            note(f"scenario: {path}")


def _write(paper: Paper, outcomes: list[Outcome], json: str | None, report: Path | None) -> None:
    from farlink.output import whole_file

    checks = [check.to_dict(paper.key) for outcome in outcomes for check in outcome.checks]
    text = json_text.dumps(checks, allow_nan=False, ensure_ascii=False, indent=1) + "\n"
    if json == "-":
        data(text)
    elif json:
        with whole_file(json) as temporary:
            temporary.write_text(text, encoding="utf-8")
        note(f"json: {json}")
    if report is not None and outcomes:
        from farlink.report.papers import write_paper

        write_paper(paper, outcomes, report, command=shlex.join(["farlink", *sys.argv[1:]]))
        note(f"report: {report}")


def _conclude(outcomes: list[Outcome]) -> int:
    """Say how many verdicts there are of each kind; the exit status."""
    from farlink.papers.check import Verdict

    verdicts = [check.verdict for outcome in outcomes for check in outcome.checks]
    counts = [f"{verdicts.count(verdict)} {verdict}" for verdict in Verdict if verdict in verdicts]
    note(f"{len(verdicts)} checks: {', '.join(counts)}")
    if Verdict.UNDECIDED in verdicts:
        note("undecided: the interval is too wide for a verdict; give more --runs")
    return 0 if all(verdict.is_settled for verdict in verdicts) else 1


def _check_numbers(*, runs: int | None, seed: int, threads: int | None) -> None:
    from farlink.errors import FarlinkError
    from farlink.limits import check_seed, check_threads

    if runs is not None and runs < 1:
        raise FarlinkError(f"--runs {runs} is below 1", "give at least 2, so that there is an interval")
    check_seed(seed)
    check_threads(threads)


def _check_destinations(json: str | None, report: Path | None, figures: Path | None, scenarios: Path | None) -> None:
    from farlink.destinations import check_outputs
    from farlink.extras import require
    from farlink.output import check_directory

    check_outputs([("--json", json, "JSON"), ("--report", report, "report")])
    if figures is not None:
        require("matplotlib", "a figure")
    if scenarios is not None:
        require("tomli_w", "writing TOML")
    for directory in (figures, scenarios):
        if directory is not None:
            check_directory(directory)

"""`farlink tune`: look-up tables of modulation, code and packet size."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from farlink.cli.messages import data, note, user_errors
from farlink.cli.progress import progress_bar

if TYPE_CHECKING:
    from farlink.tune.modem import Modem
    from farlink.tune.study import Study
    from farlink.tune.table import Table

EXAMPLES = """
[bold]Examples[/bold]

farlink tune studies/celandroni/tune.toml -o table.csv -o table.json

farlink tune studies/celandroni/tune.toml --goodput padhye --plot envelopes=envelopes.svg --plot staircase=staircase.svg --at 67

[bold]An impaired link[/bold]

A study may name an impairment on top of the modem's noise, as a scenario names a channel. Goodput is then by the packet engine.

\\[impairment]
kind = "outage"
rate_per_s = 0.1
down_s = 0.005
"""


def tune(
    study: Annotated[
        Path, typer.Argument(metavar="STUDY", help="Study of a modem's settings (TOML); it names the modem's file.")
    ],
    output: Annotated[
        list[Path] | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="Look-up table to write, .csv, .json or .toml; may be repeated.",
            show_default=False,
        ),
    ] = None,
    goodput: Annotated[
        str | None,
        typer.Option(
            "--goodput",
            "--engine",
            metavar="NAME",
            help="What goodput is by: relation, padhye, padhye-approximate, mathis, fluid, selection or packet.",
            show_default="the study's",
        ),
    ] = None,
    plot: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KIND=PICTURE",
            help="Picture to write, .png, .svg or .pdf: staircase, goodput or envelopes; may be repeated.",
            show_default=False,
        ),
    ] = None,
    points: Annotated[
        Path | None,
        typer.Option(
            metavar="CSV",
            help="Operating points to write: those of the fewest bit errors at their rate, and those that can be the best.",
            show_default=False,
        ),
    ] = None,
    at: Annotated[
        float | None, typer.Option(metavar="DBHZ", help="C/N0 of the staircase.", show_default="the study's lowest")
    ] = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Exit with 1 if goodput falls with C/N0 for no good reason.")
    ] = False,
) -> None:
    """Find the modulation, code and packet size of the best goodput at each C/N0, and write them as a look-up table.

    A line for each setting: where it is the best, what it reaches, and between which C/N0 a modem leaves and enters it. Error
    rates of convolutional codes are simulated once, and kept in the cache folder. So is goodput over an impaired link: after
    Ctrl-C the same command goes on from there.
    """
    with user_errors():
        from farlink.destinations import check_outputs
        from farlink.tune import files
        from farlink.tune import goodput as models
        from farlink.tune import study as studies
        from farlink.tune import table as tables
        from farlink.tune.describe import report

        targets = output or []
        for target in targets:
            files.check_suffix(target)
        pictures = _pictures(plot or [])
        named = [("-o", target, "") for target in targets]
        drawn = [("--plot", path, "picture") for _, path in pictures]
        check_outputs([*named, ("--points", points, "CSV"), *drawn], {"the study": study})
        if goodput is not None:
            models.check(goodput)
        read, modem = studies.load(study)
        read.model_of(goodput)
        made = tables.tune(read, modem, goodput=goodput, watch=lambda title: progress_bar(title, "points"))
        data(report(made))
        _say(made)
        for target in targets:
            files.write(made, target)
            note(f"table: {target}")
            if read.over is not None and target.suffix == ".csv":
                note(f"note: {target} has rows only, which do not say that the link is impaired; .json and .toml do")
        if points is not None:
            _write_points(points, read, modem, goodput)
        if pictures:
            from farlink.tune.figures import Tuned

            tuned = Tuned(read, modem, made, read.cn0_from_dbhz if at is None else at)
            for kind, picture in pictures:
                _draw(kind, picture, tuned)
        if strict and not all(one.is_harmless for one in made.findings):
            raise typer.Exit(1)


def _say(made: Table) -> None:
    """Say whether the table is monotone, or why not."""
    for finding in made.findings:
        note(f"{'note' if finding.is_harmless else 'warning'}: not monotone: {finding}")
    for remark in made.remarks:
        note(f"note: {remark}")
    for place, rows in made.chosen():
        for _, found in groupby(rows, key=lambda row: row.step):
            last = list(found)[-1]
            if last.reason:
                note(f"note: {place}, up to {last.cn0_dbhz:g} dBHz: no transmission: {last.reason}")


def _pictures(asked: list[str]) -> list[tuple[str, Path]]:
    from farlink.errors import OutputError
    from farlink.near_names import instead

    found = []
    kinds = ["staircase", "goodput", "envelopes"]
    for one in asked:
        kind, equals, name = one.partition("=")
        path = Path(name)
        if not equals or not name:
            raise OutputError(f"--plot {one}: not of the form KIND=PICTURE", "for example: --plot envelopes=envelopes.svg")
        if kind not in kinds:
            raise OutputError(f"--plot {one}: there is no picture {kind!r}", instead(kind, kinds))
        found.append((kind, path))
    return found


def _write_points(path: Path, study: Study, modem: Modem, goodput: str | None) -> None:
    from farlink.output import whole_file
    from farlink.tune.candidate_points import candidate_points, to_csv

    rows = candidate_points(study, modem, goodput=goodput, watch=lambda title: progress_bar(title, "points"))
    with whole_file(path) as temporary:
        temporary.write_text(to_csv(rows), encoding="utf-8")
    note(f"points: {path}")


def _draw(kind: str, path: Path, tuned: object) -> None:
    from farlink.output import whole_file
    from farlink.tune import figures

    assert isinstance(tuned, figures.Tuned)
    figure = figures.draw(kind, tuned)
    with whole_file(path) as temporary:
        figure.savefig(temporary, format=path.suffix.removeprefix("."), dpi=150)
    note(f"picture: {path}")

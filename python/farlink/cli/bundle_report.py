"""`farlink bundle report`: what a connection of a bundle came to, for offline work."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from farlink.cli.messages import data, note, user_errors

if TYPE_CHECKING:
    from collections.abc import Mapping

EXAMPLES = """
[bold]Examples[/bold]

farlink bundle report bundle.toml

farlink bundle report bundle.toml --connection 12 -o connection.html

farlink bundle report bundle.toml -o reports/
"""
_SUFFIXES = (".md", ".html", ".json")


def report(
    config: Annotated[Path, typer.Argument(metavar="FILE", help="The bundle, a TOML file; its operator need not run.")],
    connection: Annotated[
        int | None, typer.Option(metavar="N", help="Number of the connection; the last one by default.", show_default=False)
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE|DIR",
            help="Write .md, .html or .json; into a directory, all three.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Report a connection of FILE, from the first dial until the last line was lost: what each did, how long all were up."""
    with user_errors():
        from farlink.errors import ArgumentError
        from farlink.operator.config import load
        from farlink.operator.core_dumps import forbid_core_dumps
        from farlink.operator.watch.report_words import markdown
        from farlink.operator.watch.source import Source

        if connection is not None and not 1 <= connection < 2**63:
            raise ArgumentError(f"--connection {connection}: not a number of a connection", "they begin with 1")
        forbid_core_dumps()
        bundle, secrets = load(config, needs_ports=False)
        files = _files(output, bundle.journal)
        source = Source(bundle, secrets.texts())
        made = source.report(connection)
        if not files:
            data(markdown(made))
        for folder, name in files:
            path = folder / (name or f"{bundle.name}-connection-{made['connection']}")
            for suffix in [path.suffix] if name else _SUFFIXES:
                _write(path if name else path.with_name(path.name + suffix), suffix, made)


def _files(output: Path | None, journal: Path) -> list[tuple[Path, str]]:
    """The folder, and the name in it; no name for those of all forms."""
    from farlink.errors import OutputError
    from farlink.output import check_writable

    if output is None:
        return []
    if output.is_dir():
        return [(output, "")]
    if output.suffix not in _SUFFIXES:
        remedy = f"use one of {', '.join(_SUFFIXES)}, or name a directory that exists"
        raise OutputError(f"-o {output}: no report has the suffix {output.suffix!r}", remedy)
    if output.resolve() == journal.resolve():
        raise OutputError(f"-o {output} would overwrite the journal", "give the report a name of its own")
    check_writable(output)
    return [(output.parent, output.name)]


def _write(path: Path, suffix: str, made: Mapping[str, Any]) -> None:
    import json

    from farlink import __version__
    from farlink.operator.watch.report_words import markdown
    from farlink.output import whole_file

    if suffix == ".json":
        text = json.dumps({"farlink": __version__, **made}, indent=1, allow_nan=False) + "\n"
    else:
        text = _page(made) if suffix == ".html" else markdown(made)
    with whole_file(path) as temporary:
        temporary.write_text(text, encoding="utf-8")
    note(f"report: {path}")


def _page(made: Mapping[str, Any]) -> str:
    from farlink.channels.calls.words import duration
    from farlink.operator.watch import report_words as words
    from farlink.report.connection import Bar, connection_page

    length_s = made["length_s"] or 1.0
    bars = []
    for line in made["lines"]:
        found = []
        for up in line["ups"]:
            said = f"{duration(up['begin_s'])} to {duration(up['end_s'])}: {up['outcome']}"
            found.append(Bar(min(up["begin_s"] / length_s, 1.0), min(up["end_s"] / length_s, 1.0), up["outcome"], said))
        bars.append((line["line"], found))
    tables = [
        ("Lines", words.LINES_HEAD, words.line_rows(made)),
        ("How many lines were up", words.SHARES_HEAD, words.share_rows(made)),
        ("Causes of drops and of failed attempts", words.CAUSES_HEAD, words.cause_rows(made)),
    ]
    return connection_page(words.heading(made), words.facts(made), bars, tables)

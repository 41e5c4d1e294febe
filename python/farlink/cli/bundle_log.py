"""`farlink bundle log`: what an operator's journal says, and its exports."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from farlink.cli.messages import data, note, user_errors

if TYPE_CHECKING:
    from farlink.operator.journal import History

EXAMPLES = """
[bold]Examples[/bold]

farlink bundle log camp.journal

farlink bundle log camp.journal -o camp.jsonl && farlink bundle fit camp.jsonl

farlink bundle log camp.journal -o camp.xml
"""


def log(
    journal: Annotated[Path, typer.Argument(metavar="JOURNAL", help="The journal of an operator, which may be running.")],
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="FILE", help="Export to write: .csv, .parquet, .jsonl or .xml.", show_default=False
        ),
    ] = None,
    last: Annotated[int, typer.Option(metavar="N", help="Print the last so many transitions.")] = 20,
) -> None:
    """Print the last transitions of JOURNAL, or export all of it. Of a damaged one, what is whole."""
    with user_errors():
        from farlink.errors import ArgumentError, OutputError
        from farlink.operator.journal import connection_xml, flat, read

        writers = {
            ".csv": flat.write_csv,
            ".parquet": flat.write_parquet,
            ".jsonl": flat.write_jsonl,
            ".xml": connection_xml.write_xml,
        }
        if last < 1:
            raise ArgumentError(f"--last: {last} is out of range", "give 1 or more")
        if output is not None and output.suffix not in writers:
            raise OutputError(f"-o {output}: no export has the suffix {output.suffix!r}", f"use one of {', '.join(writers)}")
        if output is not None and output.resolve() == journal.resolve():
            raise OutputError(f"-o {output} would overwrite the journal", "give the export a name of its own")
        history, loss = read(journal)
        if loss is not None:
            note(f"warning: {loss}")
        if output is None:
            data(_shown(history, last))
        else:
            writers[output.suffix](history, output)
            note(f"export: {output}")


def _shown(history: History, last: int) -> str:
    from farlink.operator.journal.flat import time_of
    from farlink.operator.journal.words import cause_words, signal_words
    from farlink.shown import counted
    from farlink.text_table import table

    rows = []
    for one in history.transitions[-last:]:
        signal, cause = signal_words(one), cause_words(one)[:60]
        rows.append((time_of(one.time_s), one.modem, one.state, signal, str(one.attempt or ""), cause))
    head = ("time", "line", "state", "signal", "attempt", "cause")
    counts = f"{counted(len(history.transitions), 'transition')} of {counted(len(history.connections), 'connection')}"
    return (table(head, rows) + "\n" if rows else "") + f"{counts}\n"

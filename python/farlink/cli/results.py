"""How commands show and write a result."""

from __future__ import annotations

import io
import sys
from pathlib import Path

from farlink.cli.messages import data, note
from farlink.result import Result

# Number of remarks of a kind that are printed in full; the others are only counted.
_MOST_SENTENCES = 10


def print_table(result: Result) -> None:
    """Print the table of a result, with what its intervals are."""
    from rich.console import Console

    is_terminal = sys.stdout is not None and sys.stdout.isatty()
    page = io.StringIO()
    console = Console(file=page, force_terminal=is_terminal, width=None if is_terminal else 160)
    console.print(result.scenario.title, style="bold", highlight=False)
    console.print(result.table())
    console.print(f"mean ± half-width of the {result.intervals}; seed {result.seed}; farlink {result.version}", highlight=False)
    text = page.getvalue()
    data(text if is_terminal else "".join(f"{line.rstrip()}\n" for line in text.splitlines()))


def print_notes(result: Result) -> None:
    """Say what an engine ran without, and its remarks."""
    for name, path in result.approximations:
        note(f"note: the {name} engine ran without {path}")
    for text in result.notes:
        note(f"note: {text}")


def print_flows(result: Result) -> None:
    """Say which flows did not reach their end, and what lines of a bundle did."""
    _print_some("bundle", result.bundles(), "--csv has all")
    _print_some("stalled", result.stalls(), "--csv has the reason of each")
    _print_some("unfinished", result.unfinished(), "--csv has the reason of each")


def write_rows(result: Result, *, json: str | None, csv: str | None, parquet: Path | None) -> None:
    """Write a result as JSON, CSV and Parquet; ``-`` is standard output."""
    if json == "-":
        data(result.to_json())
    elif json:
        result.to_json(json)
        note(f"json: {json}")
    if csv == "-":
        text = io.StringIO()
        result.to_csv(text)
        data(text.getvalue())
    elif csv:
        result.to_csv(csv)
        note(f"csv: {csv}")
    if parquet is not None:
        result.to_parquet(parquet)
        note(f"parquet: {parquet}")


def _print_some(kind: str, sentences: list[str], where: str) -> None:
    for sentence in sentences[:_MOST_SENTENCES]:
        note(f"{kind}: {sentence}")
    if len(sentences) > _MOST_SENTENCES:
        note(f"{kind}: {len(sentences) - _MOST_SENTENCES} more; {where}")

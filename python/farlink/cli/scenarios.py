"""`farlink scenarios`: scenarios that come with farlink."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from farlink.cli.messages import data, labelled, note, user_errors

EXAMPLES = """
[bold]Examples[/bold]

farlink scenarios

farlink scenarios copy

farlink scenarios copy geo-tcp rain-geo --to mine
"""

app = typer.Typer(epilog=EXAMPLES, help="List the scenarios that come with farlink, and copy them.")


@app.callback(invoke_without_command=True)
def scenarios(context: typer.Context) -> None:
    """List the scenarios that come with farlink, and copy them."""
    if context.invoked_subcommand is None:
        with user_errors():
            from farlink.shipped import titles

            data(labelled(titles().items()))


@app.command(epilog=EXAMPLES)
def copy(
    names: Annotated[list[str] | None, typer.Argument(metavar="[NAME]...", help="Scenarios; all by default.")] = None,
    to: Annotated[Path, typer.Option(metavar="DIR", help="Folder to copy to.")] = Path("scenarios"),
) -> None:
    """Copy scenarios to DIR, with the traces that they need; nothing there is replaced."""
    with user_errors():
        from farlink import shipped

        for path in shipped.copy(names or [], to):
            note(f"scenario: {path}")

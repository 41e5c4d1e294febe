"""`farlink bundle token`: who may use the API of a bundle, and for what."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from farlink.cli.messages import data, note, user_errors

if TYPE_CHECKING:
    from farlink.operator.watch.tokens import Tokens

app = typer.Typer(no_args_is_help=True, help="Tokens for the API of `farlink bundle serve`: made, listed, revoked.")

_ADD_EXAMPLES = """
[bold]Examples[/bold]

farlink bundle token add dashboard --right read bundle.toml > dashboard.token

farlink bundle token add operator@base --right change bundle.toml
"""

File = Annotated[Path, typer.Argument(metavar="FILE", help="The bundle, a TOML file.")]


@app.callback()
def token() -> None:
    """Tokens for the API of `farlink bundle serve`: made, listed, revoked."""


@app.command(epilog=_ADD_EXAMPLES)
def add(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Who gets it: a person or a program.")],
    config: File,
    right: Annotated[str, typer.Option(metavar="RIGHT", help="read, or change, which includes it.")] = "read",
) -> None:
    """Make a token and print it, once: only its hash is kept."""
    with user_errors():
        tokens = _tokens(config)
        made = tokens.add(name, right)
        note(f"kept in {tokens.path}; the token is shown this once:")
        data(f"{made}\n")


@app.command(name="list")
def show(config: File) -> None:
    """List the tokens of FILE, without what is secret of them."""
    with user_errors():
        from farlink.operator.journal.flat import time_of
        from farlink.text_table import table

        known = _tokens(config).all()
        rows = [(one.name, one.right, one.id, time_of(one.made_s)) for one in known]
        data(table(("name", "right", "id", "made"), rows) + "\n" if rows else "no tokens\n")


@app.command()
def revoke(
    which: Annotated[str, typer.Argument(metavar="NAME", help="Name or identifier of the token.")],
    config: File,
) -> None:
    """Take a token back; a server that runs refuses it from now on."""
    with user_errors():
        gone = _tokens(config).revoke(which)
        note(f"revoked: {gone.name} ({gone.right}, {gone.id})")


def _tokens(config: Path) -> Tokens:
    from farlink.operator.config import load
    from farlink.operator.core_dumps import forbid_core_dumps
    from farlink.operator.watch.tokens import Tokens, file_of

    forbid_core_dumps()
    bundle, _ = load(config, needs_ports=False)
    return Tokens(file_of(bundle.journal))

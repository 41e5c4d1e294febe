"""What a command says on standard error."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

import typer

from farlink.errors import FarlinkError


@contextmanager
def user_errors() -> Iterator[None]:
    """Print a `FarlinkError` as one line that says what is wrong and one that says what to do; exit status 2."""
    try:
        yield
    except FarlinkError as error:
        typer.echo(f"error: {error.message}", err=True)
        typer.echo(f"hint: {error.remedy}", err=True)
        raise typer.Exit(2) from error
    except KeyboardInterrupt:
        typer.echo("interrupted", err=True)
        raise typer.Exit(130) from None
    except BrokenPipeError:
        # The reader of our output has gone, as `head` does; there is nobody left to tell.
        sys.stderr.close()
        raise typer.Exit(0) from None


def note(text: str) -> None:
    """Say something that is not data."""
    typer.echo(text, err=True)

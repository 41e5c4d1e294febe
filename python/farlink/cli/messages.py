"""What a command says: data on standard output, everything else on standard error."""

from __future__ import annotations

import os
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


def data(text: str) -> None:
    """Print the data that was asked for. A reader who has gone, as `head` does, is no reason to stop."""
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def note(text: str) -> None:
    """Say something that is not data."""
    typer.echo(text, err=True)

"""Output of commands: data on standard output, everything else on standard error."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import typer

from farlink.cli.interrupts import listen
from farlink.errors import FarlinkError, OutputError
from farlink.shown import WIDTH
from farlink.untrusted import printable

_MOST_CHARACTERS = 2000


@contextmanager
def user_errors() -> Iterator[None]:
    """Print a `FarlinkError` as one line that says what is wrong and one that says what to do; exit with its status."""
    listen()
    if sys.stdout is not None and sys.stdout.isatty():
        WIDTH.set(shutil.get_terminal_size().columns)
    try:
        yield
    except FarlinkError as error:
        refused(error)
        raise typer.Exit(error.exit_code) from error
    except KeyboardInterrupt:
        typer.echo("interrupted", err=True)
        raise typer.Exit(130) from None


def refused(error: FarlinkError) -> None:
    """Print an error: a line that says what is wrong, and a line that says what to do."""
    typer.echo(f"error: {printable(error.message, _MOST_CHARACTERS)}", err=True)
    typer.echo(f"hint: {printable(error.remedy, _MOST_CHARACTERS)}", err=True)


def labelled(lines: Iterable[tuple[str, str]]) -> str:
    """Labels and values, a line each, the values below each other.

    Examples
    --------
    >>> print(labelled([("Bits", "100"), ("Wrong bits", "3")]), end="")
    Bits        100
    Wrong bits  3
    """
    lines = list(lines)
    width = max(len(label) for label, _ in lines)
    return "".join(f"{label:<{width}}  {value}\n" for label, value in lines)


def data(text: str) -> None:
    """Print the requested data. A closed pipe, as of `head`, is not an error.

    Raises
    ------
    OutputError
        If standard output cannot be written, as on a full disk.
    """
    if sys.stdout is None:  # closed by the parent process
        return
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except OSError as error:
        # The rest of the buffer would fail again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if not isinstance(error, BrokenPipeError):
            message = f"cannot write standard output: {error.strerror}"
            raise OutputError(message, "free some space, or choose another place") from error


def note(text: str) -> None:
    """Say something that is not data."""
    typer.echo(text, err=True)

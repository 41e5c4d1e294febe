"""The command `farlink`.

This package imports nothing by itself, so that `main` runs before anything that takes time.
"""

from __future__ import annotations

import signal
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import typer

    app: typer.Typer

__all__ = ["app", "main"]


def main() -> None:
    """Run the command of the arguments, as `farlink` and ``python -m farlink.cli`` do."""
    # Before a command works there is nothing to keep, so Ctrl-C ends the process at once. If it is ignored, it stays ignored.
    hears = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if hears:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from farlink.cli.commands import app_of

    try:
        app_of(sys.argv[1:])(prog_name="farlink")
    except KeyboardInterrupt:  # before the command was at work
        sys.exit(130)
    finally:
        if hears:
            signal.signal(signal.SIGINT, signal.SIG_DFL)


def __getattr__(name: str) -> object:
    if name != "app":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from farlink.cli import commands

    return commands.app

"""The commands of `farlink`. A command is a file here and a line below."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterable, Sequence
from importlib import import_module
from typing import Annotated, Any

import typer

from farlink.cli.interrupts import handler
from farlink.cli.usage import Group

# Name -> its module in this package, and the name of its epilog there. The function is called as the command is.
COMMANDS: dict[str, tuple[str, str | None]] = {
    "run": ("run", "EXAMPLES"),
    "tune": ("tune", "EXAMPLES"),
    "papers": ("papers", "EXAMPLES"),
    "delay": ("delay", "EXAMPLES"),
    "emulate": ("emulate", "EXAMPLES"),
    "send": ("send", "EXAMPLES"),
    "receive": ("receive", "EXAMPLES"),
    "keygen": ("keys", "KEYGEN"),
    "pubkey": ("keys", "PUBKEY"),
    "trust": ("keys", "TRUST"),
    "schema": ("schema", None),
    "dissector": ("dissector", "EXAMPLES"),
    "web": ("web", "EXAMPLES"),
}
# A group of commands is the `app` of the module of its name.
GROUPS = ("bundle", "code", "custody", "gateway", "scenarios", "sweep", "trace")


def app_of(arguments: Sequence[str]) -> typer.Typer:
    """The commands that these arguments need.

    To import the modules of all commands, and to look at the parameters of each, takes longer than a short run. So if the
    arguments begin with the name of a command, it is the only one; otherwise, for help, completion or a slip, all are there.
    """
    completes = "_FARLINK_COMPLETE" in os.environ
    is_named = bool(arguments) and not completes and (arguments[0] in COMMANDS or arguments[0] in GROUPS)
    return _app(arguments[:1] if is_named else (*COMMANDS, *GROUPS))


def _app(names: Iterable[str]) -> typer.Typer:
    app = typer.Typer(
        name="farlink",
        cls=Group,
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        rich_markup_mode="rich",
        epilog="Start with: farlink scenarios copy, then farlink run scenarios/geo-tcp.toml --report geo.html",
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(main)
    for name in names:
        if name in GROUPS:
            app.add_typer(import_module(f"farlink.cli.{name}").app, name=name)
        else:
            module, epilog = COMMANDS[name]
            made = import_module(f"farlink.cli.{module}")
            app.command(name, epilog=epilog and getattr(made, epilog))(getattr(made, name))
    return app


def _version(is_asked: bool) -> None:
    if is_asked:
        from farlink import __version__
        from farlink.build import described

        typer.echo(f"farlink {__version__}\n{described()}")
        raise typer.Exit


def main(
    version: Annotated[  # noqa: ARG001 (its callback does all there is to do)
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and stop.")
    ] = False,
) -> None:
    """Plan and run data transport over links that are long, lossy and drop out."""
    # The signal by which a batch system ends a job; finished runs are kept as after Ctrl-C.
    signal.signal(signal.SIGTERM, handler)


def __getattr__(name: str) -> Any:
    if name != "app":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()["app"] = _app((*COMMANDS, *GROUPS))
    return globals()["app"]

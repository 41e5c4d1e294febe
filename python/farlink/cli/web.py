"""`farlink web`: the dashboard of bundles."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from farlink.cli.messages import data, note, user_errors

EXAMPLES = """
[bold]Examples[/bold]

farlink web camp.toml ship.toml

farlink web --set-password && farlink web camp.toml --listen 0.0.0.0:8090 --host dash.example.org

farlink web camp.toml --read-only
"""


def web(
    files: Annotated[
        list[Path] | None,
        typer.Argument(metavar="[FILE...]", help="Bundles, TOML files; by default those of the folder.", show_default=False),
    ] = None,
    listen: Annotated[str, typer.Option(metavar="ADDRESS:PORT", help="Where to listen; port 0 is any.")] = "127.0.0.1:8090",
    host: Annotated[
        list[str] | None,
        typer.Option(
            "--host", metavar="NAME", help="A name by which it may be asked, too; may be repeated.", show_default=False
        ),
    ] = None,
    set_password: Annotated[
        bool, typer.Option("--set-password", help="Ask for a password, keep its hash, and stop. From a pipe, read a line.")
    ] = False,
    password_file: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Where its hash is.", show_default="~/.config/farlink/web-password.json"),
    ] = None,
    read_only: Annotated[bool, typer.Option("--read-only", help="Only show: hold, save and start nothing.")] = False,
) -> None:
    """Show bundles in a browser: their lines, calls and journals; hold and redial lines, edit files, start operators.

    It asks operators and reads journals, and its end ends none of them. Without a password it listens on this machine only.
    """
    with user_errors():
        from farlink.errors import ArgumentError, OperatorError
        from farlink.operator.watch.listen import listener_of, place_of
        from farlink.operator.watch.names import Names
        from farlink.web.access import password

        file = password_file or password.default_file()
        if set_password:
            password.write(file, _asked_password())
            note(f"password: {file}")
            return
        where = place_of(listen, allow_remote=True)
        names = Names(where, host or ())
        if file.exists() or password_file is not None:
            password.check_file(file)
        elif where.is_remote:
            message = f"--listen {listen}: other machines reach it, and there is no password ({file})"
            raise OperatorError(message, "set one: farlink web --set-password")
        missing = next((one for one in files or () if not one.is_file()), None)
        if missing is not None:
            raise ArgumentError(f"{missing}: no such file", "give the path of a bundle.toml")

        from farlink.extras import require
        from farlink.operator.core_dumps import forbid_core_dumps

        require("nicegui", "the dashboard")
        forbid_core_dumps()
        from farlink.web.data.bundles import Bundles, found_in
        from farlink.web.pages.frame import Site
        from farlink.web.server import application, serve

        has_login = file.exists()
        paths = list(files or found_in(Path.cwd()))
        folder = paths[0].absolute().parent if paths else Path.cwd()
        site = Site(Bundles(paths, folder), may_change=not read_only, has_login=has_login)
        listening = listener_of(where)
        data(f"{where.words(listening)}/\n")
        if where.is_remote:
            note("note: passwords and pages are readable on the way; put a proxy with TLS or a tunnel before it")
        try:
            serve(application(site, names, file if has_login else None), listening)
        finally:
            site.programs.close()


def _asked_password() -> str:
    import getpass
    import sys

    from farlink.errors import OperatorError

    if not sys.stdin.isatty():
        return sys.stdin.readline(1000).rstrip("\r\n")
    password = getpass.getpass("Password: ")
    if getpass.getpass("Again: ") != password:
        raise OperatorError("the two passwords differ", "type the same one twice")
    return password

"""`farlink bundle serve`: metrics and an API over HTTP, by a process of its own."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from farlink.cli.messages import note, user_errors

if TYPE_CHECKING:
    from farlink.operator.config import Bundle
    from farlink.operator.watch.listen import Place

EXAMPLES = """
[bold]Examples[/bold]

farlink bundle serve bundle.toml

curl --unix-socket camp.journal.http http://camp/v1/bundles/camp

farlink bundle serve bundle.toml --listen 127.0.0.1:9464

farlink bundle serve north.toml south.toml --listen 127.0.0.1:9464 --allow-changes
"""
MONITORING_EXAMPLES = """
[bold]Examples[/bold]

farlink bundle monitoring /etc/prometheus/farlink
"""


def serve(
    configs: Annotated[list[Path], typer.Argument(metavar="FILE...", help="The bundles, TOML files.")],
    listen: Annotated[
        str | None,
        typer.Option(metavar="ADDRESS:PORT", help="Listen there and not on a Unix socket: 127.0.0.1:9464.", show_default=False),
    ] = None,
    socket: Annotated[
        Path | None,
        typer.Option(metavar="PATH", help="Unix socket; beside the journal by default, as JOURNAL.http.", show_default=False),
    ] = None,
    allow_changes: Annotated[
        bool, typer.Option("--allow-changes", help="Take orders (hold, release, redial, drops) with a token that may change.")
    ] = False,
    allow_remote: Annotated[
        bool, typer.Option("--allow-remote", help="Listen at an address that other machines reach: all of it needs a token.")
    ] = False,
    allow_host: Annotated[
        list[str] | None,
        typer.Option("--allow-host", metavar="NAME", help="A name of this server, such as a proxy's; may be repeated."),
    ] = None,
) -> None:
    """Serve metrics for Prometheus (/metrics) and an API (/openapi.json) of FILE, until a signal or Ctrl-C.

    It asks the operator, which need not run, and reads the journal. Nothing that happens to it ends a bundle.
    """
    with user_errors():
        from farlink.extras import require
        from farlink.operator.config import load
        from farlink.operator.core_dumps import forbid_core_dumps
        from farlink.operator.live.teller import Teller
        from farlink.operator.watch.listen import listening
        from farlink.operator.watch.source import Source

        forbid_core_dumps()
        for module in ("fastapi", "uvicorn", "prometheus_client"):
            require(module, "an API over HTTP")
        loaded = [load(config, needs_ports=False) for config in configs]
        _check_names([bundle for bundle, _ in loaded])
        place = _place(listen, socket, loaded[0][0], allow_remote=allow_remote)

        from farlink.operator.watch.server import policy_of, serve

        policy = policy_of(place, allow_host or (), allow_changes=allow_changes)
        sources = [Source(bundle, secrets.texts()) for bundle, secrets in loaded]
        with listening(place) as listener, Teller() as tell:
            tell(f"listening at {place.words(listener)}")
            serve(sources, policy, listener, tell)


def monitoring(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Where the files go; it is made if it is missing.")],
) -> None:
    """Write a dashboard for Grafana and alert rules for Prometheus into DIR, for the metrics of `farlink bundle serve`."""
    with user_errors():
        from farlink.operator.watch.monitoring import write

        for path in write(folder):
            note(f"written: {path}")


def _check_names(bundles: list[Bundle]) -> None:
    from farlink.errors import ArgumentError

    names = [bundle.name for bundle in bundles]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise ArgumentError(f"two bundles are called {twice!r}", "give each a `name` of its own")


def _place(listen: str | None, socket: Path | None, first: Bundle, *, allow_remote: bool) -> Place:
    from farlink.errors import ArgumentError
    from farlink.operator.watch.listen import Place, place_of, socket_of

    if listen is not None and socket is not None:
        raise ArgumentError("--listen and --socket are two places", "give one of them")
    if listen is None:
        return Place(path=socket or socket_of(first.journal))
    return place_of(listen, allow_remote=allow_remote)

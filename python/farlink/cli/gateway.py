"""`farlink gateway`: TCP and UDP of unmodified programs over AeroTP."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from farlink.cli.host_options import Log
from farlink.cli.messages import data, note, user_errors
from farlink.cli.run_by_default import RunByDefault

if TYPE_CHECKING:
    from farlink.net import GatewayEvent

EXAMPLES = """
[bold]Examples[/bold]

farlink gateway office.toml

farlink gateway check office.toml

farlink gateway check hub.toml www.example.org:443
"""


app = typer.Typer(
    epilog=EXAMPLES, cls=RunByDefault, no_args_is_help=True, help="Carry TCP and UDP of unmodified programs over bad paths."
)

Config = Annotated[str, typer.Argument(metavar="CONFIG", help="The configuration, a TOML file.")]


@app.command(epilog=EXAMPLES)
def run(
    config: Config,
    log: Log = "warn",
    log_json: Annotated[bool, typer.Option("--log-json", help="What is told on stderr is a line of JSON each.")] = False,
) -> None:
    """Run a gateway until SIGTERM or Ctrl-C; SIGHUP reloads CONFIG. `run` may be left out."""
    with user_errors():
        from farlink import net

        net.show_log(log, as_json=log_json)
        net.run_gateway(config, _tell)


@app.command(epilog=EXAMPLES)
def check(
    config: Config,
    destination: Annotated[
        str | None, typer.Argument(metavar="[HOST:PORT]", help="Say what would happen to a connection there.")
    ] = None,
) -> None:
    """Check CONFIG, and say what it does, or what would happen to a connection."""
    with user_errors():
        from farlink import net

        data("".join(f"{line}\n" for line in net.check_gateway(config, destination)))


def _tell(event: GatewayEvent) -> None:
    if event.kind == "listening":
        note(f"sessions at {event.sessions} (UDP), clients at {', '.join(event.clients) or 'no address'}")
        if event.metrics:
            note(f"metrics at http://{event.metrics}/metrics")
    elif event.kind == "not-reloaded":
        note(f"the configuration before stays in force: {event.reason}")
    else:
        note({"reloaded": "reloaded", "draining": "draining"}[event.kind])

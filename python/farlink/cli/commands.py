"""The commands of `farlink`. A command is a file here and a line below."""

from __future__ import annotations

import signal
from typing import Annotated

import typer

from farlink.cli import (
    bundle,
    code,
    custody,
    delay,
    dissector,
    emulate,
    gateway,
    keys,
    papers,
    receive,
    run,
    scenarios,
    schema,
    send,
    sweep,
    trace,
    tune,
    web,
)
from farlink.cli.interrupts import handler
from farlink.cli.usage import Group

app = typer.Typer(
    name="farlink",
    cls=Group,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    epilog="Start with: farlink scenarios copy, then farlink run scenarios/geo-tcp.toml --report geo.html",
    context_settings={"help_option_names": ["-h", "--help"]},
)

app.command(epilog=run.EXAMPLES)(run.run)
app.command(epilog=tune.EXAMPLES)(tune.tune)
app.command(epilog=papers.EXAMPLES)(papers.papers)
app.command(epilog=delay.EXAMPLES)(delay.delay)
app.command(epilog=emulate.EXAMPLES)(emulate.emulate)
app.command(epilog=send.EXAMPLES)(send.send)
app.command(epilog=receive.EXAMPLES)(receive.receive)
app.command(epilog=keys.KEYGEN)(keys.keygen)
app.command(epilog=keys.PUBKEY)(keys.pubkey)
app.command(epilog=keys.TRUST)(keys.trust)
app.command()(schema.schema)
app.command(epilog=dissector.EXAMPLES)(dissector.dissector)
app.command(epilog=web.EXAMPLES)(web.web)
app.add_typer(bundle.app, name="bundle")
app.add_typer(code.app, name="code")
app.add_typer(custody.app, name="custody")
app.add_typer(gateway.app, name="gateway")
app.add_typer(scenarios.app, name="scenarios")
app.add_typer(sweep.app, name="sweep")
app.add_typer(trace.app, name="trace")


def _version(is_asked: bool) -> None:
    if is_asked:
        from farlink import __version__
        from farlink.build import described

        typer.echo(f"farlink {__version__}\n{described()}")
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[  # noqa: ARG001 (its callback does all there is to do)
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and stop.")
    ] = False,
) -> None:
    """Plan and run data transport over links that are long, lossy and drop out."""
    # The signal by which a batch system ends a job; finished runs are kept as after Ctrl-C.
    signal.signal(signal.SIGTERM, handler)

"""`farlink receive`: files from trusted hosts."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated

import typer

from farlink.cli.host_options import PSK_VARIABLE, DamagedLinks, InsecureAnywhere, InsecureOption, Log, PacketBytes, permission
from farlink.cli.keys import Keys
from farlink.cli.messages import data, labelled, user_errors
from farlink.cli.progress import progress_bar
from farlink.cli.send import report_failures, summary_lines

if TYPE_CHECKING:
    from farlink.net import Event

EXAMPLES = """
[bold]Examples[/bold]

farlink receive incoming/ --listen 0.0.0.0

farlink receive incoming/ --listen 127.0.0.1:5000 --once
"""


def receive(
    directory: Annotated[str, typer.Argument(metavar="DIR", help="Where the files go. Nothing outside of it is written.")],
    listen: Annotated[
        str, typer.Option(metavar="ADDRESS[:PORT]", help="Address of the socket; 0.0.0.0 or [::] is every interface.")
    ] = "127.0.0.1:47470",
    overwrite: Annotated[bool, typer.Option("--overwrite", help="A file replaces another one of its name.")] = False,
    by_host: Annotated[bool, typer.Option("--by-host", help="Each host has a folder of its own, by its name.")] = False,
    once: Annotated[bool, typer.Option("--once", help="Stop after one complete transfer.")] = False,
    patience: Annotated[float, typer.Option(metavar="S", help="How long to wait for a sender that is silent.")] = 300.0,
    packet_bytes: PacketBytes = 1500,
    damaged_links: DamagedLinks = False,
    insecure: InsecureOption = False,
    insecure_anywhere: InsecureAnywhere = False,
    log: Log = "warn",
    keys: Keys = None,
) -> None:
    """Receive files from the hosts that are trusted, until Ctrl-C.

    The pre-shared key, if there is one, is read from the variable FARLINK_PSK.
    """
    with user_errors(), progress_bar("receiving", "bytes") as progress:
        from farlink import net

        net.show_log(log)
        last: Event | None = None

        def tell(event: Event) -> None:
            nonlocal last
            if event.kind == "listening":
                hosts = len(net.trusted(keys))
                typer.echo(
                    f"listening on {event.address} for files of {hosts} trusted host{'' if hosts == 1 else 's'}", err=True
                )
            elif event.kind == "progress":
                progress(event.done_bytes, event.total_bytes)
            else:
                last = event
                _print(event)

        net.receive_files(
            directory,
            tell,
            listen=listen,
            keys=keys,
            psk=os.environ.get(PSK_VARIABLE),
            packet_bytes=packet_bytes,
            damaged_links=damaged_links,
            insecure=permission(insecure, insecure_anywhere),
            overwrite=overwrite,
            by_host=by_host,
            once=once,
            patience_s=patience,
        )
        if last is not None and last.summary is not None:
            report_failures(last.summary)


def _print(event: Event) -> None:
    from farlink.untrusted import printable

    if event.summary is not None:
        data(labelled([("From", event.host), *summary_lines(event.summary)]))
    else:
        typer.echo(f"{event.host}: {printable(event.reason, 500)}", err=True)
